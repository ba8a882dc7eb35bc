"""Bad settings, unknown games and a missing emulator are refused with a message that says what to do."""

from __future__ import annotations

import difflib
import sys

import pytest

from tests.control.atari.consoles import ale_py
from trueonline.control import atari
from trueonline.control.atari import emulator as emulators

BAD_SETTINGS = {
    "protocol": ({"protocol": "papers"}, "unknown protocol 'papers'; known are paper, published"),
    "method": ({"method": "true"}, "unknown method 'true' for paper; known are accumulate"),
    "method of the other protocol": ({"protocol": "published", "method": "watkins_q"}, "unknown method 'watkins_q'"),
    "frames and episodes": ({"frames": 100, "episodes": 1}, "frames or after episodes"),
    "step_size 0": ({"step_size": 0.0}, "step_size must be a finite number > 0, got 0.0"),
    "step_size nan": ({"step_size": float("nan")}, "step_size must be .* got nan"),
    "step_size a schedule": ({"step_size": lambda t: 0.1}, "step_size must be"),
    "trace_decay": ({"trace_decay": 1.01}, "trace_decay must be a number in"),
    "seed": ({"seed": -1}, "seed must be a whole number"),
    "seed too large": ({"seed": 2**32}, "seed must be a whole number"),
    "seed true": ({"seed": True}, "seed must be a whole number"),
    "frames": ({"frames": 0}, "frames must be a whole number"),
    "episodes": ({"episodes": 1.5}, "episodes must be a whole number"),
}


@pytest.mark.parametrize(("given", "message"), BAD_SETTINGS.values(), ids=BAD_SETTINGS)
def test_bad_settings_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        atari.AtariSettings(**given)


def test_settings_say_what_was_meant():
    settings = atari.AtariSettings()
    assert (settings.frames, settings.episodes) == (4_320_000, None), "20 hours at 60 frames a second"
    assert atari.AtariSettings(episodes=3).frames is None
    assert atari.FRAMES == 20 * 60 * 60 * 60
    assert (atari.DISCOUNT, atari.EPSILON) == (0.999, 0.01)


@pytest.mark.parametrize("game", ["asterisk", "space invaders", "Asterix", "", "no such game at all"])
def test_an_unknown_game_is_refused_with_names_that_are_close(game):
    with pytest.raises(ValueError, match="unknown game") as error:
        atari.Emulator(game)
    close = difflib.get_close_matches(game, atari.games(), 1)
    assert all(name in str(error.value) for name in close)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("game", [3, None, ["asterix"]])
def test_a_game_that_is_no_name_is_refused(game):
    with pytest.raises(ValueError, match="unknown game"):
        atari.Emulator(game)


@pytest.mark.parametrize("game", ["combat", "joust", "maze_craze", "warlords"])
def test_a_game_for_two_players_is_refused_and_not_the_end_of_the_process(game):
    with pytest.raises(ValueError, match=f"{game} is not a game for one player"):
        atari.Emulator(game)


def test_a_missing_rom_is_said_to_be_missing(monkeypatch, tmp_path):
    for answer in (None, tmp_path / "asterix.bin"):
        monkeypatch.setattr(ale_py.roms, "get_rom_path", lambda name, answer=answer: answer)
        with pytest.raises(ValueError, match="the ROM of asterix is missing"):
            atari.Emulator("asterix")


def test_without_the_emulator_the_extra_is_named(monkeypatch):
    for name in ("ale_py", "ale_py.roms"):
        monkeypatch.setitem(sys.modules, name, None)
    for attempt in (atari.games, atari.Emulator, atari.learn_background):
        with pytest.raises(ValueError, match=r"pip install 'trueonline\[atari\]'"):
            attempt()


def test_nothing_is_written_to_the_terminal_by_the_emulator(capfd):
    emulators.Emulator("asterix").act(0)
    assert capfd.readouterr() == ("", "")
