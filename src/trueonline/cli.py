"""The command `trueonline`. Commands import late and hold no mathematics: `--help` imports neither NumPy nor Numba."""

from __future__ import annotations

import json
import sys

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
    with click.progressbar(length=rounds, label="Verifying", file=sys.stderr) as bar:
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
