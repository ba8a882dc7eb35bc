"""Decision processes of this package as Gymnasium environments."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from trueonline.problems import AccessControl, OffPolicyProblem


def environment(problem: Any) -> gymnasium.Env:
    """Let an agent act in a decision process with finitely many states.

    Observations are the numbers of states. `features.from_space` makes a table of them, and `problem.features[state]` are those of
    an `OffPolicyProblem`. Its policies play no part: the agent acts.

    Parameters
    ----------
    problem : problems.AccessControl or problems.OffPolicyProblem
        The process, such as `problems.collision()`.

    Returns
    -------
    gymnasium.Env
        The environment. A process without an end never terminates: wrap it in `gymnasium.wrappers.TimeLimit`.

    Raises
    ------
    TypeError
        If `problem` is something else.

    Examples
    --------
    >>> import trueonline as to
    >>> env = to.control.environment(to.problems.collision())
    >>> state, _ = env.reset(seed=0)
    >>> total, terminated = 0.0, False
    >>> while not terminated:
    ...     state, reward, terminated, truncated, _ = env.step(0)   # forward, into the wall
    ...     total += reward
    >>> total
    1.0
    """
    if not isinstance(problem, AccessControl | OffPolicyProblem):
        raise TypeError(f"problem must be a problems.AccessControl or a problems.OffPolicyProblem, got {problem!r:.80}")
    return _Process(problem)


class _Process(gymnasium.Env):
    def __init__(self, problem: AccessControl | OffPolicyProblem) -> None:
        self.problem = problem
        self.observation_space = gymnasium.spaces.Discrete(problem.n_states)
        self.action_space = gymnasium.spaces.Discrete(problem.n_actions)
        self._state: int | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        start = self.problem.start
        self._state = start if isinstance(start, int) else self._draw(start)
        return self._state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if self._state is None or action not in self.action_space:
            raise ValueError(f"call reset first, and give an action of {self.action_space}, got {action!r}")
        action = int(action)  # True would be a mask
        if isinstance(self.problem, AccessControl):
            reward, self._state = self.problem.step(self._state, action, self.np_random)
            return self._state, reward, False, False, {}
        state, problem = self._state, self.problem
        following = self._draw(problem.transitions[state, action])
        reward = problem.rewards[state, action, following] + problem.reward_std * self.np_random.standard_normal()
        if following < problem.n_states:
            self._state = following
            return following, float(reward), False, False, {}
        self._state = None  # the end, which is no state
        return state, float(reward), True, False, {}

    def _draw(self, shares: np.ndarray) -> int:
        return int(self.np_random.choice(len(shares), p=shares))
