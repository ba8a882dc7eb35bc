"""General value functions beside control (Sutton and others 2011): predictions about any signal, under any policy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trueonline.inputs import number, unit
from trueonline.learners.loading import load


class Step(NamedTuple):
    """A transition, as cumulants see it.

    Attributes
    ----------
    observation : object
        The observation of the state that is left.
    action : int
        The action taken there.
    reward : float
        The reward.
    next_observation : object or None
        The observation of the state that is entered. None where the episode ends.
    """

    observation: Any
    action: int
    reward: float
    next_observation: Any


@dataclass(frozen=True)
class Demon:
    """A question about the future: the discounted sum of a signal, if actions were those of a policy.

    Parameters
    ----------
    name : str
        The name of the question.
    cumulant : callable or int
        The signal: from a `Step` to a number, or to True or False. A whole number i is the signal that the observation has at place
        i, as the next observation shows it. Where the episode ends this signal is 0, as there is no next observation.
    discount : float or callable
        γ, or a function from the next observation to γ. Where the episode ends it is 0.
    policy : callable, optional
        The target policy π: from an observation to the probability of each action. By default the policy of the agent.
    """

    name: str
    cumulant: Callable[[Step], float] | int
    discount: float | Callable[[Any], float]
    policy: Callable[[Any], Any] | None = None

    def signal(self, step: Step) -> float:
        """The signal of a transition.

        Parameters
        ----------
        step : Step
            The transition.

        Returns
        -------
        float
            The signal.
        """
        if callable(self.cumulant):
            return self.cumulant(step)
        return 0.0 if step.next_observation is None else float(np.ravel(step.next_observation)[self.cumulant])

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.replace("_", "").replace(" ", "").replace("-", "").isalnum():
            raise ValueError(f"name must be made of letters, digits, spaces, - and _, got {self.name!r}")
        if not callable(self.cumulant) and (type(self.cumulant) is not int or self.cumulant < 0):
            raise ValueError(
                f"cumulant must be a function of a Step, or a place in the observation (0, 1, …), got {self.cumulant!r:.80}"
            )
        if self.policy is not None and not callable(self.policy):
            raise ValueError(f"policy must be a function of an observation, got {self.policy!r:.80}")
        if not callable(self.discount):
            unit("discount", self.discount)


class Demons:
    """An agent with demons, which learn from every transition that the agent makes.

    A demon about the agent's own policy is true online TD(λ). A demon about another policy π is Tree Backup(λ), which learns from
    each transition with the importance ratio π(a|s)/b(a|s) of this transition alone. So its traces do not grow with rare actions.
    The agent learns and acts as it would alone.

    Parameters
    ----------
    agent : Agent
        The agent. If a demon has a policy, the agent's policy must have `probabilities`.
    features : callable
        It makes the features of an observation.
    demons : iterable of Demon
        The questions.
    step_size : float
        α of the demons.
    trace_decay : float, optional
        λ of the demons.

    Attributes
    ----------
    agent : Agent
        The agent.
    learners : dict
        The learner of each demon by its name.

    Raises
    ------
    ValueError
        If two demons have one name, or the agent's policy cannot say its probabilities.

    Examples
    --------
    >>> import trueonline as to
    >>> env = to.control.environment(to.problems.collision())
    >>> features = to.features.from_space(env.observation_space)
    >>> agent = to.control.TrueOnlineSarsa(8, 2, 0.1, 0.9, 0.9, to.control.Uniform(), seed=0)
    >>> crash = Demon("crash", lambda step: step.reward, 0.9, lambda state: [1.0, 0.0])   # if it always went on
    >>> demons = Demons(agent, features, [crash], step_size=0.05)
    >>> _ = to.control.train(env, demons, demons.features, episodes=3000)
    >>> demons.predict(7).round(1), demons.predict(6).round(1)
    (array([1.]), array([0.9]))
    """

    def __init__(
        self,
        agent: Any,
        features: Callable[[Any], Any],
        demons: Iterable[Demon],
        step_size: float,
        trace_decay: float = 0.9,
    ) -> None:
        from trueonline import TreeBackup, TrueOnlineTD

        self.agent, self._features = agent, features
        self.demons = tuple(demons)
        names = [demon.name for demon in self.demons]
        if len({*names, "agent"}) <= len(names) or not names:
            raise ValueError(f"demons must be at least one, with different names that are not 'agent', got {names}")
        self._has_policies = any(demon.policy is not None for demon in self.demons)
        if self._has_policies and not hasattr(agent.policy, "probabilities"):
            raise ValueError(
                f"demons with a policy need an agent whose policy has probabilities(values, t), got {agent.policy!r}"
            )
        self.learners = {
            demon.name: (TrueOnlineTD if demon.policy is None else TreeBackup)(
                agent.n_features, step_size, trace_decay, 1.0
            )
            for demon in self.demons
        }
        self._observation: Any = None
        self._left: tuple[Any, int, float] | None = None  # the observation, the action, and its probability

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.agent.n_features

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return self.agent.n_actions

    @property
    def rng(self) -> Any:
        """The random numbers of the agent."""
        return self.agent.rng

    def features(self, observation: Any) -> Any:
        """The features of an observation, which is the newest. Give this function to `train` in place of the features.

        Parameters
        ----------
        observation : object
            What the environment returned.

        Returns
        -------
        array
            The features.
        """
        self._observation = np.copy(observation) if isinstance(observation, np.ndarray) else observation
        return self._features(observation)

    def start(self, x: Any) -> int:
        """Begin an episode, and choose its first action.

        Parameters
        ----------
        x : array
            The features of the newest observation.

        Returns
        -------
        int
            The action.
        """
        self._check_observation()
        action = self.agent.start(x)
        for learner in self.learners.values():
            learner.start(x)
        return self._act(x, action)

    def step(self, reward: float, x: Any) -> int:
        """Learn from the last transition, and choose the next action.

        Parameters
        ----------
        reward : float
            The reward of the transition.
        x : array
            The features of the newest observation.

        Returns
        -------
        int
            The next action.
        """
        self._learn(reward, x, self._observation)
        return self._act(x, self.agent.step(reward, x))

    def end(self, reward: float) -> None:
        """Learn from the last transition of an episode that has ended.

        Parameters
        ----------
        reward : float
            The reward of the transition.
        """
        self._learn(reward, None, None)
        self.agent.end(reward)

    def truncate(self, reward: float, x: Any) -> None:
        """Learn from the last transition of an episode that was truncated.

        Parameters
        ----------
        reward : float
            The reward of the transition.
        x : array
            The features of the newest observation.
        """
        self._learn(reward, x, self._observation)
        self.agent.truncate(reward, x)

    def _act(self, x: Any, action: int) -> int:
        chance = 1.0
        if self._has_policies:
            chance = float(self.agent.policy.probabilities(np.array(self.agent.values(x)), self.agent.steps)[action])
        self._left, self._observation = (self._observation, action, chance), None
        return action

    def _check_observation(self) -> None:
        if self._observation is None:
            raise ValueError("demons need each observation: give their own `features` to `train`, and call it for each x")

    def _learn(self, reward: float, x: Any, entered: Any) -> None:
        """Let all demons learn, after the numbers of all of them were checked."""
        if self._left is None:
            raise ValueError("call start first: an episode that was going on when demons were saved is not resumed")
        if x is not None:
            self._check_observation()
        left, action, chance = self._left
        step, updates = Step(left, action, number("reward", reward), entered), []
        for demon in self.demons:
            given = {"discount": self._discount(demon, x, entered)}
            if demon.policy is not None:
                wanted = np.asarray(demon.policy(left), float)
                if wanted.shape != (self.n_actions,) or not (wanted >= 0.0).all() or abs(wanted.sum() - 1.0) > 1e-9:
                    raise ValueError(f"the policy of {demon.name} must give {self.n_actions} probabilities, got {wanted}")
                given |= {"ratio": float(wanted[action]) / chance, "probability": float(wanted[action])}
            value = demon.signal(step)
            signal = float(value) if isinstance(value, bool | np.bool_) else value
            updates.append((demon.name, number(f"the cumulant of {demon.name}", signal), given))
        for name, cumulant, given in updates:
            self.learners[name].update(cumulant, x, **given)

    @staticmethod
    def _discount(demon: Demon, x: Any, entered: Any) -> float:
        if x is None:
            return 0.0
        return unit(
            f"the discount of {demon.name}", demon.discount(entered) if callable(demon.discount) else demon.discount
        )

    def predict(self, observation: Any) -> np.ndarray:
        """The answers of all demons.

        Parameters
        ----------
        observation : object
            An observation.

        Returns
        -------
        numpy.ndarray
            The predicted discounted sums, in the order of `demons`.
        """
        x = self._features(observation)
        return np.array([learner.predict(x) for learner in self.learners.values()])

    def save(self, folder: str | os.PathLike) -> None:
        """Save the agent and all demons, one file each, between two episodes. Cumulants and policies are code and are not saved.

        A kill during this call may leave files of different times.

        Parameters
        ----------
        folder : path-like
            The folder, which is made.
        """
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name, learner in {"agent": self.agent, **self.learners}.items():
            learner.save(Path(folder) / f"{name}.npz")

    def restore(self, folder: str | os.PathLike) -> None:
        """Resume from a folder that `save` wrote, with the same questions, bit for bit. The next call is `start`.

        Parameters
        ----------
        folder : path-like
            The folder.

        Raises
        ------
        ValueError
            If a file is missing, or is of another learner. Nothing has changed then.
        """
        loaded = {name: load(Path(folder) / f"{name}.npz") for name in ("agent", *self.learners)}
        for name, learner in {"agent": self.agent, **self.learners}.items():
            if type(loaded[name]) is not type(learner) or loaded[name].n_features != learner.n_features:
                raise ValueError(f"{name}.npz in {os.fspath(folder)} holds {loaded[name]!r}, not {learner!r}")
        self.agent = loaded.pop("agent")
        self.learners, self._left = loaded, None
