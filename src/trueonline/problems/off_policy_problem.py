"""Any finite Markov decision process in which one policy is followed and another one is asked about, with linear features."""

from __future__ import annotations

import hashlib
from bisect import bisect
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from trueonline.inputs import number, unit
from trueonline.problems.finite_mrp import FiniteMRP

SINGULAR = 1e13  # beyond this condition number the solution of a system is noise


class OffPolicyTrajectory(NamedTuple):
    """What happened. `ratios[t]` is π(A_t | S_t) / b(A_t | S_t) of the action that led from `states[t]` to `states[t + 1]`.

    `discounts[t]` is 0 where an episode ended, and `states[t + 1]` then begins the next.
    """

    states: np.ndarray
    rewards: np.ndarray
    discounts: np.ndarray
    ratios: np.ndarray


class OffPolicyProblem:
    """A Markov decision process over k states and n actions, left by `behaviour` and asked about `target`.

    `transitions[s, a, s']` is a probability, `rewards[s, a, s']` the expected reward of that transition; the reward is
    normal around it with `reward_std`. Both may have an entry more in their last dimension: it is the end of the episode,
    after which the process is in the state `start` again. `behaviour[s, a]` and `target[s, a]` are the probabilities of
    actions, b and π. What the target may do, the behaviour must do sometimes. `features[s]` are the features of state s, by
    default one for each state. `initial_weights` are those that learning begins with, by default zeros; where the values
    of the target are zero, as in the counterexamples of the literature, others are needed to have anything to learn.

    What is visited is up to the behaviour, so the error is weighted by its stationary distribution d: Σ_s d(s) (v_π(s) −
    wᵀφ(s))².

    >>> stay_or_end = [[[1.0, 0.0], [0.0, 1.0]]]  # one state, two actions, and the end
    >>> problem = OffPolicyProblem(stay_or_end, [[[0.0, 0.0], [0.0, 1.0]]], behaviour=[[0.5, 0.5]], target=[[0.1, 0.9]],
    ...                            discount=0.5)
    >>> problem.ratios, problem.values.round(3)
    (array([[0.2, 1.8]]), array([0.947]))
    """

    def __init__(
        self,
        transitions: Any,
        rewards: Any,
        behaviour: Any,
        target: Any,
        reward_std: float = 0.0,
        features: Any = None,
        discount: float = 0.99,
        start: int = 0,
        initial_weights: Any = None,
    ) -> None:
        P = _array("transitions", transitions, 3)
        k, n = P.shape[:2]
        if P.shape not in ((k, n, k), (k, n, k + 1)) or k == 0 or n == 0:
            raise ValueError(f"transitions must be k × n × k, or k × n × (k + 1) with the end last, got shape {P.shape}")
        R = _array("rewards", rewards, 3)
        if R.shape != P.shape:
            raise ValueError(f"rewards must have the shape of transitions, {P.shape}, got {R.shape}")
        b, pi = _array("behaviour", behaviour, 2), _array("target", target, 2)
        for name, policy in (("behaviour", b), ("target", pi)):
            if policy.shape != (k, n):
                raise ValueError(
                    f"{name} must have a row for each of {k} states and a column for each of {n} actions, got {policy.shape}"
                )
        for name, array in (("transitions", P), ("behaviour", b), ("target", pi)):
            _check_probabilities(name, array)
        phi = np.eye(k) if features is None else _array("features", features, 2)
        if len(phi) != k or phi.shape[1] == 0:
            raise ValueError(f"features must have a row for each of the {k} states, got shape {phi.shape}")
        if not isinstance(start, int | np.integer) or isinstance(start, bool) or not 0 <= start < k:
            raise ValueError(f"start must be a state from 0 to {k - 1}, got {start!r}")
        w = np.zeros(phi.shape[1]) if initial_weights is None else _array("initial_weights", initial_weights, 1)
        if w.shape != phi.shape[1:]:
            raise ValueError(
                f"initial_weights must be a number for each of the {phi.shape[1]} features, got shape {w.shape}"
            )
        self.ratios = _ratios(b, pi)  # ρ(s, a), and 0 for actions that neither policy takes
        self.transitions, self.rewards, self.behaviour, self.target = P, R, b, pi
        self.features, self.initial_weights = phi, w
        self.reward_std = number("reward_std", reward_std, "a finite number ≥ 0", lambda std: 0.0 <= std < np.inf)
        self.discount, self.start = unit("discount", discount), int(start)
        for array in (P, R, b, pi, phi, w, self.ratios):
            array.flags.writeable = False

    @property
    def n_states(self) -> int:
        return len(self.transitions)

    @property
    def n_actions(self) -> int:
        return self.transitions.shape[1]

    @property
    def n_features(self) -> int:
        return self.features.shape[1]

    # --- Answers ----------------------------------------------------------------------------------

    @cached_property
    def _followed(self) -> FiniteMRP:
        return self._process(self.behaviour)

    @cached_property
    def _asked_about(self) -> FiniteMRP:
        return self._process(self.target)

    def _process(self, policy: np.ndarray) -> FiniteMRP:
        """The states and expected rewards of one who follows `policy`. Only expectations are meant to be taken from it:
        two actions with different rewards can lead to the same state."""
        joint = policy[:, :, None] * self.transitions
        P = joint.sum(axis=1)
        paid = (joint * self.rewards).sum(axis=1)
        R = np.divide(paid, P, out=np.zeros_like(P), where=P > 0.0)
        P /= P.sum(axis=1, keepdims=True)  # two roundings may be more than one is allowed
        return FiniteMRP(P, R, features=self.features, discount=self.discount, start=self.start)

    @property
    def values(self) -> np.ndarray:
        """v_π: the values of the target policy."""
        return self._asked_about.values

    @property
    def is_ergodic(self) -> bool:
        """Whether there is one stationary distribution of the behaviour only."""
        return self._followed.is_ergodic

    @property
    def stationary(self) -> np.ndarray:
        """d: how often the behaviour visits each state in the long run, episodes following each other."""
        return self._followed.stationary

    @property
    def metric(self) -> np.ndarray:
        """Σ_s d(s) φ(s)φ(s)ᵀ, with which the mean squared distance of wᵀφ from the LMS solution is a quadratic form."""
        return self._followed.metric

    @cached_property
    def lms_weights(self) -> np.ndarray:
        """The weights that minimise Σ_s d(s) (v_π(s) − wᵀφ(s))²; the shortest where many do."""
        root = np.sqrt(self.stationary)[:, None]
        return np.linalg.lstsq(root * self.features, root[:, 0] * self.values)[0]

    def expected_update(self, trace_decay: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """A and b of b + Aw, the mean over d of δ_t e_t with fixed weights w: where off-policy TD(λ) is drawn to.

        The trace is e_t = ρ_t (γλe_{t−1} + φ_t), so every later error counts with the ratios on the way to it, and

            A = Φᵀ D (I − γλP_π)⁻¹ (γP_π − I) Φ        b = Φᵀ D (I − γλP_π)⁻¹ r_π

        D is the behaviour's distribution, P_π and r_π are the target's. With D the target's own, A has no eigenvalue with a
        positive real part; otherwise it may, and then no step-size is small enough (Sutton, Mahmood & White 2016, *An
        Emphatic Approach to the Problem of Off-policy TD Learning*, which has −A).
        """
        lam = unit("trace_decay", trace_decay)
        P = self._asked_about.transitions[:, : self.n_states]
        r = (self._asked_about.transitions * self._asked_about.rewards).sum(axis=1)
        system = np.eye(self.n_states) - self.discount * lam * P
        if np.linalg.cond(system) > SINGULAR:
            raise ValueError(
                "with discount 1 and trace decay 1 the target must reach the end of an episode from every state"
            )
        weighted = np.linalg.solve(system.T, self.stationary[:, None] * self.features).T  # Φᵀ D (I − γλP_π)⁻¹
        return weighted @ (self.discount * P @ self.features - self.features), weighted @ r

    def fixed_point(self, trace_decay: float = 0.0) -> np.ndarray:
        """w with b + Aw = 0: where TD(λ) stays if it comes there, stable or not. At λ = 1 it is `lms_weights`.

        Where features depend on each other many weights stand for the same values; these are the shortest. Where there is
        no fixed point, or its values are not unique either, that is a ValueError.
        """
        A, b = self.expected_update(trace_decay)
        _, sizes, rows = np.linalg.svd(np.sqrt(self.stationary)[:, None] * self.features, full_matrices=False)
        kept = sizes > sizes.max() * max(self.features.shape) * np.finfo(float).eps
        # Coordinates of the weights that make a difference, in which the metric is I, so that "singular" has a scale.
        basis = rows[kept].T / sizes[kept]
        within = basis.T @ A @ basis
        if kept.any() and np.linalg.svd(within, compute_uv=False).min() < 1.0 / SINGULAR:
            raise ValueError(f"off-policy TD({trace_decay:g}) has no unique fixed point here: its matrix A is singular")
        return -basis @ np.linalg.solve(within, basis.T @ b)

    def error(self, weights: Any) -> float:
        """The mean squared distance of wᵀφ from the LMS solution over d, in units of that of the initial weights."""
        w = _array("weights", weights, 1)
        if w.shape != (self.n_features,):
            raise ValueError(f"weights must be a number for each of the {self.n_features} features, got shape {w.shape}")
        now, first = (
            float(self.stationary @ (self.features @ (v - self.lms_weights)) ** 2) for v in (w, self.initial_weights)
        )
        if not first > 0.0:
            raise ValueError("the error of the initial weights is zero: give other initial_weights to measure by")
        return now / first

    @cached_property
    def fingerprint(self) -> str:
        """The hash of all that makes this problem what it is, but its features."""
        about = (self.reward_std, self.discount, self.start, self.transitions.shape, self.initial_weights.shape)
        digest = hashlib.sha256(repr(("off-policy", *about)).encode())
        for array in (self.transitions, self.rewards, self.behaviour, self.target, self.initial_weights):
            digest.update(array.tobytes())
        return digest.hexdigest()

    # --- The same, otherwise ----------------------------------------------------------------------

    def with_features(self, features: Any, initial_weights: Any = None) -> OffPolicyProblem:
        """The same problem, seen through other features. The same seed gives the same run."""
        return self._with(features=features, initial_weights=initial_weights)

    def with_behaviour(self, behaviour: Any) -> OffPolicyProblem:
        """The same question, asked of another behaviour: `problem.with_behaviour(problem.target)` is on-policy."""
        return self._with(behaviour=behaviour)

    def _with(self, **other: Any) -> OffPolicyProblem:
        same: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("transitions", "rewards", "behaviour", "target", "reward_std", "features", "discount", "start")
        }
        return OffPolicyProblem(**{**same, "initial_weights": self.initial_weights, **other})

    # --- Streams ----------------------------------------------------------------------------------

    @cached_property
    def _outcomes(self) -> list[tuple[list[float], list[int]]]:
        """For each state the distribution function of what can happen next, without its last step, and what that is:
        an action and a next state as one number. As lists, for `bisect`."""
        joint = (self.behaviour[:, :, None] * self.transitions).reshape(self.n_states, -1)
        possible = [np.flatnonzero(row) for row in joint]
        return [(np.cumsum(row[what])[:-1].tolist(), what.tolist()) for row, what in zip(joint, possible, strict=True)]

    def trajectory(self, steps: int, seed: Any = 0) -> OffPolicyTrajectory:
        """A run of the behaviour from `start`. The same seed gives the same run, whatever target and features."""
        rng = np.random.default_rng(seed)
        choices = rng.random(steps)
        noise = rng.normal(size=steps) * self.reward_std
        k, width = self.n_states, self.transitions.shape[2]
        states, happened = np.empty(steps + 1, np.int64), np.empty(steps, np.int64)
        states[0] = here = self.start
        for t, choice in enumerate(choices.tolist()):
            cumulative, outcomes = self._outcomes[here]
            happened[t] = what = outcomes[bisect(cumulative, choice)]
            there = what % width
            states[t + 1] = here = there if there < k else self.start
        actions, to = np.divmod(happened, width)
        rewards = self.rewards[states[:-1], actions, to] + noise
        discounts = np.where(to < k, self.discount, 0.0)
        return OffPolicyTrajectory(states, rewards, discounts, self.ratios[states[:-1], actions])

    def __repr__(self) -> str:
        sizes = f"{self.n_states} states, {self.n_actions} actions, {self.n_features} features"
        return f"OffPolicyProblem({sizes}, discount={self.discount})"


# --- Checks ---------------------------------------------------------------------------------------


def _array(name: str, given: Any, dimensions: int) -> np.ndarray:
    wanted = f"{name} must be an array of finite numbers with {dimensions} dimension{'s' * (dimensions > 1)}"
    try:
        array = np.asarray(given)
    except (TypeError, ValueError):
        raise ValueError(f"{wanted}, got {given!r:.80}") from None
    if array.dtype.kind not in "fiu" or array.ndim != dimensions:
        raise ValueError(f"{wanted}, got {array.dtype} of shape {array.shape}")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{wanted}, got {array[where]} at {where}")
    return np.array(array, np.float64, order="C")


def _check_probabilities(name: str, array: np.ndarray) -> None:
    wrong = np.maximum(np.abs(array.sum(axis=-1) - 1.0), -array.min(axis=-1))
    if (array < 0.0).any() or wrong.max() > 1e-9:
        where = np.unravel_index(int(wrong.argmax()), wrong.shape)
        place = ", ".join(str(int(i)) for i in where)
        raise ValueError(f"{name}[{place}] must be probabilities that sum to 1, got {array[where]}")


def _ratios(behaviour: np.ndarray, target: np.ndarray) -> np.ndarray:
    uncovered = np.argwhere((target > 0.0) & (behaviour == 0.0))
    if len(uncovered):
        s, a = uncovered[0]
        raise ValueError(
            f"the target takes action {a} in state {s} with probability {target[s, a]:g}, but the behaviour never does: "
            "nothing can be learned about it; give that action a probability in behaviour"
        )
    with np.errstate(over="ignore"):
        ratios = np.divide(target, behaviour, out=np.zeros_like(target), where=behaviour > 0.0)
    if not np.isfinite(ratios).all():
        s, a = np.argwhere(~np.isfinite(ratios))[0]
        raise ValueError(
            f"the ratio of target to behaviour must be a finite number, but action {a} in state {s} has probabilities "
            f"{target[s, a]:g} and {behaviour[s, a]:g}; give the behaviour more of it"
        )
    return ratios
