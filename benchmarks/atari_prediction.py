"""The Atari Prediction Benchmark: how well the returns of recorded games are predicted while learning.

The benchmark is that of Javed, Shah, Sutton and White (2023), with the features of SwiftTD (Javed, Sharifnassab and Sutton 2024).
It needs recorded actions, which are not part of this package: a file such as Pong.txt.gz or SpaceInvaders.txt for each game, with
one letter for each frame. `a` is the first action that the game uses, `b` the second, and so on. `R` resets the game, which is not
the end of an episode. The first letter is not played.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import accumulate
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks.report import Ratio, Section, Settings, Table, Target, short
from trueonline import SwiftTD, TrueOnlineTD
from trueonline.control.atari.emulator import games, load
from trueonline.lab.claims import Estimate
from trueonline.words import listed

DISCOUNT, TRACE_DECAY = 0.98, 0.9
# The grey screen is looked at in every other row and column. The mean of four pixels there is one of 32 shades.
CORNERS = np.array([[160 * row + column for row in range(0, 210, 2) for column in range(0, 160, 2)]])
CORNERS = CORNERS + np.array([[0], [3], [3 * 160], [3 * 160 + 3]])
SHADES, PLACES = 32, CORNERS.shape[1]
REWARDS = {1.0: 300_000, -1.0: 300_001, 0.0: 300_002}  # the features of rewards, and behind them those of the last action
ACTIONS = 300_003
N_FEATURES, N_ACTIVE = 400_000, PLACES + 2

SHARES = (0.003, 0.01, 0.03, 0.1, 0.3)  # α of plain true online TD(λ), times the number of active features
# Lifetime errors of SwiftTD that the published program gives, by game and frames. It has single precision.
PUBLISHED = {
    ("breakout", 30_000): 0.284,
    ("breakout", 210_000): 0.0528,
    ("pong", 60_000): 0.0270,
    ("space_invaders", 20_000): 0.328,
    ("freeway", 20_000): 0.0604,
}
CLOSE = 0.02  # how far an error may be from a published one
BETTER, WORST = 0.9, 1.15  # adapted step-sizes over SwiftTD: the mean over games, and each game. Chosen before any result
ABOUT = f"""A game is replayed from the recorded actions of a trained agent, and the discounted sum of its later rewards is
predicted (γ = {DISCOUNT}, λ = {TRACE_DECAY}). The lifetime error is the mean over all frames of (G − V)², where V is the prediction
at a frame, before learning from the reward that came with it. Rewards are the signs of the points. There are {N_FEATURES:,} binary
features, of which {N_ACTIVE:,} are active. SwiftTD has the settings of its authors. Adapted step-sizes are those of TrueOnlineTD
with α = 0.1, bound = 0.1 and meta_step_size = 0.1. Plain true online TD(λ) has α = {", ".join(f"{share:g}" for share in SHARES)},
each over the number of active features. Intervals are a bootstrap over games."""


def measure(settings: Settings) -> Section:
    section = Section("Atari prediction", ABOUT.replace("\n", " "))
    if settings.actions is None:
        section.notes.append("Nothing was measured: --actions names no folder of recorded actions.")
        return section
    frames = min(settings.frames, 2_000) if settings.quick else settings.frames
    found = recordings(settings.actions)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        played = zip(found, pool.map(partial(lifetime_errors, frames=frames), found, found.values()), strict=True)
        errors = {game: each for game, each in played if each[frames][0] > 0.0}  # without a reward there is no ratio
    without = [title(game) for game in found if game not in errors]
    if without:
        section.notes.append(f"No reward came in the first {frames:,} frames of {listed(without)}. They are left out.")
    if not errors:
        return section
    ratios = {game: each[frames] / each[frames][0] for game, each in errors.items()}
    one_alpha = np.log([each[2:] for each in ratios.values()]).mean(axis=0).argmin()
    columns = {game: (each[1], each[2 + one_alpha], each[2:].min()) for game, each in ratios.items()}
    logs = np.log(list(columns.values())).T
    estimates = [Estimate(np.exp(Estimate.mean(each, seed=0).rows)) for each in logs]
    means = [Ratio(each.value, *each.interval) for each in estimates]
    ordered = sorted(columns, key=lambda game: columns[game])
    rows = [(title(game), f"{errors[game][frames][0]:.4g}", *map(short, columns[game])) for game in ordered]
    heads = ("game", "SwiftTD's error", "adapted, over SwiftTD's", "plain, one α", "plain, best α of each game")
    section.tables.append(Table(heads, [*rows, ("geometric mean", "", *means)]))
    for (game, end), theirs in PUBLISHED.items():
        if end in errors.get(game, ()):
            ours = errors[game][end][0]
            name = f"SwiftTD's error in the first {end:,} frames of {title(game)}: that of the published program"
            section.targets.append(
                Target(name, f"{theirs:g} ± {CLOSE:.0%}", f"{ours:.4g}", abs(ours / theirs - 1.0) <= CLOSE)
            )
    adapted, plain, _ = means
    worst = columns[ordered[-1]][0]
    section.targets += [
        Target("adapted over SwiftTD, all of the interval", f"≤ {BETTER:g}×", adapted, adapted.high <= BETTER),
        Target(f"adapted over SwiftTD, worst game ({title(ordered[-1])})", f"≤ {WORST:g}×", short(worst), worst <= WORST),
        Target("plain, one α, over SwiftTD, all of the interval", "≥ 1×", plain, plain.low >= 1.0),
    ]
    section.notes.append(f"{frames:,} frames of each game. The one α is {SHARES[one_alpha]:g} over the active features.")
    return section


def recordings(folder: Path) -> dict[str, Path]:
    """The files of recorded actions by the names of their games."""
    names = {game.replace("_", ""): game for game in games()}
    stems = {
        path: path.name.split(".")[0].lower().removesuffix("noframeskip-v4") for path in sorted(folder.glob("*.txt*"))
    }
    found = {names[stem]: path for path, stem in stems.items() if stem in names}
    if not found:
        raise ValueError(f"{folder} has no file of recorded actions, such as Pong.txt.gz or SpaceInvaders.txt")
    return found


def lifetime_errors(game: str, path: Path, frames: int) -> dict[int, np.ndarray]:
    """The lifetime error of each method after all frames, and after those with a published error."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        actions = file.read(frames + 1).strip()
    if len(actions) <= frames:
        raise ValueError(f"{path} has actions for {len(actions) - 1:,} frames: give --frames that or less")
    common = (TRACE_DECAY, DISCOUNT)
    learners = [
        SwiftTD(N_FEATURES, 0.001, *common, bound=0.1, decay=0.999, meta_step_size=0.001),
        TrueOnlineTD(N_FEATURES, 0.1, *common, bound=0.1, meta_step_size=0.1),
        *(TrueOnlineTD(N_FEATURES, share / N_ACTIVE, *common) for share in SHARES),
    ]
    rewards, predictions = np.zeros(frames), np.zeros((len(learners), frames))
    for t, (x, reward) in enumerate(replay(game, actions)):
        rewards[t] = reward
        for learner, values in zip(learners, predictions, strict=True):
            values[t] = learner.predict(x)
            if t == 0:
                learner.start(x)
            else:
                learner.update(reward, x)
    ends = [end for name, end in PUBLISHED if name == game and end < frames]
    with np.errstate(over="ignore", invalid="ignore"):  # a learner that diverged
        errors = {end: ((returns(rewards[:end]) - predictions[:, :end]) ** 2).mean(axis=1) for end in (*ends, frames)}
    return {end: np.nan_to_num(each, nan=np.inf) for end, each in errors.items()}


def replay(game: str, actions: str) -> Iterator[tuple[np.ndarray, float]]:
    """The indices of the active features and the reward of each frame."""
    ale = load(game, averaged=False)
    ale.reset_game()
    known, last = ale.getMinimalActionSet(), 0
    letters = {chr(ord("a") + number): number for number in range(len(known))}
    for letter in actions[1:]:
        points = 0
        if letter == "R":
            ale.reset_game()
        else:
            last = letters[letter]
            points = ale.act(known[last])
        reward = float(np.sign(points))
        pixels = np.append(
            ale.getScreenGrayscale(), np.zeros(CORNERS[-1, 0], np.uint8)
        )  # beyond the screen they count as 0
        shades = pixels[CORNERS].sum(axis=0, dtype=np.int64) // len(CORNERS) // (256 // SHADES)
        yield np.append(SHADES * np.arange(PLACES) + shades, (REWARDS[reward], ACTIONS + last)), reward


def returns(rewards: np.ndarray) -> np.ndarray:
    """The discounted sum of the rewards after each frame. Rewards after the last frame count as 0."""
    backwards = rewards[:0:-1].tolist()
    return np.array(list(accumulate(backwards, lambda later, reward: reward + DISCOUNT * later, initial=0.0))[::-1])


def title(game: str) -> str:
    return game.replace("_", " ").title()
