"""Works that hold the interpreter, in processes of their own: the same results whatever happens to the processes.

The processes are real ones, and so are the kills. Where one must come in the middle of a work, the work waits for it.
"""

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from tests import processes as processes_of_tests
from tests.processes import PATIENCE, wait_for
from tests.study.toy_work import MISTAKES, Counting, Given, expected
from trueonline import problems, study
from trueonline.study import engines
from trueonline.study.engines import processes
from trueonline.study.storage.store import Store
from trueonline.terminal import TasksBar

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _quick_processes(monkeypatch):
    """They are forked, and look for modules where this process does. Those of the commands are spawned."""
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.setattr(processes, "SPAWN_CONTEXT", processes_of_tests.FORKED)


@pytest.fixture
def diary(tmp_path):
    (tmp_path / "diary").mkdir()
    return tmp_path / "diary"


@pytest.fixture
def make(diary):
    """Works by label, 40 steps each."""

    def make(labels, number=40, **settings):
        return [Counting(label, number, str(diary), **settings) for label in labels]

    return make


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def right(works, out):
    found = study.gather_tasks(works, out)
    return found is not None and found.equals(pa.concat_tables(expected(work.label, work.number) for work in works))


def alive(number):
    try:
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def begun(works, step=1):
    """Whether each of the works has come as far as this step."""
    return all(lives and step in lives[-1][1] for lives in (work.lives() for work in works))


def pids(works):
    return [pid for work in works for pid, _ in work.lives()]


def steps_taken(work):
    return [steps for _, steps in work.lives()]


# --- The same results -----------------------------------------------------------------------------


def test_each_work_has_a_process_and_its_result_and_no_more_run_at_a_time_than_wanted(make, out):
    """Among them a work that is given twice, which is done once, and tasks of another kind."""
    case = study.Case(problems.random_walk(), {"accumulate": None}, (0.1,), (0.9,), runs=1, steps=10)
    works, most = make("ab"), []

    def progress(*_):
        if pids(works) and not any(most):
            time.sleep(1.0)  # long enough for another process to begin, if there is one
        most.append(len(pids(works)) - len(list(out.glob("counting-*.parquet"))))

    study.execute_tasks([*works, *case.tasks(), *make("a")], out, threads=1, progress=progress)
    assert right(works, out)
    assert [steps_taken(work) for work in works] == 2 * [[list(range(1, 41))]]
    assert len({*pids(works), os.getpid()}) == 3
    assert max(most) <= 1
    assert sorted(path.name for path in out.iterdir()) == sorted(
        f"{task.name}.parquet" for task in (*works, *case.tasks())
    )
    assert not [process for process in psutil.Process().children(recursive=True) if process.pid in pids(works)]
    assert study.gather(case, out).equals(study.run([case]))


def test_shares_do_their_part_and_end_with_all_and_only_what_is_missing_or_damaged_is_computed_again(make, out):
    works = make("abc")
    study.execute_tasks(works, out, share="2/2")
    assert study.gather_tasks(works, out) is None
    ordered = sorted(works, key=lambda work: work.name)
    assert [work for work in works if work.lives()] == [ordered[1]]
    assert study.read_task(ordered[1], out).equals(expected(ordered[1].label, 40))
    assert study.read_task(ordered[0], out) is None
    study.execute_tasks(works, out, share="1/2")
    assert right(works, out)
    assert [len(work.lives()) for work in works] == [1, 1, 1]

    paths = [out / f"{work.name}.parquet" for work in works]
    paths[0].unlink()
    paths[1].write_bytes(paths[1].read_bytes()[:-1])
    study.execute_tasks(works, out)
    assert right(works, out)
    assert [len(work.lives()) for work in works] == [2, 2, 1]
    assert steps_taken(works[1])[1] == list(range(1, 41)), "no checkpoint was left of the first time"


def test_a_cluster_gives_the_same_and_a_killed_workers_task_goes_on_from_its_checkpoint(make, out):
    distributed = pytest.importorskip("distributed")
    works = [*make("ab"), *make("c", deaths=(25,))]
    here = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **here) as cluster:
        study.execute_tasks(works, out, engine=f"dask:{cluster.scheduler_address}")
    assert right(works, out)
    assert steps_taken(works[2]) == [list(range(1, 26)), list(range(21, 41))]
    assert not (out / "scratch").exists()


def test_a_worker_without_the_folder_computes_without_checkpoints_and_leaves_nothing_there(make, tmp_path):
    (work,) = make("a")
    found = engines._compute(work, tmp_path / "elsewhere" / "scratch" / work.name)
    assert found.equals(expected("a", 40))
    assert not (tmp_path / "elsewhere").exists()


def test_a_result_that_is_not_what_was_announced_is_refused_before_it_is_stored(out):
    def wanted(rows, name="counting-0123456789abcdef01234567"):
        task = Given(name)
        task.rows = rows
        return task

    with pytest.raises(ValueError, match=r"rows with the columns label: string, .* got 4 rows with name: string"):
        Store(out).write(wanted(None), expected("b", 40).rename_columns(["name", "step", "value"]))
    with pytest.raises(ValueError, match=r"must give a table of 5 rows .* got 4 rows"):
        study.execute_tasks([wanted(5)], out)
    assert not list(out.glob("*.parquet"))
    study.execute_tasks([wanted(4)], out)
    assert study.read_task(wanted(None), out).equals(expected(wanted(4).name, 40))
    assert study.read_task(wanted(3), out) is None


def test_a_study_of_no_works_is_refused(out):
    with pytest.raises(ValueError, match="at least one task"):
        study.gather_tasks([], out)


# --- Killed ---------------------------------------------------------------------------------------


@pytest.fixture
def three_lives(monkeypatch):
    assert processes.MAX_ATTEMPTS == 6
    monkeypatch.setattr(processes, "MAX_ATTEMPTS", 3)  # each takes half a second


def test_a_work_may_be_killed_again_and_takes_no_step_twice_but_those_since_the_checkpoint(make, out, three_lives):
    (work,) = make("a", deaths=(5, 17))
    study.execute_tasks([work], out)
    assert right([work], out)
    assert steps_taken(work) == [list(range(1, 6)), list(range(1, 18)), list(range(11, 41))]
    assert not (out / "scratch").exists()


def test_a_work_that_is_killed_every_time_is_an_error_that_names_it_and_stops_the_others(make, out, three_lives):
    doomed, *others = [*make("a", deaths=(15,) * 9), *make("b", waits_at=25)]
    with pytest.raises(ValueError, match=rf"{doomed.name} was killed 3 times.* exit code -9 \(Killed\)"):
        study.execute_tasks([doomed, *others], out, threads=2)
    assert len(doomed.lives()) == 3
    assert not any(alive(pid) for pid in pids([doomed, *others]))
    assert not list(out.glob("*.parquet"))
    assert (out / "scratch" / doomed.name).is_dir(), "its checkpoint is kept"


def test_two_studies_at_once_in_one_folder_both_end_with_all(make, out):
    works, raised = make("ab"), []

    def execute():
        try:
            study.execute_tasks(works, out, threads=1)
        except BaseException as error:
            raised.append(error)

    both = [threading.Thread(target=execute) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert raised == []
    assert right(works, out)


def test_a_work_whose_checkpoints_another_study_removed_is_computed_without_them(make, out):
    class Unlucky(Counting):
        def compute(self, scratch=None, beat=lambda steps: None):
            return super().compute(None, beat) if scratch is None else MISTAKES["FileNotFoundError"]()

    (work,) = make("a")
    unlucky, store = Unlucky(work.label, work.number, work.diary), Store(out)
    with pytest.raises(FileNotFoundError):
        processes.computed(unlucky, store.scratch(unlucky), lambda steps: None)
    store.begin()
    store.write(work, expected("a", work.number))
    assert processes.computed(unlucky, store.scratch(unlucky), lambda steps: None) == expected("a", work.number)


def test_what_a_process_killed_before_it_could_tidy_up_left_is_removed(make, out):
    works = make("ab")
    for work in works:
        (out / "scratch" / work.name).mkdir(parents=True)
    Store(out).write(works[0], expected("a", 40))
    (out / "scratch" / works[0].name).mkdir()
    Store(out).begin()
    assert [path.name for path in (out / "scratch").iterdir()] == [works[1].name]


# --- Mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mistake", "kind", "message"),
    [
        ("ValueError", ValueError, "invalid literal for int() with base 10: 'no number'"),
        ("FileNotFoundError", FileNotFoundError, "[Errno 2] No such file or directory: '/no/such/file'"),
        ("OSError", OSError, "[Errno 9] Bad file descriptor"),
        ("OwnValueError", ValueError, "this and that"),
        ("ZeroDivisionError", ZeroDivisionError, "integer division or modulo by zero"),
        ("OwnError", RuntimeError, "OwnError: a mistake"),
        ("SystemExit", RuntimeError, "SystemExit: 3"),
    ],
)
def test_what_a_work_raises_travels_with_its_type_message_and_traceback(mistake, kind, message):
    with pytest.raises(BaseException) as raised:  # noqa: PT011  (of any kind)
        MISTAKES[mistake]()
    found = pickle.loads(pickle.dumps(processes._portable(raised.value)))
    assert (type(found), str(found)) == (kind, message)
    assert "toy_work.py" in "".join(found.__notes__)


def test_a_mistake_is_raised_here_and_the_other_processes_are_stopped_and_can_go_on_later(make, out, tmp_path):
    (tmp_path / "other").mkdir()
    works = [*make("a", waits_at=25), Counting("b", 40, str(tmp_path / "other"), mistake="OwnValueError", waits_at=4)]

    def release():
        wait_for(lambda: begun(works[:1], 25) and begun(works[1:], 4), "work that waits")
        (tmp_path / "other" / "go").touch()

    helper = threading.Thread(target=release)
    helper.start()
    with pytest.raises(ValueError, match="this and that") as raised:
        study.execute_tasks(works, out, threads=2)
    helper.join()
    assert "toy_work.py" in "".join(raised.value.__notes__)
    assert len(works[1].lives()) == 1, "it would be the same again"
    assert not any(alive(pid) for pid in pids(works))
    mended = make("ab")
    study.execute_tasks(mended, out)
    assert right(mended, out)
    assert steps_taken(mended[0])[1] == list(range(21, 41))


def test_tasks_that_finished_while_another_failed_are_kept(tmp_path):
    finished, stored = [], []

    class Task(Given):
        def compute(self):
            if self.name == "bad":
                wait_for(lambda: len(finished) >= 2, "other task that finished")
                raise ZeroDivisionError
            finished.append(self.name)
            return super().compute()

    tasks = [Task(name) for name in ("a", "bad", "c", "d")]
    with pytest.raises(ZeroDivisionError):
        engines.run(tasks, "local", lambda task, table: stored.append(task.name), None, None, threads=4)
    assert sorted(stored) == ["a", "c", "d"]


def test_results_of_processes_that_arrived_before_a_mistake_was_heard_are_kept(make, tmp_path):
    works, stored = [*make("a", mistake="ZeroDivisionError"), *make("b")], []

    def moved(*_):  # nothing is heard until both have ended
        wait_for(lambda: begun(works[1:], 40) and not any(alive(pid) for pid in pids(works)), "end of both works")

    with pytest.raises(ZeroDivisionError):
        processes.run(works, lambda *result: stored.append(result), moved, lambda work: tmp_path / work.name, 2)
    ((work, table),) = stored
    assert work is works[1]
    assert table.equals(expected("b", 40))


def test_ctrl_c_while_a_dask_cluster_starts_is_said_in_a_line(tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "spec.toml").write_text('runs = 5\nsteps = 50\n[[problems]]\nkind = "random_walk"\n')
    command = [
        sys.executable,
        "-m",
        "trueonline",
        *["sweep", "spec.toml", "--out", "out", "--engine", "dask", "--threads", "2"],
    ]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = processes_of_tests.start(command, cwd=tmp_path, start_new_session=True, **pipes)
    here = psutil.Process(process.pid)

    def starting():
        return any("spawn_main" in " ".join(child.cmdline()) for child in here.children() if child.is_running())

    wait_for(starting, "worker")
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate()[1]
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "Stopped. Finished tasks are kept" in said


def test_a_process_that_ends_by_itself_without_a_result_is_an_error_at_once(make, out):
    (work,) = make("a", mistake="exit")
    with pytest.raises(ValueError, match=rf"{work.name} ended without a result, with exit code 3"):
        study.execute_tasks([work], out)
    assert len(work.lives()) == 1


def test_a_full_disk_stops_the_processes_and_keeps_the_checkpoint_of_what_could_not_be_stored(make, out, monkeypatch):
    works = make("ab")

    def full(*_):
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patched:
        patched.setattr(Store, "write", full)
        with pytest.raises(OSError, match="No space left"):
            study.execute_tasks(works, out, threads=2)
    assert not any(alive(pid) for pid in pids(works))
    study.execute_tasks(works, out)
    assert right(works, out)
    assert [] in [steps[-1] for steps in map(steps_taken, works)], "one was finished but for storing it"


# --- The commands ---------------------------------------------------------------------------------

COMMAND = """
import click
from trueonline import cli
from trueonline.cli.errors import plain_errors

@cli.main.command()
@click.argument("plan")
def toy(plan):
    with plain_errors():
        from tests.study import toy_work
        toy_work.execute(plan)
"""
GUARDED = """
import sys
from tests.study import toy_work

if __name__ == "__main__":
    toy_work.execute(sys.argv[-1])
"""
CONSOLE_SCRIPT = [str(BIN / "trueonline"), "toy"]
SCRIPT = [sys.executable, "guarded.py"]
STARTS = {  # besides the two above, which the tests of signals start
    "module": [sys.executable, "-m", "trueonline", "toy"],
    "text": [sys.executable, "-c", GUARDED],
}


@pytest.fixture
def start(tmp_path):
    """Start a process that executes works; the command `trueonline` has one more subcommand, `toy`, for it."""
    (tmp_path / "sitecustomize.py").write_text(COMMAND)
    (tmp_path / "guarded.py").write_text(GUARDED)
    (tmp_path / "unguarded.py").write_text(GUARDED.replace("if __name__", "if True or __name__"))
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}

    started = []

    def start(how, works, out, **settings):
        plan = json.dumps({"works": [vars(work) for work in works], "out": str(out), **settings})
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started.append(
            processes_of_tests.start([*how, plan], cwd=tmp_path, env=environment, start_new_session=True, **pipes)
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()  # where a test has failed
        process.communicate()


@pytest.mark.parametrize("how", STARTS.values(), ids=STARTS)
def test_processes_can_be_spawned_however_python_was_started(start, make, out, how):
    works = make("a")
    process = start(how, works, out)
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, "")
    assert right(works, out)


def test_a_script_without_the_guard_is_told_so(start, make, out):
    process = start([sys.executable, "unguarded.py"], make("a"), out)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert 'a script needs the guard if __name__ == "__main__"' in err.splitlines()[-1]


def test_when_the_parent_is_killed_its_children_end_and_a_rerun_goes_on_from_the_checkpoints(start, make, out, diary):
    (work,) = works = make("a", waits_at=25)
    for times, end in enumerate((signal.SIGTERM, signal.SIGKILL), 1):
        process = start(SCRIPT, works, out)
        wait_for(lambda times=times: len(work.lives()) == times and begun(works, 25), "work that waits")
        assert alive(pids(works)[-1])
        process.send_signal(end)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == -end
        wait_for(lambda: not any(alive(pid) for pid in pids(works)), "end of the child")
    (diary / "go").touch()
    study.execute_tasks(works, out)
    assert right(works, out)
    assert steps_taken(work) == [list(range(1, 26)), list(range(21, 26)), list(range(21, 41))]


def spawned(process):
    children = psutil.Process(process.pid).children()
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def test_ctrl_c_stops_says_how_to_go_on_and_keeps_the_checkpoints(start, make, out, diary):
    works = [*make("ab", waits_at=25), *make("c")]
    process = start(CONSOLE_SCRIPT, works, out)
    wait_for(lambda: begun(works[:2], 25), "work that waits")
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
    told, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, told) == (130, "")
    assert err.strip() == "Stopped. Finished tasks are kept; run the same command again to resume."
    assert not any(alive(pid) for pid in pids(works))
    # Again. Ctrl-C is for the parent, and does not disturb a child, whether starting or at work.
    again = start(CONSOLE_SCRIPT, works, out)
    wait_for(lambda: len(spawned(again)) == 2, "children")
    for child in spawned(again):
        child.send_signal(signal.SIGINT)
    wait_for(lambda: all(len(work.lives()) == 2 for work in works[:2]) and begun(works[:2], 25), "work that waits")
    for child in spawned(again):
        child.send_signal(signal.SIGINT)
    (diary / "go").touch()
    assert again.communicate(timeout=PATIENCE) == ("", "")
    assert right(works, out)
    assert [len(work.lives()) for work in works] == [2, 2, 1]
    assert steps_taken(works[0])[1][0] == 21


def test_ctrl_c_while_processes_are_still_starting_is_quiet_too(start, make, out):
    process = start(CONSOLE_SCRIPT, make("a", waits_at=1), out)
    wait_for(lambda: spawned(process), "child")
    starting = spawned(process)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert err.strip() == "Stopped. Finished tasks are kept; run the same command again to resume."
    assert not any(alive(child.pid) for child in starting)


# --- Progress -------------------------------------------------------------------------------------


def test_progress_counts_steps_and_what_was_there_before_comes_without_a_task(make, out, monkeypatch):
    monkeypatch.setattr(processes, "MAX_ATTEMPTS", 1)
    works = make("ab")
    Store(out).begin()
    Store(out).write(works[0], expected("a", 40))
    with pytest.raises(ValueError, match="was killed"):
        study.execute_tasks(make("b", deaths=(25,)), out)
    seen = []
    study.execute_tasks(works, out, progress=lambda *news: seen.append(news))
    assert right(works, out)
    assert seen[:2] == [(None, 40, 80), (None, 60, 80)]
    assert seen[-1] == (works[1], 80, 80)
    assert all(60 <= done < 80 for _, done, _ in seen[2:-1])


def shown(bar, seconds, task, done, of):
    """What stands beside the bar so many seconds after it began."""
    bar.bar.tasks[0].start_time, bar.bar.tasks[0].stop_time = 0.0, seconds
    bar(task, done, of)
    return [str(bar.bar.tasks[0].fields[name]) for name in ("count", "rate", "left")]


def test_the_bar_shows_steps_their_rate_and_the_time_left(make):
    (work,) = make("a")
    with TasksBar("Playing") as bar:
        bar(None, 1_000_000, 9_000_000)
        assert shown(bar, 1, None, 3_000_000, 9_000_000)[1:] == ["", "-:--:--"], (
            "a checkpoint says nothing about the rate"
        )
        assert shown(bar, 50, work, 4_000_000, 9_000_000) == ["4 M of 9 M ticks", "20 k ticks/s", "0:04:10"]
        assert shown(bar, 400, work, 4_000_500, 9_000_000)[1] == "2.5 k ticks/s"
        bar(work, 9_000_000, 9_000_000)
        assert bar.bar is None
        bar(None, 0, 900)
        assert shown(bar, 10, work, 45, 900) == ["45 of 900 ticks", "4.5 ticks/s", "0:03:10"]


def test_the_bar_shows_tasks_where_they_are_short():
    case = study.Case(problems.random_walk(), {"accumulate": None}, (0.1,), (0.9,), runs=1, steps=2_000_000)
    (task,) = case.tasks()
    with TasksBar("Sweeping") as bar:
        bar(None, 2, 6)
        assert shown(bar, 0.1, task, 3, 6)[:2] == ["3/6 tasks", "20 M steps/s"]
        assert shown(bar, 10, task, 4, 6)[2] == "0:00:10"
