"""The outcome of Figure 8's race: how many runs there are, what they say, and what a decision would take."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import stats

from trueonline.control import atari
from trueonline.paper.asterix_collection import Collection, play
from trueonline.paper.asterix_race import POWER, Comparison, Race
from trueonline.paper.asterix_runs import COMPARED, SCHEMA, SIMILAR, STEP_SIZES, TRACE_DECAYS, frames_a_second
from trueonline.paper.experiment import ENOUGH, NOISE, Chart, Claim, Outcome, Settings, table
from trueonline.paper.style import COLOURS, MARKERS, NAMES, figure

PAPER = len(COMPARED) * len(STEP_SIZES) * len(TRACE_DECAYS) * 400  # the paper's runs


def outcome(settings: Settings, background: np.ndarray, frames: int = atari.FRAMES) -> Outcome:
    """Play more runs if asked to, and judge all that are kept."""
    folder = settings.tasks.parent / "asterix-runs" if settings.collection is None else settings.collection
    collection = Collection(folder, settings.seed, frames)
    race = play(settings, collection, background, settings.say)
    if not race.played:
        raise ValueError(
            f"{folder} has no finished run with seed {settings.seed}: let --more be at least 1, or name another --collection"
        )
    hours = frames / frames_a_second(background) / 3600.0
    points = _points(race)
    text = _note(race, collection, hours)
    return Outcome(
        _data(collection),
        {"figure": _picture(race, points, frames)},
        [_chart(points, frames)],
        [_claim(race, comparison, frames, hours) for comparison in race.comparisons],
        note=text,
    )


def _data(collection: Collection) -> pa.Table:
    records, _ = collection.read()
    rows = [{name: row[name] for name in SCHEMA.names} for runs in records.values() for row in runs.values()]
    data = pa.Table.from_pylist(rows, schema=SCHEMA)
    return data.sort_by([(name, "ascending") for name in ("method", "trace_decay", "step_size", "run")])


def _points(race: Race) -> pa.Table:
    """For each method and λ the best setting in the race, with its mean at an average seed and a 95 % interval."""
    assert race.fit is not None, "there is a run"
    rows = []
    for method in COMPARED:
        for lam in TRACE_DECAYS:
            own = [i for i, setting in enumerate(race.inside) if (setting.method, setting.trace_decay) == (method, lam)]
            if not own:
                continue
            i = max(own, key=lambda i: race.fit.means[i])  # type: ignore[union-attr]
            mean, error = float(race.fit.means[i]), race.fit.error(i)
            spread = float(stats.t.ppf(0.975, race.fit.freedom)) * error if race.fit.freedom else math.nan
            setting = race.inside[i]
            runs = len(race.scores[setting])
            rows.append((f"{method}_sarsa", lam, setting.step_size, mean, mean - spread, mean + spread, runs))
    return table(("method", "trace_decay", "step_size", "score", "low", "high", "runs"), rows)


# --- Words ----------------------------------------------------------------------------------------


def _percent(value: float) -> str:
    return f"{100.0 * value:+.0f} %".replace("-", "−") if math.isfinite(value) else "unknown"


def _words(comparison: Comparison) -> str:
    against = f"true online against {comparison.method}"
    if not math.isfinite(comparison.low):
        return f"{against}: {_percent(comparison.ratio)}, without an interval so far"
    verdict = "undecided" if comparison.verdict == NOISE else f"decided: {comparison.verdict}"
    return f"{against}: {_percent(comparison.ratio)} [{_percent(comparison.low)}, {_percent(comparison.high)}], {verdict}"


def _best_words(race: Race, method: str) -> str:
    i = race.best(method)
    if race.fit is None or i is None:
        return "no run so far"
    setting = race.inside[i]
    return f"{race.fit.means[i]:,.0f} points at {setting}, {_runs(len(race.scores[setting]))}"


def _runs(number: int) -> str:
    return f"{number:,} run{'s' * (number != 1)}"


def _cost(race: Race, hours: float) -> str:
    """The cost of a decision, and of the paper's own number of runs."""
    needed = race.needed()
    paper = f"The paper's {PAPER:,} runs would take about {PAPER * hours:,.0f} core-hours"
    if needed is None:
        return (
            f"Two runs of one setting are needed before anything can be said about the variance between seeds. {paper}."
        )
    total = len(COMPARED) * needed.runs
    return (
        f"The standard deviation between seeds is {race.fit.deviation:,.0f} points ({race.fit.freedom} degrees of freedom). "  # type: ignore[union-attr]
        f"If the methods are equally good, about {needed.runs:,} runs of each method's best setting decide it with a probability "
        f"of {100 * POWER:.0f} % (from {needed.low:,} to {needed.high:,}, by the 95 % interval of that deviation). That is "
        f"{total:,} runs, or {total * hours:,.0f} core-hours, if the best settings are known. {paper}."
    )


def _note(race: Race, collection: Collection, hours: float) -> str:
    records, _ = collection.read()
    versions = {row["kernels"] for runs in records.values() for row in runs.values()}
    outside = len(race.scores) - len(race.inside)
    grid = f"{len(race.scores)} of {len(COMPARED) * len(STEP_SIZES) * len(TRACE_DECAYS)} settings have been tried"
    comparisons = ". ".join(_words(comparison).capitalize() for comparison in race.comparisons)
    return (
        f"Scale accumulating: {_runs(race.played)} of {collection.frames:,} frames so far, made with {len(versions)} version"
        f"{'s' * (len(versions) != 1)} of the compiled code. {grid}, and {outside} of them are out of the race. {comparisons}. "
        f"{_cost(race, hours)}"
    )


def _claim(race: Race, comparison: Comparison, frames: int, hours: float) -> Claim:
    needed = race.needed()
    return Claim(
        f"The best score of true online Sarsa(λ) in the first {frames:,} frames is similar to that of {comparison.method} Sarsa(λ)",
        comparison.verdict,
        {
            "runs in all": race.played,
            "best, true online": _best_words(race, "true_online"),
            f"best, {comparison.method}": _best_words(race, comparison.method),
            "ratio of the best scores, less 1": comparison.ratio,
            "95 % interval": [comparison.low, comparison.high],
            "holds if": f"the interval lies within ±{SIMILAR:g}, with at least {ENOUGH} runs",
            "runs of each method's best setting that a decision takes": "unknown" if needed is None else needed.runs,
            "core-hours for that": "unknown" if needed is None else round(len(COMPARED) * needed.runs * hours, 1),
        },
    )


# --- Pictures -------------------------------------------------------------------------------------


def _picture(race: Race, points: pa.Table, frames: int) -> Any:
    """Each run as a dot, and the best setting in the race for each λ as a marker with its interval."""
    drawing, ((axes,),) = figure(1, 1, width=7.0, height=4.6)
    for shift, method in enumerate(COMPARED):
        nudge = 0.2 * (shift - 1)
        runs = [
            (TRACE_DECAYS.index(setting.trace_decay) + nudge, score)
            for setting, scores in race.scores.items()
            if setting.method == method
            for score in scores.values()
        ]
        if runs:
            axes.plot(*zip(*runs, strict=True), ".", color=COLOURS[method], alpha=0.4, ms=5, zorder=1)
        rows = [row for row in points.to_pylist() if row["method"] == f"{method}_sarsa"]
        x = np.array([TRACE_DECAYS.index(row["trace_decay"]) + nudge for row in rows])
        y = np.array([row["score"] for row in rows])
        spread = np.array([(row["score"] - row["low"], row["high"] - row["score"]) for row in rows]).reshape(-1, 2).T
        style = {"color": COLOURS[method], "marker": MARKERS[method], "ms": 6, "linewidth": 1.2}
        bars = spread if np.isfinite(spread).all() else None
        axes.errorbar(x, y, bars, capsize=2.5, elinewidth=1.0, label=NAMES[f"{method}_sarsa"], **style)
    axes.set_xticks(range(len(TRACE_DECAYS)), [f"{lam:g}" for lam in TRACE_DECAYS])
    lines = [f"Asterix, {frames:,} frames: {_runs(race.played)} so far", *map(_words, race.comparisons)]
    axes.set(xlabel="λ", ylabel="score per episode", xlim=(-0.5, len(TRACE_DECAYS) - 0.5))
    highest = max(score for runs in race.scores.values() for score in runs.values())
    tops = [row["high"] for row in points.to_pylist() if np.isfinite(row["high"])]
    axes.set_ylim(0.0, 1.08 * max(highest, *tops, 1.0))
    axes.set_title("\n".join(lines), fontsize=9)
    axes.annotate(
        "dots: runs at any α. Markers: the best α in the race, with 95 % intervals",
        (0.01, 0.02),
        xycoords="axes fraction",
        fontsize=8,
        color="#555555",
    )
    drawing.legend(loc="outside lower center", ncols=3)
    return drawing


def _chart(points: pa.Table, frames: int) -> Chart:
    return Chart(
        points,
        x="trace_decay",
        y="score",
        series="method",
        x_title="λ",
        y_title=f"score per episode over the first {frames:,} frames, at the best α in the race (bands: 95 %)",
        low="low",
        high="high",
    )
