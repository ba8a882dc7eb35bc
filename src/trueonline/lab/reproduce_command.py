"""The command `trueonline reproduce`: run experiments, and print each claim with its verdict as soon as it is known."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.text import Text

from trueonline.lab.claims import FAILS, HOLDS, NOISE, summary
from trueonline.lab.experiment import Settings, Unfinished
from trueonline.lab.registry import DEFAULT, EXPERIMENTS, experiment
from trueonline.lab.reproduction import Finished, reproduce
from trueonline.study import engines
from trueonline.terminal import TasksBar, console, print_table

LOOKS = {HOLDS: ("✓", "green"), FAILS: ("✗", "red"), NOISE: ("≈", "yellow")}  # verdict → symbol and colour


def print_list() -> None:
    """Print the experiments, and which of them run by name only."""
    rows = [(name, experiment(name).title, "" if name in DEFAULT else "by name only") for name in EXPERIMENTS]
    print_table(("experiment", "what it shows", ""), rows)


def run(names: Sequence[str], out: str, options: Mapping[str, Any], **given: Any) -> None:
    """Run experiments by name, by default the quick ones, and print what came of them.

    `options` are those that experiments have of their own. The rest goes to `Settings`.
    """
    engines.check(given["engine"])  # also where no experiment has a sweep
    import_module("matplotlib")  # the pictures need it. If it is missing, that must not show at the end
    with TasksBar("Sweeping") as progress:
        settings = Settings(Path(out) / "tasks", progress=progress, say=_say, options=options, **given)
        try:
            finished = reproduce(names or DEFAULT, out, settings, _announce)
        except Unfinished as error:
            print(f"{error}.")
            return
    claims = [claim for done in finished for claim in done.outcome.claims]
    print(f"\n{summary(claims)}\nOpen {out}/report.html in a browser.")


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _announce(done: Finished) -> None:
    screen = console()
    sweeping = f", of which {done.sweeping:.1f} s for the sweep" if done.sweeping >= 0.05 else ""
    screen.print(Text(f"\n{done.experiment.title}  ({done.seconds:.1f} s{sweeping})", style="bold"))
    for claim in done.outcome.claims:
        symbol, colour = LOOKS[claim.verdict]
        screen.print(Text.assemble("  ", (f"{symbol} {claim.verdict:<13}", colour), f" {claim.claim}"), soft_wrap=True)
    for name, why in done.failures.items():
        _say(f"The picture {name} of {done.experiment.name} could not be drawn. {why}")
