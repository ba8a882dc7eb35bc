"""Games and players for the tests of Atari: constants, the emulator itself, and a player that is recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trueonline.control import atari
from trueonline.control.atari import screens

ale_py = pytest.importorskip("ale_py")

SHARED = Path(__file__).parents[4] / "shared" / "data"
GAMES = ["asterix", "breakout", "space_invaders", "beam_rider"]
EUROPEAN = ["klax", "sir_lancelot"]
HIGHER = ["carnival"]  # screens of 214 rows
OTHERWISE = ["berzerk", "demon_attack", "private_eye", "solaris"]  # their first screen may differ after a reset
LEARNERS = ["accumulate", "replace", "true_online"]
N, BIAS = 28_673, 28_672


def shared(name: str) -> Path:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} is not in ../shared/data, which is no part of the project")
    return path


def console(game, *, averaged):
    """The emulator itself, set as every part of this package must have set it."""
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", 1)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setBool("color_averaging", averaged)
    ale.loadROM(ale_py.roms.get_rom_path(game))
    return ale


def looked_up(now, before):
    return screens.averages()[now >> 1, before >> 1]


class Recorder:
    """A player that writes down what is said to it and what it answers."""

    def __init__(self, player):
        self.player, self.said, self.answers = player, [], []

    def __getattr__(self, name):
        asked = getattr(self.player, name)
        if name not in ("start", "step", "end", "truncate"):
            return asked

        def told(*arguments):
            self.said.append((name, *(a.copy() if isinstance(a, np.ndarray) else a for a in arguments)))
            self.answers.append(asked(*arguments))
            return self.answers[-1]

        return told


def recorded(settings, background, decisions=None):
    run = atari.AtariRun(settings, background)
    run.player = Recorder(run.player)
    while not run.finished and (decisions is None or decisions > 0):
        run._decide()
        decisions = decisions and decisions - 1
    return run


def follow(player, said, look=lambda: None):
    """Say the same to another player; its answers."""
    answers = []
    for name, *arguments in said:
        answers.append(getattr(player, name)(*arguments))
        look()
    return answers


def basic_features(screen, background):
    """Which colours are in which tiles, other than the background's: all features, one pixel at a time; the bias is last."""
    height = len(screen)
    tall = -(-height // 14)  # 15, for 210 rows
    found = {BIAS}
    for y in range(height):
        for x in range(160):
            if screen[y, x] // 2 != background[y, x] // 2:
                found.add((y // tall * 16 + x // 10) * 128 + int(screen[y, x]) // 2)
    return sorted(found)
