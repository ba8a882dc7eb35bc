"""Standard input, or any other pipe: CSV or JSON lines, as they arrive."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Sequence
from typing import IO, Any

from trueonline.platforms import Fetched, Polled, incoming
from trueonline.streams.sources.clock import Clock
from trueonline.streams.sources.labels import Labels
from trueonline.streams.sources.records import CHUNK_BYTES
from trueonline.streams.sources.sample import Block, Patience, Source, named, nothing, opening
from trueonline.streams.sources.text import Text

POLL_SECONDS = 0.1  # seconds between looks whether the source was closed


class Pipe(Source):
    """CSV or JSON lines that come through a pipe, until its end. A block holds what has arrived.

    The file descriptor is read directly, so that nothing waits in a buffer of Python. A stream without one, such as a
    BytesIO, is read as it is.

    Parameters
    ----------
    stream : str, path, stream of bytes or None
        A named pipe or a device, an open stream, which stays open, or None for standard input.
    signals : sequence of str
        The columns, or the keys of the objects, to read.
    time : str, optional
        The column with the times.
    rate : float, optional
        Samples per second, to make times from if there is no such column.
    time_unit : {"s", "ms", "us", "ns"}
        The unit of the times.
    time_format : str, optional
        The form of the times, as `datetime.strptime` knows it, such as "%d.%m.%Y %H:%M".
    labels : Labels, optional
        The codes of the last of the signals, which is a column of names.
    whole_lines : bool
        Leave a last line without a line break. If the writer dies in the middle of a line, its last number may be half a
        number.
    """

    def __init__(
        self,
        stream: str | os.PathLike | IO[bytes] | None,
        signals: Sequence[str],
        *,
        time: str | None = None,
        rate: float | None = None,
        time_unit: str = "s",
        time_format: str | None = None,
        labels: Labels | None = None,
        whole_lines: bool = False,
    ) -> None:
        self.signals = named(signals, time)
        self._clock = Clock(time, rate, time_unit, time_format, labels=labels)
        name = "standard input" if stream is None else "the pipe"
        self._stream: Any = sys.stdin.buffer if stream is None else stream
        self._owned = isinstance(stream, str | os.PathLike)
        if isinstance(stream, str | os.PathLike):
            with opening(stream):
                name, self._stream = os.fspath(stream), io.FileIO(stream)
        self._text = self._teller = Text(name, self.signals, self._clock)
        self._samples = 0
        self._ended, self._whole_lines = False, whole_lines
        self._closed, self._lock = threading.Event(), threading.Lock()
        try:
            number = self._stream.fileno()
        except (AttributeError, OSError):  # io.UnsupportedOperation is an OSError
            self._incoming: Polled | Fetched | None = None
        else:
            self._incoming = incoming(number, self._stream.close if self._owned else lambda: None)

    def read(self, timeout: float | None = None) -> Block | None:
        patience = Patience(timeout)
        while True:
            with self._lock:
                if self._closed.is_set():
                    return None
                block = self._text.take()
                if block is None and not self._ended and self._more(patience):
                    block = self._text.take()
                if block is not None and len(block):
                    self._samples += len(block)
                    return block
                if block is None and self._ended:
                    return None
            if patience.over:
                return nothing(len(self.signals))

    def _more(self, patience: Patience) -> bool:
        """Read what arrives within a moment, and say whether there is more to take."""
        if self._incoming is None:
            data = self._stream.read1(CHUNK_BYTES) if hasattr(self._stream, "read1") else self._stream.read(CHUNK_BYTES)
        elif (data := self._incoming.read(CHUNK_BYTES, patience.left(POLL_SECONDS))) is None:
            return False
        if data:
            self._text.feed(data)
        else:
            self._text.finish(self._whole_lines)
            self._ended = True
        return True

    def position(self) -> dict[str, Any]:
        return {"kind": "pipe", "samples": self._samples, **self._text.position()}

    def close(self) -> None:
        self._closed.set()
        if self._incoming is not None:
            with self._lock:
                self._incoming.close()
