"""`AutoQuestions`: one mixture for each question, and one for the next value of each target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trueonline import inputs
from trueonline.nexting.auto.experts import all_experts
from trueonline.nexting.auto.mixture import Mixture
from trueonline.nexting.auto.views import Views

NEXT_LOOKS, NEXT_ROOM = (0.5,), 4  # the next value is known at once


class AutoQuestions:
    """Answers questions about targets, each with a mixture of its own over views of its own.

    The next value of each target is forecast too, by a mixture with γ = 0. Its errors tell what is unusual.

    Parameters
    ----------
    signals : sequence of str
        The signals that predictions depend on.
    targets : sequence of str
        The target of each question.

    Attributes
    ----------
    targets : tuple of str
        The different targets.
    seen : dict from str to list of str
        The signals that `learn` needs for each target: the target itself, then the others.
    """

    def __init__(self, signals: Sequence[str], targets: Sequence[str]) -> None:
        self.targets = tuple(dict.fromkeys(targets))
        others = {target: [name for name in signals if name != target] for target in self.targets}
        self.seen = {target: [target, *names] for target, names in others.items()}
        self._asked = tuple(targets)
        self._views = [Views(others[target]) for target in targets]
        self.mixtures = [Mixture(view.feature_sets, all_experts(view.feature_sets), view.bases) for view in self._views]
        self._next_views = [Views(others[target]) for target in self.targets]
        self._next = [
            Mixture(view.feature_sets, all_experts(view.feature_sets, (0.0,)), view.bases, NEXT_LOOKS, room=NEXT_ROOM)
            for view in self._next_views
        ]
        self._expected = np.full(len(self.targets), np.nan)  # at the coming sample

    def learn(
        self,
        seconds: np.ndarray,
        seen: Mapping[str, np.ndarray],
        gammas: Sequence[np.ndarray],
        elapsed: Sequence[np.ndarray],
        starts: np.ndarray,
    ) -> np.ndarray:
        """Learn from a block of samples.

        Parameters
        ----------
        seconds : array of shape (T,)
            The times by the clock on the wall.
        seen : mapping from str to array of shape (T, signals)
            For each target, the signals of `seen` with its name: the target itself, and the others.
        gammas, elapsed : sequence of array of shape (T,)
            For each question, γ of the step into each sample, and its duration in units of the usual one.
        starts : array of bool, of shape (T,)
            Where something new begins.

        Returns
        -------
        array of shape (T, questions)
            The predicted mean over the horizon at each sample.
        """
        out = np.empty((len(seconds), len(self._asked)))
        for q, (target, view, mixture) in enumerate(zip(self._asked, self._views, self.mixtures, strict=True)):
            X, bases = view.see(seconds, seen[target], gammas[q])
            out[:, q] = mixture.run_checked(X, seen[target][:, 0].copy(), bases, gammas[q], elapsed[q], starts)
        return out

    def expect(self, seconds: np.ndarray, seen: Mapping[str, np.ndarray], starts: np.ndarray) -> np.ndarray:
        """Learn to forecast the next value of each target.

        Parameters
        ----------
        seconds, seen, starts
            As for `learn`.

        Returns
        -------
        array of shape (T, targets)
            What was expected at each sample, one sample before. NaN at the first.
        """
        expected = np.empty((len(seconds), len(self.targets)))
        none, one = np.zeros(len(seconds)), np.ones(len(seconds))
        for j, (target, view, mixture) in enumerate(zip(self.targets, self._next_views, self._next, strict=True)):
            X, bases = view.see(seconds, seen[target], none)
            forecasts = mixture.run_checked(X, seen[target][:, 0].copy(), bases, none, one, starts)
            expected[:1, j] = self._expected[j]
            expected[1:, j] = forecasts[:-1]
            self._expected[j] = forecasts[-1]
        return expected

    def experts(self, question: int, most: int) -> list[tuple[str, float]]:
        """The heaviest experts of a question, in words, with their weights."""
        weights = self.mixtures[question].weights
        order = np.argsort(-weights, kind="stable")[:most]
        return [(self.mixtures[question].experts[i].words(), float(weights[i])) for i in order]

    def _parts(self) -> dict[str, Mixture | Views]:
        groups: dict[str, Sequence[Mixture | Views]] = {"view": self._views, "mixture": self.mixtures}
        groups |= {"next_view": self._next_views, "next": self._next}
        return {f"{name}{i}": each for name, group in groups.items() for i, each in enumerate(group)}

    def state(self) -> dict[str, np.ndarray]:
        """Copy everything that `restore` needs to resume bit for bit."""
        states = {f"{name}/{key}": array for name, part in self._parts().items() for key, array in part.state().items()}
        return {**states, "own/expected": self._expected.copy()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Resume from a state of the same questions. ValueError or KeyError if it does not fit."""
        parts = inputs.saved_parts(state)
        for name, part in self._parts().items():
            part.restore(parts[name])
        expected = inputs.saved_array(parts["own"], "expected", self._expected.shape, np.float64).copy()
        inputs.check_saved({"expected": ~np.isinf(expected)})
        self._expected = expected
