"""A network whose last layer learns by true online TD(λ), and whose body learns by ObGD."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trueonline import catalog, inputs
from trueonline.control.policies import Policy
from trueonline.core import memory
from trueonline.core.memory.layout import LAM
from trueonline.core.thread_guard import guarded
from trueonline.deep import head_kernels, kernels
from trueonline.deep.acting import StreamAgent
from trueonline.deep.network import MLP
from trueonline.deep.stream_q import StreamQ
from trueonline.deep.stream_sarsa import StreamSarsa
from trueonline.deep.stream_td import StreamTD
from trueonline.deep.streaming import PARAMETERS, Streaming
from trueonline.inputs import Schedule, explains_arguments

RATE = 0.1  # the share of its error that an update of the head closes at most, by default

OWN = """\
head_step_size : float, optional
    α_h of the head. An update of the head closes the share α_h·φᵀφ of its error, with the features φ. The default is
    0.1/(units + 1): with layer normalisation φᵀφ is at most units + 1.
swift : bool, optional
    Whether the head learns by SwiftTD instead, which learns a step-size for each feature, beginning with `head_step_size`.
frozen : bool, optional
    Whether the body does not learn.
"""


class Headed(Streaming):
    """A network whose last layer is a linear learner, the head. The network follows its weights."""

    _linear = ("true_online", "swift_td")  # the methods of heads, without and with `swift`
    _acts = False

    def _take_head(self, head_step_size: float | None, swift: bool, frozen: bool) -> None:
        """Check the arguments of the head, before the network is taken."""
        self._head_step_size = None if head_step_size is None else inputs.positive("head_step_size", head_step_size)
        self._swift, self._frozen = inputs.flag("swift", swift), inputs.flag("frozen", frozen)

    def _attach(self) -> None:
        if not self.net.hidden:
            raise ValueError("net must have a hidden layer, whose units are the features of the head")
        super()._attach()
        self.net._numbers[kernels.LAST] = kernels.HEAD
        self._make_head()

    def _make_head(self) -> None:
        """Begin with the weights of the network's last layer."""
        n = self.net.hidden[-1] + 1
        kind = catalog.METHODS[self._linear[self.swift]].resolve("learner")
        shape = (n, self.n_actions) if self._acts else (n,)
        weights = self.net._w[-math.prod(shape) :].reshape(shape)
        self._head = kind(*shape, self.head_step_size, self.trace_decay, self.discount, initial_weights=weights)
        self._entry = head_kernels.compiled(self._head._rule(), self._head.method.memory)[self._acts]
        self._bind()

    def _bind(self) -> None:
        """Give the arrays of the head to the compiled step."""
        n = self.net.hidden[-1] + 1
        self._arrays = (*self._head._memory, np.empty(n))
        if self._acts:
            self._arrays = (*self._arrays, np.empty(n), np.empty(self.n_actions), self._head._numbers(0, None, None))
        else:
            self._head._bind()  # to a memory that may be another than before
            self._head._stand(np.zeros(n))

    def _given(self) -> tuple:
        return self.net._address, *self._arrays

    def _network_set(self) -> None:
        super()._network_set()
        self._make_head()

    @property
    def head(self) -> Any:
        """The linear learner of the last layer, for reading: it learns what this learner learns."""
        return self._head

    @property
    def head_step_size(self) -> float:
        """α_h of the head."""
        return RATE / (self.net.hidden[-1] + 1) if self._head_step_size is None else self._head_step_size

    @property
    def swift(self) -> bool:
        """Whether the head learns by SwiftTD."""
        return self._swift

    @property
    def frozen(self) -> bool:
        """Whether the body does not learn."""
        return self._frozen

    @property
    @guarded
    def trace(self) -> np.ndarray:
        """A copy of the traces of the body, and then of the head, as one vector."""
        e = self.net._e.copy()
        head = self._head.trace.reshape(-1)
        e[-head.size :] = head
        return inputs.read_only(e)

    def _alpha(self) -> float:
        return 0.0 if self.frozen else super()._alpha()

    def _transition(self, x: Any, output: Any, reward: Any, x_next: Any, more: tuple, gamma: float, lam: float) -> float:
        return super()._transition(x, output, reward, x_next, (*more, lam), gamma, lam)

    def _forget(self) -> None:
        super()._forget()
        memory.begin(self._head._memory)

    def _changing(self) -> list[np.ndarray]:
        return [*super()._changing(), *self._head._memory]

    def _stream(self, X: Any, outputs: Any, rewards: Any, more: tuple, gammas: Any, lams: Any, *results: Any) -> int:
        steps, (values, deltas) = self._steps, results
        for t in range(len(rewards)):
            now = tuple(int(each[t]) for each in more)
            try:
                deltas[t] = self._transition(X[t], int(outputs[t]), rewards[t], X[t + 1], now, gammas[t], lams[t])
            except ValueError:
                return t
            finally:
                self._steps = steps
            values[t] = self.net._outputs[outputs[t]]
        return len(rewards)

    def _settings(self) -> dict[str, Any]:
        own = {"head_step_size": self.head_step_size, "swift": self.swift, "frozen": self.frozen}
        return {**super()._settings(), **own}

    def _dump(self) -> dict[str, np.ndarray]:
        return {**super()._dump(), **{f"head_{name}": part for name, part in self._head._dump_memory().items()}}

    def _restore_nets(self, parts: dict[str, np.ndarray]) -> None:
        super()._restore_nets(parts)
        head = {name.removeprefix("head_"): part for name, part in parts.items() if name.startswith("head_")}
        self._head._restore_memory(head)
        self._bind()


class TrueOnlineHead(Headed, StreamTD):
    """A network with a true online head: the last layer learns by true online TD(λ), and the body by ObGD, from the same error.

    The features φ are the units of the last hidden layer and a 1 for the bias, and v = wᵀφ. With the parameters θ of the body:

        δ = R + γwᵀφ(S′) − wᵀφ(S)
        w learns by true online TD(λ) over the features, with the step-size α_h
        e ← γλe + ∇_θ v(S),  M = ακ·max(|δ|, 1)·Σ|e|,  θ ← θ + α/max(M, 1)·δe

    All features of a step are those of the present body. If the body is frozen, the head equals `TrueOnlineTD` over the features
    bit for bit, and so the online λ-return. If the body learns, two things are approximated. The traces hold features and
    gradients of older bodies. And the dutch trace corrects for the changes of the head alone, while those of the body change
    values too.

    Examples
    --------
    >>> from trueonline import deep
    >>> critic = deep.TrueOnlineHead(deep.MLP(2, (16,), 1, seed=0), discount=0.9, trace_decay=0.8)
    >>> for step in range(1000):
    ...     _ = critic.learn([1.0, 0.0], reward=1.0, x_next=[0.0, 1.0], terminated=True)
    >>> round(critic.predict([1.0, 0.0]), 2)
    1.0
    """

    _shared_parameters = PARAMETERS + OWN

    @explains_arguments
    def __init__(
        self,
        net: MLP,
        discount: float,
        trace_decay: float,
        step_size: float | Schedule = 1.0,
        kappa: float = 2.0,
        *,
        head_step_size: float | None = None,
        swift: bool = False,
        frozen: bool = False,
    ) -> None:
        self._take_head(head_step_size, swift, frozen)
        super().__init__(net, discount, trace_decay, step_size, kappa)


class HeadedAgent(Headed, StreamAgent):
    """An agent with a head for action values: true online Sarsa(λ) over the features of the action taken."""

    _shared_parameters = StreamAgent._shared_parameters + OWN
    _linear = ("true_online_sarsa", "swift_sarsa")
    _acts = True

    @explains_arguments
    def __init__(
        self,
        net: MLP,
        discount: float,
        trace_decay: float,
        step_size: float | Schedule = 1.0,
        kappa: float = 2.0,
        *,
        head_step_size: float | None = None,
        swift: bool = False,
        frozen: bool = False,
        policy: Policy | None = None,
        seed: Any = None,
        normalise: bool = False,
        scale_rewards: bool = False,
        time_limit: int | None = None,
    ) -> None:
        self._take_head(head_step_size, swift, frozen)
        more: Any = {"policy": policy, "normalise": normalise, "scale_rewards": scale_rewards, "time_limit": time_limit}
        super().__init__(net, discount, trace_decay, step_size, kappa, seed=seed, **more)


class TrueOnlineHeadSarsa(HeadedAgent, StreamSarsa):
    """Stream Sarsa(λ) with a true online head: the last layer learns by true online Sarsa(λ) (see `TrueOnlineHead`).

    Examples
    --------
    >>> from trueonline import deep
    >>> agent = deep.TrueOnlineHeadSarsa(deep.MLP(1, (16,), 2, seed=0), discount=0.9, trace_decay=0.8, seed=0)
    >>> for step in range(300):
    ...     action = agent.start([1.0])
    ...     agent.end(float(action == 1))
    >>> agent.values([1.0]).argmax()
    np.int64(1)
    """


class TrueOnlineHeadQ(HeadedAgent, StreamQ):
    """Stream Q(λ) with a true online head: the last layer learns by true online Q(λ) (see `TrueOnlineHead`).

    As in `TrueOnlineWatkinsQ`, an action is chosen by the values before the transition into its state is learned from, and traces
    are cut before an action that is not one of the best. `StreamQ` chooses afterwards, and clears traces after such an action.

    Examples
    --------
    >>> from trueonline import deep
    >>> agent = deep.TrueOnlineHeadQ(deep.MLP(1, (16,), 2, seed=0), discount=0.9, trace_decay=0.8, seed=0)
    >>> for step in range(300):
    ...     action = agent.start([1.0])
    ...     agent.end(float(action == 1))
    >>> agent.values([1.0]).argmax()
    np.int64(1)
    """

    def _learn(
        self, x: Any, output: Any, reward: Any, x_next: Any, more: tuple, ends: bool, greedy: bool = True
    ) -> float:
        return super()._learn(x, output, reward, x_next, (*more, inputs.flag("greedy", greedy)), ends)

    def _run(
        self,
        X: Any,
        outputs: np.ndarray,
        more: tuple,
        rewards: Any,
        terminated: Any,
        greedy: Any,
        resume: bool,
        discounts: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        best = np.ones(len(outputs)) if greedy is None else inputs.marks("greedy", greedy, len(outputs))
        return super()._run(X, outputs, (*more, best), rewards, terminated, None, resume, discounts)

    def _step(self, reward: float, x_next: np.ndarray, gamma: float, lam: float) -> None:
        action, greedy = self._choose(x_next, self._steps + 1)  # by the values that δ bootstraps from
        self._transition(self._here, self._action, reward, x_next, (*self._more, self._greedy), gamma, lam)
        self._action, self._greedy = action, greedy

    def _last(self, reward: float, x_next: np.ndarray | None, gamma: float) -> None:
        self._transition(self._here, self._action, reward, x_next, (*self._more, self._greedy), gamma, 0.0)

    @guarded
    def _transition(self, x: Any, output: Any, reward: Any, x_next: Any, more: tuple, gamma: float, lam: float) -> float:
        """Learn, without the trace of earlier transitions if the action was not one of the best: the last of `more`."""
        greedy = more[-1]
        place, steps = self._head._memory.numbers, self._steps
        before = self._decay, place[LAM]
        if not greedy:
            self._decay = place[LAM] = 0.0
        try:
            return super()._transition(x, output, reward, x_next, more[:-1], gamma, lam)
        finally:
            if self._steps == steps and not greedy:
                self._decay, place[LAM] = before
