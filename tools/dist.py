"""Builds the package, checks what was built, and tries it in clean environments: `make dist`.

The wheel is built from the sdist, so the sdist holds what a build needs. The wheel must hold the files of `src/trueonline` and
nothing else, and the sdist the files that git tracks and nothing else. The wheel is then installed without extras, and with
`all`, for each Python, and tried from a folder outside the checkout.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from tools.environments import ROOT, Environment, find_python, run, supported

LARGEST = 1_000_000  # bytes of the wheel
# Files that the package reads while it runs, beside Python. The comparison with the folder would not miss what is missing in both.
NEEDED = (
    *("py.typed", "lab/report/page.css", "lab/report/page.html", "streams/live/page/index.html"),
    *("lab/explorables/pages/index.html", "lab/explorables/pages/widgets.js", "lab/explorables/pages/style.css"),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.dist", description=__doc__)
    parser.add_argument("--pythons", default="", help="Versions, as in '3.11 3.12'. By default all that are found.")
    wanted = parser.parse_args().pythons.split()
    pythons = {version: find_python(version) for version in wanted or supported()}
    found = {version: path for version, path in pythons.items() if path}
    for version, path in pythons.items():
        print(f"Python {version}: {path or 'not found, so not tried'}", flush=True)
    if not found or (wanted and len(found) < len(pythons)):
        sys.exit("Install what is missing, or name others: make dist PYTHONS='3.11 3.12'")

    sdist, wheel = build(ROOT / "dist")
    check(sdist, wheel)
    with tempfile.TemporaryDirectory(prefix="trueonline-dist-") as folder:
        for version, path in found.items():
            try_wheel(Path(folder), version, path, wheel)
        version, path = next(iter(found.items()))
        try_sdist(Path(folder), version, path, sdist)
    missing = [version for version in pythons if version not in found]
    print(f"\ndist/{wheel.name} and dist/{sdist.name} work with Python {', '.join(found)}.")
    if missing:
        print(f"Not tried: Python {', '.join(missing)}.")


def build(folder: Path) -> tuple[Path, Path]:
    """Build both, and let twine check their metadata."""
    title("Building")
    if folder.exists():
        shutil.rmtree(folder)  # an older wheel that stays would be tried instead
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
    return sdist, wheel


def check(sdist: Path, wheel: Path) -> None:
    """End with a message unless both hold what they should."""
    title("Contents")
    package = {
        path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "trueonline").rglob("*") if path.is_file()
    }
    package = {name for name in package if "__pycache__" not in name}
    with zipfile.ZipFile(wheel) as archive:
        installed = {name for name in archive.namelist() if ".dist-info/" not in name}
    compare("the wheel", installed, package)
    compare("the wheel", installed & {f"trueonline/{name}" for name in NEEDED}, {f"trueonline/{name}" for name in NEEDED})
    if wheel.stat().st_size > LARGEST:
        sys.exit(f"the wheel has {wheel.stat().st_size:,} bytes, more than {LARGEST:,}: leave something out")

    with tarfile.open(sdist) as archive:
        packed = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode:
        sys.exit("the files of the sdist are compared with those that git tracks: run this in a checkout")
    compare("the sdist", packed - {"PKG-INFO"}, set(listing.stdout.split("\0")) - {""})
    for path, count in ((wheel, len(installed)), (sdist, len(packed))):
        print(f"{path.name}: {count} files, {path.stat().st_size / 1000:,.0f} kB")


def compare(what: str, held: set[str], wanted: set[str]) -> None:
    """End with a message if two sets of files differ."""
    for problem, names in (("lacks", wanted - held), ("should not hold", held - wanted)):
        if names:
            sys.exit(
                f"{what} {problem} {', '.join(sorted(names)[:10])} ({len(names)} in all): commit, remove or exclude them"
            )


def try_wheel(folder: Path, version: str, interpreter: str, wheel: Path) -> None:
    """Install the wheel twice, and run the smoke test of each."""
    # Both environments have the same Numba, so that the second finds the kernels that the first compiled.
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(folder / f"kernels-{version}"), "PYTHONWARNINGS": "default"}
    variables.pop("PYTHONPATH", None)
    for extra in ("core", "all"):
        title(f"Python {version}, {'no extras' if extra == 'core' else 'all extras'}")
        place = folder / f"{version}-{extra}"
        environment = Environment(place / "environment", interpreter)
        environment.install(wheel if extra == "core" else f"{wheel}[all]")
        (place / "elsewhere").mkdir()
        run(environment.python, ROOT / "tools" / f"smoke_{extra}.py", cwd=place / "elsewhere", env=variables)
        shutil.rmtree(place)


def try_sdist(folder: Path, version: str, interpreter: str, sdist: Path) -> None:
    """Unpack the sdist, install it with what the tests need, and run a few of its tests. Find all of them."""
    title(f"Tests of the sdist, Python {version}")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "sdist", filter="data")
    (source,) = (folder / "sdist").iterdir()
    environment = Environment(folder / "sdist-environment", interpreter)
    environment.install("--upgrade", "pip>=25.1")  # the first with dependency groups
    environment.install(f"{source}[all]", "--group", f"{source / 'pyproject.toml'}:dev")
    pytest = (environment.python, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    run(*pytest, "--collect-only", "-qq", cwd=source, stdout=subprocess.DEVNULL)
    run(*pytest, "tests/test_package.py", "tests/test_release.py", "tests/learners/test_inputs.py", cwd=source)


def title(text: str) -> None:
    print(f"\n== {text}", flush=True)


if __name__ == "__main__":
    main()
