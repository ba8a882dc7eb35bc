"""The stream of the Atari Prediction Benchmark: a game that is replayed from recorded actions, and seen as binary features.

The benchmark is that of Javed, Shah, Sutton and White (2023), with the features of SwiftTD (Javed, Sharifnassab and Sutton 2024).
Nothing is random: the same actions give the same stream.

- **Actions** are a text, one letter for each frame. `a` is the first action that the game uses, `b` the second, and so on. `R`
  resets the game. The first letter is not played.
- **Rewards** are -1, 0 or 1: the sign of the points. A reset gives 0, and is not the end of an episode.
- **Features** are binary. The grey screen is looked at in every other row and column. The mean of four pixels there is one of 32
  shades, and each shade of each place is a feature. One more says what the reward was, and one what the last action was. So 8,402
  of 400,000 features are active. Many of them never are.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from trueonline.control.atari.emulator import games, load, restore_state, saved_state
from trueonline.core.kernels import call, specialise
from trueonline.inputs import check_saved, saved_count

WIDTH, HEIGHT = 160, 210  # of the part of a screen that is looked at
SHADES = 32
PLACES = HEIGHT // 2 * (WIDTH // 2)
N_FEATURES = 400_000
N_ACTIVE = PLACES + 2
REWARDS = 300_000  # the features of the rewards 1, -1 and 0
ACTIONS = REWARDS + 3  # and those of the last action
RESET = "R"
ENDINGS = (".txt", ".txt.gz")
PUBLISHED = "NoFrameskip-v4"  # the end of the names of the files that the benchmark's authors publish


def seen(grey, reward, action, indices):
    """Write the indices of the active features. A pixel beyond the end of the screen counts as 0."""
    screen = grey.reshape(-1)
    place = 0
    for row in range(0, HEIGHT, 2):
        for column in range(0, WIDTH, 2):
            at, total = WIDTH * row + column, 0
            for pixel in (at, at + 3, at + 3 * WIDTH, at + 3 * WIDTH + 3):
                if pixel < screen.size:
                    total += np.int64(screen[pixel])
            indices[place] = SHADES * place + total // 4 // (256 // SHADES)
            place += 1
    indices[place] = REWARDS + (0 if reward > 0.0 else 1 if reward < 0.0 else 2)
    indices[place + 1] = ACTIONS + action


SEEN = specialise(seen, "prediction")


class Replay:
    """A game that is replayed from recorded actions.

    Parameters
    ----------
    game : str
        The name of the game, one of `games()`.
    actions : str
        The recorded actions, one letter for each frame. The first letter is not played.

    Raises
    ------
    ValueError
        If the game is unknown, ale-py is missing, or a letter is not an action of the game.
    """

    def __init__(self, game: str, actions: str) -> None:
        self._ale = load(game, averaged=False)
        self._ale.reset_game()
        self._known = self._ale.getMinimalActionSet()
        self._letters = {chr(ord("a") + number): number for number in range(len(self._known))}
        for number, letter in enumerate(actions):
            if letter != RESET and letter not in self._letters:
                raise ValueError(
                    f"letter {number + 1} of the actions of {game} is {letter!r}: its {len(self._known)} actions are a to "
                    f"{max(self._letters)}, and {RESET} resets the game"
                )
        self._actions = actions
        self._grey = np.empty(self._ale.getScreenDims(), np.uint8)
        self._last = 0
        self.frames = 0

    def play(self, X: np.ndarray, rewards: np.ndarray) -> None:
        """Play the next frames, as many as there are rows.

        Parameters
        ----------
        X : ndarray of int64, shape (frames, 8402)
            Gets the indices of the active features of each frame.
        rewards : ndarray of float64, shape (frames,)
            Gets the reward that came with each frame.
        """
        begin = self.frames + 1  # the first letter is not played
        for at, letter in enumerate(self._actions[begin : begin + len(X)]):
            if letter == RESET:
                self._ale.reset_game()
                points = 0
            else:
                self._last = self._letters[letter]
                points = self._ale.act(self._known[self._last])
            rewards[at] = (points > 0) - (points < 0)
            self._ale.getScreenGrayscale(self._grey)
            call(SEEN, self._grey, rewards[at], self._last, X[at])
        self.frames += len(X)

    def dump(self) -> dict[str, np.ndarray]:
        """The state from which the replay resumes exactly."""
        return {"emulator": saved_state(self._ale), "replay": np.array([self.frames, self._last])}

    def restore(self, parts: dict[str, np.ndarray]) -> None:
        """Resume from the state that `dump` returned. ValueError or KeyError if it is not one."""
        frames, last = (saved_count("replay", number) for number in parts["replay"].tolist())
        check_saved({"frames": frames < len(self._actions), "last": last < len(self._known)})
        restore_state(self._ale, parts)
        self.frames, self._last = frames, last


# --- Files of actions -----------------------------------------------------------------------------


def recorded(folder: Path, chosen: Collection[str] = ()) -> dict[str, Path]:
    """The files of recorded actions in a folder, by the names of the games: all of them, or those that are chosen.

    Capitals and underscores in names do not matter: SpaceInvaders.txt is space_invaders. ValueError if there is no file.
    """
    if not folder.is_dir():
        raise ValueError(
            f"--actions must be a folder with files such as Pong.txt.gz, got {folder}, which is not a folder"
        )
    found: dict[str, Path] = {}
    known = {_plain(game): game for game in games()}
    for path in sorted(folder.iterdir()):
        stem = next((path.name.removesuffix(ending) for ending in ENDINGS if path.name.endswith(ending)), None)
        game = None if stem is None else known.get(_plain(stem.removesuffix(PUBLISHED)))
        if game in found:
            raise ValueError(f"{found[game]} and {path} are both actions of {game}: remove one of them")
        if game is not None:
            found[game] = path
    if not found:
        raise ValueError(
            f"--actions must be a folder with files such as Pong.txt.gz or SpaceInvaders.txt, one for each game; {folder} has none"
        )
    if not chosen:
        return found
    asked = {name: known.get(_plain(name.removesuffix(PUBLISHED)), "") for name in chosen}
    missing = [name for name, game in asked.items() if game not in found]
    if missing:
        raise ValueError(f"--games names {missing[0]!r}, but {folder} has actions of {', '.join(found)} only")
    return {game: path for game, path in found.items() if game in asked.values()}


def read_actions(path: Path, frames: int) -> str:
    """The first letter of a file of recorded actions, and the letters of so many frames. ValueError if there are fewer."""
    try:
        with gzip.open(path) if path.name.endswith(".gz") else open(path, "rb") as file:
            letters = file.read(frames + 1).decode("ascii").rstrip()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as recorded actions: {error}") from None
    if strange := re.search(r"[^a-zR]", letters):
        raise ValueError(f"{path} is not a file of recorded actions: letter {strange.start() + 1} is {strange.group()!r}")
    if len(letters) <= frames:
        raise ValueError(
            f"{path} has actions for {max(0, len(letters) - 1):,} frames: give --frames that or less, not {frames:,}"
        )
    return letters


def _plain(name: Any) -> str:
    return str(name).replace("_", "").lower()
