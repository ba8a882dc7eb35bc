"""Samples in blocks, their times and names, and what every source of them can do.

A *sample* is a time and one number per signal. Samples travel in blocks, because a call for each of them would take longer
than the learning.
"""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Any, ClassVar

import numpy as np

from trueonline.streams.sources.clock import TimeStyle

BLOCK_ROWS = 4096  # samples in a block, at most
QUOTED_CHARACTERS = 100  # characters of malformed input that a complaint quotes


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """Samples as they came.

    Parameters
    ----------
    times : array of shape (k,)
        The times of the samples, in seconds.
    values : array of shape (k, signals)
        The values of the signals asked for. A missing value is NaN.
    offset : float
        The seconds by which the wall clock of the samples is ahead of UTC. 0 for times that are numbers or have no zone.
    """

    times: np.ndarray
    values: np.ndarray
    offset: float = 0.0

    def __len__(self) -> int:
        return len(self.times)

    def part(self, first: int, end: int | None = None) -> Block:
        """Take some of the samples.

        Parameters
        ----------
        first : int
            The number of the first sample.
        end : int, optional
            The number of the sample after the last. None takes all that are left.

        Returns
        -------
        Block
            These samples.
        """
        return Block(self.times[first:end], self.values[first:end], self.offset)


@dataclass(frozen=True, eq=False, slots=True)
class Clean:
    """Samples to learn from.

    Parameters
    ----------
    times : array of shape (k,)
        Times in seconds. They rise, except where the clock was set back.
    values : array of shape (k, signals)
        Finite values of the signals.
    starts : array of bool, of shape (k,)
        Whether a sample begins something new, so that nothing is learned across it.
    offset : float
        The seconds by which the wall clock of the samples is ahead of UTC.
    rows : array of int, of shape (k,), optional
        The places of the samples in the block that they come from.
    """

    times: np.ndarray
    values: np.ndarray
    starts: np.ndarray
    offset: float = 0.0
    rows: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.times)


def nothing(signals: int) -> Block:
    """A block without samples."""
    return Block(np.empty(0), np.empty((0, signals)))


@contextmanager
def opening(path: str | os.PathLike) -> Iterator[None]:
    """Turn the reason why a file cannot be opened into a ValueError."""
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
    """The beginning of some input, on one line, as a complaint quotes it."""
    if isinstance(sent, bytes | bytearray):
        sent = bytes(sent[: 4 * QUOTED_CHARACTERS]).decode("utf-8", "replace")
    text = sent[: 4 * QUOTED_CHARACTERS] if isinstance(sent, str) else repr(sent)
    text = "".join(each if each.isprintable() else " " for each in text).strip()
    return text if len(text) <= QUOTED_CHARACTERS else text[: QUOTED_CHARACTERS - 1] + "…"


# --- Names ----------------------------------------------------------------------------------------


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


class MissingColumnsError(ValueError):
    """A source lacks columns that were asked for."""

    def __init__(self, message: str, columns: Sequence[str]) -> None:
        super().__init__(message)
        self.columns = tuple(columns)


def check_columns(name: str, columns: Sequence[str], wanted: Sequence[str], hint: str) -> None:
    """MissingColumnsError unless all columns wanted are there. ValueError if one is there more than once."""
    absent = [each for each in wanted if each not in columns]
    if absent:
        there = ", ".join(columns[:100]) + (", …" if len(columns) > 100 else "")
        message = f"{name} has no column {', '.join(absent)}; it has {there or 'none'} ({hint})"
        raise MissingColumnsError(message, absent)
    twice = [each for each in wanted if columns.count(each) > 1]
    if twice:
        raise ValueError(f"{name} has the column {twice[0]} more than once; rename all but one")


# --- Sources --------------------------------------------------------------------------------------


class Source(ABC):
    """A source of samples: an iterator over blocks.

    Examples
    --------
    >>> import io
    >>> from trueonline.streams.sources import Pipe
    >>> with Pipe(io.BytesIO(b"b,a,time\\n1,2,0.5\\n3,,0.75\\n"), ["a", "b"], time="time") as source:
    ...     [(block.times, block.values) for block in source]
    [(array([0.5 , 0.75]), array([[ 2.,  1.], [nan,  3.]]))]
    """

    replayable: ClassVar[bool] = False  # whether `seek` works; if not, samples come when they are sent
    own_times: ClassVar[bool] = False  # whether samples bring times that nobody need name
    signals: tuple[str, ...]
    queue: int = 0  # how many samples may wait to be read, where there is a queue of them
    pace: float | None = None  # how many times as fast as recorded samples come, where they come at a pace
    trouble: str = ""  # why a lost connection cannot be restored at the moment
    lost: str = ""  # what `seek` could not find again
    _clock: Any = None  # what knows how the times are written, where somebody names them
    _teller: Any = None  # what counts and complains for the source, where that is something else

    @property
    def style(self) -> TimeStyle | None:
        """How the times were written, from the first that could be read. None before that. A resumed run sets it."""
        return TimeStyle() if self._clock is None else self._clock.style

    @style.setter
    def style(self, style: TimeStyle | None) -> None:
        if self._clock is not None:
            self._clock.style = style

    @classmethod
    def from_address(cls, address: str, signals: Sequence[str], clock: dict[str, Any], queue: int) -> Source:
        """The source that an address scheme://… stands for, for classes that are in `SCHEMES`.

        Parameters
        ----------
        address : str
            The whole address.
        signals : sequence of str
            The names of the signals.
        clock : dict
            The arguments `time`, `rate`, `time_unit` and `time_format` of `open_source`.
        queue : int
            How many samples may wait in a live source.

        Returns
        -------
        Source
            The source, opened.
        """
        raise ValueError(f"{cls.__name__} has no address, got {address}")

    @abstractmethod
    def read(self, timeout: float | None = None) -> Block | None:
        """Read the next block.

        Parameters
        ----------
        timeout : float, optional
            How many seconds to wait for samples. None waits for as long as it takes.

        Returns
        -------
        Block or None
            At least one sample, or none of them if none came in time. None at the end of the source.
        """

    @abstractmethod
    def position(self) -> dict[str, Any]:
        """How far the source has been read: up to the end of the last block.

        Returns
        -------
        dict
            A position that can be written as JSON. If the source is replayable, its `skip` is a number of samples after the
            place that were used. `skipping` gives positions within a block.
        """

    def position_within(self, position: dict[str, Any], block: Block, rows: int) -> dict[str, Any]:
        """The position within the block that was read last.

        Parameters
        ----------
        position : dict
            The position before it.
        block : Block
            The block.
        rows : int
            How many samples of the block were used.

        Returns
        -------
        dict
            A position from which the rest of the block comes next.
        """
        from trueonline.streams.sources.positions import skipping

        return skipping(position, block, rows)

    def seek(self, position: dict[str, Any]) -> None:
        """Resume from a position, as if all before it had been read.

        Parameters
        ----------
        position : dict
            The return value of `position`, perhaps in an earlier process.

        Raises
        ------
        ValueError
            If the source cannot be read again, or if the position was taken in something else. Nothing has changed then.
        """
        raise ValueError(
            f"{type(self).__name__} cannot be replayed: the samples that were sent are gone; continue without seek"
        )

    def finish(self, seconds: float) -> bool:
        """Ask for no new samples, because the run stops. Samples that were sent before can still be read.

        Parameters
        ----------
        seconds : float
            For how long `read` gives such samples, at most. Then it returns None.

        Returns
        -------
        bool
            Whether there can be such samples. A source that can be replayed has none: nothing in it is lost.
        """
        return False

    def counters(self) -> dict[str, int]:
        """The counts since the beginning: `malformed`, and others that a kind of source has."""
        return self._teller.counters()

    def complaint(self) -> str | None:
        """The fault of the first input that could not be used, or None.

        Only this process's reading counts. A quotation has about 100 characters at most.
        """
        return None if self._teller is None else self._teller.complaint()

    def remark(self) -> str:
        """A remark for the user about how the source is read, or ""."""
        return "" if self._teller is None else self._teller.remark()

    def progress(self) -> float | None:
        """The share that has been read, from 0 to 1, or None if nobody knows the whole."""
        return None

    @abstractmethod
    def close(self) -> None:
        """End the source, from any thread. `read` returns None soon after."""

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
