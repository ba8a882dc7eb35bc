"""Processes that tests start and interrupt."""

import multiprocessing
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 300.0  # seconds after which a process that should have ended is taken for hung


# Forks processes from a server that has the imports done, so that they begin in milliseconds.
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["pytest", "rich.progress", "trueonline.study.sweeps", "trueonline.study.sweep_file"])


def start(arguments: list[str], **options: Any) -> subprocess.Popen:
    """Start a process that Ctrl-C interrupts, also where a shell started the tests in the background.

    A shell lets background commands ignore SIGINT, and their children inherit that.
    """
    return subprocess.Popen(arguments, preexec_fn=_interruptible, **options)  # noqa: PLW1509


def wait_for(condition: Callable[[], Any], what: str = "what was waited for") -> Any:
    """Wait until a condition is true, but not for ever, and return what it gave."""
    until = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < until, f"in {PATIENCE:.0f} s there was no {what}"
        time.sleep(0.02)
    return found


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
