"""Stream AC(λ) (Elsayed, Vasan and Mahmood 2024, arXiv 2410.14606): an actor and a critic, one transition at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline import inputs
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

    Parameters
    ----------
    actor : MLP
        The network of the policy, with an output for each action. It belongs to the agent from now on.
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
    seed : int or sequence of int, optional
        The seed of the actions.

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
        seed: Any = None,
    ) -> None:
        self.actor = checked_net("actor", actor)
        checked_net("critic", critic, outputs=1)
        if actor is critic:
            raise ValueError("actor and critic must be two networks, got one for both")
        if actor.n_inputs != critic.n_inputs:
            raise ValueError(f"actor and critic must have as many inputs, got {actor.n_inputs} and {critic.n_inputs}")
        self._kappa_policy = inputs.positive("kappa_policy", kappa_policy)
        self._entropy = inputs.number("entropy", entropy, "a finite number ≥ 0", lambda v: 0.0 <= v < np.inf)
        kappa_value = inputs.positive("kappa_value", kappa_value)
        super().__init__(critic, discount, trace_decay, step_size, kappa_value, _by_probability, seed)

    def _attach(self) -> None:
        super()._attach()
        self.actor._numbers[kernels.KAPPA] = self.kappa_policy
        self.actor._numbers[kernels.ENTROPY] = self.entropy

    def _nets(self) -> tuple[MLP, ...]:
        return self.net, self.actor

    def _net_names(self) -> tuple[str, ...]:
        return "critic", "actor"

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

    def learn(
        self, x: FeaturesLike, action: int, reward: float, x_next: FeaturesLike | None, terminated: bool = False
    ) -> float:
        """Learn from one transition.

        Parameters
        ----------
        x : features
            The state left: a float array, or sparse features in any of the package's forms.
        action : int
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
        outputs = self.actor(x)
        shares = np.exp(outputs - outputs.max())
        return shares / shares.sum()

    values = probabilities  # the best action of a greedy episode is the most probable one

    def run(self, X: Any, actions: Any, rewards: Any, terminated: Any = None, *, resume: bool = False) -> np.ndarray:
        """Learn from a stream of T transitions in one call, as `learn` does.

        Parameters
        ----------
        X : array_like, shape (T + 1, n_inputs)
            The states. Transition t leads from row t to row t + 1.
        actions : array_like of int
            T actions.
        rewards : array_like
            T rewards.
        terminated : array_like of bool, optional
            Whether each transition ended an episode. The row that it leads to then begins the next episode.
        resume : bool, optional
            Whether the stream continues the one before, with its trace. By default it begins without a trace.

        Returns
        -------
        numpy.ndarray
            The TD error of each transition.
        """
        return self._run(X, self._checked_actions(actions, np.size(rewards)), rewards, (), terminated, None, resume)

    def _step(self, reward: float, x_next: np.ndarray, gamma: float, decay: float) -> None:
        self._transition(self._here, self._action, reward, x_next, (), gamma, decay)
        self._action = None  # a policy that fails does not make the agent learn twice
        self._action, self._greedy = self._choose(self.values(x_next), self._steps)

    def _last(self, reward: float, x_next: np.ndarray | None, gamma: float) -> None:
        self._transition(self._here, self._action, reward, x_next, (), gamma, 0.0)

    def _settings(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("kappa_policy", "kappa_value", "entropy")}
        return {**{name: value for name, value in super()._settings().items() if name != "kappa"}, **own, "policy": OWN}

    @classmethod
    def _policy(cls, policy: Any) -> dict[str, Any]:
        if policy != OWN:
            raise ValueError("its policy is not the actor")
        return {}


def _by_probability(probabilities: np.ndarray, rng: np.random.Generator, t: int) -> int:
    """Action a with probability π(a|S)."""
    return min(int(np.searchsorted(np.cumsum(probabilities), rng.random(), side="right")), len(probabilities) - 1)
