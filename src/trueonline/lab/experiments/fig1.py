"""Figure 1 — online against offline

The figure shows the RMS error over all ten states of a random walk as a function of time, for λ = 1 and α = 0.2, over
the first three episodes of one run (section 3.1).

The offline λ-return algorithm learns at the end of an episode. The online λ-return algorithm and TD(λ) learn at every step.
True online TD(λ) computes exactly what the online λ-return algorithm defines.

Question: Can a prediction that is improved at every step be as good as one that waits for the end?

Paper: Learning at every step is better than waiting, and true online TD(λ) computes at every step exactly what redoing all
updates would give. The older TD(λ) only comes close.

Look: Lower is better, and every method starts at 1. The dotted line waits until an episode ends (the vertical lines), so it
moves in three jumps. The pink line redoes all updates at every step. The green dots, with one update per step, lie on the pink
line. The orange dashes are the older TD(λ), which leaves the pink line.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline import AccumulateTD, OfflineLambdaReturn, OnlineLambdaReturn, TrueOnlineTD
from trueonline.lab.best_rows import BestRows
from trueonline.lab.claims import EQUAL, Claim, decided, judge
from trueonline.lab.experiment import Experiment, Outcome, Settings, stacked
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


def episodes(walk: FiniteMRP, seed: object, count: int = EPISODES) -> Trajectory:
    """The first episodes of a walk, as one trajectory."""
    steps = 70 * count
    while True:
        run = walk.trajectory(steps, seed)
        ends = np.flatnonzero(run.discounts == 0.0)
        if len(ends) >= count:
            last = ends[count - 1] + 1
            return Trajectory(run.states[: last + 1], run.rewards[:last], run.discounts[:last])
        steps *= 2  # the same seed gives the same beginning


def errors(walk: FiniteMRP, run: Trajectory, learner_class: type, alpha: float = ALPHA, lam: float = LAM) -> np.ndarray:
    """RMS error over all states after 0, 1, … steps, relative to the initial error."""
    learner = learner_class(walk.n_states, alpha, lam, walk.discount)
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
    data = stacked({name: {"step": np.arange(len(curve)), "rms_error": curve} for name, curve in curves.items()})
    return Outcome(data, {"figure": lambda: _picture(curves, shown)}, _claims(walk, settings, curves, shown))


def _picture(curves: dict[str, np.ndarray], shown: Trajectory) -> Any:
    drawing, ((axes,),) = figure(1, 1, width=5.6, height=3.6)
    steps = np.arange(len(curves["online"]))
    for name in ("offline", "accumulate", "online"):
        line(axes, steps, curves[name], name, drawstyle="steps-post")
    few = slice(None, None, max(1, len(steps) // 25))
    dots = {"ms": 3.5, "color": COLOURS["true_online"], "label": NAMES["true_online"], "clip_on": False}
    axes.plot(steps[few], curves["true_online"][few], "o", **dots)
    for end in np.flatnonzero(shown.discounts == 0.0)[:-1] + 1:
        axes.axvline(end, color="#BBBBBB", linewidth=0.8, zorder=0)
    axes.set(xlabel="time step", ylabel="RMS error (initial error = 1)", ylim=(0.0, 1.05), xlim=(0, len(shown.rewards)))
    axes.set_title("Random walk, λ = 1, α = 0.2, first 3 episodes")
    axes.legend()
    return drawing


def _claims(walk: FiniteMRP, settings: Settings, curves: dict[str, np.ndarray], shown: Trajectory) -> list[Claim]:
    ends = np.flatnonzero(shown.discounts == 0.0) + 1
    moves = np.flatnonzero(np.diff(curves["offline"])) + 1
    apart = float(np.abs(curves["true_online"] - curves["online"]).max())
    at_ends = float(np.abs(curves["online"][ends] - curves["offline"][ends]).max())
    ratios = np.array([_ratios(walk, episodes(walk, [settings.seed, i])) for i in range(settings.number(RUNS))])
    mean, standard_error = ratios.mean(axis=0), ratios.std(axis=0) / np.sqrt(len(ratios))
    low, high = (float((mean + sign * standard_error).max()) for sign in (-2.0, 2.0))
    return [
        Claim(
            "The offline λ-return algorithm makes updates only at the end of an episode",
            decided(np.array_equal(moves, ends)),
            {"episode ends": ends.tolist(), "steps at which its error changes": moves.tolist()},
        ),
        Claim(
            "True online TD(λ) lies on the online λ-return algorithm",
            decided(apart <= EQUAL),
            {"largest difference": apart},
        ),
        Claim(
            "At the end of an episode, online and offline λ-return algorithm agree for λ = 1 (no bootstrapping)",
            decided(at_ends <= EQUAL),
            {"largest difference": at_ends},
        ),
        Claim(
            "The smaller the step-size, the smaller the difference between accumulate TD(λ) and the online λ-return",
            judge(low, high, at_most=1.0),
            {
                "difference at α = 0.1 over that at 0.2 (mean)": float(mean[0]),
                "difference at α = 0.05 over that at 0.1 (mean)": float(mean[1]),
                "central 95 % of runs": np.quantile(ratios, [0.025, 0.975], axis=0).T.tolist(),
                "runs": len(ratios),
            },
            len(ratios),
        ),
    ]


def _ratios(walk: FiniteMRP, run: Trajectory) -> tuple[float, float]:
    """By how much the difference between the two methods shrinks when α is halved, and halved again."""
    first, second, third = (
        np.abs(errors(walk, run, AccumulateTD, alpha) - errors(walk, run, TrueOnlineTD, alpha)).mean()
        for alpha in (ALPHA, ALPHA / 2.0, ALPHA / 4.0)
    )
    return second / first, third / second


EXPERIMENT = Experiment("fig1", __doc__, run, BestRows(("method",), "rms_error"))
