"""Processes that tests start and interrupt."""

import signal
import subprocess
from typing import Any


def start(arguments: list[str], **options: Any) -> subprocess.Popen:
    """Start a process that Ctrl-C interrupts, also where a shell started the tests in the background.

    A shell lets background commands ignore SIGINT, and their children inherit that.
    """
    return subprocess.Popen(arguments, preexec_fn=_interruptible, **options)  # noqa: PLW1509


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
