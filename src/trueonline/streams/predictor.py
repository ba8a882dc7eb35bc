"""From clean samples to predictions: signals, learners, bands, surprise and scores, in one object that can be saved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from trueonline.core.thread_guard import ThreadGuarded, guarded
from trueonline.inputs import MAX_COUNT, Resumable
from trueonline.streams.accuracy.bands import Bands
from trueonline.streams.accuracy.limits import Limits
from trueonline.streams.accuracy.realised_returns import KNOWN_WEIGHT
from trueonline.streams.accuracy.scoring import QuestionScore, Scores
from trueonline.streams.accuracy.surprise import Surprise
from trueonline.streams.questions.answers import Answers
from trueonline.streams.questions.auto_questions import AutoQuestions
from trueonline.streams.questions.horde_questions import HordeQuestions
from trueonline.streams.questions.prediction_setup import AUTO, Setup
from trueonline.streams.questions.question_samples import QuestionSamples
from trueonline.streams.questions.time_scales import Pace, TimeScale
from trueonline.streams.signals import Signals, spelling
from trueonline.streams.sources import Clean

__all__ = ["Answers", "DivergedError", "Predictor", "Setup"]

DIVERGED_SIZE = 1e140  # no return is as large: signals lie within ±1e100
SAMPLES, BAD_GAMMAS = range(2)  # of the counts: samples learned from, and values of γ outside [0, 1]


class DivergedError(ValueError):
    """The weights grew beyond all bounds. A smaller step-size or trace decay of one learner helps."""


class Predictor(ThreadGuarded, Resumable):
    """Learns to predict the signals of a stream, sample by sample. Threads may share a predictor.

    Parameters
    ----------
    setup : Setup
        The signals, targets, time scales and method.

    Attributes
    ----------
    columns : tuple of str
        The columns that the source must deliver.
    observed : tuple of str
        The signals in `Answers.signals`.
    scales : tuple of TimeScale
        The time scale of each question.
    names : tuple of str
        The names of the questions, such as "force@2s".
    output_columns : tuple of str
        The columns of `table`: each name, NAME.low and NAME.high, `surprise`, and the targets themselves.
    targets : tuple of str
        The target of each question.
    horizons : tuple of float or None
        The time scale of each question in seconds, None if it has none.
    samples : int
        The number of samples learned from.

    Raises
    ------
    ValueError
        If a signal is not understood, or two questions are the same.

    Examples
    --------
    >>> predictor = Predictor(Setup(signals=["a"], targets=["a"], horizons=["20 samples"]))
    >>> for t in range(200):
    ...     answers = predictor.learn(Clean(np.array([t / 10]), np.array([[3.0]]), np.array([t == 0])))
    >>> predictor.names, answers.predictions
    (('a@20samples',), array([[3.]]))
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        scales = setup.scales()
        asked = [(spelling(target), scale) for target in setup.targets for scale in scales]
        self.targets = tuple(target for target, _ in asked)
        self.scales = tuple(scale for _, scale in asked)
        self.names = tuple(f"{target}@{scale.label}" for target, scale in asked)
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"two questions are the same: {', '.join(self.names)}; give each target and time scale once")
        self.horizons = tuple(scale.horizon(setup.rate) for scale in self.scales)
        signals = [spelling(name) for name in setup.signals]
        moving = [scale.discount for scale in scales if isinstance(scale.discount, str)]
        self._signals = Signals(list(dict.fromkeys([*signals, *self.targets, *moving])), setup.rate)
        self.columns = self._signals.columns
        self.observed = self._signals.names
        self._target = np.array([self.observed.index(target) for target in self.targets])
        longest = max((s.seconds for s in scales if s.seconds is not None), default=0.0)
        self._pace = Pace(setup.rate, longest, setup.max_gap)
        self._factors = np.array([scale.factor(setup.rate) for scale in self.scales])
        self._has_mean = np.array([scale.has_mean for scale in self.scales])
        keys = [scale.key for scale in self.scales]
        self._own_scales = scales  # the different ones, in the order in which scores and bands get γ
        self._scale = np.array([scales.index(scale) for scale in self.scales])
        self._bands = Bands(keys, setup.coverage, self._has_mean.tolist())
        self._questions: AutoQuestions | HordeQuestions = (
            AutoQuestions(signals, self.targets, self.observed)
            if setup.method == AUTO
            else HordeQuestions(setup, self.names, self.scales, self.observed)
        )
        self._first = np.array(
            [self.targets.index(name) for name in dict.fromkeys(self.targets)]
        )  # a question about each target
        self._of_target = np.array(
            [list(dict.fromkeys(self.targets)).index(name) for name in self.targets]
        )  # of each question
        self._limits = Limits(len(self._first), setup.minimum, setup.maximum)
        self._surprise = Surprise(len(self._first))
        columns = [f"{name}{end}" for name in self.names for end in ("", ".low", ".high")]
        shown = [name for name in dict.fromkeys(self.targets) if name not in ("time", "surprise", *columns)]
        self._shown = [self.observed.index(name) for name in shown]
        self.output_columns = (*columns, "surprise", *shown)
        self._state = {"counts": np.zeros(2, np.int64)}
        self._parts = {
            "signals": self._signals,
            "pace": self._pace,
            "questions": self._questions,
            "limits": self._limits,
            "bands": self._bands,
            "surprise": self._surprise,
        }
        self.begin_another()

    @property
    def samples(self) -> int:
        """The number of samples learned from."""
        return int(self._state["counts"][SAMPLES])

    @property
    def usual_interval(self) -> float | None:
        """The usual time between samples in seconds, as measured. None if nothing was measured."""
        return self._pace.usual

    @property
    def never_scored(self) -> list[str]:
        """The time scales that are too long for samples to wait until they are known, by their labels."""
        usual, found = 1.0 / self.setup.rate if self.setup.rate else self.usual_interval, []
        for scale, window in zip(self._own_scales, self._scores.returns.windows, strict=True):
            if scale.seconds is not None and usual:
                samples = -math.log(KNOWN_WEIGHT) * scale.seconds / usual
            elif isinstance(scale.discount, float) and 0.0 < scale.discount < 1.0:
                samples = math.log(KNOWN_WEIGHT) / math.log(scale.discount)
            else:
                continue
            if samples > window:
                found.append(scale.label)
        return found

    @guarded
    def learn(self, clean: Clean) -> Answers:
        """Learn from samples.

        Parameters
        ----------
        clean : Clean
            Samples from a `Cleaner`, with the columns of `columns`.

        Returns
        -------
        Answers
            The predictions at each sample.

        Raises
        ------
        DivergedError
            If a prediction is beyond all bounds. The predictor is of no use then.
        """
        if not len(clean):
            return self.no_answers()
        observed = self._signals.derive(clean.times, clean.values, clean.starts, clean.offset)
        spans, elapsed, starts = self._pace.follow(clean.times, clean.starts)
        gammas = [self._gamma(scale, spans, observed) for scale in self._own_scales]
        of_questions = [gammas[k] for k in self._scale]
        values, different = observed.take(self._target, axis=1), np.column_stack(gammas)
        cumulants = np.where(self._has_mean, 1.0 - different.take(self._scale, axis=1), 1.0) * values
        one = np.ones(len(elapsed))
        lasting = [elapsed if scale.seconds else one for scale in self.scales]
        seen = QuestionSamples(clean.times + clean.offset, observed, cumulants, of_questions, lasting, starts)
        predictions, expected_next = self._questions.learn(seen)
        if not (np.abs(predictions) < DIVERGED_SIZE).all():
            about = f"the weights diverged at about sample {self.samples + len(values):,}"
            raise DivergedError(f"{about}: {self._questions.advice()}")
        own = values.take(self._first, axis=1)
        least, most = self._limits.follow(own)
        ends = np.array(-math.inf), np.array(math.inf)  # of what a prediction can be: a return has no limits
        if expected_next is not None:
            expected_next = np.clip(expected_next, least[:-1], most[:-1])
            ends = (least[1:].take(self._of_target, axis=1), most[1:].take(self._of_target, axis=1))
        predictions = np.clip(predictions, *ends)
        self._scores.follow(predictions, values, cumulants, starts, different)
        low, high = (np.clip(each, *ends) for each in self._bands.follow(predictions, cumulants, starts, different))
        judged = self._surprise.follow(own, expected_next, seen.seconds, starts)
        judged["suspect"] = np.where(judged["suspect"] < 0, -1, self._first[judged["suspect"]])
        self._state["counts"][SAMPLES] += len(values)
        shown = {"predictions": predictions, "low": low, "high": high}
        scaled = {name: each * self._factors for name, each in shown.items()}
        return Answers(clean.times, starts, observed, **scaled, **judged)

    def table(self, answers: Answers) -> np.ndarray:
        """Put answers side by side, as outputs write them.

        Parameters
        ----------
        answers : Answers
            Answers of this predictor.

        Returns
        -------
        array of shape (T, columns)
            The columns of `output_columns`.
        """
        return np.column_stack([answers.table(), answers.signals[:, self._shown]])

    def no_answers(self) -> Answers:
        """Make the answers to no samples.

        Returns
        -------
        Answers
            Answers whose arrays are empty.
        """
        none, rows = np.empty(0), np.empty((0, len(self.names)))
        codes = np.empty(0, np.int64)
        judged = {"surprise": none, "suspect": codes, "reason": codes, "expected": none, "usual": none, "error": none}
        signals = np.empty((0, len(self.observed)))
        return Answers(none, np.empty(0, np.bool_), signals, rows, low=rows, high=rows, **judged)

    def _gamma(self, scale: TimeScale, spans: np.ndarray, observed: np.ndarray) -> np.ndarray:
        """γ of the step into each sample."""
        if scale.seconds is not None:
            return np.exp(-spans / scale.seconds)
        if not isinstance(scale.discount, str):
            return np.full(len(spans), scale.discount)
        values = observed[:, self.observed.index(scale.discount)]
        inside = np.clip(values, 0.0, 1.0)
        self._state["counts"][BAD_GAMMAS] += (inside != values).sum()
        return inside

    @guarded
    def begin_another(self) -> None:
        """Score from now on, because another source begins. Everything learned stays."""
        keys = [scale.key for scale in self.scales]
        self._scores = Scores(keys, self._factors.tolist(), self._has_mean.tolist())
        self._surprise.begin_another()
        self._parts = {**self._parts, "scores": self._scores}

    @guarded
    def scores(self) -> list[QuestionScore]:
        """Score the predictions against what came true, as if the stream ended here.

        Returns
        -------
        list of QuestionScore
            The score of each question.
        """
        return self._scores.scores()

    @guarded
    def inside(self) -> list[float | None]:
        """The share of bands that contained what came true. The newest prediction stands for what is not known yet, at most 60 %.

        Returns
        -------
        list of float or None
            The share for each question, None if no band has been judged yet.
        """
        return [None if math.isnan(share) else float(share) for share in self._bands.inside()]

    @guarded
    def scores_so_far(self) -> dict[str, np.ndarray]:
        """The errors of each question over the samples that are known well enough by now. Cheaper than `scores`.

        Returns
        -------
        dict from str to array of shape (questions,)
            `error`, `hold` and `mean`, the same with `recent_` before them, and `scored`. NaN for what is not known.
        """
        return self._scores.so_far()

    @guarded
    def experts(self, question: int, most: int = 5) -> list[tuple[str, float]]:
        """Name the experts that carry the weight of a question now.

        Parameters
        ----------
        question : int
            The number of the question.
        most : int
            How many experts to name.

        Returns
        -------
        list of (str, float)
            The heaviest experts in words, with their weights. Empty if the method is not "auto".
        """
        return self._questions.experts(question, most)

    def meanings(self) -> dict[str, str]:
        """Say of each question what its predictions are.

        Returns
        -------
        dict from str to str
            "mean" or "return", by the names of the questions.
        """
        return {name: "mean" if scale.mean else "return" for name, scale in zip(self.names, self.scales, strict=True)}

    @guarded
    def counters(self) -> dict[str, int]:
        """Count what happened to signals.

        Returns
        -------
        dict from str to int
            Values that were clipped, bounds that were widened, collisions of hashed tiles, and gaps that the samples do not
            mark as starts.
        """
        counted, bad = self._questions.counters(), int(self._state["counts"][BAD_GAMMAS])
        return {**counted, "clipped": counted["clipped"] + bad, "gaps": self._pace.gaps}

    @guarded
    def state(self) -> dict[str, np.ndarray]:
        return Resumable.state(self)

    @guarded
    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        Resumable.restore(self, state)

    def _possible(self, saved: Mapping[str, np.ndarray]) -> dict[str, Any]:
        return {"counts": (saved["counts"] >= 0) & (saved["counts"] <= MAX_COUNT)}
