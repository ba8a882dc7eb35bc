"""Sweeps of off-policy methods: the numbers of their definitions, from where a problem begins."""

import dataclasses
import math

import numpy as np
import pytest

import trueonline as to
from tests.study.small_cases import errors, mean_error
from trueonline import study
from trueonline.core.compiling.kernels import kernel
from trueonline.methods import gtd, true_online_gtd
from trueonline.problems import OffPolicyProblem, baird, random_mdp
from trueonline.problems import counterexamples as off_policy

STEPS, SEED = 40, 5
ALPHAS, LAMS = (0.02, 0.3), (0.0, 0.7, 1.0)
MDP = random_mdp(6, 3, 2, 0.1, distance=0.7, seed=1)
# Features have the width of Baird's, because a kernel is compiled for each width:
PROBLEMS = {
    "two states": off_policy.two_state(),
    "Baird": baird(),
    "tabular": MDP,
    "tabular, begun elsewhere": MDP.with_features(np.eye(6), np.arange(6.0)),
    "binary": MDP.with_features(np.pad(to.features.binary_code(6), [(0, 0), (0, 5)])),
    "episodic": OffPolicyProblem(  # two states; action 0 goes on, action 1 ends
        [[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]],
        [[[0.0, 1.0, 0.0], [0.0, 0.0, -1.0]], [[2.0, 0.0, 0.0], [0.0, 0.0, 0.5]]],
        behaviour=[[0.7, 0.3], [0.4, 0.6]],
        target=[[0.4, 0.6], [0.9, 0.1]],
        features=np.pad([[1.0, 0.5], [0.0, 2.0]], [(0, 0), (0, 6)]),
        discount=0.9,
    ),
}


def oracle(problem, *setting, **more):
    return mean_error(problem, *setting, steps=STEPS, seed=SEED, **more)


# --- The engine -----------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_errors_are_those_of_the_equations(problem):
    """Of methods with second weights, with probabilities, and with emphasis (`test_sweep_body.py` has all)."""
    assert study.applicable(problem) == study.OFF_POLICY
    methods = ("gtd", "tree_backup", "true_online_emphatic")
    found = errors(to.sweep(problem, methods, ALPHAS, LAMS, runs=2, steps=STEPS, seed=SEED))
    assert len(found) == len(methods) * len(ALPHAS) * len(LAMS) * 2
    for setting, error in found.items():
        assert error == pytest.approx(oracle(problem, *setting), rel=1e-8), setting


@pytest.mark.parametrize("eta", [0.0, 0.01, 3.0])
@pytest.mark.parametrize(("name", "rule"), [("gtd", gtd), ("true_online_gtd", true_online_gtd)])
def test_a_method_may_have_a_second_step_size(name, rule, eta):
    methods = {"by name": study.SweptMethod(name, second=eta), "by kernel": study.SweptMethod(rule, second=eta)}
    found = errors(to.sweep(PROBLEMS["Baird"], methods, [0.01], [0.5], runs=2, steps=STEPS, seed=SEED))
    for (method, *setting), error in found.items():
        assert error == pytest.approx(oracle(PROBLEMS["Baird"], name, *setting, eta=eta), rel=1e-8)
        assert error == pytest.approx(found["by name", *setting], rel=1e-12), method


@kernel
def own_gtd(memory, x, reward, x_next, alpha, beta, gamma, lam, gamma_next, lam_next, rho, carried):
    return gtd(memory, x, reward, x_next, alpha, beta, gamma, lam, gamma_next, lam_next, rho, carried)


class OwnGTD:
    """A class of one's own with a second step-size."""

    def __init__(self, n_features, step_size, trace_decay, discount, second_step_size, initial_weights=None):
        settings = (n_features, step_size, trace_decay, discount, initial_weights)
        self.inner = to.GTD(*settings, second_step_size=second_step_size)
        self.start = self.inner.start

    def update(self, reward, x_next, discount=None, ratio=1.0):
        self.inner.update(reward, x_next, discount, ratio=ratio)

    @property
    def weights(self):
        return self.inner.weights


class Settled(OwnGTD):
    def __init__(self, n_features, step_size, trace_decay, discount, initial_weights=None, second_step_size=0.003):
        super().__init__(n_features, step_size, trace_decay, discount, second_step_size, initial_weights)


def test_the_second_step_size_of_a_class_is_a_multiple_of_the_first():
    methods = {"gtd": None, "class": to.GTD, "own": OwnGTD, "settled": Settled}
    sweep = {"step_sizes": [0.01], "trace_decays": [0.5], "runs": 2, "steps": STEPS, "parameters": {"eta": [0.3, 1.0]}}
    table = to.sweep(PROBLEMS["Baird"], methods, **sweep).to_pylist()
    of = {(row["method"], row["eta"], row["run"]): row["error"] for row in table}
    for (_, eta, run), error in of.items():
        assert error == pytest.approx(of["gtd", eta, run], rel=1e-9)
    assert of["gtd", 0.3, 0] != of["gtd", 1.0, 0]
    del sweep["parameters"]
    once = to.sweep(PROBLEMS["Baird"], {**methods, "0.3": study.SweptMethod("gtd", second=0.3)}, **sweep).to_pylist()
    of = {(row["method"], row["run"]): row["error"] for row in once}
    assert of["own", 0] == pytest.approx(of["gtd", 0], rel=1e-9)
    assert of["settled", 0] == pytest.approx(of["0.3", 0], rel=1e-9)


def test_after_leaves_the_first_steps_out():
    problem = PROBLEMS["two states"]
    found = errors(to.sweep(problem, "gtd", [0.1], [0.5], runs=2, steps=STEPS, seed=SEED, after=30))
    for setting, error in found.items():
        assert error == pytest.approx(oracle(problem, *setting, after=30), rel=1e-8)
        assert error != pytest.approx(oracle(problem, *setting), rel=1e-3)


# --- Names and refusals ---------------------------------------------------------------------------


def names(problem, method, **changes):
    settings = {"step_sizes": (0.1,), "trace_decays": (0.5,), "runs": 1, "steps": 10, **changes}
    return [task.name for task in study.Case(problem, {"mine": method}, **settings).tasks()]


def test_names_change_with_the_second_step_size_the_beginning_and_what_is_left_out():
    plain = names(MDP, study.SweptMethod("gtd"))
    assert plain == names(MDP, study.SweptMethod(gtd)) == names(MDP, study.SweptMethod("gtd", memories=2, second=1.0))
    begun = MDP.with_features(MDP.features, np.ones(6))
    others = [
        names(MDP, study.SweptMethod("gtd", second=0.5)),
        names(MDP, study.SweptMethod("true_online_gtd")),
        names(MDP, study.SweptMethod(own_gtd, memories=2)),
        names(MDP, study.SweptMethod(own_gtd, memories=3)),
        names(begun, study.SweptMethod("gtd")),
        names(MDP, study.SweptMethod("gtd"), after=1),
    ]
    assert len({name for case in (plain, *others) for name in case}) == 7


class Elsewhere:
    """A problem of a user's own that begins where it says."""

    features, metric, lms_weights, discount = np.eye(2), np.eye(2) / 2, np.ones(2), 0.9

    def __init__(self, initial_weights):
        self.initial_weights = initial_weights

    def trajectory(self, steps, seed):
        return np.arange(steps + 1) % 2, np.ones(steps), np.full(steps, 0.9)


def test_a_problem_of_ones_own_may_begin_elsewhere():
    found = errors(to.sweep(Elsewhere([3, 1]), {"true_online": None, "mine": to.TrueOnlineTD}, [1e-9], [0.5], runs=1))
    assert list(found.values()) == pytest.approx([1.0, 1.0], rel=1e-6)


@pytest.mark.parametrize("begin", [[1.0, 1.0], [np.nan, 0.0], [1.0], "ab", [True, False]])
def test_a_beginning_that_will_not_do_is_refused(begin):
    with pytest.raises(ValueError, match=r"initial weights is zero|initial_weights must be"):
        to.sweep(Elsewhere(begin), "true_online", [0.1], [0.5], runs=1, steps=5)


class Plain:
    def __init__(self, n_features, step_size, trace_decay, discount):
        self.weights = np.zeros(n_features)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"methods": {"mine": Plain}, "problem": baird()}, "and initial_weights, which this problem has"),
        ({"methods": ["gdt"]}, "unknown method 'gdt'; known are accumulate, replace.*true_online_off_policy"),
        ({"after": STEPS}, "after must be a whole number from 0, and fewer than the 40 steps, got 40"),
        ({"after": -1}, "after must be"),
        ({"after": True}, "after must be"),
        ({"methods": {"mine": study.SweptMethod("replace")}, "problem": baird()}, "the problem has importance ratios"),
        ({"methods": {"mine": "gtd"}}, "must be a kernel, a method or a class of learners, got the text 'gtd'"),
        (
            {"methods": {"mine": 3}},
            "neither a class of learners nor an update rule: a rule must be a compiled kernel, got 3",
        ),
    ],
)
def test_bad_wishes_are_refused(given, message):
    settings = {"problem": MDP, "step_sizes": [0.1], "trace_decays": [0.5], "runs": 1, "steps": STEPS, **given}
    with pytest.raises(ValueError, match=message):
        to.sweep(**settings)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rule": 3}, "a rule must be a compiled kernel, got 3"),
        ({"rule": "gdt"}, "unknown rule 'gdt'; known are accumulate, replace"),
        ({"rule": "gtd", "second": -1.0}, "second must be a finite number ≥ 0, got -1.0"),
        ({"rule": "gtd", "second": math.nan}, "second must be a finite number ≥ 0, got nan"),
        ({"rule": "gtd", "second": True}, "second must be"),
        ({"rule": "gtd", "memories": 1}, "memories must be 2 for gtd, got 1"),
        ({"rule": own_gtd, "memories": 4}, "memories must be from 1 to 3, which own_gtd uses, got 4"),
        ({"rule": own_gtd, "memories": True}, "memories must be from 1 to 3, which own_gtd uses, got True"),
    ],
)
def test_methods_that_are_none_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        study.SweptMethod(**given)


def test_a_method_is_data():
    method = study.SweptMethod(gtd, second=0.25)
    assert (method.rule, method.memories, method.second) == ("gtd", 2, 0.25)
    assert dataclasses.replace(method, second=0.5) == study.SweptMethod("gtd", second=0.5)


def test_the_numbers_of_the_papers_methods_have_not_changed():
    """As they were when each method had one memory and every run began at zero (but for the rounding of other machines)."""
    mrp = to.problems.random_mrp(10, 3, 0.1, seed=1)
    seen = {"tabular": mrp, "binary": mrp.with_features(to.features.binary_code(10))}
    grid = {"step_sizes": [0.2], "trace_decays": [0.9], "runs": 1, "steps": 300, "seed": 5}
    found = {(name, key[0]): error for name, p in seen.items() for key, error in errors(to.sweep(p, **grid)).items()}
    assert found == pytest.approx(BEFORE, rel=1e-14)


BEFORE = {
    ("tabular", "accumulate"): 7.18800929268977,
    ("tabular", "replace"): 1.5965572743994914,
    ("tabular", "true_online"): 2.6000927095616486,
    ("binary", "accumulate"): 16.166273894695387,
    ("binary", "replace"): 2.3681145326166897,
    ("binary", "true_online"): 6.740902179860907,
}
