"""Any finite Markov decision process with a behaviour, a target policy to predict for, and linear features.

The file is one class, and most of it documents its methods.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trueonline.inputs import read_only, unit
from trueonline.problems.array_checks import array, check_probabilities, fingerprint_of, importance_ratios
from trueonline.problems.chain import MarkovChain
from trueonline.problems.finite_mrp import FiniteMRP
from trueonline.problems.linear_problem import LinearProblem
from trueonline.problems.trajectories import OffPolicyTrajectory

MAX_CONDITION = 1e13  # beyond this condition number the solution of a system is noise


class OffPolicyProblem(LinearProblem):
    """A Markov decision process over k states and n actions. The behaviour acts, and the values of the target are predicted.

    The behaviour decides which states are visited, so the error is weighted by its stationary distribution d:
    Σ_s d(s) (v_π(s) − wᵀφ(s))².

    Parameters
    ----------
    transitions : array_like
        ``transitions[s, a, s']`` is a probability. The last dimension has k or k + 1 entries. The additional entry is the
        end of an episode, after which the process begins again at `start`.
    rewards : array_like
        ``rewards[s, a, s']`` is the expected reward of a transition. It has the shape of `transitions`.
    behaviour, target : array_like
        ``behaviour[s, a]`` and ``target[s, a]`` are the probabilities b and π of actions. An action that the target takes
        must have a positive probability in the behaviour.
    reward_std : float
        The standard deviation of the normal noise on the rewards.
    features : array_like, optional
        ``features[s]`` are the features of state s. By default there is one feature for each state.
    discount : float
        The discount γ.
    start : int or array_like
        The state in which every episode begins, or for each state the probability that an episode begins there.
    initial_weights : array_like, optional
        The weights that learning begins with, by default zeros. If the values of the target are zero, as in the
        counterexamples of the literature, other weights are needed, so that there is something to learn.

    Attributes
    ----------
    ratios : numpy.ndarray
        ``ratios[s, a]`` is π(a | s) / b(a | s), and 0 for actions that neither policy takes.

    Raises
    ------
    ValueError
        If a shape does not fit, if a number is out of range, or if the behaviour does not cover the target.

    Examples
    --------
    >>> stay_or_end = [[[1.0, 0.0], [0.0, 1.0]]]  # one state, two actions, and the end
    >>> problem = OffPolicyProblem(stay_or_end, [[[0.0, 0.0], [0.0, 1.0]]], behaviour=[[0.5, 0.5]], target=[[0.1, 0.9]],
    ...                            discount=0.5)
    >>> problem.ratios, problem.values.round(3)
    (array([[0.2, 1.8]]), array([0.947]))
    """

    def __init__(
        self,
        transitions: ArrayLike,
        rewards: ArrayLike,
        behaviour: ArrayLike,
        target: ArrayLike,
        reward_std: float = 0.0,
        features: ArrayLike | None = None,
        discount: float = 0.99,
        start: int | ArrayLike = 0,
        initial_weights: ArrayLike | None = None,
    ) -> None:
        P = array("transitions", transitions, 3)
        k, n = P.shape[:2]
        if P.shape not in ((k, n, k), (k, n, k + 1)) or k == 0 or n == 0:
            raise ValueError(f"transitions must be k × n × k, or k × n × (k + 1) with the end last, got shape {P.shape}")
        b, pi = array("behaviour", behaviour, 2), array("target", target, 2)
        for name, policy in (("behaviour", b), ("target", pi)):
            if policy.shape != (k, n):
                raise ValueError(
                    f"{name} must have a row for each of {k} states and a column for each of {n} actions, got {policy.shape}"
                )
        for name, part in (("transitions", P), ("behaviour", b), ("target", pi)):
            check_probabilities(name, part)
        self._take(P, rewards, reward_std, features, discount, start)
        m = self.n_features
        w = np.zeros(m) if initial_weights is None else array("initial_weights", initial_weights, 1)
        if w.shape != (m,):
            raise ValueError(f"initial_weights must be a number for each of the {m} features, got shape {w.shape}")
        ratios = importance_ratios(b, pi)  # ρ(s, a), and 0 for actions that neither policy takes
        self.behaviour, self.target, self.initial_weights, self.ratios = map(read_only, (b, pi, w, ratios))

    @property
    def n_actions(self) -> int:
        """The number of actions, n."""
        return self.transitions.shape[1]

    # --- Answers ----------------------------------------------------------------------------------

    @cached_property
    def _behaviour_process(self) -> FiniteMRP:
        return self._process(self.behaviour)

    @cached_property
    def _target_process(self) -> FiniteMRP:
        return self._process(self.target)

    def _process(self, policy: np.ndarray) -> FiniteMRP:
        """The states and expected rewards under a policy. Only expectations may be taken from it, because two actions with
        different rewards can lead to the same state."""
        joint = policy[:, :, None] * self.transitions
        P = joint.sum(axis=1)
        paid = (joint * self.rewards).sum(axis=1)
        R = np.divide(paid, P, out=np.zeros_like(P), where=P > 0.0)
        P /= P.sum(axis=1, keepdims=True)  # rounding, twice, may exceed what FiniteMRP tolerates
        return FiniteMRP(P, R, features=self.features, discount=self.discount, start=self.start)

    @property
    def values(self) -> np.ndarray:
        """The values v_π of the states under the target."""
        return self._target_process.values

    @property
    def is_ergodic(self) -> bool:
        """Whether the behaviour has exactly one stationary distribution."""
        return self._behaviour_process.is_ergodic

    @property
    def stationary(self) -> np.ndarray:
        """The share of time d that the behaviour spends in each state in the long run, over all episodes."""
        return self._behaviour_process.stationary

    @property
    def metric(self) -> np.ndarray:
        """A = Σ_s d(s) φ(s)φ(s)ᵀ. The mean squared distance of wᵀφ from the LMS solution is (w − w*)ᵀA(w − w*)."""
        return self._behaviour_process.metric

    def emphasis(self, trace_decay: float = 0.0) -> np.ndarray:
        """The weight of each state in the expected update of emphatic TD(λ), with interest 1 in every state.

        Parameters
        ----------
        trace_decay : float
            The trace decay λ.

        Returns
        -------
        numpy.ndarray
            The weights m, to be given to `expected_update` and `fixed_point` as `weighting`.

        Raises
        ------
        ValueError
            If γ = 1 and the target does not reach the end of an episode from every state.

        Notes
        -----
        With the stationary distribution d of the behaviour, mᵀ = dᵀ (I − γP_π)⁻¹ (I − γλP_π). This is dᵀ (I − P_π^λ)⁻¹ of
        Sutton, Mahmood & White (2016), *An Emphatic Approach to the Problem of Off-policy TD Learning*, with constant γ
        and λ.

        Examples
        --------
        >>> from trueonline.problems import off_policy
        >>> problem = off_policy.two_state()
        >>> problem.expected_update(weighting=problem.emphasis())[0].round(2)
        array([[-3.4]])
        """
        lam = unit("trace_decay", trace_decay)
        P = self._target_process.transitions[:, : self.n_states]
        system = np.eye(self.n_states) - self.discount * P
        if np.linalg.cond(system) > MAX_CONDITION:
            raise ValueError("with discount 1 the target must reach the end of an episode from every state")
        followed = np.linalg.solve(system.T, self.stationary)
        return followed - self.discount * lam * P.T @ followed

    def expected_update(
        self, trace_decay: float = 0.0, weighting: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The expected update b + Aw of off-policy TD(λ): the mean of δ_t e_t over d, for fixed weights w.

        Parameters
        ----------
        trace_decay : float
            The trace decay λ.
        weighting : array_like, optional
            The weight of each state. The default is d, that of off-policy TD(λ). `emphasis` gives that of emphatic TD(λ).

        Returns
        -------
        A, b : numpy.ndarray
            The matrix and the vector.

        Raises
        ------
        ValueError
            If γ = λ = 1 and the target does not reach the end of an episode from every state, or if `weighting` does not
            have one number for each state.

        Notes
        -----
        The trace is e_t = ρ_t (γλe_{t−1} + φ_t), so a later error counts with all ratios on the way to it, and

            A = Φᵀ D (I − γλP_π)⁻¹ (γP_π − I) Φ        b = Φᵀ D (I − γλP_π)⁻¹ r_π

        D is the distribution of the behaviour, and P_π and r_π belong to the target. If D were the distribution of the
        target, no eigenvalue of A would have a positive real part. Otherwise one may, and then no step-size is small enough
        (Sutton, Mahmood & White 2016, *An Emphatic Approach to the Problem of Off-policy TD Learning*, which has −A).
        """
        lam = unit("trace_decay", trace_decay)
        P = self._target_process.transitions[:, : self.n_states]
        r = (self._target_process.transitions * self._target_process.rewards).sum(axis=1)
        system = np.eye(self.n_states) - self.discount * lam * P
        if np.linalg.cond(system) > MAX_CONDITION:
            raise ValueError(
                "with discount 1 and trace decay 1 the target must reach the end of an episode from every state"
            )
        d = self.stationary if weighting is None else array("weighting", weighting, 1)
        if d.shape != (self.n_states,):
            raise ValueError(f"weighting must be a number for each of the {self.n_states} states, got shape {d.shape}")
        weighted = np.linalg.solve(system.T, d[:, None] * self.features).T  # Φᵀ D (I − γλP_π)⁻¹
        return weighted @ (self.discount * P @ self.features - self.features), weighted @ r

    def fixed_point(self, trace_decay: float = 0.0, weighting: ArrayLike | None = None) -> np.ndarray:
        """The weights w with b + Aw = 0, stable or not. At λ = 1 they are `lms_weights`.

        Parameters
        ----------
        trace_decay : float
            The trace decay λ.
        weighting : array_like, optional
            The weight of each state, as for `expected_update`.

        Returns
        -------
        numpy.ndarray
            The weights. If features are linearly dependent, many weights have the same values, and these are the shortest.

        Raises
        ------
        ValueError
            If there is no fixed point, or if the values at the fixed point are not unique.
        """
        A, b = self.expected_update(trace_decay, weighting)
        _, sizes, rows = np.linalg.svd(np.sqrt(self.stationary)[:, None] * self.features, full_matrices=False)
        kept = sizes > sizes.max() * max(self.features.shape) * np.finfo(float).eps
        # Coordinates in which the metric is the identity, so that "singular" has a scale.
        basis = rows[kept].T / sizes[kept]
        within = basis.T @ A @ basis
        if kept.any() and np.linalg.svd(within, compute_uv=False).min() < 1.0 / MAX_CONDITION:
            raise ValueError(f"off-policy TD({trace_decay:g}) has no unique fixed point here: its matrix A is singular")
        return -basis @ np.linalg.solve(within, basis.T @ b)

    def error(self, weights: ArrayLike) -> float:
        """The mean squared distance of wᵀφ from the LMS solution over d, relative to that of the initial weights.

        Parameters
        ----------
        weights : array_like
            A number for each feature.

        Returns
        -------
        float
            The error, 1 for the initial weights.

        Raises
        ------
        ValueError
            If the shape is wrong, or if the error of the initial weights is zero.
        """
        w = array("weights", weights, 1)
        if w.shape != (self.n_features,):
            raise ValueError(f"weights must be a number for each of the {self.n_features} features, got shape {w.shape}")
        now, first = (
            float(self.stationary @ (self.features @ (v - self.lms_weights)) ** 2) for v in (w, self.initial_weights)
        )
        if not first > 0.0:
            raise ValueError("the error of the initial weights is zero: give other initial_weights to measure by")
        return now / first

    @property
    def fingerprint(self) -> str:
        """A hash of everything that defines this problem, apart from its features."""
        start = self.start if isinstance(self.start, int) else self.start.tolist()
        about = ("off-policy", self.reward_std, self.discount, start, self.transitions.shape, self.initial_weights.shape)
        parts = self.transitions, self.rewards, self.behaviour, self.target, self.initial_weights
        return fingerprint_of(about, *parts)

    # --- Variants ---------------------------------------------------------------------------------

    def with_features(self, features: ArrayLike, initial_weights: ArrayLike | None = None) -> OffPolicyProblem:
        """The same problem with other features. The same seed gives the same run.

        Parameters
        ----------
        features : array_like
            ``features[s]`` are the features of state s.
        initial_weights : array_like, optional
            The weights that learning begins with, by default zeros.

        Returns
        -------
        OffPolicyProblem
            The other problem.
        """
        return self._with(features=features, initial_weights=initial_weights)

    def with_behaviour(self, behaviour: ArrayLike) -> OffPolicyProblem:
        """The same problem with another behaviour.

        Parameters
        ----------
        behaviour : array_like
            ``behaviour[s, a]`` is the probability of an action.

        Returns
        -------
        OffPolicyProblem
            ``problem.with_behaviour(problem.target)`` is on-policy.
        """
        return self._with(behaviour=behaviour)

    def _with(self, **other: Any) -> OffPolicyProblem:
        same: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("transitions", "rewards", "behaviour", "target", "reward_std", "features", "discount", "start")
        }
        return OffPolicyProblem(**{**same, "initial_weights": self.initial_weights, **other})

    # --- Streams ----------------------------------------------------------------------------------

    @cached_property
    def _chain(self) -> MarkovChain:
        """The outcomes of each state: an action and a next state as one number."""
        joint = self.behaviour[:, :, None] * self.transitions
        return MarkovChain(joint.reshape(self.n_states, -1), joint.shape[2])

    def trajectory(self, steps: int, seed: Any = 0) -> OffPolicyTrajectory:
        """Sample a run of the behaviour from `start`.

        Parameters
        ----------
        steps : int
            The number of transitions.
        seed : int or any seed that NumPy takes
            The same seed gives the same run, also with another target or other features.

        Returns
        -------
        OffPolicyTrajectory
            States, rewards, discounts, importance ratios and probabilities.
        """
        states, outcomes, noise = self._chain.sample(steps, self.start, np.random.default_rng(seed))
        actions, to = np.divmod(outcomes, self.transitions.shape[2])
        rewards = self.rewards[states[:-1], actions, to] + noise * self.reward_std
        discounts = np.where(to < self.n_states, self.discount, 0.0)
        taken = states[:-1], actions
        run = OffPolicyTrajectory(states, rewards, discounts, self.ratios[taken])
        run.probabilities = self.target[taken]
        return run

    def __repr__(self) -> str:
        sizes = f"{self.n_states} states, {self.n_actions} actions, {self.n_features} features"
        return f"OffPolicyProblem({sizes}, discount={self.discount})"
