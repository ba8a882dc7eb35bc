"""Forward TD(λ) (van Seijen 2016): every state is updated once, K transitions later, towards its K-bounded λ-return."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trueonline.nonlinear.delayed_learner import DelayedLearner, Transition

Map = tuple[float, float]  # (a, b) stands for g ↦ a + b·g
IDENTITY: Map = (0.0, 1.0)


class ForwardTD(DelayedLearner):
    """Forward TD(λ): the K-bounded λ-return algorithm, at a cost per step that does not depend on K.

        w_{k+K} = w_{k+K−1} + α_k (G_k^{λ|k+K} − V(S_k | w_{k+K−1})) ∇V(S_k | w_{k+K−1})

    G_k^{λ|h} is the interim λ-return, in which S_j is valued with w_{j−1}, the weights of before the update of its arrival.
    At the end of an episode the states that wait are updated in their order, with the end as horizon. A transition costs
    two calls of `value_and_grad` and, over many, a constant number of additions; K transitions are kept.

    Departures from the paper: γ and λ may differ from state to state; the target is kept up without the division by γλ,
    which may be 0 (see `Pending`); an episode that is cut short is bootstrapped from its last state.

    >>> def linear(w, x):
    ...     return float(w @ x), x
    >>> learner = ForwardTD(linear, np.zeros(2), step_size=0.5, trace_decay=1.0, discount=1.0, horizon=2)
    >>> learner.start(np.array([1.0, 0.0]))
    >>> learner.update(0.0, np.array([0.0, 1.0])), learner.weights
    (0.0, array([0., 0.]))
    >>> learner.update(1.0, None), learner.weights
    (1.0, array([0.5, 0.5]))
    """

    _kept: Pending

    def _after(self, step: Transition) -> np.ndarray:
        if step.discount == 0.0:
            return self._after_each([*self._kept, step], 0.0)
        if len(self._kept) + 1 < self.horizon:
            return self._weights
        target = self._kept.back(back(step, step.next_value))
        return self._towards(self._weights, self._kept.oldest or step, target)

    def _after_all(self) -> np.ndarray:
        return self._after_each(list(self._kept), self._value)

    def _after_each(self, steps: list[Transition], g: float) -> np.ndarray:
        """The weights after updates of all these states, which end in one of value g."""
        targets = []
        for step in reversed(steps):
            g = back(step, g)
            targets.append(g)
        weights = self._weights
        for step in steps:
            weights = self._towards(weights, step, targets.pop())
        return weights

    def _keep(self, step: Transition) -> None:
        self._kept.push(step)
        if len(self._kept) == self.horizon:
            self._kept.pop()

    def _remember(self, steps: list[Transition], older: int) -> None:
        if len(steps) >= self.horizon or not 0 <= older <= len(steps):
            raise ValueError(
                f"{len(steps)} transitions, {older} of them older, cannot wait at a horizon of {self.horizon}"
            )
        self._kept = Pending(steps, older)

    def _older(self) -> int:
        return self._kept.older


def back(step: Transition, g: float) -> float:
    """G_t from G_{t+1} = g."""
    a, b = as_map(step)
    return a + b * g


def as_map(step: Transition) -> Map:
    """G_t = ρ + γλG_{t+1}, with ρ = R + γ(1 − λ)V′."""
    rho = step.reward + step.discount * (1.0 - step.trace_decay) * step.next_value
    return rho, step.discount * step.trace_decay


def chained(f: Map, g: Map) -> Map:
    """x ↦ f(g(x))."""
    return f[0] + f[1] * g[0], f[1] * g[1]


class Pending:
    """The transitions whose states wait for their update, oldest first, and the way back over all of them.

    Over a transition the return goes back by a map g ↦ ρ + γλg, and maps chain. The chain over all that wait is wanted while
    they come and go at the two ends. The paper takes the oldest map off by (G − ρ)/γλ, and begins anew every K steps, before
    rounding errors have grown too far. Two stacks do without the division: the newer transitions have one chain, and when
    the older ones run out the newer become the older ones, each with the chain from it to the last of them. So every
    transition is chained twice.
    """

    def __init__(self, steps: list[Transition], older: int = 0) -> None:
        self._older: list[tuple[Transition, Map]] = []  # newest first
        self._newer = steps[:older]
        self._chain = IDENTITY
        self._turn()
        for step in steps[older:]:
            self.push(step)

    def push(self, step: Transition) -> None:
        self._newer.append(step)
        self._chain = chained(self._chain, as_map(step))

    def pop(self) -> None:
        if not self._older:
            self._turn()
        self._older.pop()

    def _turn(self) -> None:
        chain = IDENTITY
        for step in reversed(self._newer):
            chain = chained(as_map(step), chain)
            self._older.append((step, chain))
        self._newer, self._chain = [], IDENTITY

    def back(self, g: float) -> float:
        """The return of the oldest state, from that of the state after the newest."""
        a, b = chained(self._older[-1][1] if self._older else IDENTITY, self._chain)
        return a + b * g

    @property
    def oldest(self) -> Transition | None:
        return next(iter(self), None)

    @property
    def older(self) -> int:
        """How many are on the older stack."""
        return len(self._older)

    def copy(self) -> Pending:
        return Pending(list(self), self.older)

    def __len__(self) -> int:
        return len(self._older) + len(self._newer)

    def __iter__(self) -> Iterator[Transition]:
        yield from (step for step, _ in reversed(self._older))
        yield from self._newer
