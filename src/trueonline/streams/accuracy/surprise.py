"""How unusual the newest errors of predictions are, as a probability that holds for every stream.

An error that alarms one stream is usual for another. So each target has its own idea of what is usual. Its errors are divided by
their usual size s, a running mean of |error| in which one outlier counts twenty times s at most. Four figures describe the newest
errors z = error / s:

    jump      |z|                          one error that is large
    drift     |mean of asinh z|            errors that have one sign, as after a shift of level
    burst     mean of |asinh z|            errors that are large for a while, as noise
    silence   1 / (mean of |asinh z|)      errors that are small for a while, as of a sensor that no longer measures

Means are over about 16 samples, with weights that fade. asinh keeps one large error from filling them.

How often is a figure as large as now? A histogram of its logarithm, which forgets over 1,000 samples, gives the share p of samples
that reach it. The newest 16 samples are judged by those before them: so what grows does not become usual while it grows. Beyond the
largest 2 % the tail is a Pareto distribution, ln p = ln p₀ − (ln figure − ln figure₀)/ξ. Its ξ is the mean excess in the histogram,
drawn towards 0.2 as if by 10 samples more (the Hill estimator with a prior). So p is sensible beyond everything seen.

The smallest p over all figures and targets counts, multiplied by their number, because one of many is small by chance (Bonferroni).
So a surprise 1 − p of 0.999 comes about once in a thousand samples, or less often.

A thing that stays odd is news only once. The largest surprise so far, as log₁₀(1/p), is remembered and fades over 1,000 samples. A
larger one is news. Right after news it must be ten times rarer, because it is mostly the same event: this margin fades over 16
samples. A surprise that is not news is at most 0.9.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from trueonline.core.compiling.kernels import call, kernel, specialise
from trueonline.core.forms import pointer
from trueonline.inputs import Resumable, count

SIZE_RATE = 0.01  # of the usual size
MAX_SIZES = 20.0  # an error counts as so many usual sizes at most
MEAN_LENGTH = 16  # samples in the means
WARM_UP = 100  # errors before anything is surprising
MIN_WEIGHT = 75.0  # weight of a histogram that says something
FORGET_RATE = 0.001  # of the histograms
TAIL_SHARE = 0.02  # the share of samples that the tail is fitted to
PRIOR_SHAPE, PRIOR_SAMPLES = 0.2, 10.0  # ξ of a tail of which nothing is known, and the samples that this is worth
BINS, BIN_WIDTH = 120, 0.2  # of the histograms, over logarithms from −12 to 12
MEAN_POWER = 2.0  # means vary little: their logarithms count twice
PEAK_FADE = 0.999  # of the largest surprise
NEWS_MARGIN = 1.0  # log₁₀ of how much rarer news must be that follows news at once
MAX_OLD_NEWS = 1.0  # log₁₀(1/p) of what is not news, at most
MIN_PROBABILITY = 1e-16  # no probability is smaller

JUMP, DRIFT, BURST, SILENCE = range(4)
SEEN, RUN = range(2)  # columns of the counts: errors, and errors since the stream began


# --- In kernels -----------------------------------------------------------------------------------


@kernel
def exceeded(bins, at):
    """The probability of a figure at this place or beyond."""
    total = above = share = excess = 0.0
    for b in range(BINS):
        total += bins[b]
    if total < MIN_WEIGHT:
        return 1.0
    last = int(BINS - 0.5)
    while above + bins[last] < TAIL_SHARE * total:
        above += bins[last]
        last -= 1
    if at <= last + 1:
        for b in range(int(at), BINS):
            share += bins[b]
        return share / total
    for b in range(last + 1, BINS):
        excess += bins[b] * (b + 0.5 - (last + 1))
    shape = (excess * BIN_WIDTH + PRIOR_SAMPLES * PRIOR_SHAPE) / (above + PRIOR_SAMPLES)
    return max(above, 0.5) / total * math.exp(-(at - (last + 1)) * BIN_WIDTH / shape)


@kernel
def weigh(error, usual, count, mean, pending, bins, target):
    """The smallest probability of a target's four figures, 1 while nothing can be said. The new error becomes part of the past."""
    size = abs(error)
    count[SEEN] += 1
    count[RUN] += 1
    z = size / usual if size > 0.0 else 0.0
    rate = max(1.0 / MEAN_LENGTH, 1.0 / count[RUN])
    bent = math.asinh(min(z, 1e12))
    mean[0] += rate * (math.copysign(bent, error) - mean[0])
    mean[1] += rate * (bent - mean[1])
    least = 1.0
    for figure in range(4):
        row = 4 * target + figure
        known, place = pointer(bins, row * BINS), pointer(pending, row * MEAN_LENGTH + count[SEEN] % MEAN_LENGTH)
        if place[0] >= 0.0:  # from MEAN_LENGTH errors ago
            for b in range(BINS):
                known[b] *= 1.0 - FORGET_RATE
            known[int(place[0])] += 1.0
        place[0] = -1.0
        if figure == JUMP or count[RUN] >= MEAN_LENGTH:
            value = z if figure == JUMP else abs(mean[0]) if figure == DRIFT else mean[1]
            power = 1.0 if figure == JUMP else -MEAN_POWER if figure == SILENCE else MEAN_POWER
            value = power * math.log(min(max(value, 1e-4), 1e12))
            place[0] = min(max(value / BIN_WIDTH + BINS // 2, 0.0), BINS - 0.5)  # in bins
            if count[SEEN] > WARM_UP:
                least = min(least, exceeded(known, place[0]))
    return least


def follow(scales, counts, means, pending, bins, peak, errors, starts, surprise, suspect, usual):
    """Weigh the errors of each sample."""
    largest = pointer(peak, 0)
    for t in range(starts.size):
        least, weighed = 2.0, 0.0
        for k in range(scales.size):
            error, count = errors[t, k], pointer(counts, 2 * k)
            if starts[t]:
                count[RUN] = 0
            if not math.isfinite(error):
                continue
            before, size = scales[k], abs(error)
            scale = size if count[SEEN] == 0 else before
            p = weigh(error, scale, count, pointer(means, 2 * k), pending, bins, k)
            if scale == 0.0:
                scales[k] = size
            else:
                scales[k] = scale + max(SIZE_RATE, 1.0 / count[SEEN]) * (min(size, MAX_SIZES * scale) - scale)
            if count[SEEN] > WARM_UP:
                weighed += 1.0
                if p < least:
                    least, suspect[t], usual[t] = p, k, before
        largest[0] *= PEAK_FADE
        largest[1] *= 1.0 - 1.0 / MEAN_LENGTH
        if weighed > 0.0:
            least = max(min(least * 4 * weighed, 1.0), MIN_PROBABILITY)
            news = -math.log10(least)
            if news > largest[0] + largest[1]:
                largest[0], largest[1] = news, NEWS_MARGIN
            else:
                least = max(least, 10.0**-MAX_OLD_NEWS)
            surprise[t] = 1.0 - least


_FOLLOW = specialise(follow, "surprise")


# --- In Python ------------------------------------------------------------------------------------


class Surprise(Resumable):
    """How unusual the newest errors are for this stream.

    Errors of values make a blip as surprising as a change that lasts. TD errors, (1 − γ)·x_t + γ·p_t − p_{t−1}, are the news about
    all that is to come, and find changes that last. `Predictor` gives both.

    Parameters
    ----------
    targets : int
        The number of errors at each sample.

    Attributes
    ----------
    targets : int
        The number of errors at each sample.

    Examples
    --------
    >>> errors = np.random.default_rng(0).normal(size=(1000, 2))
    >>> errors[900, 1] = 30.0
    >>> surprise, suspect, usual = Surprise(targets=2).follow(errors, starts=np.arange(1000) == 0)
    >>> int(surprise.argmax()), int(suspect[900]), bool(surprise[900] > 0.9999), round(float(usual[900]))
    (900, 1, True, 1)
    """

    def __init__(self, targets: int) -> None:
        self.targets = count("targets", targets)
        self._state: dict[str, np.ndarray] = {
            "scales": np.zeros(self.targets),
            "counts": np.zeros((self.targets, 2), np.int64),
            "means": np.zeros((self.targets, 2)),
            "pending": np.full((self.targets, 4, MEAN_LENGTH), -1.0),
            "bins": np.zeros((self.targets, 4, BINS)),
            "peak": np.zeros(2),
        }

    def follow(self, errors: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Take the errors of T samples.

        Parameters
        ----------
        errors : array of shape (T, targets)
            The outcomes minus the expectations. NaN where nothing was expected.
        starts : array of shape (T,)
            Booleans that mark where a new stream begins. The usual sizes stay, and the means begin again.

        Returns
        -------
        surprise : array of shape (T,)
            1 − p, from 0 to 1. 0 while nothing can be said.
        suspect : array of shape (T,)
            The target whose errors are the most unusual, an integer. −1 while nothing can be said.
        usual : array of shape (T,)
            The usual size of the suspect's errors. NaN while nothing can be said.
        """
        T = len(starts)
        surprise, suspect, usual = np.zeros(T), np.full(T, -1, np.int64), np.full(T, np.nan)
        call(_FOLLOW, *self._state.values(), np.require(errors, float, ("C", "A", "W")), starts, surprise, suspect, usual)
        return surprise, suspect, usual

    def _possible(self, saved: Mapping[str, np.ndarray]) -> dict[str, Any]:
        counts = saved["counts"]
        return {
            "counts": (counts >= 0).all() and (counts[:, RUN] <= counts[:, SEEN]).all(),
            "means": np.isfinite(saved["means"]),
            **{name: np.isfinite(saved[name]) & (saved[name] >= 0.0) for name in ("scales", "bins", "peak")},
            "pending": (saved["pending"] >= -1.0) & (saved["pending"] < BINS),
        }
