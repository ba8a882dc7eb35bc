"""The engine cuda: what it stores whatever happens, and what it says where it cannot run. The device is the CPU."""

import sys
from types import ModuleType

import numpy as np
import pytest
from click.testing import CliRunner

import trueonline as to
from tests.study.cuda.fake_device import OnCpu
from tests.study.cuda.problems import FORMS, MRP, case
from tests.study.small_cases import Eager
from trueonline import study
from trueonline.cli import main
from trueonline.problems import random_mrp
from trueonline.study import cases as cases_module
from trueonline.study.engines import cuda as package
from trueonline.study.engines.cuda.engine import DeviceError, run

METHODS = {"accumulate": None, "true_online": None}
GRID = {"step_sizes": (0.1, 0.2), "trace_decays": (0.5, 0.9), "steps": 12}
LOST = "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """A task for every two runs."""
    monkeypatch.setattr(cases_module, "STEPS_PER_TASK", 2 * 2 * 2 * 12)


def cases(number=2):
    """Two shapes, so two batches at least. Six tasks for each case."""
    problems = [MRP, FORMS["few"], random_mrp(10, 3, 0.1, seed=2)]
    return [case(problem, METHODS, runs=6, **GRID) for problem in problems[:number]]


def tasks_of(some):
    return [task for each in some for task in each.tasks()]


def bits(table):
    return table["error"].to_numpy().tobytes()


class Kept(dict):
    """What an engine has stored."""

    def done(self, task, table):
        assert task.name not in self
        self[task.name] = bits(table)


@pytest.fixture
def kept():
    return Kept()


@pytest.fixture(scope="module")
def expected():
    return {}


def computed(tasks, expected):
    """The bits of the engine local."""
    expected.update({task.name: bits(task.compute()) for task in tasks if task.name not in expected})
    return {task.name: expected[task.name] for task in tasks}


# --- Memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.9, 0.5, 0.26])
def test_a_batch_that_does_not_fit_is_halved_until_it_does(share, kept, expected):
    tasks = tasks_of(cases(3))
    whole = OnCpu()
    run(tasks, lambda task, table: None, whole)
    largest = max(sum(each.nbytes for each in batch.inputs) for batch in whole.batches)
    device = OnCpu(room=share * largest + 8 * 8 * 6)
    run(tasks, kept.done, device)
    assert device.refused > 0
    assert len(device.batches) > len(whole.batches)
    assert kept == computed(tasks, expected)


def test_one_task_that_does_not_fit_is_an_error_that_names_the_way_out(kept, expected):
    """What fits is learned and kept before that."""
    small, large = case(MRP, METHODS, runs=2, **GRID).tasks(), case(FORMS["many"], METHODS, runs=2, **GRID).tasks()
    measuring = OnCpu()
    run(small, lambda task, table: None, measuring)
    size = sum(each.nbytes for each in measuring.batches[0].inputs) + sum(8 * task.rows for task in small)
    said = r"too little free memory for 8 learners of 9 features \(\d+ bytes\).* engine local"
    with pytest.raises(ValueError, match=said):
        run([*small, *large], kept.done, OnCpu(room=size))
    assert kept == computed(small, expected)


@pytest.mark.parametrize("most_bytes", [1.0, 2e3, 1e9])
def test_at_most_two_batches_are_under_way_and_two_where_there_are_two(most_bytes, kept, expected):
    """While one is learning the next is prepared. The device refuses a third (`fake_device.OnCpu`)."""
    seen = []

    class Watched(OnCpu):
        def collect(self, batch):
            seen.append(self.under_way)
            return super().collect(batch)

    tasks, device = tasks_of(cases()), Watched(most_bytes)
    run(tasks, kept.done, device)
    assert max(seen) == min(2, len(device.batches))
    assert device.under_way == 0
    assert kept == computed(tasks, expected)


def test_results_are_stored_while_others_are_learned(kept):
    """A result waits for one more batch at most."""
    stored = []

    class Watched(OnCpu):
        def submit(self, batch):
            stored.append(len(kept))
            return super().submit(batch)

    run(tasks_of(cases()), kept.done, Watched(most_bytes=1.0))
    assert stored == [0, 0, 0, *range(1, 10)]


# --- What goes wrong ------------------------------------------------------------------------------


class Failing(OnCpu):
    """Fails at a call of `submit` or `collect`, and at every later one."""

    def __init__(self, where, call, error):
        super().__init__(most_bytes=1.0)
        self.where, self.left, self.error = where, call, error

    def _count(self, where):
        if where == self.where:
            self.left -= 1
            if self.left <= 0:
                raise self.error

    def submit(self, batch):
        self._count("submit")
        return super().submit(batch)

    def collect(self, batch):
        self._count("collect")
        return super().collect(batch)


@pytest.mark.parametrize(
    ("where", "call", "stored"), [("collect", 1, 0), ("collect", 5, 4), ("submit", 1, 0), ("submit", 5, 4)]
)
def test_a_device_that_fails_is_an_error_in_words_and_results_before_it_are_kept(where, call, stored, kept, expected):
    tasks = tasks_of(cases())
    error = DeviceError(LOST)
    said = r"the GPU stopped answering \(CUDA_ERROR_ILLEGAL.*are kept: .*the engine local"
    with pytest.raises(OSError, match=said) as caught:
        run(tasks, kept.done, Failing(where, call, error))
    assert caught.value.__cause__ is error
    assert len(kept) == stored
    assert kept.items() <= computed(tasks, expected).items()


def test_ctrl_c_while_a_batch_is_awaited_keeps_the_others(kept, expected):
    class Once(Failing):
        def collect(self, batch):
            if self.left == 1:
                self.left = 0
                raise KeyboardInterrupt
            self.left -= 1
            return OnCpu.collect(self, batch)

    tasks = tasks_of(cases())
    with pytest.raises(KeyboardInterrupt):
        run(tasks, kept.done, Once("collect", 4, None))
    assert len(kept) == 4, "three before it, and the one that was under way beside it"
    assert kept.items() <= computed(tasks, expected).items()


def test_an_error_of_a_problem_is_shown_as_it_is_and_what_was_started_is_kept():
    class Broken(type(MRP)):
        def trajectory(self, steps, seed):
            if seed == study.run_seed(3, 4):
                raise ZeroDivisionError("a mistake")
            return super().trajectory(steps, seed)

    broken = Broken(MRP.transitions, MRP.rewards, discount=MRP.discount)
    tasks = case(broken, METHODS, runs=6, **GRID).tasks()
    stored = set()
    with pytest.raises(ZeroDivisionError, match="a mistake"):
        run(tasks, lambda task, table: stored.add((task.method, task.runs)), OnCpu(most_bytes=1.0))
    assert stored == {(method, runs) for method in METHODS for runs in ((0, 1), (2, 3))}


def test_after_an_error_the_device_has_nothing_under_way(kept, expected):
    def full(task, table):
        raise OSError(28, "No space left on device")

    device, tasks = OnCpu(most_bytes=1.0), tasks_of(cases())
    for _ in range(2):
        with pytest.raises(OSError, match="No space left on device"):
            run(tasks, full, device)
    run(tasks, kept.done, device)
    assert kept == computed(tasks, expected)


def test_a_rule_that_raises_an_error_is_named_and_the_results_of_others_are_kept(kept, expected):
    """A thread of a GPU cannot tell its error. It ends and leaves NaN."""

    class Raising(OnCpu):
        def _launch(self, batch, launch):
            errors = super()._launch(batch, launch)
            if launch.tasks[0].method == "accumulate":
                errors[-1, -1, -1] = np.nan
            return errors

    tasks = case(MRP, METHODS, runs=2, **GRID).tasks()
    with pytest.raises(ValueError, match=r"the rule of accumulate raised an error on the GPU.*the engine local can"):
        run(tasks, kept.done, Raising())
    assert kept == computed([task for task in tasks if task.method == "true_online"], expected)


# --- Studies --------------------------------------------------------------------------------------


@pytest.fixture
def on_device(monkeypatch):
    """Give the engine cuda this device."""

    def give(device):
        module = ModuleType("trueonline.study.engines.cuda.device")
        module.gpu = lambda number: device
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(package, "device", module, raising=False)
        return device

    return give


def learned(device):
    return [task.name for batch in device.batches for launch in batch.launches for task in launch.tasks]


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("order", [("cuda", "local"), ("local", "cuda"), ("cuda:1", "cuda")])
def test_a_study_begun_on_one_engine_and_finished_on_another_computes_nothing_twice(order, tmp_path, on_device, computed):
    """Its files are those of the engine local."""
    device, seen = on_device(OnCpu()), []
    study.execute(cases(1), tmp_path / "both", engine=order[0], progress=lambda *state: seen.append(state[1:]))
    assert seen == [(number, 6) for number in range(7)]
    study.execute(cases(3), tmp_path / "both", engine=order[1])
    names = [task.name for task in tasks_of(cases(3))]
    assert sorted(learned(device) + computed) == sorted(names)
    assert len(learned(device)) == {"cuda": 6, "local": 12, "cuda:1": 18}[order[0]]
    study.execute(cases(3), tmp_path / "local")
    assert files(tmp_path / "both") == files(tmp_path / "local")
    assert len(files(tmp_path / "both")) == 18


def test_what_has_no_kernel_runs_here_in_the_same_call(tmp_path, on_device, computed):
    device = on_device(OnCpu())
    methods = {"td_star": None, "true_online": None, "eager": Eager}
    some = [case(MRP, methods, runs=2, **GRID)]
    found = study.run(some, out=tmp_path / "cuda", engine="cuda")
    assert [name.split("-")[0] for name in learned(device)] == ["true_online"]
    assert sorted(name.split("-")[0] for name in computed) == ["eager", "td_star"]
    assert found.equals(study.run(some, out=tmp_path / "local"))
    assert found.equals(study.run(some, engine="cuda")), "in memory"
    errors = found["error"].to_numpy().reshape(3, -1)
    np.testing.assert_allclose(errors[1], errors[2], rtol=1e-9)


# --- Where it cannot run --------------------------------------------------------------------------

SPEC = """
step_sizes = [0.1]
trace_decays = [0.5]
runs = 2
steps = 20
[[problems]]
kind = "random_walk"
"""


@pytest.fixture(params=["no driver", "no GPU", "one GPU"])
def without_gpu(request, monkeypatch):
    """A machine without a driver, without a GPU, or without the second one. Whoever has one is treated in the same way."""
    reason = "cuda-bindings and numba-cuda are not installed"
    bindings = pytest.importorskip("cuda.bindings.driver", reason=reason)
    pytest.importorskip("numba_cuda", reason=reason)
    from trueonline.study.engines.cuda import device

    def no_driver(flags):
        raise RuntimeError("Failed to dlopen libcuda.so.1")

    answers = {
        "no driver": no_driver,
        "no GPU": lambda flags: (bindings.CUresult.CUDA_ERROR_NO_DEVICE,),
        "one GPU": lambda flags: (bindings.CUresult.CUDA_SUCCESS,),
    }
    errors = {
        "cuGetErrorName": lambda status: (bindings.CUresult.CUDA_SUCCESS, b"CUDA_ERROR_NO_DEVICE"),
        "cuGetErrorString": lambda status: (bindings.CUresult.CUDA_SUCCESS, b"no CUDA-capable device is detected"),
        "cuDeviceGetCount": lambda: (bindings.CUresult.CUDA_SUCCESS, 1),
        "cuInit": answers[request.param],
    }
    for name, answer in errors.items():
        monkeypatch.setattr(device.driver, name, answer)
    device.gpu.cache_clear()
    yield {
        "no driver": ("cuda", "the engine cuda needs an NVIDIA GPU and its driver (Failed to dlopen libcuda.so.1)"),
        "no GPU": (
            "cuda",
            "needs an NVIDIA GPU and its driver (CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected)",
        ),
        "one GPU": ("cuda:1", "there is no GPU 1: this machine has 1, counted from 0"),
    }[request.param]
    device.gpu.cache_clear()


def test_without_a_gpu_the_error_says_so_and_names_the_engine_local(without_gpu, tmp_path):
    engine, message = without_gpu
    with pytest.raises(ValueError, match="engine local gives the same results without a GPU") as caught:
        to.sweep(MRP, "true_online", [0.1], [0.5], runs=1, steps=5, engine=engine)
    assert message in str(caught.value)
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC)
    for command in (["sweep", str(spec)], ["reproduce", "fig4", "--runs", "1"]):
        result = CliRunner().invoke(main, [*command, "--out", str(tmp_path / "out"), "--engine", engine])
        assert result.exit_code == 1
        assert message in result.stderr
        assert "the engine local" in result.stderr
        assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_what_is_finished_already_needs_no_gpu(without_gpu, tmp_path):
    first = study.run(cases(), out=tmp_path)
    assert study.run(cases(), out=tmp_path, engine=without_gpu[0]).equals(first)


@pytest.mark.parametrize("missing", ["numba_cuda", "cuda.bindings", "cuda"])
def test_without_the_packages_the_error_names_the_extras(missing, monkeypatch, tmp_path):
    for name in [each for each in sys.modules if f"{each}.".startswith(f"{missing}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "trueonline.study.engines.cuda.device", raising=False)
    monkeypatch.delattr(package, "device", raising=False)
    said = rf"needs the extra.*({missing}|numba_cuda).*\[cuda13\].*\[cuda12\].* engine local gives the same"
    with pytest.raises(ValueError, match=said):
        to.sweep(MRP, "true_online", [0.1], [0.5], runs=1, steps=5, engine="cuda")
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC)
    result = CliRunner().invoke(main, ["sweep", str(spec), "--out", str(tmp_path / "out"), "--engine", "cuda"])
    assert result.exit_code == 1
    assert "trueonline[cuda13]" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("engine", ["cuda:x", "cuda:", "cuda:-1", "cuda:1.5", "CUDA", "cuda1"])
def test_engines_that_are_none_are_refused(engine, tmp_path):
    with pytest.raises(
        ValueError, match=f"unknown engine '{engine}'; known are local, dask, dask:ADDRESS, cuda and cuda:NUM"
    ):
        to.sweep(MRP, "true_online", [0.1], [0.5], runs=1, steps=5, engine=engine)


@pytest.mark.parametrize(("engine", "words"), [("nonsense", "unknown engine 'nonsense'"), ("cuda:99", "GPU")])
def test_an_engine_is_checked_before_experiments_without_a_sweep(engine, words, tmp_path):
    done = CliRunner().invoke(main, ["reproduce", "fig2", "--engine", engine, "--out", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert words in done.stderr
    assert not (tmp_path / "out").exists()
