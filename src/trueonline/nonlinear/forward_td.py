"""Forward TD(λ) (van Seijen 2016): every state is updated once, K transitions later, towards its K-bounded λ-return."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trueonline.nonlinear.delayed_learner import DelayedLearner
from trueonline.nonlinear.delayed_transition import DelayedTransition

Map = tuple[float, float]  # (a, b) stands for g ↦ a + b·g
IDENTITY: Map = (0.0, 1.0)


class ForwardTD(DelayedLearner):
    """Forward TD(λ): λ-returns for any differentiable value function, at a cost per step that does not depend on K.

    Each state is updated once, K transitions later, towards the λ-return that is known by then (van Seijen 2016):

        w_{k+K} = w_{k+K−1} + α_k (G_k^{λ|k+K} − V(S_k | w_{k+K−1})) ∇V(S_k | w_{k+K−1})

    G_k^{λ|h} is the interim λ-return. It bootstraps from V(S_j | w_{j−1}), with the weights from before the update at the arrival
    in S_j. At the end of an episode, the states that wait are updated in their order, with the end as horizon. A transition costs
    two calls of `value_and_grad` and, on average, a constant number of additions. The learner keeps K transitions.

    There are three departures from the paper. γ and λ may differ from state to state. The target is updated without a
    division by γλ, which may be 0 (see `Pending`). A truncated episode bootstraps from its last state.

    Parameters
    ----------
    value_and_grad : function (weights, x) → (value, gradient)
        The value function. It returns V(x | w), a number, and ∇V(x | w), an array of the weights' shape. It must not change
        the weights.
    weights : array of float
        The initial weights, in any shape.
    step_size : float or function
        α > 0, or a schedule t → α_t.
    trace_decay : float
        λ, in [0, 1].
    discount : float
        γ, in [0, 1].
    horizon : int or math.inf, optional
        K ≥ 1. With math.inf, updates wait for the end of the episode. The default is
        `horizon_within(tolerance, discount, trace_decay)`. Other γ and λ of single transitions do not change it.
    tolerance : float, optional
        η in (0, 1), for the default of `horizon`.

    Raises
    ------
    ValueError
        If an argument is bad. Methods raise it, too, if a value or a gradient is not finite or has another shape, or if an
        update would make weights that are not finite. The learner is then unchanged.

    Examples
    --------
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

    def _after(self, step: DelayedTransition) -> np.ndarray:
        if step.discount == 0.0:
            return self._after_each([*self._kept, step], 0.0)
        if len(self._kept) + 1 < self.horizon:
            return self._weights
        target = self._kept.back(back(step, step.next_value))
        return self._towards(self._weights, self._kept.oldest or step, target)

    def _after_all(self) -> np.ndarray:
        return self._after_each(list(self._kept), self._value)

    def _after_each(self, steps: list[DelayedTransition], g: float) -> np.ndarray:
        """The weights after updates of all these states, which lead to a state of value g."""
        targets = []
        for step in reversed(steps):
            g = back(step, g)
            targets.append(g)
        weights = self._weights
        for step in steps:
            weights = self._towards(weights, step, targets.pop())
        return weights

    def _keep(self, step: DelayedTransition) -> None:
        self._kept.push(step)
        if len(self._kept) == self.horizon:
            self._kept.pop()

    def _remember(self, steps: list[DelayedTransition], older: int) -> None:
        if len(steps) >= self.horizon or not 0 <= older <= len(steps):
            raise ValueError(
                f"{len(steps)} transitions, {older} of them on the older stack, cannot wait at a horizon of {self.horizon}"
            )
        self._kept = Pending(steps, older)

    def _older(self) -> int:
        return self._kept.older


def back(step: DelayedTransition, g: float) -> float:
    """G_t from G_{t+1} = g."""
    a, b = as_map(step)
    return a + b * g


def as_map(step: DelayedTransition) -> Map:
    """G_t = ρ + γλG_{t+1}, with ρ = R + γ(1 − λ)V′."""
    rho = step.reward + step.discount * (1.0 - step.trace_decay) * step.next_value
    return rho, step.discount * step.trace_decay


def chained(f: Map, g: Map) -> Map:
    """x ↦ f(g(x))."""
    return f[0] + f[1] * g[0], f[1] * g[1]


class Pending:
    """A queue of the transitions whose states wait for their update, oldest first, with the chain of all their maps.

    A transition maps the return after it to the return before it, g ↦ ρ + γλg, and such maps chain. The chain of all
    transitions that wait is the way from the newest value to the target of the oldest state. The paper takes the oldest map off
    by (G − ρ)/γλ, and starts from scratch every K steps, before rounding errors have grown too far. Two stacks need no
    division. The newer transitions have one chain. When the older stack is empty, the newer transitions become the older
    ones, each with the chain from it to the last of them. So every transition is chained twice.
    """

    def __init__(self, steps: list[DelayedTransition], older: int = 0) -> None:
        self._older: list[tuple[DelayedTransition, Map]] = []  # newest first
        self._newer = steps[:older]
        self._chain = IDENTITY
        self._turn()
        for step in steps[older:]:
            self.push(step)

    def push(self, step: DelayedTransition) -> None:
        """Add the newest transition."""
        self._newer.append(step)
        self._chain = chained(self._chain, as_map(step))

    def pop(self) -> None:
        """Drop the oldest transition."""
        if not self._older:
            self._turn()
        self._older.pop()

    def _turn(self) -> None:
        """Move the newer transitions to the empty older stack."""
        chain = IDENTITY
        for step in reversed(self._newer):
            chain = chained(as_map(step), chain)
            self._older.append((step, chain))
        self._newer, self._chain = [], IDENTITY

    def back(self, g: float) -> float:
        """The return of the oldest state, from the return g of the state after the newest transition."""
        a, b = chained(self._older[-1][1] if self._older else IDENTITY, self._chain)
        return a + b * g

    @property
    def oldest(self) -> DelayedTransition | None:
        """The oldest transition, or None if none waits."""
        return next(iter(self), None)

    @property
    def older(self) -> int:
        """The number of transitions on the older stack."""
        return len(self._older)

    def copy(self) -> Pending:
        """A copy with the same stacks, so that it rounds in the same way."""
        return Pending(list(self), self.older)

    def __len__(self) -> int:
        return len(self._older) + len(self._newer)

    def __iter__(self) -> Iterator[DelayedTransition]:
        yield from (step for step, _ in reversed(self._older))
        yield from self._newer
