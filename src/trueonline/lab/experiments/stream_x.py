"""Streaming deep RL — stream Q(λ), Sarsa(λ) and AC(λ) on classic control

The published settings (Elsayed, Vasan and Mahmood 2024): two layers of 32 units, α = 1, λ = 0.8, γ = 0.99, κ = 2 for values and 3
for policies, normalised observations, scaled rewards, the time in the episode, and ε from 1 to 0.01 over a fifth of the steps.
Each run learns from every transition once, when it happens. The figure shows the mean return of the episodes that ended in each
fiftieth of the steps, with 95 % intervals over runs (Student's t).

The scale is small: the paper learns for longer, and on harder environments. `--transitions` sets the number of steps of a run, and
`--runs` the number of runs. The claims were chosen before a run. They compare the last tenth of the steps with the first.

Question: Can a neural network learn to act from each moment once, without storing any?

Paper: The paper on streaming deep RL (2024) says so: with bounded steps, networks learn that diverged before.

Look: Each line is the mean return of the episodes that end at this time. Higher is better. CartPole has at most 500.

Exceptions: Mountain Car rewards nothing until the car reaches the top. An agent that explores little may never see it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from trueonline.catalog import BLUE, GREEN, VERMILION
from trueonline.control.gym.network_agents import EXPLORING, PUBLISHED, TITLES
from trueonline.control.gym.train.settings import TrainingSettings
from trueonline.control.studies.sweeps import SeveralTrainings
from trueonline.lab.best_rows import BestRows
from trueonline.lab.claims import Claim, judge
from trueonline.lab.experiment import Experiment, Outcome, Settings, table
from trueonline.lab.style import figure
from trueonline.study.results import student_interval

ENVIRONMENTS = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0")
RUNS, STEPS, PARTS = 10, 75_000, 50  # PARTS: of the steps, of which a curve has a point each
COLOURS = dict(zip(TITLES, (GREEN, BLUE, VERMILION), strict=True))


def _mean(returns: np.ndarray) -> float:
    return float(returns.mean()) if returns.size else float("nan")


def _curve(ends: np.ndarray, returns: np.ndarray) -> np.ndarray:
    """The mean return of the episodes that ended in each part; that of the part before where none ended."""
    part = np.minimum((ends * PARTS).astype(int), PARTS - 1)
    curve, last = np.empty(PARTS), returns[0]
    for p in range(PARTS):
        last = curve[p] = returns[part == p].mean() if (part == p).any() else last
    return curve


def run(settings: Settings) -> Outcome:
    runs, transitions = settings.number(RUNS), settings.options.get("transitions") or STEPS
    pairs = tuple((settings.seed, run) for run in range(runs))
    tasks = [
        SeveralTrainings(method, _training(environment, method, transitions), pairs, None, transitions)
        for environment in ENVIRONMENTS
        for method in TITLES
    ]
    rows, curves = [], []
    for place, trained in enumerate(settings.finish(tasks).to_pylist()):
        returns, ends = np.array(trained["returns"]), np.minimum(np.cumsum(trained["lengths"]) / transitions, 1.0)
        parts = _mean(returns[ends <= 0.1]), _mean(returns[ends > 0.9])
        rows.append((trained["environment"], trained["agent"], place % runs, *parts))
        curves.append(_curve(ends, returns))
    data = table(("environment", "method", "run", "early", "late"), rows)
    shown = np.reshape(curves, (len(ENVIRONMENTS), len(TITLES), runs, PARTS))
    note = f"{runs} runs of {transitions:,} steps each."
    return Outcome(data, {"figure": lambda: _picture(shown, transitions)}, claims(data), note=note)


def _training(environment: str, method: str, transitions: int) -> TrainingSettings:
    """The settings of `trueonline train --agent`, except the steps over which ε falls."""
    exploring = {**EXPLORING, "epsilon_steps": transitions // 5} if method != "stream_ac" else {}
    own: dict[str, Any] = {"step_size": PUBLISHED["step_size"], "trace_decay": PUBLISHED["trace_decay"], **exploring}
    return TrainingSettings(environment, method=method, divided=False, **own)


def _picture(curves: np.ndarray, transitions: int) -> Any:
    drawing, (panels,) = figure(1, len(ENVIRONMENTS), width=9.0, height=3.2)
    steps = (np.arange(PARTS) + 1) * transitions / PARTS / 1000
    for axes, name, by_method in zip(panels, ENVIRONMENTS, curves, strict=True):
        for (method, title), each in zip(TITLES.items(), by_method, strict=True):
            middle, *ends = student_interval(each)
            axes.plot(steps, middle, color=COLOURS[method], linewidth=1.6, label=title)
            axes.fill_between(steps, *ends, color=COLOURS[method], alpha=0.2, linewidth=0)
        axes.set(xlabel="thousand steps", title=name)
    panels[0].set_ylabel("return")
    drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return drawing


def claims(data: pa.Table) -> list[Claim]:
    """Each agent in each environment: the end against the beginning."""
    rows, made = data.to_pylist(), []
    for name in ENVIRONMENTS:
        for method, title in TITLES.items():
            mine = [row for row in rows if (row["environment"], row["method"]) == (name, method)]
            gains = np.array([row["late"] - row["early"] for row in mine])
            gains = gains[np.isfinite(gains)]
            low, high = student_interval(gains)[1:] if len(gains) > 1 else (-np.inf, np.inf)
            numbers = {
                "mean return, first tenth of the steps": float(np.mean([row["early"] for row in mine])),
                "last tenth": float(np.mean([row["late"] for row in mine])),
                "gain": float(gains.mean()) if gains.size else 0.0,
                "95 % interval of the gain": [float(low), float(high)],
                "runs": len(gains),
            }
            verdict = judge(low, high, at_least=0.0)
            made.append(Claim(f"{title} improves on {name}", verdict, numbers, len(gains)))
    return made


EXPERIMENT = Experiment(
    "stream-x", __doc__, run, BestRows(("environment", "method"), "late", mean_over="run", largest=True)
)
