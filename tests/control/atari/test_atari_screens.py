"""Screens as features and as averaged colours, against Bellemare et al. (2013) and the emulator's own average."""

from __future__ import annotations

import numpy as np
import pytest

from tests.control.atari.consoles import BIAS, EUROPEAN, HIGHER, OTHERWISE, N, basic_features, console, looked_up
from trueonline.control import atari


@pytest.mark.parametrize("share", [0.0, 0.002, 0.1, 1.0])
@pytest.mark.parametrize("height", [210, 250])
def test_features_are_the_colours_of_each_tile_without_the_background(share, height):
    rng = np.random.default_rng([height, int(1000 * share)])
    background, colours, earlier = rng.integers(0, 128, (3, height, 160), dtype=np.uint8) * np.uint8(2)
    changed, flickers = rng.random((2, height, 160)) < share
    now = np.where(changed, colours, background)
    before = np.where(flickers, earlier, now)
    expected = basic_features(looked_up(now, before), background)
    found = atari.Screens(background).features(now, before)
    assert found.dtype == np.int64
    assert found.tolist() == expected, "and in rising order"


@pytest.mark.parametrize("colour", [2, 126, 128, 254])
def test_a_pixel_belongs_to_its_tile_also_at_the_border(colour):
    """Corners of tiles, at the edges of the words in which pixels are passed over, and of the words that hold colours."""
    empty = np.zeros((210, 160), np.uint8)
    looker = atari.Screens(empty)
    for y in (0, 14, 15, 29, 194, 195, 209):
        for x in (0, 7, 8, 9, 10, 79, 80, 149, 150, 152, 159):
            now = empty.copy()
            now[y, x] = colour
            assert looker.features(now, now).tolist() == [(y // 15 * 16 + x // 10) * 128 + colour // 2, BIAS]


def test_all_features_can_be_active_at_once():
    background = np.zeros((210, 160), np.uint8)
    now = np.tile((2 * np.arange(150) % 256).astype(np.uint8).reshape(15, 10), (14, 16))
    background[now == 0] = 2  # colour 0 counts too, where it is not the background
    found = atari.Screens(background).features(now, now)
    assert found.tolist() == list(range(N))
    assert atari.N_FEATURES == N == 28_673


def test_an_object_of_the_background_s_colour_is_not_seen_and_one_that_only_flickers_is():
    background = np.full((210, 160), 26, np.uint8)
    looker = atari.Screens(background)
    assert looker.features(background, background).tolist() == [BIAS]
    flickering = background.copy()
    flickering[100, 100] = 200
    expected = (100 // 15 * 16 + 100 // 10) * 128 + int(looked_up(np.uint8(26), np.uint8(200))) // 2
    for pair in ((flickering, background), (background, flickering)):
        assert looker.features(*pair).tolist() == [expected, BIAS], "in whichever of the two frames it is"


def test_features_given_out_earlier_stay_as_they_were():
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 128, (2, 210, 160), dtype=np.uint8) * np.uint8(2)
    looker = atari.Screens(np.zeros((210, 160), np.uint8))
    found = looker.features(first, first)
    kept = found.copy()
    looker.features(second, second)
    np.testing.assert_array_equal(found, kept)


# --- Colours --------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", ["asterix", "space_invaders"])
def test_the_table_averages_as_the_emulator_does_at_every_frame(game):
    raw, averaged = console(game, averaged=False), console(game, averaged=True)
    actions = raw.getLegalActionSet()
    rng = np.random.default_rng(0)
    before, different = raw.getScreen(), 0
    for frame in range(300):
        action = actions[rng.integers(len(actions))] if frame % 5 == 0 else action  # noqa: F821
        assert raw.act(action) == averaged.act(action)
        now = raw.getScreen()
        np.testing.assert_array_equal(looked_up(now, before), averaged.getScreen())
        np.testing.assert_array_equal(atari.NTSC[now.ravel() >> 1], raw.getScreenRGB().reshape(-1, 3))
        different += not np.array_equal(now, before)
        before = now
        if raw.game_over():
            raw.reset_game()
            averaged.reset_game()
            break
    assert different > 100, "there was something to average"


@pytest.mark.parametrize("game", ["asterix", EUROPEAN[0], *HIGHER, *OTHERWISE[:2]])
def test_every_screen_that_is_looked_at_is_the_emulator_s_average_also_the_first_after_a_reset(game):
    ours, averaged = atari.Emulator(game), console(game, averaged=True)
    np.testing.assert_array_equal(looked_up(ours.now, ours.before), averaged.getScreen())
    rng = np.random.default_rng(1)
    for decision in range(1, 61):
        action = int(rng.integers(len(ours.actions)))
        points = sum(averaged.act(ours.actions[action]) for _ in range(5))
        assert ours.act(action) == points
        np.testing.assert_array_equal(looked_up(ours.now, ours.before), averaged.getScreen())
        assert ours.over == averaged.game_over()
        if ours.over or decision % 15 == 0:
            ours.reset()
            averaged.reset_game()
            np.testing.assert_array_equal(looked_up(ours.now, ours.before), averaged.getScreen(), f"reset at {decision}")
