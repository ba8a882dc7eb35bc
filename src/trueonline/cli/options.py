"""Options that several commands share, each defined once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

Decorator = Callable[[Any], Any]


def engine(gpu: str = "") -> Decorator:
    """`--engine`, where the work is done. `gpu` tells of the engines that are GPUs, if the command has work for them."""
    text = f"local (all cores), {gpu}dask (a cluster on this machine) or dask:ADDRESS (an existing one). All give the same results."
    return click.option("--engine", default="local", show_default=True, help=text)


sweep_engine = engine("cuda (sweeps on an NVIDIA GPU), cuda:NUMBER (another GPU), ")
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")


def threads(what: str = "Threads or workers") -> Decorator:
    """`--threads`, where a command uses as many as there are cores by default."""
    return click.option("--threads", type=click.IntRange(1), help=f"{what}; by default one for each core.")


def seed(what: str = "everything random") -> Decorator:
    """`--seed`, a whole number."""
    return click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help=f"Seed of {what}.")


def folder(default: str | None, shown: str = "") -> Decorator:
    """`--out`, the folder for the results."""
    text = f"Folder for the results.{shown}"
    return click.option(
        "--out", default=default, show_default=default is not None, type=click.Path(file_okay=False), help=text
    )


def share(what: str = "Do ") -> Decorator:
    """`--shard`, a part of the work for one of several machines."""
    text = f"{what}the I-th of N shares only; all shares need the same folder."
    return click.option("--shard", "share", metavar="I/N", help=text)


trace_decay = click.option("--trace-decay", default=0.9, show_default=True, type=float, help="λ.")


def step_size(default: float, text: str) -> Decorator:
    """`--step-size`, with what is done to it."""
    return click.option("--step-size", default=default, show_default=True, type=float, help=f"α. {text}")


def listing(what: str) -> Decorator:
    """`--list`, which prints names instead of doing the work."""
    return click.option("--list", "listing", is_flag=True, help=f"List the {what}.")


def all_of(options: Sequence[Decorator]) -> Decorator:
    """Several options as one decorator, in the order in which help shows them."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def method_choice(names: Sequence[str], default: str) -> Decorator:
    """`--method`, one of some rows of the catalogue."""
    text = f"The rule that learns: {', '.join(names)}."
    kind = click.Choice(list(names))
    return click.option("--method", default=default, show_default=True, type=kind, metavar="METHOD", help=text)
