"""What processes with linear features have in common, whether somebody acts in them or not."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from trueonline.inputs import number, read_only, unit
from trueonline.problems.array_checks import array, check_features, start_states


class LinearProblem:
    """A process over k states, with a row of features for each. A subclass has `values` and the `stationary` distribution."""

    values: Any
    stationary: Any

    def _take(
        self, transitions: np.ndarray, rewards: Any, reward_std: Any, features: Any, discount: Any, start: Any
    ) -> np.ndarray:
        """Check and keep the parts of the process; return the probability of each state to be the first of an episode."""
        k = len(transitions)
        R = array("rewards", rewards, transitions.ndim)
        if R.shape != transitions.shape:
            raise ValueError(f"rewards must have the shape of transitions, {transitions.shape}, got {R.shape}")
        phi = np.eye(k) if features is None else array("features", features, 2)
        check_features(phi, k)
        self.start, shares = start_states(start, k)
        self.reward_std = number("reward_std", reward_std, "a finite number ≥ 0", lambda std: 0.0 <= std < np.inf)
        self.transitions, self.rewards, self.features = (read_only(part) for part in (transitions, R, phi))
        self.discount = unit("discount", discount)
        return shares

    @property
    def n_states(self) -> int:
        """The number of states, k."""
        return len(self.transitions)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.features.shape[1]

    @cached_property
    def lms_weights(self) -> np.ndarray:
        """The weights that minimise the mean squared error Σ_s d(s) (v(s) − wᵀφ(s))². If there are several, the shortest."""
        root = np.sqrt(self.stationary)[:, None]
        return np.linalg.lstsq(root * self.features, root[:, 0] * self.values)[0]
