"""The harness of hostile trials, with a few trials of each kind. `make test-hostile` runs thousands."""

import random
import re
import tempfile
from importlib import import_module
from pathlib import Path

import pytest
from rich.console import Console

from tests.hostile import FAILED, FINE, KINDS, REFUSED, SKIPPED, self_check, workers
from tests.hostile import __main__ as command

pytest.importorskip("pyarrow")
from tests.hostile import api_calls, bad_disks, crafted_values, killed_commands, saved_files, wild_rewards
from trueonline import catalog

WRITERS = killed_commands.WRITERS


def tries(kind, tmp_path, numbers, ready=False):
    """The outcomes of some trials in this process."""
    module, outcomes = import_module(f"tests.hostile.{kind}"), []
    shared = tmp_path / kind / "shared"
    shared.mkdir(parents=True)
    if not ready:
        getattr(module, "prepare", lambda shared: None)(shared)
    for number in numbers:
        (tmp_path / str(number)).mkdir()
        outcomes.append(module.trial(random.Random(number), tmp_path / str(number), shared))
    return outcomes


# Files that differ from others in their kernels alone, which take long to compile.
SLOW = {"true_online_dense", "replace", "gtd_dense", "provisional_adapted", "swift_dense", "differential_sarsa"}


@pytest.mark.filterwarnings("ignore")  # crafted numbers overflow
@pytest.mark.parametrize("kind", ["mutated_streams", "changed_bytes", "crafted_values"])
def test_trials_of_files(kind, tmp_path, monkeypatch):
    """Every form of saved file is made and read, as `make test-hostile` does it. A zip bomb is left out."""
    for name in SLOW:
        monkeypatch.delitem(saved_files.FILES, name)
    monkeypatch.setattr(crafted_values, "LEARNERS", [name for name in crafted_values.LEARNERS if name not in SLOW])
    monkeypatch.setattr(crafted_values, "BOMB", 2**24)
    assert set(tries(kind, tmp_path, range(60))) == {REFUSED, FINE}


@pytest.mark.usefixtures("small_heap")
@pytest.mark.parametrize(
    ("kind", "trials"), [("shared_learners", 4), ("own_classes", 4), ("edited_outputs", 5), ("wild_rewards", 3)]
)
def test_trials_of_threads_classes_outputs_and_rewards(kind, trials, tmp_path, monkeypatch):
    monkeypatch.setattr(wild_rewards, "ADAPTING", [catalog.METHODS["true_online"]])
    assert set(tries(kind, tmp_path, range(trials))) <= {REFUSED, FINE}


@pytest.mark.parametrize("maker", api_calls.MAKERS, ids=lambda maker: getattr(maker[1], "__name__", ""))
def test_trials_of_calls(maker, tmp_path, monkeypatch):
    monkeypatch.setattr(api_calls, "EXAMPLES", 2)
    monkeypatch.setattr(api_calls, "MAKERS", [maker])
    assert sum(tries("api_calls", tmp_path, range(1)), start=api_calls.Counter()).total() > 1


@pytest.mark.apart
@pytest.mark.parametrize("name", WRITERS)
def test_a_command_that_is_killed_ends_when_nobody_kills_it(name, tmp_path):
    (shared := tmp_path / "shared").mkdir()
    (folder := tmp_path / "it").mkdir()
    killed_commands.write_inputs(shared)
    killed_commands.finish(name, folder, shared)
    assert WRITERS[name].result(folder) is not None


def test_trials_of_kills_and_disks(tmp_path, monkeypatch):
    monkeypatch.setattr(killed_commands, "OFTEN", ["save"])
    assert tries("killed_commands", tmp_path, [1]) in ([FINE], [REFUSED])
    (tmp_path / "full").mkdir()
    assert bad_disks.full_disk_under_a_learner(random.Random(1), tmp_path / "full", tmp_path) == REFUSED


def test_a_trial_of_pages(tmp_path, monkeypatch):
    pytest.importorskip("websockets", reason="the live page needs trueonline[live]")
    from tests.hostile import hostile_pages

    monkeypatch.setattr(hostile_pages, "SECONDS", 0.5)
    monkeypatch.setattr(hostile_pages, "steady_memory", lambda process: 1000)
    monkeypatch.setattr(hostile_pages, "ATTACKS", [hostile_pages.send_garbage_frames, hostile_pages.flood_with_pings] * 2)
    assert tries("hostile_pages", tmp_path, [1]) == [FINE]


def test_every_end_of_a_trial_is_an_outcome(tmp_path, monkeypatch):
    (place := tmp_path / "place").mkdir()
    numbers = [workers.PREPARE, *range(len(self_check.WAYS))]
    tasks = [workers.Task("self_check", number, 3) for number in numbers]
    outcomes = {outcome.task.number: outcome for outcome in workers.run(tasks[:-1], place, workers=1)}
    monkeypatch.setattr(workers, "DEADLINE", 0.5)
    outcomes |= {5: next(workers.run(tasks[-1:], place, workers=1))}
    counted = [outcomes[number].counts for number in numbers[1:]]
    assert [list(count) for count in counted] == [[FINE], [REFUSED], [SKIPPED], [FAILED], [FAILED], [FAILED]]
    assert outcomes[2].why == "there is a reason"
    assert "this promise does not hold" in outcomes[3].why
    assert "exit code -11" in outcomes[4].why
    assert "hung" in outcomes[5].why
    failures = [outcome for outcome in outcomes.values() if outcome.counts[FAILED]]
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert command.report_failures(Console(quiet=True), failures, place) == 1
    assert not place.exists()
    (kept,) = tmp_path.glob("hostile-failed-*")
    assert {path.name for path in kept.iterdir()} == {"self_check-3", "self_check-4", "self_check-5"}
    said = (kept / "self_check-4" / "failure.txt").read_text()
    assert said.startswith("python -m tests.hostile --seed 3 --only self_check --trial 4\n")


def test_a_run_without_time_for_a_kind_of_trial_fails(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["hostile", "--minutes", "0", "--only", "own_classes", "--jobs", "1"])
    assert command.main() == 1
    assert "No trial of own_classes fitted into this time" in capsys.readouterr().out


def test_the_table_goes_between_its_markers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"Before.\n\n{command.BEGIN}\nold\n{command.END}\n\nAfter.\n")
    row = command.row_of(KINDS[0], command.Counter({REFUSED: 1200, FINE: 3, FAILED: 1, SKIPPED: 7}))
    command.write_table(page, [row], "Seed 3.")
    text = page.read_text()
    assert text.startswith("Before.")
    assert text.endswith("After.\n")
    assert "old" not in text
    assert "| 1,204 | 1,200 | 3 | 1 |\n\nSeed 3.\n" in text
    assert all(import_module(f"tests.hostile.{kind}").PROMISE.endswith(".") for kind in KINDS)


def test_the_documentation_has_a_run_of_all_kinds_of_trials_of_today():
    page = (Path(__file__).parents[1] / "docs/explanation/reliability.md").read_text()
    rows = re.findall(
        r"^\| ([a-z ]+) \| (.+?) \| [0-9]", page.split(command.BEGIN)[1].split(command.END)[0], re.MULTILINE
    )
    assert rows == [(kind.replace("_", " "), import_module(f"tests.hostile.{kind}").PROMISE) for kind in KINDS]
