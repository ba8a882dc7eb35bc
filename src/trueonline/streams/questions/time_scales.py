"""Time scales of questions, and the pace of a stream: γ of every step, also where the times between samples differ.

A question is about the coming horizon. Its γ says how the weight of later values falls.

| given as       | γ of the step into a sample that came Δt later      | so the weight falls to 1/e |
|----------------|-----------------------------------------------------|----------------------------|
| 15min          | e^{−Δt/horizon}                                     | in 15 minutes              |
| 20 samples     | 1 − 1/20                                            | in about 20 samples        |
| a discount     | the number                                          | in about 1/(1 − γ) samples |
| a signal       | the value of the signal                             |                            |

A value counts for as long as it lasted: x_{t+1} has the weight 1 − γ_{t+1} of what is left. So with a horizon in time, the mean
is the integral ∫ e^{−s/horizon}·x(t + s) ds / horizon of a signal that keeps each value from the sample before it until its own
time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueonline.core.compiling.kernels import call, specialise
from trueonline.inputs import Resumable, positive, unit
from trueonline.streams.questions.questions import horizon_of
from trueonline.streams.signals import spelling
from trueonline.words import exact_duration, shortest

USUAL_SAMPLES = 1000.0  # samples over which the usual time between samples is measured
GAP_SAMPLES, GAP_HORIZONS = 10.0, 3.0  # a gap of more than ten samples and three horizons begins something new
# The memory of a pace: the time before, the usual time between samples, how many samples there were, and the gaps it found.
BEFORE, USUALLY, COUNT, GAPS = range(4)


@dataclass(frozen=True)
class TimeScale:
    """A horizon or a discount.

    Parameters
    ----------
    label : str
        The part of a question's name after "@".
    discount : float or str, optional
        γ of every step, or the signal whose value is γ. None: γ follows the time.
    seconds : float, optional
        The horizon in seconds, if γ follows the time.
    mean : bool
        Whether predictions are the mean over the horizon. Otherwise they are the return.
    """

    label: str
    discount: float | str | None
    seconds: float | None
    mean: bool

    @property
    def key(self) -> float | str:
        """The key that distinguishes γ of this scale from others: a number, or the name of a signal or horizon."""
        return self.discount if self.discount is not None else f"@{self.label}"

    @property
    def has_mean(self) -> bool:
        """Whether the return is a weighted mean times a constant: γ is a number below 1, or follows the time."""
        return not isinstance(self.discount, str) and self.discount != 1.0

    def factor(self, rate: float | None) -> float:
        """The factor from a mean over the horizon to the prediction: 1, or 1/(1 − γ) for the return."""
        if self.mean or not self.has_mean:
            return 1.0
        return 1.0 / (1.0 - self.gamma(rate))

    def gamma(self, rate: float | None) -> float:
        """γ of a step of one sample. `discount` must not be a signal."""
        if isinstance(self.discount, float):
            return self.discount
        assert self.seconds is not None
        assert rate is not None
        return float(np.exp(-1.0 / (self.seconds * rate)))

    def horizon(self, rate: float | None) -> float | None:
        """The horizon in seconds, None if nobody knows."""
        if self.seconds is not None:
            return self.seconds
        known = rate is not None and isinstance(self.discount, float) and self.discount < 1.0
        return horizon_of(self.discount, rate) if known else None  # type: ignore[arg-type]


def time_scales(
    horizons: Sequence[float | str], discounts: Sequence[float | str], meaning: str | None, rate: float | None
) -> list[TimeScale]:
    """The time scales that were asked for. ValueError if two are the same, or one makes no sense."""
    scales = []
    for horizon in horizons:
        if isinstance(horizon, str):
            number = samples_of(horizon)
            if number is None:
                raise ValueError(f"a horizon must be a number of seconds or a text such as '20 samples', got {horizon!r}")
            scales.append(TimeScale(f"{shortest(number)}samples", 1.0 - 1.0 / number, None, meaning != "return"))
        else:
            if rate is not None and positive("horizon", horizon) * rate < 1.0:
                raise ValueError(f"a horizon must be at least one sample, 1/rate = {1.0 / rate:g} s, got {horizon:g} s")
            scales.append(TimeScale(exact_duration(positive("horizon", horizon)), None, horizon, meaning != "return"))
    for discount in discounts:
        if isinstance(discount, str):
            scales.append(TimeScale(spelling(discount), spelling(discount), None, meaning == "mean"))
        else:
            scales.append(TimeScale(shortest(discount), unit("discount", discount), None, meaning == "mean"))
    for scale in scales:
        if meaning == "mean" and not scale.has_mean:
            raise ValueError(f"the discount {scale.label} has no mean over a horizon; ask for the return")
        if meaning == "return" and scale.seconds is not None and rate is None:
            raise ValueError(
                f"the return over {scale.label} is a sum over samples and needs the rate: give it (--rate), or ask for the mean"
            )
    if len({scale.key for scale in scales}) < len(scales):
        raise ValueError("two of the time scales are the same; give each once")
    return scales


def samples_of(text: str) -> float | None:
    """The number in a text such as "20 samples", at least 1. None if the text is something else.

    >>> samples_of("20 samples"), samples_of("2s")
    (20.0, None)
    """
    number, word = text.strip().removesuffix("s"), "sample"
    if not number.endswith(word):
        return None
    try:
        samples = float(number.removesuffix(word))
    except ValueError:
        return None
    if not 1.0 <= samples < 1e9:
        raise ValueError(f"a horizon must be at least one sample, got {text!r}")
    return samples


def follow(memory, given, gap_samples, gap_seconds, times, starts, spans, elapsed, begins):
    """Measure the times between samples. After a gap that is too long, something new begins."""
    for t in range(times.size):
        span = times[t] - memory[BEFORE]
        usual = given if given > 0.0 else memory[USUALLY]
        begins[t] = starts[t] or memory[COUNT] == 0.0
        if not begins[t] and memory[COUNT] > 1.0 and span > max(gap_samples * usual, gap_seconds):
            begins[t] = True
            memory[GAPS] += 1.0
        if not begins[t]:
            if memory[COUNT] == 2.0 and memory[USUALLY] > max(gap_samples * span, gap_seconds):
                memory[USUALLY] = span  # the first time was a gap, as where a clock is set after the first sample
            memory[USUALLY] += max(1.0 / USUAL_SAMPLES, 1.0 / memory[COUNT]) * (span - memory[USUALLY])
            usual = given if given > 0.0 else memory[USUALLY]
            memory[COUNT] += 1.0
        elif memory[COUNT] == 0.0:
            memory[COUNT] = 1.0
        memory[BEFORE] = times[t]
        spans[t] = usual if begins[t] else span
        elapsed[t] = 1.0 if begins[t] or usual <= 0.0 else span / usual


_FOLLOW = specialise(follow, "pace")


class Pace(Resumable):
    """Measures the times between samples, block by block.

    Parameters
    ----------
    rate : float, optional
        The samples per second. None: the usual time between samples is measured.
    longest : float
        The longest horizon in seconds. A gap of more than ten samples and three such horizons begins something new. 0: no gap does.
    max_gap : float, optional
        The longest time between samples that belong together, in seconds, instead.
    """

    def __init__(self, rate: float | None, longest: float, max_gap: float | None = None) -> None:
        gap = (GAP_SAMPLES, GAP_HORIZONS * longest if longest > 0.0 else np.inf) if max_gap is None else (0.0, max_gap)
        self._settings = (1.0 / rate if rate else 0.0, *map(float, gap))
        self._state = {"memory": np.zeros(4)}

    def follow(self, times: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Take a block of samples.

        Parameters
        ----------
        times : array of shape (T,)
            Rising times in seconds, except at starts.
        starts : array of bool, of shape (T,)
            True at each sample where something new begins.

        Returns
        -------
        spans : array of shape (T,)
            The seconds since the sample before. The usual time at a start.
        elapsed : array of shape (T,)
            The same, in units of the usual time.
        begins : array of bool, of shape (T,)
            `starts`, and gaps that are too long.
        """
        spans, elapsed, begins = np.empty(len(times)), np.empty(len(times)), np.empty(len(times), np.bool_)
        call(_FOLLOW, self._state["memory"], *self._settings, times, starts, spans, elapsed, begins)
        return spans, elapsed, begins

    @property
    def usual(self) -> float | None:
        """The measured time between samples in seconds. None if nothing was measured."""
        memory = self._state["memory"]
        return float(memory[USUALLY]) if memory[COUNT] > 1.0 else None

    @property
    def gaps(self) -> int:
        """The gaps that are no `starts`."""
        return int(self._state["memory"][GAPS])

    def _possible(self, saved: Mapping[str, np.ndarray]) -> dict[str, Any]:
        memory = saved["memory"]
        return {"memory": np.isfinite(memory), "counts": memory[[USUALLY, COUNT, GAPS]] >= 0.0}
