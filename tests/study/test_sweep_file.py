"""Studies from TOML files: the cases they describe, seeds, methods of one's own, and mistakes."""

import json
import subprocess
import sys

import numpy as np
import pytest

import trueonline as to
from tests.study.small_cases import names
from trueonline import catalog, study
from trueonline.study import sweep_file

pytestmark = pytest.mark.usefixtures("small_heap")

MRP = to.problems.random_mrp(10, 3, 0.1, seed=1)
GRID = "step_sizes = [0.1]\ntrace_decays = [0.5]\nruns = 2\nsteps = 10\nseed = 4\n"
RANDOM = '[[problems]]\nkind = "random_mrp"\nk = 10\nb = 3\nsigma = 0.1\n'


@pytest.fixture
def read(tmp_path):
    def read(text):
        path = tmp_path / "spec.toml"
        path.write_text(text)
        return sweep_file.read(path)

    return read


def test_a_file_means_the_cases_that_it_describes(read):
    representations = 'representations = ["tabular", "binary", "binary_unit", "non_binary"]\nseed = 1\n'
    cases = read(GRID + 'methods = ["accumulate", "true_online"]\n' + RANDOM + representations)
    expected = [
        study.Case(problem, {"accumulate": None, "true_online": None}, (0.1,), (0.5,), runs=2, steps=10, seed=4)
        for problem in (
            MRP,
            MRP.with_features(to.features.binary_code(10)),
            MRP.with_features(to.features.binary_code(10, unit_length=True)),
            MRP.with_features(to.features.random_unit(10, seed=np.random.SeedSequence([41, 1]))),
        )
    ]
    assert [names(case) for case in cases] == [names(case) for case in expected]
    labels = [("random_mrp 1", name) for name in ("tabular", "binary", "binary_unit", "non_binary")]
    assert [tuple(case.labels.values()) for case in cases] == labels


def test_what_a_file_does_not_say_is_the_papers(read):
    case, other = read('[[problems]]\nkind = "random_walk"\n[[problems]]\nkind = "two_state"\nlabel = 2\n')
    assert (case.step_sizes, case.trace_decays) == (study.STEP_SIZES, study.TRACE_DECAYS)
    assert (case.runs, case.steps, case.seed) == (50, 100, 0)
    assert tuple(case.methods) == study.METHODS
    assert case.labels == {"problem": "random_walk 1", "representation": "as_is"}
    assert other.labels["problem"] == "2"
    np.testing.assert_array_equal(other.problem.features, [[1.0], [1.0]])


def test_a_problem_can_be_about_the_average_reward(read):
    (case,) = read(GRID + RANDOM + "seed = 1\naverage_reward = true\n")
    method = {"true_online_differential": None}
    expected = study.Case(to.problems.AverageReward(MRP), method, (0.1,), (0.5,), runs=2, steps=10, seed=4)
    assert names(case) == names(expected)
    (case,) = read(
        GRID + 'methods = [{ method = "true_online_differential", eta = 0.1 }]\n' + RANDOM + "average_reward = true\n"
    )
    assert list(case.methods) == ["true_online_differential, η = 0.1"]
    with pytest.raises(ValueError, match="average_reward must be true or false, got 1"):
        read(GRID + RANDOM + "average_reward = 1\n")
    with pytest.raises(ValueError, match="process must be a FiniteMRP"):
        read(GRID + '[[problems]]\nkind = "baird"\naverage_reward = true\n')


def test_by_default_each_representation_has_the_methods_that_apply(read):
    cases = read(GRID + RANDOM + 'representations = ["tabular", "non_binary"]\n')
    not_binary = tuple(name for name in study.METHODS if not catalog.METHODS[name].binary)
    assert [tuple(case.methods) for case in cases] == [study.METHODS, not_binary]


def test_a_file_can_name_a_problem_in_arrays(read, tmp_path):
    walk = to.problems.random_walk()
    np.savez(
        tmp_path / "walk.npz", transitions=walk.transitions, rewards=walk.rewards, discount=1.0, start=9, reward_std=0.0
    )
    (case,) = read(GRID + '[[problems]]\nkind = "arrays"\npath = "walk.npz"\n')
    (expected,) = read(GRID + '[[problems]]\nkind = "random_walk"\n')
    assert names(case) == names(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no problem"),
        ("[[problems", "is not TOML"),
        (
            "step_size = [0.1]\n" + RANDOM,
            "unknown setting 'step_size'; known are after, methods, parameters, problems, runs",
        ),
        ('[[problems]]\nkind = "maze"', "unknown kind of problem 'maze'; known are arrays, baird"),
        ("[[problems]]\nk = 3", "unknown kind of problem"),
        (RANDOM + 'representations = ["fourier"]', "unknown representation 'fourier'; known are as_is, binary"),
        (
            RANDOM + "branches = 3",
            r"problem 1 \(random_mrp\): unknown setting 'branches'; known are average_reward, b, dis",
        ),
        ('[[problems]]\nkind = "arrays"\nfolder = "."', "unknown setting 'folder'; known are .*, path, representations"),
        ('[[problems]]\nkind = "random_mrp"\nk = 10', r"problem 1 \(random_mrp\): b and sigma must be set, as in b = …"),
        (RANDOM.replace("b = 3", "b = 30"), "b must be at most k = 10, got 30"),
        ('methods = ["td"]\n' + RANDOM, "unknown method 'td'; known are "),
        ("step_sizes = [nan]\n" + RANDOM, "step_sizes must be a finite number > 0, got nan"),
        ("methods = [3]\n" + RANDOM, "unknown method '3'; known are "),
        (
            'methods = [{ method = "gtd", beta = 1 }]\n' + RANDOM,
            "unknown setting of a method 'beta'; known are eta, meth",
        ),
        ('methods = [{ method = "gtd" }]\n' + RANDOM, "or true_online_differential and at least one η"),
        ('methods = [{ method = "emphatic", eta = 1 }]\n' + RANDOM, "name others without settings"),
        ('methods = [{ method = "gtd", eta = [1, -1] }]\n' + RANDOM, "eta must be a finite number ≥ 0, got -1"),
        ('methods = [{ method = "gtd", eta = true }]\n' + RANDOM, "eta must be a finite number ≥ 0, got True"),
        ("seed = [1, 2]\n" + RANDOM, r"seed above \[\[problems\]\] must be one number, got \[1, 2\]; write a list below"),
        ("step_sizes = 0.1\n" + RANDOM, "step_sizes must be"),
        ('methods = "true_online"\n' + RANDOM, r'methods must be a list, such as \["true_online"\], got'),
        ('methods = [["replace"]]\n' + RANDOM, "method"),
        ("problems = [1]", "problem"),
        ('[[problems]]\nkind = ["random_walk"]', "kind"),
        (RANDOM + 'representations = "tabular"', "representations must be"),
        (RANDOM + "representations = []", "representations must"),
        (RANDOM + 'label = ["a"]', "label must be"),
        (RANDOM + "seed = [1, 1]", "seed must be a whole number or a list of different ones"),
        (RANDOM + "seed = [1, [2]]", r"problem 1 \(random_mrp\): seed must be a whole number ≥ 0, got \[2\]"),
        ('[[problems]]\nkind = "random_walk"\nseed = [1, 2]', r"problem 1 \(random_walk\): .*seed"),
    ],
)
def test_files_with_mistakes_are_refused(read, text, message):
    with pytest.raises(ValueError, match=message):
        read(text)


def test_a_file_of_arrays_that_is_missing_or_damaged_is_named(read, tmp_path):
    text, path = '[[problems]]\nkind = "arrays"\npath = "walk.npz"\n', tmp_path / "walk.npz"
    with pytest.raises(FileNotFoundError, match=r"walk\.npz"):
        read(text)
    np.savez(path, transitions=np.eye(3), rewards=np.ones(3))
    np.save(tmp_path / "walk.npy", np.eye(3))
    whole = path.read_bytes()
    at = whole.find(b"shape") + 12
    for damaged in (b"", b"walk", whole[:-30], (tmp_path / "walk.npy").read_bytes(), whole[:at] + b"9" + whole[at + 1 :]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"walk.npz is not a file that numpy.savez wrote, or is damaged"):
            read(text)


# --- Several seeds --------------------------------------------------------------------------------


def test_a_list_of_seeds_means_several_problems(read):
    cases = read(GRID + RANDOM + 'seed = [1, 7]\nrepresentations = ["tabular", "non_binary"]\n')
    both = 'representations = ["tabular", "non_binary"]\n'
    alone = [case for seed in (1, 7) for case in read(GRID + RANDOM + f"seed = {seed}\n{both}")]
    assert [names(case) for case in cases] == [names(case) for case in alone]
    labels = [(f"random_mrp 1, seed {seed}", name) for seed in (1, 7) for name in ("tabular", "non_binary")]
    assert [tuple(case.labels.values()) for case in cases] == labels


def test_a_random_walk_has_the_size_that_the_file_gives(read):
    (case,) = read(GRID + '[[problems]]\nkind = "random_walk"\nn_states = 19\nend_rewards = [-1, 1]\n')
    np.testing.assert_allclose(case.problem.values, np.arange(-9, 10) / 10.0, atol=1e-12)


# --- Methods of one's own -------------------------------------------------------------------------

# The rule has the name and the text of that of `small_cases`, so that its kernel is found on disk.
RULES = """
import trueonline as to
from trueonline import study
from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, recall


@kernel
def accumulate_td(memory, x, reward, x_next, alpha, gamma, lam, gamma_next):
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    decay(memory, gamma * lam)
    imprint(memory, x, 1.0, 0.0)
    learn(memory, alpha * delta)
    return v, delta, v_next


class Learner(to.AccumulateTD):
    pass


as_data = study.SweptMethod(accumulate_td)
number = 3
"""


@pytest.fixture
def rules(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "rules.py").write_text(RULES)
    return tmp_path


def test_a_file_may_name_rules_methods_and_learners_of_ones_own(read, rules):
    """All have the numbers of TD(λ), whose rule they have."""
    own = '"mine/rules.py:accumulate_td", "mine/rules.py:as_data", { method = "mine/rules.py:Learner", name = "again" }'
    (case,) = read(GRID + f'methods = ["accumulate", {own}]\n' + RANDOM)
    assert list(case.methods) == ["accumulate", "accumulate_td", "as_data", "again"]
    theirs, rule, data, learner = study.run([case])["error"].to_numpy().reshape(4, -1)
    np.testing.assert_allclose(rule, theirs, rtol=1e-9)
    np.testing.assert_array_equal(rule, data)
    np.testing.assert_allclose(learner, theirs, rtol=1e-9)


def in_a_process(cases, folder):
    """The errors of cases that a process computes which has their methods by value alone."""
    cloudpickle = pytest.importorskip("cloudpickle")
    command = (
        "import pickle, sys; tasks = [case.tasks()[0] for case in pickle.load(sys.stdin.buffer)]; "
        "print([task.compute()['error'].to_pylist() for task in tasks])"
    )
    found = subprocess.run(
        [sys.executable, "-c", command], input=cloudpickle.dumps(cases), capture_output=True, check=True, cwd=folder
    )
    return json.loads(found.stdout)


NEIGHBOURS = {
    "helper.py": RULES.replace("number = 3", ""),
    "parts/__init__.py": "from parts.inner import Inner\n",
    "parts/inner.py": "import trueonline as to\n\n\nclass Inner(to.AccumulateTD):\n    pass\n",
    "rules.py": "import colorsys, wave\nimport helper, parts\naccumulate_td = helper.accumulate_td\nLearner = parts.Inner\n",
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two folders whose files have the same names. All tests use these, so that their rules are compiled once."""
    root = tmp_path_factory.mktemp("neighbours")
    for folder, share in (("one", ""), ("half", "0.5 * ")):
        for name, text in NEIGHBOURS.items():
            (root / folder / name).parent.mkdir(parents=True, exist_ok=True)
            (root / folder / name).write_text(text.replace("learn(memory, alpha", f"learn(memory, {share}alpha"))
    return root


@pytest.fixture
def neighbours(folders, tmp_path, monkeypatch):
    """The folders, while the command runs elsewhere."""
    monkeypatch.chdir(tmp_path)
    return folders


@pytest.mark.parametrize("name", ["accumulate_td", "Learner"])
def test_the_file_of_a_method_may_import_its_neighbours_from_anywhere(read, neighbours, name):
    path = list(sys.path)
    one, half = (f'method = "{neighbours}/{folder}/rules.py:{name}", name = "{folder}"' for folder in ("one", "half"))
    (case,) = read(GRID + f'methods = ["accumulate", {{ {one} }}, {{ {half} }}]\n' + RANDOM)
    assert sys.path == path
    assert not {"helper", "parts", "parts.inner"} & set(sys.modules)
    assert "wave" in sys.modules, "only neighbours are forgotten"
    theirs, ours, half = study.run([case])["error"].to_numpy().reshape(3, -1)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert np.allclose(half, theirs, rtol=1e-9) == (name == "Learner"), "each file has its own neighbours"


def test_methods_reach_a_process_that_can_import_neither_their_files_nor_their_neighbours(read, rules, neighbours):
    files = ("mine/rules.py", f"{neighbours}/half/rules.py")
    methods = [f"{file}:{name}" for file in files for name in ("accumulate_td", "Learner")]
    cases = [case for method in methods for case in read(GRID + f'methods = ["{method}"]\n' + RANDOM)]
    assert len(cases) == 4
    assert in_a_process(cases, rules) == [study.run([case])["error"].to_pylist() for case in cases]


def test_a_neighbour_with_the_name_of_a_module_of_python_is_followed(read, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "trace", raising=False)
    found = []
    for folder, share in (("one", 1.0), ("half", 0.5)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "trace.py").write_text(f"SHARE = {share}\n")
        rule = "import trace\n" + RULES.replace("learn(memory, alpha", "learn(memory, trace.SHARE * alpha")
        (tmp_path / folder / "rules.py").write_text(rule)
        found += read(GRID + f'methods = ["{folder}/rules.py:accumulate_td"]\n' + RANDOM)
    assert names(found[0]) != names(found[1])


def test_the_same_file_gives_the_same_tasks_and_an_edited_one_others(read, rules):
    text = GRID + 'methods = ["mine/rules.py:accumulate_td"]\n' + RANDOM
    (first,), (again,) = read(text), read(text)
    assert first.methods["accumulate_td"].rule is again.methods["accumulate_td"].rule, "a file is loaded once"
    (rules / "mine" / "rules.py").write_text(RULES.replace("learn(memory, alpha", "learn(memory, 0.5 * alpha"))
    (edited,) = read(text)
    assert names(edited) != names(first)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('"mine/none.py:accumulate_td"', r"there is no file .*none\.py"),
        ('"mine/rules.py:slow_td"', r"rules\.py has no 'slow_td'; its rules are accumulate_td"),
        ('"mine/rules.py:number"', "neither a class of learners nor an update rule: a rule must be a compiled kernel"),
        ('"mine/rules.py"', r'must be "path/to/file\.py:name", got'),
        ('"mine/broken.py:accumulate_td"', r"broken\.py cannot be run: ZeroDivisionError"),
        ('{ method = "mine/rules.py:accumulate_td", eta = 4.0 }', "eta is a setting of gtd, true_online_gtd, tdrc"),
        ('{ method = "mine/rules.py:accumulate_td", name = "" }', "name must be a text"),
        (
            '{ method = "mine/rules.py:accumulate_td", name = "accumulate" }, "accumulate"',
            "methods has 'accumulate' twice",
        ),
        ('{ method = "accumulate", name = "mine" }', "a method with settings must be"),
    ],
)
def test_methods_of_ones_own_that_are_none_are_refused(read, rules, entry, message):
    (rules / "mine" / "broken.py").write_text("1 / 0")
    with pytest.raises(ValueError, match=message):
        read(GRID + f"methods = [{entry}]\n" + RANDOM)
