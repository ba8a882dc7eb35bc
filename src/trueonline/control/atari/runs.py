"""Sarsa(λ) on Atari games with Basic features, by two protocols (section 5.3).

`paper` is what the text says: the game's own actions (nine for Asterix), episodes of five minutes at most, exact traces.
`published` is what the program published with the paper does: all 18 actions, no limit, and its own arithmetic (published.py);
with its background and seed it plays that program's episodes.

Both take an action for five frames, explore with ε = 0.01 and discount by γ = 0.999. Both divide α by the largest number of
active features so far, by default: the text does not say so, but its step-sizes of up to 2 make sense only then.
Both see averaged colours, as ALE 0.4.4, which the paper names, showed them. The score of an episode is in the game's points.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from trueonline import files
from trueonline.control.atari import published
from trueonline.control.atari.emulator import SKIP, Emulator
from trueonline.control.atari.players import AGENTS, AgentPlayer, Player, PublishedPlayer, RandomPlayer
from trueonline.control.atari.screens import N_FEATURES, Screens, checked
from trueonline.core.compiling.sources import package_code
from trueonline.inputs import check_saved, count, positive, saved_array, saved_count, unit

PROTOCOLS = ("paper", "published")
METHODS = {"paper": (*AGENTS, "random"), "published": (*published.CODES, "random")}
FRAMES = 4_320_000  # 20 hours of play
DISCOUNT, EPSILON = 0.999, 0.01
EPISODE_FRAMES = 5 * 60 * 60  # frames in five minutes
CHECKPOINT_SECONDS = 60.0  # seconds between checkpoints
KIND = "AtariRun"


@dataclass(frozen=True)
class AtariSettings:
    """Everything that determines a run, except the background.

    A run ends after so many frames or episodes. An episode that has begun is played to its end, and counts.

    Parameters
    ----------
    protocol : str
        "paper" or "published".
    method : str
        One of `METHODS[protocol]`.
    step_size : float
        α, which is divided by the largest number of active features so far if `scaled`.
    trace_decay : float
        λ.
    seed : int
        The seed of the choices, from 0 to 2³² − 1.
    frames : int, optional
        How many frames to play. By default `FRAMES`, if `episodes` is not given.
    episodes : int, optional
        How many episodes to play, instead of `frames`.
    game : str
        The name of the game, one of `games()`.
    scaled : bool
        Whether the step-size is divided.

    Raises
    ------
    ValueError
        If a setting is unknown or out of range, or both `frames` and `episodes` are given.
    """

    protocol: str = "paper"
    method: str = "true_online"
    step_size: float = 0.5
    trace_decay: float = 0.9
    seed: int = 0
    frames: int | None = None
    episodes: int | None = None
    game: str = "asterix"
    scaled: bool = True

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ValueError(f"unknown protocol {self.protocol!r}; known are {', '.join(PROTOCOLS)}")
        known = METHODS[self.protocol]
        if self.method not in known:
            raise ValueError(f"unknown method {self.method!r} for {self.protocol}; known are {', '.join(known)}")
        if self.frames is not None and self.episodes is not None:
            raise ValueError("a run ends after frames or after episodes: give one of them")
        if not isinstance(self.seed, int) or isinstance(self.seed, bool) or not 0 <= self.seed < 2**32:
            raise ValueError(f"seed must be a whole number from 0 to 2³² − 1, got {self.seed!r}")
        checked: dict[str, Any] = {
            "step_size": positive("step_size", self.step_size),
            "trace_decay": unit("trace_decay", self.trace_decay),
            "frames": count("frames", FRAMES if self.frames is None else self.frames) if self.episodes is None else None,
            "episodes": None if self.episodes is None else count("episodes", self.episodes),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def player(self, n_actions: int) -> Player:
        if self.method == "random":
            return RandomPlayer(n_actions, self.seed)
        make = PublishedPlayer if self.protocol == "published" else AgentPlayer
        numbers = (self.step_size, self.trace_decay, DISCOUNT, EPSILON, self.seed)
        return make(self.method, N_FEATURES, n_actions, *numbers, scaled=self.scaled)


class AtariRun:
    """One run: a game, its player, and the episodes so far. It can be stopped and resumed at any decision, exactly.

    Parameters
    ----------
    settings : AtariSettings
        Everything else that determines the run.
    background : ndarray of int, shape (rows, 160)
        The colours of the background, from `learn_background` or `read_background`.

    Attributes
    ----------
    episodes : list of (int, int)
        The score and the frames of each episode so far.
    played : int
        The frames of these episodes.
    diverged : bool
        Whether the weights have diverged.
    """

    def __init__(self, settings: AtariSettings, background: np.ndarray) -> None:
        self.settings = settings
        self.emulator = Emulator(settings.game, all_actions=settings.protocol == "published")
        self.screens = Screens(checked(background, self.emulator.height))
        self.player = settings.player(len(self.emulator.actions))
        self.limit = EPISODE_FRAMES if settings.protocol == "paper" else None
        self.normalised = settings.protocol == "published"  # rewards, by the first one of the run
        self.looks = settings.method != "random"
        self.episodes: list[tuple[int, int]] = []  # score and frames of each
        self.score = self.frames = 0  # of this episode
        self.played = 0  # frames of all episodes before
        self.action: int | None = None  # to be executed; None between episodes
        self.diverged = False

    @property
    def finished(self) -> bool:
        """Whether the run has come to its end."""
        if self.diverged and self.settings.protocol == "published":  # the program stops
            return True
        if self.action is not None:
            return False
        if self.settings.episodes is not None:
            return len(self.episodes) >= self.settings.episodes
        return self.played >= (self.settings.frames or 0)

    @property
    def mean_score(self) -> float:
        """The mean score of an episode: the paper's measure."""
        return float(np.mean([score for score, _ in self.episodes])) if self.episodes else 0.0

    def play(
        self,
        checkpoint: str | os.PathLike | None = None,
        *,
        every: float = CHECKPOINT_SECONDS,
        beat: Callable[[int], Any] = lambda frames: None,
    ) -> None:
        """Play to the end.

        Parameters
        ----------
        checkpoint : path-like, optional
            A file that the state is written to.
        every : float
            Seconds between two checkpoints.
        beat : callable
            It gets the number of frames so far, now and then.
        """
        saved = time.monotonic()
        decisions = 0
        while not self.finished:
            self._decide()
            decisions += 1
            if decisions % 256 == 0:
                beat(self.played + self.frames)
                if checkpoint is not None and time.monotonic() - saved >= every:
                    self.save(checkpoint)
                    saved = time.monotonic()

    def _decide(self) -> None:
        """Five frames: execute the action, look, learn, choose."""
        if self.action is None:
            if self.episodes:
                self.emulator.reset()
            self.action = self.player.start(self._seen())
        points = self.emulator.act(self.action)
        self.score += int(points)
        self.frames += SKIP
        reward = self.emulator.relative if self.normalised else points
        if self.emulator.over:
            self.player.end(reward)
            self._finish_episode()
        elif self.limit is not None and self.frames >= self.limit:
            self.player.truncate(reward, self._seen())
            self._finish_episode()
        else:
            self.action = self.player.step(reward, self._seen())
            self.diverged = self.diverged or (self.normalised and self.player.diverged)

    def _seen(self) -> np.ndarray:
        return self.emulator.features(self.screens) if self.looks else np.empty(0, np.int64)

    def _finish_episode(self) -> None:
        self.diverged = self.diverged or self.player.diverged
        if self.diverged and self.normalised:
            return
        self.episodes.append((self.score, self.frames))
        self.played += self.frames
        self.score = self.frames = 0
        self.action = None

    def about(self) -> dict[str, Any]:
        """Everything that determines the run: what a checkpoint must agree with."""
        return {
            **asdict(self.settings),
            "background": hashlib.sha256(self.screens.background.tobytes()).hexdigest()[:16],
            "code": package_code(__name__, "trueonline.methods"),
            "ale-py": version("ale-py"),
        }

    def save(self, path: str | os.PathLike) -> None:
        """Write a checkpoint, emulator and random state included. The file appears whole or not at all.

        Parameters
        ----------
        path : path-like
            The file.
        """
        about, parts = self.player.dump()
        now = {"score": self.score, "frames": self.frames, "played": self.played, "action": self.action}
        settings = {"run": self.about(), "player": about, "now": {**now, "diverged": self.diverged}}
        arrays = {f"player_{name}": part for name, part in parts.items()} | self.emulator.dump()
        arrays["episodes"] = np.array(self.episodes, np.int64).reshape(-1, 2)
        files.write_learner(path, KIND, settings, arrays)

    def resume(self, path: str | os.PathLike) -> None:
        """Resume from a checkpoint.

        Parameters
        ----------
        path : path-like
            The file.

        Raises
        ------
        ValueError
            If the file is of another setting or damaged. The run is then unchanged.
        """
        kind, settings, arrays = files.read_learner(path)
        if kind != KIND:
            raise ValueError(f"{path} holds a {kind}, not the checkpoint of an Atari run")
        theirs, ours = settings.get("run"), self.about()
        if not isinstance(theirs, dict):
            raise ValueError(f"{path} is damaged: it does not say of which run it is")
        different = [name for name in ours if ours[name] != theirs.get(name)]
        if different:
            name = different[0]
            raise ValueError(
                f"{path} is a checkpoint of another setting: its {name} is {theirs.get(name)}, this run's is "
                f"{ours[name]}; delete it, or choose another place"
            )
        before = self.emulator.dump()
        try:
            player = self.settings.player(len(self.emulator.actions))
            parts = {name.removeprefix("player_"): part for name, part in arrays.items() if name.startswith("player_")}
            player.restore(settings["player"], parts)
            shape = np.shape(arrays["episodes"])[:1]
            episodes = [tuple(each) for each in saved_array(arrays, "episodes", (*shape, 2), np.int64).tolist()]
            now = self._checked_now(settings["now"])
            self.emulator.restore(arrays)
        except (KeyError, ValueError, TypeError, IndexError, OverflowError, AttributeError, RuntimeError) as error:
            self.emulator.restore(before)
            raise ValueError(f"{path} is damaged: {type(error).__name__}: {error}") from None
        self.player, self.episodes = player, episodes
        for name, value in now.items():
            setattr(self, name, value)

    def _checked_now(self, now: dict[str, Any]) -> dict[str, Any]:
        """The state of a saved run, checked. ValueError if a number is impossible."""
        score, action, diverged = now["score"], now["action"], now["diverged"]
        played = {name: saved_count(name, now[name]) for name in ("frames", "played")}
        fits = {"score": type(score) is int, "diverged": type(diverged) is bool}
        fits["action"] = action is None or (type(action) is int and 0 <= action < len(self.emulator.actions))
        check_saved(fits)
        return {**played, "score": score, "action": action, "diverged": diverged}


def play(
    settings: AtariSettings,
    background: np.ndarray,
    checkpoint: str | os.PathLike | None = None,
    *,
    every: float = CHECKPOINT_SECONDS,
    beat: Callable[[int], Any] = lambda frames: None,
) -> AtariRun:
    """Play a whole run. It resumes from the checkpoint if there is one.

    Parameters
    ----------
    settings : AtariSettings
        Everything that determines the run, except the background.
    background : ndarray of int, shape (rows, 160)
        The colours of the background, from `learn_background` or `read_background`.
    checkpoint : path-like, optional
        A file that the state is written to.
    every : float
        Seconds between two checkpoints.
    beat : callable
        It gets the number of frames so far, now and then.

    Returns
    -------
    AtariRun
        The run at its end.
    """
    run = AtariRun(settings, background)
    if checkpoint is not None and Path(checkpoint).exists():
        run.resume(checkpoint)
    run.play(checkpoint, every=every, beat=beat)
    return run
