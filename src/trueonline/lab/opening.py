"""The beginning of the report: what was asked and found, one picture, and the words that its figures need."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trueonline import AccumulateTD, OnlineLambdaReturn, TrueOnlineTD
from trueonline.lab.claims import Claim, summary
from trueonline.lab.experiments import fig1
from trueonline.lab.report.page import Opening
from trueonline.lab.style import COLOURS, DASHES, figure
from trueonline.problems import random_walk

ALPHA, LAM, EPISODES = 0.4, 1.0, 3


def opening(claims: Sequence[Claim], pictures: Sequence[str]) -> Opening:
    """What the report says first about some claims."""
    words = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return Opening(words["text"] + summary(claims), pictures, words["caption"], words["words"])


def draw() -> list[Any]:
    """The error and the work of redoing everything, of true online TD(λ) and of the older TD(λ), on one walk."""
    walk = random_walk()
    shown = fig1.episodes(walk, 7, EPISODES)
    learners = {"online": OnlineLambdaReturn, "accumulate": AccumulateTD, "true_online": TrueOnlineTD}
    error = {name: fig1.errors(walk, shown, kind, ALPHA, LAM) for name, kind in learners.items()}
    steps = np.arange(len(shown.rewards) + 1)
    few = slice(None, None, max(1, len(steps) // 30))
    (first, ((left,),)), (second, ((right,),)) = (figure(1, 1, width=4.4, height=3.2) for _ in range(2))
    dashes = {"color": COLOURS["accumulate"], "dashes": DASHES["accumulate"], "linewidth": 1.6}
    left.plot(steps, error["accumulate"], label="the older TD(λ)", **dashes)
    left.plot(steps, error["online"], color=COLOURS["online"], linewidth=2, label="redo everything")
    left.plot(
        steps[few],
        error["true_online"][few],
        "o",
        color=COLOURS["true_online"],
        ms=4,
        label="true online TD(λ)",
        clip_on=False,
    )
    left.set(title="the same predictions …", xlabel="time step", ylabel="error (at the beginning 1)", ylim=(0.0, None))
    work = {"online": np.cumsum(_redone(shown.discounts)), "true_online": steps[1:]}
    right.plot(steps[1:], work["online"], color=COLOURS["online"], linewidth=2)
    right.plot(steps[1:], work["true_online"], color=COLOURS["true_online"], linewidth=2)
    right.set(title="… with much less work", xlabel="time step", ylabel="corrections made so far", ylim=(0.0, None))
    left.legend(loc="upper right")
    for name, text, above in (("online", "redo everything", 60), ("true_online", "true online TD(λ)", 25)):
        place = 3 * len(steps) // 4
        right.text(place, work[name][place] + above, text, color=COLOURS[name], ha="right", weight="bold")
    for axes in (left, right):
        axes.set_xlim(0, steps[-1])
    return [first, second]


def _redone(discounts: np.ndarray) -> np.ndarray:
    """How many corrections each step redoes: those of the episode so far."""
    counts, since = [], 0
    for discount in discounts:
        since += 1
        counts.append(since)
        since = 0 if discount == 0.0 else since
    return np.array(counts)
