"""Studies survive what happens to processes, folders and files: the results are those of an undisturbed run, bit for bit.

Here processes die at the worst moment. `make test-hostile` kills them at random ones.
"""

import random
import signal
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.processes import PATIENCE
from trueonline import study
from trueonline.study import sweep_file

SPEC = """
methods = ["true_online"]
step_sizes = [0.01, 0.03, 0.1, 0.3]
trace_decays = [0.0, 0.5, 0.9, 1.0]
runs = 5
steps = 20
seed = 7
[[problems]]
kind = "random_mrp"
k = 20
b = 3
sigma = 0.1
seed = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]
"""


class Study:
    """The spec as a file, its 18 tasks of no time, and its results when nothing happens."""

    def __init__(self, folder):
        self.spec = folder / "spec.toml"
        self.spec.write_text(SPEC)
        self.cases = sweep_file.read(self.spec)
        self.names = {task.name for case in self.cases for task in case.tasks()}
        self.expected = study.run(self.cases, threads=1)


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    return Study(tmp_path_factory.mktemp("short"))


def results(folder):
    """The names of the tasks that have a result."""
    return {path.stem for path in folder.glob("*.parquet")}


# --- Killed ---------------------------------------------------------------------------------------

CRASH = """
import os, signal

real, left = os.replace, 2

def crashing(source, target):
    global left
    left -= ".parquet" in str(target)
    if left or {after}:
        real(source, target)
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

os.replace = crashing
from trueonline.cli import main
from trueonline.study.storage import writer
writer.WRITERS = 1  # one result after the other
main()
"""


@pytest.mark.parametrize("after", [False, True], ids=["before the rename", "after the rename"])
def test_a_crash_at_the_second_rename_leaves_no_half_result(short, after, tmp_path, computed):
    finished, litter = (2, 0) if after else (1, 1)
    sweep = ["sweep", str(short.spec), "--out", str(tmp_path), "--threads", "1"]
    command = [sys.executable, "-c", CRASH.format(after=after), *sweep]
    done = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE)
    assert done.returncode == -signal.SIGKILL, done.stderr
    tasks = tmp_path / "tasks"
    assert len(results(tasks)) == finished
    assert len(list(tasks.glob(".*.part"))) == litter
    assert len(list(tasks.iterdir())) == finished + litter
    assert study.run(short.cases, out=tasks).equals(short.expected)
    assert len(computed) == len(short.names) - finished, "what has its name is a result, and nothing else is"
    assert results(tasks) == short.names


# --- Damaged files --------------------------------------------------------------------------------


def flip(content):
    at = len(content) // 3
    return content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :]


BYTES = {
    "empty": lambda content: b"",
    "cut off": lambda content: content[: len(content) // 2],
    "last byte missing": lambda content: content[:-1],
    "no Parquet": lambda content: b"method,step_size,trace_decay,run,error\n",
    "zeros": lambda content: bytes(len(content)),
    "a bit flipped": flip,
}
TABLES = {
    "a row missing": lambda table: table.slice(1),
    "a column of another type": lambda table: table.set_column(3, "run", table["run"].cast(pa.int32())),
    "columns of other names": lambda table: table.rename_columns(["method", "alpha", "lam", "run", "error"]),
    "no rows": lambda table: table.slice(0, 0),
}


def test_damaged_results_and_no_others_are_computed_again(short, tmp_path, computed):
    study.run(short.cases, out=tmp_path)
    computed.clear()
    chosen = random.Random(3).sample(sorted(tmp_path.iterdir()), len(BYTES) + len(TABLES))
    for path, damage in zip(chosen, BYTES.values(), strict=False):
        path.write_bytes(damage(path.read_bytes()))
    for path, damage in zip(chosen[len(BYTES) :], TABLES.values(), strict=True):
        pq.write_table(damage(pq.read_table(path)), path)
    untouched = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir() if path not in chosen}
    assert study.run(short.cases, out=tmp_path).equals(short.expected)
    assert sorted(computed) == sorted(path.stem for path in chosen)
    assert {path: path.stat().st_mtime_ns for path in untouched} == untouched
    computed.clear()
    assert study.run(short.cases, out=tmp_path).equals(short.expected)
    assert computed == []


# --- Folders --------------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_made_is_an_error_before_anything_runs(short, tmp_path, computed):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match=r"Not a directory|File exists"):
        study.run(short.cases, out=tmp_path / "file" / "tasks")
    assert computed == []
    assert (tmp_path / "file").read_text() == "in the way"
