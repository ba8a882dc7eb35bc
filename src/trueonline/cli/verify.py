"""`trueonline verify`: hold the methods of the catalogue to their definitions."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from textwrap import wrap
from typing import Any

import click

from trueonline import catalog
from trueonline.cli import options
from trueonline.cli.errors import plain_errors

METHODS_ACROSS = 3  # methods in a table, at most


def _known() -> str:
    """The names of all methods by group, for the help."""
    lines = []
    for group in catalog.GROUPS:
        first, *rest = wrap(", ".join(catalog.names(group)), 60)
        lines += [f"  {first:<62}{group}", *(f"  {line}" for line in rest)]
    return "\n".join(lines)


HELP = f"""Check that methods equal their definitions at every step of random streams.

\b
METHOD is one or more of these, by default all of them:
{_known()}

Each method runs beside the equations that define it. For true_online these are the online λ-return algorithm. The table
shows the largest difference of any weight after any transition, relative to the largest weight so far. The exit status
is 1 when a method is not exact. The last line is not a verdict: it shows how far a method is from the online forward
view that it approximates. Only true online methods equal theirs.

The streams are dense and sparse, binary and real-valued. γ and λ vary, and so do the step-sizes. Episodes end or are
truncated. Off-policy methods get importance ratios, some of them 0.
"""


@click.command("verify", help=HELP, short_help="Check that methods equal their definitions.")
@click.argument("methods", nargs=-1, metavar="[METHOD]...")
@click.option("--trials", default=5, show_default=True, type=click.IntRange(1), help="Random streams of each kind.")
@click.option("--steps", default=50, show_default=True, type=click.IntRange(2), help="Transitions in each stream.")
@options.seed("the streams")
@options.as_json
def command(methods: tuple[str, ...], trials: int, steps: int, seed: int, as_json: bool) -> None:
    unknown = [name for name in methods if name not in catalog.METHODS]
    if unknown:
        known = ", ".join(catalog.METHODS)
        raise click.BadParameter(f"unknown method {unknown[0]!r}; known are {known}", param_hint="METHOD")
    with plain_errors("Stopped."):
        from trueonline.checks.verification import KINDS, verify
        from trueonline.terminal import rounds_bar

        rows = [catalog.METHODS[name] for name in dict.fromkeys(methods or catalog.METHODS)]
        rounds = sum(trials for row in rows for kind in KINDS if kind.binary or not row.binary)
        with rounds_bar("Verifying", rounds) as advance:
            numbers: dict[str, Any] = {"trials": trials, "steps": steps, "seed": seed, "progress": advance}
            reports = {row.name: verify(_made(row), **numbers) for row in rows}
        if as_json:
            click.echo(json.dumps({name: _as_json(report) for name, report in reports.items()}, indent=2))
        else:
            _print(reports, [kind.name for kind in KINDS])
    if not all(report.exact for report in reports.values()):
        sys.exit(1)


def _made(row: catalog.Method) -> Any:
    """The callable that makes the learners of a method."""
    settings = {**row.options, **row.settings}
    return partial(row.resolve("learner"), **settings) if settings else row.resolve("learner")


def _as_json(report: Any) -> dict[str, Any]:
    return {
        "definition": report.definition,
        "max_error": report.max_error,
        "forward_error": report.forward_error,
        "tolerance": report.tolerance,
        "exact": report.exact,
        "streams": {row.stream: row.error for row in report.rows},
    }


def _print(reports: dict[str, Any], streams: list[str]) -> None:
    """Streams down, methods across. Groups of methods have tables of their own, which are equally wide if possible."""
    from trueonline.terminal import print_table

    for group in catalog.GROUPS:
        names = [name for name in reports if catalog.METHODS[name].group == group]
        for some in _evenly(names):
            print_table(("", *some), _rows([reports[name] for name in some], streams))
            click.echo()


def _evenly(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """The names in parts of at most `METHODS_ACROSS`, as even as may be."""
    parts = -(-len(names) // METHODS_ACROSS)
    width = -(-len(names) // max(parts, 1))
    return (names[first : first + width] for first in range(0, len(names), width or 1))


def _rows(reports: Sequence[Any], streams: Sequence[str]) -> Iterator[Sequence[str]]:
    errors = [{row.stream: f"{row.error:.1e}" for row in report.rows} for report in reports]
    yield "definition", *(report.definition for report in reports)
    yield ()
    for stream in streams:
        yield stream, *(each.get(stream, "–") for each in errors)
    yield ()
    yield "largest difference", *(f"{report.max_error:.1e}" for report in reports)
    yield "verdict", *("exact" if report.exact else "NOT EXACT" for report in reports)
    views = (report.forward_error for report in reports)
    yield "from the online forward view", *("–" if error is None else f"{error:.1e}" for error in views)
