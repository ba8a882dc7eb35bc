"""What stands between an environment and a network: normalised observations, scaled rewards, and the time in the episode.

Streaming deep RL needs them (Elsayed, Vasan and Mahmood 2024): nothing else keeps inputs and errors near 1, because there are no
batches. Each part can be used alone. An agent has them by its arguments `normalise`, `scale_rewards` and `time_limit`.
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np

from trueonline import inputs
from trueonline.core.compiling.kernels import call
from trueonline.deep.kernels import MOST_INPUT, NORMALISED, OBSERVE, SMALL
from trueonline.deep.network import limited

FIRST_TIME = -0.5  # of an episode


class RunningMoments:
    """The running mean and variance of vectors (Welford), which normalise them.

    A vector x becomes (x − mean)/√(variance + 1e-8). The variance divides by the count less 1, and is 1 for fewer than two vectors.

    Parameters
    ----------
    n : int
        The length of the vectors.

    Examples
    --------
    >>> moments = RunningMoments(1)
    >>> [moments.observe([x]).round(3).tolist() for x in (1.0, 3.0, 5.0)]
    [[0.0], [0.707], [1.0]]
    >>> moments([3.0]).tolist()  # the same as ever, because nothing is observed
    [0.0]
    """

    def __init__(self, n: int) -> None:
        self.n = inputs.count("n", n)
        self._moments = np.zeros(1 + 2 * self.n)

    @property
    def count(self) -> int:
        """The number of vectors observed."""
        return int(self._moments[0])

    @property
    def mean(self) -> np.ndarray:
        """A copy of their mean."""
        return self._moments[1 : 1 + self.n].copy()

    @property
    def variance(self) -> np.ndarray:
        """A copy of their variance."""
        return self._moments[1 + self.n :] / (self.count - 1) if self.count > 1 else np.ones(self.n)

    def observe(self, x: Any) -> np.ndarray:
        """Take a vector into account, and normalise it.

        Parameters
        ----------
        x : array_like
            The vector.

        Returns
        -------
        numpy.ndarray
            The vector, normalised.

        Raises
        ------
        ValueError
            For a vector of another length, or with a number that is not finite. Nothing has changed then.
        """
        x = self._checked(x)
        call(OBSERVE, self._moments, x)
        return self._normalised(x)

    def __call__(self, x: Any) -> np.ndarray:
        """Normalise a vector, and leave the moments as they are.

        Parameters
        ----------
        x : array_like
            The vector.

        Returns
        -------
        numpy.ndarray
            The vector, normalised.
        """
        return self._normalised(self._checked(x))

    def _checked(self, x: Any) -> np.ndarray:
        return limited(x, self.n, "x")

    def _normalised(self, x: np.ndarray) -> np.ndarray:
        out = np.empty(self.n)
        call(NORMALISED, self._moments, x, out)
        return out


class RewardScale:
    """Rewards, divided by the running standard deviation of their discounted sum.

        u ← γ·u·(1 − end) + R,  and R becomes R/√(variance of u + 1e-8)

    As in the paper's program, u forgets the past at the last reward of an episode, and not before the first reward of the next.

    Parameters
    ----------
    discount : float
        γ in [0, 1].

    Examples
    --------
    >>> scale = RewardScale(discount=0.5)
    >>> [round(scale.observe(reward), 3) for reward in (1.0, 0.0, 2.0)]
    [1.0, 0.0, 2.219]
    """

    def __init__(self, discount: float) -> None:
        self.discount = inputs.unit("discount", discount)
        self._moments, self._sum = np.zeros(3), 0.0

    @property
    def variance(self) -> float:
        """The variance of u."""
        return float(self._moments[2] / (self._moments[0] - 1.0)) if self._moments[0] > 1.0 else 1.0

    def observe(self, reward: float, end: bool = False) -> float:
        """Take a reward into account, and scale it.

        Parameters
        ----------
        reward : float
            R.
        end : bool, optional
            Whether it is the last reward of an episode, terminated or truncated.

        Returns
        -------
        float
            R, scaled.
        """
        size = f"a number of at most {MOST_INPUT:g} in size, because it is scaled"
        reward = inputs.number("reward", reward, size, lambda r: abs(r) <= MOST_INPUT)
        self._sum = reward if end else self.discount * self._sum + reward
        call(OBSERVE, self._moments, np.array([self._sum]))
        return reward / math.sqrt(self.variance + SMALL)


class EpisodeTime:
    """The time in the episode as one more input: −0.5 at the beginning, and 0.5 at the limit.

    Parameters
    ----------
    limit : int
        The number of steps after which an episode is truncated.

    Examples
    --------
    >>> time = EpisodeTime(limit=4)
    >>> [time(steps) for steps in range(5)]
    [-0.5, -0.25, 0.0, 0.25, 0.5]
    """

    def __init__(self, limit: int) -> None:
        self.limit = inputs.count("time_limit", limit)

    def __call__(self, steps: int) -> float:
        """The input after so many steps.

        Parameters
        ----------
        steps : int
            Steps since the beginning of the episode.

        Returns
        -------
        float
            The time.
        """
        return FIRST_TIME + steps / self.limit


class Parts:
    """The parts of one agent, and their state. `copy` is what makes a step that is refused change nothing."""

    def __init__(self, n: int, discount: float, normalise: bool, scale_rewards: bool, time_limit: int | None) -> None:
        self.n = n
        self.moments = RunningMoments(n) if inputs.flag("normalise", normalise) else None
        self.rewards = RewardScale(discount) if inputs.flag("scale_rewards", scale_rewards) else None
        self.time = None if time_limit is None else EpisodeTime(time_limit)
        self.steps = 0  # in the episode

    def copy(self) -> Parts:
        """The same parts, in the same state."""
        made = copy(self)
        for name in ("moments", "rewards"):
            part = getattr(self, name)
            if part is not None:
                twin = copy(part)
                twin._moments = part._moments.copy()
                setattr(made, name, twin)
        return made

    def start(self, x: np.ndarray) -> np.ndarray:
        """The network's input for the first observation of an episode."""
        self.steps = 0
        return self._arrived(x)

    def step(self, reward: float, x: np.ndarray | None, end: bool) -> tuple[float, np.ndarray | None]:
        """The scaled reward, and the network's input for the next observation; None where there is none."""
        self.steps += 1
        scaled = reward if self.rewards is None else self.rewards.observe(reward, end)
        return scaled, None if x is None else self._arrived(x)

    def inputs(self, x: np.ndarray, steps: int) -> np.ndarray:
        """The network's input for an observation after so many steps. Nothing is observed."""
        shown = x if self.moments is None else self.moments(x)
        return shown if self.time is None else np.append(shown, self.time(steps))

    def _arrived(self, x: np.ndarray) -> np.ndarray:
        if self.moments is not None:
            call(OBSERVE, self.moments._moments, x)
        return self.inputs(x, self.steps)

    def settings(self) -> dict[str, Any]:
        """The arguments of an agent that make them."""
        return {
            "normalise": self.moments is not None,
            "scale_rewards": self.rewards is not None,
            "time_limit": None if self.time is None else self.time.limit,
        }

    def dump(self) -> dict[str, np.ndarray]:
        """Their state as arrays."""
        parts = {"time": np.array(self.steps)}
        if self.moments is not None:
            parts["observed"] = self.moments._moments
        if self.rewards is not None:
            parts |= {"rewarded": self.rewards._moments, "reward_sum": np.array(self.rewards._sum)}
        return parts

    def restore(self, parts: dict[str, np.ndarray]) -> None:
        """Take over a saved state; ValueError if it does not fit."""
        self.steps = inputs.saved_count("time", inputs.saved_array(parts, "time", (), np.int64))
        for name, part in (("observed", self.moments), ("rewarded", self.rewards)):
            if part is not None:
                moments = inputs.saved_array(parts, name, part._moments.shape, np.float64)
                count, squares = moments[0], moments[1 + moments.size // 2 :]
                inputs.check_saved({name: np.isfinite(moments).all() and count >= 0 and (squares >= 0.0).all()})
                part._moments = moments.copy()
        if self.rewards is not None:
            self.rewards._sum = inputs.number(
                "reward_sum", inputs.saved_array(parts, "reward_sum", (), np.float64).item()
            )
