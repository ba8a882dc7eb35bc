"""From forward views to backward views: what is known is found again, what cannot be is refused, and what is found is exact."""

import copy
import inspect
import itertools
import math
import numbers
import pickle
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import sympy as sp

import trueonline as to
from trueonline.checks.verification import KINDS
from trueonline.derivation import Derivation, ForwardViewError, Max, Min, NotDerivableError, derive, deriving
from trueonline.derivation.first_steps import prove
from trueonline.derivation.forward_view import At
from trueonline.derivation.views import (
    constant_lambda_return,
    gamma_return,
    lambda_return,
    monte_carlo,
    off_policy_lambda_return,
    omega_return,
    ratio_step,
    watkins,
)
from trueonline.derivation.writing import KERNEL, TEXT, written
from trueonline.methods import true_online_td_varying

# --- Forward views, as papers write them --------------------------------------------------------------


def td_zero(k, h, R, V, gamma):
    return R[k + 1] + gamma[k + 1] * V(k, k + 1)


def per_decision(k, h, R, V, gamma, lam, rho):
    """With the ratio inside of the target, and the value of the state itself for the rest."""
    rest = V(k, k + 1)
    if k + 1 < h:
        rest = (1 - lam[k + 1]) * V(k, k + 1) + lam[k + 1] * per_decision(k + 1, h, R, V, gamma, lam, rho)
    return rho[k] * (R[k + 1] + gamma[k + 1] * rest) + (1 - rho[k]) * V(k, k)


def clipped(k, h, R, V, gamma, lam, rho, low=-0.5, high=0.5):
    """Functions beside sums and products, arguments of one's own, and a ratio that is clipped."""
    believed = Max(low, Min(high, V(k, k + 1)))
    trust = lam[k + 1] * Min(1, rho[k + 1]) if k + 1 < h else 0
    rest = trust * clipped(k + 1, h, R, V, gamma, lam, rho) if k + 1 < h else 0
    return R[k + 1] + gamma[k + 1] * ((1 - trust) * believed + rest)


def undiscounted(k, h, R, V, lam):
    """No γ at all: what ends an episode must still be seen to."""
    rest = V(k, k + 1)
    if k + 1 < h:
        rest = (1 - lam) * V(k, k + 1) + lam * undiscounted(k + 1, h, R, V, lam)
    return R[k + 1] + rest


def discounts_the_first(k, h, R, V, gamma):
    """A constant γ that does more than discount the last value."""
    return sum(gamma ** (i - k) * R[i] for i in range(k + 1, h + 1)) + gamma ** (h - k) / 2 * V(h - 1, h)


def weighted(k, h, R, V, gamma, lam, alpha):
    """A growth that has a factor of time k: b is not 1. And a step-size in the target."""
    more = (
        _product(gamma[j] * lam[j] for j in range(k + 1, i)) * (R[i] - lam[i] * V(i - 1, i)) for i in range(k + 2, h + 1)
    )
    return R[k + 1] + alpha[k] * sum(more)


def _twice(k, h, R, V):
    return R[h] if k + 1 == h else R[k + 1] + (_twice(k + 1, h, R, V) + _twice(k + 1, h, R, V)) / 2


def _product(parts):
    total = 1
    for part in parts:
        total = total * part
    return total


def errors(k, h, R, V, gamma, lam):
    """The λ-return as a sum of TD errors, which names V_{−1}(S_0); it cancels."""
    deltas = (
        _product(gamma[j] * lam[j] for j in range(k + 1, i)) * (R[i] + gamma[i] * V(i - 1, i) - V(i - 2, i - 1))
        for i in range(k + 1, h + 1)
    )
    return V(k - 1, k) + sum(deltas)


def two_steps(k, h, R, V, gamma, most=2):
    n = min(most, h - k)
    return sum(gamma ** (i - 1) * R[k + i] for i in range(1, n + 1)) + gamma**n * V(k + n - 1, k + n)


def newest_weights(k, h, R, V, gamma, lam):
    """The λ-return with all values from the newest weights."""
    G = [
        sum(gamma ** (i - 1) * R[k + i] for i in range(1, n + 1)) + gamma**n * V(h - 1, k + n)
        for n in range(1, h - k + 1)
    ]
    return (1 - lam) * sum(lam**n * g for n, g in enumerate(G[:-1])) + lam ** (h - k - 1) * G[-1]


def cautious_sarsa(k, h, R, V, gamma, lam, greedy):
    """Sarsa(λ) whose target stops growing at an action that is not greedy."""
    on = lam[k + 1] * greedy[k + 1] if k + 1 < h else 0
    rest = on * cautious_sarsa(k + 1, h, R, V, gamma, lam, greedy) if k + 1 < h else 0
    return R[k + 1] + gamma[k + 1] * ((1 - on) * V(k, k + 1) + rest)


def idle_maximum(k, h, R, V, V_max, gamma):
    """A maximum that is asked for, and not used: the next action is bootstrapped from."""
    return R[k + 1] + gamma[k + 1] * V(k, k + 1) + 0 * V_max(k, k + 1)


@cache
def derived(view, step=None):
    return derive(view, step)


# --- What is found ------------------------------------------------------------------------------------


DELTA = "R_{t+1} + γ_{t+1}·V_t(S_{t+1}) − V_{t−1}(S_t)"


@pytest.mark.parametrize(
    ("view", "step", "c", "d", "moved"),
    [
        (lambda_return, None, "γ_t·λ_t", DELTA, "θ_t + d_t·e_t + α_t·(V_{t−1}(S_t) − V_t(S_t))·φ_t"),
        (errors, None, "γ_t·λ_t", DELTA, "θ_t + d_t·e_t + α_t·(V_{t−1}(S_t) − V_t(S_t))·φ_t"),
        (
            constant_lambda_return, None, "γ·λ", DELTA.replace("γ_{t+1}", "γ"),
            "θ_t + d_t·e_t + α_t·(V_{t−1}(S_t) − V_t(S_t))·φ_t",
        ),
        (monte_carlo, None, "γ", "R_{t+1}", "θ_t + d_t·e_t − α_t·V_t(S_t)·φ_t"),
        (off_policy_lambda_return, ratio_step, "ρ_t·γ_t·λ_t", DELTA, "θ_t + d_t·e_t + α_t·ρ_t·(V_{t−1}(S_t) − V_t(S_t))·φ_t"),
        (
            watkins, None, "γ_t·λ_t·g_t", "R_{t+1} + γ_{t+1}·max_a Q_t(S_{t+1}, a) − max_a Q_{t−1}(S_t, a)",
            "θ_t + d_t·e_t + α_t·(max_a Q_{t−1}(S_t, a) − Q_t(S_t, A_t))·φ_t",
        ),
    ],
)  # fmt: skip
def test_known_methods_are_found_again(view, step, c, d, moved):
    found = dict(derived(view, step).equations())
    assert (found["c_t"], found["d_t"], found["θ_{t+1}"]) == (c, d, moved)
    beta = "α_t·ρ_t" if step else "α_t"
    assert found["e_t"] == f"c_t·(e_{{t−1}} − {beta}·(φ_tᵀe_{{t−1}})·φ_t) + {beta}·φ_t"


def test_one_step_targets_need_no_trace():
    found = derived(td_zero)
    assert found.factors.c == found.factors.d == 0


def test_the_condition_holds_for_later_horizons_too():
    """What is read off the first horizons is true of others."""
    found = derived(lambda_return)
    view, moved = (
        found.view,
        lambda e, by: e.xreplace({s: s.shifted(by) for s in e.free_symbols if hasattr(s, "shifted")}),
    )
    for k, h in ((0, 8), (3, 8), (6, 8)):
        product = sp.prod([moved(found.factors.c, j) for j in range(k + 1, h + 1)]) * moved(found.factors.d, h)
        assert sp.expand(view.interim(k, h + 1) - view.interim(k, h) - product) == 0


def test_the_first_steps_are_compared_as_symbols():
    """A mistake in what was read off is found before anything is compiled."""
    right = derived(lambda_return)
    wrong = replace(right, factors=replace(right.factors, d=right.factors.d * 2))
    with pytest.raises(ForwardViewError, match="θ_2 of the derived method is not that of the forward view"):
        prove(wrong)


# --- What runs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("view", "step"), [(lambda_return, None), (off_policy_lambda_return, ratio_step)])
def test_a_derived_learner_equals_its_forward_view(view, step):
    """Dense and sparse, several episodes that end in all ways or are cut short, with all that varies varying."""
    report = derived(view, step).verify(trials=2)
    assert report.definition.endswith("ForwardView")
    assert (report.steps, len(report.rows)) == (50, 10)
    assert report.max_error < 1e-12


@pytest.mark.parametrize(
    ("view", "step"),
    [
        (monte_carlo, None),
        (clipped, ratio_step),
        *(
            pytest.param(view, None, marks=pytest.mark.slow)
            for view in (constant_lambda_return, per_decision, undiscounted, discounts_the_first, weighted)
        ),
    ],
)
def test_so_do_stranger_ones(view, step):
    found = derived(view, step)
    kind = "dense" if view is weighted else "step-size schedule"
    assert found.verify(kinds=[each for each in found.kinds() if each.name == kind], trials=4).max_error < 1e-12


@pytest.mark.parametrize("view", [watkins, cautious_sarsa, constant_lambda_return, idle_maximum])
def test_a_derived_agent_equals_its_forward_view(view):
    found = derived(view)
    constant = ("gamma", "lam") if found.constants else ()
    kinds = [
        replace(kind, constant=constant) for kind in KINDS if kind.name in ("states of a table", "repeated features")
    ]
    assert to.verify(found.agent, kinds=kinds, trials=2, steps=40).max_error < 1e-12


@pytest.mark.parametrize(("view", "step"), [(off_policy_lambda_return, ratio_step), (monte_carlo, None)])
def test_a_derived_learner_keeps_the_contract(view, step):
    """Saved, pickled and copied learners go on; bad input changes nothing; and so on."""
    assert "saved equals continued" in to.check_learner(derived(view, step).learner).kept


def test_a_file_is_loaded_by_the_class_that_wrote_it_alone(tmp_path):
    found = derived(lambda_return)
    learner = found.learner(3, lambda t: 0.1, 0.9, 0.8)
    learner.run([0, 1, 2], [1.0, 2.0])
    learner.save(tmp_path / "learner.npz")
    same = to.load(tmp_path / "learner.npz", step_size=lambda t: 0.1)  # this process has derived it
    np.testing.assert_array_equal(same.weights, learner.weights)
    with pytest.raises(ValueError, match=r"is of the method lambda_return, .*of the same .*derive\(…\)"):
        derived(monte_carlo).learner.load(tmp_path / "learner.npz", step_size=lambda t: 0.1)
    other = found.learner.load(tmp_path / "learner.npz", step_size=lambda t: 0.1)
    np.testing.assert_array_equal(other.weights, learner.weights)

    agent = derived(watkins).agent(3, 2, 0.1, 0.9, 0.8, seed=1)
    agent.start(0)
    agent.step(1.0, 1)
    agent.save(tmp_path / "agent.npz")
    others = [
        derived(watkins).agent.load(tmp_path / "agent.npz"),
        pickle.loads(pickle.dumps(agent)),
        copy.deepcopy(agent),
    ]
    assert {each.step(1.0, 2) for each in others} == {agent.step(1.0, 2)}
    for each in others:
        np.testing.assert_array_equal(each.weights, agent.weights)


def test_a_derived_learner_can_be_unpickled_by_another_process(tmp_path):
    """Its class is in no module there; and SymPy is not asked for."""
    learner = derived(lambda_return).learner(3, 0.1, 0.9, 0.8)
    learner.run([0, 1, 2], [1.0, 2.0])
    (tmp_path / "learner").write_bytes(pickle.dumps(learner))
    code = (
        "import pickle, sys; sys.modules['sympy'] = None\nlearner = pickle.load(open(sys.argv[1], 'rb')); "
        "print(learner.update(1.0, 0), learner.weights.tolist())"
    )
    said = subprocess.run([sys.executable, "-c", code, tmp_path / "learner"], capture_output=True, text=True, check=True)
    assert said.stdout == f"{learner.update(1.0, 0)} {learner.weights.tolist()}\n"


def test_constants_are_held_to():
    learner = derived(constant_lambda_return).learner(3, 0.1, 0.9, 0.8)
    learner.start(0)
    before = learner.weights
    for bad in (
        lambda: learner.update(1.0, 1, discount=0.5),
        lambda: learner.update(1.0, 1, trace_decay=0.5),
        lambda: learner.run([0, 1, 2], [1.0, 1.0], [0.8, 0.5]),
    ):
        with pytest.raises(ValueError, match="constant of this forward view"):
            bad()
    np.testing.assert_array_equal(learner.weights, before)
    assert learner.update(1.0, 1, discount=0.0) == 1.0  # ends the episode
    agent = derived(constant_lambda_return).agent(3, 2, 0.1, 0.9, 0.8)
    agent.start(0)
    with pytest.raises(ValueError, match="constant of this forward view"):
        agent.step(1.0, 1, discount=0.5)
    constant_alpha = derive(lambda k, h, R, alpha: R[k + 1] * alpha)
    with pytest.raises(ValueError, match="step_size is a constant of this forward view"):
        constant_alpha.learner(3, lambda t: 0.1, 0.9, 0.8)


def test_ratios_go_with_transitions():
    learner = derived(off_policy_lambda_return, ratio_step).learner
    rng = np.random.default_rng(0)
    X, rewards, ratios = rng.normal(size=(41, 5)), rng.normal(size=40), rng.random(40) * 2
    at_once, in_steps = (learner(5, 0.1, 0.9, 0.95) for _ in range(2))
    at_once.run(X, rewards, ratios=ratios)
    in_steps.start(X[0])
    for reward, x, ratio in zip(rewards, X[1:], ratios, strict=True):
        in_steps.update(reward, x, ratio=ratio)
    np.testing.assert_allclose(at_once.weights, in_steps.weights, rtol=1e-12, atol=1e-14)
    for bad in (-1.0, np.nan, np.inf, "1", True):
        with pytest.raises(ValueError, match="ratio"):
            in_steps.update(0.0, X[0], ratio=bad)
    with pytest.raises(ValueError, match="ratios must be 40 numbers"):
        at_once.run(X, rewards, ratios=ratios[1:])


def test_large_ratios_do_not_spoil_digits():
    """The trace grows by ρ as it decays by γλ: neither end of its range may be left."""
    rng = np.random.default_rng(1)
    n, T = 30, 3_000
    learner = derived(off_policy_lambda_return, ratio_step).learner(n, 0.05, 1.0, 0.95)
    w, e, v_old = np.zeros(n), np.zeros(n), 0.0
    X = [rng.choice(n, size=3, replace=False) for _ in range(T + 1)]
    phi = np.array([np.bincount(x, minlength=n) for x in X], float)
    ratios = np.exp(rng.normal(size=T)) * (rng.random(T) < 0.8)
    rewards = rng.normal(size=T)
    learner.start(X[0])
    for t in range(T):
        learner.update(rewards[t], X[t + 1], ratio=ratios[t])
        v, v_next, beta = w @ phi[t], w @ phi[t + 1], 0.05 * ratios[t]
        e = ratios[t] * 0.95 * (e - beta * (phi[t] @ e) * phi[t]) + beta * phi[t]
        w = w + (rewards[t] + 0.95 * v_next - v_old) * e + beta * (v_old - v) * phi[t]
        v_old = v_next
        if np.abs(w).max() > 1e100:  # it diverges: such are the ratios
            break
    assert t > 300
    np.testing.assert_allclose(learner.weights, w, rtol=1e-9, atol=1e-9 * np.abs(w).max())


def test_a_derived_method_is_the_one_that_is_known():
    rng = np.random.default_rng(0)
    found = derived(lambda_return).learner(30, lambda t: 0.1 / (1 + t / 50), 0.8, 0.95)
    known = to.TrueOnlineTD(30, lambda t: 0.1 / (1 + t / 50), 0.8, 0.95)
    X = np.array([rng.choice(30, size=4, replace=False) for _ in range(301)])
    rewards = rng.normal(size=300)
    np.testing.assert_allclose(found.run(X, rewards), known.run(X, rewards), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found.weights, known.weights, rtol=1e-12, atol=1e-13)
    source = derived(lambda_return).source()
    assert (
        len(source.split('"""')[-1].splitlines())
        <= len(inspect.getsource(true_online_td_varying.py_func).splitlines()) + 8
    )


def test_a_derived_method_can_be_swept():
    problem = to.problems.random_walk()
    found = derived(lambda_return)
    grid = {"step_sizes": [0.05, 0.2], "trace_decays": [0.0, 0.9], "runs": 2, "seed": 0}
    methods = {"class": found.learner, "kernel": found.method, "constants": derived(constant_lambda_return).learner}
    table = to.sweep(problem, methods={**methods, "true_online": None}, **grid).to_pylist()
    errors = {name: [row["error"] for row in table if row["method"] == name] for name in (*methods, "true_online")}
    for name in methods:
        np.testing.assert_allclose(errors[name], errors["true_online"], rtol=1e-10)


class Drifting:
    """Two states; what is learned about goes to the second more often than what is done."""

    features, metric, lms_weights, discount = np.eye(2), np.eye(2), np.array([1.0, 2.0]), 0.5

    def __init__(self, discounts=(0.5,)):
        self.discounts = discounts

    def trajectory(self, steps, seed):
        rng = np.random.default_rng(seed)
        states = rng.integers(2, size=steps + 1)
        return states, rng.normal(size=steps), rng.choice(self.discounts, size=steps), np.where(states[1:] == 1, 1.6, 0.4)


def test_a_sweep_takes_ratios_from_the_problem():
    found = derived(off_policy_lambda_return, ratio_step)
    grid = {"step_sizes": [0.1], "trace_decays": [0.9], "runs": 1, "steps": 30, "seed": 3}
    by_hand = type("ByHand", (), {"takes": ("ratio",), "__new__": lambda cls, *given: found.learner(*given)})
    table = to.sweep(Drifting(), methods={"kernel": found.learner, "stepwise": by_hand}, **grid).to_pylist()
    assert table[0]["error"] == pytest.approx(table[1]["error"], rel=1e-12)
    with pytest.raises(ValueError, match=r"constant discount, here 0\.5, but the problem has 0\.25 too"):
        to.sweep(Drifting((0.5, 0.25)), methods={"constant": derived(constant_lambda_return).learner}, **grid)


def test_the_file_is_what_is_compiled(tmp_path):
    found = derived(lambda_return)
    text = found.source()
    compile(text, "derived.py", "exec")
    assert "c = gamma * lam" in text
    assert "d = reward + gamma_next * v_next - v_old" in text
    assert inspect.getsource(found.learner.method.rule.py_func) in text  # to be seen in tracebacks
    assert r"\theta_{t+1} &= \theta_t + d_t \mathbf{e}_t" in found.latex()


# --- What cannot be -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("view", "k", "h"), [(gamma_return, 0, 2), (omega_return, 0, 2), (newest_weights, 0, 2), (two_steps, 0, 2)]
)
def test_what_does_not_factor_is_refused_with_the_place(view, k, h):
    with pytest.raises(NotDerivableError, match=f"at k = {k}, h = {h} ") as refused:
        derive(view)
    assert (refused.value.k, refused.value.h) == (k, h)
    assert refused.value.terms != 0


def test_a_target_may_not_change_its_mind_later():
    """Seven steps look like Monte Carlo for the first horizons."""
    with pytest.raises(NotDerivableError, match=r"at k = 0, h = 7 this is left of U_0\^8 − U_0\^7"):
        derive(lambda k, h, R, V, gamma: two_steps(k, h, R, V, gamma, most=7))
    with pytest.raises(
        NotDerivableError, match=r"the first target changes with time \(U_0\^1 = 2\*R\[1\], U_1\^2 = R\[2\]"
    ):
        derive(lambda k, h, R: R[k + 1] * (2 if k == 0 else 1))


class OfTime:
    """A quantity that is a number made of the time."""

    def __init__(self, number):
        self.number = number

    def __getitem__(self, j):
        return self.number(j)


NO_BACKWARD_VIEW = "no backward view"
INVERSE = OfTime(lambda j: 1 / (j + 1))


def odd_updates_do_not_grow(k, h, R, V, gamma, lam):
    return lambda_return(k, k + 1 if k % 2 else h, R, V, gamma, lam)


def odd_updates_grow_otherwise(k, h, R, V, gamma, lam):
    return lambda_return(k, h, R, V, gamma, OfTime(lambda j: 1 / 2) if k % 2 else lam)


@pytest.mark.parametrize(
    ("view", "shown"),
    [
        (
            lambda k, h, R, V, gamma: lambda_return(k, h, R, V, gamma, INVERSE),
            "the factor c_t changes with time (c_1 = gamma[1]/2, c_2 = gamma[2]/3, …)",
        ),
        (
            lambda k, h, R, V, lam: lambda_return(k, h, R, V, INVERSE, lam),
            "the first target changes with time (U_0^1 = R[1] + V(0, 1)/2, U_1^2 = R[2] + V(1, 2)/3, …)",
        ),
        (
            lambda k, h, R: sum(_product(INVERSE[j] for j in range(k + 1, i)) * R[i] for i in range(k + 1, h + 1)),
            "the factor c_t changes with time (c_1 = 1/2, c_2 = 1/3, …)",
        ),
        (
            lambda k, h, R: R[k + 1] + sum(R[i] / i for i in range(k + 2, h + 1)),
            "the factor d_t changes with time (d_1 = R[2]/2, d_2 = R[3]/3, …)",
        ),
        (
            lambda k, h, R, V, gamma: lambda_return(k, h, R, V, gamma, OfTime(lambda j: j % 2)),
            "the growth of the target changes with time (the first of U_0 = gamma[1]*",
        ),
        (odd_updates_do_not_grow, "the growth of the target changes with time (U_0^3 − U_0^2 = "),
        (
            lambda k, h, R, V, gamma: lambda_return(k, h, R, V, gamma, OfTime(lambda j: 0.5 if j < 20 else 0.25)),
            "the growth of the target changes with time (with numbers, U_19^21 − U_19^20 differs by ",
        ),
    ],
)
def test_a_weight_made_of_the_time_is_told_apart_from_a_target_that_does_not_factor(view, shown):
    """Such a target has a backward view, whose factors depend on the time. The message says how to write it."""
    with pytest.raises(NotDerivableError) as refused:
        derive(view)
    message = str(refused.value)
    assert shown in message
    assert "Write lam[j] or gamma[j]" in message
    assert "update(…, trace_decay=…) or update(…, discount=…)" in message
    assert NO_BACKWARD_VIEW not in message


@pytest.mark.parametrize(
    "view",
    [
        gamma_return,
        two_steps,
        odd_updates_grow_otherwise,
        lambda k, h, R: sum(R[i] / (i - k) for i in range(k + 1, h + 1)),  # of the age, not of the time
        lambda k, h, R, V, gamma, lam: INVERSE[k] * newest_weights(k, h, R, V, gamma, lam),
        lambda k, h, R, V, gamma: two_steps(k, h, R, V, gamma, most=7),
        lambda k, h, R, V, gamma, lam: lambda_return(k, min(h, k + 60), R, V, gamma, lam),
    ],
)
def test_a_target_that_does_not_factor_has_no_backward_view(view):
    with pytest.raises(NotDerivableError, match="So it has no backward view with one trace"):
        derive(view)


def test_a_weight_that_is_given_with_each_transition_does_what_one_of_the_time_would():
    """The advice of the message, taken: λ_j = 1/(j + 1) through `lam[j]`, against the weights by their definition."""
    rng = np.random.default_rng(5)
    X, rewards = rng.normal(size=(13, 3)), rng.normal(size=12)
    learner = derived(lambda_return).learner(3, 0.1, 0.9, 0.95)
    learner.start(X[0])
    for t in range(12):
        learner.update(rewards[t], X[t + 1], trace_decay=INVERSE[t + 1])
    thetas = [np.zeros(3)]
    R, gamma = OfTime(lambda j: rewards[j - 1]), OfTime(lambda j: 0.95)
    for h in range(1, 13):
        theta = np.zeros(3)
        for k in range(h):
            target = lambda_return(k, h, R, lambda i, j: thetas[i] @ X[j], gamma, INVERSE)
            theta = theta + 0.1 * (target - theta @ X[k]) * X[k]
        thetas.append(theta)
    np.testing.assert_allclose(learner.weights, thetas[-1], rtol=1e-12, atol=1e-13)


def twice_for_floats(k, h, R):
    """The class of a product cannot be refused when it is asked for, as that of a symbol can."""
    return R[k + 1] * (2 if isinstance(1 * R[k + 1] + 0.5, float) else 1)


def test_a_function_that_treats_numbers_otherwise_than_symbols_is_told_so():
    with pytest.raises(NotDerivableError, match="computes the same from numbers as from symbols"):
        derive(twice_for_floats)


def test_a_refusal_can_be_pickled():
    with pytest.raises(NotDerivableError) as refused:
        derive(two_steps)
    copied = pickle.loads(pickle.dumps(refused.value))
    assert (str(copied), copied.k, copied.h, copied.terms) == (str(refused.value), 0, 2, refused.value.terms)


@pytest.mark.parametrize(
    ("view", "said"),
    [
        (lambda k, h, R: R[h + 1], "beyond the horizon"),
        (lambda k, h, V: V(h, h), "beyond the horizon"),
        (lambda k, h, R: R[k - 5], "before the beginning"),
        (lambda k, h, R: R[0.5], "whole number"),
        (lambda k, h, Q: 0, "no 'Q'"),
        (lambda k, t, R: 0, "first arguments must be k and h"),
        (lambda k, h, R: R[h] / (h - h), "finite expression"),
        (lambda k, h, R: 1 / 0, "ZeroDivisionError"),
        (lambda k, h, R: "R[1]", "finite expression"),
        (lambda k, h, R: None, "finite expression"),
        (3, "must be a function"),
        (lambda k, h, R: R[k + 1] if R[k + 1] > 0 else 0, "use Min and Max"),
        (lambda k, h, R: R[k + 1] if R[k + 1] == 0 else 0, r"may not depend on whether R\[3\] is 0"),
        (lambda k, h, gamma: 1 if gamma[k + 1] else 0, "may not depend on whether"),
        (lambda k, h, R: 1 if R[k + 1] != 1.5 else 0, "may not depend on whether"),
        (lambda k, h, R, V: 1 if R[k + 1] == V(k, k + 1) else 0, r"may not depend on whether R\[3\] is V\(2, 3\)"),
        (lambda k, h, R: {0: 1}.get(R[k + 1], 2), r"the place of R\[3\] in a dictionary, a set or a cache"),
        (lambda k, h, R: {3 * R[k + 1]: 1}[3 * R[k + 1]], r"the place of R\[3\] in a dictionary"),
        (lambda k, h, R: R[k + 1] in {0, 1}, r"the place of R\[3\] in a dictionary"),
        (lambda k, h, R: R[k + 1] * (hash(R[k + 1]) % 2), r"the place of R\[3\] in a dictionary"),
        (cache(lambda k, h, R: R[k + 1]), "the place of R in a dictionary"),
        (lambda k, h, R: 1 if isinstance(R[k + 1], float) else 2, r"the class of R\[3\]"),
        (lambda k, h, gamma: 1 if isinstance(gamma[k + 1], numbers.Real) else 2, r"the class of gamma\[3\]"),
        (lambda k, h, R: sp.Float("1e-400") * R[k + 1], "beyond the range of floats"),
        (lambda k, h, R: Fraction(1, 10**400) * R[k + 1], "beyond the range of floats"),
        (lambda k, h, R: 1e-200 * (1e-200 * R[k + 1]), "beyond the range of floats"),
        (lambda k, h, rho: rho, r"rho without an index; write rho\[j\]"),
        (lambda k, h, gamma: gamma * gamma[k + 1], "gamma with and without an index"),
        (lambda k, h, V: V(k), r"takes two times: V\(i, j\)"),
        (lambda k, h, V: V[k], r"takes two times: V\(i, j\)"),
        (lambda k, h, R: math.exp(R[k + 1]), "sympy.exp"),
        (lambda k, h, V_max, rho: rho[k] * V_max(k, k + 1), "agents, which have no importance ratios"),
        (_twice, "does it call itself twice"),
        (lambda k, h, R: R[k + 1] * sp.Symbol("x"), "none of the arguments"),
        (lambda k, h, lam: lam[k], r"needs lam\[0\], which is before the beginning"),
        (lambda k, h, V: V(k - 1, k), r"needs V\(-1, 0\), which is before the beginning"),
        (lambda k, h, R: sp.sin(R[k + 1]), "got sin"),
        (lambda k, h, V: V(h - 1, h - 2), r"needs V\(0, -1\), which is before the beginning"),
        (lambda k, h, V, V_max: V(k, k + 1) + V_max(k, k + 1), "not from both"),
    ],
)
def test_what_is_no_forward_view_is_said(view, said):
    with pytest.raises(ForwardViewError, match=said):
        derive(view)


def test_what_a_step_size_may_not_be():
    for step, said in (
        (lambda k, V: V(k, k), "no 'V'"),
        (lambda k, lam: lam[k], "before the beginning"),
        (lambda k: "x(", "finite expression"),
    ):
        with pytest.raises(ForwardViewError, match=said):
            derive(td_zero, step)
    with pytest.raises(
        NotDerivableError, match=r"the step-size changes with time \(β_0 = alpha\[0\], .* a schedule as step_size"
    ):
        derive(td_zero, lambda k, alpha: alpha[k] * (k + 1))


@pytest.mark.parametrize(
    ("view", "step"),
    [
        (lambda k, h, R, V, gamma: td_zero(k, h, R, V, gamma) + int(k >= 10), None),
        (lambda k, h, R, V, gamma, lam: lambda_return(k, h, R, V, gamma, lam) + int(k >= 300), None),
        (td_zero, lambda k, alpha: alpha[k] / (1 if k < 100 else 2)),
        (lambda k, h, R, V, gamma, lam: lambda_return(k, min(h, k + 60), R, V, gamma, lam), None),
        (twice_for_floats, None),
        (td_zero, lambda k, alpha: alpha[k] * int(k != 63)),
        (td_zero, lambda k, alpha: alpha[k] * int(k != 999)),
        (lambda k, h, R, V, gamma: td_zero(k, h, R, V, gamma) + int(k == 997), None),
        (lambda k, h, R: R[k + 1] * (1 + 5e-10 * (k >= 10)), None),
        (lambda k, h, R: 5e-10 * R[k + 1] * (1 + (k >= 10)), None),
        (lambda k, h, R, V, gamma, lam: lambda_return(k, h, R, V, gamma, lam) + R[h] * int(h == 777 and k == 775), None),
        (lambda k, h, R: R[k + 1] + (1 if 1 + R[k + 1] == 1 else 0), None),
        (lambda k, h, R: R[k + 1] * (2 if R[k + 1] - 3.75 == 0 else 1), None),
        (lambda k, h, R, V: V(k, k + 1) * (2 if V(k, k + 1) - 0.625 == 0 else 1), None),
    ],
)
def test_what_shows_itself_late_is_seen(view, step):
    with pytest.raises(NotDerivableError, match="with numbers"):
        derive(view, step)


def test_nothing_is_divided_by_that_may_be_zero():
    """The target divides by 1 + ρ; to divide by ρ is another thing."""

    def bounded(k, h, R, rho):
        return sum(_product(rho[j] / (1 + rho[j]) for j in range(k, i)) * R[i] for i in range(k + 1, h + 1))

    found = derive(bounded)
    assert found.verify(trials=2, steps=25, kinds=["states of a table"]).exact  # with ρ = 0 among the ratios

    def discounted(k, h, R, gamma):
        return sum(_product(gamma[j] for j in range(k + 1, i)) * R[i] / (1 + gamma[i - 1]) for i in range(k + 2, h + 1))

    found = derive(discounted)
    assert At("gamma", 0) in found.factors.d.free_symbols
    assert found.verify(trials=2, steps=25, kinds=["states of a table"]).exact


def test_a_beginning_divides_by_nothing():
    """λ of the state left is not known there; c may divide by it all the same, as the target does."""

    def inverse(k, h, R, gamma, lam):
        return sum(_product(gamma[j] / (1 + lam[j]) for j in range(k + 1, i)) * R[i] for i in range(k + 1, h + 1))

    found = derive(inverse)
    assert " if gamma > 0.0 else 0.0" in found.source()
    assert found.verify(trials=2, steps=25, kinds=["states of a table"]).exact


def test_factors_may_be_of_the_state_entered():
    """b_k = 1 − λ_{k+1}, c_t = γ_{t+1}, and a step-size with γ_{k+1}: all known when the transition is."""

    def entered(k, h, R, gamma, lam):
        more = (_product(gamma[j + 1] for j in range(k + 1, i)) * R[i] for i in range(k + 2, h + 1))
        return R[k + 1] + (1 - lam[k + 1]) * sum(more)

    found = derive(entered, lambda k, alpha, gamma: alpha[k] * (2 - gamma[k + 1]))
    assert found.factors.b == 1 - At("lam", 1)
    assert found.factors.c == At("gamma", 1)
    assert found.verify(trials=2, steps=25, kinds=["states of a table"]).exact


def test_floats_are_taken_for_the_fractions_they_stand_for():
    found = derive(lambda k, h, R: sum(0.9 ** (i - k - 1) * R[i] for i in range(k + 1, h + 1)))
    assert dict(found.equations())["c_t"] == "0.9"
    assert found.verify(trials=1, kinds=["dense"]).exact
    with pytest.raises(NotDerivableError, match=r"give fractions, Fraction\(7, 10\) for 0\.7"):
        derive(lambda k, h, R: sum(0.123456789 ** (i - k - 1) * R[i] for i in range(k + 1, h + 1)))
    with pytest.raises(NotDerivableError, match=r"cannot tell whether .* floats are rounded: .* sympy\.sqrt\(2\)"):
        derive(lambda k, h, R, V, gamma: lambda_return(k, h, R, V, gamma, OfTime(lambda j: 1 / math.sqrt(j + 1))))


@pytest.mark.parametrize("number", [5e-10, 1e-17, 1e-300, 5e-324, 1 - 1e-12, 0.123456789, 1.2345678901234567, 1.5e300])
def test_a_float_is_kept(number):
    found = derive(lambda k, h, R: number * R[k + 1])
    assert f"({number!r}·R_{{t+1}} − V_t(S_t))" in dict(found.equations())["θ_{t+1}"]
    assert f"{number!r} * reward" in found.source()


def test_a_float_may_be_rounded():
    """0.99⁵ is 0.9509900499, but not as a float."""
    assert 0.99**5 != 0.9509900499
    found = derive(lambda k, h, R: sum(0.99 ** (i - k - 1) * R[i] for i in range(k + 1, h + 1)))
    assert dict(found.equations())["c_t"] == "0.99"
    assert dict(derive(lambda k, h, R: 1 / 3 * R[k + 1]).equations())["θ_{t+1}"].endswith("R_{t+1}/3 − V_t(S_t)))·φ_t")


def test_numbers_of_other_libraries_are_no_comparison():
    found = derive(lambda k, h, R: Fraction(7, 10) * R[k + 1] + R[k + 1] * Fraction(1, 5))
    assert "0.9·R_{t+1}" in dict(found.equations())["θ_{t+1}"]


# --- The short check ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("view", "step"),
    [
        (lambda_return, None),
        (clipped, ratio_step),
        (undiscounted, None),
        (watkins, None),
        (cautious_sarsa, None),
        (weighted, None),
    ],
)
def test_derive_says_how_far_the_views_differ(view, step):
    found = derived(view, step)
    assert found.checked.exact
    assert found.checked.max_error < 1e-12
    assert str(found).endswith(f"differ by at most {found.checked.max_error:.1e} of the largest weight")
    wrong = replace(found, factors=replace(found.factors, d=found.factors.d + At("R", 1)))
    assert wrong.checked.max_error > 1e-3


def test_a_forward_view_that_soon_diverges_is_checked_before_it_does():
    assert derive(lambda k, h, R, V: R[k + 1] + sp.exp(V(k, k + 1))).checked.max_error < 1e-12


def test_a_target_must_be_finite_at_an_end():
    with pytest.raises(ForwardViewError, match="does it divide by a number that may be 0"):
        derive(lambda k, h, R, gamma: R[k + 1] / gamma[k + 1])


def test_a_method_that_is_not_its_forward_view_is_refused_with_the_difference(monkeypatch):
    """Without the checks before it, which find this too."""
    monkeypatch.setattr(deriving, "confirm_later", lambda view, factors: None)
    with pytest.raises(
        ForwardViewError, match=r"at 100 steps of 4 random streams: .* differ by at most \d\.\de[-+]\d\d of the"
    ):
        derive(twice_for_floats)


def test_the_short_check_runs_the_text_of_the_method(monkeypatch):
    found = derived(lambda_return)
    text = found.source()
    monkeypatch.setattr(Derivation, "source", lambda self: text.replace("c = gamma * lam", "c = gamma * lam * lam"))
    assert not replace(found).checked.exact


def test_sums_are_bracketed_where_they_are_multiplied():
    found = dict(derive(td_zero, lambda k, alpha, lam: alpha[k] * (1 + lam)).equations())
    assert found["e_t"] == "c_t·(e_{t−1} − α_t·(1 + λ)·(φ_tᵀe_{t−1})·φ_t) + α_t·(1 + λ)·φ_t"
    found = dict(derive(lambda k, h, R, V: sp.Rational(3, 10) * R[k + 1] + sp.Rational(7, 10) * V(k, k + 1)).equations())
    assert found["θ_{t+1}"] == "θ_t + d_t·e_t + α_t·(0.3·R_{t+1} + 0.7·V_t(S_{t+1}) − V_t(S_t))·φ_t"
    found = dict(derive(lambda k, h, R: -R[k + 1] - 3, lambda k: 1).equations())
    assert found["θ_{t+1}"] == "θ_t + d_t·e_t + (−3 − R_{t+1} − V_t(S_t))·φ_t"
    assert found["e_t"] == "c_t·(e_{t−1} − (φ_tᵀe_{t−1})·φ_t) + φ_t"


def test_a_view_may_be_called_anything():
    for name in ("decay", 'x"""\nprint(1)\n"""', "class"):
        view = lambda k, h, R, gamma: R[k + 1] + gamma[k + 1]  # noqa: E731
        view.__name__ = name
        learner = derive(view).learner(2, 0.5, 0.9, 0.9)
        learner.start(0)
        assert learner.update(1.0, 1) == 1.0
        assert learner.weights[0] == pytest.approx(0.95)


def test_learners_and_agents_are_not_mistaken_for_each_other():
    with pytest.raises(ForwardViewError, match="use its agent"):
        derived(watkins).learner  # noqa: B018
    with pytest.raises(ForwardViewError, match="use its agent"):
        derived(watkins).method  # noqa: B018
    with pytest.raises(ForwardViewError, match="no importance ratios"):
        derived(off_policy_lambda_return, ratio_step).agent  # noqa: B018


def test_expressions_are_written_as_they_are_meant():
    """Powers, quotients and functions, in a kernel and as text."""
    gamma, lam, R = At("gamma", 1), At("lam", 0), At("R", 1)
    cases = {
        sp.sqrt(gamma): ("np.sqrt(gamma_next)", "√(γ_{t+1})"),
        gamma ** sp.Rational(3, 2): ("gamma_next**(1.5)", "γ_{t+1}^(3/2)"),
        R / (1 + gamma): ("reward / (1 + gamma_next)", "R_{t+1}/(1 + γ_{t+1})"),
        R / (gamma * lam): ("reward / (gamma_next * lam)", "R_{t+1}/(γ_{t+1}·λ_t)"),
        R * sp.Rational(1, 2): ("0.5 * reward", "R_{t+1}/2"),
        R * sp.Rational(9, 10): ("0.9 * reward", "0.9·R_{t+1}"),
        -0.25 * R: ("-0.25 * reward", "−0.25·R_{t+1}"),
        sp.Min(1, sp.Abs(R)): ("min(1, abs(reward))", "min(1, abs(R_{t+1}))"),
        sp.exp(-lam): ("np.exp(-lam)", "exp(−λ_t)"),
        (gamma - lam) ** 2: ("(gamma_next - lam)**2", "(γ_{t+1} − λ_t)^2"),
    }
    numbers = {"gamma_next": 0.7, "lam": 0.6, "reward": -1.3, "np": np}
    for expression, (code, text) in cases.items():
        assert (written(expression, KERNEL), written(expression, TEXT)) == (code, text)
        value = expression.subs({gamma: 0.7, lam: 0.6, R: -1.3})
        assert eval(code, numbers) == pytest.approx(float(value))


def test_every_letter_can_be_asked_for_alone():
    for letter, k in itertools.product(("R", "gamma", "lam"), (0, 1)):
        view = eval(f"lambda k, h, {letter}: {letter}[k + 1] + {k}")
        assert derive(view).factors.c == 0
