"""Signals derived from the columns of a stream: velocities, low-passes, envelopes and lags."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from trueonline.core.compiling.kernels import call, kernel, specialise
from trueonline.inputs import FLOATS, Resumable, floats, positive
from trueonline.streams.signals.expressions import CALENDAR, ENVELOPE, FUNCTIONS, LAG, LOWPASS, VELOCITY, Expression
from trueonline.streams.signals.signal_blocks import BOOLEANS, all_finite, bounded, check_finite

# The share of the time between samples by which a sample may be too young for a lag, because times are rounded.
ROUNDING_SHARE = 0.01
ROOM_FACTOR, SPARE_SAMPLES = 1.25, 8  # a lag has room for this factor, and this many, more samples than the rate says
MAX_ROOM = 2**22  # samples that a lag may have to remember

SMOOTH = (LOWPASS, ENVELOPE)
KIND, SOURCE, GAIN, PLACE, ROOM = range(5)  # columns of a program, which has one row for each step
FIRST, LENGTH, FORGOTTEN = range(3)  # columns of the marks, which have one row for each ring
TIME = 0  # the place of the previous sample's time in the memory; NaN if there is none


# --- In kernels -----------------------------------------------------------------------------------


@kernel
def rising(times, starts, before):
    """Whether every time is finite, and later than the previous time unless it is a start."""
    wrong = False
    for k in range(times.size):
        wrong |= (not math.isfinite(times[k])) | ((times[k] <= before) & (not starts[k]))
        before = times[k]
    return not wrong


@kernel
def fits(before, columns, times, values, starts):
    """Whether a block has the right shape, rising times and finite values."""
    if values.shape[0] != times.size or values.shape[1] != columns or starts.size != times.size:
        return False
    in_order, finite = rising(times, starts, before), all_finite(values)
    return in_order and finite


@kernel
def lagged(memory, place, room, mark, start, edge, t, x):
    """Put a sample into its ring. Return the value of the newest earlier sample that is not after the edge."""
    first, length = mark[FIRST], mark[LENGTH]
    if start:
        first = length = 0
    while length > 1:
        second = first + 1 if first + 1 < room else 0
        if memory[place + 2 * second] > edge:
            break
        first = second
        length -= 1
    if length == room:
        first = first + 1 if first + 1 < room else 0
        length -= 1
        mark[FORGOTTEN] += 1
    here = first + length if first + length < room else first + length - room
    memory[place + 2 * here] = t
    memory[place + 2 * here + 1] = x
    mark[FIRST], mark[LENGTH] = first, length + 1
    return memory[place + 2 * first + 1]


def derive(program, seconds, wanted, memory, marks, row, gains, times, values, starts, out):
    """Write the signals of a block. Return False, with nothing changed, if the block does not fit.

    `row` holds the columns of one sample, then the result of each step of the program.
    """
    columns = row.size - program.shape[0]
    if not fits(memory[TIME], columns, times, values, starts):
        return False
    for k in range(times.size):
        t, dt = times[k], times[k] - memory[TIME]
        start = starts[k] or np.isnan(dt)
        memory[TIME] = t
        for g in range(gains.size):
            gains[g] = -math.expm1(-dt / seconds[g])
        for j in range(columns):
            row[j] = bounded(values[k, j])
        rings = 0
        for i in range(program.shape[0]):
            step = program[i]
            kind, x, place = step[KIND], row[step[SOURCE]], step[PLACE]
            if kind == VELOCITY:
                y = 0.0 if start else (x - memory[place]) / dt
                memory[place] = x
            elif kind == LAG:
                y = lagged(memory, place, step[ROOM], marks[rings], start, t - seconds[step[GAIN]], t, x)
                rings += 1
            else:
                x = abs(x) if kind == ENVELOPE else x
                y = x if start else memory[place] + gains[step[GAIN]] * (x - memory[place])
                memory[place] = y
            row[columns + i] = bounded(y)
        for j in range(wanted.size):
            out[k, j] = row[wanted[j]]
    return True


def select(columns, wanted, memory, times, values, starts, out):
    """The same if nothing has to be derived: most streams need no more, and this is compiled in a quarter of the time."""
    if not fits(memory[TIME], columns, times, values, starts):
        return False
    for k in range(times.size):
        memory[TIME] = times[k]
        for j in range(wanted.size):
            out[k, j] = bounded(values[k, wanted[j]])
    return True


_DERIVE, _SELECT = specialise(derive, "signals"), specialise(select, "signals")


# --- In Python ------------------------------------------------------------------------------------


class Signals(Resumable):
    """Derives signals from the columns of a stream, block by block. The module `signals` defines the functions.

    **Names.** A text that begins with the name of a function and `(`, with no space between, and ends in `)` is a call. Every
    other text is a column: `force (N)`, `velocity (m/s)`. So a column called `velocity(m/s)` cannot be used until it is
    renamed. In a call, spaces around a name are stripped, commas within a name must be in parentheses or the name in double
    quotes, and parentheses should come in pairs. A signal can be requested only once, even with different spellings.

    **Starts.** The first sample, and a sample marked as a start, has no previous sample. Times must rise from every sample to
    the next unless the next one is a start.

    **Lags** remember samples in a ring with room for 1.25·s·rate + 8 samples, so they need `rate`. If samples come faster,
    the ring is full before its oldest sample is s seconds old. The lag is then shorter than requested, and `forgotten` counts
    the samples that were dropped too early. A sample that is too young by at most 0.01 / rate counts as old enough. Otherwise
    rounded times would make a lag of four regular samples sometimes four and sometimes five samples long.

    The division of samples into blocks makes no difference, bit for bit.

    Parameters
    ----------
    expressions : sequence of str
        The signals.
    rate : float, optional
        The samples per second. Lags need it.

    Attributes
    ----------
    columns : tuple of str
        The columns that the source must deliver, each once, in the order of their first use.
    names : tuple of str
        The signals in the order of `expressions`, in one spelling.

    Raises
    ------
    ValueError
        If an expression is not understood, two expressions are the same, or a lag has no rate or is too long.

    Examples
    --------
    >>> signals = Signals(["force", "velocity(angle)", "lag(angle, 500ms)"], rate=2.0)
    >>> signals.columns, signals.names
    (('force', 'angle'), ('force', 'velocity(angle)', 'lag(angle, 0.5)'))
    >>> times, values = np.array([0.0, 0.5, 1.0]), np.array([[1.0, 3.0], [1.0, 4.0], [2.0, 4.0]])
    >>> signals.derive(times, values, np.array([True, False, False]))
    array([[1., 0., 3.],
           [1., 2., 3.],
           [2., 0., 4.]])
    """

    def __init__(self, expressions: Sequence[str], rate: float | None = None) -> None:
        if isinstance(expressions, str) or not isinstance(expressions, Sequence) or not expressions:
            raise ValueError(
                f"expressions must be a list of at least one signal, got {expressions!r}; signals.split makes a list of a text"
            )
        per_second = None if rate is None else positive("rate", rate)
        parsed = [Expression.of(text) for text in expressions]
        calendar = [FUNCTIONS[name] for name in CALENDAR]
        used = list(dict.fromkeys(each.column for each in parsed))
        self.columns = tuple(each for each in used if each not in calendar)
        self._calendar = tuple(each for each in used if each in calendar)
        self.names = tuple(map(str, parsed))
        program, seconds, wanted = _compiled(parsed, (*self.columns, *self._calendar), per_second)
        self._rooms = program[program[:, KIND] == LAG, ROOM]
        self._memory = np.zeros(1 + len(program) - len(self._rooms) + 2 * self._rooms.sum())
        self._memory[TIME] = math.nan
        self._marks = np.zeros((len(self._rooms), 3), np.int64)
        self._state = {"names": np.array(self.names), "memory": self._memory, "marks": self._marks}
        row, gains = np.zeros(len(used) + len(program)), np.zeros(len(seconds) - len(self._rooms))
        self._kernel = _DERIVE if len(program) else _SELECT
        every = (program, seconds, wanted, self._memory, self._marks, row, gains)
        self._arrays: tuple[Any, ...] = every if len(program) else (len(used), wanted, self._memory)
        self._quick = partial(self._kernel, *self._arrays)

    @property
    def forgotten(self) -> int:
        """The number of samples that lags dropped too early, because samples came faster than `rate` says."""
        return int(self._marks[:, FORGOTTEN].sum())

    def derive(self, times: Any, values: Any, starts: Any, offset: float = 0.0) -> np.ndarray:
        """Derive the signals of a block of samples.

        Parameters
        ----------
        times : array of shape (samples,)
            Seconds, rising except at starts.
        values : array of shape (samples, columns)
            Finite numbers.
        starts : array of shape (samples,)
            Booleans that mark the samples without a previous one.
        offset : float
            The seconds by which the wall clock of hours and weekdays is ahead of the times.

        Returns
        -------
        array of shape (samples, names)
            The signals.

        Raises
        ------
        ValueError
            If the block does not fit. Nothing has changed then.
        """
        arrays = type(times) is type(values) is type(starts) is np.ndarray
        if arrays and times.dtype is values.dtype is FLOATS and starts.dtype is BOOLEANS and not self._calendar:
            out = np.empty((times.size, len(self.names)))
            try:
                if self._quick(times, values, starts, out):
                    return out
            except TypeError:
                pass  # not compiled yet, or another layout. Nothing has changed, and the checks below find out
        times, values, starts = self._checked(times, values, starts)
        if self._calendar:
            values = np.column_stack([values, *(_calendar(name, times + offset) for name in self._calendar)])
        out = np.empty((len(times), len(self.names)))
        call(self._kernel, *self._arrays, times, values, starts, out)
        return out

    def _checked(self, times: Any, values: Any, starts: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        times, values, starts = floats("times", times), floats("values", values), np.asarray(starts)
        if times.ndim != 1 or values.shape != (len(times), len(self.columns)):
            raise ValueError(
                f"a block must have k times and k rows of {len(self.columns)} values, one for each of "
                f"{', '.join(self.columns)}, got shapes {times.shape} and {values.shape}"
            )
        if starts.dtype != BOOLEANS or starts.shape != times.shape:
            raise ValueError(f"starts must be {len(times)} booleans, got {starts.dtype} of shape {starts.shape}")
        check_finite("times", times)
        check_finite("values", values)
        before = np.append(self._memory[TIME], times[:-1])[: len(times)]
        wrong = np.flatnonzero((times <= before) & ~starts)
        if wrong.size:
            k = int(wrong[0])
            raise ValueError(
                f"times must rise, got {times[k]} after {before[k]} at position {k}; mark the first sample of a new stream "
                "in starts"
            )
        return times, values, np.require(starts, np.bool_, ("C", "A", "W"))

    def _possible(self, saved: Mapping[str, np.ndarray]) -> dict[str, Any]:
        memory, (first, length, forgotten) = saved["memory"], saved["marks"].T
        return {
            "marks": (first >= 0) & (first < self._rooms) & (length >= 0) & (length <= self._rooms) & (forgotten >= 0),
            "memory": np.isfinite(memory[TIME + 1 :]).all() and not np.isinf(memory[TIME]),
        }


def _calendar(name: str, wall: np.ndarray) -> np.ndarray:
    """The hour or the weekday at times of a wall clock, in seconds since 1970 began, on a Thursday."""
    days = np.floor(wall / 86400.0)
    if name == "weekday(time)":
        return (days + 3.0) % 7.0
    return np.clip((wall - 86400.0 * days) / 3600.0, 0.0, np.nextafter(24.0, 0.0))


def _compiled(
    expressions: Sequence[Expression], columns: Sequence[str], rate: float | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The steps that compute all signals, their seconds (those with a gain first), and the place of each signal in the row.

    A part that several signals have in common is computed once.
    """
    seconds = sorted({s for each in expressions for kind, s in each.steps() if kind in SMOOTH})
    nodes: dict[Any, int] = {column: i for i, column in enumerate(columns)}  # the place of each result in the row
    program: list[list[int]] = []
    wanted: dict[int, Expression] = {}
    place = TIME + 1
    for each in expressions:
        node = nodes[each.column]
        for kind, s in each.steps():
            source, key = node, (node, kind, s)
            node = nodes.setdefault(key, len(nodes))
            if node < len(columns) + len(program):
                continue
            room = 0
            if kind == LAG:
                room, age = _ring(s, rate, each)
                seconds.append(age)
            program.append([kind, source, seconds.index(s) if kind in SMOOTH else len(seconds) - 1, place, room])
            place += 2 * room if kind == LAG else 1
        if node in wanted:
            raise ValueError(
                f"each signal must be given once, got {str(wanted[node])!r} and {str(each)!r}, which are the same"
            )
        wanted[node] = each
    return np.array(program, np.int64).reshape(-1, 5), np.array(seconds), np.array(list(wanted), np.int64)


def _ring(seconds: float, rate: float | None, expression: Expression) -> tuple[int, float]:
    """How many samples a lag must remember, and how old a sample must be."""
    if rate is None:
        raise ValueError(
            f"{expression} needs the rate, in samples per second, to know how many samples to remember: give rate="
        )
    samples = ROOM_FACTOR * seconds * rate + SPARE_SAMPLES
    if samples > MAX_ROOM:
        raise ValueError(
            f"{expression} would have to remember {samples:,.0f} samples at {rate:g} per second, but can remember at most "
            f"{MAX_ROOM:,}; give a shorter lag"
        )
    return math.ceil(samples), max(seconds - ROUNDING_SHARE / rate, 0.0)
