"""Agents that act while they learn: Sarsa(λ), also differential, and Watkins's Q(λ), exact at the cost of the active features."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "AccumulateSarsa": "accumulate_sarsa",
    "Agent": "agent",
    "EpsilonGreedy": "policies",
    "Evaluation": "gym.evaluation",
    "Greedy": "policies",
    "Policy": "policies",
    "ReplaceSarsa": "replace_sarsa",
    "Softmax": "policies",
    "SwiftSarsa": "swift_sarsa",
    "Training": "gym.training",
    "TrueOnlineDifferentialSarsa": "true_online_differential_sarsa",
    "TrueOnlineSarsa": "true_online_sarsa",
    "TrueOnlineWatkinsQ": "true_online_watkins_q",
    "Uniform": "policies",
    "WatkinsQ": "watkins_q",
    "curve": "gym.curves",
    "evaluate": "gym.evaluation",
    "film": "gym.films",
    "train": "gym.training",
}

_MODULES = ("atari",)

__all__ = [*_HOME, *_MODULES]  # noqa: PLE0604

if TYPE_CHECKING:
    from trueonline.control import atari as atari
    from trueonline.control.accumulate_sarsa import AccumulateSarsa as AccumulateSarsa
    from trueonline.control.agent import Agent as Agent
    from trueonline.control.gym.curves import curve as curve
    from trueonline.control.gym.evaluation import Evaluation as Evaluation
    from trueonline.control.gym.evaluation import evaluate as evaluate
    from trueonline.control.gym.films import film as film
    from trueonline.control.gym.training import Training as Training
    from trueonline.control.gym.training import train as train
    from trueonline.control.policies import EpsilonGreedy as EpsilonGreedy
    from trueonline.control.policies import Greedy as Greedy
    from trueonline.control.policies import Policy as Policy
    from trueonline.control.policies import Softmax as Softmax
    from trueonline.control.policies import Uniform as Uniform
    from trueonline.control.replace_sarsa import ReplaceSarsa as ReplaceSarsa
    from trueonline.control.swift_sarsa import SwiftSarsa as SwiftSarsa
    from trueonline.control.true_online_differential_sarsa import (
        TrueOnlineDifferentialSarsa as TrueOnlineDifferentialSarsa,
    )
    from trueonline.control.true_online_sarsa import TrueOnlineSarsa as TrueOnlineSarsa
    from trueonline.control.true_online_watkins_q import TrueOnlineWatkinsQ as TrueOnlineWatkinsQ
    from trueonline.control.watkins_q import WatkinsQ as WatkinsQ


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"trueonline.control.{name}")
    if name not in _HOME:
        raise AttributeError(f"trueonline.control has no {name!r}; it has {', '.join((*_HOME, *_MODULES))}")
    found = getattr(import_module(f"trueonline.control.{_HOME[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
