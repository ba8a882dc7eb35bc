"""Figure 1: the online and the offline λ-return algorithm, and accumulate TD(λ), on the random walk."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trueonline import AccumulateTD, OfflineLambdaReturn, OnlineLambdaReturn, TrueOnlineTD
from trueonline.lab.experiment import Chart, Claim, Experiment, Outcome, Settings, at_most, exactly, interval
from trueonline.lab.style import COLOURS, NAMES, figure, line
from trueonline.problems import FiniteMRP, Trajectory, random_walk

ALPHA, LAM, EPISODES = 0.2, 1.0, 3
LEARNERS = {
    "offline": OfflineLambdaReturn,
    "online": OnlineLambdaReturn,
    "accumulate": AccumulateTD,
    "true_online": TrueOnlineTD,
}
RUNS = 40  # for the claims. The picture shows the first run


def episodes(walk: FiniteMRP, seed: object) -> Trajectory:
    """The first three episodes of the walk."""
    steps = 200
    while True:
        run = walk.trajectory(steps, seed)
        ends = np.flatnonzero(run.discounts == 0.0)
        if len(ends) >= EPISODES:
            last = ends[EPISODES - 1] + 1
            return Trajectory(run.states[: last + 1], run.rewards[:last], run.discounts[:last])
        steps *= 2  # the same seed gives the same beginning


def errors(walk: FiniteMRP, run: Trajectory, learner_class: type, alpha: float = ALPHA) -> np.ndarray:
    """RMS error over all states after 0, 1, … steps, relative to the initial error."""
    learner = learner_class(walk.n_states, alpha, LAM, walk.discount)
    rms = [np.sqrt(np.mean(walk.values**2))]
    learner.start(int(run.states[0]))
    for state, reward, discount in zip(run.states[1:], run.rewards, run.discounts, strict=True):
        learner.update(float(reward), int(state), float(discount))
        rms.append(np.sqrt(np.mean((learner.weights - walk.values) ** 2)))
    return np.array(rms) / rms[0]


def run(settings: Settings) -> Outcome:
    walk = random_walk()
    shown = episodes(walk, [settings.seed, 0])
    curves = {name: errors(walk, shown, learner) for name, learner in LEARNERS.items()}
    data = pa.concat_tables(
        pa.table({"method": [name] * len(curve), "step": np.arange(len(curve)), "rms_error": curve})
        for name, curve in curves.items()
    )
    chart = Chart(data, "step", "rms_error", "method", "time step", "RMS error (initial error = 1)", y_domain=(0.0, 1.05))
    return Outcome(data, {"figure": _picture(curves, shown)}, [chart], _claims(walk, settings, curves, shown))


def _picture(curves: dict[str, np.ndarray], shown: Trajectory) -> object:
    drawing, ((axes,),) = figure(1, 1, width=5.6, height=3.6)
    for name in ("offline", "accumulate", "online"):
        steps = np.arange(len(curves[name]))
        line(axes, steps, curves[name], name, drawstyle="steps-post")
    every = max(1, len(curves["true_online"]) // 25)
    steps = np.arange(len(curves["true_online"]))[::every]
    axes.plot(
        steps, curves["true_online"][::every], "o", ms=3.5, color=COLOURS["true_online"], label=NAMES["true_online"]
    )
    for end in np.flatnonzero(shown.discounts == 0.0)[:-1] + 1:
        axes.axvline(end, color="#BBBBBB", linewidth=0.8, zorder=0)
    axes.set(xlabel="time step", ylabel="RMS error (initial error = 1)", ylim=(0.0, 1.05), xlim=(0, len(shown.rewards)))
    axes.set_title("Random walk, λ = 1, α = 0.2, first 3 episodes (vertical lines: their ends)")
    axes.legend()
    return drawing


def _claims(walk: FiniteMRP, settings: Settings, curves: dict[str, np.ndarray], shown: Trajectory) -> list[Claim]:
    ends = np.flatnonzero(shown.discounts == 0.0) + 1
    moves = np.flatnonzero(np.diff(curves["offline"])) + 1
    apart = float(np.abs(curves["true_online"] - curves["online"]).max())
    at_ends = float(np.abs(curves["online"][ends] - curves["offline"][ends]).max())
    ratios = []
    for number in range(settings.number(RUNS)):
        run = episodes(walk, [settings.seed, number])
        distance = [
            np.abs(errors(walk, run, AccumulateTD, alpha) - errors(walk, run, TrueOnlineTD, alpha)).mean()
            for alpha in (ALPHA, ALPHA / 2.0, ALPHA / 4.0)
        ]
        ratios.append((distance[1] / distance[0], distance[2] / distance[1]))
    mean = np.mean(ratios, axis=0)
    spread = [interval(np.array(ratios)[:, i]) for i in range(2)]
    standard = np.std(ratios, axis=0) / np.sqrt(len(ratios))
    verdicts = at_most(float((mean - 2 * standard).max()), float((mean + 2 * standard).max()), 1.0)
    return [
        Claim(
            "The offline λ-return algorithm makes updates only at the end of an episode",
            exactly(float(not np.array_equal(moves, ends)), 0.0),
            {"episode ends": ends.tolist(), "steps at which its error changes": moves.tolist()},
        ),
        Claim("True online TD(λ) lies on the online λ-return algorithm", exactly(apart), {"largest difference": apart}),
        Claim(
            "At the end of an episode, online and offline λ-return algorithm agree for λ = 1 (no bootstrapping)",
            exactly(at_ends),
            {"largest difference": at_ends},
        ),
        Claim(
            "The smaller the step-size, the smaller the difference between accumulate TD(λ) and the online λ-return",
            verdicts,
            {
                "difference at α = 0.1 over that at 0.2 (mean)": float(mean[0]),
                "difference at α = 0.05 over that at 0.1 (mean)": float(mean[1]),
                "central 95 % of runs": [list(part) for part in spread],
                "runs": len(ratios),
            },
            len(ratios),
        ),
    ]


EXPERIMENT = Experiment(
    "fig1",
    "Figure 1 — online against offline",
    """The chart shows the RMS error over all ten states of a random walk as a function of time, for λ = 1 and α = 0.2, over
the first three episodes of one run (section 3.1).

The offline λ-return algorithm learns at the end of an episode. The online λ-return algorithm and TD(λ) learn at every step.
True online TD(λ) computes exactly what the online λ-return algorithm defines.""",
    run,
)
