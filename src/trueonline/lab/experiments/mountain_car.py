"""Mountain Car over α and λ for the Sarsa methods. The paper does not have this comparison; textbooks do."""

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

from trueonline import catalog, control, features, study
from trueonline.core.compiling.sources import package_code
from trueonline.lab.experiment import (
    Chart,
    Claim,
    Experiment,
    Outcome,
    Settings,
    at_least,
    gathered,
    interval,
    resample,
    table,
)
from trueonline.lab.style import COLOURS, DASHES, MARKERS, NAMES, figure
from trueonline.study.storage.work import WorkInPieces

COMPARED = ("accumulate_sarsa", "replace_sarsa", "clearing_sarsa", "true_online_sarsa")
STEP_SIZES = (0.2, 0.5, 0.8, 1.1, 1.4, 1.7, 2.0)  # over the number of tilings
TRACE_DECAYS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99)
TILINGS = 8
EPISODES = 20
LONGEST = 2000  # steps after which an episode is truncated
RUNS = 10
SCHEMA = pa.schema(
    [
        ("method", pa.string()),
        ("step_size", pa.float64()),
        ("trace_decay", pa.float64()),
        ("run", pa.int64()),
        ("steps", pa.float64()),  # per episode
        ("diverged", pa.bool_()),
    ]
)


@dataclass(frozen=True)
class Runs(WorkInPieces):
    """A task: all step-sizes and runs of one method and λ, in a process of its own."""

    method: str
    trace_decay: float
    step_sizes: tuple[float, ...]
    runs: int
    episodes: int
    seed: int

    unit = "episodes"
    schema = SCHEMA

    @property
    def title(self) -> str:
        return f"mountain-car-{self.method}"

    def about(self) -> tuple[str]:
        fixed = (TILINGS, LONGEST, package_code(__name__, "trueonline.methods"), version("gymnasium"))
        return (json.dumps([asdict(self), fixed], sort_keys=True),)

    @property
    def pieces(self) -> list[tuple[tuple[float, int], int]]:
        return [((alpha, run), self.episodes) for alpha in self.step_sizes for run in range(self.runs)]

    def row(self, piece: tuple[float, int], checkpoint: Path | None, beat: Callable[[int], Any]) -> dict[str, Any]:
        """One run: greedy, from zero weights, which are optimistic here."""
        import gymnasium

        alpha, run = piece
        made: Any = gymnasium.make("MountainCar-v0", max_episode_steps=LONGEST)
        with closing(made) as env:
            tiles = features.from_space(env.observation_space, "tiles", tilings=TILINGS, bins=8)
            method = catalog.METHODS[self.method]
            agent = method.resolve("learner")(
                tiles.n_features,
                env.action_space.n,
                alpha / TILINGS,
                self.trace_decay,
                1.0,
                control.Greedy(),
                seed=[self.seed, run],
                **method.options,
            )
            training = control.train(env, agent, tiles, episodes=self.episodes, seed=(self.seed, run))
        return {
            "method": self.method,
            "step_size": alpha,
            "trace_decay": self.trace_decay,
            "run": run,
            "steps": float(training.lengths.mean()),
            "diverged": agent.diverged,
        }


def run(settings: Settings) -> Outcome:
    runs = settings.number(RUNS)
    numbers = (STEP_SIZES, runs, EPISODES, settings.seed)
    tasks = [Runs(method, lam, *numbers) for method in COMPARED for lam in TRACE_DECAYS]
    options: dict[str, Any] = {"engine": settings.engine, "threads": settings.threads, "progress": settings.progress}
    study.execute_tasks(tasks, settings.tasks, **options)
    data = gathered(study.gather_tasks(tasks, settings.tasks))
    shape = (len(COMPARED), len(TRACE_DECAYS), len(STEP_SIZES), runs)
    steps = dict(zip(COMPARED, data["steps"].to_numpy().reshape(shape), strict=True))  # λ × α × run
    return Outcome(data, {"figure": _picture(steps)}, [_chart(steps)], _claims(steps, settings))


def _picture(steps: dict[str, np.ndarray]) -> Any:
    drawing, ((over_alpha, over_lam),) = figure(1, 2, width=7.4, height=3.9, sharey=True)
    for method, lengths in steps.items():
        means = lengths.mean(axis=2)
        best = int(means.min(axis=1).argmin())
        style: dict[str, Any] = {"color": COLOURS[method], "marker": MARKERS[method], "ms": 4, "linewidth": 1.5}
        style |= {"dashes": DASHES[method]} if DASHES[method] else {}
        over_alpha.plot(STEP_SIZES, means[best], label=f"{NAMES[method]}, λ = {TRACE_DECAYS[best]:g}", **style)
        over_lam.plot(range(len(TRACE_DECAYS)), means.min(axis=1), **style)
    over_alpha.set(xlabel=f"α × {TILINGS} tilings", ylabel=f"steps per episode, first {EPISODES} episodes", yscale="log")
    over_alpha.set_title("each at its best λ")
    over_lam.set(xlabel="λ", title="each at its best α")
    over_lam.set_xticks(range(len(TRACE_DECAYS)), [f"{lam:g}" for lam in TRACE_DECAYS])
    ticks = (150, 200, 300, 500, 1000, 2000)
    over_alpha.set_yticks(ticks, [str(tick) for tick in ticks])
    over_alpha.minorticks_off()
    drawing.legend(loc="outside lower center", ncols=2)
    return drawing


def _chart(steps: dict[str, np.ndarray]) -> Chart:
    rows = []
    for method, lengths in steps.items():
        spread = 2.0 * lengths.std(axis=2, ddof=min(1, lengths.shape[2] - 1)) / np.sqrt(lengths.shape[2])
        for (i, j), mean in np.ndenumerate(lengths.mean(axis=2)):
            rows.append((method, TRACE_DECAYS[i], STEP_SIZES[j], mean, mean - spread[i, j], mean + spread[i, j]))
    names = ("method", "λ", "step_size", "steps", "low", "high")
    return Chart(
        table(names, rows),
        x="step_size",
        y="steps",
        series="method",
        x_title=f"α × {TILINGS} tilings",
        y_title=f"steps per episode, over the first {EPISODES} episodes",
        choose="λ",
        low="low",
        high="high",
        log_y=True,
    )


def _claims(steps: dict[str, np.ndarray], settings: Settings) -> list[Claim]:
    weights = resample(next(iter(steps.values())).shape[2], seed=settings.seed)
    flat = {method: lengths.reshape(-1, lengths.shape[2]) for method, lengths in steps.items()}
    best = {method: float(lengths.mean(axis=1).min()) for method, lengths in flat.items()}
    samples = {method: (weights @ lengths.T).min(axis=1) for method, lengths in flat.items()}
    claims = []
    for method in COMPARED:
        if method != "true_online_sarsa":
            low, high = interval(samples[method] / samples["true_online_sarsa"] - 1.0)
            numbers = {
                "steps per episode at the best α and λ, true online": best["true_online_sarsa"],
                f"{NAMES[method]}": best[method],
                "95 % interval of the ratio, less 1": [low, high],
                "runs": len(weights[0]),
            }
            claim = f"True online Sarsa(λ) needs no more steps than {NAMES[method]}, both at their best α and λ"
            claims.append(Claim(claim, at_least(low, high), numbers, len(weights[0])))
    return claims


EXPERIMENT = Experiment(
    "mountain-car",
    "Mountain Car — the Sarsa methods over α and λ",
    f"""Gymnasium's Mountain Car, tile coding with {TILINGS} tilings of 8 × 8, γ = 1. Actions are greedy, and weights begin
at zero. Zero weights are optimistic here, so the agent explores. The charts show the mean number of steps of an episode
over the first {EPISODES} episodes. The paper has no such figure. Textbooks do (Sutton and Barto 2018, Figures 12.10 and
12.11).

An episode is truncated after {LONGEST:,} steps instead of Gymnasium's 200, so that early episodes can reach the goal. There
are two kinds of replacing traces. One leaves the traces of the other actions as they are, and the other clears them. In the
figure, every method is at its best λ on the left and at its best α on the right.""",
    run,
)
