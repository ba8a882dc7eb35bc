"""Batches: every task in one of them, trajectories once, and each task's own errors back, the bits of the engine local."""

from collections import Counter

import numpy as np
import pytest

from tests.study.cuda.fake_device import OnCpu
from tests.study.cuda.problems import FORMS, MDP, MRP, case
from tests.study.own_rules import late_decay
from tests.study.small_cases import Eager, Ring
from trueonline import catalog, study
from trueonline.problems import random_mrp
from trueonline.study import cases as cases_module
from trueonline.study.engines.cuda import batches
from trueonline.study.engines.cuda.engine import run

pytestmark = pytest.mark.usefixtures("small_heap")


@pytest.fixture
def small_blocks(monkeypatch):
    """A task for every two runs of `random_study`."""
    monkeypatch.setattr(cases_module, "STEPS_PER_TASK", 2 * 2 * 2 * 12)


class Weighted(Ring):
    """A user's problem with importance ratios, and with no word about them but in its trajectories."""

    def trajectory(self, steps, seed):
        parts = super().trajectory(steps, seed)
        return *parts, np.random.default_rng(seed).uniform(0.5, 2.0, size=steps)


def random_study(rng):
    """Tasks of several cases that differ in what batches must tell apart, some of them missing, in any order."""
    problems = [
        MRP,
        random_mrp(10, 3, 0.1, seed=2),
        FORMS["few"],
        FORMS["many"],
        MDP,
        FORMS["off-policy, begun elsewhere"],
    ]
    problems += [FORMS["average reward"], Ring(), Weighted()]
    found = []
    for _ in range(rng.integers(1, 8)):
        problem = problems[rng.integers(len(problems))]
        methods = {
            "true_online": study.SweptMethod("true_online", ignores=("ratio",)),
            "gtd": study.SweptMethod("gtd", second=float(rng.choice([0.0, 0.5]))),
            "also gtd": study.SweptMethod("gtd", second=0.5),
            "accumulate": study.SweptMethod("accumulate", ignores=("ratio",)),
        }
        some = rng.choice(list(methods), size=rng.integers(1, 5), replace=False)
        found.append(
            case(
                problem,
                {name: methods[name] for name in some},
                step_sizes=(0.1, 0.2) if rng.random() < 0.8 else (0.1, 0.3),
                trace_decays=(0.5, 0.9),
                runs=int(rng.integers(1, 6)),
                steps=12 if rng.random() < 0.8 else 11,
                seed=int(rng.integers(3)),
                after=int(rng.choice([0, 0, 5])),
            )
        )
    tasks = [task for each in found for task in each.tasks() if rng.random() < 0.8]
    return [tasks[place] for place in rng.permutation(len(tasks))]


@pytest.mark.parametrize("seed", range(12))
def test_plans_keep_their_limits_and_every_task_gets_the_errors_of_its_own_runs(seed, small_blocks):
    """What goes together has one shape."""
    rng = np.random.default_rng(seed)
    tasks = random_study(rng)
    most_bytes, most_steps = float(rng.choice([1e9, 3e4, 2e4, 6e3, 1.0])), float(rng.choice([1e9, 500.0]))
    planned = list(batches.plan(tasks, most_bytes, most_steps))
    assert Counter(task for some in planned for task in some) == Counter(tasks)
    for some in planned:
        batch = batches.gather(some)
        for task in some:
            features, root, _, _ = task.case.arrays
            assert (features.shape, features.dtype) == (batch.features.shape[1:], batch.features.dtype)
            assert root.shape == batch.roots.shape[1:]
            assert (task.case.steps, task.case.after) == (batch.rewards.shape[1], batch.after)
            assert (task.case.step_sizes, task.case.trace_decays) == (tuple(batch.alphas), tuple(batch.lams))
            assert task.case.problem.discount == batch.discount
        if len(some) > 1:
            assert sum(task.steps for task in some) <= most_steps
            trajectories = (batch.states, batch.rewards, batch.discounts, batch.chances)
            assert sum(part.nbytes for part in trajectories) + sum(8 * task.rows for task in some) <= most_bytes
    assert results(tasks, most_bytes=most_bytes, most_steps=most_steps) == computed(tasks)


def test_the_methods_of_a_case_share_its_trajectories(small_blocks):
    """Each run is in one row, whatever learns from it."""
    cases = [
        case(MRP, {"accumulate": None, "true_online": None, "gtd": None}, runs=5, steps=12, seed=seed) for seed in (1, 2)
    ]
    tasks = [task for each in cases for task in each.tasks()]
    (some,) = batches.plan(tasks, 1e9, 1e9)
    batch = batches.gather(some)
    assert batch.states.shape == (2 * 5, 12 + 1)
    assert len(np.unique(batch.rewards, axis=0)) == 2 * 5
    assert [len(launch.rows) for launch in batch.launches] == [2 * 5] * 3
    assert batch.cases.tolist() == [0] * 5 + [1] * 5
    for launch in batch.launches:
        assert sorted(launch.rows) == list(range(10))


def test_tasks_of_one_case_are_side_by_side_where_batches_are_small(small_blocks):
    """Those of different methods on the same runs go into the same batch, as far as there is room."""
    tasks = case(MRP, {"accumulate": None, "true_online": None}, runs=6, steps=12).tasks()
    for some in batches.plan(tasks, 1e9, most_steps=2 * tasks[0].steps):
        assert len({task.runs for task in some}) == 1
        assert {task.method for task in some} == {"accumulate", "true_online"}


@pytest.mark.parametrize(
    "problems", [(Ring(), Weighted()), (MRP, random_mrp(10, 3, 0.2, seed=2))], ids=["ratios", "values"]
)
def test_problems_of_one_shape_are_in_one_batch(problems):
    """Whether there are ratios is known from trajectories alone. One ratio stands for those of all steps."""
    tasks = [task for problem in problems for task in case(problem, {"gtd": None}).tasks()]
    assert len(list(batches.plan(tasks, 1e9, 1e9))) == 1
    assert results(tasks) == computed(tasks)


def test_what_no_kernel_sweeps_is_told_apart():
    methods = {"true_online": None, "td_star": None, "own": late_decay, "eager": Eager}
    some, others = batches.sweeps(case(MRP, methods).tasks())
    assert [task.method for task in some] == ["true_online", "own"]
    assert [task.method for task in others] == ["td_star", "eager"]


# --- Bits -----------------------------------------------------------------------------------------


def results(tasks, **options):
    """The errors of tasks by a device."""
    found = {}
    run(tasks, lambda task, table: found.update({task.name: table["error"].to_numpy().tobytes()}), OnCpu(**options))
    return found


def computed(tasks):
    """The errors of tasks by the engine local."""
    return {task.name: task.compute()["error"].to_numpy().tobytes() for task in tasks}


# One of each kind of memory: batches tell methods apart by their rule, their kind of memory and their second step-size.
EACH_KIND = {name: study.SweptMethod(name, ignores=("ratio",)) for name in ("true_online", "gtd", "true_online_gtd")}


@pytest.mark.parametrize("form", FORMS)
def test_methods_have_the_bits_of_the_engine_local(form):
    few = EACH_KIND if "average" not in form else {"true_online_differential": None}
    tasks = case(FORMS[form], few, after=3).tasks()
    assert results(tasks) == computed(tasks)


def test_every_kind_of_memory_is_among_them():
    kinds = {study.SweptMethod(name).kind for name in catalog.names(swept=True)}
    assert {study.SweptMethod(name).kind for name in EACH_KIND} == kinds


def test_the_order_of_tasks_does_not_matter(small_blocks):
    """Neither for the runs that go together, nor for results."""
    tasks = case(MRP, {"accumulate": None, "true_online": None}, runs=6, steps=12).tasks()
    plans = [list(batches.plan(some, 1e9, 2 * tasks[0].steps)) for some in (tasks, tasks[::-1])]
    assert [{task.runs for task in some} for some in plans[0]] == [{task.runs for task in some} for some in plans[1]]


def test_a_constant_discount_is_checked_before_anything_is_learned():
    """As the engine local does: a rule whose discount is a constant refuses other discounts."""

    class Changing(Ring):
        def trajectory(self, steps, seed):
            states, rewards, _ = super().trajectory(steps, seed)
            return states, rewards, np.where(states[1:] % 2 == 0, 0.8, 0.4)

    constant = catalog.Method(
        "constant", "constant", "own", learner=None, definition=None, rule=late_decay, swept=True, constants=("gamma",)
    )
    tasks = case(Changing(), {"constant": constant}).tasks()
    for way in (results, computed):
        with pytest.raises(ValueError, match=r"constant discount, here 0\.8, but the problem has 0\.4 too"):
            way(tasks)
