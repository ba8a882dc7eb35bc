"""`load`: the one place that knows every class a saved file may name."""

from __future__ import annotations

import os

from trueonline import files
from trueonline.forward import OfflineLambdaReturn, OnlineLambdaReturn
from trueonline.inputs import Schedule
from trueonline.learner import Learner
from trueonline.learners import AccumulateTD, ReplaceTD, TrueOnlineTD

KINDS = {kind.__name__: kind for kind in (AccumulateTD, ReplaceTD, TrueOnlineTD, OnlineLambdaReturn, OfflineLambdaReturn)}


def load(path: str | os.PathLike, *, step_size: Schedule | None = None) -> Learner:
    """The learner that `save` wrote, which goes on bit for bit. `step_size` gives back a schedule, which is not saved."""
    name, settings, arrays = files.read_learner(path)
    if name not in KINDS:
        raise ValueError(f"{path} holds a {name}, which is none of {', '.join(KINDS)}")
    if (settings.get("step_size") is None) != (step_size is not None):
        raise ValueError(
            f"{path} was saved with a step-size schedule, which is code: load it with step_size=schedule"
            if step_size is None
            else f"{path} was saved with the constant step_size {settings['step_size']}: load it without step_size"
        )
    try:
        learner = KINDS[name](
            **{**settings, "step_size": step_size or settings["step_size"]},
            initial_weights=arrays.pop("initial_weights", None),
        )
        learner._restore(arrays)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    return learner
