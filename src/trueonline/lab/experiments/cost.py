"""Section 4.1 — the cost of being exact

The figure shows the time per step of true online TD(λ) relative to accumulate TD(λ). Both methods are those of this
package, and are measured in turns on the same streams (median of 15 turns, with a bootstrap interval). The paper says
"close to twice as much in some cases", and "only a fraction more" with sparse features. Timings differ from run to run and
from machine to machine.

Question: What does exactness cost in time?

Paper: A step takes at most close to twice as long, and only a fraction longer if few features are active at a time.

Look: At 1, both methods take the same time. Bands show the uncertainty of the measurement. Times depend on the machine, and on
what else it was doing.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline import AccumulateTD, TrueOnlineTD
from trueonline.lab.best_rows import BestRows
from trueonline.lab.claims import Claim, Estimate, judge
from trueonline.lab.experiment import Experiment, Outcome, Settings, table
from trueonline.lab.style import figure

SPARSE = "sparse, 9 active"
SIZES = {"dense": (10, 30, 100, 300, 1000, 3000, 10_000), SPARSE: (2_000, 20_000, 200_000, 2_000_000)}
REPEATS, SECONDS = 15, 0.01
FRACTION = 1.5  # a ratio below it is "only a fraction more"


def run(settings: Settings) -> Outcome:
    rows = []
    for kind, sizes in SIZES.items():
        for n in sizes:
            ratios, times = _ratios(kind, n, settings)
            rng = np.random.default_rng(settings.seed)
            samples = np.median(rng.choice(ratios, size=(1000, len(ratios))), axis=1)
            ratio = Estimate(np.append(np.median(ratios), samples))
            rows.append((kind, n, ratio.value, *ratio.interval, *(1e9 * times).tolist()))
    names = ("features", "n", "ratio", "low", "high", "accumulate_ns_per_step", "true_online_ns_per_step")
    data = table(names, rows)
    return Outcome(data, {"figure": lambda: _picture(data)}, _claims(data))


def _ratios(kind: str, n: int, settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """Both methods on the same stream in turns: the ratio of the times of each pair of turns, and the seconds of a step."""
    rng = np.random.default_rng([settings.seed, n])
    steps = 400 if kind != "dense" else max(40, 40_000 // n)
    if kind == "dense":
        X = rng.normal(size=(steps + 1, n)) / np.sqrt(n)
    else:
        X = np.sort(rng.integers(n // 9, size=(steps + 1, 9)) + np.arange(9) * (n // 9), axis=1)
    rewards = rng.normal(size=steps)
    learners = [cls(n, 0.01, 0.9, 0.99) for cls in (AccumulateTD, TrueOnlineTD)]
    once = [_time(learner, X, rewards, 1) for learner in (*learners, *learners)]
    times = max(1, int(SECONDS / min(once)))
    turns = np.array([[_time(learner, X, rewards, times) for learner in learners] for _ in range(REPEATS)])
    return turns[:, 1] / turns[:, 0], np.median(turns, axis=0) / (times * steps)


def _time(learner: Any, X: np.ndarray, rewards: np.ndarray, times: int) -> float:
    began = time.perf_counter()
    for _ in range(times):
        learner.run(X, rewards)
    return time.perf_counter() - began


def _picture(data: pa.Table) -> Any:
    drawing, ((axes,),) = figure(1, 1, width=5.0, height=3.4)
    for kind, colour, marker in (("dense", "#56B4E9", "o"), (SPARSE, "#E69F00", "s")):
        rows = [row for row in data.to_pylist() if row["features"] == kind]
        n, ratio, low, high = ([row[name] for row in rows] for name in ("n", "ratio", "low", "high"))
        axes.fill_between(n, low, high, color=colour, alpha=0.25, linewidth=0)
        axes.plot(n, ratio, marker=marker, ms=4, color=colour, label=kind)
    axes.axhline(1.0, color="#999999", linewidth=0.9, zorder=0)
    axes.set(xscale="log", xlabel="number of features", ylabel="time per step, over accumulate TD(λ)", ylim=(0.0, 2.2))
    axes.set_title("True online TD(λ) over accumulate TD(λ)")
    axes.legend()
    return drawing


def _claims(data: pa.Table) -> list[Claim]:
    rows = data.to_pylist()
    worst = max(rows, key=lambda row: row["ratio"])
    sparse = max((row for row in rows if row["features"] == SPARSE), key=lambda row: row["ratio"])
    return [
        Claim(
            "The cost of true online TD(λ) is at most close to twice that of accumulate TD(λ)",
            judge(worst["low"], worst["high"], at_most=2.0),
            {
                "largest ratio": worst["ratio"],
                "interval": [worst["low"], worst["high"]],
                "at": f"{worst['features']}, n = {worst['n']:,}",
            },
        ),
        Claim(
            "With sparse features it is only a fraction more",
            judge(sparse["low"], sparse["high"], at_most=FRACTION),
            {
                "largest ratio": sparse["ratio"],
                "interval": [sparse["low"], sparse["high"]],
                "at": f"n = {sparse['n']:,}",
                "a fraction": f"below {FRACTION:g}",
            },
        ),
    ]


EXPERIMENT = Experiment("cost", __doc__, run, BestRows(("features", "n"), "ratio"))
