"""Lab Streaming Layer: a stream on the local network, found by its name."""

from __future__ import annotations

import os
import threading
import time as clocks
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import numpy as np

from trueonline.inputs import positive
from trueonline.optional import optional
from trueonline.streams.sources.live_source import LiveSource
from trueonline.streams.sources.ring import QUEUE_SAMPLES
from trueonline.streams.sources.sample import check_columns

LOOK_SECONDS = 1.0  # seconds of looking for a stream at a time
PULL_SECONDS = 0.2  # seconds of waiting for samples at a time
CHUNK_SAMPLES, MAX_LAST_CHUNKS = 1024, 64  # samples to take at a time, and how often at the stop
ANSWER_SECONDS = 5.0  # seconds for a stream to say what it is
QUIET_CONFIG = b"[log]\nlevel = -2\n"  # errors only: no word about each start
USER_CONFIGS = ("lsl_api.cfg", "~/lsl_api/lsl_api.cfg", "/etc/lsl_api/lsl_api.cfg")  # where liblsl looks for a user's own


class Lsl(LiveSource):
    """A stream of Lab Streaming Layer.

    Times are the sender's, in seconds since the epoch. They are mapped to this machine's clock once for each connection, so
    that the distances between samples stay as they were sent.

    If the outlet goes away, the source looks for it again, for ever, and looks up its channels again, because they may come
    back in another order. (liblsl itself would recover only streams with a source id, and assume the same channels.) If the
    stream comes back without one of the channels, reading ends with a ValueError.

    The counters are those of `LiveSource`.

    liblsl uses the user's settings, if there are any (LSLAPICFG, or a file lsl_api.cfg). Otherwise it is set to log errors
    only, because it would write to standard error at every start.

    Parameters
    ----------
    name : str
        The name of the stream.
    signals : sequence of str
        Channels by their labels, or by their numbers "0", "1", … if no label is such a number.
    queue : int
        How many samples may wait for the reader.
    patience : float
        How many seconds the search for the stream may take.
    """

    own_times, kind = True, "lsl"

    def __init__(self, name: str, signals: Sequence[str], *, queue: int = QUEUE_SAMPLES, patience: float = 10.0) -> None:
        pylsl = optional("LSL needs pylsl and liblsl", "pylsl", extra="lsl")
        self._lsl = pylsl
        _hush(pylsl)
        super().__init__(signals, None, queue)
        self.name = name
        self._epoch = clocks.time() - pylsl.local_clock()
        self._stop = threading.Event()
        end = clocks.monotonic() + positive("patience", patience)
        connection = self._connect()
        while connection is None:
            if clocks.monotonic() > end:
                raise ValueError(f"no LSL stream is named {name!r}; check the name, and that its outlet runs")
            connection = self._connect()
        self._thread = threading.Thread(target=self._pull, args=connection, name=f"lsl {name}", daemon=True)
        self._thread.start()

    @classmethod
    def from_address(cls, address: str, signals: Sequence[str], clock: dict[str, Any], queue: int) -> Lsl:
        return cls(unquote(address.partition("://")[2].rstrip("/")), signals, queue=queue)

    def _connect(self) -> tuple[Any, np.ndarray, float] | None:
        """The newest stream of that name, the places of its channels, and what makes its times seconds since the epoch."""
        streams = self._lsl.resolve_byprop("name", self.name, 1, LOOK_SECONDS)
        if not streams:
            return None
        inlet = self._lsl.StreamInlet(max(streams, key=lambda each: each.created_at()), recover=False)
        try:
            about = inlet.info(ANSWER_SECONDS)
            inlet.open_stream(ANSWER_SECONDS)
            offset = inlet.time_correction(ANSWER_SECONDS)
        except RuntimeError:  # lost again, or no answer in time
            return None
        if about.channel_format() == self._lsl.cf_string:
            raise ValueError(f"LSL stream {self.name!r} must hold numbers, got text")
        places = _places(f"LSL stream {self.name!r}", _labels(about), self.signals)
        self._counts["connections"] += 1
        return inlet, np.array(places), offset + self._epoch

    # --- In a thread of its own ---

    def _pull(self, inlet: Any, places: np.ndarray, offset: float) -> None:
        try:
            while not self._stop.is_set():
                try:
                    first, time = inlet.pull_sample(PULL_SECONDS)
                    if first is None:
                        continue
                    values, times = inlet.pull_chunk(0.0, CHUNK_SAMPLES)  # all other samples that have come
                except RuntimeError:  # pylsl's LostError is one
                    connection = None
                    while connection is None and not self._stop.is_set():
                        connection = self._connect()
                    if connection is not None:
                        inlet, places, offset = connection
                    continue
                self._put([time, *times], [first, *values], places, offset)
            self._put_rest(inlet, places, offset)
        except Exception as error:  # the reader must hear of every error
            self._ring.fail(error)

    def _put(self, times: list[float], values: list[Any], places: np.ndarray, offset: float) -> None:
        self._ring.put(np.array(times) + offset, np.array(values, np.float64)[:, places])

    def _put_rest(self, inlet: Any, places: np.ndarray, offset: float) -> None:
        """Put the samples that came before the stop, a limited number of chunks: a fast stream would otherwise never end."""
        for _ in range(MAX_LAST_CHUNKS):
            try:
                values, times = inlet.pull_chunk(0.0, CHUNK_SAMPLES)
            except RuntimeError:
                return
            if times:
                self._put(times, values, places, offset)
            if len(times) < CHUNK_SAMPLES:
                return

    # --- In the reader's thread ---

    def _want_no_more(self, seconds: float) -> None:
        """The thread takes what has come by now, and ends."""
        self._stop.set()
        self._thread.join(seconds)

    def close(self) -> None:
        self._stop.set()
        self._ring.close()
        self._thread.join()


def _hush(pylsl: Any) -> None:
    """Make liblsl log errors only. This has no effect if liblsl has been used before, or is too old for it."""
    if os.environ.get("LSLAPICFG") or any(os.path.exists(os.path.expanduser(path)) for path in USER_CONFIGS):
        return
    tell = getattr(getattr(getattr(pylsl, "lib", None), "lib", None), "lsl_set_config_content", None)
    if tell is not None:
        tell(QUIET_CONFIG)


def _places(name: str, labels: list[str], signals: Sequence[str]) -> list[int]:
    """The channel of each signal: by its label, which wins, or by its number."""
    numbers = [str(i) for i in range(len(labels))]
    by_label = [each for each in signals if each in labels or each not in numbers]
    hint = f"the labels of its channels; their numbers, 0 to {len(labels) - 1}, will do too"
    check_columns(name, [label for label in labels if label], by_label, hint)
    return [labels.index(each) if each in by_label else int(each) for each in signals]


def _labels(about: Any) -> list[str]:
    """The label of each channel, or "" where it has none."""
    labels = [""] * about.channel_count()
    channel = about.desc().child("channels").child("channel")
    for i in range(len(labels)):
        if channel.empty():
            break
        labels[i] = channel.child_value("label") or ""
        channel = channel.next_sibling("channel")
    return labels
