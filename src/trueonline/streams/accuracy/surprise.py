"""How unusual each sample is, and why: the probability that an hour of the usual stream has a sample as odd.

A fault shows in the value itself or in what it does to forecasts, and nobody knows in which. So each sample is seen from several
sides, whatever question was asked. Four *views* are differences from what could be expected:

    level    x_t minus the mean so far
    hour     x_t minus the usual value at this time of the day: the mean of this hour on earlier days, about the last ten
    next     x_t minus the forecast of the next value, or minus x_{t−1} if there is no forecast
    run      the mean size of these errors over about 32 samples

Three other *figures* see what no two views see:

    flat     for how many samples the value has been exactly the same
    gap      the seconds since the sample before
    drift    x_t minus the mean until about a day ago, compared with the days until then

**How often is a figure as large as now?** Each is divided by its usual size s, a running mean, so z = |figure| / s has no unit. A
histogram of ln z, which forgets over 1,000 samples, gives the share p of earlier samples that reach it. For the level, all of the
past counts. Beyond the largest 2 % the tail is a Pareto distribution, ln p = ln p₀ − (ln z − ln z₀)/ξ. Its ξ is the mean excess in
the histogram, drawn towards a prior of 0.2 as if by 15 samples more (the Hill estimator). So p is sensible beyond everything seen.
A rank among n samples alone could not say less than 1/n. Lengths of flat lines and gaps vary more, and have a prior of 0.7.

The first samples have no histogram worth its name. A tail with the prior's ξ stands in: p = (1 + ξz/(1 − ξ))^(−1/ξ), of a Pareto
distribution with mean 1. After n samples its power is at most n, as that of Student's t, because s is not known well either. It has
the weight w² beside 1 − w for the histogram, with w = 15 / (15 + n).

**What is looked at seldom.** A flat line is looked at when its length has doubled, because every further sample says nearly the
same. A drift is looked at when it is a quarter larger than before on this day, and when the forecast of the next value was right.
What falls slowly enough is not odd beside what came just before. So a day (at most 4,096 samples) becomes part of its past only
when it is over. Samples of a day are alike, so n is the number of days here, and the prior's p is that of a day.

**One probability.** Single views are often odd with no fault. So the two oddest of k views are taken together. For any two
probabilities p and q, e·√(pq) is a probability again, however they depend on each other (Vovk and Wang 2020). This is their sum, on
the scale of logarithms. It counts k/2 times, because any of the views may be odd. (All pairs would count k(k − 1)/2 times, but
views are alike, and tests on noise of several kinds find that this is enough.) It and the probabilities of the other figures are
four tests, and with J signals there are 4J. The least p counts 4J times (Bonferroni). A stream has n samples an hour. If these were
independent, exp(−n·p) would be the probability that none in an hour is as odd. This is the surprise. A stream with less than one
sample an hour has n = 1. So a surprise of 0.99 comes in one of a hundred hours at any pace, or more rarely. Noise with an infinite
variance can surprise more often (Cauchy noise: twice).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from trueonline.core.compiling.kernels import call, kernel, outlined, specialise
from trueonline.core.forms import pointer
from trueonline.inputs import Resumable

LEVEL, HOUR, NEXT, RUN, FLAT, GAP, DRIFT = range(7)
VIEWS, FIGURES = 4, 7
SIZE_RATES = (0.0, 0.01, 0.01, 0.01, 0.01, 0.01)  # of the usual size of a figure; 0: it is the mean of all
FORGET_RATES = (0.0, 0.001, 0.001, 0.001, 0.001, 0.001)  # of the histograms
SHAPES = (0.2, 0.2, 0.2, 0.2, 0.7, 0.7, 0.2)  # ξ of a tail of which nothing is known
PRIOR_SAMPLES = 15.0  # that this is worth
TAIL_SHARE = 0.02  # the share of samples that the tail is fitted to
MAX_SIZES = 20.0  # a figure counts as so many usual sizes at most, so that one wild value hides nothing after it
BINS, BIN_WIDTH = 120, 0.2  # of the histograms, over logarithms from −12 to 12
RUN_SAMPLES = 32.0
HOURS, DAY_RATE = 24, 0.1  # hours of a day, and the rate of their usual values: about ten days
HOUR_SECONDS, DAY_SECONDS, MAX_DAY = 3600.0, 86400.0, 4096.0
FARTHER = 1.25  # by this factor a drift must have grown
SUDDEN = 0.1  # a forecast was wrong if errors as large have a smaller probability
ROUNDING = 1e-12  # of a value: smaller errors are none

# Why a sample is unusual: a figure, or one of these.
NEW_LEVEL, SUDDEN_LEVEL, NOTHING = 7, 8, 9
REASONS = (
    "a drift away from the usual level",
    "unusual at this time of day",
    "a jump",
    "a run of large errors",
    "a flat line",
    "missing samples",
    "a drift away from the usual level",
    "a level never seen",
    "far from the usual level",
    "",
)

# What is known of a figure: its usual size, how often it was seen, the weight of its histogram, and the histogram.
SCALE, SEEN, TOTAL, HISTOGRAM = range(4)
FIGURE_NUMBERS = HISTOGRAM + BINS
# What is known of a signal: the number of its values, their mean, the last, its time, and the range; the present hour with the sum
# and the number of its values; the mean size of errors; for how many samples the value has been the same; the days that are over
# and the mean at their end; of the present day when it began, its samples, its largest drift, and its histogram.
COUNT, MEAN, LAST, TIME, LOW, HIGH, SLOT, SUM, SIZE, ERROR, SAME, DAYS, BEFORE, BEGAN, TODAY, LARGEST, BINS_TODAY = range(
    17
)
SIGNAL_NUMBERS = BINS_TODAY + BINS
USUAL, TIMES = range(2)  # of an hour
PROBABILITY, EXPECTED, USUALLY = range(3)  # what is noted of each figure of a sample


# --- In kernels -----------------------------------------------------------------------------------


@kernel
def in_usual_sizes(size, own):
    """z. After n figures of zero, the first other one is n times as large as usual."""
    if own[SCALE] > 0.0:
        return size / own[SCALE]
    return own[SEEN] if size > 0.0 else 0.0


@kernel
def bin_of(z):
    """The place of a figure in its histogram, in bins."""
    return min(max(math.log(max(z, 1e-300)) / BIN_WIDTH + BINS // 2, 0.0), BINS - 0.5)


@outlined
def probability(z, own, shape, known, each):
    """The probability of a figure at least as large. `known`: n. `each`: samples for which the prior's probability stands."""
    at, total = bin_of(z), own[TOTAL]
    share = above = excess = 0.0
    edge = BINS  # the bin from which on the tail begins
    while edge > 0 and above + own[HISTOGRAM + edge - 1] < TAIL_SHARE * total:
        edge -= 1
        above += own[HISTOGRAM + edge]
        excess += above  # in the end the sum of the bins b, each times b + 1 − edge
    if at <= edge:
        for b in range(int(at), BINS):
            share += own[HISTOGRAM + b]
    else:
        tail = ((excess - 0.5 * above) * BIN_WIDTH + PRIOR_SAMPLES * shape) / (above + PRIOR_SAMPLES)
        share = max(above, 0.5) * math.exp(-(at - edge) * BIN_WIDTH / tail)
    first = (1.0 + shape * z / (1.0 - shape)) ** -min(1.0 / shape, known + 1.0)
    w = PRIOR_SAMPLES / (PRIOR_SAMPLES + known)
    return (1.0 - w) * share / total + w * w * first / each if total > 0.0 else first


@kernel
def remember(k, size, own):
    """Let a figure be part of the past."""
    if own[SEEN] > 0.0:
        for b in range(BINS):
            own[HISTOGRAM + b] *= 1.0 - FORGET_RATES[k]
        own[HISTOGRAM + int(bin_of(in_usual_sizes(size, own)))] += 1.0
        own[TOTAL] = own[TOTAL] * (1.0 - FORGET_RATES[k]) + 1.0
    own[SEEN] += 1.0
    if own[SCALE] > 0.0:
        own[SCALE] += max(SIZE_RATES[k], 1.0 / own[SEEN]) * (min(size, MAX_SIZES * own[SCALE]) - own[SCALE])
    else:
        own[SCALE] = size


@outlined
def view(k, x, expected, figures, first, notes):
    """Weigh the difference from what was expected."""
    size, own, note = abs(x - expected), pointer(figures, first + k * FIGURE_NUMBERS), pointer(notes, 3 * k)
    if size < ROUNDING * abs(x):
        size = 0.0
    note[PROBABILITY] = probability(in_usual_sizes(size, own), own, SHAPES[k], own[TOTAL], 1.0)
    note[EXPECTED], note[USUALLY] = expected, own[SCALE]
    remember(k, size, own)


@kernel
def drift(x, seconds, right, own, past, note):
    """Weigh the distance from the mean until about a day ago. `right`: whether the forecast of the value was."""
    if own[DAYS] > 0.0:
        size = abs(x - own[BEFORE])
        z = in_usual_sizes(size, past)
        if past[TOTAL] > 0.0 and right and size > FARTHER * own[LARGEST]:
            days = own[DAYS] - 1.0  # the first day has no mean before it
            note[PROBABILITY] = probability(z, past, SHAPES[DRIFT], days, past[TOTAL] / days)
            note[EXPECTED], note[USUALLY], own[LARGEST] = own[BEFORE], past[SCALE], size
        own[BINS_TODAY + int(bin_of(z))] += 1.0
    own[TODAY] += 1.0
    if own[TODAY] >= MAX_DAY or seconds - own[BEGAN] >= DAY_SECONDS:
        for b in range(BINS):
            past[HISTOGRAM + b] += own[BINS_TODAY + b]
            past[TOTAL] += own[BINS_TODAY + b]
            own[BINS_TODAY + b] = 0.0
        own[DAYS] += 1.0
        own[BEFORE], own[BEGAN], own[TODAY], own[LARGEST] = own[MEAN], seconds, 0.0, 0.0


@kernel
def end_hour(own, done):
    """The hour is over: its mean becomes part of the usual values. So a fault is not compared with itself."""
    done[TIMES] += 1.0
    done[USUAL] += max(DAY_RATE, 1.0 / done[TIMES]) * (own[SUM] / own[SIZE] - done[USUAL])
    own[SUM], own[SIZE] = 0.0, 0.0


@kernel
def look(j, x, forecast, seconds, begins, own, hours, figures, notes):
    """Weigh all figures of a value of signal j. They become part of the past."""
    first, clock = j * FIGURES * FIGURE_NUMBERS, 2 * HOURS * j
    for k in range(FIGURES):
        notes[3 * k], notes[3 * k + 1], notes[3 * k + 2] = -1.0, own[LAST], 0.0  # −1: nothing can be said
    slot = math.floor(seconds / HOUR_SECONDS) % HOURS
    if own[COUNT] == 0.0:
        own[LOW], own[HIGH], own[SAME], own[BEGAN] = x, x, 1.0, seconds
    else:
        if slot != own[SLOT]:
            end_hour(own, pointer(hours, clock + 2 * int(own[SLOT])))
        now, flat = pointer(hours, clock + 2 * int(slot)), pointer(figures, first + FLAT * FIGURE_NUMBERS)
        view(LEVEL, x, own[MEAN], figures, first, notes)
        if now[TIMES] > 0.0:
            view(HOUR, x, now[USUAL], figures, first, notes)
        if not begins:
            expected = forecast if math.isfinite(forecast) else own[LAST]
            view(NEXT, x, expected, figures, first, notes)
            own[ERROR] += (abs(x - expected) - own[ERROR]) * max(1.0 / RUN_SAMPLES, 1.0 / own[COUNT])
            view(RUN, own[ERROR], 0.0, figures, first, notes)
        if seconds > own[TIME]:
            view(GAP, seconds - own[TIME], 0.0, figures, first, notes)
        if x != own[LAST]:
            remember(FLAT, own[SAME], flat)
            own[SAME] = 0.0
        own[SAME] += 1.0
        if own[SAME] > 1.0 and math.log2(own[SAME]) % 1.0 == 0.0:
            notes[3 * FLAT] = probability(in_usual_sizes(own[SAME], flat), flat, SHAPES[FLAT], flat[TOTAL], 1.0)
        for k in range(RUN, DRIFT):  # they have no expectation of their own
            notes[3 * k + 1], notes[3 * k + 2] = notes[3 * NEXT + 1], notes[3 * NEXT + 2]
        far = pointer(figures, first + DRIFT * FIGURE_NUMBERS)
        far[SCALE] = pointer(figures, first)[SCALE]  # that of the level
        drift(x, seconds, notes[3 * NEXT] >= SUDDEN, own, far, pointer(notes, 3 * DRIFT))
    own[COUNT] += 1.0
    own[MEAN] += (x - own[MEAN]) / own[COUNT]
    own[LAST], own[TIME] = x, seconds
    own[SLOT], own[SUM], own[SIZE] = slot, own[SUM] + x, own[SIZE] + 1.0


@kernel
def oddest(x, own, notes):
    """The probability of a sample by all tests, the figure that is the oddest, and the reason."""
    least = second = best = 2.0
    views, odd = 0, -1
    for k in range(VIEWS):
        p = notes[3 * k]
        if p >= 0.0:
            views += 1
            if p < least:
                least, second, odd = p, least, k
            elif p < second:
                second = p
    if views >= 2:
        best = 0.5 * views * math.e * math.sqrt(least * second)
    for k in range(VIEWS, FIGURES):
        if 0.0 <= notes[3 * k] < best:
            best, odd = notes[3 * k], k
    reason = odd
    if odd in (LEVEL, DRIFT):
        if x < own[LOW] or x > own[HIGH]:
            reason = NEW_LEVEL
        elif notes[3 * NEXT] < SUDDEN:
            reason = SUDDEN_LEVEL
    own[LOW], own[HIGH] = min(own[LOW], x), max(own[HIGH], x)
    return min((1.0 + FIGURES - VIEWS) * best, 1.0), odd, reason


def follow(numbers, hours, figures, notes, values, forecasts, seconds, starts, surprise, suspect, reason, told):
    """Weigh the values of all signals at each sample."""
    signals = values.shape[1]
    for t in range(starts.size):
        smallest = 2.0
        for j in range(signals):
            own = pointer(numbers, SIGNAL_NUMBERS * j)
            look(j, values[t, j], forecasts[t, j], seconds[t], starts[t], own, hours, figures, notes)
            p, odd, why = oddest(values[t, j], own, notes)
            if odd >= 0 and p < smallest:
                smallest, suspect[t], reason[t] = p, j, why
                told[t, 0], told[t, 1] = notes[3 * odd + 1], notes[3 * odd + 2]
        if suspect[t] >= 0:
            gap = pointer(figures, GAP * FIGURE_NUMBERS)[SCALE]
            an_hour = max(HOUR_SECONDS / gap, 1.0) if gap > 0.0 else 1.0
            surprise[t] = math.exp(-an_hour * min(signals * smallest, 1.0))


_FOLLOW = specialise(follow, "surprise")


# --- In Python ------------------------------------------------------------------------------------


class Surprise(Resumable):
    """How unusual each sample of some signals is.

    Parameters
    ----------
    signals : int
        The number of signals.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(1000, 1))
    >>> x[900] = 30.0
    >>> seconds = 3600.0 * np.arange(1000)
    >>> judged = Surprise(1).follow(x, 0 * x, seconds, starts=seconds == 0)
    >>> int(judged["surprise"].argmax()), REASONS[judged["reason"][900]], bool(judged["surprise"][900] > 0.9999)
    (900, 'a jump', True)
    >>> bool(judged["error"][900] == x[900, 0] - judged["expected"][900])
    True
    """

    def __init__(self, signals: int) -> None:
        self._notes = np.zeros(3 * FIGURES)
        self._state: dict[str, np.ndarray] = {
            "numbers": np.zeros((signals, SIGNAL_NUMBERS)),
            "hours": np.zeros((signals, HOURS, 2)),
            "figures": np.zeros((signals, FIGURES, FIGURE_NUMBERS)),
        }

    def follow(
        self, values: np.ndarray, forecasts: np.ndarray | None, seconds: np.ndarray, starts: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Take T samples.

        Parameters
        ----------
        values : array of shape (T, signals)
            Finite numbers. The caller has checked them.
        forecasts : array of shape (T, signals), optional
            What was expected of each value one sample before. NaN or None: nothing was.
        seconds : array of shape (T,)
            The times by the clock on the wall.
        starts : array of bool, of shape (T,)
            True at each sample where something new begins.

        Returns
        -------
        dict from str to array of shape (T,)
            `surprise`, from 0 to 1; `suspect`, the signal that is the most unusual, −1 while nothing can be said; `reason`, a place
            in `REASONS`; `expected`, the value that was expected; `error`, by how much the value differs from it; and `usual`, the
            usual size of this error.
        """
        T = len(starts)
        surprise, suspect, reason = np.zeros(T), np.full(T, -1), np.full(T, NOTHING)
        told = np.full((T, 2), np.nan)
        x = np.require(values, float, "C")
        known = np.full(x.shape, np.nan) if forecasts is None else np.require(forecasts, float, "C")
        call(_FOLLOW, *self._state.values(), self._notes, x, known, seconds, starts, surprise, suspect, reason, told)
        error = np.where(suspect >= 0, x[np.arange(T), suspect], np.nan) - told[:, 0]
        return {
            "surprise": surprise,
            "suspect": suspect,
            "reason": reason,
            "expected": told[:, 0],
            "usual": told[:, 1],
            "error": error,
        }

    def begin_another(self) -> None:
        """Another source begins: the time until its first sample is no gap."""
        self._state["numbers"][:, TIME] = np.inf

    def _possible(self, saved: Mapping[str, np.ndarray]) -> dict[str, Any]:
        numbers, hours, figures = (saved[name] for name in ("numbers", "hours", "figures"))
        slot = numbers[:, SLOT]
        return {
            "numbers": ~np.isnan(numbers),
            "counts": numbers[:, [COUNT, SIZE, SAME, DAYS, TODAY]] >= 0.0,
            "histograms of the present days": numbers[:, BINS_TODAY:] >= 0.0,
            "the present hours": (slot >= 0) & (slot < HOURS) & (slot == np.floor(slot)),
            "hours": np.isfinite(hours).all() and (hours[:, :, TIMES] >= 0.0).all(),
            "figures": np.isfinite(figures) & (figures >= 0.0),
        }
