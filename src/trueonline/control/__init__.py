"""Agents that act while they learn: Sarsa(λ), also differential, and Watkins's Q(λ), exact at the cost of the active features."""

from importlib import import_module
from typing import Any

from trueonline import catalog

# The catalogue names the agents. Type checkers read `__init__.pyi`, which `python -m tools.generated` writes.
_HOME = {
    **catalog.homes("control"),
    "Agent": "control.agent",
    "EpsilonGreedy": "control.policies",
    "Evaluation": "control.gym.evaluation",
    "Greedy": "control.policies",
    "Linear": "control.policies",
    "Policy": "control.policies",
    "Softmax": "control.policies",
    "Training": "control.gym.training",
    "Uniform": "control.policies",
    "aggregate": "control.studies.aggregates",
    "curve": "control.gym.curves",
    "environment": "control.gym.own_problems",
    "evaluate": "control.gym.evaluation",
    "film": "control.gym.films",
    "profile": "control.studies.aggregates",
    "sweep": "control.studies.sweeps",
    "train": "control.gym.training",
}
_MODULES = ("atari",)

__all__ = [*_HOME, *_MODULES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"trueonline.control.{name}")
    if name not in _HOME:
        raise AttributeError(f"trueonline.control has no {name!r}; it has {', '.join((*_HOME, *_MODULES))}")
    found = getattr(import_module(f"trueonline.{_HOME[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
