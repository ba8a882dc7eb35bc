"""Alerts sent elsewhere: to a command, or to a web address. Learning never waits for them.

Alerts wait in a queue, from which a thread sends them one at a time. What fails is tried again, after pauses that double. If the
queue is full, the oldest alert makes way and is counted.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from trueonline.words import printable

QUEUE_ALERTS = 1000  # that may wait
TRIES = 8  # of an alert
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0  # seconds before it is tried again
SEND_SECONDS = 30.0  # for one try
TEXT = "TRUEONLINE_ALERT"  # the environment variable in which a command finds the alert in words

Send = Callable[[str, bytes], None]


class Notifier:
    """Sends alerts from a thread of its own.

    Parameters
    ----------
    send : callable
        Sends an alert, in words and as JSON. An exception if that fails.
    shown : str
        The name of the destination in messages.
    first_pause : float
        Seconds before an alert is tried again for the first time. Each further pause is twice as long.

    Attributes
    ----------
    lost : int
        The alerts that could not be sent.
    """

    def __init__(self, send: Send, shown: str, first_pause: float = FIRST_PAUSE) -> None:
        self._send, self._shown, self._pause = send, shown, first_pause
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._changed = threading.Condition()
        self._closed, self._busy = False, False
        self._trouble, self.lost = "", 0
        self._thread = threading.Thread(target=self._run, name="trueonline-alerts", daemon=True)
        self._thread.start()

    def tell(self, words: str, line: bytes) -> None:
        """Send an alert, some time."""
        words = printable(words)
        alert = json.loads(line) | {"text": words}
        with self._changed:
            if len(self._waiting) == QUEUE_ALERTS:
                self._waiting.popleft()
                self.lost += 1
            self._waiting.append((words, json.dumps(alert).encode() + b"\n"))
            self._changed.notify_all()

    def warnings(self) -> dict[str, str]:
        """Problems that the user should know of, by their kinds."""
        found = {}
        if self._trouble:
            found[f"alerts to {self._shown}"] = (
                f"an alert could not be sent to {self._shown}: {self._trouble}; it is tried again"
            )
        if self.lost:
            found[f"alerts lost by {self._shown}"] = f"{self.lost:,} alerts could not be sent to {self._shown}"
        return found

    def finish(self, seconds: float) -> None:
        """Give alerts that wait a last chance. Those that cannot be sent in time are lost and counted."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and not self._busy, seconds)
            self.lost += len(self._waiting) + self._busy
            self._waiting.clear()

    def close(self) -> None:
        """End the thread, soon."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    # --- In the thread ---

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                words, content = self._waiting.popleft()
                self._busy = True
            sent = self._sent(words, content)
            with self._changed:
                self._busy = False
                self.lost += not sent and not self._closed
                self._changed.notify_all()

    def _sent(self, words: str, content: bytes) -> bool:
        pause = self._pause
        for _ in range(TRIES):
            try:
                self._send(words, content)
                self._trouble = ""
                return True
            except Exception as error:  # servers answer anything, and the next alert needs this thread
                self._trouble = str(error)[:200] or type(error).__name__
            with self._changed:
                if self._changed.wait_for(lambda: self._closed, pause):
                    return False
            pause = min(2.0 * pause, LONGEST_PAUSE)
        return False


class _Unmoved(urllib.request.HTTPRedirectHandler):
    """Redirections are failures: urllib would follow them without the alert."""

    def redirect_request(self, *_: Any) -> None:
        """None: nothing is followed."""


def to_webhook(url: str) -> Notifier:
    """A notifier that posts JSON to a web address. ValueError if it is none."""
    try:
        parts = urlsplit(url)
        fits = parts.port != 0 and parts.username is None and not re.search(r"\s", url)
    except ValueError:
        fits = False
    if not fits or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(
            "--alert-webhook must be http://HOST… or https://HOST…, without spaces and without a user or a password"
        )
    opener = urllib.request.build_opener(_Unmoved)

    def send(words: str, content: bytes) -> None:
        request = urllib.request.Request(url, content, {"Content-Type": "application/json"}, method="POST")
        try:
            with opener.open(request, timeout=SEND_SECONDS):
                pass
        except urllib.error.HTTPError as error:
            raise OSError(f"it answered {error.code} {error.reason}") from None

    return Notifier(send, parts.hostname)  # the rest of the address may be a secret


def to_command(text: str) -> Notifier:
    """A notifier that runs a command, with JSON on standard input. ValueError if there is no such command.

    No shell reads the command, so that nothing in an alert can be taken for a part of it. Its standard error is that of this
    process: a pipe would end only with the last process that the command leaves behind.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"--alert-command {text!r} cannot be read: {error}") from None
    if not words or shutil.which(words[0]) is None:
        raise ValueError(f"--alert-command {text!r} names no command that can be run; give its whole path")

    def send(said: str, content: bytes) -> None:
        settings: dict[str, Any] = {"input": content, "stdout": subprocess.DEVNULL, "timeout": SEND_SECONDS}
        done = subprocess.run(words, env={**os.environ, TEXT: said}, check=False, **settings)
        if done.returncode:
            raise OSError(f"it ended with {done.returncode}")

    return Notifier(send, words[0])
