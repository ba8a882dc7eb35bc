"""Figure 8 — Asterix

The Atari game Asterix, learned with the 28,673 Basic features and nine actions. The figure shows the mean score of
all episodes that are played while learning, at the best α for each λ. The score of random play is drawn for comparison.

The paper plays 4,320,000 frames (20 hours) in a run. It has 400 runs for each of 42 settings and three methods, so 16,800
runs for each method. The option --scale chooses a part of this: quick (minutes on two cores), evening (a night) or paper (a
cluster, with --shard or --engine dask). The interval of a point comes from its runs at the α that was best on average. It
does not account for the choice of α.

The text leaves some details open, and these are inferred. α is divided by the largest number of active features so far.
Colours are averaged over two frames. An episode that reaches five minutes is truncated, not terminated. The last episode of
a run is played to its end and counts. The background is learned from five minutes of random play, as the most frequent
colour of each pixel.

Question: Does exactness help an agent that learns to play a game?

Paper: In the game Asterix, the best scores of the three kinds of traces are similar. So exactness costs nothing here, and
gains nothing.

Look: Higher is better. Each line is the mean score over all episodes while learning, at the best step-size of each λ. At the
scale `quick` there are too few frames to decide much.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline import study
from trueonline.control import atari
from trueonline.lab.best_rows import BestRows
from trueonline.lab.claims import ENOUGH, Claim, Estimate, judge
from trueonline.lab.experiment import Experiment, Outcome, Settings, Unfinished, table
from trueonline.lab.experiments.asterix_runs import COMPARED, SIMILARITY, estimate, scale_of, tasks
from trueonline.lab.style import COLOURS, MARKERS, NAMES, figure
from trueonline.study.results import student_interval
from trueonline.words import count


def run(settings: Settings) -> Outcome:
    background, scale = atari.learn_background(), scale_of(settings)
    share = settings.options.get("shard")
    all_tasks = tasks(settings, background)
    missing = [task for task in all_tasks if study.read_task(task, settings.tasks) is None]
    if missing:
        settings.say(estimate(missing, len(all_tasks), settings, background))
    study.execute_tasks(all_tasks, settings.tasks, share=share, **settings.how)
    results = study.gather_tasks(all_tasks, settings.tasks)
    if results is None:
        raise Unfinished(
            f"share {share} of asterix is done; others are not. Their results belong into {settings.tasks} as well; then "
            "run the same without --shard"
        )
    data = results.sort_by([(name, "ascending") for name in ("method", "trace_decay", "step_size", "run")])
    best, floor = _best(data), [float(each) for each in student_interval(_scores(data, "random")[0].ravel())]
    runs = best["runs"][0].as_py()
    title = (
        f"Asterix: first {scale.frames:,} frames, best of {len(scale.step_sizes)} step-sizes\n"
        f"{count(runs, 'run')} behind each point (bars: 95 %)"
    )
    file = io.BytesIO()
    atari.write_background(background, file)
    return Outcome(
        data,
        {"figure": lambda: _picture(best, floor, title), "background": lambda: _screens(background)},
        _claims(data, best, floor, settings),
        files={"background.txt": file.getvalue()},
        note=f"Scale {scale.name}: {count(runs, 'run')} of {scale.frames:,} frames ({scale.frames / 3600:,.0f} minutes of play) "
        f"for each setting, {len(scale.step_sizes)} of the paper's seven step-sizes. {scale.says}",
    )


# --- Tables and pictures --------------------------------------------------------------------------


def _scores(data: pa.Table, method: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An array of scores over run, λ and α, and the values of λ and α."""
    rows = [row for row in data.to_pylist() if row["method"] == method]
    lams = np.unique([row["trace_decay"] for row in rows])
    alphas = np.unique([row["step_size"] for row in rows])
    ordered = sorted(rows, key=lambda row: (row["run"], row["trace_decay"], row["step_size"]))
    return np.array([row["score"] for row in ordered]).reshape(-1, len(lams), len(alphas)), lams, alphas


def _best(data: pa.Table) -> pa.Table:
    """For each method and λ the mean score at the best α, with a 95 % interval over its runs."""
    rows = []
    for method in COMPARED:
        scores, lams, alphas = _scores(data, method)
        for i, lam in enumerate(lams):
            j = int(scores[:, i].mean(axis=0).argmax())
            rows.append(
                (
                    f"{method}_sarsa",
                    float(lam),
                    float(alphas[j]),
                    *map(float, student_interval(scores[:, i, j])),
                    len(scores),
                )
            )
    return table(("method", "trace_decay", "step_size", "score", "low", "high", "runs"), rows)


def _picture(best: pa.Table, floor: Sequence[float], title: str) -> Any:
    drawing, ((axes,),) = figure(1, 1, width=6.4, height=4.2)
    for shift, method in enumerate(COMPARED):
        rows = [row for row in best.to_pylist() if row["method"] == f"{method}_sarsa"]
        x = np.arange(len(rows)) + 0.12 * (shift - 1)
        y, low, high = (np.array([row[name] for row in rows]) for name in ("score", "low", "high"))
        style = {"color": COLOURS[method], "marker": MARKERS[method], "ms": 5, "linewidth": 1.4}
        spread = np.nan_to_num([y - low, high - y])
        axes.errorbar(x, y, spread, capsize=2.5, elinewidth=1.0, label=NAMES[f"{method}_sarsa"], **style)
    axes.axhline(floor[0], color=COLOURS["random"], linewidth=1.2, linestyle=":", label=NAMES["random"])
    axes.axhspan(*np.nan_to_num(floor[1:], nan=floor[0]), color=COLOURS["random"], alpha=0.12, linewidth=0)
    lams = sorted(set(best["trace_decay"].to_pylist()))
    axes.set_xticks(range(len(lams)), [f"{lam:g}" for lam in lams])
    axes.set(xlabel="λ", ylabel="score per episode", title=title, ylim=(0.0, None))
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


def _claims(data: pa.Table, best: pa.Table, floor: Sequence[float], settings: Settings) -> list[Claim]:
    frames = scale_of(settings).frames
    scores = {method: Estimate.mean(_scores(data, method)[0], settings.seed).largest() for method in COMPARED}
    runs = best["runs"][0].as_py()
    claims = []
    for method in ("accumulate", "replace"):
        ratio = scores["true_online"] / scores[method] - 1.0
        numbers = {
            "best mean score, true online": scores["true_online"].value,
            f"best mean score, {method}": scores[method].value,
            "95 % interval of the ratio, less 1": ratio.interval,
            "runs of each setting": runs,
            "holds if": f"the interval lies within ±{SIMILARITY:g}, with at least {ENOUGH} runs",
        }
        claim = f"The best score of true online Sarsa(λ) in the first {frames:,} frames is similar to that of {method} Sarsa(λ)"
        claims.append(Claim(claim, ratio.judge(at_least=-SIMILARITY, at_most=SIMILARITY), numbers, runs))
    highest = {row["method"]: row for row in best.sort_by("score").to_pylist()}
    worst = min(highest.values(), key=lambda row: row["score"])
    # The interval of the difference, from both intervals. With one run it is not a number.
    low, high = worst["low"] - floor[2], worst["high"] - floor[1]
    claims.append(
        Claim(
            f"All three methods learn: their best scores in the first {frames:,} frames are above random play (our claim, "
            "not the paper's)",
            judge(low, high, at_least=0.0),
            {
                "worst of the three": worst["method"],
                "its best score": worst["score"],
                "its 95 % interval": [worst["low"], worst["high"]],
                "random play": floor[0],
                "interval of that": list(floor[1:]),
            },
            runs,
        )
    )
    return claims


EXPERIMENT = Experiment(
    "asterix", __doc__, run, BestRows(("method",), "score", mean_over="run", largest=True, names="_sarsa")
)
