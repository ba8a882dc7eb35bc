"""The common part of both smoke tests. Nothing of the checkout is imported, and nothing but the installed package and Python."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import trueonline

COMMAND = str(Path(sysconfig.get_path("scripts"), "trueonline"))


def trueonline_command(*arguments: str, status: int = 0) -> str:
    """The output of the installed command on both streams. AssertionError if its exit status is not `status`."""
    done = subprocess.run([COMMAND, *arguments], capture_output=True, encoding="utf-8", check=False)
    printed = done.stdout + done.stderr
    assert done.returncode == status, f"trueonline {' '.join(arguments)}: status {done.returncode}\n{printed}"
    return printed


def run_all(checks: list[Callable[[], None]]) -> None:
    """Run each check, and print what it shows. A failure is a traceback."""
    where = Path(trueonline.__file__)
    assert where.is_relative_to(sys.prefix), f"{where} is not the installed package"
    for check in checks:
        check()
        print(f"   {check.__doc__}", flush=True)
