"""All experiments by name, each imported when it is needed."""

from __future__ import annotations

from importlib import import_module

from trueonline.lab.experiment import Experiment

MODULES = {
    "fig1": "fig1",
    "fig2": "fig2",
    "fig3": "fig3",
    "fig4": "fig4",
    "appendix-c": "appendix_c",
    "fig9": "fig9",
    "cost": "cost",
    "myoelectric": "myoelectric",
    "textbook": "textbook",
    "many-mrps": "many_mrps",
    "mrp-grid": "mrp_grid",
    "asterix": "asterix",
    "mountain-car": "mountain_car",
    "offpolicy": "offpolicy",
    "average-reward": "average_reward",
}
APART = (
    "many-mrps",
    "mrp-grid",
    "asterix",
    "mountain-car",
    "offpolicy",
    "average-reward",
)  # run only when named, because they take longer
DEFAULT = tuple(name for name in MODULES if name not in APART)


def experiment(name: str) -> Experiment:
    """The experiment with this name."""
    return import_module(f"trueonline.lab.experiments.{MODULES[name]}").EXPERIMENT
