"""Derivations: known methods are found again, and what is derived equals its forward view."""

import copy
import inspect
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import trueonline as to
from tests.derivation.forward_views import _product, cautious_sarsa, clipped, derived, td_zero, undiscounted, weighted
from trueonline.checks.verification import KINDS
from trueonline.derivation import derive
from trueonline.derivation.factoring import moved
from trueonline.derivation.quantities import At
from trueonline.derivation.views import (
    constant_lambda_return,
    feature_ratio_step,
    lambda_return,
    monte_carlo,
    off_policy_lambda_return,
    ratio_step,
    watkins,
)

# --- Forward views, as papers write them ----------------------------------------------------------


def per_decision(k, h, R, V, gamma, lam, rho):
    """With the ratio inside of the target, and the value of the state itself for the rest."""
    rest = V(k, k + 1)
    if k + 1 < h:
        rest = (1 - lam[k + 1]) * V(k, k + 1) + lam[k + 1] * per_decision(k + 1, h, R, V, gamma, lam, rho)
    return rho[k] * (R[k + 1] + gamma[k + 1] * rest) + (1 - rho[k]) * V(k, k)


def discounts_the_first(k, h, R, V, gamma):
    """A constant γ that does more than discount the last value."""
    return sum(gamma ** (i - k) * R[i] for i in range(k + 1, h + 1)) + gamma ** (h - k) / 2 * V(h - 1, h)


def errors(k, h, R, V, gamma, lam):
    """The λ-return as a sum of TD errors, which names V_{−1}(S_0); it cancels."""
    deltas = (
        _product(gamma[j] * lam[j] for j in range(k + 1, i)) * (R[i] + gamma[i] * V(i - 1, i) - V(i - 2, i - 1))
        for i in range(k + 1, h + 1)
    )
    return V(k - 1, k) + sum(deltas)


def idle_maximum(k, h, R, V, V_max, gamma):
    """A maximum that is asked for, and not used: the next action is bootstrapped from."""
    return R[k + 1] + gamma[k + 1] * V(k, k + 1) + 0 * V_max(k, k + 1)


# --- What is found --------------------------------------------------------------------------------

DELTA = "R_{t+1} + γ_{t+1}·V_t(S_{t+1}) − V_{t−1}(S_t)"
MOVED = "V_{t−1}(S_t) − V_t(S_t)"


@pytest.mark.parametrize(
    ("view", "step", "c", "d", "moved"),
    [
        (lambda_return, None, "γ_t·λ_t", DELTA, f"+ α_t·({MOVED})"),
        (errors, None, "γ_t·λ_t", DELTA, f"+ α_t·({MOVED})"),
        (constant_lambda_return, None, "γ·λ", DELTA.replace("γ_{t+1}", "γ"), f"+ α_t·({MOVED})"),
        (monte_carlo, None, "γ", "R_{t+1}", "− α_t·V_t(S_t)"),
        (off_policy_lambda_return, ratio_step, "ρ_t·γ_t·λ_t", DELTA, f"+ α_t·ρ_t·({MOVED})"),
        (
            watkins, None, "γ_t·λ_t·g_t", "R_{t+1} + γ_{t+1}·max_a Q_t(S_{t+1}, a) − max_a Q_{t−1}(S_t, a)",
            "+ α_t·(max_a Q_{t−1}(S_t, a) − Q_t(S_t, A_t))",
        ),
    ],
)  # fmt: skip
def test_known_methods_are_found_again(view, step, c, d, moved):
    beta = "α_t·ρ_t" if step else "α_t"
    assert derived(view, step).equations() == [
        ("c_t", c),
        ("d_t", d),
        ("e_t", f"c_t·(e_{{t−1}} − {beta}·(φ_tᵀe_{{t−1}})·φ_t) + {beta}·φ_t"),
        ("θ_{t+1}", f"θ_t + d_t·e_t {moved}·φ_t"),
    ]


@pytest.mark.parametrize(
    "view",
    [td_zero, lambda k, h, R: R[k + 1] + 1, lambda k, h, gamma: gamma[k + 1] + 1, lambda k, h, lam: lam[k + 1] + 1],
)
def test_one_step_targets_need_no_trace(view):
    found = derived(view)
    assert found.factors.c == found.factors.d == 0


def first_weights_differ(found, steps=3, n=2):
    """Whether θ_1, θ_2 or θ_3 of the equations is not that of the forward view. Values V_i(S_j) stay symbols, as all else does."""
    phi = [sp.Matrix(sp.symbols(f"phi{t}_:{n}")) for t in range(steps)]
    start = backward = sp.Matrix(sp.symbols(f"theta_:{n}"))
    e, written, f = sp.zeros(n, 1), [], found.factors
    for t in range(steps):
        own = [sp.Symbol(f"alpha{t}_{i}") if found.view.per_feature else At("alpha", t) for i in range(n)]
        beta = sp.diag(*(found.view.beta(t).xreplace({At("alpha", t): alpha}) for alpha in own))
        written.append(beta * phi[t])
        b, c, d, correction = (moved(part, t) for part in (f.b, f.c, f.d, found.correction + At("V", 0, 0)))
        e = c * (e - e.dot(phi[t]) * written[t]) + b * written[t]
        backward = backward + d * e + (correction - backward.dot(phi[t])) * written[t]
        forward = start
        for k in range(t + 1):
            forward = forward + (found.view.interim(k, t + 1) - forward.dot(phi[k])) * written[k]
        if any(sp.expand(sp.numer(sp.together(difference))) != 0 for difference in forward - backward):
            return True
    return False


@pytest.mark.parametrize(
    ("view", "step"),
    [
        (lambda_return, None),
        (weighted, None),
        (watkins, None),
        (off_policy_lambda_return, feature_ratio_step),
    ],
)
def test_the_first_steps_are_the_same_expressions(view, step):
    found = derived(view, step)
    assert not first_weights_differ(found)
    assert first_weights_differ(replace(found, factors=replace(found.factors, d=2 * found.factors.d)))


# --- What runs ------------------------------------------------------------------------------------


# Every view that runs is compiled anew. So most tests below run this one, which has all that a learner may be given.
OFF_POLICY = off_policy_lambda_return, ratio_step


def test_a_derived_learner_equals_its_forward_view():
    """Dense and sparse, several episodes that end in all ways or are cut short, with all that varies varying."""
    report = derived(*OFF_POLICY).verify(trials=2)
    assert report.definition.endswith("ForwardView")
    assert (report.steps, len(report.rows)) == (50, 10)
    assert report.max_error < 1e-12


@pytest.mark.parametrize(
    ("view", "step"),
    [
        (constant_lambda_return, None),
        (clipped, ratio_step),
        *(
            pytest.param(view, None, marks=pytest.mark.slow)
            for view in (monte_carlo, per_decision, undiscounted, discounts_the_first, weighted)
        ),
    ],
)
def test_so_do_stranger_ones(view, step):
    found = derived(view, step)
    kind = "dense" if view is weighted else "step-size schedule"
    assert found.verify(kinds=[each for each in found.kinds() if each.name == kind], trials=4).max_error < 1e-12


@pytest.mark.parametrize(
    "view",
    [
        watkins,
        cautious_sarsa,
        *(pytest.param(each, marks=pytest.mark.slow) for each in (constant_lambda_return, idle_maximum)),
    ],
)
def test_a_derived_agent_equals_its_forward_view(view):
    found = derived(view)
    constant = ("gamma", "lam") if found.constants else ()
    kinds = [
        replace(kind, constant=constant) for kind in KINDS if kind.name in ("states of a table", "repeated features")
    ]
    assert to.verify(found.agent, kinds=kinds, trials=2, steps=40).max_error < 1e-12


def test_a_maximum_that_is_not_used_makes_an_agent_that_bootstraps_from_the_next_action():
    found = derived(idle_maximum)
    assert (found.acts, found.greedily) == (True, False)
    assert found.checked.max_error < 1e-12


def test_a_file_is_loaded_by_the_class_that_wrote_it_alone(tmp_path):
    found = derived(*OFF_POLICY)
    learner = found.learner(3, lambda t: 0.1, 0.9, 0.8)
    learner.run([0, 1, 2], [1.0, 2.0])
    learner.save(tmp_path / "learner.npz")
    same = to.load(tmp_path / "learner.npz", step_size=lambda t: 0.1)  # this process has derived it
    np.testing.assert_array_equal(same.weights, learner.weights)
    with pytest.raises(ValueError, match=r"is of the method off_policy_lambda_return, .*of the same .*derive\(…\)"):
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
    learner = derived(*OFF_POLICY).learner(3, 0.1, 0.9, 0.8)
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
    for name in ("discount", "trace_decay"):
        with pytest.raises(ValueError, match=f"{name} is a constant of this forward view"):
            agent.step(1.0, 1, **{name: 0.5})
    constant_alpha = derive(lambda k, h, R, alpha: R[k + 1] * alpha)
    with pytest.raises(ValueError, match="step_size is a constant of this forward view"):
        constant_alpha.learner(3, lambda t: 0.1, 0.9, 0.8)


def test_a_derived_method_can_be_swept():
    problem = to.problems.random_walk()
    found = derived(*OFF_POLICY)  # without ratios it is true online TD(λ)
    grid = {"step_sizes": [0.05, 0.2], "trace_decays": [0.0, 0.9], "runs": 2, "seed": 0}
    methods = {"class": found.learner, "kernel": found.method}
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
    found = derived(*OFF_POLICY)
    grid = {"step_sizes": [0.1], "trace_decays": [0.9], "runs": 1, "steps": 30, "seed": 3}
    by_hand = type("ByHand", (), {"takes": ("ratio",), "__new__": lambda cls, *given: found.learner(*given)})
    table = to.sweep(Drifting(), methods={"kernel": found.learner, "stepwise": by_hand}, **grid).to_pylist()
    assert table[0]["error"] == pytest.approx(table[1]["error"], rel=1e-12)
    constant = to.study.SweptMethod(derived(constant_lambda_return).learner.method, ignores=("ratio",))
    with pytest.raises(ValueError, match=r"constant discount, here 0\.5, but the problem has 0\.25 too"):
        to.sweep(Drifting((0.5, 0.25)), methods={"constant": constant}, **grid)


def test_the_file_is_what_is_compiled():
    found = derived(lambda_return)
    text = found.source()
    assert "c = gamma * lam" in text
    assert "d = reward + gamma_next * v_next - v_old" in text
    assert inspect.getsource(found.learner.method.rule.py_func) in text  # to be seen in tracebacks
    assert r"\theta_{t+1} &= \theta_t + d_t \mathbf{e}_t" in found.latex()
