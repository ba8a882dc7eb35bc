"""The command: run the trials, print a table, keep what failed. See the package for what a kind of trial is."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

import trueonline
from tests.hostile import FAILED, FINE, KINDS, REFUSED, SKIPPED
from tests.hostile.workers import PREPARE, Outcome, Task, run

MINUTES = 20.0  # that the numbers of trials are made for
BEGIN, END = "<!-- trials -->", "<!-- /trials -->"
SHOWN = 20  # failures that are printed
HEADS = ("trial", "promise", "trials", "refused", "fine", "failed")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description="Try to break what is promised.")
    parser.add_argument("--seed", type=int, default=0, help="other seeds are other trials")
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help="the time for the trials, at most (default %(default)g)"
    )
    parser.add_argument("--only", action="append", choices=KINDS, metavar="KIND", help=f"one of {', '.join(KINDS)}")
    parser.add_argument("--trial", type=int, metavar="N", help="repeat this trial of --only KIND")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default %(default)s)")
    parser.add_argument("--out", metavar="FILE", help="write the table to this Markdown file, between its markers")
    given = parser.parse_args()
    if given.trial is not None and len(given.only or ()) != 1:
        parser.error("--trial needs one --only KIND")
    console, place = Console(), Path(tempfile.mkdtemp(prefix="hostile-"))
    kinds = given.only or KINDS
    tasks = [Task(given.only[0], given.trial, given.seed)] if given.trial is not None else all_tasks(kinds, given)
    outcomes = run_all(console, kinds, tasks, place, given)
    missed = len(tasks) - len(outcomes)
    about = (
        f"Version {trueonline.__version__}, seed {given.seed}, {given.minutes:g} minutes in {given.jobs} processes. "
        f"{missed:,} of {len(tasks):,} trials did not fit into this time."
    )
    counts = {kind: sum((o.counts for o in outcomes if o.task.kind == kind), Counter()) for kind in kinds}
    rows = [row_of(kind, counts[kind]) for kind in kinds]
    table = Table(*HEADS)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for why in sorted({f"{o.task.kind}: {o.why}" for o in outcomes if o.counts[SKIPPED]}):
        console.print(f"Not tried here: {why}", markup=False)
    took = {kind: sum(o.seconds for o in outcomes if o.task.kind == kind) for kind in kinds}
    console.print("Seconds: " + ", ".join(f"{kind} {seconds:,.0f}" for kind, seconds in took.items()))
    console.print(about)
    if given.out:
        write_table(Path(given.out), rows, about)
    idle = [kind for kind in kinds if not counts[kind]]
    if idle:
        console.print(f"No trial of {', '.join(idle)} fitted into this time: give more --minutes")
    failures = [outcome for outcome in outcomes if outcome.counts[FAILED]]
    return report_failures(console, failures, place) or int(bool(idle))


def all_tasks(kinds: list[str], given: argparse.Namespace) -> list[Task]:
    """All trials, mixed so that a run that is out of time has made the same share of each kind."""
    totals = {kind: import_module(f"tests.hostile.{kind}").TRIALS for kind in kinds}
    many = {kind: max(1, round(total * min(given.minutes / MINUTES, 1.0))) for kind, total in totals.items()}
    mixed = sorted(((n + 0.5) / many[kind], kind, n) for kind in kinds for n in range(many[kind]))
    return [Task(kind, number, given.seed) for _, kind, number in mixed]


def run_all(
    console: Console, kinds: list[str], tasks: list[Task], place: Path, given: argparse.Namespace
) -> list[Outcome]:
    preparing = run([Task(kind, PREPARE, given.seed) for kind in kinds], place, given.jobs)
    for outcome in track(preparing, "Preparing", len(kinds), console=console):
        if outcome.why:
            raise SystemExit(f"The preparation of {outcome.task.kind} failed:\n{outcome.why}")
    until = time.monotonic() + 60.0 * given.minutes
    return list(track(run(tasks, place, given.jobs, until), "Trials", len(tasks), console=console))


def row_of(kind: str, counts: Counter[str]) -> tuple[str, ...]:
    module = import_module(f"tests.hostile.{kind}")
    numbers = [sum(counts.values()) - counts[SKIPPED], counts[REFUSED], counts[FINE], counts[FAILED]]
    return kind.replace("_", " "), module.PROMISE, *(f"{number:,}" for number in numbers)


def write_table(path: Path, rows: list[tuple[str, ...]], about: str) -> None:
    """Write the table, and the run that it is of, as Markdown between the markers of a file, or as a new file."""
    lines = ["| " + " | ".join(HEADS) + " |", "|---|---|" + "--:|" * (len(HEADS) - 2)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    table = "\n".join([BEGIN, "", *lines, "", about, "", END])
    text = path.read_text(encoding="utf-8") if path.exists() else f"{BEGIN}{END}\n"
    before, _, rest = text.partition(BEGIN)
    path.write_text(before + table + rest.partition(END)[2], encoding="utf-8")


def report_failures(console: Console, failures: list[Outcome], place: Path) -> int:
    """Keep the inputs of failed trials in one folder, and remove all else. The exit status of the command."""
    kept = Path(tempfile.mkdtemp(prefix="hostile-failed-")) if failures else None
    for number, outcome in enumerate(failures):
        folder = kept / f"{outcome.task.kind}-{outcome.task.number}"
        left = place / outcome.task.kind / str(outcome.task.number)
        left.mkdir(parents=True, exist_ok=True)
        shutil.copytree(left, folder)
        (folder / "failure.txt").write_text(f"{outcome.task.command}\n\n{outcome.why}")
        if number < SHOWN:
            lines = [line.strip(" |") for line in outcome.why.strip().splitlines()]
            last = next((line for line in reversed(lines) if re.match(r"[\w.]*(Error|Exit)\b", line)), lines[-1])
            console.print(f"\n{outcome.task.command}\n  {last:.300}", markup=False, soft_wrap=True)
    shutil.rmtree(place, ignore_errors=True)
    if kept is not None:
        console.print(f"\n{len(failures)} trials failed. Their input, and why they failed, is in {kept}", markup=False)
    return int(bool(failures))


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")  # so that workers iterate over sets alike
    sys.exit(main())
