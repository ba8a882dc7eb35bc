"""Samples in blocks, and what every source of them can do.

A *sample* is a time and one number per signal. Samples travel in blocks, because a call for each of them would take longer
than the learning.
"""

from __future__ import annotations

import errno
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Any

import numpy as np

from trueonline.inputs import positive

ROWS = 4096  # at most as many samples are in a block

UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
ANEW = "begin anew (on the command line: --fresh)"  # what helps where a position does not fit
SHOWN = 100  # characters of what was sent that a complaint shows


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """Samples as they came: `times` in seconds and `values[k, s]` of the signals asked for. What is missing is NaN."""

    times: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.times)


@dataclass(frozen=True, eq=False, slots=True)
class Clean:
    """Samples to learn from: times that rise, finite values, and whether each sample begins something new."""

    times: np.ndarray
    values: np.ndarray
    starts: np.ndarray

    def __len__(self) -> int:
        return len(self.times)


def nothing(signals: int) -> Block:
    """A block without samples."""
    return Block(np.empty(0), np.empty((0, signals)))


# --- Positions within blocks ----------------------------------------------------------------------


def skipping(position: dict[str, Any], block: Block, rows: int) -> dict[str, Any]:
    """The position `rows` samples after another one, where `block` is what was read there.

    Its `skip` says how many samples are left out after the place, and its `skipped` what they were: a checksum of their
    times and one for each signal. (CRC-32, because it can be continued; it is proof against accidents, not against malice.)
    What makes its samples from a seed has none, and needs none.
    """
    if not 0 <= rows <= len(block):
        raise ValueError(f"rows must be a whole number from 0 to the {len(block)} of the block, got {rows!r}")
    moved = {**position, "skip": position["skip"] + int(rows)}
    if "skipped" in position:
        moved["skipped"] = _summed(position["skipped"], Block(block.times[:rows], block.values[:rows]))
    return moved


def nothing_skipped(signals: Sequence[str]) -> dict[str, Any]:
    """What `skipped` of a position is where no samples are left out."""
    return {"times": 0, "values": dict.fromkeys(signals, 0)}


def _summed(skipped: dict[str, Any], block: Block) -> dict[str, Any]:
    """The checksums continued. A signal of which there is none (None) was not asked for when they were begun."""
    values = {
        name: None if before is None else zlib.crc32(block.values[:, j].tobytes(), before)
        for j, (name, before) in enumerate(skipped["values"].items())
    }
    return {"times": zlib.crc32(block.times.tobytes(), skipped["times"]), "values": values}


def told_of_skipped(position: dict[str, Any], signals: Sequence[str]) -> dict[str, Any]:
    """`skipped` of a position that was given, checked, for these signals: perhaps others than when it was taken."""
    skipped = position.get("skipped")
    values = skipped.get("values") if isinstance(skipped, dict) else None
    if isinstance(skipped, dict) and isinstance(values, dict):
        sums = [skipped.get("times"), *(value for value in values.values() if value is not None)]
        if all(type(each) is int and 0 <= each < 2**32 for each in sums):
            return {"times": skipped["times"], "values": {name: values.get(name) for name in signals}}
    raise ValueError(f"the position is damaged: skipped must hold a checksum for each signal, got {str(skipped)[:80]}")


def after_skipped(name: str, position: dict[str, Any], signals: Sequence[str], blocks: Iterable[Block]) -> Block:
    """Leave out as many samples as the position says, and return what else is in the block where they end.

    ValueError where they are not what they were when the position was taken, or where there are not so many.
    """
    told, skip = told_of_skipped(position, signals), position["skip"]
    found, left, rest = nothing_skipped(signals), skip, nothing(len(signals))
    for block in blocks:
        drop = min(left, len(block))
        found = _summed(found, Block(block.times[:drop], block.values[:drop]))
        left, rest = left - drop, Block(block.times[drop:], block.values[drop:])
        if not left:
            break
    if left:
        raise ValueError(
            f"{name} is shorter than what was read of it: of {skip:,} samples after the place of the position it has "
            f"{skip - left:,}; {ANEW}"
        )
    differing = [signal for signal, before in told["values"].items() if before not in (None, found["values"][signal])]
    if found["times"] != told["times"] or differing:
        what = ", ".join([*(["the times"] if found["times"] != told["times"] else []), *differing])
        raise ValueError(
            f"{name} is not the file that was read, or was changed: of the {skip:,} samples after the place of the position, "
            f"{what} are not what they were; {ANEW}"
        )
    return rest


@contextmanager
def opening(path: str | os.PathLike) -> Iterator[None]:
    """Say in words why a file cannot be opened."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise ValueError(f"there is no file {path}; check its name, and the folder") from None
        if os.path.isdir(path):
            raise ValueError(f"{path} is a folder; give a file in it") from None
        if error.errno is None:
            raise
        raise ValueError(f"{path} cannot be read: {error.strerror or errno.errorcode.get(error.errno)}") from None


def shown(sent: Any) -> str:
    """The beginning of what was sent, on one line, as a complaint quotes it."""
    if isinstance(sent, bytes | bytearray):
        sent = bytes(sent[: 4 * SHOWN]).decode("utf-8", "replace")
    text = sent[: 4 * SHOWN] if isinstance(sent, str) else repr(sent)
    text = "".join(each if each.isprintable() else " " for each in text).strip()
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


# --- Times and names ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Clock:
    """How samples get their times: from the column `time`, in `unit` since the epoch, or from `rate` where there is none.

    With both, the column is used. Text such as 2024-05-01T12:00:00.25+02:00 (ISO 8601) is understood in the column,
    whatever the unit; without a time zone it is UTC. Made from the rate, the sample of row i has the time i / rate, and
    rows that cannot be read are counted in i: time went on.
    """

    time: str | None = None
    rate: float | None = None
    unit: str = "s"

    def __post_init__(self) -> None:
        if self.time is not None and not (isinstance(self.time, str) and self.time):
            raise ValueError(f"time must be the name of a column, got {self.time!r}")
        if self.rate is not None:
            object.__setattr__(self, "rate", positive("rate", self.rate))
        if self.unit not in UNITS:
            raise ValueError(f"time_unit must be one of {', '.join(UNITS)}, got {self.unit!r}")
        if self.time is None and self.rate is None:
            raise ValueError("the samples need times: give the rate, in samples per second, or the column with the times")

    def made(self, rows: Any) -> Any:
        """The times of rows, by their numbers, from the rate."""
        assert self.rate is not None
        return rows / self.rate

    @property
    def per_second(self) -> float:
        return UNITS[self.unit]


def named(signals: Sequence[str], time: str | None = None) -> tuple[str, ...]:
    """The signals asked for, checked: names, each once, the time not among them."""
    if isinstance(signals, str) or not all(isinstance(name, str) and name for name in signals):
        raise ValueError(f"signals must be a list of names, got {signals!r}")
    names = tuple(signals)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"signals must be at least one name, each given once, got {', '.join(names) or 'none'}")
    if time in names:
        raise ValueError(f"{time} is the time of the samples, so it cannot be one of the signals {', '.join(names)}")
    return names


def found(name: str, columns: Sequence[str], wanted: Sequence[str], hint: str) -> None:
    """ValueError unless each of the columns wanted is there once."""
    absent = [each for each in wanted if each not in columns]
    if absent:
        there = ", ".join(columns[:100]) + (", …" if len(columns) > 100 else "")
        raise ValueError(f"{name} has no column {', '.join(absent)}; it has {there or 'none'} ({hint})")
    twice = [each for each in wanted if columns.count(each) > 1]
    if twice:
        raise ValueError(f"{name} has the column {twice[0]} more than once; rename all but one")


def wholes(position: Any, kind: str, *names: str) -> list[int]:
    """Entries of a position, checked: whole numbers that are not negative."""
    if not isinstance(position, dict) or position.get("kind") != kind:
        raise ValueError(f"this is not a position in a source of the kind {kind}: {str(position)[:80]}")
    for name in names:
        if type(position.get(name)) is not int or position[name] < 0:
            raise ValueError(f"the position is damaged: {name} must be a whole number, got {position.get(name)!r}")
    return [position[name] for name in names]


class Source(ABC):
    """Where samples come from: an iterator over blocks.

    >>> import io
    >>> from trueonline.nexting.sources import Pipe
    >>> with Pipe(io.BytesIO(b"b,a,time\\n1,2,0.5\\n3,,0.75\\n"), ["a", "b"], time="time") as source:
    ...     [(block.times, block.values) for block in source]
    [(array([0.5 , 0.75]), array([[ 2.,  1.], [nan,  3.]]))]
    """

    replayable: bool = False
    signals: tuple[str, ...]

    @abstractmethod
    def read(self, timeout: float | None = None) -> Block | None:
        """The next block: at least one sample, or none when none came within `timeout` seconds. None at the end.

        Without a timeout it waits for as long as it takes.
        """

    @abstractmethod
    def position(self) -> dict[str, Any]:
        """How far this has been read: up to the end of the last block. It can be written as JSON.

        Where the source is replayable, `skip` in it is a number of samples that come after the place, and were given. See
        `skipping` for positions within a block.
        """

    def seek(self, position: dict[str, Any]) -> None:
        """Go on from a position, as if all before it had been read.

        ValueError where that cannot be, or where it was taken in something else than what is there now; nothing has
        changed then.
        """
        raise ValueError(f"{type(self).__name__} cannot be replayed: what was sent is gone; go on without seek")

    @abstractmethod
    def counters(self) -> dict[str, int]:
        """What was counted since the beginning: `malformed` and others that a kind of source has."""

    def complaint(self) -> str | None:
        """What was wrong with the first thing that could not be used, in words; None where all is well.

        It is of what this process has read. What it quotes is cut to about 100 characters.
        """
        return None

    def progress(self) -> float | None:
        """The share that has been read, from 0 to 1; None where nobody knows the whole."""
        return None

    @abstractmethod
    def close(self) -> None:
        """End it, from any thread: `read` returns None soon after."""

    def __iter__(self) -> Source:
        return self

    def __next__(self) -> Block:
        block = self.read()
        if block is None:
            raise StopIteration
        return block

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Patience:
    """How much of a timeout is left."""

    def __init__(self, timeout: float | None) -> None:
        self._end = None if timeout is None else monotonic() + timeout

    def left(self, most: float) -> float:
        """Seconds to wait now: at most `most`."""
        return most if self._end is None else min(most, max(0.0, self._end - monotonic()))

    @property
    def over(self) -> bool:
        return self._end is not None and monotonic() >= self._end
