"""The beginning of the report: what was asked and found, one picture, and the words that its figures need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueonline import AccumulateTD, OnlineLambdaReturn, TrueOnlineTD
from trueonline.lab.claims import Claim
from trueonline.lab.experiments import fig1
from trueonline.lab.report.page import Opening, summary
from trueonline.lab.style import COLOURS, DASHES, figure
from trueonline.problems import random_walk

ALPHA, LAM, EPISODES = 0.4, 1.0, 3

TEXT = """A program that predicts should learn from every new observation, and correct the predictions that it made before. \
The thorough way is to redo all earlier corrections at every step, so each step takes longer than the one before. The usual \
short cut, TD(λ), makes one correction per step with the help of a fading memory of what was seen, a *trace*, and its results \
are only close to the thorough ones. In 2016 van Seijen, Mahmood, Pilarski, Machado and Sutton found a trace that makes the \
short cut *exact*, and called the method *true online TD(λ)*. This report repeats their experiments, and judges each claim by \
its numbers: """

CAPTION = """A learner guesses the outcome of a random walk. Left: how wrong its guesses are. The line redoes everything at \
every step, and the green dots, with one correction per step, lie on it. The older TD(λ) leaves it. Right: the number of \
corrections that each had to make."""

WORDS = {
    "Prediction": "an estimate of the rewards that are still to come. A later reward may count less, by a factor γ per step.",
    "TD": "temporal difference. Such methods learn from the difference between one prediction and the next one, so they need "
    "not wait for the outcome.",
    "λ": "how far back a correction reaches, from 0 (only the last prediction) to 1 (all earlier ones). TD(0) has no memory.",
    "α": "the step-size: which share of an error one correction removes.",
    "Features": "what the learner sees of a situation. *Tabular*: every situation has a feature of its own. *Binary*: each "
    "feature is 0 or 1. *Non-binary*: any numbers.",
    "MRP (k, b, σ)": "a random *Markov reward process*: k states, fixed probabilities of moving from each to b others, and rewards "
    "with noise of standard deviation σ. *Markov* means that what comes next depends on the current state alone.",
    "RMS error": "the root of the mean squared difference between the predictions and the truth. MSE is the same without the root.",
    "Three methods": "TD(λ) with *accumulating* traces adds up visits, with *replacing* traces it keeps only the last visit, and "
    "*true online* has the exact trace.",
    "Within noise": "the data are too few to decide. An interval of 95 % over the runs decides each verdict, unless a claim "
    "involves no chance.",
}


def opening(claims: Sequence[Claim], picture: str) -> Opening:
    """What the report says first about some claims."""
    return Opening(TEXT + summary(claims), picture, CAPTION, WORDS)


def draw() -> Any:
    """The error and the work of redoing everything, of true online TD(λ) and of the older TD(λ), on one walk."""
    walk = random_walk()
    shown = fig1.episodes(walk, 7, EPISODES)
    learners = {"online": OnlineLambdaReturn, "accumulate": AccumulateTD, "true_online": TrueOnlineTD}
    error = {name: fig1.errors(walk, shown, kind, ALPHA, LAM) for name, kind in learners.items()}
    steps = np.arange(len(shown.rewards) + 1)
    few = slice(None, None, max(1, len(steps) // 30))
    drawing, ((left, right),) = figure(1, 2, width=8.2, height=3.2)
    dashes = {"color": COLOURS["accumulate"], "dashes": DASHES["accumulate"], "linewidth": 1.6}
    left.plot(steps, error["accumulate"], label="the older TD(λ)", **dashes)
    left.plot(steps, error["online"], color=COLOURS["online"], linewidth=2, label="redo everything")
    left.plot(steps[few], error["true_online"][few], "o", color=COLOURS["true_online"], ms=4, label="true online TD(λ)")
    left.set(title="the same predictions …", xlabel="time step", ylabel="error (at the beginning 1)", ylim=(0.0, None))
    work = {"online": np.cumsum(_redone(shown.discounts)), "true_online": steps[1:]}
    right.plot(steps[1:], work["online"], color=COLOURS["online"], linewidth=2)
    right.plot(steps[1:], work["true_online"], color=COLOURS["true_online"], linewidth=2)
    right.set(title="… with much less work", xlabel="time step", ylabel="corrections made so far")
    left.legend(loc="upper right")  # a phone shows the left half first
    for axes in (left, right):
        axes.set_xlim(0, steps[-1])
    return drawing


def _redone(discounts: np.ndarray) -> np.ndarray:
    """How many corrections each step redoes: those of the episode so far."""
    counts, since = [], 0
    for discount in discounts:
        since += 1
        counts.append(since)
        since = 0 if discount == 0.0 else since
    return np.array(counts)
