"""Run the benchmarks: `python -m benchmarks --help`."""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import machine
from benchmarks.report import Section, Settings, as_data, as_text
from trueonline.files import write_whole

SECTIONS = (
    *("sparse", "flat", "dense", "update", "methods", "study", "exactness", "start_up", "peers", "atari"),
    *("atari_prediction", "mountain_car", "myoelectric", "horde", "live", "fleet", "auto", "faults", "derived"),
    *("deep", "family", "swift", "gpu"),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Time trueonline side by side with other ways of doing the same."
    )
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"which to run, by default all: {', '.join(SECTIONS)}"
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller sizes: does it run at all?")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="a file for the results, which is written after each section; sections that it has already, and that are not "
        "measured now, stay. Pictures go into a folder beside FILE with the same name without its ending",
    )
    parser.add_argument(
        "--peers-python",
        default=sys.executable,
        metavar="PYTHON",
        help="the interpreter of an environment that has the packages of `peers` and `mountain_car`; by default this one",
    )
    parser.add_argument(
        "--actions", type=Path, metavar="DIR", help="the folder of recorded actions that `atari_prediction` needs"
    )
    parser.add_argument(
        "--frames",
        type=int,
        default=60_000,
        metavar="N",
        help="for `atari_prediction`: frames of each game, 60,000 by default",
    )
    options = parser.parse_args()
    unknown = [name for name in options.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"unknown section {unknown[0]!r}; known are {', '.join(SECTIONS)}")
    names = options.sections or SECTIONS

    about = machine.describe()
    print("\n".join(f"{name:>12}: {value}" for name, value in about.items()) + "\n")
    pictures = None if options.json is None else options.json.with_suffix("")
    settings = Settings(options.quick, pictures, options.peers_python, options.actions, options.frames)
    targets = []
    for name in names:
        begin = perf_counter()
        section = import_module(f"benchmarks.{name}").measure(settings)
        seconds = perf_counter() - begin
        print(as_text(section), flush=True)
        print(f"[{name}: {seconds:.0f} s]\n", file=sys.stderr)
        targets += section.targets
        if options.json is not None:
            measured = {"machine": about, "rounds": settings.rounds, "quick": options.quick, "seconds": round(seconds, 1)}
            keep(options.json, name, as_data(section) | measured)

    print(as_text(Section("All targets", f"{sum(t.met for t in targets)} of {len(targets)} met.", targets=targets)))


def keep(path: Path, name: str, section: dict[str, Any]) -> None:
    """Put a section into a file of results, in the order of the sections."""
    sections = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    sections[name] = section
    ordered = {known: sections[known] for known in SECTIONS if known in sections}
    text = json.dumps(ordered, indent=1, ensure_ascii=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda file: file.write(text.encode()))


if __name__ == "__main__":
    main()
