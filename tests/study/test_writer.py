"""Results on their way to the store: nobody waits for the disk, nothing is lost, and errors are told."""

import threading

import pyarrow as pa
import pytest

from tests.study.toy_work import Given, expected
from trueonline import study
from trueonline.study import engines
from trueonline.study.storage import writer
from trueonline.study.storage.work import WorkInPieces
from trueonline.study.storage.writer import Writer


class Disk:
    """A store that takes its time: a result is written when it is let go."""

    def __init__(self, slow=(), broken=()):
        self.slow, self.broken, self.go = slow, broken, threading.Event()
        self.written, self.flushed = [], []

    def write(self, task, table):
        if task.name in self.slow:
            self.go.wait()
        if task.name in self.broken:
            raise OSError(28, "No space left on device")
        assert table.equals(expected(task.name, 40))
        self.written.append(task.name)

    def flush(self):
        self.flushed.append(sorted(self.written))


def put(to, name, **more):
    to.write(Given(name, **more), expected(name, 40))


def test_who_computes_goes_on_while_results_are_written():
    disk, told = Disk(slow="ab"), []
    with Writer(disk, lambda task: told.append((task.name, threading.current_thread()))) as to:
        for name in "abcd":
            put(to, name)
        put(to, "e", spawned=False)
        assert "a" not in disk.written
        disk.go.set()
    assert sorted(disk.written) == list("abcde")
    assert sorted(name for name, _ in told) == list("abcde")
    assert {thread for _, thread in told} == {threading.current_thread()}
    assert disk.flushed == [list("abcde")], "once, at the end"


def test_a_task_is_told_of_after_its_result_is_stored():
    disk = Disk()
    with Writer(disk, lambda task: told.append((task.name, task.name in disk.written))) as to:
        told = []
        for name in "abcdefgh":
            put(to, name)
    assert sorted(told) == [(name, True) for name in "abcdefgh"]


def test_the_result_of_a_long_task_is_stored_before_the_next_word_about_it():
    disk, told = Disk(), []
    with Writer(disk, lambda task: told.append(task.name)) as to:
        for name in "abc":
            put(to, name, spawned=True)
            assert told[-1] == disk.written[-1] == name
            assert name in disk.flushed[-1]


def test_results_that_wait_are_few(monkeypatch):
    monkeypatch.setattr(writer, "MAX_WAITING", 2)
    disk, went_on = Disk(slow="abc"), threading.Event()

    def fill():
        with Writer(disk, lambda task: None) as to:
            for name in "abc":
                put(to, name)
            went_on.set()

    filling = threading.Thread(target=fill)
    filling.start()
    assert not went_on.wait(0.2), "the third waits until one is written"
    disk.go.set()
    filling.join()
    assert went_on.is_set()
    assert sorted(disk.written) == list("abc")


@pytest.mark.parametrize("spawned", [False, True])
def test_an_error_of_writing_is_raised_and_what_else_is_finished_is_stored(spawned):
    disk, told = Disk(slow=() if spawned else "b", broken="b"), []

    def write():
        with Writer(disk, lambda task: told.append(task.name)) as to:
            put(to, "a")
            put(to, "b", spawned=spawned)  # a long one is waited for
            put(to, "c")
            disk.go.set()

    with pytest.raises(OSError, match="No space left"):
        write()
    assert sorted(disk.written) == sorted(told) == (["a"] if spawned else ["a", "c"])


def test_after_ctrl_c_what_is_finished_is_stored_and_an_error_of_writing_does_not_hide_it():
    disk, told = Disk(slow="ab", broken="b"), []

    def interrupted():
        with Writer(disk, lambda task: told.append(task.name)) as to:
            for name in "abc":
                put(to, name)
            threading.Timer(0.1, disk.go.set).start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert sorted(disk.written) == sorted(told) == disk.flushed[-1] == ["a", "c"]


# --- Threads that compute -------------------------------------------------------------------------


class Held(Given):
    """A task that can be seen to begin, and that ends when it is let go."""

    def __init__(self, name, go):
        super().__init__(name)
        self.go, self.begun = go, threading.Event()

    def compute(self):
        self.begun.set()
        self.go.wait()
        return super().compute()


def test_a_thread_has_its_next_task_while_the_last_result_is_being_stored():
    first, second = Held("a", threading.Event()), Held("b", threading.Event())
    first.go.set()

    def done(task, table):
        if task is first:
            assert second.begun.wait(60.0), "the thread waits for the store"
            second.go.set()

    engines.run([first, second], "local", done, None, None, threads=1)
    assert second.go.is_set()


def test_after_ctrl_c_nothing_begins_and_what_has_begun_is_kept():
    tasks = [Held(name, threading.Event()) for name in "abcdefgh"]
    tasks[0].go.set()
    stored = []

    def done(task, table):
        stored.append(task.name)
        if task is tasks[0]:
            tasks[1].begun.wait()
            tasks[2].begun.wait()
            threading.Timer(0.1, lambda: [task.go.set() for task in tasks]).start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engines.run(tasks, "local", done, None, None, threads=2)
    assert stored[0] == "a"
    assert sorted(stored) == ["a", "b", "c"]
    assert not any(task.begun.is_set() for task in tasks[3:])


# --- The folder -----------------------------------------------------------------------------------


def test_who_reads_neither_makes_a_folder_nor_tidies_one(tmp_path):
    works = [Given("a"), Given("b")]
    assert study.gather_tasks(works, tmp_path / "none") is None
    assert study.read_task(works[0], tmp_path / "none") is None
    assert not (tmp_path / "none").exists()


def test_columns_of_few_and_of_many_values_come_back_as_they_were(tmp_path):
    many = Given("many")
    many.schema = pa.schema([("few", pa.float64()), ("many", pa.float64()), ("text", pa.string())])
    values = [float("nan"), float("inf"), -0.0, *(1.0 / n for n in range(1, 5000))]
    table = pa.table([[0.1] * len(values), values, ["λ"] * len(values)], schema=many.schema)
    many.compute = lambda: table
    study.execute_tasks([many], tmp_path)
    found = study.read_task(many, tmp_path)
    assert found.schema == many.schema
    for name in many.schema.names:
        assert repr(found[name].to_pylist()) == repr(table[name].to_pylist())


class Pieces(WorkInPieces):
    """Two pieces of 3 and 4 steps."""

    title, pieces, schema = "pieces", (("a", 3), ("b", 4)), pa.schema([("piece", pa.string())])

    def about(self):
        return [self.title]

    def row(self, piece, checkpoint, beat):
        beat(2)
        return {"piece": piece}


def test_a_work_in_pieces_counts_its_steps_and_keeps_its_finished_rows(tmp_path):
    for told in ([0, 2, 3, 5, 7], [7]):
        beats = []
        assert Pieces().compute(tmp_path, beats.append)["piece"].to_pylist() == ["a", "b"]
        assert beats == told
