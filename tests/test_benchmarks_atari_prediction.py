"""The Atari Prediction Benchmark on a short made-up recording, against its description."""

import gzip
from importlib import import_module

import numpy as np
import pytest

from trueonline import SwiftTD

benchmark = import_module("benchmarks.atari_prediction")
report = import_module("benchmarks.report")

pytestmark = pytest.mark.apart
ale_py = pytest.importorskip("ale_py")
FRAMES = 320  # the first point of these actions comes in frame 296 of Pong


def made_up_actions():
    """Each for four frames, and a reset now and then."""
    text = "R" + "".join(letter * 4 for letter in np.random.default_rng(1).choice(list("abcdef"), FRAMES // 4 + 1))
    return text[:40] + "R" + text[40:]


def expected_stream(game, actions, frames):
    """Features and rewards of a game, played by ale-py itself, from the description alone."""
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(ale_py.roms.get_rom_path(game))
    ale.reset_game()
    last = 0
    for letter in actions[1 : frames + 1]:
        points = 0
        if letter == "R":
            ale.reset_game()
        else:
            last = "abcdef".index(letter)
            points = ale.act(ale.getMinimalActionSet()[last])
        screen = dict(enumerate(ale.getScreenGrayscale().ravel().tolist()))
        x, reward = [], (points > 0) - (points < 0)
        for place, (row, column) in enumerate((row, column) for row in range(0, 210, 2) for column in range(0, 160, 2)):
            corners = [160 * (row + down) + column + right for down in (0, 3) for right in (0, 3)]
            x.append(32 * place + sum(screen.get(corner, 0) for corner in corners) // 4 // 8)
        yield [*x, {1: 300_000, -1: 300_001, 0: 300_002}[reward], 300_003 + last], reward


@pytest.mark.parametrize("game", ["space_invaders", "air_raid"])  # the screen of the second is higher
def test_the_stream_is_as_described(game):
    found = list(benchmark.replay(game, made_up_actions()[:61]))
    for (x, reward), (expected, its_reward) in zip(found, expected_stream(game, made_up_actions(), 60), strict=True):
        np.testing.assert_array_equal(x, expected)
        assert reward == its_reward


def test_errors_are_those_of_predictions_before_learning(tmp_path):
    with gzip.open(tmp_path / "Pong.txt.gz", "wt") as file:
        file.write(made_up_actions())
    (tmp_path / "README.txt").write_text("not a game")
    settings = report.Settings(quick=True, pictures=None, peers_python="", actions=tmp_path, frames=FRAMES)
    section = benchmark.measure(settings)
    learner = SwiftTD(400_000, 0.001, 0.9, 0.98, bound=0.1, decay=0.999, meta_step_size=0.001)
    values, rewards = [], []
    for x, reward in expected_stream("pong", made_up_actions(), FRAMES):
        values.append(learner.predict(np.array(x)))
        rewards.append(reward)
        if len(rewards) == 1:
            learner.start(np.array(x))
        else:
            learner.update(reward, np.array(x))
    returns = [sum(0.98 ** (k - t - 1) * rewards[k] for k in range(t + 1, FRAMES)) for t in range(FRAMES)]
    error = np.mean((np.array(returns) - values) ** 2)
    assert error > 0.0, "a reward came"
    (game, shown, *_), (mean, *_) = section.tables[0].rows
    assert (game, shown, mean) == ("Pong", f"{error:.4g}", "geometric mean")
    with pytest.raises(ValueError, match=r"has actions for 32\d frames"):
        benchmark.lifetime_errors("pong", tmp_path / "Pong.txt.gz", 1000)


def test_a_game_without_a_reward_is_left_out_and_named(tmp_path):
    with gzip.open(tmp_path / "Pong.txt.gz", "wt") as file:
        file.write(made_up_actions())
    settings = report.Settings(quick=True, pictures=None, peers_python="", actions=tmp_path, frames=50)
    section = benchmark.measure(settings)
    assert section.notes == ["No reward came in the first 50 frames of Pong. They are left out."]
    assert not section.tables
