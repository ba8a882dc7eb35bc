"""Figure 8 run by run: the race, its statistics held to definitions, and real runs that are kept and continued."""

import json
import math
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from trueonline import files
from trueonline.cli import main
from trueonline.control import atari
from trueonline.paper import asterix_accumulating, asterix_collection, asterix_runs, reproduction
from trueonline.paper.asterix_collection import Collection
from trueonline.paper.asterix_race import Race, Setting, fit, grid
from trueonline.paper.experiment import FAILS, HOLDS, NOISE, Settings, Unfinished

pytest.importorskip("ale_py")

MIDDLE = [Setting(method, 0.8, 0.95) for method in asterix_runs.COMPARED]


def scores(means, runs, deviation=1.0, seed=0, effects=50.0):
    """Scores with an effect of each seed that all settings share, and noise of their own."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(0.0, effects, runs)
    return {
        setting: {run: mean + shared[run] + rng.normal(0.0, deviation) for run in range(runs)}
        for setting, mean in means.items()
    }


# --- Statistics -----------------------------------------------------------------------------------


def test_two_settings_with_common_seeds_are_compared_by_student_s_paired_test():
    a, b = MIDDLE[:2]
    given = scores({a: 900.0, b: 1000.0}, runs=6, deviation=20.0)
    found = fit(given)
    differences = np.array([given[b][run] - given[a][run] for run in range(6)])
    difference, error = found.difference(1, 0)
    assert difference == pytest.approx(differences.mean())
    assert error == pytest.approx(differences.std(ddof=1) / math.sqrt(6))
    assert found.freedom == 5
    low, high = stats.t.interval(0.95, 5, difference, error)
    paired = stats.ttest_rel([given[b][run] for run in range(6)], [given[a][run] for run in range(6)])
    np.testing.assert_allclose((low, high), paired.confidence_interval(), rtol=1e-12)


def test_a_setting_with_fewer_runs_is_compared_at_the_same_seeds():
    """Seeds have large effects and there is no noise: the difference is exact, whichever seeds a setting has."""
    a, b, c = MIDDLE
    given = scores({a: 900.0, b: 1000.0, c: 950.0}, runs=5, deviation=0.0)
    given[b] = {run: given[b][run] for run in (0, 3)}
    found = fit(given)
    np.testing.assert_allclose([found.difference(1, 0)[0], found.difference(2, 0)[0]], [100.0, 50.0], rtol=1e-9)
    assert found.deviation == pytest.approx(0.0, abs=1e-9)


def test_one_run_of_each_has_no_interval():
    race = Race({setting: {0: 900.0} for setting in MIDDLE})
    assert race.fit.deviation == math.inf
    assert [comparison.verdict for comparison in race.comparisons] == [NOISE, NOISE]
    assert all(math.isinf(comparison.low) for comparison in race.comparisons)
    assert race.needed() is None


def test_draws_have_the_covariance_of_the_fit():
    given = scores(dict.fromkeys(MIDDLE, 900.0), runs=40, deviation=30.0)
    found = fit(given)
    draws = found.draws(np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), found.means, atol=0.5)
    spread = (draws[:, 0] - draws[:, 1]).std()
    assert spread == pytest.approx(found.difference(0, 1)[1], rel=0.06)


@pytest.mark.parametrize(
    ("factor", "runs", "verdict"),
    [(1.0, 30, HOLDS), (1.5, 30, FAILS), (0.5, 30, FAILS), (1.0, 4, NOISE), (1.1, 30, NOISE)],
)
def test_verdicts(factor, runs, verdict):
    means = {setting: 1000.0 * (factor if setting.method == "true_online" else 1.0) for setting in MIDDLE}
    race = Race(scores(means, runs, deviation=30.0, seed=1))
    assert [comparison.verdict for comparison in race.comparisons] == [verdict, verdict]
    assert race.decided is (verdict != NOISE)


def test_the_estimate_is_kept_where_it_can_be_tried():
    """With so many runs, eight of ten studies of equal methods are decided, and with a fourth of them hardly any."""

    def decided(runs):
        means = dict.fromkeys(MIDDLE[1:], 1000.0)
        races = [Race(scores(means, runs, deviation=200.0, seed=seed)) for seed in range(60)]
        return np.mean([race._compare("replace").verdict == HOLDS for race in races])

    needed = Race(scores(dict.fromkeys(MIDDLE, 1000.0), 200, deviation=200.0)).needed()
    assert needed.low < needed.runs < needed.high
    assert 0.6 < decided(needed.runs) <= 0.97
    assert decided(needed.runs // 4) < 0.2


# --- The race -------------------------------------------------------------------------------------


def test_the_race_begins_in_the_middle_and_grows_by_neighbours():
    race = Race({})
    assert race.next_runs() == [(setting, 0) for setting in MIDDLE]
    race = Race({setting: {0: 900.0} for setting in MIDDLE})
    second = race.next_runs()
    assert len(second) == 3 + 3 * 4
    assert {setting.ring for setting, run in second if run == 0} == {1}
    assert {setting for setting, run in second if run == 1} == set(MIDDLE)


def test_every_setting_has_a_way_from_the_middle():
    settings = grid()
    assert len(settings) == 3 * 7 * 6
    assert all(one.ring <= other.ring for one, other in pairwise(settings))
    for setting in settings:
        assert bool(setting.parents) == bool(setting.ring)
        assert all(parent.ring == setting.ring - 1 and parent in settings for parent in setting.parents)


def test_a_setting_that_is_clearly_worse_gets_no_more_runs_and_what_lies_behind_it_does_not_join():
    means = {}
    for setting in grid():
        if setting.ring <= 1:
            means[setting] = 1000.0 if setting.trace_decay >= 0.95 else 300.0
    race = Race(scores(means, 4, deviation=30.0))
    assert all(setting.trace_decay >= 0.95 for setting in race.inside)
    following = {setting for setting, _ in race.next_runs()}
    for method in asterix_runs.COMPARED:
        assert Setting(method, 0.8, 0.9) not in following, "it is worse"
        assert Setting(method, 0.8, 0.8) not in following, "it lies behind the worse one"
        assert Setting(method, 0.5, 0.99) in following, "its neighbours are in the race"


def test_a_bad_method_does_not_lose_its_settings():
    means = {setting: 300.0 if setting.method == "replace" else 1000.0 for setting in MIDDLE}
    assert len(Race(scores(means, 6)).inside) == 3


def test_a_race_of_equal_methods_is_decided():
    """All settings alike but for their ring: the best is the middle."""
    rng, kept, effects = np.random.default_rng(5), {}, {}
    for _ in range(100):
        race = Race(kept)
        if race.decided:
            break
        for setting, run in race.next_runs():
            effect = effects.setdefault(run, rng.normal(0.0, 50.0))
            kept.setdefault(setting, {})[run] = 1000.0 - 250.0 * setting.ring + effect + rng.normal(0.0, 60.0)
    assert {comparison.verdict for comparison in race.comparisons} == {HOLDS}
    assert {race.inside[race.best(method)] for method in asterix_runs.COMPARED} == set(MIDDLE)
    assert len(race.scores) < len(grid()) / 2, "most settings were never tried"


# --- Runs that are kept ---------------------------------------------------------------------------


def kept(folder, setting, run, score=900.0, **other):
    collection = Collection(folder, 0, 1500)
    row = {"method": setting.method, "step_size": setting.step_size, "trace_decay": setting.trace_decay, "run": run}
    row |= {"score": score, "episodes": 3, "frames": 1600, "diverged": False, "protocol": "paper", "seed": run}
    folder.mkdir(exist_ok=True)
    path = collection.path(setting, run)
    files.write_json(path, row | {"asked_frames": 1500, "kernels": "k"} | other)
    return collection, path


def test_folders_of_two_machines_are_merged_by_copying(tmp_path):
    first, _ = kept(tmp_path / "one", MIDDLE[0], 0)
    _, other = kept(tmp_path / "two", MIDDLE[0], 1, score=700.0)
    other.rename(tmp_path / "one" / other.name)
    records, damaged = first.read()
    assert {run: row["score"] for run, row in records[MIDDLE[0]].items()} == {0: 900.0, 1: 700.0}
    assert damaged == []


def test_damaged_files_count_as_missing_and_wrong_ones_are_refused(tmp_path):
    collection, path = kept(tmp_path, MIDDLE[0], 0)
    path.write_bytes(path.read_bytes().replace(b"900.0", b"999.0"))
    assert collection.read() == ({}, [path.name])
    for name, value in {"seed": 5, "asked_frames": 99, "protocol": "published", "trace_decay": 0.5}.items():
        kept(tmp_path, MIDDLE[0], 0, **{name: value})
        with pytest.raises(ValueError, match=f"another run than its name says: its {name} is"):
            collection.read()


def test_other_seeds_of_the_study_are_other_runs(tmp_path):
    collection, _ = kept(tmp_path, MIDDLE[0], 0)
    assert Collection(tmp_path, 1, 1500).read() == ({}, [])
    assert Collection(tmp_path, 1, 1500).path(MIDDLE[0], 2).name == "accumulate-0.8-0.95-seed-100002.json"
    assert len(collection.read()[0]) == 1


@pytest.fixture(scope="module")
def short():
    """Runs of 1,500 frames, in threads: processes would do the same, and spend their time on beginning."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asterix_runs.Runs, "spawned", False)
        learn = atari.learn_background
        patch.setattr(atari, "learn_background", partial(learn, decisions=100))
        patch.setattr(asterix_accumulating, "outcome", partial(asterix_accumulating.outcome, frames=1500))
        patch.setattr(asterix_accumulating, "frames_a_second", lambda background: 10_000.0)
        yield


def invoke(out, *more):
    command = ["reproduce", "asterix", "--scale", "accumulating", "--out", str(out), "--threads", "2", *more]
    return CliRunner().invoke(main, command)


def test_every_call_continues(short, tmp_path, monkeypatch):
    """The folder of runs is all that a later call needs, also on another machine."""
    runs = tmp_path / "runs"
    with monkeypatch.context() as patch:  # the last call draws what all would draw
        patch.setattr(reproduction, "_draw", lambda picture, path: None)
        first = invoke(tmp_path / "one", "--collection", str(runs), "--more", "2")
    assert first.exit_code == 0, first.output
    names = {path.name: path.read_bytes() for path in runs.iterdir()}
    assert sorted(names) == ["accumulate-0.8-0.95-seed-000000.json", "replace-0.8-0.95-seed-000000.json"]
    record = files.read_json(runs / "replace-0.8-0.95-seed-000000.json")
    played = atari.play(atari.Settings("paper", "replace", 0.8, 0.95, 0, frames=1500), atari.learn_background())
    assert record["score"] == played.mean_score
    assert set(record["versions"]) == {"trueonline", "ale-py", "numpy", "numba"}
    with monkeypatch.context() as patch:
        patch.setattr(reproduction, "_draw", lambda picture, path: None)
        second = invoke(tmp_path / "two", "--collection", str(runs), "--more", "1")
    assert second.exit_code == 0, second.output
    assert len(list(runs.iterdir())) == 3
    assert all((runs / name).read_bytes() == content for name, content in names.items()), "finished runs stay as they are"
    third = invoke(tmp_path / "three", "--collection", str(runs), "--more", "0")
    assert third.exit_code == 0, third.output
    assert len(list(runs.iterdir())) == 3
    assert (tmp_path / "three/asterix/figure.png").stat().st_size > 1000
    claims = json.loads((tmp_path / "three/verdicts.json").read_text())
    assert [claim["verdict"] for claim in claims] == [NOISE, NOISE]
    assert claims[0]["numbers"]["runs in all"] == 3
    page = (tmp_path / "three/report.html").read_text()
    assert "3 runs of 1,500 frames so far" in page
    assert "50,400 runs would take about" in page


def test_machines_that_share_a_race_play_different_runs(tmp_path):
    """The name of a run says whose it is, so machines need not know what others have done."""
    names = {Collection(tmp_path, 0, 1500).path(setting, 0).name for setting in grid()}
    shares = [{name for name in names if asterix_collection._is_mine(name, f"{number}/3")} for number in (1, 2, 3)]
    assert set.union(*shares) == names
    assert sum(map(len, shares)) == len(names)
    assert min(map(len, shares)) > len(names) / 5


def test_a_share_of_a_round_ends_where_the_others_are_needed(short, tmp_path, monkeypatch):
    monkeypatch.setattr(asterix_collection, "_is_mine", lambda name, share: name.startswith("replace"))
    collection = Collection(tmp_path / "runs", 0, 1500)
    with pytest.raises(Unfinished, match="share 2/3 of this round of asterix is done; others are not"):
        asterix_collection.play(
            Settings(tmp_path / "t", share="2/3"), collection, atari.learn_background(), lambda text: None
        )
    assert [path.name for path in collection.folder.iterdir()] == ["replace-0.8-0.95-seed-000000.json"]


@pytest.mark.parametrize("share", ["0/2", "3/2", "x", "1"])
def test_bad_shares_are_refused(share):
    with pytest.raises(ValueError, match="shard must be i/N"):
        asterix_collection._is_mine("a", share)


def test_nothing_to_judge_is_an_error(short, tmp_path):
    result = invoke(tmp_path, "--more", "0")
    assert result.exit_code == 1
    assert "has no finished run with seed 0: let --more be at least 1" in result.stderr


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["asterix", "--more", "1"], "they need --scale accumulating"),
        (["asterix", "--collection", "x"], "they need --scale accumulating"),
        (["fig1", "--scale", "accumulating"], "only asterix can accumulate"),
        (["asterix", "--scale", "accumulating", "--runs", "3"], "cannot be combined: use --more"),
    ],
)
def test_options_that_do_not_fit_are_refused(given, message, tmp_path):
    result = CliRunner().invoke(main, ["reproduce", *given, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "out").exists()


def test_words_of_a_decided_race():
    means = dict.fromkeys(MIDDLE, 1000.0)
    race = Race(scores(means, 40, deviation=30.0))
    words = asterix_accumulating._words(race.comparisons[0])
    assert words.startswith("true online against accumulate: ")
    assert words.endswith("decided: holds")
    cost = asterix_accumulating._cost(race, hours=0.1)
    assert "core-hours" in cost
    assert "The paper's 50,400 runs would take about 5,040 core-hours" in cost
