"""Mountain Car — the Sarsa methods over α and λ

Gymnasium's Mountain Car, tile coding with 8 tilings of 8 × 8, γ = 1. Actions are greedy, and weights begin
at zero. Zero weights are optimistic here, so the agent explores. The figure shows the mean number of steps of an episode
over the first 20 episodes. The paper has no such figure. Textbooks do (Sutton and Barto 2018, Figures 12.10 and
12.11).

An episode is truncated after 2,000 steps instead of Gymnasium's 200, so that early episodes can reach the goal. There
are two kinds of replacing traces. One leaves the traces of the other actions as they are, and the other clears them. In the
figure, every method is at its best λ on the left and at its best α on the right.

Question: Does it help an agent that has to drive a weak car up a hill?

Paper: The paper has no such figure. Textbooks show the older methods on this task.

Look: Lower is better: the steps that an episode takes, averaged over the first twenty episodes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from trueonline import catalog, control, features
from trueonline.core.compiling.sources import package_code
from trueonline.lab.best_rows import BestRows
from trueonline.lab.claims import Claim, Errors
from trueonline.lab.experiment import SETTING, Experiment, Outcome, Settings
from trueonline.lab.style import MARKERS, NAMES, figure, line
from trueonline.study.storage.work import WorkInPieces

COMPARED = ("accumulate_sarsa", "replace_sarsa", "clearing_sarsa", "true_online_sarsa")
STEP_SIZES = (0.2, 0.5, 0.8, 1.1, 1.4, 1.7, 2.0)  # over the number of tilings
TRACE_DECAYS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99)
TILINGS = 8
EPISODES = 20
MAX_EPISODE_STEPS = 2000  # steps after which an episode is truncated
RUNS = 10
SCHEMA = pa.schema(SETTING | {"run": pa.int64(), "steps": pa.float64(), "diverged": pa.bool_()})  # steps: per episode


@dataclass(frozen=True)
class MountainCarRuns(WorkInPieces):
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
        fixed = (TILINGS, MAX_EPISODE_STEPS, package_code(__name__, "trueonline.methods"), version("gymnasium"))
        return (json.dumps([asdict(self), fixed], sort_keys=True),)

    @property
    def pieces(self) -> list[tuple[tuple[float, int], int]]:
        return [((alpha, run), self.episodes) for alpha in self.step_sizes for run in range(self.runs)]

    def row(self, piece: tuple[float, int], checkpoint: Path | None, beat: Callable[[int], Any]) -> dict[str, Any]:
        """One run: greedy, from zero weights, which are optimistic here."""
        import gymnasium

        alpha, run = piece
        made: Any = gymnasium.make("MountainCar-v0", max_episode_steps=MAX_EPISODE_STEPS)
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
    tasks = [MountainCarRuns(method, lam, *numbers) for method in COMPARED for lam in TRACE_DECAYS]
    data = settings.finish(tasks)
    shape = (len(COMPARED), len(TRACE_DECAYS), len(STEP_SIZES), runs)
    steps = data["steps"].to_numpy().reshape(shape).transpose(0, 3, 2, 1)  # method × run × α × λ
    errors = Errors(dict(zip(COMPARED, steps, strict=True)), settings.seed)
    return Outcome(data, {"figure": lambda: _picture(errors)}, claims(errors))


def _picture(errors: Errors) -> Any:
    drawing, ((over_alpha, over_lam),) = figure(1, 2, width=7.4, height=3.9, sharey=True)
    for method in COMPARED:
        means = errors.mean(method)
        best = int(means.min(axis=0).argmin())
        style: dict[str, Any] = {"marker": MARKERS[method], "ms": 4, "linewidth": 1.5}
        line(
            over_alpha, STEP_SIZES, means[:, best], method, **style, label=f"{NAMES[method]}, λ = {TRACE_DECAYS[best]:g}"
        )
        line(over_lam, range(len(TRACE_DECAYS)), means.min(axis=0), method, **style)
    over_alpha.set(xlabel=f"α × {TILINGS} tilings", ylabel=f"steps per episode, first {EPISODES} episodes", yscale="log")
    over_alpha.set_title("each at its best λ")
    over_lam.set(xlabel="λ", title="each at its best α")
    over_lam.set_xticks(range(len(TRACE_DECAYS)), [f"{lam:g}" for lam in TRACE_DECAYS])
    ticks = (150, 200, 300, 500, 1000, 2000)
    over_alpha.set_yticks(ticks, [str(tick) for tick in ticks])
    over_alpha.minorticks_off()
    drawing.legend(*over_alpha.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return drawing


def claims(errors: Errors) -> list[Claim]:
    """True online Sarsa(λ) against each other method. The errors are steps per episode."""
    all_claims = []
    for method in COMPARED[:-1]:
        ratio = errors.ratio(method, "true_online_sarsa")
        numbers = {
            "steps per episode at the best α and λ, true online": errors.best("true_online_sarsa").value,
            NAMES[method]: errors.best(method).value,
            "95 % interval of the ratio, less 1": ratio.interval,
            "runs": errors.samples,
        }
        claim = f"True online Sarsa(λ) needs no more steps than {NAMES[method]}, both at their best α and λ"
        all_claims.append(Claim(claim, ratio.judge(at_least=0.0), numbers, errors.samples))
    return all_claims


EXPERIMENT = Experiment("mountain-car", __doc__, run, BestRows(("method",), "steps", mean_over="run"))
