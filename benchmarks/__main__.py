"""Run the benchmarks: `python -m benchmarks --help`."""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path
from time import perf_counter

from benchmarks import machine
from benchmarks.report import Section, Settings, as_data, as_markdown, as_text, markdown_table, summary
from trueonline.files import write_whole

SECTIONS = (
    "sparse",
    "flat",
    "dense",
    "update",
    "methods",
    "study",
    "exactness",
    "start_up",
    "peers",
    "memory",
    "atari",
    "mountain_car",
    "myoelectric",
    "horde",
    "live",
    "auto",
    "derived",
    "family",
)
RESULTS = Path(__file__).with_name("results")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Time trueonline side by side with other ways of doing the same."
    )
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"which to run, by default all: {', '.join(SECTIONS)}"
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller sizes: does it run at all?")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where to write results.md, results.json and figures; by default benchmarks/results for a complete run, "
        "and nowhere for a quick or partial one, which should not replace the complete results",
    )
    parser.add_argument(
        "--peers-python",
        default=sys.executable,
        metavar="PYTHON",
        help="the interpreter of an environment that has the packages of `peers` and `mountain_car`; by default this one",
    )
    options = parser.parse_args()
    unknown = [name for name in options.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"unknown section {unknown[0]!r}; known are {', '.join(SECTIONS)}")
    names = options.sections or SECTIONS
    out = options.out or (None if options.quick or options.sections else RESULTS)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)

    about = machine.describe()
    print("\n".join(f"{name:>12}: {value}" for name, value in about.items()) + "\n")
    settings = Settings(options.quick, out, options.peers_python)
    sections: dict[str, Section] = {}
    for name in names:
        begin = perf_counter()
        sections[name] = import_module(f"benchmarks.{name}").measure(settings)
        print(as_text(sections[name]), flush=True)
        print(f"[{name}: {perf_counter() - begin:.0f} s]\n", file=sys.stderr)

    targets = [target for section in sections.values() for target in section.targets]
    print(as_text(Section("All targets", f"{sum(t.met for t in targets)} of {len(targets)} met.", targets=targets)))
    if out is not None:
        write(out, about, sections)
        print(f"Written to {out / 'results.md'} and results.json beside it.")


def write(out: Path, about: dict[str, str], sections: dict[str, Section]) -> None:
    targets = [target for section in sections.values() for target in section.targets]
    text = "\n".join(
        [
            "# Benchmarks\n",
            "Written by `python -m benchmarks`. Ratios are within one run: the median over rounds (smallest–largest).\n",
            *(f"- {name}: {value}" for name, value in about.items()),
            f"\n## Targets\n\n{sum(t.met for t in targets)} of {len(targets)} met.\n",
            markdown_table(summary(targets)) + "\n",
            *map(as_markdown, sections.values()),
        ]
    )
    data = {"machine": about, "sections": {name: as_data(section) for name, section in sections.items()}}
    write_whole(out / "results.md", lambda file: file.write(text.encode()))
    write_whole(out / "results.json", lambda file: file.write(json.dumps(data, indent=1, ensure_ascii=False).encode()))


if __name__ == "__main__":
    main()
