"""`AutoQuestions`: one mixture for each question, and one for the next value of each target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueonline.inputs import Resumable
from trueonline.streams.mixture.experts import all_experts
from trueonline.streams.mixture.mixture import Mixture
from trueonline.streams.mixture.stream_views import HOLD, Views
from trueonline.streams.questions.question_samples import QuestionSamples

NEXT_LOOKS, NEXT_ROOM = (0.5,), 4  # the next value is known at once
NEXT_PACES = ((0.1, 0.0), (0.5, 0.0))


class AutoQuestions(Resumable):
    """Answers questions about targets, each with a mixture of its own over views of its own.

    The next value of each target is forecast too, by a mixture with γ = 0. Its errors tell what is unusual.

    Parameters
    ----------
    signals : sequence of str
        The signals that predictions depend on.
    targets : sequence of str
        The target of each question.
    observed : sequence of str
        All signals, in the order of `QuestionSamples.observed`.
    """

    def __init__(self, signals: Sequence[str], targets: Sequence[str], observed: Sequence[str]) -> None:
        self.targets = tuple(dict.fromkeys(targets))
        others = {target: [name for name in signals if name != target] for target in self.targets}
        self._columns = {  # the target itself, then the others
            target: np.array([observed.index(name) for name in (target, *names)]) for target, names in others.items()
        }
        self._asked = tuple(targets)
        self._views = [Views(others[target]) for target in targets]
        self.mixtures = [Mixture(view.feature_sets, all_experts(view.feature_sets), view.bases) for view in self._views]
        self._next_views = [Views(others[target]) for target in self.targets]
        self._next = [
            Mixture(view.feature_sets, all_experts(view.feature_sets, NEXT_PACES), view.bases, NEXT_LOOKS, room=NEXT_ROOM)
            for view in self._next_views
        ]
        groups: dict[str, Sequence[Mixture | Views]] = {
            "view": self._views,
            "mixture": self.mixtures,
            "next_view": self._next_views,
            "next": self._next,
        }
        self._parts = {f"{name}{i}": each for name, group in groups.items() for i, each in enumerate(group)}
        self._state = {"expected": np.full(len(self.targets), np.nan)}  # at the coming sample

    def learn(self, samples: QuestionSamples) -> tuple[np.ndarray, np.ndarray]:
        """Learn from a block of samples.

        Parameters
        ----------
        samples : QuestionSamples
            The samples.

        Returns
        -------
        predictions : array of shape (T, questions)
            The predicted mean over the horizon at each sample.
        expected : array of shape (T, targets)
            The value of each target that was expected at each sample, one sample before. NaN at the first.
        """
        seen = {target: samples.observed.take(columns, axis=1) for target, columns in self._columns.items()}
        predictions = np.empty((len(samples.seconds), len(self._asked)))
        for q, (target, view, mixture) in enumerate(zip(self._asked, self._views, self.mixtures, strict=True)):
            x, gammas, elapsed = seen[target], samples.gammas[q], samples.elapsed[q]
            predictions[:, q] = _forecasts(samples, x, gammas, elapsed, view, mixture)
        expected = np.empty((len(samples.seconds), len(self.targets)))
        none, one = np.zeros(len(expected)), np.ones(len(expected))
        for j, (target, view, mixture) in enumerate(zip(self.targets, self._next_views, self._next, strict=True)):
            coming = _forecasts(samples, seen[target], none, one, view, mixture)
            expected[:1, j] = self._state["expected"][j]
            expected[1:, j] = coming[:-1]
            self._state["expected"][j] = coming[-1]
        return predictions, expected

    def experts(self, question: int, most: int) -> list[tuple[str, float]]:
        """The heaviest experts of a question, in words, with their weights."""
        weights = self.mixtures[question].weights
        order = np.argsort(-weights, kind="stable")[:most]
        return [(self.mixtures[question].experts[i].words(), float(weights[i])) for i in order]

    def counters(self) -> dict[str, int]:
        """Nothing is clipped, and nothing that matters collides."""
        return {"clipped": 0, "widened": 0, "collisions": 0}

    def advice(self) -> str:
        """The remedy for weights that diverged. From a sound state they cannot diverge."""
        return "the checkpoint is damaged; start from scratch with --fresh"

    def _possible(self, saved: Mapping[str, np.ndarray]) -> dict[str, Any]:
        return {"expected": ~np.isinf(saved["expected"])}


def _forecasts(
    samples: QuestionSamples,
    seen: np.ndarray,
    gammas: np.ndarray,
    elapsed: np.ndarray,
    view: Views,
    mixture: Mixture,
) -> np.ndarray:
    """The forecasts of a mixture for the first of the signals that it sees."""
    X, bases = view.see(samples.seconds, seen, gammas)
    return mixture.run_checked(X, bases[:, HOLD].copy(), bases, gammas, elapsed, samples.starts)
