"""A training's state between two episodes in one file: the agent, the history, and which settings they belong to.

The file is a saved agent with more in it, so `trueonline.load` takes it too.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from trueonline import files, inputs
from trueonline.control.gym.environments import described
from trueonline.control.policies import describe
from trueonline.learners.acting import Acting

PREFIX = "training_"  # the agent's own parts have other names
HISTORY = {
    "returns": (1, "f"),
    "lengths": (1, "i"),
    "terminated": (1, "b"),
    "evaluated_after": (1, "i"),
    "evaluations": (2, "f"),
}

Saved = tuple[dict[str, np.ndarray], Callable[[Any], None]]
STATE = {"steps", "weights", "seed"}  # what learning and restoring change of an agent


class TrainingCheckpoint:
    """The file for one training. Make it before the training begins: the agent's first weights are part of the settings.

    `evaluation` is how many episodes there are between two evaluations, and in each. `chosen` is False if nobody gave a seed:
    then a training resumes with the seed that the file names.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        agent: Any,
        env: Any,
        features: Any,
        seed: tuple[int, ...],
        evaluation: tuple[int | None, int] = (None, 10),
        chosen: bool = True,
    ) -> None:
        if not isinstance(agent, Acting):
            raise ValueError(f"only an agent of this package can be kept in a checkpoint, got {type(agent).__name__}")
        self.path, self.chosen = Path(path), chosen
        self.agent: Any = agent
        self.about = {
            "environment": described(env),
            "agent": _agent(agent),
            "features": _named(features),
            "seed": list(seed),
            "evaluation": {"every": evaluation[0], "episodes": evaluation[1]},
        }

    def write(self, agent: Any, history: dict[str, np.ndarray]) -> None:
        """Write the agent and the history. The file appears whole or not at all."""
        ours = {"about": np.array(json.dumps(self.about)), **history}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        parts = {**agent._dump(), **{PREFIX + name: array for name, array in ours.items()}}
        files.write_learner(self.path, type(agent).__name__, agent._settings(), parts)

    def read(self) -> Saved | None:
        """The history, and a function that puts an agent into its state then. None where there is no file.

        Raises
        ------
        ValueError
            If the file is something else, or other settings wrote it, or the agent has learned since.
        """
        try:
            _, settings, arrays = files.read_learner(self.path)
        except FileNotFoundError:
            return None
        if PREFIX + "about" not in arrays:
            raise ValueError(f"{self.path} is a saved learner, but not a checkpoint of a training; give another file")
        history = {name: arrays.pop(PREFIX + name) for name in (*HISTORY, "about") if PREFIX + name in arrays}
        try:
            there = json.loads(str(history.pop("about")))
            begun = there["agent"]["steps"] + 0, settings["rng"], settings["action"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"{self.path} is damaged: it does not say what it holds ({error!r})") from None
        self._refuse_others(there, settings, arrays)
        shapes = {name: (history[name].ndim, history[name].dtype.kind) for name in history}
        same = {len(np.atleast_1d(history[name])) for name in ("returns", "lengths", "terminated") if name in history}
        if shapes != HISTORY or len(same) != 1 or len(history["evaluations"]) != len(history["evaluated_after"]):
            raise ValueError(f"{self.path} is damaged: its history does not fit together")
        inputs.check_saved({"lengths": history["lengths"] > 0, "returns": np.isfinite(history["returns"])})
        self.about = there

        def restore(agent: Any) -> None:
            try:
                agent._restore(arrays, *begun[1:])
            except (ValueError, KeyError, TypeError, OverflowError, AttributeError, NotImplementedError) as error:
                raise ValueError(f"{self.path} is damaged: {error}") from None

        return history, restore

    def _refuse_others(self, there: dict[str, Any], settings: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """ValueError unless the file is of these settings, and of this agent before it learned, or as it is now."""
        here = json.loads(json.dumps(self.about))
        here |= {} if self.chosen else {"seed": there.get("seed")}
        different = _differences(there, here)
        if not different:
            return
        others = {**there, "agent": _without_state(there)} != {**here, "agent": _without_state(here)}
        if others or self.agent.steps <= there["agent"]["steps"]:
            raise ValueError(
                f"{self.path} was written with other settings: {'; '.join(different[:3])}. Give another file to checkpoint, "
                "or remove this one to begin from scratch"
            )
        parts, now = self.agent._dump(), self.agent._settings()
        same = parts.keys() == arrays.keys() and all(np.array_equal(parts[name], arrays[name]) for name in parts)
        if not same or any(now[name] != settings[name] for name in ("rng", "action")):
            raise ValueError(
                f"the agent has learned already ({self.agent.steps:,} steps), and {self.path} does not hold its state. To "
                "resume from the file, make the agent again with the same arguments. To begin from scratch, make the agent "
                "again and remove the file"
            )


def _without_state(about: dict[str, Any]) -> dict[str, Any]:
    agent = about.get("agent", {})
    return {name: value for name, value in agent.items() if name not in STATE}


def _agent(agent: Any) -> dict[str, Any]:
    """The agent's settings and the state that it begins with."""
    own = ("rng", "action", "step_size", "policy")
    kept = {name: value for name, value in agent._settings().items() if name not in own}
    weights = hashlib.sha256(agent.weights.tobytes()).hexdigest()[:16]
    return {
        "class": type(agent).__name__,
        **kept,
        "step_size": _named(agent.step_size) if callable(agent.step_size) else agent.step_size,
        "policy": describe(agent.policy) or _named(agent.policy),
        "seed": _seed(agent.rng),
        "steps": agent.steps,
        "weights": weights,
    }


def _seed(rng: np.random.Generator) -> Any:
    """The seed that a generator was made with; None where nobody gave one (it is then a random number of 128 bits)."""
    seed = getattr(rng.bit_generator.seed_seq, "entropy", None)
    seed = seed.tolist() if isinstance(seed, np.ndarray) else seed
    return None if isinstance(seed, int) and seed >= 2**64 else json.loads(json.dumps(seed, default=repr))


def _named(thing: Any) -> Any:
    """A description that tells a maker of features, a schedule or a policy from others, as far as can be seen, not by address."""
    if hasattr(thing, "settings"):
        return thing.settings()
    if isinstance(thing, partial):
        return ["partial", _named(thing.func), *map(_plain, thing.args), *sorted(map(repr, thing.keywords.items()))]
    if is_dataclass(thing) and not isinstance(thing, type):
        parts = {part.name: getattr(thing, part.name) for part in fields(thing)}
        return {"kind": type(thing).__qualname__, **{name: _plain(value) for name, value in parts.items()}}
    code = getattr(thing, "__code__", None)
    if code is not None:  # a function: two lambdas of one line have the same name, but other constants
        closed = [_plain(cell.cell_contents) for cell in thing.__closure__ or ()]
        constants = [repr(each) for each in code.co_consts if _is_plain(each)]
        return [thing.__module__, thing.__qualname__, *constants, *closed, *map(_plain, thing.__defaults__ or ())]
    kind = f"{type(thing).__module__}.{type(thing).__qualname__}"
    plain = {name: value for name, value in getattr(thing, "__dict__", {}).items() if _is_plain(value)}
    return {"kind": kind, **plain} if plain else kind


def _plain(value: Any) -> Any:
    return value if _is_plain(value) else _named(value)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _differences(there: Any, here: Any, name: str = "") -> list[str]:
    """The differences between two settings, in words."""
    if isinstance(there, dict) and isinstance(here, dict):
        names = dict.fromkeys([*there, *here])
        return [
            line for each in names for line in _differences(there.get(each), here.get(each), f"{name} {each}".strip())
        ]
    return [] if there == here else [f"{name} is {there!r:.60} there and {here!r:.60} here"]
