"""What is made of the columns of a stream before features are: signals derived from them, and each signal's place in [0, 1].

With Δt the seconds since the sample before, a signal is a column's name or

| `velocity(x)`    | (x_t − x_{t−1}) / Δt, and 0 at a start                                                            |
| `velocity(x, τ)` | `lowpass(velocity(x), τ)`                                                                         |
| `lowpass(x, τ)`  | y ← y + (1 − e^{−Δt/τ})·(x − y), and y = x at a start                                             |
| `envelope(x, τ)` | the low-pass of the absolute value of x; without τ, of 0.2 seconds                                |
| `lag(x, s)`      | x of s seconds ago: of the newest sample before this one that is at least that old; until there   |
|                  | is one, of the oldest since the start                                                             |

where x may be such a signal in its turn: `envelope(velocity(x), 0.5)`. Times are in seconds: 0.2, 0.2s or 200ms. Numbers
beyond ±1e100 are moved there, those of columns and all that is made of them, so that nothing ever overflows.
"""

# Kernels are typed by Numba.
# mypy: allow-untyped-defs, allow-incomplete-defs

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from trueonline.core.kernels import call, kernel, specialise
from trueonline.inputs import FLOATS, number, positive
from trueonline.nexting.sources.sample import named

BIG = 1e100
ROUNDING = 0.01  # of the time between samples: by as much a sample may be too young for a lag, since times are rounded
SLACK, SPARE = 1.25, 8  # room for as many samples more than the rate says
MAX_ROOM = 2**22  # samples that a lag may have to remember

VELOCITY, LOWPASS, ENVELOPE, LAG = range(4)
SMOOTH = (LOWPASS, ENVELOPE)
KIND, SOURCE, GAIN, PLACE, ROOM = range(5)  # of a step in a program
FIRST, LENGTH, FORGOTTEN = range(3)  # of a ring
TIME = 0  # where the memory has the time of the sample before; NaN: there was none

FUNCTIONS: dict[str, str] = {
    "velocity": "velocity(x) or velocity(x, τ)",
    "lowpass": "lowpass(x, τ)",
    "envelope": "envelope(x) or envelope(x, τ)",
    "lag": "lag(x, s)",
}
ENVELOPE_SECONDS = 0.2
BOOLEANS = np.dtype(np.bool_)

_CALL = re.compile(rf"({'|'.join(FUNCTIONS)})\((.*)\)", re.DOTALL)
_SECONDS = re.compile(r"([0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?)\s*(s|ms)?", re.ASCII)


# --- In kernels -----------------------------------------------------------------------------------


@kernel
def bound(x):
    return min(max(x, -BIG), BIG)


@kernel
def finite(values):
    wrong = 0
    for k in range(values.shape[0]):
        for j in range(values.shape[1]):
            wrong += not np.isfinite(values[k, j])
    return wrong == 0


@kernel
def rising(times, starts, before):
    """Whether every time is finite, and after the one before it unless it is a start."""
    wrong = 0
    for k in range(times.size):
        wrong += not np.isfinite(times[k]) or (times[k] <= before and not starts[k])
        before = times[k]
    return wrong == 0


@kernel
def lagged(memory, place, room, mark, start, edge, t, x):
    """Put a sample into its ring; return the value of the newest one before it that is not after the edge."""
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
    """Write the signals of a block; return whether it was fit for it. If not, nothing has changed.

    `row` holds the columns of one sample, then what each step of the program makes of what was in it before.
    """
    columns = row.size - program.shape[0]
    if values.shape != (times.size, columns) or starts.size != times.size:
        return False
    if not (rising(times, starts, memory[TIME]) and finite(values)):
        return False
    for k in range(times.size):
        t, dt = times[k], times[k] - memory[TIME]
        start = starts[k] or np.isnan(dt)
        memory[TIME] = t
        for g in range(gains.size):
            gains[g] = -math.expm1(-dt / seconds[g])
        for j in range(columns):
            row[j] = bound(values[k, j])
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
            row[columns + i] = bound(y)
        for j in range(wanted.size):
            out[k, j] = row[wanted[j]]
    return True


def scale(fixed, low, high, clipped, widened, values, out):
    """Write the place of each value in the bounds of its signal; return whether it could. If not, nothing has changed."""
    if values.shape[1] != low.size or not finite(values):
        return False
    for k in range(values.shape[0]):
        for j in range(low.size):
            x = bound(values[k, j])
            if np.isnan(low[j]):
                low[j] = high[j] = x
            elif not fixed[j] and x > high[j]:
                high[j] = min(x, further(high[j], high[j] - low[j], np.inf))
                widened[j] += 1
            elif not fixed[j] and x < low[j]:
                low[j] = max(x, further(low[j], low[j] - high[j], -np.inf))
                widened[j] += 1
            clipped[j] += x < low[j] or x > high[j]
            width = high[j] - low[j]
            out[k, j] = (min(max(x, low[j]), high[j]) - low[j]) / width if width > 0.0 else 0.5
    return True


@kernel
def further(edge, distance, end):
    """How far a bound may be moved: anywhere while there is no range, and always to the next number, lest it be stuck."""
    if distance == 0.0 or edge + distance == edge:
        return end if distance == 0.0 else np.nextafter(edge, end)
    return edge + distance


_DERIVE = specialise(derive, "signals")
_SCALE = specialise(scale, "signals")


# --- Expressions ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expression:
    """A column, and the functions that are called on it, the innermost first, each with its seconds (None: without)."""

    column: str
    calls: tuple[tuple[str, float | None], ...] = ()

    @classmethod
    def of(cls, text: str) -> Expression:
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"a signal must be the name of a column or a function of one, got {text!r}")
        calls, inner = [], text
        while found := _CALL.fullmatch(inner.strip()):
            function, (inner, *more) = found[1], split(found[2])
            calls.append((function, _argument(function, more, text)))
            if not inner:
                raise ValueError(f"{function} needs a signal, got {text!r}; known is {FUNCTIONS[function]}")
        return cls(inner, tuple(reversed(calls)))

    def __str__(self) -> str:
        name = self.column
        for function, seconds in self.calls:
            name = f"{function}({name})" if seconds is None else f"{function}({name}, {_shown(seconds)})"
        return name

    def steps(self) -> list[tuple[int, float]]:
        """What to do with the column, in order."""
        found = []
        for function, seconds in self.calls:
            if function == "velocity":
                found.append((VELOCITY, 0.0))
            if seconds is not None:
                found.append(({"envelope": ENVELOPE, "lag": LAG}.get(function, LOWPASS), seconds))
        return found


def _argument(function: str, given: list[str], text: str) -> float | None:
    """The seconds that a function is called with."""
    if len(given) > 1:
        raise ValueError(f"{function} takes a signal and a time, got {text!r}; known is {FUNCTIONS[function]}")
    if not given:
        if function in ("lowpass", "lag"):
            raise ValueError(f"{function} needs a time, got {text!r}; give it as {FUNCTIONS[function]}, such as 0.2s")
        return ENVELOPE_SECONDS if function == "envelope" else None
    try:
        return seconds(given[0])
    except ValueError as error:
        raise ValueError(f"the time of {function}: {error}, in {text!r}; known is {FUNCTIONS[function]}") from None


def seconds(text: str) -> float:
    """A time as people write it, in seconds.

    >>> seconds("0.2"), seconds("2s"), seconds("500ms")
    (0.2, 2.0, 0.5)
    """
    found = _SECONDS.fullmatch(text)
    try:
        value = float(found[1]) / (1e3 if found[2] == "ms" else 1.0) if found else math.nan
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise ValueError(f"a time must be seconds > 0, such as 0.2, 0.2s or 200ms, got {text!r}")
    return value


def _shown(seconds: float) -> str:
    return repr(seconds).removesuffix(".0")


def spelling(text: str) -> str:
    """The one spelling that an expression has in `Signals.names`.

    >>> spelling("envelope( velocity(force (N),100ms) )")
    'envelope(velocity(force (N), 0.1), 0.2)'
    """
    return str(Expression.of(text))


def split(text: str) -> list[str]:
    """The expressions in a list with commas between them. Commas within parentheses do not count.

    >>> split("a, force (N), velocity(x, 0.1)")
    ['a', 'force (N)', 'velocity(x, 0.1)']
    """
    depth = [0] * (len(text) + 1)
    opened = []
    for i, each in enumerate(text):
        if each == "(":
            opened.append(i)
        elif each == ")" and opened:  # one without a partner is part of a name
            depth[opened.pop()] += 1
            depth[i] -= 1
    parts, begin, level = [], 0, 0
    for i, each in enumerate(text):
        level += depth[i]
        if each == "," and level == 0:
            parts.append(text[begin:i].strip())
            begin = i + 1
    return [*parts, text[begin:].strip()]


# --- Seen from Python -----------------------------------------------------------------------------


class Signals:
    """From the columns of a stream to the signals asked for, block by block.

    `columns` are the columns needed, each once, in the order of their first use: what the source must deliver. `names`
    are the signals in the order given, in one spelling. The module's docstring defines them.

    **Names.** Text that begins with the name of a function and `(`, without a space between, and ends in `)` is a call.
    All else is a column, whatever is in it: `force (N)`, `velocity (m/s)`. So a column called `velocity(m/s)` cannot be
    asked for: rename it. In a call, spaces around a name are stripped, commas within it must be in parentheses, and
    parentheses should come in pairs. A signal can be asked for once, in whatever spelling.

    **Starts.** A sample that starts, and the first one of all, knows of none before it. Time must rise from every sample to
    the next, unless that is a start.

    **Lags** remember samples in a ring with room for 1.25·s·rate + 8 of them, so they need `rate`, the samples per second.
    If samples come faster, the ring is full before its oldest sample is s seconds old: then the oldest in it is used, and
    the lag is shorter than was asked. `forgotten` counts the samples that were dropped too soon. A sample counts as s seconds
    old if it is younger by at most 0.01 / rate: a lag of four regular samples must not be now four and now five of them
    because their times were rounded.

    How samples are split into blocks makes no difference, bit for bit.

    >>> signals = Signals(["force", "velocity(angle)", "lag(angle, 500ms)"], rate=2.0)
    >>> signals.columns, signals.names
    (('force', 'angle'), ('force', 'velocity(angle)', 'lag(angle, 0.5)'))
    >>> times, values = np.array([0.0, 0.5, 1.0]), np.array([[1.0, 3.0], [1.0, 4.0], [2.0, 4.0]])
    >>> signals(times, values, np.array([True, False, False]))
    array([[1., 0., 3.],
           [1., 2., 3.],
           [2., 0., 4.]])
    """

    def __init__(self, expressions: Sequence[str], rate: float | None = None) -> None:
        if isinstance(expressions, str) or not isinstance(expressions, Sequence) or not expressions:
            raise ValueError(f"expressions must be a list of at least one signal, got {expressions!r}; split makes one")
        per_second = None if rate is None else positive("rate", rate)
        asked = [Expression.of(text) for text in expressions]
        self.columns = tuple(dict.fromkeys(each.column for each in asked))
        self.names = tuple(map(str, asked))
        program, seconds, wanted = _compiled(asked, self.columns, per_second)
        self._rooms = program[program[:, KIND] == LAG, ROOM]
        self._memory = np.zeros(1 + len(program) - len(self._rooms) + 2 * self._rooms.sum())
        self._memory[TIME] = math.nan
        self._marks = np.zeros((len(self._rooms), 3), np.int64)
        row, gains = np.zeros(len(self.columns) + len(program)), np.zeros(len(seconds) - len(self._rooms))
        self._blank = np.zeros((1, len(wanted)))
        self._given = (program, seconds, wanted, self._memory, self._marks, row, gains)
        self._quick = partial(_DERIVE, *self._given)

    @property
    def forgotten(self) -> int:
        """How many samples the lags have dropped too soon, because they came faster than `rate` says."""
        return int(self._marks[:, FORGOTTEN].sum())

    def __call__(self, times: Any, values: Any, starts: Any) -> np.ndarray:
        """The signals of a block of samples: a row for each, with one number for each name."""
        if type(times) is type(values) is type(starts) is np.ndarray and (
            times.dtype is FLOATS and values.dtype is FLOATS and starts.dtype is BOOLEANS
        ):
            out = _rows(self._blank, times)
            try:
                if self._quick(times, values, starts, out):
                    return out
            except TypeError:
                pass  # not compiled yet, or of another layout; nothing has changed, and the long way finds out
        times, values, starts = self._checked(times, values, starts)
        out = _rows(self._blank, times)
        call(_DERIVE, *self._given, times, values, starts, out)
        return out

    def _checked(self, times: Any, values: Any, starts: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        times, values, starts = _floats("times", times), _floats("values", values), np.asarray(starts)
        if times.ndim != 1 or values.shape != (len(times), len(self.columns)):
            raise ValueError(
                f"a block must have k times and k rows of {len(self.columns)} values, one for each of "
                f"{', '.join(self.columns)}, got shapes {times.shape} and {values.shape}"
            )
        if starts.dtype != BOOLEANS or starts.shape != times.shape:
            raise ValueError(f"starts must be {len(times)} booleans, got {starts.dtype} of shape {starts.shape}")
        _refuse_not_finite("times", times)
        _refuse_not_finite("values", values)
        before = np.append(self._memory[TIME], times[:-1])[: len(times)]
        wrong = np.flatnonzero((times <= before) & ~starts)
        if wrong.size:
            k = int(wrong[0])
            raise ValueError(
                f"times must rise, got {times[k]} after {before[k]} at position {k}; mark a sample that begins anew in starts"
            )
        return times, values, np.require(starts, np.bool_, ("C", "A", "W"))

    def state(self) -> dict[str, np.ndarray]:
        """What `restore` needs to go on exactly."""
        return {"names": np.array(self.names), "memory": self._memory.copy(), "marks": self._marks.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state, of the same names and the same rate."""
        memory, marks = _fitting(state, self.names, memory=self._memory, marks=self._marks)
        first, length, forgotten = marks.T
        fit = (first >= 0) & (first < self._rooms) & (length >= 0) & (length <= self._rooms) & (forgotten >= 0)
        if not (fit.all() and np.isfinite(memory[TIME + 1 :]).all() and not np.isinf(memory[TIME])):
            raise ValueError("the state of the signals is damaged: some of its numbers cannot be")
        self._memory[:], self._marks[:] = memory, marks


class Bounds:
    """From signals to [0, 1], by bounds that are given or that follow what is seen, block by block.

    - **Given** bounds, low < high: u = (x − low) / (high − low). A value outside is moved to the bound and counted.
    - **Running** bounds, for all others. The first value sets both, and u = 0.5 while they are the same. A value outside
      moves that bound towards it, by at most the width of the range so far (any distance while that is 0, and always to the
      next number at least), and the range never narrows. If it is still outside it is moved to the bound and counted. So one
      spike at most doubles the range, and a change of level by c widths is covered after log₂(1 + c) samples.

    Bounds move first, then the value is scaled. `low` and `high` are the bounds (NaN before the first value), `clipped`
    counts the values that were moved for each signal, and `widened` how often a bound was. Numbers beyond ±1e100 are taken
    as ±1e100. How samples are split into blocks makes no difference.

    >>> bounds = Bounds(["force", "angle"], {"force": (0.0, 10.0)})
    >>> bounds(np.array([[5.0, 1.0], [20.0, 2.0], [0.0, 9.0]]))
    array([[0.5, 0.5],
           [1. , 1. ],
           [0. , 1. ]])
    >>> bounds.low, bounds.high, bounds.clipped, bounds.widened
    (array([0., 1.]), array([10.,  3.]), array([1, 1]), array([0, 2]))
    """

    def __init__(self, names: Sequence[str], given: Mapping[str, tuple[float, float]] | None = None) -> None:
        self.names = named(names)
        size = len(self.names)
        self._low, self._high = np.full(size, math.nan), np.full(size, math.nan)
        self._fixed = np.zeros(size, np.bool_)
        for name, pair in (given or {}).items():
            if name not in self.names:
                raise ValueError(f"there is no signal {name!r} to give bounds for; there are {', '.join(self.names)}")
            if not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
                raise ValueError(f"the bounds of {name} must be a pair (low, high), got {pair!r}")
            low, high = (
                number(f"{end} of {name}", value, "a number within ±1e100", lambda v: -BIG <= v <= BIG)
                for end, value in zip(("low", "high"), pair, strict=True)
            )
            if not low < high:
                raise ValueError(f"low must be below high, got low = {low} and high = {high} for {name}")
            i = self.names.index(name)
            self._low[i], self._high[i], self._fixed[i] = low, high, True
        self._clipped, self._widened = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self._blank = np.zeros((1, size))
        self._given = (self._fixed, self._low, self._high, self._clipped, self._widened)
        self._quick = partial(_SCALE, *self._given)

    @property
    def low(self) -> np.ndarray:
        return self._low.copy()

    @property
    def high(self) -> np.ndarray:
        return self._high.copy()

    @property
    def clipped(self) -> np.ndarray:
        """How many values of each signal lay outside its bounds."""
        return self._clipped.copy()

    @property
    def widened(self) -> np.ndarray:
        """How often a bound of each signal moved."""
        return self._widened.copy()

    def __call__(self, values: Any) -> np.ndarray:
        """The place of each value in the bounds of its signal, in [0, 1]: a row for each sample."""
        if type(values) is np.ndarray and values.dtype is FLOATS and values.ndim == 2:
            out = _rows(self._blank, values)
            try:
                if self._quick(values, out):
                    return out
            except TypeError:
                pass  # not compiled yet, or of another layout; nothing has changed, and the long way finds out
        values = _floats("values", values)
        if values.ndim != 2 or values.shape[1] != len(self.names):
            raise ValueError(
                f"values must have rows of {len(self.names)}, one for each of {', '.join(self.names)}, "
                f"got shape {values.shape}"
            )
        _refuse_not_finite("values", values)
        out = _rows(self._blank, values)
        call(_SCALE, *self._given, values, out)
        return out

    def state(self) -> dict[str, np.ndarray]:
        """What `restore` needs to go on exactly."""
        arrays = {"fixed": self._fixed, "low": self._low, "high": self._high}
        arrays |= {"clipped": self._clipped, "widened": self._widened}
        return {"names": np.array(self.names), **{name: array.copy() for name, array in arrays.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state, of the same names and the same given bounds."""
        own = {"fixed": self._fixed, "low": self._low, "high": self._high}
        own |= {"clipped": self._clipped, "widened": self._widened}
        fixed, low, high, clipped, widened = _fitting(state, self.names, **own)
        for i, name in enumerate(self.names):
            there, here = (fixed[i], low[i], high[i]), (self._fixed[i], self._low[i], self._high[i])
            if (fixed[i] or self._fixed[i]) and there != here:
                raise ValueError(f"the state has other bounds for {name}: give the same ones as before")
        fit = ((low <= high) & (low >= -BIG) & (high <= BIG)) | (np.isnan(low) & np.isnan(high))
        if not (fit.all() and (clipped >= 0).all() and (widened >= 0).all()):
            raise ValueError("the state of the bounds is damaged: some of its numbers cannot be")
        self._low[:], self._high[:], self._clipped[:], self._widened[:] = low, high, clipped, widened


def _compiled(
    asked: Sequence[Expression], columns: Sequence[str], rate: float | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The steps that make all signals, their seconds (those with a gain first), and where in the row each signal is.

    What signals have in common is computed once.
    """
    seconds = sorted({s for each in asked for kind, s in each.steps() if kind in SMOOTH})
    nodes: dict[Any, int] = {column: i for i, column in enumerate(columns)}  # where in the row each thing is
    program: list[list[int]] = []
    wanted: dict[int, Expression] = {}
    place = TIME + 1
    for each in asked:
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
                f"each signal must be asked for once, got {str(wanted[node])!r} and {str(each)!r}, which is the same"
            )
        wanted[node] = each
    return np.array(program, np.int64).reshape(-1, 5), np.array(seconds), np.array(list(wanted), np.int64)


def _ring(seconds: float, rate: float | None, asked: Expression) -> tuple[int, float]:
    """How many samples a lag must remember, and how old they must be."""
    if rate is None:
        raise ValueError(
            f"{asked} needs the rate, the samples per second, to know how many of them to remember: give rate="
        )
    samples = SLACK * seconds * rate + SPARE
    if samples > MAX_ROOM:
        raise ValueError(
            f"{asked} would have to remember {samples:,.0f} samples at a rate of {rate:g} per second, but at most "
            f"{MAX_ROOM:,} can be; give a shorter lag"
        )
    return math.ceil(samples), max(seconds - ROUNDING / rate, 0.0)


def _rows(blank: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Room for a row for each one of another array. (For one, a copy is quicker than np.empty.)"""
    rows = like.shape[0] if like.ndim else 0
    return blank.copy() if rows == 1 else np.empty((rows, blank.shape[1]))


def _floats(name: str, values: Any) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of numbers, got {values!r:.80} ({error})") from None
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be numbers, got dtype {array.dtype}: {values!r:.80}")
    return np.require(array, np.float64, ("C", "A", "W"))


def _refuse_not_finite(name: str, array: np.ndarray) -> None:
    wrong = np.argwhere(~np.isfinite(array))
    if wrong.size:
        where = tuple(wrong[0].tolist())
        raise ValueError(f"{name} must be finite, got {array[where]} at position {', '.join(map(str, where))}")


def _fitting(state: Mapping[str, Any], names: Sequence[str], **own: np.ndarray) -> list[np.ndarray]:
    """The arrays of a state, or a ValueError unless they are such as one's own."""
    try:
        there, found = np.asarray(state["names"]).tolist(), [state[name] for name in own]
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"this is not a state: {error!r} in {state!r:.80}") from None
    if there != np.array(names).tolist():
        raise ValueError(f"the state is of {there!r:.200}, not of the signals {', '.join(names)}")
    for (name, mine), theirs in zip(own.items(), found, strict=True):
        if not isinstance(theirs, np.ndarray) or theirs.dtype != mine.dtype or theirs.shape != mine.shape:
            got = f"{theirs.dtype} of shape {theirs.shape}" if isinstance(theirs, np.ndarray) else f"{theirs!r:.80}"
            raise ValueError(f"the state does not fit: {name} must be {mine.dtype} of shape {mine.shape}, got {got}")
    return found
