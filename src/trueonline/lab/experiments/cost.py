"""Section 4.1's claim about cost: the time of a step of true online TD(λ), relative to accumulate TD(λ)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from trueonline import AccumulateTD, TrueOnlineTD
from trueonline.lab.experiment import Chart, Claim, Experiment, Outcome, Settings, at_most, interval, table
from trueonline.lab.style import figure

DENSE = (10, 30, 100, 300, 1000, 3000, 10_000)
SPARSE = (2_000, 20_000, 200_000, 2_000_000)
REPEATS, SECONDS = 15, 0.01


def run(settings: Settings) -> Outcome:
    rows = []
    for kind, sizes in (("dense", DENSE), ("sparse, 9 active", SPARSE)):
        for n in sizes:
            ratios, times = _ratios(kind, n, settings)
            rng = np.random.default_rng(settings.seed)
            low, high = interval(np.median(rng.choice(ratios, size=(1000, len(ratios))), axis=1))
            rows.append((kind, n, float(np.median(ratios)), low, high, times[0] * 1e9, times[1] * 1e9))
    names = ("features", "n", "ratio", "low", "high", "accumulate_ns_per_step", "true_online_ns_per_step")
    data = table(names, rows)
    chart = Chart(
        data,
        "n",
        "ratio",
        "features",
        "number of features (logarithmic)",
        "time over accumulate TD(λ)",
        low="low",
        high="high",
        log_x=True,
        y_domain=(0.0, 2.2),
    )
    return Outcome(data, {"figure": _picture(rows)}, [chart], _claims(rows))


def _ratios(kind: str, n: int, settings: Settings) -> tuple[np.ndarray, tuple[float, float]]:
    """Both methods on the same stream in turns, and the ratio of the times of each pair of turns."""
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
    accumulate, ours = np.median(turns, axis=0) / (times * steps)
    return turns[:, 1] / turns[:, 0], (float(accumulate), float(ours))


def _time(learner: Any, X: np.ndarray, rewards: np.ndarray, times: int) -> float:
    began = time.perf_counter()
    for _ in range(times):
        learner.run(X, rewards)
    return time.perf_counter() - began


def _picture(rows: list[tuple]) -> Any:
    drawing, ((axes,),) = figure(1, 1, width=5.0, height=3.4)
    for kind, colour, marker in (("dense", "#56B4E9", "o"), ("sparse, 9 active", "#E69F00", "s")):
        part = np.array([row[1:5] for row in rows if row[0] == kind])
        axes.fill_between(part[:, 0], part[:, 2], part[:, 3], color=colour, alpha=0.25, linewidth=0)
        axes.plot(part[:, 0], part[:, 1], marker=marker, ms=4, color=colour, label=kind)
    axes.axhline(1.0, color="#999999", linewidth=0.9, zorder=0)
    axes.set(xscale="log", xlabel="number of features", ylabel="time per step, over accumulate TD(λ)", ylim=(0.0, 2.2))
    axes.set_title("True online TD(λ) over accumulate TD(λ)")
    axes.legend()
    return drawing


def _claims(rows: list[tuple]) -> list[Claim]:
    worst = max(rows, key=lambda row: row[2])
    sparse = [row for row in rows if row[0] != "dense"]
    most = max(sparse, key=lambda row: row[2])
    return [
        Claim(
            "The cost of true online TD(λ) is at most close to twice that of accumulate TD(λ)",
            at_most(worst[3], worst[4], 2.0),
            {"largest ratio": worst[2], "interval": [worst[3], worst[4]], "at": f"{worst[0]}, n = {worst[1]:,}"},
        ),
        Claim(
            "With sparse features it is only a fraction more",
            at_most(most[3], most[4], 1.5),
            {
                "largest ratio": most[2],
                "interval": [most[3], most[4]],
                "at": f"n = {most[1]:,}",
                "a fraction": "below 1.5",
            },
        ),
    ]


EXPERIMENT = Experiment(
    "cost",
    "Section 4.1 — the cost of being exact",
    """The chart shows the time per step of true online TD(λ) relative to accumulate TD(λ). Both methods are those of this
package, and are measured in turns on the same streams (median of 15 turns, with a bootstrap interval). The paper says
"close to twice as much in some cases", and "only a fraction more" with sparse features. Timings differ from run to run and
from machine to machine.""",
    run,
)
