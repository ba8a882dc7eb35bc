"""A run that is stopped or killed resumes from its checkpoint as if it had never stopped."""

from __future__ import annotations

import numpy as np
import pytest

import trueonline as to
from tests.saved_files import rewrite
from trueonline import files
from trueonline.control import atari
from trueonline.control.atari import runs


def state(run):
    """All that determines how a run goes on, by name."""
    about, parts = run.player.dump()
    arrays = {**parts, **run.emulator.dump()}
    now = {name: getattr(run, name) for name in ("score", "frames", "played", "action", "diverged")}
    return {**now, "episodes": list(run.episodes)}, about, {name: array.tobytes() for name, array in arrays.items()}


def advance(run, decisions):
    for _ in range(decisions):
        if run.finished:
            break
        run._decide()


# One class saves all agents (tests/control/test_agent_saving.py), so one agent stands for them.
PLAYERS = [("paper", "true_online"), *((protocol, "random") for protocol in atari.METHODS)]
PLAYERS += [("published", method) for method in atari.METHODS["published"][:-1]]


@pytest.mark.parametrize(("protocol", "method"), PLAYERS)
def test_a_run_that_is_stopped_and_resumed_is_one_that_never_stopped(protocol, method, background, tmp_path, monkeypatch):
    """Stopped before the first decision, at the end of an episode (decision 30), and at random ones."""
    if protocol == "paper":
        monkeypatch.setattr(runs, "EPISODE_FRAMES", 150)
    settings = atari.AtariSettings(
        protocol=protocol, method=method, step_size=1.0, seed=2, episodes=4 if protocol == "paper" else 1
    )
    rng = np.random.default_rng(len(method))
    stops = [0, *sorted({30, *rng.integers(1, 100, 3).tolist()})]
    never, states = atari.AtariRun(settings, background), {}
    for stop, before in zip(stops, [0, *stops], strict=False):
        advance(never, stop - before)
        never.save(tmp_path / f"{stop}.npz")
        states[stop] = state(never)
    assert (states[30][0]["action"] is None) == (protocol == "paper")
    advance(never, 10**6)
    stopped = atari.AtariRun(settings, background)
    for stop, following in zip(stops, [*stops[1:], 10**6], strict=True):
        stopped.resume(tmp_path / f"{stop}.npz")
        assert state(stopped) == states[stop], "what was written is what there was"
        advance(stopped, following - stop)
        assert state(stopped) == states.get(following, state(never))
    assert stopped.finished
    assert stopped.episodes == never.episodes


def test_resuming_forgets_what_a_run_did_before(background, tmp_path):
    """The traces of entries that the checkpoint does not name, too."""
    settings = atari.AtariSettings(protocol="published", trace_decay=0.99, episodes=1)
    run = atari.AtariRun(settings, background)
    advance(run, 5)
    run.save(tmp_path / "early.npz")
    advance(run, 100)
    late = state(run)
    run.resume(tmp_path / "early.npz")
    assert np.count_nonzero(run.player.e) == run.player.count
    advance(run, 100)
    assert state(run) == late


def test_play_writes_checkpoints_while_it_plays_and_goes_on_from_them(background, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "EPISODE_FRAMES", 700)
    settings = atari.AtariSettings(episodes=4, method="accumulate", step_size=0.1)
    path, beats = tmp_path / "c.npz", []

    def stop(frames):
        beats.append(frames)
        if len(beats) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        atari.play(settings, background, path, every=0.0, beat=stop)
    assert path.exists()
    assert beats == sorted(beats)
    resumed = atari.play(settings, background, path)
    whole = atari.play(settings, background)
    assert state(resumed) == state(whole)


OTHERS = {
    "step_size": ({"step_size": 0.6}, "step_size is 0.5, this run's is 0.6"),
    "method": ({"method": "replace"}, "method is true_online, this run's is replace"),
    "protocol": ({"protocol": "published"}, "protocol is paper, this run's is published"),
    "scaled": ({"scaled": False}, "scaled is True, this run's is False"),
    "game": ({"game": "breakout"}, "game is asterix, this run's is breakout"),
}


@pytest.fixture(scope="module")
def checkpoint(background, tmp_path_factory):
    """Of a run by the default settings that has just begun its second episode."""
    path = tmp_path_factory.mktemp("checkpoint") / "c.npz"
    run = atari.AtariRun(atari.AtariSettings(episodes=2), background)
    while not run.episodes:
        run._decide()
    advance(run, 3)
    run.save(path)
    return path


@pytest.mark.parametrize(("given", "message"), OTHERS.values(), ids=OTHERS)
def test_a_checkpoint_of_another_setting_is_refused_and_nothing_changes(given, message, background, checkpoint):
    run = atari.AtariRun(atari.AtariSettings(**{"episodes": 2, **given}), background)
    before, content = state(run), checkpoint.read_bytes()
    with pytest.raises(ValueError, match=message) as error:
        run.resume(checkpoint)
    assert str(checkpoint) in str(error.value)
    assert state(run) == before
    assert checkpoint.read_bytes() == content


def test_a_checkpoint_with_another_background_or_emulator_is_refused(background, checkpoint, monkeypatch):
    other = background.copy()
    other[100, 100] ^= 2
    run = atari.AtariRun(atari.AtariSettings(episodes=2), other)
    before = state(run)
    with pytest.raises(ValueError, match="background"):
        run.resume(checkpoint)
    assert state(run) == before
    run.screens = atari.Screens(background)
    monkeypatch.setattr(runs, "version", lambda package: "0.0.1")
    with pytest.raises(ValueError, match=r"ale-py is .*, this run's is 0\.0\.1"):
        run.resume(checkpoint)
    assert state(run) == before
    monkeypatch.undo()
    run.resume(checkpoint)
    assert len(run.episodes) == 1


def test_damaged_files_and_files_of_another_kind_are_refused(background, tmp_path):
    run = atari.AtariRun(atari.AtariSettings(episodes=1), background)
    before = state(run)
    (tmp_path / "text.npz").write_text("not a checkpoint")
    to.TrueOnlineTD(3, 0.1, 0.9, 0.9).save(tmp_path / "learner.npz")
    for name, message in (("text", "damaged"), ("learner", "holds a TrueOnlineTD")):
        with pytest.raises(ValueError, match=rf"{name}\.npz .*{message}"):
            run.resume(tmp_path / f"{name}.npz")
    with pytest.raises(FileNotFoundError):
        run.resume(tmp_path / "none.npz")
    assert state(run) == before


def test_a_checkpoint_with_crafted_numbers_is_refused_and_nothing_changes(background, tmp_path):
    run = atari.AtariRun(atari.AtariSettings(protocol="published", episodes=1), background)
    advance(run, 20)
    run.save(tmp_path / "c.npz")
    before, (_, settings, parts) = state(run), files.read_learner(tmp_path / "c.npz")
    crafted = {
        "player_traced": (parts["player_traced"] * 0 - 1, parts["player_traced"] * 0, parts["player_traced"] + 2**40),
        "player_e": (parts["player_e"] * 0.0,),  # they would be listed again and again
        "player_random": (np.full(32, 2**32 - 1, np.uint32),),
        "player_x": (parts["player_x"] + 2**40, parts["player_x"] * 0 - 1, parts["player_x"].astype(float)),
        "player_w": (None, parts["player_w"][:-1], parts["player_w"].astype(np.float32), parts["player_w"].T),
        "emulator": (parts["emulator"] * 0, parts["emulator"] * 0 + 255, parts["emulator"][:0], parts["emulator"][:-9]),
        "frames_seen": (parts["frames_seen"][:, :-1], parts["frames_seen"].astype(float)),
        "first_reward": (np.array(np.nan), np.array([1.0])),
        "episodes": (np.zeros((2, 3), np.int64), np.array(7)),
    }
    for name, others in crafted.items():
        for other in others:
            rewrite(tmp_path / "c.npz", out=tmp_path / "crafted.npz", **{name: other})
            with pytest.raises(ValueError, match=r"crafted\.npz is damaged"):
                run.resume(tmp_path / "crafted.npz")
            assert state(run) == before
    for part, name, value in (
        ("now", "action", 99), ("now", "action", "x"), ("now", "frames", 1e300), ("now", "score", None), ("now", "played", -1),
        ("player", "action", -1), ("player", "divisor", float("nan")), ("player", "q_old", None),
    ):  # fmt: skip
        changed = {**settings, part: {**settings[part], name: value}}
        rewrite(tmp_path / "c.npz", out=tmp_path / "crafted.npz", settings=changed)
        with pytest.raises(ValueError, match=r"crafted\.npz is damaged"):
            run.resume(tmp_path / "crafted.npz")
        assert state(run) == before
