"""`load`: the one place that knows every class a saved file may name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from trueonline import files
from trueonline.control.accumulate_sarsa import AccumulateSarsa
from trueonline.control.agent import Agent
from trueonline.control.policies import Policy, restore
from trueonline.control.replace_sarsa import ReplaceSarsa
from trueonline.control.true_online_sarsa import TrueOnlineSarsa
from trueonline.control.true_online_watkins_q import TrueOnlineWatkinsQ
from trueonline.control.watkins_q import WatkinsQ
from trueonline.forward import OfflineLambdaReturn, OnlineLambdaReturn
from trueonline.forward.other_returns import ComplexReturn, GammaReturn, NStepReturn, OmegaReturn
from trueonline.inputs import Schedule
from trueonline.learners.interface import Learner
from trueonline.learners.off_policy import (
    GTD,
    EmphaticTD,
    GradientLearner,
    MonteCarlo,
    TrueOnlineEmphaticTD,
    TrueOnlineGTD,
)
from trueonline.learners.on_policy import AccumulateTD, ReplaceTD, TrueOnlineTD
from trueonline.learners.provisional_learners import ProvisionalQ, ProvisionalTD

CODE = {  # what may be code, how to hand it in, what it is otherwise, and how to have another all the same
    "step_size": ("a step-size schedule", "step_size=schedule", "the constant step_size", ""),
    "second_step_size": (
        "a schedule of second step-sizes",
        "second_step_size=schedule",
        "the constant second_step_size",
        "",
    ),
    "policy": (
        "a policy of your own, or one with a schedule",
        "policy=your_policy",
        "the policy",
        ", and set agent.policy afterwards",
    ),
}
LEARNERS: dict[str, type[Learner]] = {
    kind.__name__: kind
    for kind in (
        *(AccumulateTD, ReplaceTD, TrueOnlineTD, OnlineLambdaReturn, OfflineLambdaReturn),
        *(MonteCarlo, EmphaticTD, TrueOnlineEmphaticTD, GTD, TrueOnlineGTD, ProvisionalTD, ProvisionalQ),
        *(GammaReturn, OmegaReturn, NStepReturn, ComplexReturn),
    )
}
AGENTS: dict[str, type[Agent]] = {
    kind.__name__: kind for kind in (AccumulateSarsa, ReplaceSarsa, TrueOnlineSarsa, WatkinsQ, TrueOnlineWatkinsQ)
}


def load(
    path: str | os.PathLike,
    *,
    step_size: Schedule | None = None,
    second_step_size: Schedule | None = None,
    policy: Policy | None = None,
) -> Any:
    """The learner or agent that `save` wrote, which goes on bit for bit.

    `step_size`, `second_step_size` and `policy` give back schedules and a policy of your own, which are code and are not saved.
    """
    return load_one_of({**LEARNERS, **AGENTS}, path, step_size, policy, second_step_size)


def load_one_of(
    kinds: Mapping[str, type],
    path: str | os.PathLike,
    step_size: Schedule | None,
    policy: Policy | None,
    second_step_size: Schedule | None = None,
) -> Any:
    """The same for a file that holds one of these classes, by the names that files give them."""
    name, settings, arrays = files.read_learner(path)
    if name not in kinds:
        derived = "; it was derived: load it with `derive(…).learner.load(path)`, or `.agent`, of the same view"
        delayed = "; load it with `trueonline.nonlinear.ForwardTD.load(path, value_and_grad)`"
        hint = derived if name.startswith("derived ") else delayed if name == "ForwardTD" else ""
        raise ValueError(f"{path} holds a {name}, which is none of {', '.join(kinds)}{hint}")
    kind = kinds[name]
    given = {"step_size": _given(path, settings, "step_size", step_size)}
    if issubclass(kind, Agent):
        given["policy"] = _given(path, settings, "policy", policy)
    elif policy is not None:
        raise ValueError(f"{path} holds a {name}, which has no policy: load it without policy")
    if issubclass(kind, GradientLearner):
        given["second_step_size"] = _given(path, settings, "second_step_size", second_step_size)
    elif second_step_size is not None:
        raise ValueError(f"{path} holds a {name}, which has no second step-size: load it without second_step_size")
    make = _agent if issubclass(kind, Agent) else _learner
    try:
        return make(kind, {**settings, **given}, arrays)
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, NotImplementedError, AttributeError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def _given(path: str | os.PathLike, settings: dict[str, Any], name: str, code: Any) -> Any:
    """What was saved under this name, or the code that has to be handed in because it was not."""
    if settings.get(name) is None and code is None:
        raise ValueError(f"{path} was saved with {CODE[name][0]}, which is code: load it with {CODE[name][1]}")
    if settings.get(name) is not None and code is not None:
        raise ValueError(f"{path} was saved with {CODE[name][2]} {settings[name]}: load it without {name}{CODE[name][3]}")
    return settings[name] if code is None else code


def _learner(kind: type[Learner], settings: dict[str, Any], arrays: dict[str, Any]) -> Learner:
    learner = kind(**settings, initial_weights=arrays.pop("initial_weights", None))
    learner._restore(arrays)
    return learner


def _agent(kind: type[Agent], settings: dict[str, Any], arrays: dict[str, Any]) -> Agent:
    rng, action, policy = (settings.pop(part) for part in ("rng", "action", "policy"))
    policy = restore(policy) if isinstance(policy, dict) else policy
    agent = kind(**settings, policy=policy, initial_weights=arrays.pop("initial_weights", None))
    agent._restore(arrays, rng, action)
    return agent
