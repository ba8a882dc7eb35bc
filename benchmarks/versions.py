"""This version against another one that is installed in an environment of its own: the same work in both, in turn.

    python -m benchmarks.versions OTHER_PYTHON [--rounds 5]

Each round runs both versions one after the other. A ratio is this version's time over the other's: the median over rounds
(smallest–largest). A time is the shortest of all rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

CHILD = Path(__file__).with_name("versions_child.py")
LIMIT = 1.05


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versions", description=__doc__)
    parser.add_argument(
        "other", type=os.path.abspath, help="the interpreter of the environment that has the other version"
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often each version is measured (default: 5)")
    parser.add_argument("--out", type=Path, help="a Markdown file to write the table to")
    parser.add_argument("--quick", action="store_true", help="little work: whether it runs at all")
    options = parser.parse_args()
    child = [str(CHILD), *(["--quick"] if options.quick else [])]
    both = {"this": sys.executable, "other": options.other}
    rounds: list[dict[str, dict[str, float]]] = []
    for number in range(options.rounds):
        order = list(both) if number % 2 == 0 else list(both)[::-1]
        rounds.append({name: measured([both[name], *child]) for name in order})
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    text = table(rounds)
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n", encoding="utf-8")


def measured(command: list[str]) -> dict[str, float]:
    """The times of the version that an interpreter has, in nanoseconds."""
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=CHILD.parents[2])
    return json.loads(done.stdout)


def table(rounds: list[dict[str, dict[str, float]]]) -> str:
    lines = ["| what | this, ns | other, ns | this over other |", "|---|---|---|---|"]
    slower = []
    for what in rounds[0]["this"]:
        times = {name: min(each[name][what] for each in rounds) for name in ("this", "other")}
        ratios = sorted(each["this"][what] / each["other"][what] for each in rounds)
        lines.append(
            f"| {what} | {times['this']:,.1f} | {times['other']:,.1f} | "
            f"{median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f}); of the shortest times {times['this'] / times['other']:.2f} |"
        )
        if times["this"] > LIMIT * times["other"]:
            slower.append(what)
    verdict = f"slower than {LIMIT}×: {'; '.join(slower)}" if slower else f"none is slower than {LIMIT}×"
    return "\n".join([*lines, "", f"By the shortest times, {verdict}."])


if __name__ == "__main__":
    main()
