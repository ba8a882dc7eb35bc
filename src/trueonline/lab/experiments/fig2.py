"""Figure 2 — the one-state example

The figure shows the RMS error of the state's value at the end of an episode, averaged over the first 10 episodes, for
λ = 1 (section 3.2). The line of true online TD(λ) is also the line of the online λ-return algorithm. Bands are 95 %
intervals.

Only the text of the paper was at hand, not its picture of the example. The reward is 1 at the end and 0 before, so the
value is 1. The probability p of ending is inferred from the text. The mean squared error of accumulate TD(1) is smallest at
α = p/(2 − p), and the text gives α ≈ 0.15. So p = 1/4, which gives α = 1/7.

Question: How large may a learning step be?

Paper: The older TD(λ) has to make small steps (α ≈ 0.15), because a state that is visited often is corrected too often. The
online λ-return algorithm is at its best with the largest step, α = 1.

Look: Lower is better. From left to right the steps become larger. The orange line has a narrow valley and leaves the picture.
The green line falls all the way to the right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueonline import AccumulateTD, OnlineLambdaReturn, ReplaceTD, TrueOnlineTD
from trueonline.lab.best_rows import BestRows
from trueonline.lab.claims import EQUAL, Claim, Estimate, decided
from trueonline.lab.experiment import Experiment, Outcome, Settings, stacked
from trueonline.lab.style import band, figure, line
from trueonline.problems import ONE_STATE_TERMINATION, FiniteMRP, one_state

LEARNERS = {"accumulate": AccumulateTD, "replace": ReplaceTD, "true_online": TrueOnlineTD}
STEP_SIZES = np.concatenate((np.arange(1, 20) / 100.0, np.arange(20, 101, 5) / 100.0))
EPISODES, RUNS = 10, 2000
MARGIN = 0.02  # how far "about 0.15" reaches


def run(settings: Settings) -> Outcome:
    problem = one_state()
    stream = episodes(problem, settings.number(RUNS), settings.seed)
    rms = {}
    for name, learner in LEARNERS.items():
        values = np.stack([values_at_ends(learner, float(alpha), *stream) for alpha in STEP_SIZES], axis=1)
        squares = Estimate.mean((values - problem.values[0]) ** 2, settings.seed)  # over α and episode
        rms[name] = Estimate(np.sqrt(squares.rows).mean(axis=2))
    columns = {name: {"step_size": STEP_SIZES, **estimate.columns("rms_error")} for name, estimate in rms.items()}
    data = stacked(columns)
    return Outcome(data, {"figure": lambda: _picture(rms)}, _claims(problem, settings, rms))


def episodes(problem: FiniteMRP, runs: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ten episodes for each run, one after the other. The number of the run is the index of the state, so runs do not mix."""
    parts = []
    for number in range(runs):
        _, rewards, discounts = problem.trajectory(400, [seed, number])  # 10 episodes take 40 steps on average
        last = np.flatnonzero(discounts == 0.0)[EPISODES - 1] + 1
        parts.append((np.full(last, number), rewards[:last], discounts[:last]))
    states, rewards, discounts = (np.concatenate(column) for column in zip(*parts, strict=True))
    return np.append(states, runs - 1), rewards, discounts


def values_at_ends(
    learner_class: type, alpha: float, states: np.ndarray, rewards: np.ndarray, discounts: np.ndarray
) -> np.ndarray:
    """V at the end of each episode of each run."""
    learner = learner_class(int(states[-1]) + 1, alpha, 1.0, 1.0)
    before = learner.run(states, rewards, discounts)
    begins = np.append(0, np.flatnonzero(discounts == 0.0)[:-1] + 1).reshape(-1, EPISODES)
    # V at the end of an episode is V before the first step of the next episode. The last V is the weight.
    return np.column_stack((before[begins[:, 1:]], learner.weights))


def _picture(rms: Mapping[str, Estimate]) -> Any:
    drawing, ((axes,),) = figure(1, 1, width=5.0, height=3.6)
    for name, estimate in rms.items():
        band(axes, STEP_SIZES, estimate.bounds, name)
        line(axes, STEP_SIZES, estimate.value, name)
    axes.set(xlabel="step-size α", ylabel="RMS error at the end of an episode", xlim=(0.0, 1.0), ylim=(0.0, 1.2))
    axes.set_title("One-state example, λ = 1, mean over the first 10 episodes")
    axes.legend(loc="upper right")
    return drawing


def _claims(problem: FiniteMRP, settings: Settings, rms: Mapping[str, Estimate]) -> list[Claim]:
    accumulate, ours = rms["accumulate"], rms["true_online"]
    best = {name: Estimate(STEP_SIZES[rms[name].rows.argmin(axis=1)]) for name in ("accumulate", "true_online")}
    low, high = best["accumulate"].interval
    gap = ours.best() - accumulate.best()
    small = float(abs(accumulate.value[0] / ours.value[0] - 1.0))
    large = float(accumulate.value[-1] / ours.value[-1]) if ours.value[-1] > 0 else float("inf")
    few = episodes(problem, 5, settings.seed)
    apart = max(
        float(np.abs(values_at_ends(TrueOnlineTD, alpha, *few) - values_at_ends(OnlineLambdaReturn, alpha, *few)).max())
        for alpha in (0.05, 0.5, 1.0)
    )
    runs = settings.number(RUNS)
    return [
        Claim(
            "The best step-size of accumulate TD(λ) is about 0.15",
            decided(low <= 0.15 + MARGIN and high >= 0.15 - MARGIN),
            {
                "best step-size": best["accumulate"].value,
                "interval": [low, high],
                "termination probability, inferred from this claim": ONE_STATE_TERMINATION,
                "by theory p/(2 − p)": ONE_STATE_TERMINATION / (2.0 - ONE_STATE_TERMINATION),
            },
            runs,
        ),
        Claim(
            "The best step-size of the online λ-return algorithm is 1",
            decided((best["true_online"].samples == 1.0).all()),
            {"best step-size": best["true_online"].value, "interval": best["true_online"].interval},
        ),
        Claim(
            "At its best step-size accumulate TD(λ) is worse than the online λ-return algorithm at its own",
            gap.judge(at_most=0.0),
            {
                "accumulate": float(accumulate.value.min()),
                "online λ-return": float(ours.value.min()),
                "interval of the difference": gap.interval,
            },
            runs,
        ),
        Claim(
            "For small step-sizes the two behave alike, for large ones the difference is huge",
            decided(small < 0.01 and large > 10.0),
            {f"relative difference at α = {STEP_SIZES[0]:g}": small, "ratio of errors at α = 1": large},
            runs,
        ),
        Claim(
            "True online TD(λ) is the online λ-return algorithm (so its curve stands for both)",
            decided(apart <= EQUAL),
            {"largest difference on 5 runs": apart},
        ),
    ]


EXPERIMENT = Experiment("fig2", __doc__, run, BestRows(("method",), "rms_error"))
