"""The command `trueonline`. Commands import late and hold no mathematics: `--help` imports neither NumPy nor Numba."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from trueonline import __version__

METHODS = ("accumulate", "replace", "true_online")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__)
def main() -> None:
    """True online temporal-difference learning: exact, fast, and checked against its definition."""


@main.command()
@click.argument("methods", nargs=-1, metavar="[METHOD]...")
@click.option("--trials", default=20, show_default=True, type=click.IntRange(1), help="Random streams of each kind.")
@click.option("--steps", default=50, show_default=True, type=click.IntRange(2), help="Transitions in each stream.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of the streams.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON instead of a table.")
def verify(methods: tuple[str, ...], trials: int, steps: int, seed: int, as_json: bool) -> None:
    """Check that methods equal their definitions at every step of random streams.

    METHOD is one or more of accumulate, replace, true_online; by default all of them. Each is run beside the equations
    that define it (for true_online: the online λ-return algorithm), and the largest difference of any weight after any
    transition is shown, relative to the largest weight so far. The exit status is 1 when a method is not exact.

    The streams are dense and sparse, binary and real-valued, with varying γ and λ, several episodes that end or are cut
    short, large step-sizes and step-size schedules.
    """
    unknown = [name for name in methods if name not in METHODS]
    if unknown:
        raise click.BadParameter(f"unknown method {unknown[0]!r}; known are {', '.join(METHODS)}", param_hint="METHOD")

    from trueonline import verification
    from trueonline.learners import AccumulateTD, ReplaceTD, TrueOnlineTD

    classes = dict(zip(METHODS, (AccumulateTD, ReplaceTD, TrueOnlineTD), strict=True))
    names = methods or METHODS
    kinds = verification.KINDS
    rounds = sum(trials for name in names for kind in kinds if kind.binary or not classes[name].binary)
    with _plain_errors("Stopped."), click.progressbar(length=rounds, label="Verifying", file=sys.stderr) as bar:
        reports = {
            name: verification.verify(
                classes[name], trials=trials, steps=steps, seed=seed, progress=lambda: bar.update(1)
            )
            for name in names
        }
    click.echo(_as_json(reports) if as_json else _as_table(reports, [kind.name for kind in kinds]))
    if not all(report.exact for report in reports.values()):
        sys.exit(1)


def _as_json(reports: dict) -> str:
    return json.dumps(
        {
            name: {
                "definition": report.definition,
                "max_error": report.max_error,
                "forward_error": report.forward_error,
                "tolerance": report.tolerance,
                "exact": report.exact,
                "streams": {row.stream: row.error for row in report.rows},
            }
            for name, report in reports.items()
        },
        indent=2,
    )


def _as_table(reports: dict, streams: list[str]) -> str:
    """Streams down, methods across."""
    found = [{row.stream: row for row in report.rows} for report in reports.values()]
    rows = [["", *reports]]
    rows += [["definition", *(report.definition for report in reports.values())]]
    rows += [[stream, *(_shown(rows_, stream) for rows_ in found)] for stream in streams]
    rows += [["largest difference", *(f"{report.max_error:.1e}" for report in reports.values())]]
    rows += [["verdict", *("exact" if report.exact else "NOT EXACT" for report in reports.values())]]
    rows += [["from the online λ-return", *(f"{report.forward_error:.1e}" for report in reports.values())]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    rule = "─" * len(lines[0])
    return "\n".join([*lines[:2], rule, *lines[2:-3], rule, *lines[-3:]])


def _shown(rows: dict, stream: str) -> str:
    return f"{rows[stream].error:.1e}" if stream in rows else "–"


ENGINE_HELP = "local (the threads of this machine), dask (a cluster on this machine) or dask:ADDRESS (an existing one)."


@main.command()
@click.argument("spec", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--out", default="sweep", show_default=True, type=click.Path(file_okay=False), help="Folder for the results."
)
@click.option("--engine", default="local", show_default=True, help=ENGINE_HELP)
@click.option("--shard", "share", metavar="I/N", help="Do the I-th of N shares only; all share one folder.")
@click.option("--threads", type=click.IntRange(1), help="Threads or workers; by default one for each core.")
def sweep(spec: str, out: str, engine: str, share: str | None, threads: int | None) -> None:
    """Sweep methods over step-sizes and trace decays on the problems that the TOML file SPEC describes.

    Every result is a file in OUT/tasks as soon as it is there; only what is missing is computed. When all is there,
    OUT/results.parquet and OUT/results.csv hold the table, and the best parameters of each method are printed.

    \b
    An example of SPEC (all but [[problems]] may be left out):
      methods = ["accumulate", "replace", "true_online"]
      step_sizes = [0.01, 0.03, 0.1, 0.3, 1.0]
      trace_decays = [0.0, 0.5, 0.9, 1.0]
      runs = 50
      steps = 100
      seed = 0
      [[problems]]
      kind = "random_mrp"   # or random_walk, one_state, two_state, arrays (with path = "my.npz")
      k = 10
      b = 3
      sigma = 0.1
      representations = ["tabular", "binary"]   # or binary_unit, non_binary (not for replace)
    """
    with _plain_errors():
        from trueonline import study, sweep_file, tables
        from trueonline.progress import TasksBar

        cases = sweep_file.read(spec)
        with TasksBar("Sweeping") as progress:
            found = study.run(cases, engine=engine, out=f"{out}/tasks", share=share, threads=threads, progress=progress)
        if found is None:
            click.echo(f"Share {share} is done; others are not. Their results belong into {out}/tasks as well.")
            return
        tables.write(found, f"{out}/results")
        click.echo(tables.best(found))
        click.echo(f"All {found.num_rows:,} results are in {out}/results.parquet and {out}/results.csv")


@main.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "listing", is_flag=True, help="List the experiments and what they show.")
@click.option(
    "--out", default="reproduction", show_default=True, type=click.Path(file_okay=False), help="Folder to leave it in."
)
@click.option("--runs", type=click.IntRange(1), help="Runs of each setting, instead of the paper's number.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of everything random.")
@click.option("--engine", default="local", show_default=True, help=ENGINE_HELP)
@click.option("--threads", type=click.IntRange(1), help="Threads or workers; by default one for each core.")
def reproduce(
    names: tuple[str, ...], listing: bool, out: str, runs: int | None, seed: int, engine: str, threads: int | None
) -> None:
    """Run the paper's experiments and say of each claim whether it held.

    NAME is one or more experiments, by default all but many-mrps, which takes minutes; --list shows them. Each leaves
    figure.png, figure.pdf, data.csv and data.parquet in OUT/NAME. Those of one call leave OUT/report.html, to be opened
    in a browser, and OUT/verdicts.json, in place of what an earlier call left. Results of sweeps are kept in OUT/tasks,
    and only what is missing is computed: after Ctrl-C or a crash, run the same command again.
    """
    with _plain_errors():
        from trueonline.paper.registry import DEFAULT, MODULES, experiment

        if listing:
            for name in MODULES:
                click.echo(f"{name:<12} {experiment(name).title}{'' if name in DEFAULT else '  (only by name)'}")
            return
        unknown = [name for name in names if name not in MODULES]
        if unknown:
            raise click.BadParameter(f"unknown {unknown[0]!r}; known are {', '.join(MODULES)}", param_hint="NAME")

        from pathlib import Path

        from trueonline.paper.experiment import Settings
        from trueonline.progress import TasksBar
        from trueonline.reproduction import Finished
        from trueonline.reproduction import reproduce as run

        def announce(done: Finished) -> None:
            click.echo(f"\n{done.experiment.title}  ({done.seconds:.1f} s)")
            for claim in done.outcome.claims:
                symbol, colour = VERDICTS.get(claim.verdict, ("?", None))
                click.echo(f"  {click.style(f'{symbol} {claim.verdict:<13}', fg=colour)} {claim.claim}")

        with TasksBar("Sweeping") as progress:
            settings = Settings(Path(out) / "tasks", seed, runs, engine, threads, progress)
            finished = run(names or DEFAULT, out, settings, announce)
    verdicts = [claim.verdict for done in finished for claim in done.outcome.claims]
    words = {"holds": "hold", "does not hold": "do not hold"}
    counts = ", ".join(f"{verdicts.count(name)} {words.get(name, name)}" for name in VERDICTS if name in verdicts)
    click.echo(f"\n{len(verdicts)} claims: {counts}. Open {out}/report.html in a browser.")


VERDICTS = {"holds": ("✓", "green"), "does not hold": ("✗", "red"), "within noise": ("≈", "yellow")}


@contextmanager
def _plain_errors(
    stopped: str = "Stopped. Finished tasks are kept; run the same command again to go on.",
) -> Iterator[None]:
    """What a user can mend is said in a line; Ctrl-C says how to go on."""
    try:
        yield
    except ImportError as error:
        raise click.ClickException(f"{error}; this command needs the extras: pip install 'trueonline[all]'") from None
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        click.echo(f"\n{stopped}", err=True)
        sys.exit(130)
