"""`HordeQuestions`: all questions answered by one method with one step-size, over tiles of all signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueonline.inputs import Resumable
from trueonline.streams.horde.horde import Horde
from trueonline.streams.questions.prediction_setup import Setup
from trueonline.streams.questions.question_samples import QuestionSamples
from trueonline.streams.questions.questions import Question
from trueonline.streams.questions.time_scales import TimeScale
from trueonline.streams.signals import Bounds, spelling


class HordeQuestions(Resumable):
    """Answers the questions of a setup with a `Horde`.

    Parameters
    ----------
    setup : Setup
        The signals, targets and parameters.
    names : sequence of str
        The names of the questions.
    scales : sequence of TimeScale
        The time scale of each question.
    observed : sequence of str
        All signals, in the order of `QuestionSamples.observed`.
    """

    def __init__(self, setup: Setup, names: Sequence[str], scales: Sequence[TimeScale], observed: Sequence[str]) -> None:
        signals = [spelling(name) for name in setup.signals]
        self._setup, self._scales = setup, tuple(scales)
        self._inputs = np.array([observed.index(name) for name in signals])
        self.coder = setup.coder()
        self.bounds = Bounds(signals, {spelling(name): (low, high) for name, (low, high) in setup.bounds.items()})
        alpha = setup.step_size / self.coder.n_active
        self.questions = tuple(
            Question(name, scale.key, setup.trace_decay, alpha, setup.method)
            for name, scale in zip(names, scales, strict=True)
        )
        self.horde = Horde(self.coder.n_features, self.questions)
        self._state, self._parts = {}, {"horde": self.horde, "bounds": self.bounds, "coder": self.coder}

    def learn(self, samples: QuestionSamples) -> tuple[np.ndarray, None]:
        """Learn from a block of samples.

        Parameters
        ----------
        samples : QuestionSamples
            The samples.

        Returns
        -------
        predictions : array of shape (T, questions)
            V_t(S_t) at each sample.
        expected : None
            No next values are forecast.
        """
        signals = samples.observed.take(self._inputs, axis=1)
        cumulants, starts = samples.cumulants, samples.starts
        asked = zip(self._scales, samples.gammas, strict=True)
        moving = {scale.key: gamma for scale, gamma in asked if isinstance(scale.key, str)}
        X = self.coder.many(self.bounds.scale(signals))
        first = 0
        if self.horde.features is None:
            cumulants, moving = cumulants[1:], {name: values[1:] for name, values in moving.items()}
        else:  # the transition into the first sample begins at the last sample of the previous block
            last, _ = self.horde.features
            alike = isinstance(X, np.ndarray) and len(last) == X.shape[1]
            X = np.vstack([last, X]) if alike else [last, *X]
            starts, first = np.concatenate([[False], starts]), 1
        answers = self.horde.run(X, cumulants, moving, starts=starts, last=True, resume=True)
        return answers[first:], None

    def experts(self, question: int, most: int) -> list[tuple[str, float]]:
        """One learner has no experts."""
        return []

    def advice(self) -> str:
        """The remedy for weights that diverged."""
        step_size, trace_decay = self._setup.step_size, self._setup.trace_decay
        return f"give a smaller step-size than {step_size:g}, or a smaller trace decay than {trace_decay:g}"

    def counters(self) -> dict[str, int]:
        """Count values that were clipped, bounds that were widened, and collisions of hashed tiles."""
        return {
            "clipped": int(self.bounds.clipped.sum()),
            "widened": int(self.bounds.widened.sum()),
            "collisions": self.coder.collisions,
        }

    def _possible(self, saved: Mapping[str, np.ndarray]) -> dict[str, Any]:
        state = self.horde.state()
        return {f"horde/{name}": np.isfinite(array) for name, array in state.items() if array.dtype.kind == "f"}
