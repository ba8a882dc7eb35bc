"""`trueonline reproduce`: the paper's experiments and their claims."""

from __future__ import annotations

from typing import Any

import click

from trueonline.cli import options
from trueonline.cli.errors import plain_errors
from trueonline.lab import registry


def _own(command: click.Command) -> click.Command:
    """Add the options that only some experiments have. The help names those."""
    for option, names in registry.options().items():
        option.help = f"For {' and '.join(names)}: {option.help}"
        command.params.append(option)
    return command


@_own
@click.command("reproduce", short_help="Run the paper's experiments and judge its claims.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@options.listing("experiments and what they show")
@options.folder("reproduction")
@click.option("--runs", type=click.IntRange(1), help="Runs of each setting, instead of the experiment's own number.")
@options.seed()
@options.sweep_engine
@options.threads("Threads, processes or workers")
def command(names: tuple[str, ...], listing: bool, **settings: Any) -> None:
    """Run the paper's experiments, and say for each claim whether it held.

    NAME is one or more experiments. --list shows them all, and which ones run only if they are named. These go beyond the
    paper: textbook, many-mrps, mrp-grid (many classes of random MRPs), mountain-car, stream-x (streaming deep RL), offpolicy
    (learning about one policy from another), collision (eleven off-policy methods) and average-reward (continuing tasks
    without discount). Each experiment leaves figure.png, figure.pdf, data.csv and data.parquet in OUT/NAME. All experiments
    of one call leave OUT/report.html, a page for a browser, and OUT/verdicts.json. Both replace those of an earlier call.
    Results of sweeps are kept in OUT/tasks.
    After Ctrl-C or a crash, run the same command again: it computes only what is missing.
    """
    with plain_errors(extra="report"):
        own = {str(option.name): settings.pop(str(option.name)) for option in registry.options()}
        try:
            registry.check(names, own)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        from trueonline.lab import reproduce_command

        if listing:
            reproduce_command.print_list()
            return
        reproduce_command.run(names, options=own, **settings)
