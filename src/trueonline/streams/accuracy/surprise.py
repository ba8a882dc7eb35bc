"""How unusual the newest errors are, as a probability that holds for every stream.

An error that alarms one stream is usual for another. So each *row* of errors has its own idea of what is usual. Its errors are
divided by their usual size s, a running mean of |error| in which one outlier counts twenty times s at most. Four figures describe
the newest errors z = error / s of a row:

    jump      |z|                          one error that is large
    run       |mean of asinh z|            errors that have one sign, as after a shift of level
    burst     mean of |asinh z|            errors that are large for a while, as noise
    silence   1 / (mean of |asinh z|)      errors that are small for a while, as of a sensor that no longer measures

Means are over about 16 samples, with weights that fade. asinh keeps one large error from filling them.

**How often is a figure as large as now?** A histogram of its logarithm, which forgets over 1,000 samples, gives the share p of
samples that reach it. Beyond the largest 2 % the tail is a Pareto distribution, ln p = ln p₀ − (ln figure − ln figure₀)/ξ. Its ξ is
the mean excess in the histogram, drawn towards 0.2 as if by 10 samples more (the Hill estimator with a prior). So p is sensible
beyond everything seen. A rank among n samples alone could not say less than 1/n.

The jump says something from the second error on: its p is a mean of the histogram's, and of (1 + z/4)⁻⁵ with the weight of 10
samples. The other figures need 100 errors. The newest 16 samples are judged by those before them, so what grows does not become
usual while it grows.

**Two tests.** Some rows are *views* of one sample: its distance from the mean so far, from the value before, from the usual value
at this time of the day, and from forecasts. The logarithms of their p for the jump are averaged. For any dependence, e times the
geometric mean of probabilities is a probability (Vovk and Wang 2020), so this is one test: is the sample odd from all sides? The
average finds more than the least p, which a single odd view decides. The other test is the least p of the other figures, and of
the level of a signal in the range of its past, which the caller gives. A figure of many samples is often unusual with no fault.
So the first test gets nine tenths of the risk (`VIEWS_SHARE`), and the second gets the rest. Each divides it among its signals or
figures (Bonferroni). So a surprise 1 − p of 0.999 comes about once in a thousand samples, or less often.

A thing that stays odd is news only once. Each test remembers its largest log₁₀(1/p), which fades: over about 30 samples for
views, and over 1,000 samples for the other figures, which change slowly. A larger one is news. Right after news it must be ten
times rarer, because it is mostly the same event. This margin fades over 30 samples, and over 300 for the other figures. A
surprise that is not news is at most 0.9.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueonline.core.compiling.kernels import call, kernel, outlined, specialise
from trueonline.core.forms import pointer
from trueonline.inputs import Resumable

SIZE_RATE = 0.01  # of the usual size
MAX_SIZES = 20.0  # an error counts as so many usual sizes at most
MEAN_LENGTH = 16  # samples in the means
WARM_UP = 100  # errors before a figure other than the jump is surprising
MIN_WEIGHT = 75.0  # weight of a histogram that says something about such a figure
FORGET_RATE = 0.001  # of the histograms
TAIL_SHARE = 0.02  # the share of samples that the tail is fitted to
PRIOR_SHAPE, PRIOR_SAMPLES = 0.2, 10.0  # ξ of a tail of which nothing is known, and the samples that this is worth
BINS, BIN_WIDTH = 120, 0.2  # of the histograms, over logarithms from −12 to 12
MEAN_POWER = 2.0  # means vary little: their logarithms count twice
VIEWS_SHARE = 0.9  # of the risk of a false alarm
FADES = (0.97, 0.999, 0.97, 0.997)  # of the largest news of views, of that of the other figures, and of their margins
NEWS_MARGIN = 1.0  # log₁₀ of how much rarer a figure must be right after news
MAX_OLD_NEWS = 1.0  # log₁₀(1/p) of what is not news, at most
MIN_PROBABILITY = 1e-16  # no probability is smaller
LEAST_JUMP = 1e-30  # no probability of one view is smaller

JUMP, RUN, BURST, SILENCE = range(4)
NEW = 4  # not a figure: a level that was never seen
SEEN, LASTING = range(2)  # columns of the counts: errors, and errors since the stream began
# Columns of the tests of a signal: the mean logarithm of its views; that of the oddest view and its row; the least probability of a
# figure that lasts, its row, and the figure.
TOGETHER, ODDEST, VIEW, LEAST, ROW, FIGURE = range(6)
# Of the peak: the largest news of both tests, both margins, and then the usual sizes.
VIEWS, FIGURES, VIEWS_MARGIN, MARGIN, BEFORE = range(5)


# --- In kernels -----------------------------------------------------------------------------------


@outlined
def exceeded(bins, total, at):
    """The weight of figures at this place or beyond, of a histogram with this total."""
    above = share = excess = 0.0
    last = int(BINS - 0.5)
    while above + bins[last] < TAIL_SHARE * total:
        above += bins[last]
        last -= 1
    if at <= last + 1:
        for b in range(int(at), BINS):
            share += bins[b]
        return share
    for b in range(last + 1, BINS):
        excess += bins[b] * (b + 0.5 - (last + 1))
    shape = (excess * BIN_WIDTH + PRIOR_SAMPLES * PRIOR_SHAPE) / (above + PRIOR_SAMPLES)
    return max(above, 0.5) * math.exp(-(at - (last + 1)) * BIN_WIDTH / shape)


@kernel
def remember(at, bins, total):
    """Put the place of a figure into its histogram."""
    for b in range(BINS):
        bins[b] *= 1.0 - FORGET_RATE
    bins[int(at)] += 1.0
    total[0] = total[0] * (1.0 - FORGET_RATE) + 1.0


@kernel
def figure_place(value, power):
    """The place of a figure in its histogram, in bins."""
    return min(max(power * math.log(min(max(value, 1e-4), 1e12)) / BIN_WIDTH + BINS // 2, 0.0), BINS - 0.5)


@kernel
def jump(z, bins, total):
    """The probability of an error this large, from the first errors on. It becomes part of the past at once."""
    at = figure_place(z, 1.0)
    usual = (1.0 + z / 4.0) ** -5.0
    found = 0.0
    if total[0] > 0.0:
        found = exceeded(bins, total[0], at)
    p = (found + PRIOR_SAMPLES * usual) / (total[0] + PRIOR_SAMPLES)
    remember(at, bins, total)
    return min(max(p, LEAST_JUMP), 1.0)


@kernel
def lasting(z, error, count, mean, bins, totals, pending, row, test):
    """Weigh the figures that need several errors. The new error becomes part of the past."""
    rate = max(1.0 / MEAN_LENGTH, 1.0 / count[LASTING])
    bent = math.asinh(min(z, 1e12))
    mean[0] += rate * (math.copysign(bent, error) - mean[0])
    mean[1] += rate * (bent - mean[1])
    for figure in range(1, 4):
        at = 4 * row + figure
        known, total = pointer(bins, at * BINS), pointer(totals, at)
        place = pointer(pending, at * MEAN_LENGTH + count[SEEN] % MEAN_LENGTH)
        if place[0] >= 0.0:  # from MEAN_LENGTH errors ago
            remember(place[0], known, total)
        place[0] = -1.0
        if count[LASTING] >= MEAN_LENGTH:
            value, power = abs(mean[0]) if figure == RUN else mean[1], -MEAN_POWER if figure == SILENCE else MEAN_POWER
            place[0] = figure_place(value, power)
            if count[SEEN] > WARM_UP and total[0] >= MIN_WEIGHT:
                p = exceeded(known, total[0], place[0]) / total[0]
                if p < test[LEAST]:
                    test[LEAST], test[ROW], test[FIGURE] = p, row, figure


@kernel
def weigh(row, error, share, lasts, count, mean, scales, bins, totals, pending, test):
    """Weigh the error of a row, for the tests of its signal."""
    size, scale = abs(error), scales[row]
    count[SEEN] += 1
    count[LASTING] += 1
    z = size / scale if scale > 0.0 else 0.0
    if scale == 0.0 and size > 0.0 and count[SEEN] > 1:
        z = float(count[SEEN])  # after n errors of zero, the first error is n times as large as usual
    if share > 0.0 and count[SEEN] > 1:
        news = -math.log10(jump(z, pointer(bins, 4 * row * BINS), pointer(totals, 4 * row)))
        test[TOGETHER] += share * news
        if news > test[ODDEST]:
            test[ODDEST], test[VIEW] = news, row
    if lasts:
        lasting(z, error, count, mean, bins, totals, pending, row, test)
    if scale == 0.0:
        scales[row] = size
    else:
        scales[row] = scale + max(SIZE_RATE, 1.0 / count[SEEN]) * (min(size, MAX_SIZES * scale) - scale)


@kernel
def news_of(test, risks, peak, before):
    """What the views and the other figures say, as log₁₀(1/p). It is little if it is not news."""
    views, figures = test[TOGETHER] - risks[0], -math.log10(max(test[LEAST], LEAST_JUMP)) - risks[1]
    if views <= before[VIEWS] + before[VIEWS_MARGIN]:
        views = min(views, MAX_OLD_NEWS)
    elif views > peak[VIEWS]:
        peak[VIEWS], peak[VIEWS_MARGIN] = views, NEWS_MARGIN
    if figures <= before[FIGURES] + before[MARGIN]:
        figures = min(figures, MAX_OLD_NEWS)
    elif figures > peak[FIGURES]:
        peak[FIGURES], peak[MARGIN] = figures, NEWS_MARGIN
    return views, figures


def follow(
    owners, shares, lasts, tells, levels, risks, tests, scales, counts, means, pending, bins, totals, peak, errors, starts,
    new_levels, surprise, suspect, figure, usual,
):  # fmt: skip
    """Weigh the errors of each sample."""
    largest, known, before = pointer(peak, 0), pointer(peak, BEFORE), pointer(peak, BEFORE + scales.size)
    for t in range(starts.size):
        for signal in range(tests.shape[0]):
            test = pointer(tests, signal * 6)
            test[TOGETHER], test[ODDEST], test[VIEW], test[LEAST], test[ROW] = 0.0, -1.0, -1.0, 1.0, -1.0
        for k in range(scales.size):
            error, count, test = errors[t, k], pointer(counts, 2 * k), pointer(tests, 6 * owners[k])
            known[k] = scales[k]
            if starts[t]:
                count[LASTING] = 0
            if math.isfinite(error):
                weigh(k, error, shares[k], lasts[k], count, pointer(means, 2 * k), scales, bins, totals, pending, test)
        for k in range(BEFORE):
            largest[k] *= FADES[k]
            before[k] = largest[k]
        most = 0.0
        for signal in range(tests.shape[0]):
            test = pointer(tests, signal * 6)
            if new_levels[t, signal] < test[LEAST]:
                test[LEAST], test[ROW], test[FIGURE] = new_levels[t, signal], levels[signal], NEW
            views, figures = news_of(test, risks, largest, before)
            if test[VIEW] >= 0.0 and (suspect[t] < 0 or max(views, figures) > most):
                most = max(max(views, figures), 0.0)  # noqa: PLW3301
                suspect[t], figure[t] = int(test[VIEW]), JUMP
                if figures > views:
                    suspect[t], figure[t] = int(test[ROW]), int(test[FIGURE])
                usual[t] = known[tells[suspect[t]]]
        surprise[t] = 1.0 - max(10.0**-most, MIN_PROBABILITY)


_FOLLOW = specialise(follow, "surprise")


# --- In Python ------------------------------------------------------------------------------------


class Surprise(Resumable):
    """How unusual the newest errors are for this stream.

    Parameters
    ----------
    shares : sequence of float
        For each row of errors its share in the mean of its signal's views, which should sum to 1. 0: the row is no view.
    lasts : sequence of bool, optional
        For each row whether runs, bursts and silence of its errors count. None: those of all rows.
    owners : sequence of int, optional
        For each row the number of its signal. None: there is one signal.
    tells : sequence of int, optional
        For each row the row whose usual size is told. None: its own.
    levels : sequence of int, optional
        For each signal the row that tells of a level never seen. None: the first.

    Attributes
    ----------
    rows : int
        The number of errors at each sample.

    Examples
    --------
    >>> errors = np.random.default_rng(0).normal(size=(1000, 2))
    >>> errors[900] = 30.0
    >>> surprise, suspect, figure, usual = Surprise(shares=[0.5, 0.5]).follow(errors, starts=np.arange(1000) == 0)
    >>> int(surprise.argmax()), int(figure[900]) == JUMP, bool(surprise[900] > 0.9999), round(float(usual[900]))
    (900, True, True, 1)
    """

    def __init__(
        self,
        shares: Sequence[float],
        lasts: Sequence[bool] | None = None,
        owners: Sequence[int] | None = None,
        tells: Sequence[int] | None = None,
        levels: Sequence[int] | None = None,
    ) -> None:
        self.rows = len(shares)
        owner = np.array([0] * self.rows if owners is None else owners, np.int64)
        last = np.array([True] * self.rows if lasts is None else lasts, np.bool_)
        told = np.array(range(self.rows) if tells is None else tells, np.int64)
        signals = int(owner.max(initial=0)) + 1
        level = np.array([0] * signals if levels is None else levels, np.int64)
        risks = np.log10([signals * math.e / VIEWS_SHARE, (3.0 * last.sum() + signals) / (1.0 - VIEWS_SHARE)])
        self._settings = (owner, np.array(shares, float), last, told, level, risks, np.zeros((signals, 6)))
        self._state: dict[str, np.ndarray] = {
            "scales": np.zeros(self.rows),
            "counts": np.zeros((self.rows, 2), np.int64),
            "means": np.zeros((self.rows, 2)),
            "pending": np.full((self.rows, 4, MEAN_LENGTH), -1.0),
            "bins": np.zeros((self.rows, 4, BINS)),
            "totals": np.zeros((self.rows, 4)),
            "peak": np.zeros(2 * BEFORE + self.rows),
        }

    def follow(
        self, errors: np.ndarray, starts: np.ndarray, new_levels: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Take the errors of T samples.

        Parameters
        ----------
        errors : array of shape (T, rows)
            The outcomes minus the expectations. NaN where nothing was expected.
        starts : array of shape (T,)
            Booleans that mark where a new stream begins. The usual sizes stay, and the means begin again.
        new_levels : array of shape (T, signals), optional
            The probability of the level of each signal, by the range of its past. None: 1.

        Returns
        -------
        surprise : array of shape (T,)
            1 − p, from 0 to 1. 0 while nothing can be said.
        suspect : array of shape (T,)
            The row whose errors are the most unusual, an integer. −1 while nothing can be said.
        figure : array of shape (T,)
            The figure that is unusual, `JUMP`, `RUN`, `BURST` or `SILENCE`, or `NEW` for a level.
        usual : array of shape (T,)
            The usual size of the errors that tell of the suspect. NaN while nothing can be said.
        """
        T = len(starts)
        surprise, suspect, figure, usual = (
            np.zeros(T),
            np.full(T, -1, np.int64),
            np.zeros(T, np.int64),
            np.full(T, np.nan),
        )
        rows = np.require(errors, float, ("C", "A", "W"))
        levels = np.ones((T, len(self._settings[-1]))) if new_levels is None else new_levels
        call(_FOLLOW, *self._settings, *self._state.values(), rows, starts, levels, surprise, suspect, figure, usual)
        return surprise, suspect, figure, usual

    def _possible(self, saved: Mapping[str, np.ndarray]) -> dict[str, Any]:
        counts = saved["counts"]
        return {
            "counts": (counts >= 0).all() and (counts[:, LASTING] <= counts[:, SEEN]).all(),
            "means": np.isfinite(saved["means"]),
            **{name: np.isfinite(saved[name]) & (saved[name] >= 0.0) for name in ("scales", "bins", "totals", "peak")},
            "pending": (saved["pending"] >= -1.0) & (saved["pending"] < BINS),
        }
