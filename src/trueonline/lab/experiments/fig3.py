"""Figure 3 — the two-state example

The figure shows the RMS error after convergence as a function of λ, at α = 0.01 (section 3.3). The two states have
values 2 and 0 and share a single feature, so the best value for both is 1, with an error of 1.

The paper calls a run converged if its error changed by less than 1 % over the last 100 time steps. As a rule for stopping,
this would stop some runs too early, while the error passes through a minimum. So all runs have 20,000 steps, and the rule
is checked at the end. The line of true online TD(λ) is also the line of the online λ-return algorithm.

Question: Does the third kind of memory, replacing traces, find the right answer in the end?

Paper: No. Two states share one feature, and there replacing traces make TD(λ) behave like TD(0), for any λ. The others reach
the smallest possible error at λ = 1.

Look: From left to right, the memory reaches further back. The grey line is the smallest error that is possible with one
weight. Two lines go down to it. The line of replacing traces stays level.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline import AccumulateTD, ReplaceTD, TrueOnlineTD
from trueonline.lab.best_rows import BestRows
from trueonline.lab.claims import Claim, decided
from trueonline.lab.experiment import Experiment, Outcome, Settings, stacked
from trueonline.lab.style import figure, line
from trueonline.problems import two_state

LEARNERS = {"accumulate": AccumulateTD, "replace": ReplaceTD, "true_online": TrueOnlineTD}
ALPHA, STEPS, WINDOW, CHANGE = 0.01, 20_000, 100, 0.01
CLOSE = 0.02  # an error that is this close to the least mean squares error has converged to it
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
    errors, changes = {}, {}
    for name, learner in LEARNERS.items():
        errors[name], changes[name] = np.array([asymptotic_error(learner, float(lam)) for lam in TRACE_DECAYS]).T
    numbers = {name: {"rms_error": errors[name], "change_over_last_100_steps": changes[name]} for name in LEARNERS}
    data = stacked({name: {"trace_decay": TRACE_DECAYS, **columns} for name, columns in numbers.items()})
    largest_change = max(float(each.max()) for each in changes.values())
    return Outcome(data, {"figure": lambda: _picture(errors)}, _claims(errors, largest_change))


def _picture(errors: dict[str, np.ndarray]) -> Any:
    drawing, ((axes,),) = figure(1, 1, width=5.0, height=3.6)
    for name, each in errors.items():
        line(axes, TRACE_DECAYS, each, name, marker="o" if name == "true_online" else None, ms=3, clip_on=False)
    axes.axhline(1.0, color="#BBBBBB", linewidth=0.8, zorder=0)
    note = {"xytext": (0, 3), "textcoords": "offset points", "color": "#777777", "fontsize": 8}
    axes.annotate("least mean squares", (0.02, 1.0), **note)
    axes.set(xlabel="λ", ylabel="RMS error after convergence", xlim=(0.0, 1.0), ylim=(0.95, 1.5))
    axes.set_title("Two-state example, α = 0.01")
    axes.legend(loc="upper right", bbox_to_anchor=(1.0, 0.8))
    return drawing


def _claims(errors: dict[str, np.ndarray], largest_change: float) -> list[Claim]:
    stream = np.zeros(2001, int), np.tile([2.0, 0.0], 1000), np.tile([1.0, 0.0], 1000)
    td0 = ReplaceTD(1, ALPHA, 0.0, 1.0).run(*stream)
    apart = max(float(np.abs(ReplaceTD(1, ALPHA, lam, 1.0).run(*stream) - td0).max()) for lam in TRACE_DECAYS.tolist())
    at_one = {name: float(errors[name][-1]) for name in ("accumulate", "true_online")}
    least = float(errors["replace"].min())
    return [
        Claim(
            "The values have converged: the error changed less than 1 % over the last 100 time steps",
            decided(largest_change < CHANGE),
            {"largest change": largest_change, "steps": STEPS},
        ),
        Claim(
            "Replace TD(λ) behaves exactly as TD(0), for any λ, at all time steps",
            decided(apart <= 1e-12),
            {"largest difference of any value in 2,000 steps": apart},
        ),
        Claim(
            "For λ = 1 accumulate TD(λ) and the online λ-return algorithm converge to the least mean squares error, 1",
            decided(all(abs(error - 1.0) <= CLOSE for error in at_one.values())),
            {"accumulate": at_one["accumulate"], "online λ-return (true online)": at_one["true_online"], "within": CLOSE},
        ),
        Claim("Replace TD(λ) does not, at any λ", decided(least > 1.0 + CLOSE), {"its least error over λ": least}),
    ]


EXPERIMENT = Experiment("fig3", __doc__, run, BestRows(("method",), "rms_error"))
