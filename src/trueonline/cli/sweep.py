"""`trueonline sweep`: methods over step-sizes and trace decays, from a TOML file."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

import click

from trueonline import catalog
from trueonline.cli import options
from trueonline.cli.errors import plain_errors
from trueonline.words import listed


def _names(group: str) -> str:
    return ", ".join(catalog.names(group, swept=True))


_SLOW = listed(name for name in catalog.sweepable() if not catalog.METHODS[name].swept)
HELP = f"""Sweep methods over step-sizes and trace decays on the problems that the TOML file SPEC describes.

Each result is a file in OUT/tasks as soon as it is computed. The same command again computes only what is missing. At
the end OUT/results.parquet and OUT/results.csv hold all results, and the best parameters of each method are printed,
with 95 % intervals for their mean errors over the runs.

\b
The methods are
{fill(_names("prediction"), 74, initial_indent="  ", subsequent_indent="  ")}
and, for problems with a behaviour policy and a target policy,
{fill(_names("off-policy"), 74, initial_indent="  ", subsequent_indent="  ")}
and, for problems with average_reward = true,
{fill(_names("average reward"), 74, initial_indent="  ", subsequent_indent="  ")}

A rule of your own is named by its file, "my_rule.py:my_rule". {_SLOW} can be
swept too, one step at a time. Problems with two policies are baird, collision, off_policy.two_state, random_mdp, and arrays
that hold a behaviour and a target. GTD(λ) and differential TD(λ) have a second step-size, η times the first: write
{{ method = "gtd", eta = [0.25, 4.0] }} in the list. With after = 80 the first 80 steps do not count.

\b
An example of SPEC (all but [[problems]] may be left out):
  # without methods: all that apply to a problem
  methods = ["accumulate", "replace", "true_online"]
  step_sizes = [0.01, 0.03, 0.1, 0.3, 1.0]
  trace_decays = [0.0, 0.5, 0.9, 1.0]
  runs = 50
  steps = 100
  seed = 0
  [[problems]]
  # or random_walk, one_state, two_state, arrays (with path = "my.npz")
  kind = "random_mrp"
  k = 10
  b = 3
  sigma = 0.1
  # or binary_unit, non_binary (not for replace)
  representations = ["tabular", "binary"]

\b
Or agents in Gymnasium environments (with the settings of trueonline train):
  environments = ["CartPole-v1"]
  agents = ["true_online_sarsa", "watkins_q"]
  step_sizes = [0.1, 0.5]
  trace_decays = [0.0, 0.9]
  seeds = 10
  episodes = 300
"""


@click.command("sweep", help=HELP, short_help="Sweep methods over step-sizes and trace decays.")
@click.argument("spec", type=click.Path(exists=True, dir_okay=False))
@options.folder("sweep")
@click.option(
    "--figure",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Draw the error over α, each method at its best λ. The ending (.png, .pdf, .svg) says the format.",
)
@click.option(
    "--confirm",
    type=click.IntRange(min=2),
    metavar="RUNS",
    help="Run the best setting of each method again, so many times with a fresh seed, and print the errors of these runs. "
    "The errors of the runs that chose it are too low: it was lucky in them.",
)
@options.sweep_engine
@options.share()
@options.threads()
def command(
    spec: str, out: str, figure: str | None, confirm: int | None, engine: str, share: str | None, threads: int | None
) -> None:
    with plain_errors():
        from trueonline.study import sweep_command

        if "environments" in (text := Path(spec).read_text(encoding="utf-8")):
            from trueonline.control.studies import sweep_file

            if (agents := sweep_file.read(text)) is not None:
                for name, value in (("--figure", figure), ("--confirm", confirm), ("--shard", share)):
                    if value is not None:
                        raise ValueError(f"{name} is not for sweeps of agents: leave it out")
                sweep_file.run(agents, out, engine=engine, threads=threads, say=click.echo)
                return
        sweep_command.run(spec, out, figure, engine=engine, share=share, threads=threads, confirm=confirm, say=click.echo)
