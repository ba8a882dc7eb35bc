"""Agents that act while they learn: Sarsa(λ), also differential, and Watkins's Q(λ), exact at the cost of the active features."""

from trueonline import catalog
from trueonline.optional import late_names

# The catalogue names the agents. Type checkers read `__init__.pyi`, which `python -m tools.generated` writes.
_HOME = {
    **catalog.homes("control"),
    "Agent": "control.agent",
    "Demon": "control.demons",
    "Demons": "control.demons",
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
    "train_vector": "control.gym.vector_training",
}
_MODULES = ("atari",)

__all__ = [*_HOME, *_MODULES]  # noqa: PLE0604
__getattr__, __dir__ = late_names(__name__, _HOME, _MODULES)
