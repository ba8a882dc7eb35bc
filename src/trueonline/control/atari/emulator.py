"""An Atari 2600 game, a decision at a time. The emulator is ale-py's; its wheel carries the games."""

from __future__ import annotations

import difflib
from typing import Any

import numpy as np

from trueonline.control.atari.screens import NTSC, Screens

SKIP = 5  # frames for each action


class Emulator:
    """A game that is played five frames for each action, and seen as the features of its averaged screen.

    Colours are averaged here, for the screens that are looked at, from two raw frames; the emulator itself would do it for
    every frame, which takes as long again as the game. The first screen of a game is the emulator's own average, because
    the frame before it cannot be asked for. (European games have other colours: there the emulator averages.) Nothing is
    random: an action is always executed.
    """

    def __init__(self, game: str = "asterix", *, all_actions: bool = False) -> None:
        self.game = game
        raw, averaged = _load(game, averaged=False), _load(game, averaged=True)
        self._first_raw, self._first = raw.getScreen(), averaged.getScreen()
        self._american = np.array_equal(NTSC[self._first_raw.ravel() >> 1], raw.getScreenRGB().reshape(-1, 3))
        self._ale = raw if self._american else averaged
        self.actions = list(raw.getLegalActionSet() if all_actions else raw.getMinimalActionSet())
        self.now, self.before = np.empty((2, *self._first.shape), np.uint8)
        self.first_reward = 0.0  # of the run, for those who measure by it
        self._see_first()

    @property
    def height(self) -> int:
        """How many rows a screen has: 210, in most games."""
        return len(self.now)

    def reset(self) -> None:
        self._ale.reset_game()
        self._see_first()

    def _see_first(self) -> None:
        self._ale.getScreen(self.now)
        self.before[:] = self.now
        if np.array_equal(self.now, self._first_raw):
            self.now[:] = self.before[:] = self._first

    def act(self, action: int) -> float:
        """Execute an action for five frames, also where the game ends before; return the points."""
        act, chosen = self._ale.act, self.actions[action]
        points = 0.0
        for frame in range(SKIP):
            reward = act(chosen)
            if reward:
                points += reward
                self.first_reward = self.first_reward or abs(float(reward))
            if frame == SKIP - 2:
                self._ale.getScreen(self.before)
        self._ale.getScreen(self.now)
        if not self._american:
            self.before[:] = self.now  # averaged already, and a colour's average with itself is the colour
        return points

    @property
    def over(self) -> bool:
        return self._ale.game_over()

    def features(self, screens: Screens) -> np.ndarray:
        return screens.features(self.now, self.before)

    def picture(self) -> np.ndarray:
        """The raw screen in red, green and blue."""
        return self._ale.getScreenRGB()

    def dump(self) -> dict[str, np.ndarray]:
        """The game's state, from which it goes on exactly. (What is on the screen is seen again after the next action.)"""
        state = np.frombuffer(self._ale.cloneState(include_rng=True).serialize(), np.uint8)
        return {
            "emulator": state,
            "frames_seen": np.stack((self.now, self.before)),
            "first_reward": np.array(self.first_reward),
        }

    def restore(self, parts: dict[str, np.ndarray]) -> None:
        from ale_py import ALEState

        self._ale.restoreState(ALEState(parts["emulator"].tobytes()))
        self.now[:], self.before[:] = parts["frames_seen"]
        self.first_reward = float(parts["first_reward"])


def games() -> list[str]:
    """The names of all games that there are."""
    return sorted(_ale_py().roms.get_all_rom_ids())


def _ale_py() -> Any:
    try:
        import ale_py
        import ale_py.roms
    except ImportError:
        raise ValueError("Atari games need the extra: pip install 'trueonline[atari]'") from None
    return ale_py


def _load(game: str, *, averaged: bool) -> Any:
    ale_py = _ale_py()
    known = games()
    if game not in known:
        close = difflib.get_close_matches(str(game), known, 3) or known[:5]
        raise ValueError(f"unknown game {game!r}; there are {len(known)}, such as {', '.join(close)}")
    path = ale_py.roms.get_rom_path(game)
    if path is None or not path.exists():
        raise ValueError(f"the ROM of {game} is missing from ale-py: install ale-py anew")
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    if ale_py.ALEInterface.isSupportedROM(path) is None:  # loading it would end the process
        raise ValueError(f"{game} is not a game for one player that the emulator supports")
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", 1)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setBool("color_averaging", averaged)
    ale.loadROM(path)
    return ale
