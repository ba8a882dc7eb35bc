"""Figure 2: the one-state example. Accumulating traces overshoot; the online λ-return algorithm cannot."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trueonline import AccumulateTD, OnlineLambdaReturn, ReplaceTD, TrueOnlineTD
from trueonline.lab.experiment import (
    FAILS,
    HOLDS,
    Chart,
    Claim,
    Experiment,
    Outcome,
    Settings,
    at_most,
    exactly,
    interval,
    resample,
)
from trueonline.lab.style import figure, line
from trueonline.problems import ONE_STATE_TERMINATION, FiniteMRP, one_state

LEARNERS = {"accumulate": AccumulateTD, "replace": ReplaceTD, "true_online": TrueOnlineTD}
STEP_SIZES = np.concatenate((np.arange(1, 20) / 100.0, np.arange(20, 101, 5) / 100.0))
EPISODES, RUNS = 10, 2000


def run(settings: Settings) -> Outcome:
    problem = one_state()
    runs = settings.number(RUNS)
    stream = _episodes(problem, runs, settings.seed)
    squared = {name: np.empty((runs, len(STEP_SIZES), EPISODES)) for name in LEARNERS}
    for i, alpha in enumerate(STEP_SIZES):
        for name, learner in LEARNERS.items():
            squared[name][:, i] = (_values(learner, float(alpha), *stream) - problem.values[0]) ** 2
    weights = resample(runs, seed=settings.seed)
    rms = {name: np.sqrt(part.mean(axis=0)).mean(axis=1) for name, part in squared.items()}
    samples = {name: np.sqrt(np.einsum("br,rae->bae", weights, part)).mean(axis=2) for name, part in squared.items()}
    data = pa.concat_tables(
        pa.table(
            {
                "method": [name] * len(STEP_SIZES),
                "step_size": STEP_SIZES,
                "rms_error": rms[name],
                "low": np.quantile(samples[name], 0.025, axis=0),
                "high": np.quantile(samples[name], 0.975, axis=0),
            }
        )
        for name in LEARNERS
    )
    chart = Chart(
        data,
        "step_size",
        "rms_error",
        "method",
        "step-size α",
        "RMS error at the end of an episode",
        low="low",
        high="high",
        y_domain=(0.0, 1.2),
    )
    return Outcome(data, {"figure": _picture(rms)}, [chart], _claims(problem, settings, rms, samples))


def _episodes(problem: FiniteMRP, runs: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ten episodes for each run, one after the other. The number of the run is the index of the state, so runs do not mix."""
    parts = []
    for number in range(runs):
        _, rewards, discounts = problem.trajectory(400, [seed, number])  # 10 episodes take 40 steps on average
        last = np.flatnonzero(discounts == 0.0)[EPISODES - 1] + 1
        parts.append((np.full(last, number), rewards[:last], discounts[:last]))
    states, rewards, discounts = (np.concatenate(column) for column in zip(*parts, strict=True))
    return np.append(states, runs - 1), rewards, discounts


def _values(
    learner_class: type, alpha: float, states: np.ndarray, rewards: np.ndarray, discounts: np.ndarray
) -> np.ndarray:
    """V at the end of each episode of each run."""
    learner = learner_class(int(states[-1]) + 1, alpha, 1.0, 1.0)
    before = learner.run(states, rewards, discounts)
    begins = np.append(0, np.flatnonzero(discounts == 0.0)[:-1] + 1).reshape(-1, EPISODES)
    # V at the end of an episode is V before the first step of the next episode. The last V is the weight.
    return np.column_stack((before[begins[:, 1:]], learner.weights))


def _picture(rms: dict[str, np.ndarray]) -> object:
    drawing, ((axes,),) = figure(1, 1, width=5.0, height=3.6)
    for name, curve in rms.items():
        line(axes, STEP_SIZES, curve, name)
    axes.set(xlabel="step-size α", ylabel="RMS error at the end of an episode", xlim=(0.0, 1.0), ylim=(0.0, 1.2))
    axes.set_title("One-state example, λ = 1, mean over the first 10 episodes")
    axes.legend(loc="upper right")
    return drawing


def _claims(problem: FiniteMRP, settings: Settings, rms: dict, samples: dict) -> list[Claim]:
    best = {name: float(STEP_SIZES[curve.argmin()]) for name, curve in rms.items()}
    best_samples = {name: STEP_SIZES[part.argmin(axis=1)] for name, part in samples.items()}
    gap = samples["true_online"].min(axis=1) - samples["accumulate"].min(axis=1)
    small = float(abs(rms["accumulate"][0] / rms["true_online"][0] - 1.0))
    large = float(rms["accumulate"][-1] / rms["true_online"][-1]) if rms["true_online"][-1] > 0 else float("inf")
    few = _episodes(problem, 5, settings.seed)
    apart = max(
        float(np.abs(_values(TrueOnlineTD, alpha, *few) - _values(OnlineLambdaReturn, alpha, *few)).max())
        for alpha in (0.05, 0.5, 1.0)
    )
    low, high = interval(best_samples["accumulate"])
    runs = settings.number(RUNS)
    return [
        Claim(
            "The best step-size of accumulate TD(λ) is about 0.15",
            HOLDS if low <= 0.15 + 0.02 and high >= 0.15 - 0.02 else FAILS,
            {
                "best step-size": best["accumulate"],
                "interval": [low, high],
                "termination probability, inferred from this claim": ONE_STATE_TERMINATION,
                "by theory p/(2 − p)": ONE_STATE_TERMINATION / (2.0 - ONE_STATE_TERMINATION),
            },
            runs,
        ),
        Claim(
            "The best step-size of the online λ-return algorithm is 1",
            exactly(float(np.abs(best_samples["true_online"] - 1.0).max()), 0.0),
            {"best step-size": best["true_online"], "interval": list(interval(best_samples["true_online"]))},
        ),
        Claim(
            "At its best step-size accumulate TD(λ) is worse than the online λ-return algorithm at its own",
            at_most(*interval(gap)),
            {
                "accumulate": float(rms["accumulate"].min()),
                "online λ-return": float(rms["true_online"].min()),
                "interval of the difference": list(interval(gap)),
            },
            runs,
        ),
        Claim(
            "For small step-sizes the two behave alike, for large ones the difference is huge",
            HOLDS if small < 0.01 and large > 10.0 else FAILS,
            {f"relative difference at α = {STEP_SIZES[0]:g}": small, "ratio of errors at α = 1": large},
            runs,
        ),
        Claim(
            "True online TD(λ) is the online λ-return algorithm (so its curve stands for both)",
            exactly(apart),
            {"largest difference on 5 runs": apart},
        ),
    ]


EXPERIMENT = Experiment(
    "fig2",
    "Figure 2 — the one-state example",
    """The chart shows the RMS error of the state's value at the end of an episode, averaged over the first 10 episodes, for
λ = 1 (section 3.2). The line of true online TD(λ) is also the line of the online λ-return algorithm. Bands are 95 %
intervals.

Only the text of the paper was at hand, not its picture of the example. The reward is 1 at the end and 0 before, so the
value is 1. The probability p of ending is inferred from the text. The mean squared error of accumulate TD(1) is smallest at
α = p/(2 − p), and the text gives α ≈ 0.15. So p = 1/4, which gives α = 1/7.""",
    run,
)
