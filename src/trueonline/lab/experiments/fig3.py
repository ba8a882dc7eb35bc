"""Figure 3: the two-state example. Replacing traces lose the multi-step character."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trueonline import AccumulateTD, ReplaceTD, TrueOnlineTD
from trueonline.lab.experiment import FAILS, HOLDS, Chart, Claim, Experiment, Outcome, Settings, exactly
from trueonline.lab.style import figure, line
from trueonline.problems import two_state

LEARNERS = {"accumulate": AccumulateTD, "replace": ReplaceTD, "true_online": TrueOnlineTD}
ALPHA, STEPS, WINDOW, CHANGE = 0.01, 20_000, 100, 0.01
TRACE_DECAYS = np.arange(21) / 20.0


def rms_error(values: np.ndarray) -> np.ndarray:
    """The RMS error over both states, which are visited equally often and have values 2 and 0."""
    return np.sqrt(((values - 2.0) ** 2 + values**2) / 2.0)


def asymptotic_error(learner_class: type, lam: float) -> tuple[float, float]:
    """The error after many steps, and its relative change over the last hundred steps."""
    problem = two_state()
    states, rewards, discounts = problem.trajectory(STEPS, 0)  # nothing is random here
    learner = learner_class(1, ALPHA, lam, problem.discount)
    features = np.zeros_like(states)  # the single feature is active in both states
    errors = rms_error(np.append(learner.run(features, rewards, discounts), learner.weights))
    return float(errors[-1]), float(abs(errors[-1] / errors[-1 - WINDOW] - 1.0))


def run(settings: Settings) -> Outcome:
    results = {name: [asymptotic_error(cls, float(lam)) for lam in TRACE_DECAYS] for name, cls in LEARNERS.items()}
    data = pa.concat_tables(
        pa.table(
            {
                "method": [name] * len(TRACE_DECAYS),
                "trace_decay": TRACE_DECAYS,
                "rms_error": [error for error, _ in pairs],
                "change_over_last_100_steps": [change for _, change in pairs],
            }
        )
        for name, pairs in results.items()
    )
    chart = Chart(data, "trace_decay", "rms_error", "method", "λ", "RMS error after convergence", y_domain=(0.95, 1.5))
    return Outcome(data, {"figure": _picture(results)}, [chart], _claims(results))


def _picture(results: dict[str, list[tuple[float, float]]]) -> object:
    drawing, ((axes,),) = figure(1, 1, width=5.0, height=3.6)
    for name, pairs in results.items():
        line(axes, TRACE_DECAYS, [error for error, _ in pairs], name, marker="o" if name == "true_online" else None, ms=3)
    axes.axhline(1.0, color="#BBBBBB", linewidth=0.8, zorder=0)
    axes.annotate(
        "least mean squares", (0.02, 1.0), xytext=(0, 3), textcoords="offset points", color="#777777", fontsize=8
    )
    axes.set(xlabel="λ", ylabel="RMS error after convergence", xlim=(0.0, 1.0), ylim=(0.95, 1.5))
    axes.set_title("Two-state example, α = 0.01")
    axes.legend(loc="upper right", bbox_to_anchor=(1.0, 0.8))
    return drawing


def _claims(results: dict[str, list[tuple[float, float]]]) -> list[Claim]:
    stream = np.zeros(2001, int), np.tile([2.0, 0.0], 1000), np.tile([1.0, 0.0], 1000)
    td0 = ReplaceTD(1, ALPHA, 0.0, 1.0).run(*stream)
    apart = max(float(np.abs(ReplaceTD(1, ALPHA, lam, 1.0).run(*stream) - td0).max()) for lam in TRACE_DECAYS.tolist())
    at_one = {name: results[name][-1][0] for name in ("accumulate", "true_online")}
    close = all(abs(error - 1.0) <= 0.02 for error in at_one.values())
    higher = min(error for error, _ in results["replace"])
    change = max(change for pairs in results.values() for _, change in pairs)
    return [
        Claim(
            "The values have converged: the error changed less than 1 % over the last 100 time steps",
            HOLDS if change < CHANGE else FAILS,
            {"largest change": change, "steps": STEPS},
        ),
        Claim(
            "Replace TD(λ) behaves exactly as TD(0), for any λ, at all time steps",
            exactly(apart, 1e-12),
            {"largest difference of any value in 2,000 steps": apart},
        ),
        Claim(
            "For λ = 1 accumulate TD(λ) and the online λ-return algorithm converge to the least mean squares error, 1",
            HOLDS if close else FAILS,
            {"accumulate": at_one["accumulate"], "online λ-return (true online)": at_one["true_online"], "within": 0.02},
        ),
        Claim(
            "Replace TD(λ) does not, at any λ",
            HOLDS if higher > 1.02 else FAILS,
            {"its least error over λ": higher},
        ),
    ]


EXPERIMENT = Experiment(
    "fig3",
    "Figure 3 — the two-state example",
    """The chart shows the RMS error after convergence as a function of λ, at α = 0.01 (section 3.3). The two states have
values 2 and 0 and share a single feature, so the best value for both is 1, with an error of 1.

The paper calls a run converged if its error changed by less than 1 % over the last 100 time steps. As a rule for stopping,
this would stop some runs too early, while the error passes through a minimum. So all runs have 20,000 steps, and the rule
is checked at the end. The line of true online TD(λ) is also the line of the online λ-return algorithm.""",
    run,
)
