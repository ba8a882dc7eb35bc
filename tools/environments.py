"""Clean environments: found interpreters, and folders into which packages are installed with uv, or with venv and pip."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run(*command: str | os.PathLike, **options: object) -> None:
    """Run a command whose output goes to this terminal. If it fails, this program ends with its status."""
    done = subprocess.run([str(part) for part in command], check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        print(f"FAILED with status {done.returncode}: {' '.join(str(part) for part in command)}", file=sys.stderr)
        sys.exit(1)


def project() -> dict:
    """The table `project` of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def supported() -> list[str]:
    """The versions of Python that the package says it supports."""
    return re.findall(r"Python :: (3\.\d+)", " ".join(project()["classifiers"]))


def find_python(version: str) -> str | None:
    """An interpreter of this version: the running one, one on the PATH, or one of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [sys.executable, shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))]
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    for candidate in filter(None, candidates):  # a name on the PATH may be a shim that runs nothing: so it is asked
        told = subprocess.run([str(candidate), "-c", code], capture_output=True, text=True, check=False)
        if told.returncode == 0 and told.stdout.strip() == version:
            return str(candidate)
    return None


class Environment:
    """A new environment in a folder.

    Parameters
    ----------
    folder : path
        The folder of the environment. Nothing may be there yet.
    interpreter : str
        The Python that it is made with.
    """

    def __init__(self, folder: Path, interpreter: str) -> None:
        self._uv = shutil.which("uv")
        if self._uv:
            run(self._uv, "venv", "--quiet", "--python", interpreter, folder)
        else:
            run(interpreter, "-m", "venv", folder)
        places = os.pathsep.join(str(folder / name) for name in ("bin", "Scripts"))  # the second on Windows
        self.python = str(shutil.which("python", path=places))

    def install(self, *arguments: str | os.PathLike) -> None:
        """Install what pip's arguments say."""
        if self._uv:
            run(self._uv, "pip", "install", "--quiet", "--python", self.python, *arguments)
        else:
            run(self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments)
