"""All experiments by name, with their own options. Each is imported when it is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from trueonline.lab.experiment import Experiment


@dataclass(frozen=True)
class Entry:
    """An experiment: its module, its options, and whether it runs by name only because it takes longer."""

    module: str
    by_name_only: bool = False
    options: tuple[Option, ...] = ()


class Option(click.Option):
    """An option of the command `trueonline reproduce` that only some experiments have.

    Parameters
    ----------
    name : str
        The name on the command line, without the dashes, and in `Settings.options`.
    help : str
        The text of the command's help.
    needs : str, optional
        Another option, without which this one has no meaning.
    everywhere : bool
        Every experiment of the call must have the option. Otherwise one of them is enough.
    **more
        Arguments of `click.Option`.
    """

    def __init__(self, name: str, help: str, needs: str | None = None, everywhere: bool = False, **more: Any) -> None:
        super().__init__([f"--{name}"], help=help, **more)
        self.needs, self.everywhere = needs, everywhere


MRPS = Option(
    "mrps",
    "random MRPs of each class, each with --runs runs (10).  [default: 100 and 20]",
    type=click.IntRange(2),
    metavar="N",
)
SCALE = Option(
    "scale",
    "how much of it: minutes, a night on two cores, or all of it on a cluster.  [default: quick]",
    type=click.Choice(["quick", "evening", "paper"]),
)
SHARE = Option("shard", "do the I-th of N shares only; all shares need the same folder.", everywhere=True, metavar="I/N")
TRANSITIONS = Option("transitions", "steps of each run.  [default: 75,000]", type=click.IntRange(1000), metavar="N")
RECORDING = (
    Option("data", "a recording (CSV or Parquet) beside the simulated arm.", metavar="FILE"),
    Option(
        "columns",
        "the columns of FILE that hold force, muscle1, muscle2, position, velocity and recording, if they have other names.",
        needs="data",
        metavar="ROLE=COLUMN,…",
    ),
    Option("rate", "samples of FILE a second, a multiple of 40.  [default: 40]", needs="data", type=float),
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


def options() -> dict[Option, list[str]]:
    """All options that experiments have of their own, each with the experiments that have it."""
    known = dict.fromkeys(option for entry in EXPERIMENTS.values() for option in entry.options)
    return {option: [name for name, entry in EXPERIMENTS.items() if option in entry.options] for option in known}


def check(names: Sequence[str], given: Mapping[str, Any]) -> None:
    """ValueError if a name is unknown, or if an option is given that no experiment of the call can use."""
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise ValueError(f"unknown experiment {unknown[0]!r}; known are {', '.join(EXPERIMENTS)}")
    for option, having in options().items():
        name = str(option.name)
        if given.get(name) is None:
            continue
        if not set(names) & set(having):
            raise ValueError(
                f"--{name} is an option of {' and '.join(having)} only: name {'one' if having[1:] else 'it'}"
            )
        if option.everywhere and not set(names) <= set(having):
            raise ValueError(f"--{name} is an option of {' and '.join(having)} only: name it alone")
        if option.needs is not None and given.get(option.needs) is None:
            raise ValueError(f"--{name} describes --{option.needs}, which is not given: give it, or drop --{name}")
