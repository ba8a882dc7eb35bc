"""On which machine the numbers were measured, and with what."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def describe() -> dict[str, str]:
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "CPU": _cpu(),
        "cores": f"{os.cpu_count()}, load at the beginning {os.getloadavg()[0]:.1f}",
        **_gpu(),
        "OS": f"{_os()}, {platform.system()} {platform.release()}",
        "huge pages": _huge_pages(),
        "Python": platform.python_version(),
        "NumPy": version("numpy"),
        "Numba": version("numba"),
        "trueonline": f"{version('trueonline')}, commit {_commit()}",
        "cc": _cc(),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _gpu() -> dict[str, str]:
    """The GPUs with their driver and what compiles for them. Nothing where there is none."""
    if shutil.which("nvidia-smi") is None:
        return {}
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    asked = subprocess.run(command, check=False, capture_output=True, text=True)
    if asked.returncode:
        return {}
    found = [", driver ".join(line.split(", ")) for line in asked.stdout.splitlines()]
    try:
        found.append(f"numba-cuda {version('numba-cuda')}")
    except PackageNotFoundError:
        found.append("no numba-cuda")
    return {"GPU": ", ".join(found)}


def _os() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _huge_pages() -> str:
    """Whether the kernel backs large arrays with pages of 2 MB: it changes resident memory and the cost of a miss."""
    try:
        return Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text(encoding="utf-8").strip()
    except OSError:
        return "unknown"


def _cc() -> str:
    if shutil.which("cc") is None:
        return "none"
    return subprocess.run(["cc", "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0]


def _commit() -> str:
    """The commit, with `-dirty` where code was changed since. Results that are being stored beside it do not count."""
    git = ["git", "-C", str(Path(__file__).parents[1])]
    try:
        commit = subprocess.run([*git, "describe", "--always"], check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    clean = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "src", "benchmarks"], check=False).returncode == 0
    return commit if clean else f"{commit}-dirty"
