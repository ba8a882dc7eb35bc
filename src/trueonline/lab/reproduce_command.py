"""The command `trueonline reproduce`: run experiments, and print each claim with its verdict as soon as it is known."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.text import Text

from trueonline.lab.experiment import ENOUGH, FAILS, HOLDS, NOISE, Settings, Unfinished
from trueonline.lab.registry import DEFAULT, MODULES, experiment
from trueonline.lab.reproduction import Finished, reproduce
from trueonline.study import engines
from trueonline.terminal import TasksBar, console, print_table

# Verdict → its symbol, its colour, and its words in a sentence about several claims, and about one.
VERDICTS = {
    HOLDS: ("✓", "green", "hold", "holds"),
    FAILS: ("✗", "red", "do not hold", "does not hold"),
    NOISE: ("≈", "yellow", NOISE, NOISE),
}


def print_list() -> None:
    """Print the experiments, and which of them run by name only."""
    rows = [(name, experiment(name).title, "" if name in DEFAULT else "by name only") for name in MODULES]
    print_table(("experiment", "what it shows", ""), rows)


def run(
    names: Sequence[str],
    out: str,
    *,
    data: str | None,
    columns: str | None,
    rate: float | None,
    **given: Any,
) -> None:
    """Run experiments by name, by default the quick ones, and print what came of them.

    `data`, `columns` and `rate` describe a recording for the experiment that can use one. The rest goes to `Settings`.
    """
    engines.check(given["engine"])  # also where no experiment has a sweep
    import_module("altair")  # the report needs it. If it is missing, that must not show at the end
    if data is not None:
        from trueonline.lab import recordings  # slow to import

        roles = {} if columns is None else recordings.parse(columns)
        given |= {"data": Path(data), "columns": roles, "rate": 40.0 if rate is None else rate}
    with TasksBar("Sweeping") as progress:
        settings = Settings(Path(out) / "tasks", progress=progress, say=_say, **given)
        try:
            finished = reproduce(names or DEFAULT, out, settings, _announce)
        except Unfinished as error:
            print(f"{error}.")
            return
    claims = [claim for done in finished for claim in done.outcome.claims]
    verdicts = [claim.verdict for claim in claims]
    counts = ", ".join(
        f"{(n := verdicts.count(name))} {VERDICTS[name][2 if n > 1 else 3]}" for name in VERDICTS if name in verdicts
    )
    print(f"\n{len(verdicts)} claims: {counts}. Open {out}/report.html in a browser.")
    few = sum(claim.undecidable for claim in claims)
    if few:
        print(f"{few} of them cannot be decided by so few runs: intervals need at least {ENOUGH} runs, MRPs or games.")


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _announce(done: Finished) -> None:
    screen = console()
    sweeping = f", of which {done.sweeping:.1f} s for the sweep" if done.sweeping >= 0.05 else ""
    screen.print(Text(f"\n{done.experiment.title}  ({done.seconds:.1f} s{sweeping})", style="bold"))
    for claim in done.outcome.claims:
        symbol, colour, *_ = VERDICTS.get(claim.verdict, ("?", ""))
        screen.print(Text.assemble("  ", (f"{symbol} {claim.verdict:<13}", colour), f" {claim.claim}"), soft_wrap=True)
