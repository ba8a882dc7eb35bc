"""An Atari 2600 game, a decision at a time. The emulator is ale-py's; its wheel carries the games."""

from __future__ import annotations

import difflib
from functools import cache, cached_property
from typing import Any

import numpy as np

from trueonline.control.atari.screens import NTSC, Screens
from trueonline.inputs import check_saved, saved_array
from trueonline.optional import optional

SKIP = 5  # frames for each action
MAX_FIRST_SCREENS = 64  # first screens that are remembered: most games have one


class Emulator:
    """A game that is played five frames for each action, and seen as the features of its averaged screen.

    The colours of two raw frames are averaged here, and only for the screens that become features. The emulator would average
    every frame, which takes as long as the game itself. A second emulator, which averages, draws the first screen of a game,
    because the frame before it is not available. (European games have other colours. For them the emulator averages.) Nothing
    is random: an action is always executed.

    Parameters
    ----------
    game : str
        The name of the game, one of `games()`.
    all_actions : bool
        Whether all 18 actions of the console may be chosen, instead of those that the game uses.

    Raises
    ------
    ValueError
        If the game is unknown or not for one player, or ale-py is missing.
    """

    def __init__(self, game: str = "asterix", *, all_actions: bool = False) -> None:
        self.game = game
        check_game(game)
        self._american = _american(game)
        self._ale = load(game, averaged=False) if self._american else self._averaging
        self.actions = list(self._ale.getLegalActionSet() if all_actions else self._ale.getMinimalActionSet())
        self.now, self.before = np.empty((2, *self._ale.getScreenDims()), np.uint8)
        self.first_reward = 0.0  # of the run, for those who measure by it
        self.relative = 0.0  # the points of the last action, each frame's in units of that
        self._firsts = _firsts(game)
        self._see_first(None)

    @cached_property
    def _averaging(self) -> Any:
        """The emulator that averages colours. To load it takes a tenth of a second, and most games need it once in a program."""
        return load(self.game, averaged=True)

    @property
    def height(self) -> int:
        """How many rows a screen has: 210, in most games."""
        return len(self.now)

    def reset(self) -> None:
        """Begin a new game."""
        state = self._ale.cloneState(include_rng=True) if self._american else None
        self._ale.reset_game()
        self._see_first(state)

    def _see_first(self, state: Any) -> None:
        """Look at the first screen of a game that was begun from this state (None: from the very beginning)."""
        if not self._american:
            self._ale.getScreen(self.now)
        else:
            seen = self._ale.getScreen().tobytes() + self._ale.getRAM().tobytes()
            first = self._firsts.get(seen)
            if first is None:
                if state is not None:
                    self._averaging.restoreState(state)
                    self._averaging.reset_game()
                if len(self._firsts) >= MAX_FIRST_SCREENS:
                    self._firsts.clear()
                first = self._firsts[seen] = self._averaging.getScreen()
            self.now[:] = first
        self.before[:] = self.now  # a colour's average with itself is the colour

    def act(self, action: int) -> float:
        """Execute an action for five frames, also if the game ends before.

        Parameters
        ----------
        action : int
            The number of the action in `actions`.

        Returns
        -------
        float
            The points.
        """
        act, chosen = self._ale.act, self.actions[action]
        points = self.relative = 0.0
        for frame in range(SKIP):
            reward = act(chosen)
            if reward:
                points += reward
                self.first_reward = self.first_reward or abs(float(reward))
                self.relative += reward / self.first_reward
            if frame == SKIP - 2:
                self._ale.getScreen(self.before)
        self._ale.getScreen(self.now)
        if not self._american:
            self.before[:] = self.now  # averaged already
        return points

    @property
    def over(self) -> bool:
        """Whether the game is over."""
        return self._ale.game_over()

    def features(self, screens: Screens) -> np.ndarray:
        """The indices of the active features of the screen."""
        return screens.features(self.now, self.before)

    def picture(self) -> np.ndarray:
        """The raw screen in red, green and blue."""
        return self._ale.getScreenRGB()

    def dump(self) -> dict[str, np.ndarray]:
        """The game's state, from which it resumes exactly. (What is on the screen is seen again after the next action.)"""
        return {
            "emulator": np.frombuffer(self._ale.cloneState(include_rng=True).serialize(), np.uint8),
            "frames_seen": np.stack((self.now, self.before)),
            "first_reward": np.array(self.first_reward),
        }

    def restore(self, parts: dict[str, np.ndarray]) -> None:
        from ale_py import ALEState

        seen = saved_array(parts, "frames_seen", (2, *self.now.shape), np.uint8)
        first_reward = saved_array(parts, "first_reward", (), np.float64)
        check_saved({"first_reward": np.isfinite(first_reward) & (first_reward >= 0.0)})
        state = saved_array(parts, "emulator", np.shape(parts["emulator"])[:1], np.uint8)
        try:
            self._ale.restoreState(ALEState(state.tobytes()))
        except (RuntimeError, SystemError, MemoryError) as error:  # what ale-py makes of the emulator's own errors
            raise ValueError(
                f"its emulator does not fit: the emulator refuses the state ({type(error).__name__})"
            ) from None
        self.now[:], self.before[:] = seen
        self.first_reward = float(first_reward)


@cache
def _firsts(game: str) -> dict[bytes, np.ndarray]:
    """Averaged first screens of a game, by the state that they show."""
    return {}


@cache
def _american(game: str) -> bool:
    """Whether a game has the colours of American televisions, by what a few seconds of it show."""
    ale = load(game, averaged=False)
    actions = ale.getLegalActionSet()
    for frame in range(240):
        ale.act(actions[frame // 10 % len(actions)])
        if frame % 20 == 0:
            colours = ale.getScreen().ravel() >> 1
            if not np.array_equal(NTSC[colours], ale.getScreenRGB().reshape(-1, 3)):
                return False
    return True


def games() -> list[str]:
    """The names of all games.

    Returns
    -------
    list of str
    """
    return sorted(_ale_py().roms.get_all_rom_ids())


def _ale_py() -> Any:
    return optional("Atari games need the extra", "ale_py", "ale_py.roms", extra="atari")


def check_game(game: str) -> None:
    """ValueError if there is no such game."""
    known = games()
    if game not in known:
        close = difflib.get_close_matches(str(game), known, 3) or known[:5]
        raise ValueError(f"unknown game {game!r}; there are {len(known)}, such as {', '.join(close)}")


def load(game: str, *, averaged: bool) -> Any:
    """The emulator of ale-py with a game in it, in which every action is executed. ValueError if there is no such game."""
    ale_py = _ale_py()
    check_game(game)
    path = ale_py.roms.get_rom_path(game)
    if path is None or not path.exists():
        raise ValueError(f"the ROM of {game} is missing from ale-py: install ale-py again")
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    if ale_py.ALEInterface.isSupportedROM(path) is None:  # loading it would end the process
        raise ValueError(f"{game} is not a game for one player that the emulator supports")
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", 1)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setBool("color_averaging", averaged)
    ale.loadROM(path)
    return ale
