"""`trueonline reproduce`: the paper's experiments and their claims."""

from __future__ import annotations

from typing import Any

import click

from trueonline.cli import options
from trueonline.cli.errors import plain_errors

MANY = {"many-mrps", "mrp-grid"}


@click.command("reproduce", short_help="Run the paper's experiments and judge its claims.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@options.listing("experiments and what they show")
@options.folder("reproduction")
@click.option("--runs", type=click.IntRange(1), help="Runs of each setting, instead of the experiment's own number.")
@click.option(
    "--mrps",
    metavar="N",
    type=click.IntRange(2),
    help="For many-mrps and mrp-grid: random MRPs of each class, each with --runs runs (10).  [default: 100 and 20]",
)
@options.seed()
@click.option(
    "--scale",
    default="quick",
    show_default=True,
    type=click.Choice(["quick", "evening", "paper"]),
    help="How much of asterix: minutes, a night on two cores, or all of it on a cluster.",
)
@options.sweep_engine
@click.option("--data", metavar="FILE", help="For myoelectric: a recording (CSV or Parquet) beside the simulated arm.")
@click.option(
    "--columns",
    metavar="ROLE=COLUMN,…",
    help="The columns of FILE that hold force, muscle1, muscle2, position, velocity and recording, if they have "
    "other names.",
)
@click.option("--rate", type=float, help="Samples of FILE a second, a multiple of 40.  [default: 40]")
@options.share("For asterix: do ")
@options.threads("Threads, processes or workers")
def command(names: tuple[str, ...], listing: bool, **settings: Any) -> None:
    """Run the paper's experiments, and say for each claim whether it held.

    NAME is one or more experiments. --list shows them all, and which ones run only if they are named. These go beyond the
    paper: textbook, many-mrps, mrp-grid (many classes of random MRPs), mountain-car, offpolicy (learning about one policy
    from another) and average-reward (continuing tasks without discount). Each experiment leaves figure.png, figure.pdf,
    data.csv and data.parquet in OUT/NAME. All experiments of one call leave OUT/report.html, a page for a browser, and
    OUT/verdicts.json. Both replace those of an earlier call. Results of sweeps are kept in OUT/tasks. After Ctrl-C or a
    crash, run the same command again: it computes only what is missing.
    """
    with plain_errors(extra="report"):
        from trueonline.lab import reproduce_command
        from trueonline.lab.registry import MODULES

        if listing:
            reproduce_command.print_list()
            return
        unknown = [name for name in names if name not in MODULES]
        if unknown:
            raise click.BadParameter(f"unknown {unknown[0]!r}; known are {', '.join(MODULES)}", param_hint="NAME")
        if settings["share"] is not None and set(names) != {"asterix"}:
            raise click.BadParameter("only asterix can be done in shares: name it alone", param_hint="--shard")
        if settings["mrps"] is not None and not MANY & set(names):
            raise click.BadParameter("only many-mrps and mrp-grid have many MRPs: name one", param_hint="--mrps")
        if settings["data"] is None and (settings["columns"] is not None or settings["rate"] is not None):
            raise click.BadParameter("there is no --data that they describe", param_hint="--columns, --rate")
        if settings["data"] is not None and "myoelectric" not in names:
            raise click.BadParameter("only myoelectric can use a recording: name it", param_hint="--data")
        reproduce_command.run(names, **settings)
