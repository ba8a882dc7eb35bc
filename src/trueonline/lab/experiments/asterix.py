"""Figure 8: Asterix. The score per episode while learning for 20 hours of play, over λ, at the best α (section 5.3)."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline import study
from trueonline.control import atari
from trueonline.lab.experiment import (
    ENOUGH,
    FAILS,
    HOLDS,
    NOISE,
    Chart,
    Claim,
    Experiment,
    Outcome,
    Settings,
    Unfinished,
    interval,
    resample,
    table,
)
from trueonline.lab.experiments.asterix_runs import COMPARED, SCALES, SIMILAR, Scale, estimate, tasks
from trueonline.lab.style import COLOURS, MARKERS, NAMES, figure
from trueonline.words import count


def run(settings: Settings) -> Outcome:
    background = atari.learn_background()
    scale = SCALES[settings.scale]
    all_tasks = tasks(settings, background)
    missing = [task for task in all_tasks if study.read_task(task, settings.tasks) is None]
    if missing:
        settings.say(estimate(missing, len(all_tasks), settings, background))
    options = {"engine": settings.engine, "threads": settings.threads, "share": settings.share}
    study.execute_tasks(all_tasks, settings.tasks, **options, progress=settings.progress)  # type: ignore[arg-type]
    results = study.gather_tasks(all_tasks, settings.tasks)
    if results is None:
        raise Unfinished(
            f"share {settings.share} of asterix is done; others are not. Their results belong into {settings.tasks} as well; then "
            "run the same without --shard"
        )
    data = results.sort_by([(name, "ascending") for name in ("method", "trace_decay", "step_size", "run")])
    best, floor = _best(data), _floor(data)
    file = io.BytesIO()
    atari.write_background(background, file)
    return Outcome(
        data,
        {"figure": _picture(best, floor, settings), "background": _screens(background)},
        [_chart(best, floor, scale)],
        _claims(data, best, floor, settings),
        shown="background",
        files={"background.txt": file.getvalue()},
        note=f"Scale {settings.scale}: {_runs(best)} of {scale.frames:,} frames ({scale.frames / 3600:,.0f} minutes of play) for "
        f"each setting, {len(scale.step_sizes)} of the paper's seven step-sizes. {scale.says}",
    )


# --- Tables and pictures --------------------------------------------------------------------------


def _scores(data: pa.Table, method: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An array of scores over λ, α and run, and the values of λ and α."""
    rows = [row for row in data.to_pylist() if row["method"] == method]
    lams = np.unique([row["trace_decay"] for row in rows])
    alphas = np.unique([row["step_size"] for row in rows])
    ordered = sorted(rows, key=lambda row: (row["trace_decay"], row["step_size"], row["run"]))
    return np.array([row["score"] for row in ordered]).reshape(len(lams), len(alphas), -1), lams, alphas


def _best(data: pa.Table) -> pa.Table:
    """For each method and λ the mean score at the best α, with a 95 % interval over its runs."""
    rows = []
    for method in COMPARED:
        scores, lams, alphas = _scores(data, method)
        for i, lam in enumerate(lams):
            j = int(scores[i].mean(axis=1).argmax())
            mean, low, high = _interval(scores[i, j])
            row = (f"{method}_sarsa", float(lam), float(alphas[j]), mean, low, high, scores.shape[2])
            rows.append(row)
    names = ("method", "trace_decay", "step_size", "score", "low", "high", "runs")
    return table(names, rows)


def _floor(data: pa.Table) -> tuple[float, float, float, int]:
    scores, _, _ = _scores(data, "random")
    return *_interval(scores.reshape(-1)), scores.size


# Student's t for 95 %, by the number of runs less one. With many runs it approaches 1.96.
STUDENT = (np.inf, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)


def _interval(scores: np.ndarray) -> tuple[float, float, float]:
    """The mean, and its 95 % interval (Student's)."""
    n = len(scores)
    mean = float(scores.mean())
    if n < 2:
        return mean, np.nan, np.nan
    factor = STUDENT[n - 1] if n <= len(STUDENT) else 1.96 + 2.5 / (n - 1)
    spread = factor * float(scores.std(ddof=1)) / np.sqrt(n)
    return mean, mean - spread, mean + spread


def _runs(best: pa.Table) -> str:
    runs = best["runs"][0].as_py()
    return count(runs, "run")


def _picture(best: pa.Table, floor: tuple[float, float, float, int], settings: Settings) -> Any:
    drawing, ((axes,),) = figure(1, 1, width=6.4, height=4.2)
    for shift, method in enumerate(COMPARED):
        rows = [row for row in best.to_pylist() if row["method"] == f"{method}_sarsa"]
        x = np.arange(len(rows)) + 0.12 * (shift - 1)
        y = np.array([row["score"] for row in rows])
        spread = np.array([(row["score"] - row["low"], row["high"] - row["score"]) for row in rows]).T
        style = {"color": COLOURS[method], "marker": MARKERS[method], "ms": 5, "linewidth": 1.4}
        if np.isfinite(spread).all():
            axes.errorbar(x, y, spread, capsize=2.5, elinewidth=1.0, label=NAMES[f"{method}_sarsa"], **style)
        else:
            axes.plot(x, y, label=NAMES[f"{method}_sarsa"], **style)
    axes.axhline(floor[0], color=COLOURS["random"], linewidth=1.2, linestyle=":", label=NAMES["random"])
    if np.isfinite(floor[1]):
        axes.axhspan(floor[1], floor[2], color=COLOURS["random"], alpha=0.12, linewidth=0)
    lams = sorted(set(best["trace_decay"].to_pylist()))
    axes.set_xticks(range(len(lams)), [f"{lam:g}" for lam in lams])
    scale = SCALES[settings.scale]
    axes.set(
        xlabel="λ",
        ylabel="score per episode",
        title=f"Asterix: first {scale.frames:,} frames, best of {len(scale.step_sizes)} step-sizes\n"
        f"{_runs(best)} behind each point (bars: 95 %)",
        ylim=(0.0, None),
    )
    drawing.legend(loc="outside lower center", ncols=4)
    return drawing


def _screens(background: np.ndarray) -> Any:
    """The learned background, a screen, and the part of the screen that the features see."""
    emulator = atari.Emulator()
    rng = np.random.default_rng(8)
    for _ in range(60):
        emulator.act(int(rng.integers(len(emulator.actions))))
    colours = atari.NTSC[background >> 1]
    screen = atari.NTSC[emulator.now >> 1]
    left = np.where((emulator.now >> 1 == background >> 1)[..., None], np.uint8(235), screen)
    drawing, (row,) = figure(1, 3, width=7.4, height=2.35)
    titles = ("the learned background", "a screen", "the part that the features see")
    for axes, image, title in zip(row, (colours, screen, left), titles, strict=True):
        axes.imshow(image, aspect=0.6, interpolation="nearest")
        axes.set_title(title)
        axes.set(xticks=np.arange(0, 161, 10) - 0.5, yticks=np.arange(0, 211, 15) - 0.5, xticklabels=[], yticklabels=[])
        axes.tick_params(length=0)
        axes.grid(False)
    row[2].grid(True, color="#BBBBBB", linewidth=0.4)
    return drawing


def _chart(best: pa.Table, floor: tuple[float, float, float, int], scale: Scale) -> Chart:
    lams = sorted(set(best["trace_decay"].to_pylist()))
    random = {
        "method": ["random"] * len(lams),
        "trace_decay": lams,
        "step_size": [0.0] * len(lams),
        "score": [floor[0]] * len(lams),
        "low": [floor[1]] * len(lams),
        "high": [floor[2]] * len(lams),
        "runs": [floor[3]] * len(lams),
    }
    data = pa.concat_tables([best, pa.table(random, schema=best.schema)])
    return Chart(
        data,
        x="trace_decay",
        y="score",
        series="method",
        x_title="λ",
        y_title=f"score per episode over the first {scale.frames:,} frames, at the best α, {_runs(best)} a point (bands: 95 %)",
        low="low",
        high="high",
    )


def _claims(data: pa.Table, best: pa.Table, floor: tuple[float, float, float, int], settings: Settings) -> list[Claim]:
    scale = SCALES[settings.scale]
    means, samples = {}, {}
    for method in COMPARED:
        scores, _, _ = _scores(data, method)
        flat = scores.reshape(-1, scores.shape[2])
        means[method] = float(flat.mean(axis=1).max())
        samples[method] = (resample(flat.shape[1], seed=settings.seed) @ flat.T).max(axis=1)
    runs = best["runs"][0].as_py()
    claims = []
    for method in ("accumulate", "replace"):
        low, high = interval(samples["true_online"] / samples[method] - 1.0)
        within, beyond = low >= -SIMILAR and high <= SIMILAR, low > SIMILAR or high < -SIMILAR
        verdict = HOLDS if within else FAILS if beyond else NOISE
        numbers = {
            "best mean score, true online": means["true_online"],
            f"best mean score, {method}": means[method],
            "95 % interval of the ratio, less 1": [low, high],
            "runs of each setting": runs,
            "holds if": f"the interval lies within ±{SIMILAR:g}, with at least {ENOUGH} runs",
        }
        claims.append(
            Claim(
                f"The best score of true online Sarsa(λ) in the first {scale.frames:,} frames is similar to that of "
                f"{method} Sarsa(λ)",
                verdict,
                numbers,
                runs,
            )
        )
    highest: dict[str, dict[str, Any]] = {}
    for row in best.sort_by("score").to_pylist():
        highest[row["method"]] = row
    worst = min(highest.values(), key=lambda row: row["score"])
    above = worst["low"] > floor[2]
    below = worst["high"] < floor[1]
    claims.append(
        Claim(
            f"All three methods learn: their best scores in the first {scale.frames:,} frames are above random play (our claim, "
            "not the paper's)",
            # By Student's intervals, which are wide enough for few runs. So `samples` is left out.
            NOISE if not np.isfinite(worst["low"]) else HOLDS if above else FAILS if below else NOISE,
            {
                "worst of the three": worst["method"],
                "its best score": worst["score"],
                "its 95 % interval": [worst["low"], worst["high"]],
                "random play": floor[0],
                "interval of that": [floor[1], floor[2]],
            },
        )
    )
    return claims


EXPERIMENT = Experiment(
    "asterix",
    "Figure 8 — Asterix",
    """The Atari game Asterix, learned with the 28,673 Basic features and nine actions. The chart shows the mean score of
all episodes that are played while learning, at the best α for each λ. The score of random play is drawn for comparison.

The paper plays 4,320,000 frames (20 hours) in a run. It has 400 runs for each of 42 settings and three methods, so 16,800
runs for each method. The option --scale chooses a part of this: quick (minutes on two cores), evening (a night) or paper (a
cluster, with --shard or --engine dask). The interval of a point comes from its runs at the α that was best on average. It
does not account for the choice of α.

The text leaves some details open, and these are inferred. α is divided by the largest number of active features so far.
Colours are averaged over two frames. An episode that reaches five minutes is truncated, not terminated. The last episode of
a run is played to its end and counts. The background is learned from five minutes of random play, as the most frequent
colour of each pixel.""",
    run,
)
