"""The Atari Prediction Benchmark, scaled down: the stream against its description, and the study in real processes."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from trueonline import files, study
from trueonline.cli import main
from trueonline.paper import reproduction
from trueonline.paper.experiment import FAILS, HOLDS, NOISE, Settings

pytest.importorskip("ale_py")

from trueonline.control.atari import prediction
from trueonline.paper.atari_prediction import claims, games, runs, summary

SHARED = Path(__file__).parents[3] / "shared" / "data" / "atari_actions"
FRAMES = 320  # more than a block. The first point of these actions comes in frame 296 of Pong
FEW = (runs.COMPARED[0], runs.COMPARED[3], runs.COMPARED[4], runs.COMPARED[-1])


def actions_of(frames, letters="abcdef", seed=1):
    """Made-up actions: each for some frames, and a reset now and then."""
    rng = np.random.default_rng(seed)
    text = "R" + "".join(str(rng.choice(list(letters))) * 4 for _ in range(frames // 4 + 1))
    return text[:40] + "R" + text[40:]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("actions")
    with gzip.open(place / "Pong.txt.gz", "wt", encoding="ascii") as file:
        file.write(actions_of(400))
    (place / "SpaceInvadersNoFrameskip-v4.txt").write_text(actions_of(400, seed=1) + "\n", encoding="ascii")
    (place / "README.txt").write_text("Not a game.", encoding="ascii")
    return place


# --- The stream -----------------------------------------------------------------------------------


def expected_features(grey, reward, action):
    """The active features, from the description alone."""
    flat = np.append(grey.ravel().astype(int), [0] * 1000)
    i = np.array([160 * row + column for row in range(0, 210, 2) for column in range(0, 160, 2)])
    values = (flat[i] + flat[i + 3] + flat[i + 480] + flat[i + 483]) // 4 // 8
    return [*(32 * np.arange(len(i)) + values), {1: 300_000, -1: 300_001}.get(reward, 300_002), 300_003 + action]


def expected_stream(game, actions, frames):
    """Features and rewards of a game, played by ale-py itself."""
    import ale_py

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", 1731038949)
    ale.setInt("frame_skip", 1)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(ale_py.roms.get_rom_path(game))
    ale.reset_game()
    known, last = ale.getMinimalActionSet(), 0
    rows, rewards = [], []
    for letter in actions[1 : frames + 1]:
        points = 0
        if letter == "R":
            ale.reset_game()
        else:
            last = ord(letter) - ord("a")
            points = ale.act(known[last])
        rewards.append(float(np.sign(points)))
        rows.append(expected_features(ale.getScreenGrayscale(), rewards[-1], last))
    return np.array(rows), np.array(rewards)


def played(replay, frames):
    X, rewards = np.empty((frames, prediction.N_ACTIVE), np.int64), np.empty(frames)
    replay.play(X, rewards)
    return X, rewards


# Pong gets its first point in 296 frames. The screen of the last game is higher.
@pytest.mark.parametrize(("game", "frames"), [("pong", 320), ("space_invaders", 100), ("air_raid", 100)])
def test_the_stream_is_as_described(game, frames):
    actions = actions_of(frames)
    X, rewards = played(prediction.Replay(game, actions), frames)
    expected = expected_stream(game, actions, frames)
    np.testing.assert_array_equal(X, expected[0])
    np.testing.assert_array_equal(rewards, expected[1])
    assert X.max() < prediction.N_FEATURES
    assert len(np.unique(X[50])) == prediction.N_ACTIVE
    assert (X[0] != X[50]).any(), "the screen changes"


def test_rewards_are_signs_of_points():
    """The points of Space Invaders are multiples of 5, and their signs are rewards."""
    X, rewards = played(prediction.Replay("space_invaders", "R" + "b" * 600), 600)
    assert set(rewards) == {0.0, 1.0}
    np.testing.assert_array_equal(X[:, -2] == 300_000, rewards == 1.0)


def test_a_replay_resumes_exactly():
    actions = actions_of(300)
    X, rewards = played(prediction.Replay("pong", actions), 300)
    first, second = prediction.Replay("pong", actions), prediction.Replay("pong", actions)
    played(first, 30)
    second.restore(first.dump())
    rest = played(second, 270)  # a reset comes after this moment
    np.testing.assert_array_equal(rest[0], X[30:])
    np.testing.assert_array_equal(rest[1], rewards[30:])


@pytest.mark.parametrize(
    "damage", [{"replay": np.array([301, 0])}, {"replay": np.array([3, 6])}, {"emulator": np.zeros(9, np.uint8)}]
)
def test_a_state_that_does_not_fit_is_refused(damage):
    replay = prediction.Replay("pong", actions_of(296)[:300])
    with pytest.raises(ValueError, match="does not fit"):
        replay.restore({**replay.dump(), **damage})
    assert replay.frames == 0


def test_a_letter_that_is_no_action_is_refused():
    with pytest.raises(ValueError, match="letter 3 of the actions of pong is 'g': its 6 actions are a to f"):
        prediction.Replay("pong", "Rag")


# --- Files ----------------------------------------------------------------------------------------


def test_files_are_found_by_the_names_of_games(folder):
    found = prediction.recorded(folder)
    assert {game: path.name for game, path in found.items()} == {
        "pong": "Pong.txt.gz",
        "space_invaders": "SpaceInvadersNoFrameskip-v4.txt",
    }
    assert list(prediction.recorded(folder, ["spaceinvaders"])) == ["space_invaders"]
    assert list(prediction.recorded(folder, ["SpaceInvaders", "space_invaders"])) == ["space_invaders"]


def test_every_game_of_ale_py_has_its_own_name():
    names = prediction.games()
    assert len({prediction._plain(name) for name in names}) == len(names)


def test_folders_that_do_not_fit_are_refused(folder, tmp_path):
    with pytest.raises(ValueError, match="--actions must be a folder"):
        prediction.recorded(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="has none"):
        prediction.recorded(tmp_path)
    with pytest.raises(ValueError, match=r"--games names 'Breakout', but .* has actions of pong, space_invaders only"):
        prediction.recorded(folder, ["Pong", "Breakout"])
    for name in ("Pong.txt", "pong.txt.gz"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(ValueError, match=r"Pong\.txt and .*pong\.txt\.gz are both actions of pong"):
        prediction.recorded(tmp_path)


def test_files_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "Pong.txt"
    for content, message in (
        (b"Rabab", "has actions for 4 frames: give --frames that or less, not 5"),
        (b"", "has actions for 0 frames"),
        (b"Ra bab", "letter 3 is ' '"),
        (b"RaB\xffbab", "cannot be read as recorded actions"),
        (b"RaBbab", "letter 3 is 'B'"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            prediction.read_actions(path, 5)
    path.write_bytes(b"Rababab\n")
    assert prediction.read_actions(path, 5) == "Rababa"
    packed = tmp_path / "Pong.txt.gz"
    for content in (b"Rababab", gzip.compress(b"Rababab" * 1000)[:-20]):
        packed.write_bytes(content)
        with pytest.raises(ValueError, match="cannot be read as recorded actions"):
            prediction.read_actions(packed, 6000)


# --- Errors ---------------------------------------------------------------------------------------


def test_returns_are_sums_of_later_rewards():
    rewards = np.random.default_rng(0).normal(size=30)
    expected = [sum(0.98 ** (k - t - 1) * rewards[k] for k in range(t + 1, 30)) for t in range(30)]
    np.testing.assert_allclose(runs.returns_of(rewards), expected, atol=1e-12)
    assert runs.returns_of(rewards[:1]).tolist() == [0.0]


def test_windows_and_stretches_are_within_the_run():
    assert runs.ends(210_000).tolist() == list(range(5_000, 210_001, 5_000))
    assert runs.stretch(210_000) == slice(209_200, 209_700)
    for frames in (2, 41, 100, 320, 799):
        assert runs.ends(frames)[-1] == frames
        assert (np.diff(runs.ends(frames), prepend=0) > 0).all()
        late = runs.stretch(frames)
        assert 0 <= late.start < late.stop <= frames


def test_a_run_predicts_before_it_learns():
    """The predictions are those of a learner that is asked before every update, frame by frame."""
    task = runs.Game("pong", actions_of(FRAMES), FEW[1:3], FRAMES)
    run = runs.Run(task)
    run.play()
    X, rewards = played(prediction.Replay("pong", task.actions), FRAMES)
    learner, values = FEW[1].new(), [0.0]
    learner.start(X[0])
    for reward, x in zip(rewards[1:].tolist(), X[1:], strict=True):
        values.append(learner.predict(x))
        learner.update(reward, x)
    assert any(rewards)
    np.testing.assert_array_equal(run.predictions[0], values)
    (row, other) = run.results()
    assert row["error"] == pytest.approx(np.mean((runs.returns_of(rewards) - values) ** 2), rel=1e-12)
    assert row["error"] != other["error"], "another step-size"
    sizes = np.diff(runs.ends(FRAMES), prepend=0)
    assert np.average(row["curve"], weights=sizes) == pytest.approx(row["error"])
    assert row["stretch"] == list(values[:320])
    assert row["marks"] == []


def test_errors_at_marks_are_those_of_shorter_runs(monkeypatch):
    monkeypatch.setattr(runs, "MARKS", (300, 5000))
    task = runs.Game("pong", actions_of(FRAMES), FEW[1:2], FRAMES)
    long, short = runs.Run(task), runs.Run(replace(task, frames=300))
    for run in (long, short):
        run.play()
    (mark,) = long.results()[0]["marks"]
    assert mark == pytest.approx(short.results()[0]["error"], rel=1e-12)


# --- Tasks ----------------------------------------------------------------------------------------


def test_a_task_resumes_from_its_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "BLOCK", 80)
    monkeypatch.setattr(runs, "PATIENCE", 0.0)
    task = runs.Game("pong", actions_of(FRAMES), FEW, FRAMES)
    expected = task.compute().drop_columns("microseconds")

    def interrupt(frames):
        if frames == 160:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        task.compute(tmp_path / "scratch", interrupt)
    seen = []
    again = task.compute(tmp_path / "scratch", seen.append)
    assert seen == [80, 160, 240, 320], "it begins at its checkpoint"
    assert again.drop_columns("microseconds").equals(expected)


def test_checkpoints_that_do_not_fit_are_refused(tmp_path):
    task = runs.Game("pong", actions_of(100), FEW[1:2], 50)
    run = runs.Run(task)
    run.save(tmp_path / "run.npz")
    with pytest.raises(ValueError, match="is not a checkpoint of the task"):
        runs.Run(replace(task, frames=40)).resume(tmp_path / "run.npz")
    _, settings, arrays = files.read_learner(tmp_path / "run.npz")
    for damage in ({"rewards": np.zeros(3)}, {"replay": np.array([10**6, 0])}, {"learner0_here": np.array([10**7])}):
        files.write_learner(tmp_path / "run.npz", runs.KIND, settings, {**arrays, **damage})
        with pytest.raises(ValueError, match="is damaged"):
            runs.Run(task).resume(tmp_path / "run.npz")


def test_names_of_tasks_tell_everything_apart():
    task = runs.Game("pong", actions_of(100), FEW, 50)
    others = [
        replace(task, game="breakout"),
        replace(task, actions=actions_of(100, seed=2)),
        replace(task, frames=49),
        replace(task, methods=FEW[1:]),
        replace(task, methods=(replace(FEW[0], options={"bound": 0.2}), *FEW[1:])),
    ]
    assert len({task.name, *(other.name for other in others)}) == 6
    assert task.name == runs.Game("pong", actions_of(100), FEW, 50).name


def test_all_files_are_checked_before_anything_runs(folder, tmp_path):
    (tmp_path / "Pong.txt").write_text("Raaaa", encoding="ascii")
    (tmp_path / "Breakout.txt").write_text("Raaaag", encoding="ascii")
    with pytest.raises(ValueError, match=r"Breakout\.txt: letter 6 of the actions of breakout"):
        games(Settings(tmp_path, actions=tmp_path, frames=5))
    tasks = games(Settings(tmp_path, actions=folder, games=("Pong",), frames=30))
    assert [(task.game, task.frames, len(task.actions)) for task in tasks] == [("pong", 30, 31)]


# --- The study ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reproduced(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("atari-prediction")
    with pytest.MonkeyPatch.context() as patch:  # tasks carry their methods with them, so processes need not know
        patch.setattr(runs, "COMPARED", FEW)
        command = ["reproduce", "atari-prediction", "--actions", str(folder), "--frames", str(FRAMES), "--out", str(out)]
        first = CliRunner().invoke(main, command)
        patch.setattr(reproduction, "_draw", lambda picture, path: None)  # the same pictures again
        yield out, [first, CliRunner().invoke(main, command)]


def test_the_study_leaves_pictures_data_and_report(reproduced):
    out, (first, _) = reproduced
    assert first.exit_code == 0, first.output
    for name in ("figure.png", "curves.png", "predictions.pdf", "curves.csv", "predictions.csv", "data.csv"):
        assert (out / "atari-prediction" / name).stat().st_size > 300, name
    data = pq.read_table(out / "atari-prediction/data.parquet").to_pylist()
    assert len(data) == 2 * len(FEW)
    assert {row["game"] for row in data} == {"pong", "space_invaders"}
    assert all(row["over_swift"] == 1.0 for row in data if row["method"] == runs.SWIFT)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<td>Space Invaders</td>" in page
    assert "geometric mean [95 %]" in page
    verdicts = json.loads((out / "verdicts.json").read_text(encoding="utf-8"))
    assert [verdict["verdict"] for verdict in verdicts if "geometric" in verdict["claim"]] == [NOISE, NOISE], "two games"


def test_a_second_call_computes_nothing(reproduced):
    out, (first, second) = reproduced
    assert "640 frames of 2 games" in first.stderr
    assert second.exit_code == 0
    assert "frames a second" not in second.stderr
    assert len(list((out / "tasks").glob("*.parquet"))) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["atari-prediction"], "atari-prediction needs --actions FOLDER"),
        (["fig1", "--actions", "."], "only atari-prediction has it"),
        (["fig1", "--frames", "30"], "only atari-prediction has it"),
        (["atari-prediction", "--actions", "nowhere"], "--actions must be a folder"),
        (["atari-prediction", "--actions", ".", "--frames", "1"], "1 is not in the range"),
        (["atari-prediction", "--actions", ".", "--games", " ,"], "--games names no game"),
    ],
)
def test_wrong_options_are_refused(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["reproduce", *arguments])
    assert result.exit_code != 0
    assert message in result.output
    assert not list(tmp_path.glob("*/*.parquet"))


# --- Claims ---------------------------------------------------------------------------------------


def made(errors, frames=210_000, game=None):
    """Results with these lifetime errors: method → errors by game."""
    names = [game] if game else [f"game{number}" for number in range(len(errors[runs.SWIFT]))]
    return [
        {
            "game": name,
            "method": method.name,
            "step_size": method.step_size,
            "frames": frames,
            "error": errors[method.name][at] * (1 + 10 * (method == FEW[2])),
            "microseconds": 100.0 if method.name == runs.SWIFT else 50.0,
            "marks": [errors[method.name][at]] * len(runs.MARKS),
            "curve": [1.0] * len(runs.ends(frames)),
            "stretch": [0.0] * 500,
            "returns": [0.0] * 500,
        }
        for method in FEW
        for at, name in enumerate(names)
    ]


def test_claims_can_hold_and_fail():
    swift = np.linspace(0.5, 2.0, 8)
    good = summary.summarise(made({runs.SWIFT: swift, runs.PLAIN: 2.0 * swift, runs.ADAPTED: 0.8 * swift}), 0)
    assert [claim.verdict for claim in claims.judge(good)] == [HOLDS, HOLDS, HOLDS]
    bad = summary.summarise(made({runs.SWIFT: swift, runs.PLAIN: 0.5 * swift, runs.ADAPTED: 1.2 * swift}), 0)
    assert [claim.verdict for claim in claims.judge(bad)] == [FAILS, FAILS, FAILS]
    assert good.means[runs.ADAPTED] == pytest.approx((0.8, 0.8, 0.8))
    assert good.means[summary.HINDSIGHT][0] == pytest.approx(2.0)
    assert good.rows["game0", runs.PLAIN]["step_size"] == FEW[1].step_size, "the other step-size is worse everywhere"
    assert good.speeds[runs.PLAIN] == 0.5


@pytest.mark.parametrize(("error", "verdict"), [(0.0270 * 1.019, HOLDS), (0.0270 * 0.979, FAILS)])
def test_published_numbers_must_be_met(error, verdict):
    found = summary.summarise(made({name: [error] for name in (runs.SWIFT, runs.PLAIN, runs.ADAPTED)}, game="pong"), 0)
    first = claims.judge(found)[0]
    assert "first 60,000 frames of Pong" in first.claim
    assert first.verdict == verdict


def test_a_method_that_diverged_is_infinitely_worse():
    swift = np.linspace(0.5, 2.0, 8)
    broken = swift.copy()
    broken[3] = np.nan
    found = summary.summarise(made({runs.SWIFT: swift, runs.PLAIN: swift, runs.ADAPTED: broken}), 0)
    assert found.games[-1] == "game3"
    assert [claim.verdict for claim in claims.judge(found)][:2] == [FAILS, FAILS]
    assert summary.table_of_games(found)["adapted, over SwiftTD's"].to_pylist()[-1] == "inf [inf, inf]"


def test_games_without_rewards_are_left_out():
    errors = {name: [0.0, 1.0] for name in (runs.SWIFT, runs.PLAIN, runs.ADAPTED)}
    found = summary.summarise(made(errors), 0)
    assert (found.games, found.silent) == (("game1",), ("game0",))
    assert "Game0, which is left out" in summary.note(found)
    assert np.isnan(summary.data_of(made(errors))["over_swift"][0].as_py())
    with pytest.raises(ValueError, match="no reward came"):
        summary.summarise(made({name: [0.0] for name in errors}), 0)


def test_tables_can_be_written():
    swift = np.linspace(0.5, 2.0, 3)
    found = summary.summarise(made(dict.fromkeys((runs.SWIFT, runs.PLAIN, runs.ADAPTED), swift)), 0)
    table = summary.table_of_games(found)
    assert isinstance(table, pa.Table)
    assert table["game"].to_pylist() == ["Game0", "Game1", "Game2", "geometric mean [95 %]"]
    assert len(summary.curve_rows(found)) == 3 * 3 * 42
    assert len(summary.prediction_rows(found)) == 3 * 4 * 500


# --- Recorded actions -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="the recorded actions are not here")
def test_swift_td_meets_the_published_program(tmp_path):
    """Space Invaders, 20,000 frames: 0.328 in the published program."""
    (task,) = games(Settings(tmp_path, actions=SHARED, games=("SpaceInvaders",), frames=20_000))
    (row,) = replace(task, methods=runs.COMPARED[:1]).compute().to_pylist()
    assert row["error"] == pytest.approx(0.328, rel=0.02)
    assert study.gather_tasks([task], tmp_path) is None
