"""Stream AC(λ) (Elsayed, Vasan and Mahmood 2024, arXiv 2410.14606): an actor and a critic, one transition at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline import inputs
from trueonline.control.agent import plain
from trueonline.control.policies import Policy
from trueonline.core.thread_guard import guarded
from trueonline.deep import kernels
from trueonline.deep.acting import StreamAgent
from trueonline.deep.network import MLP
from trueonline.deep.streaming import checked_net
from trueonline.inputs import FeaturesLike, Schedule, explains_arguments

OWN = {"kind": "the actor"}  # the policy in a saved file


class StreamAC(StreamAgent):
    """Stream AC(λ): an actor learns the policy, and a critic the value of states, from the same TD error.

        δ = R + γv(S′) − v(S)

    The critic learns as `StreamTD`. The trace of the actor is that of ∇[ln π(A) + τ·sign(δ)·H(π)], with the policy π in S and its
    entropy H, and its step is that of ObGD with κ of its own. π is the softmax of the actor's outputs.

    With `continuous`, an action is a vector, and π has an independent Gaussian for each of its numbers. The first half of the
    actor's outputs are their means, and the softplus ln(1 + eˢ) of the others are their standard deviations.

    Parameters
    ----------
    actor : MLP
        The network of the policy, with an output for each action, or two for each number of a continuous action. It belongs to
        the agent from now on.
    critic : MLP
        The network of the value, with one output. It belongs to the agent from now on.
    discount : float
        γ in [0, 1], the default of every transition.
    trace_decay : float
        λ in [0, 1], the default of every transition.
    kappa_policy : float, optional
        κ > 0 of the actor. A larger κ makes smaller steps.
    kappa_value : float, optional
        κ > 0 of the critic.
    entropy : float, optional
        τ ≥ 0, the weight of the entropy.
    step_size : float or callable, optional
        α > 0 of both networks, or a schedule t → α_t. It is a largest step-size: ObGD makes it smaller.
    continuous : bool, optional
        Whether actions are vectors.
    seed : int or sequence of int, optional
        The seed of the actions.
    normalise : bool, optional
        Whether observations are normalised by their running mean and variance (`RunningMoments`).
    scale_rewards : bool, optional
        Whether rewards are divided by the running standard deviation of their discounted sum (`RewardScale`).
    time_limit : int, optional
        The longest episode. The time in the episode is then the last input (`EpisodeTime`), so that the networks have one input
        more than an observation has numbers.

    Examples
    --------
    >>> from trueonline import deep
    >>> actor, critic = deep.MLP(1, (16,), 2, seed=0), deep.MLP(1, (16,), 1, seed=1)
    >>> agent = deep.StreamAC(actor, critic, discount=0.9, trace_decay=0.8, seed=0)
    >>> for step in range(500):
    ...     action = agent.start([1.0])
    ...     agent.end(float(action == 1))
    >>> agent.probabilities([1.0]).argmax()
    np.int64(1)
    """

    _shared_parameters = ""
    _entry = staticmethod(kernels.LEARN_BOTH)
    _run_entry = staticmethod(kernels.RUN_BOTH)

    @explains_arguments
    def __init__(
        self,
        actor: MLP,
        critic: MLP,
        discount: float,
        trace_decay: float,
        kappa_policy: float = 3.0,
        kappa_value: float = 2.0,
        entropy: float = 0.01,
        step_size: float | Schedule = 1.0,
        *,
        continuous: bool = False,
        seed: Any = None,
        normalise: bool = False,
        scale_rewards: bool = False,
        time_limit: int | None = None,
    ) -> None:
        self.actor = checked_net("actor", actor)
        checked_net("critic", critic, outputs=1)
        if actor is critic:
            raise ValueError("actor and critic must be two networks, got one for both")
        if actor.n_inputs != critic.n_inputs:
            raise ValueError(f"actor and critic must have as many inputs, got {actor.n_inputs} and {critic.n_inputs}")
        self._continuous = inputs.flag("continuous", continuous)
        if continuous:
            if actor.n_outputs % 2:
                raise ValueError(f"actor must have two outputs for each number of an action, got {actor.n_outputs}")
            self._entry, self._run_entry = kernels.LEARN_GAUSSIAN, kernels.RUN_GAUSSIAN
        self._kappa_policy = inputs.positive("kappa_policy", kappa_policy)
        self._entropy = inputs.number("entropy", entropy, "a finite number ≥ 0", lambda v: 0.0 <= v < np.inf)
        kappa_value = inputs.positive("kappa_value", kappa_value)
        parts: Any = {"normalise": normalise, "scale_rewards": scale_rewards, "time_limit": time_limit}
        super().__init__(critic, discount, trace_decay, step_size, kappa_value, seed=seed, **parts)

    def _attach(self) -> None:
        super()._attach()
        self.actor._numbers[kernels.KAPPA] = self.kappa_policy
        self.actor._numbers[kernels.ENTROPY] = self.entropy

    @property
    def policy(self) -> Policy:  # type: ignore[override]  # it cannot be set
        """The policy: an action with the probability that the actor gives it."""
        return _by_probability

    @property
    def continuous(self) -> bool:
        """Whether actions are vectors."""
        return self._continuous

    @property
    def n_actions(self) -> int:
        """The number of actions, or the numbers of a continuous action."""
        return self.actor.n_outputs // (2 if self.continuous else 1)

    def _nets(self) -> dict[str, MLP]:
        return {"critic": self.net, "actor": self.actor}

    @property
    def critic(self) -> MLP:
        """The network of the value."""
        return self.net

    @property
    def kappa_policy(self) -> float:
        """κ of the actor."""
        return self._kappa_policy

    @property
    def entropy(self) -> float:
        """τ, the weight of the entropy."""
        return self._entropy

    @property
    def kappa_value(self) -> float:
        """κ of the critic."""
        return self.kappa

    def _given(self) -> tuple:
        return self.net._address, self.actor._address

    def _numbered(self, action: Any) -> int:
        if not self.continuous:
            return action
        self.actor._part("taken")[: self.n_actions] = action
        return 0

    def learn(
        self, x: FeaturesLike, action: Any, reward: float, x_next: FeaturesLike | None, terminated: bool = False
    ) -> float:
        """Learn from one transition.

        Parameters
        ----------
        x : features
            The state left: a float array, or sparse features in any of the package's forms.
        action : int or array_like
            The action taken there.
        reward : float
            R.
        x_next : features or None
            The state entered. It may be None if the episode has terminated.
        terminated : bool, optional
            Whether the transition ended the episode. The traces are zero afterwards.

        Returns
        -------
        float
            The TD error δ.

        Raises
        ------
        ValueError
            For bad input, and if the critic has diverged. Nothing has changed then.
        """
        return self._learn(x, action, reward, x_next, (), terminated)

    @guarded
    def predict(self, x: FeaturesLike) -> float:
        """Predict v(S).

        Parameters
        ----------
        x : features
            The state.

        Returns
        -------
        float
            The critic's value.
        """
        return float(self.critic(x)[0])

    @guarded
    def probabilities(self, x: FeaturesLike) -> np.ndarray:
        """Compute π(a|S) for every action.

        Parameters
        ----------
        x : features
            The state.

        Returns
        -------
        numpy.ndarray
            The probability of each action.
        """
        if self.continuous:
            raise ValueError(
                "continuous actions have no probabilities: call gaussian(x) for means and standard deviations"
            )
        outputs = self.actor(x)
        shares = np.exp(outputs - outputs.max())
        return shares / shares.sum()

    values = probabilities  # the best action of a greedy episode is the most probable one

    @guarded
    def gaussian(self, x: FeaturesLike) -> tuple[np.ndarray, np.ndarray]:
        """Compute the Gaussians of continuous actions.

        Parameters
        ----------
        x : features
            The state.

        Returns
        -------
        tuple of numpy.ndarray
            The means, and the standard deviations.
        """
        if not self.continuous:
            raise ValueError("discrete actions have no Gaussians: call probabilities(x)")
        means, s = np.split(self.actor(x), 2)
        return means, np.maximum(s, 0.0) + np.log1p(np.exp(-np.abs(s)))

    def _choose(self, x: np.ndarray, t: int) -> tuple[Any, bool]:
        if not self.continuous:
            return self._checked_action(_by_probability(self.probabilities(x), self.rng, t)), True
        means, deviations = self.gaussian(x)
        return self._checked_action(means + deviations * self.rng.standard_normal(len(means))), True

    def _played(self, x: Any, policy: Policy, rng: np.random.Generator, steps: int) -> Any:
        if not self.continuous:
            return super()._played(x, policy, rng, steps)
        return self.gaussian(self.inputs(x, steps))[0]  # the most probable action

    def _checked_action(self, action: Any, name: str = "action") -> Any:
        if not self.continuous:
            return super()._checked_action(action, name)
        array = inputs.floats(name, action)
        if array.shape != (self.n_actions,) or not np.isfinite(array).all():
            raise ValueError(f"{name} must be {self.n_actions} finite numbers, got {action!r:.80}")
        return array.copy()

    def _checked_actions(self, actions: Any, rows: int) -> np.ndarray:
        if not self.continuous:
            return super()._checked_actions(actions, rows)
        array = inputs.floats("actions", actions)
        if array.shape != (rows, self.n_actions) or not np.isfinite(array).all():
            raise ValueError(
                f"actions must be {rows} rows of {self.n_actions} finite numbers, got an array of shape {array.shape}"
            )
        return array

    def _settings(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("kappa_policy", "kappa_value", "entropy", "continuous")}
        base = {name: value for name, value in super()._settings().items() if name != "kappa"}
        return {**base, **own, "policy": OWN, "action": plain(self._action)}

    @classmethod
    def _policy(cls, policy: Any) -> dict[str, Any]:
        if policy != OWN:
            raise ValueError("its policy is not the actor")
        return {}


def _by_probability(probabilities: np.ndarray, rng: np.random.Generator, t: int) -> int:
    """Action a with probability π(a|S)."""
    return min(int(np.searchsorted(np.cumsum(probabilities), rng.random(), side="right")), len(probabilities) - 1)
