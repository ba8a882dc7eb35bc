"""Streaming deep RL — stream Q(λ), Sarsa(λ) and AC(λ) on classic control

The published settings (Elsayed, Vasan and Mahmood 2024): two layers of 32 units, α = 1, λ = 0.8, γ = 0.99, κ = 2 for values and 3
for policies, normalised observations, scaled rewards, the time in the episode, and ε from 1 to 0.01 over a fifth of the steps.
Each run learns from every transition once, when it happens. The figure shows the mean return of the episodes that ended in each
fiftieth of the steps, with 95 % intervals over runs (Student's t).

The scale is small: the paper learns for longer, and on harder environments. `--transitions` sets the number of steps of a run, and
`--runs` the number of runs. The claims were chosen before a run. They compare the last tenth of the steps with the first.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline import control
from trueonline.catalog import BLUE, GREEN, VERMILION
from trueonline.control.gym.curves import t_value
from trueonline.control.gym.network_agents import EXPLORING, PUBLISHED, TITLES
from trueonline.control.gym.train_settings import TrainingSettings
from trueonline.core.compiling.sources import package_code
from trueonline.lab.best_rows import BestRows
from trueonline.lab.claims import Claim, judge
from trueonline.lab.experiment import Experiment, Outcome, Settings
from trueonline.lab.style import figure
from trueonline.study.storage.work import WorkInPieces

ENVIRONMENTS = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0")
RUNS, STEPS, PARTS = 10, 75_000, 50  # PARTS: of the steps, of which a curve has a point each
COLOURS = dict(zip(TITLES, (GREEN, BLUE, VERMILION), strict=True))
SCHEMA = pa.schema(
    {
        "environment": pa.string(),
        "method": pa.string(),
        "run": pa.int64(),
        "early": pa.float64(),  # the mean return of episodes that ended in the first tenth of the steps
        "late": pa.float64(),  # in the last tenth
        "curve": pa.list_(pa.float64()),
    }
)


@dataclass(frozen=True)
class Runs(WorkInPieces):
    """A task: all runs of one agent in one environment, in a process of its own."""

    environment: str
    method: str
    runs: int
    transitions: int
    seed: int

    unit = "steps"
    schema = SCHEMA

    @property
    def title(self) -> str:
        return f"{self.method}-{self.environment}"

    def about(self) -> tuple[str]:
        fixed = (PARTS, package_code(__name__, "trueonline.deep"), version("gymnasium"))
        return (json.dumps([asdict(self), fixed], sort_keys=True),)

    @property
    def pieces(self) -> list[tuple[int, int]]:
        return [(run, self.transitions) for run in range(self.runs)]

    def row(self, piece: int, checkpoint: Path | None, beat: Callable[[int], Any]) -> dict[str, Any]:
        """One training with the settings of `trueonline train --agent`, but for the steps over which ε falls."""
        exploring = {**EXPLORING, "epsilon_steps": self.transitions // 5} if self.method != "stream_ac" else {}
        own: dict[str, Any] = {"step_size": PUBLISHED["step_size"], "trace_decay": PUBLISHED["trace_decay"], **exploring}
        settings = TrainingSettings(self.environment, method=self.method, divided=False, seed=self.seed, **own)
        with closing(settings.environment_made()) as env:
            maker = settings.features_for(env)
            agent = settings.agent(env, maker, piece)
            done = 0

            def progress(episodes: int, total: float, length: int) -> None:
                nonlocal done
                done += length
                beat(min(done, self.transitions))

            seed = (self.seed, piece)
            trained = control.train(
                env, agent, maker, steps=self.transitions, seed=seed, checkpoint=checkpoint, callback=progress
            )
        ends = np.minimum(np.cumsum(trained.lengths), self.transitions) / self.transitions
        return {
            "environment": self.environment,
            "method": self.method,
            "run": piece,
            "early": _mean(trained.returns[ends <= 0.1]),
            "late": _mean(trained.returns[ends > 0.9]),
            "curve": _curve(ends, trained.returns).tolist(),
        }


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
    tasks = [Runs(name, method, runs, transitions, settings.seed) for name in ENVIRONMENTS for method in TITLES]
    results = settings.finish(tasks)
    curves = np.array(results["curve"].to_pylist()).reshape(len(ENVIRONMENTS), len(TITLES), runs, PARTS)
    data = results.drop_columns(["curve"])
    note = f"{runs} runs of {transitions:,} steps each."
    return Outcome(data, {"figure": lambda: _picture(curves, transitions)}, claims(data), note=note)


def _picture(curves: np.ndarray, transitions: int) -> Any:
    drawing, (panels,) = figure(1, len(ENVIRONMENTS), width=9.0, height=3.2)
    steps = (np.arange(PARTS) + 1) * transitions / PARTS / 1000
    for axes, name, by_method in zip(panels, ENVIRONMENTS, curves, strict=True):
        for (method, title), each in zip(TITLES.items(), by_method, strict=True):
            middle = each.mean(axis=0)
            axes.plot(steps, middle, color=COLOURS[method], linewidth=1.6, label=title)
            if len(each) > 1:
                wide = t_value(len(each)) * each.std(axis=0, ddof=1) / np.sqrt(len(each))
                axes.fill_between(steps, middle - wide, middle + wide, color=COLOURS[method], alpha=0.2, linewidth=0)
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
            wide = t_value(len(gains)) * gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.inf
            middle = gains.mean() if gains.size else 0.0
            numbers = {
                "mean return, first tenth of the steps": float(np.mean([row["early"] for row in mine])),
                "last tenth": float(np.mean([row["late"] for row in mine])),
                "95 % interval of the gain": (float(middle - wide), float(middle + wide)),
                "runs": len(gains),
            }
            verdict = judge(middle - wide, middle + wide, at_least=0.0)
            made.append(Claim(f"{title} improves on {name}", verdict, numbers, len(gains)))
    return made


EXPERIMENT = Experiment(
    "stream-x", __doc__, run, BestRows(("environment", "method"), "late", mean_over="run", largest=True)
)
