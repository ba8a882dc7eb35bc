"""The results of the Atari Prediction Benchmark over those of SwiftTD: ratios, geometric means, and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline.control.atari.prediction import N_ACTIVE
from trueonline.paper.atari_prediction.runs import ADAPTED, PLAIN, SWIFT, ends, stretch
from trueonline.paper.experiment import interval, resample, table

LINES = {SWIFT: "SwiftTD", ADAPTED: "true online TD(λ), adapted", PLAIN: "true online TD(λ), one α for all games"}
HINDSIGHT = "true online TD(λ), best α of each game"
TINY = 1e-12  # a game with a smaller error has no rewards, and no ratio

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Found:
    """Results by game and line. Plain true online TD(λ) is at the step-size that is best over all games."""

    games: tuple[str, ...]  # from the smallest ratio of adaptation to the largest
    frames: int
    rows: Mapping[tuple[str, str], Row]  # (game, line) → result
    ratios: Mapping[str, np.ndarray]  # line → lifetime error over SwiftTD's, by game
    means: Mapping[str, tuple[float, float, float]]  # line → geometric mean, and its interval over games
    speeds: Mapping[str, float]  # line → time over SwiftTD's, the median over games
    silent: tuple[str, ...]  # games without a reward, which are left out


def summarise(results: Sequence[Row], seed: int) -> Found:
    """The results of all games, over those of SwiftTD."""
    by_method: dict[tuple[str, float], dict[str, Row]] = {}
    for row in results:
        by_method.setdefault((row["method"], row["step_size"]), {})[row["game"]] = row
    (swift,), (adapted,), plain = (
        [rows for (method, _), rows in by_method.items() if method == name] for name in (SWIFT, ADAPTED, PLAIN)
    )
    silent = tuple(game for game, row in swift.items() if row["error"] < TINY)
    if len(silent) == len(swift):
        raise ValueError(f"no reward came in these frames of {', '.join(silent)}: give more --frames, or other --games")
    games = tuple(sorted(set(swift) - set(silent), key=lambda game: (_ratio(adapted[game], swift[game]), game)))

    def over_swift(rows: Mapping[str, Row]) -> np.ndarray:
        return np.array([_ratio(rows[game], swift[game]) for game in games])

    over_alphas = np.array([over_swift(rows) for rows in plain])
    best = int(np.log(over_alphas).mean(axis=1).argmin())
    lines = {SWIFT: swift, ADAPTED: adapted, PLAIN: plain[best]}
    ratios = {name: over_swift(rows) for name, rows in lines.items()} | {HINDSIGHT: over_alphas.min(axis=0)}
    weights = resample(len(games), seed=seed)
    speeds = {
        name: np.median([rows[game]["microseconds"] / swift[game]["microseconds"] for game in games])
        for name, rows in lines.items()
    }
    return Found(
        games,
        results[0]["frames"],
        {(game, name): rows[game] for name, rows in lines.items() for game in games},
        ratios,
        {name: geometric_mean(values, weights) for name, values in ratios.items()},
        {name: float(speed) for name, speed in speeds.items()},
        silent,
    )


def _ratio(row: Row, swift: Row) -> float:
    """Lifetime error over SwiftTD's. A learner that diverged is infinitely worse."""
    ratio = row["error"] / swift["error"]
    return ratio if np.isfinite(ratio) else np.inf


def geometric_mean(ratios: np.ndarray, weights: np.ndarray) -> tuple[float, float, float]:
    """The geometric mean, and its bootstrap interval over games. Infinite if one ratio is."""
    if not np.isfinite(ratios).all():
        return np.inf, np.inf, np.inf
    logs = np.log(ratios)
    return float(np.exp(logs.mean())), *interval(np.exp(weights @ logs))


# --- Tables ---------------------------------------------------------------------------------------


def data_of(results: Sequence[Row]) -> pa.Table:
    """A row for each game, method and step-size."""
    swift = {row["game"]: row["error"] for row in results if row["method"] == SWIFT}
    names = ("game", "method", "step_size", "frames", "error", "microseconds")
    rows = [(*(row[name] for name in names), row["error"] / (swift[row["game"]] or np.nan)) for row in results]
    return table((*names, "over_swift"), rows)


def table_of_games(found: Found) -> pa.Table:
    """Games by the ratio of adaptation, and the geometric means below them."""
    heads = {ADAPTED: "adapted, over SwiftTD's", PLAIN: "plain, one α", HINDSIGHT: "plain, best α of each game"}
    rows = [
        (title(game), f"{found.rows[game, SWIFT]['error']:.3g}", *(f"{found.ratios[name][at]:.3f}" for name in heads))
        for at, game in enumerate(found.games)
    ]
    means = ("{:.3f} [{:.3f}, {:.3f}]".format(*found.means[name]) for name in heads)
    return table(("game", "SwiftTD's error", *heads.values()), [*rows, ("geometric mean [95 %]", "", *means)])


def curve_rows(found: Found) -> pa.Table:
    """The learning curves."""
    rows = [
        (title(game), name, int(end), error)
        for game in found.games
        for name in LINES
        for end, error in zip(ends(found.frames), found.rows[game, name]["curve"], strict=True)
    ]
    return table(("game", "method", "frame", "error"), rows)


def prediction_rows(found: Found) -> pa.Table:
    """Returns and predictions of some frames, late in the run, and both over the game's largest return there."""
    late = stretch(found.frames)
    rows = []
    for game in found.games:
        returns = found.rows[game, SWIFT]["returns"]
        largest = max(map(abs, returns)) or 1.0
        lines = {name: found.rows[game, name]["stretch"] for name in LINES}
        for name, values in {"return": returns, **lines}.items():
            for frame, value in zip(range(late.start + 1, late.stop + 1), values, strict=True):
                rows.append((title(game), name, frame, value, value / largest))
    return table(("game", "method", "frame", "value", "share"), rows)


def title(game: str) -> str:
    """The name of a game as people write it.

    >>> title("space_invaders")
    'Space Invaders'
    """
    return game.replace("_", " ").title()


def note(found: Found) -> str:
    """How the experiment was run, and what it took."""
    alpha = found.rows[found.games[0], PLAIN]["step_size"]
    games = "1 game" if len(found.games) == 1 else f"{len(found.games)} games"
    silent = f" No reward came in {', '.join(map(title, found.silent))}, which is left out." if found.silent else ""
    adapted, plain = (f"{found.speeds[name]:.2f}" for name in (ADAPTED, PLAIN))
    return (
        f"{games}, {found.frames:,} frames each.{silent} Plain true online TD(λ) has its smallest geometric mean of errors with "
        f"α = {alpha:.3g}, which is {alpha * N_ACTIVE:.3g} over the number of active features. To predict and to learn from a "
        f"frame, adapted step-sizes took {adapted} times as long as SwiftTD, and plain true online TD(λ) {plain} times as long "
        "(medians over games). These times are noisy, because other processes ran beside."
    )
