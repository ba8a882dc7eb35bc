"""All experiments by name, with their own options. Each is imported when it is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from trueonline.lab.options import Option

if TYPE_CHECKING:
    from trueonline.lab.experiment import Experiment


@dataclass(frozen=True)
class Entry:
    """An experiment: its module, its options, and whether it runs by name only because it takes longer."""

    module: str
    by_name_only: bool = False
    options: tuple[Option, ...] = ()


MRPS = Option(
    "mrps",
    "random MRPs of each class, each with --runs runs (10).  [default: 100 and 20]",
    int,
    least=2,
    metavar="N",
)
SCALE = Option(
    "scale",
    "how much of it: minutes, a night on two cores, or all of it on a cluster.  [default: quick]",
    choices=("quick", "evening", "paper"),
)
SHARE = Option("shard", "do the I-th of N shares only; all shares need the same folder.", metavar="I/N", everywhere=True)
TRANSITIONS = Option("transitions", "steps of each run.  [default: 75,000]", int, least=1000, metavar="N")
RECORDING = (
    Option("data", "a recording (CSV or Parquet) beside the simulated arm.", metavar="FILE"),
    Option(
        "columns",
        "the columns of FILE that hold force, muscle1, muscle2, position, velocity and recording, if they have other names.",
        metavar="ROLE=COLUMN,…",
        needs="data",
    ),
    Option("rate", "samples of FILE a second, a multiple of 40.  [default: 40]", float, needs="data"),
)

EXPERIMENTS = {
    "fig1": Entry("fig1"),
    "fig2": Entry("fig2"),
    "fig3": Entry("fig3"),
    "fig4": Entry("fig4"),
    "appendix-c": Entry("appendix_c"),
    "fig9": Entry("fig9"),
    "cost": Entry("cost"),
    "myoelectric": Entry("myoelectric", options=RECORDING),
    "textbook": Entry("textbook"),
    "many-mrps": Entry("many_mrps", by_name_only=True, options=(MRPS,)),
    "mrp-grid": Entry("mrp_grid", by_name_only=True, options=(MRPS,)),
    "asterix": Entry("asterix", by_name_only=True, options=(SCALE, SHARE)),
    "mountain-car": Entry("mountain_car", by_name_only=True),
    "stream-x": Entry("stream_x", by_name_only=True, options=(TRANSITIONS,)),
    "offpolicy": Entry("offpolicy", by_name_only=True),
    "collision": Entry("collision", by_name_only=True),
    "average-reward": Entry("average_reward", by_name_only=True),
}
DEFAULT = tuple(name for name, entry in EXPERIMENTS.items() if not entry.by_name_only)


def experiment(name: str) -> Experiment:
    """The experiment with this name."""
    return import_module(f"trueonline.lab.experiments.{EXPERIMENTS[name].module}").EXPERIMENT


def options() -> dict[str, Option]:
    """All options that experiments have of their own, by name."""
    return {option.name: option for entry in EXPERIMENTS.values() for option in entry.options}


def owners(option: str) -> list[str]:
    """The experiments that have this option."""
    return [name for name, entry in EXPERIMENTS.items() if option in (each.name for each in entry.options)]


def check(names: Sequence[str], given: Mapping[str, Any]) -> None:
    """ValueError if a name is unknown, or if an option is given that no experiment of the call can use."""
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise ValueError(f"unknown experiment {unknown[0]!r}; known are {', '.join(EXPERIMENTS)}")
    for name, option in options().items():
        if given.get(name) is None:
            continue
        having = owners(name)
        if not set(names) & set(having):
            raise ValueError(
                f"--{name} is an option of {' and '.join(having)} only: name {'one' if having[1:] else 'it'}"
            )
        if option.everywhere and not set(names) <= set(having):
            raise ValueError(f"--{name} is an option of {' and '.join(having)} only: name it alone")
        if option.needs is not None and given.get(option.needs) is None:
            raise ValueError(f"--{name} describes --{option.needs}, which is not given: give it, or drop --{name}")
