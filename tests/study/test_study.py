"""Sweeps: the right numbers, the same on every engine, each computed once, and bad wishes refused before any work."""

import math
import subprocess
import sys
import tempfile

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

import trueonline as to
from tests.study.small_cases import MRP, SEEN, Eager, Ring, errors, mean_error, own_accumulate, small
from trueonline import study
from trueonline.study import cases as cases_module
from trueonline.study.storage.store import Store

COLUMNS = ["method", "step_size", "trace_decay", "run", "error"]
STEPS, RUNS, SEED = 60, 3, 5
ALPHAS, LAMS = (0.01, 0.2, 0.7), (0.0, 0.5, 0.9, 1.0)


# --- The numbers ----------------------------------------------------------------------------------


def oracle(problem, *setting, steps=STEPS):
    return mean_error(problem, *setting, steps=steps, seed=SEED)


@pytest.mark.parametrize("problem", SEEN.values(), ids=SEEN)
def test_errors_are_those_of_the_equations(problem):
    table = to.sweep(problem, step_sizes=ALPHAS, trace_decays=LAMS, runs=RUNS, steps=STEPS, seed=SEED)
    assert table.num_rows == len(study.applicable(problem)) * len(ALPHAS) * len(LAMS) * RUNS
    for setting, error in errors(table).items():
        assert error == pytest.approx(oracle(problem, *setting), rel=1e-9), setting


def test_a_run_that_diverges_has_an_infinite_error_and_its_neighbours_have_theirs():
    problem, steps = SEEN["binary"], 1000
    found = errors(to.sweep(problem, step_sizes=[0.05, 2.0], trace_decays=[0.0, 1.0], runs=2, steps=steps, seed=SEED))
    for run in range(2):
        for method in ("accumulate", "replace"):
            assert found[method, 2.0, 1.0, run] == math.inf
            assert oracle(problem, method, 2.0, 1.0, run, steps=steps) == math.inf
        for method in study.METHODS:  # what comes after a divergent setting is not touched by it
            expected = oracle(problem, method, 0.05, 0.0, run, steps=steps)
            assert found[method, 0.05, 0.0, run] == pytest.approx(expected, rel=1e-9)
    assert not any(math.isnan(error) for error in found.values())

    class Gone(Eager):
        def update(self, reward, x_next, discount):
            self.weights = self.weights * np.nan

    case = small(SEEN["binary"], {"mine": Eager, "gone": Gone, "theirs": to.AccumulateTD}, step_sizes=(1e3,), steps=200)
    assert set(errors(study.run([case])).values()) == {math.inf}


# --- The table ------------------------------------------------------------------------------------


def test_the_table_has_the_columns_of_the_contract_and_a_row_for_each_combination():
    table = to.sweep(MRP, step_sizes=[0.1, 0.2], trace_decays=[0.5], runs=3, steps=10)
    assert table.column_names == COLUMNS
    assert [str(kind) for kind in table.schema.types] == ["string", "double", "double", "int64", "double"]
    wanted = {(m, a, 0.5, r) for m in ("accumulate", "replace", "true_online") for a in (0.1, 0.2) for r in range(3)}
    assert set(errors(table)) == wanted
    assert table.num_rows == len(wanted)


def test_the_default_grids_are_the_papers():
    alphas, lams = np.array(study.STEP_SIZES), np.array(study.TRACE_DECAYS)
    expected = sorted({round(10**i, 12) for i in np.linspace(-3, -1, 11)} | {round(a / 10, 12) for a in range(1, 21)})
    np.testing.assert_allclose(alphas, expected, rtol=1e-9)
    expected = sorted({round(i / 10, 12) for i in range(10)} | {round(i / 100, 12) for i in range(90, 101)})
    np.testing.assert_allclose(lams, expected, rtol=1e-12)
    table = to.sweep(MRP, "true_online", runs=1, steps=2)
    assert table.num_rows == len(alphas) * len(lams)


@pytest.mark.parametrize("name", ["non-binary", "binary of unit length"])
def test_without_binary_features_replace_is_left_out_by_default(name):
    table = to.sweep(SEEN[name], step_sizes=[0.1], trace_decays=[0.5], runs=1, steps=5)
    assert set(table["method"].to_pylist()) == {"accumulate", "true_online"}
    assert study.applicable(SEEN["binary"]) == ("accumulate", "replace", "true_online")


def test_labels_become_the_first_columns():
    cases = [small(labels={"problem": "a", "size": 1}), small(SEEN["binary"], labels={"problem": "b", "size": 2})]
    table = study.run(cases)
    assert table.column_names == ["problem", "size", *COLUMNS]
    for label, case in zip("ab", cases, strict=True):
        part = table.filter(pa.compute.equal(table["problem"], label)).select(COLUMNS)
        assert part.equals(study.run([case]).select(COLUMNS))


@pytest.mark.parametrize("labels", [({"size": 1}, {"size": "large"}), ({"size": 1}, {"colour": 1}), ({"size": 1}, {})])
def test_cases_whose_labels_differ_are_gathered_or_refused_before_the_work(labels, computed):
    try:
        table = study.run([small(labels=label) for label in labels])
    except pa.ArrowInvalid:
        raise
    except ValueError:
        assert computed == []
    else:
        assert table.num_rows == 2 * 24


def test_a_label_cannot_hide_a_column():
    with pytest.raises(ValueError, match="error"):
        small(labels={"error": 1.0})


# --- What users bring -----------------------------------------------------------------------------


def test_a_function_that_numba_compiled_is_swept_like_the_packages_kernel():
    found = errors(to.sweep(MRP, {"accumulate": None, "mine": own_accumulate}, ALPHAS, LAMS, runs=2, steps=STEPS))
    mine = {key: error for key, error in found.items() if key[0] == "mine"}
    assert len(mine) == len(found) // 2 == len(ALPHAS) * len(LAMS) * 2
    for (_, *rest), error in mine.items():
        assert error == pytest.approx(found["accumulate", *rest], rel=1e-9)


@pytest.mark.parametrize("learner_class", [Eager, to.TrueOnlineTD])
@pytest.mark.parametrize("problem", [SEEN["non-binary"], SEEN["episodic"]], ids=["continuing", "episodic"])
def test_a_learner_class_of_ones_own_is_swept_like_the_packages_kernel(learner_class, problem):
    table = to.sweep(problem, {"true_online": None, "mine": learner_class}, [0.1, 0.4], [0.5, 1.0], runs=2, steps=30)
    found = errors(table)
    for (_, *rest), error in {key: error for key, error in found.items() if key[0] == "mine"}.items():
        assert error == pytest.approx(found["true_online", *rest], rel=1e-9)


def test_a_problem_of_ones_own_needs_five_things_only():
    found = errors(to.sweep(Ring(), step_sizes=[0.2], trace_decays=[0.0, 0.8], runs=2, steps=STEPS, seed=SEED))
    assert {method for method, *_ in found} == {"accumulate", "true_online"}
    for setting, error in found.items():
        assert error == pytest.approx(oracle(Ring(), *setting), rel=1e-9)


def test_the_arrays_of_a_problem_may_be_lists():
    class Lists(Ring):
        def __init__(self):
            super().__init__()
            self.features, self.metric, self.lms_weights = (
                part.tolist() for part in (self.features, self.metric, self.lms_weights)
            )

        def trajectory(self, steps, seed):
            return [part.tolist() for part in Ring().trajectory(steps, seed)]

    options = {"step_sizes": [0.1], "trace_decays": [0.8], "runs": 2, "steps": 20}
    for methods in ("true_online", {"eager": Eager}):
        assert to.sweep(Lists(), methods, **options).equals(to.sweep(Ring(), methods, **options))


def test_a_state_without_active_features_is_not_the_first_feature():
    class Problem:
        features, metric = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), np.eye(2)
        lms_weights, discount = np.ones(2), 0.9

        def trajectory(self, steps, seed):
            return np.arange(steps + 1) % 3, np.ones(steps), np.full(steps, 0.9)

    class AStepAtATime(to.TrueOnlineTD):
        """Swept without the kernel of sweeps."""

    table = to.sweep(Problem(), {"true_online": None, "one": AStepAtATime}, [0.1], [0.5], runs=1, steps=9)
    first, second = table["error"].to_pylist()
    assert np.isclose(first, second, rtol=1e-12)


class Plain:
    """The smallest problem: nothing but what a study asks for."""

    features, metric, lms_weights, discount = np.eye(3), np.eye(3) / 3, np.ones(3), 0.9

    def trajectory(self, steps, seed):
        return np.zeros(steps + 1, int), np.ones(steps), np.ones(steps)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trajectory", lambda n, seed: (np.full(n + 1, 10**9), np.ones(n), np.ones(n))),
        ("trajectory", lambda n, seed: (np.full(n + 1, -(10**9)), np.ones(n), np.ones(n))),
        ("trajectory", lambda n, seed: (np.zeros(n, int), np.ones(n), np.ones(n))),
        ("trajectory", lambda n, seed: (np.zeros(n + 1, int), np.ones(n), np.ones(n - 1))),
        ("trajectory", lambda n, seed: (np.zeros(n + 1, int), np.full(n, np.nan), np.ones(n))),
        ("lms_weights", np.ones(2)),
        ("metric", np.eye(2)),
        ("features", np.full((3, 3), np.nan)),
    ],
    ids=["no state", "below 0", "a state too few", "a discount too few", "nan", "weights", "metric", "features"],
)
def test_a_problem_of_ones_own_that_does_not_fit_is_refused(name, value):
    """A kernel that ran on such a problem might crash the process."""
    problem, settings = Plain(), {"step_sizes": [0.1], "trace_decays": [0.5], "runs": 1, "steps": 50}
    assert to.sweep(problem, "accumulate", **settings).num_rows == 1
    setattr(problem, name, value)
    with pytest.raises(ValueError, match=r"must|features"):
        to.sweep(problem, "accumulate", **settings)


def test_a_problem_whose_best_weights_are_zero_is_refused():
    nothing = to.problems.FiniteMRP([[0.5, 0.5], [0.5, 0.5]], np.zeros((2, 2)))
    with pytest.raises(ValueError, match="zero"):
        to.sweep(nothing, step_sizes=[0.1], trace_decays=[0.5], runs=1, steps=10)


# --- Engines and resuming -------------------------------------------------------------------------


@pytest.fixture
def small_blocks(monkeypatch):
    """A task for every two runs."""
    monkeypatch.setattr(cases_module, "STEPS_PER_TASK", 2 * 2 * 2 * 20)


def cases_of_all_kinds():
    return [small(problem, runs=5, labels={"problem": name}) for name, problem in SEEN.items()]


@pytest.fixture
def reference():
    return study.run(cases_of_all_kinds(), threads=1)


def test_two_threads_give_the_same_bits_as_one(reference):
    assert study.run(cases_of_all_kinds(), threads=2).equals(reference)


def test_blocks_of_runs_give_the_same_bits_as_all_runs_at_once(reference, small_blocks):
    assert len(small(runs=5).tasks()) == 3 * 3
    found = study.run(cases_of_all_kinds())
    assert errors_with_problem(found) == errors_with_problem(reference)


def errors_with_problem(table):
    return {tuple(row.values())[:5]: row["error"] for row in table.to_pylist()}


OWN_ON_DASK = """
import trueonline as to
from trueonline.core.memory import decay, imprint, learn, recall

@to.kernel
def accumulate_td(memory, x, reward, x_next, alpha, gamma, lam, gamma_next):
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    decay(memory, gamma * lam)
    imprint(memory, x, 1.0, 0.0)
    learn(memory, alpha * delta)
    return v, delta, v_next

class Wrapped:
    def __init__(self, n_features, step_size, trace_decay, discount):
        self.inner = to.AccumulateTD(n_features, step_size, trace_decay, discount)
        self.start, self.update = self.inner.start, self.inner.update
    weights = property(lambda self: self.inner.weights)

if __name__ == "__main__":
    methods = {"accumulate": None, "kernel": accumulate_td, "class": Wrapped}
    case = to.study.Case(to.problems.random_walk(), methods, (0.1,), (0.0,), runs=1, steps=30)
    alone = to.study.Case(case.problem, {"accumulate": None}, (0.1,), (0.0,), runs=1, steps=30)
    found = to.study.run([case, case], engine="dask", threads=1)["error"].to_pylist()
    assert to.study.run([alone])["error"].to_pylist() == found[:1], "the same bits"
    print(*found)
"""


def test_dask_runs_kernels_and_classes_of_a_users_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(OWN_ON_DASK)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    ours, own_kernel, own_class, *again = map(float, done.stdout.split())
    assert again == [ours, own_kernel, own_class], "the same case twice"
    assert own_kernel == pytest.approx(ours, rel=1e-9)
    assert own_class == pytest.approx(ours, rel=1e-9)


def test_two_cases_with_the_same_tasks_both_have_their_results(tmp_path):
    cases = [small(labels={"copy": copy}) for copy in ("first", "second")]
    for settings in ({}, {"out": tmp_path}):
        table = study.run(cases, **settings)
        assert table["copy"].to_pylist() == ["first"] * 24 + ["second"] * 24
        assert table["error"].to_pylist()[:24] == table["error"].to_pylist()[24:]
    assert len(list(tmp_path.iterdir())) == 3


def test_only_what_is_missing_is_computed(tmp_path, computed, small_blocks):
    case = small(runs=5)
    first = study.run([case], out=tmp_path)
    assert len(computed) == 9
    assert study.run([small(runs=5)], out=tmp_path).equals(first)
    assert len(computed) == 9, "nothing is computed again"
    gone = sorted(tmp_path.iterdir())[::4]
    for path in gone:
        path.unlink()
    assert study.run([case], out=tmp_path).equals(first)
    assert sorted(computed[9:]) == [path.stem for path in gone]
    bigger = study.run([small(runs=5, steps=21), case], out=tmp_path)
    assert bigger.num_rows == 2 * first.num_rows
    assert len(computed) == 9 + len(gone) + len(small(runs=5, steps=21).tasks())


def test_without_a_folder_results_stay_in_memory(monkeypatch, tmp_path, small_blocks):
    cases = [small(problem, {"true_online": None, "mine": Eager}, runs=3) for problem in (MRP, Ring())]
    expected, seen = study.run(cases, out=tmp_path), []
    monkeypatch.setattr(Store, "__init__", lambda *_: pytest.fail("a store was made"))
    monkeypatch.setattr(tempfile, "mkdtemp", lambda *_, **__: pytest.fail("a folder was made"))
    assert study.run(cases, progress=lambda *state: seen.append(state[1:])).equals(expected)
    assert seen == [(number, 8) for number in range(9)]


def test_progress_counts_from_what_is_there_to_all(tmp_path, small_blocks):
    seen = []
    study.run([small(runs=2)], out=tmp_path)
    study.run([small(runs=2), small(runs=2, seed=4)], out=tmp_path, progress=lambda *state: seen.append(state))
    assert [(done, of) for _, done, of in seen] == [(3, 6), (4, 6), (5, 6), (6, 6)]
    assert seen[0][0] is None
    assert all(task.steps == 2 * 2 * 2 * 20 for task, *_ in seen[1:])


def test_arguments_of_a_class_that_are_numbers_are_swept(tmp_path):
    """With the errors of learners that have these numbers."""
    problem, grid = SEEN["binary"], {"step_sizes": [0.1], "trace_decays": [0.5], "runs": 1, "steps": 20}
    given = {"meta_step_size": [0.01, 0.5]}
    table = to.sweep(problem, ["swift_td", "true_online"], **grid, parameters=given, out=tmp_path)
    assert table["meta_step_size"].to_pylist() == [0.01, 0.5, None]
    phi, target = problem.features, problem.features @ problem.lms_weights
    states, rewards, discounts = problem.trajectory(20, study.run_seed(0, 0))
    for rate, error in zip(given["meta_step_size"], table["error"].to_pylist(), strict=False):
        learner, total = to.SwiftTD(phi.shape[1], 0.1, 0.5, problem.discount, meta_step_size=rate), 0.0
        learner.start(phi[states[0]])
        for state, reward, discount in zip(states[1:], rewards, discounts, strict=True):
            learner.update(reward, phi[state], discount)
            total += problem.stationary @ (phi @ learner.weights - target) ** 2
        assert error == pytest.approx(total / 20 / (problem.stationary @ target**2), rel=1e-9)


# --- Bad wishes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"methods": "td"}, "unknown method 'td'; known are accumulate, replace, true_online"),
        ({"methods": []}, "methods must name at least one"),
        ({"methods": {"mine": lambda *transition: transition}}, "which no transition has|kernel"),
        ({"methods": {"mine": 3}}, "which no transition has|kernel"),
        ({"methods": {"mine": numba.njit(lambda memory, phase: (0.0, 0.0, 0.0))}}, "which no transition has|kernel"),
        ({"engine": None}, "known are"),
        ({"step_sizes": 0.1}, r"step_sizes must be a list of numbers, got 0\.1; a list may have one number"),
        ({"step_sizes": [0.1, np.nan]}, "step_sizes must be a finite number > 0, got nan"),
        ({"step_sizes": [0.1, 0.0]}, "step_sizes must be a finite number > 0, got 0.0"),
        ({"step_sizes": ["0.1"]}, "step_sizes must be a finite number > 0, got '0.1'"),
        ({"step_sizes": [0.1, 0.2, 0.1]}, "step_sizes must be distinct numbers"),
        ({"step_sizes": []}, "step_sizes must be distinct numbers, at least one"),
        ({"trace_decays": [np.nan]}, r"trace_decays must be a number in \[0, 1\], got nan"),
        ({"trace_decays": [1.01]}, r"trace_decays must be a number in \[0, 1\], got 1.01"),
        ({"trace_decays": [0.0, -0.0]}, "trace_decays must be distinct numbers"),
        ({"trace_decays": ()}, "trace_decays must be distinct numbers, at least one"),
        ({"runs": 0}, "runs must be a whole number from 1"),
        ({"runs": 2.0}, "runs must be a whole number from 1"),
        ({"steps": 0}, "steps must be a whole number from 1"),
        ({"seed": -1}, "seed must be a whole number ≥ 0, got -1"),
        ({"seed": "x"}, "seed must be a whole number ≥ 0, got 'x'"),
        ({"engine": "spark"}, "unknown engine 'spark'; known are local, dask, dask:ADDRESS, cuda and cuda:NUMBER"),
        (
            {"methods": "swift_td", "parameters": {"meta_stepsize": [1.0]}},
            "'meta_stepsize', which is a parameter of none .*: swift_td has bound, decay, meta_step_size and min_step_size",
        ),
        (
            {"methods": "swift_td", "parameters": {"bound": [0.5, 0.1], "min_step_size": [0.2]}},
            r"parameters of swift_td cannot be {'bound': 0.1, 'min_step_size': 0.2}: min_step_size must be",
        ),
        ({"problem": SEEN["non-binary"], "methods": ["replace"]}, "replace needs binary features; leave it out"),
        ({"problem": SEEN["non-binary"], "methods": {"mine": to.ReplaceTD}}, "mine needs binary features"),
        ({"problem": to.problems.random_mrp(5, 2, 0.1, discount=1.0)}, "with discount 1 every state must reach the end"),
        ({"problem": to.problems.FiniteMRP(np.eye(2), np.eye(2))}, "more than one stationary distribution"),
    ],
)
def test_bad_wishes_are_refused_before_anything_runs(given, message, computed):
    settings = {"problem": MRP, "step_sizes": [0.1], "trace_decays": [0.5], "runs": 1, "steps": 5, **given}
    with pytest.raises(ValueError, match=message):
        to.sweep(**settings)
    assert computed == []


@pytest.mark.parametrize("name", ["a/b", "../up"])
def test_any_name_of_a_method_will_do_for_a_folder(name, tmp_path):
    found = to.sweep(MRP, {name: to.AccumulateTD}, [0.1], [0.5], runs=1, steps=5, out=tmp_path / "out")
    assert found.num_rows == 1
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path, computed):
    (tmp_path / "out").touch()
    with pytest.raises(ValueError, match=r"results are kept in a folder, and .*out is a file"):
        study.run([small()], out=tmp_path / "out")
    assert computed == []


@pytest.mark.parametrize("share", ["0/3", "4/3", "1/0", "3", "a/b", "1/2/3", "-1/2", "1 / 2", "", "1/2\n"])
def test_shares_that_are_none_are_refused(share, tmp_path, computed):
    with pytest.raises(ValueError, match="shard must be i/N with 1 ≤ i ≤ N"):
        study.run([small()], share=share, out=tmp_path)
    assert computed == []


@pytest.mark.parametrize("of", [1, 2, 3, 7])
def test_shares_are_parts_of_all_tasks_and_each_about_as_large(of, small_blocks):
    tasks = small(runs=9).tasks()
    shares = [study.engines.shard(tasks, f"{number}/{of}") for number in range(1, of + 1)]
    assert sorted(task.name for share in shares for task in share) == sorted(task.name for task in tasks)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert all(share == [task for task in tasks if task in share] for share in shares), "in the order of the study"


def test_a_share_without_a_folder_and_a_study_of_no_cases_are_refused():
    for cases, settings, word in (([small(), small(SEEN["binary"])], {"share": "1/3"}, "out"), ([], {}, "case")):
        with pytest.raises(ValueError, match=word):
            study.run(cases, **settings)


# --- Several problems -----------------------------------------------------------------------------

FEW = {"step_sizes": [0.1, 0.3], "trace_decays": [0.5], "runs": 2, "steps": 20}


def test_several_problems_are_swept_as_one_after_the_other():
    """Each with the methods that fit it; `replace` does not fit features that are not binary."""
    given = {"table": SEEN["tabular"], "unit": SEEN["non-binary"]}
    table = to.sweep(given, **FEW)
    assert table.column_names == ["problem", *COLUMNS]
    for label, problem in given.items():
        part = table.filter(pa.compute.equal(table["problem"], label)).drop_columns("problem")
        assert part.equals(to.sweep(problem, **FEW))


def test_problems_in_a_list_are_told_apart_by_their_number():
    table = to.sweep([MRP, to.problems.random_mrp(10, 3, 0.1, seed=2)], "true_online", **FEW)
    assert dict.fromkeys(table["problem"].to_pylist()) == dict.fromkeys(["FiniteMRP 1", "FiniteMRP 2"])
    first, second = np.split(table["error"].to_numpy(), 2)
    assert not np.array_equal(first, second)


def test_grids_that_can_be_read_once_serve_several_problems():
    grids = {**FEW, "step_sizes": iter([0.1, 0.3]), "trace_decays": (lam for lam in [0.5])}
    assert to.sweep([MRP, MRP], **grids).equals(to.sweep([MRP, MRP], **FEW))


@pytest.mark.parametrize(
    ("problems", "message"),
    [
        ([], "got none"),
        ({}, "got none"),
        ({1: MRP, "1": MRP}, "labels of problems must differ"),
        ([MRP, 3], "a problem must have features, got int"),
        (3, "a problem must have features, got int"),
    ],
)
def test_problems_that_are_none_are_refused(problems, message):
    with pytest.raises(ValueError, match=message):
        to.sweep(problems, **FEW)


# --- The table of a task --------------------------------------------------------------------------


@pytest.mark.parametrize("methods", [3, to.TrueOnlineTD, [to.TrueOnlineTD], ["true_online", None], [["true_online"]]])
def test_methods_without_a_name_are_refused(methods):
    with pytest.raises(ValueError, match=r'methods must be names, or a mapping .* such as \{"mine": my_method\}, got'):
        to.sweep(to.problems.random_walk(), methods, [0.1], [0.5], runs=1, steps=5)


def test_problems_of_the_package_and_of_users_share_a_kernel():
    """Numba compiles a kernel again for an array that is read-only, as the features of a `FiniteMRP` are."""
    for problem in (SEEN["non-binary"], Ring()):
        case = small(problem)
        assert all(part.flags.writeable and part.flags.c_contiguous for part in (*case.arrays, *case.trajectory(0)))
