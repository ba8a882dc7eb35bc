"""Backgrounds: learned from random play, written, read and checked."""

from __future__ import annotations

import numpy as np
import pytest

from tests.control.atari.consoles import console
from trueonline.control import atari


@pytest.mark.parametrize(("game", "decisions"), [("asterix", 300), ("klax", 60)])
def test_a_background_is_the_most_frequent_colour_of_each_pixel(game, decisions, monkeypatch):
    """Counted again over the screens of an emulator that averages, with the same actions."""
    taken, act = [], atari.Emulator.act

    def noted(emulator, action):
        taken.append(action)
        return act(emulator, action)

    monkeypatch.setattr(atari.Emulator, "act", noted)
    learned = atari.learn_background(game, decisions=decisions, seed=1)
    averaged = console(game, averaged=True)
    height = averaged.getScreen().shape[0]
    counts, resets = np.zeros((128, height, 160), int), 0
    for action in taken:
        for _ in range(5):
            averaged.act(averaged.getMinimalActionSet()[action])
        screen = averaged.getScreen()
        for colour in np.unique(screen):
            counts[colour // 2] += screen == colour
        if averaged.game_over():
            averaged.reset_game()
            resets += 1
    assert len(taken) == decisions
    assert resets > 0 or game != "asterix"
    assert learned.dtype == np.uint8
    np.testing.assert_array_equal(learned, 2 * counts.argmax(axis=0))


def test_the_background_learned_is_nearly_the_published_one(published_background):
    """35 of 33,600 pixels differ where this was written: those of a score and of objects at the borders of the screen."""
    learned = atari.learn_background("asterix")
    assert np.count_nonzero(learned != published_background) < 0.01 * learned.size


def test_a_background_is_written_and_read_again(tmp_path):
    rng = np.random.default_rng(0)
    for height in (210, 250):
        picture = rng.integers(0, 128, (height, 160), dtype=np.uint8) * np.uint8(2)
        with open(tmp_path / "b.txt", "wb") as file:
            atari.write_background(picture, file)
        lines = (tmp_path / "b.txt").read_text().splitlines()
        assert lines[0] == f"160,{height}"
        assert len(lines) == height + 1
        read = atari.read_background(tmp_path / "b.txt")
        assert read.dtype == np.uint8
        np.testing.assert_array_equal(read, picture)


def picture_text(rows=210, columns=160, head=None, colour="4"):
    return "\n".join([head or f"{columns},{rows}", *[",".join([colour] * columns)] * rows]) + "\n"


BAD_BACKGROUNDS = {
    "empty": ("", "not a background"),
    "words": ("once upon a time\n", "not a background"),
    "a row too few": (picture_text(209, head="160,210"), "209 rows"),
    "rows too short": (picture_text(210, 159), "159"),
    "one row too short": (picture_text().rstrip("\n").removesuffix(",4"), r"\[159, 160\]"),
    "another size announced": (picture_text(head="210,160"), "210,160"),
    "a size with three numbers": (picture_text(head="160,210,3"), "160,210,3"),
    "no size": (picture_text().split("\n", 1)[1], "background"),
    "too large a colour": (picture_text(colour="256"), "from 0 to 255"),
    "a negative colour": (picture_text(colour="-2"), "from 0 to 255"),
    "a huge colour": (picture_text(colour="9" * 30), "from 0 to 255"),
    "a colour with a point": (picture_text(colour="4.5"), "not a background"),
    "a missing colour": (picture_text().replace("4,4,4", "4,,4", 1), "not a background"),
    "no rows": ("160,0\n", "background"),
}


@pytest.mark.parametrize(("text", "message"), BAD_BACKGROUNDS.values(), ids=BAD_BACKGROUNDS)
def test_what_is_no_background_is_refused(text, message, tmp_path):
    (tmp_path / "b.txt").write_text(text)
    with pytest.raises(ValueError, match=message):
        atari.read_background(tmp_path / "b.txt")


def test_a_picture_is_no_background_text(tmp_path):
    (tmp_path / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    with pytest.raises(ValueError, match=r"b\.png is not a background"):
        atari.read_background(tmp_path / "b.png")
    with pytest.raises(FileNotFoundError):
        atari.read_background(tmp_path / "none.txt")


@pytest.mark.parametrize(
    "given",
    [
        np.zeros((160, 210), np.uint8),
        np.zeros((210, 160)),
        np.zeros((210, 160), bool),
        np.full((210, 160), 256),
        np.full((210, 160), -1),
        np.zeros((0, 160), np.uint8),
        np.zeros(210 * 160, np.uint8),
        "asterix.bg",
        None,
    ],
    ids=str,
)
def test_what_is_no_picture_in_colours_is_no_background(given):
    with pytest.raises(ValueError, match="a background must"):
        atari.Screens(given)


@pytest.mark.parametrize(("game", "height", "other"), [("asterix", 210, 250), ("klax", 250, 210)])
def test_a_background_as_high_as_another_game_s_is_refused(game, height, other):
    with pytest.raises(ValueError, match=f"{height} rows of 160 colours, got shape .{other}, 160"):
        atari.AtariRun(atari.AtariSettings(game=game), np.zeros((other, 160), np.uint8))


def test_learning_a_background_takes_a_number_of_decisions():
    with pytest.raises(ValueError, match="decisions must be a whole number"):
        atari.learn_background("asterix", decisions=0)
