"""`trueonline reproduce`: the paper's experiments and their claims."""

from __future__ import annotations

from typing import Any

import click

from trueonline.cli import options
from trueonline.cli.errors import plain_errors

ATARI = "atari-prediction"
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
@click.option(
    "--actions",
    metavar="FOLDER",
    help="For atari-prediction: recorded actions, a file such as Pong.txt.gz or SpaceInvaders.txt for each game.",
)
@click.option("--games", metavar="GAME,…", help="For atari-prediction: which games of FOLDER.  [default: all]")
@click.option("--frames", type=click.IntRange(2), help="For atari-prediction: frames of each game.  [default: 210000]")
@options.share("For asterix or atari-prediction: do ")
@options.threads("Threads, processes or workers")
def command(names: tuple[str, ...], listing: bool, **settings: Any) -> None:
    """Run the paper's experiments, and say for each claim whether it held.

    NAME is one or more experiments. --list shows them all, and which ones run only if they are named. These go beyond the
    paper: textbook, many-mrps, mrp-grid (many classes of random MRPs), mountain-car, offpolicy (learning about one policy
    from another), average-reward (continuing tasks without discount) and atari-prediction (a benchmark that needs
    recorded actions). Each experiment leaves figure.png, figure.pdf, data.csv and data.parquet in OUT/NAME. All
    experiments of one call leave OUT/report.html, a page for a browser, and OUT/verdicts.json. Both replace those of
    an earlier call. Results of sweeps are kept in OUT/tasks. After Ctrl-C or a crash, run the same command again: it
    computes only what is missing.
    """
    with plain_errors(extra="report"):
        from trueonline.paper import reproduce_command
        from trueonline.paper.registry import MODULES

        if listing:
            reproduce_command.print_list()
            return
        unknown = [name for name in names if name not in MODULES]
        if unknown:
            raise click.BadParameter(f"unknown {unknown[0]!r}; known are {', '.join(MODULES)}", param_hint="NAME")
        if settings["share"] is not None and set(names) not in ({"asterix"}, {ATARI}):
            raise click.BadParameter(
                f"only asterix and {ATARI} can be done in shares: name one of them alone", param_hint="--shard"
            )
        for option in ("actions", "games", "frames"):
            if settings[option] is not None and ATARI not in names:
                raise click.BadParameter(f"only {ATARI} has it: name it", param_hint=f"--{option}")
        if settings["mrps"] is not None and not MANY & set(names):
            raise click.BadParameter("only many-mrps and mrp-grid have many MRPs: name one", param_hint="--mrps")
        if ATARI in names and settings["actions"] is None:
            raise click.UsageError(
                f"{ATARI} needs --actions FOLDER, the recorded actions of each game in a file such as Pong.txt.gz or "
                "SpaceInvaders.txt. The authors of the benchmark publish such files with the program of SwiftTD."
            )
        if settings["data"] is None and (settings["columns"] is not None or settings["rate"] is not None):
            raise click.BadParameter("there is no --data that they describe", param_hint="--columns, --rate")
        if settings["data"] is not None and "myoelectric" not in names:
            raise click.BadParameter("only myoelectric can use a recording: name it", param_hint="--data")
        reproduce_command.run(names, **settings)
