"""Store the results that the documentation shows: `python -m benchmarks.store --help`, or `make results`.

The parts are `verify`, every experiment of the registry, and every section of the benchmarks. Each part is one command in a
process of its own. When it is done, its results go to docs/results/data, and then `about.json` there says how they were made.
That entry makes the part done: a part without it is run, and a part with it is not. So the same command resumes after a crash.
Parts that need a GPU, or recordings, are left out where there are none, and what is stored of them stays.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import machine
from benchmarks.__main__ import SECTIONS
from trueonline.files import write_whole
from trueonline.lab.registry import EXPERIMENTS
from trueonline.lab.reproduction import PACKAGES

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "results" / "data"
WORK = Path("reproduction") / "stored"  # below ROOT: a folder for each experiment, with what `reproduce` leaves there
SEED = 0
# Experiments that take long are stored at a smaller scale. Five runs are the fewest that can decide a claim. Experiments with
# many MRPs are stored at the scale that a GPU allows.
SCALES = {
    "many-mrps": ("--mrps", "1000", "--runs", "50", "--engine", "cuda"),
    "mrp-grid": ("--mrps", "40", "--runs", "10", "--engine", "cuda"),
    "mountain-car": ("--runs", "5"),
}
RECORDED = "benchmarks/atari_prediction"  # it needs recordings that are not part of this package
ON_GPU = ("many-mrps", "mrp-grid", "benchmarks/gpu")
COLOURS = 128  # of a stored picture: its files are a quarter as large, and nobody sees it
DIGITS = 5  # of a stored number
LARGE = 200_000  # bytes; a longer table is compressed


@dataclass(frozen=True)
class Part:
    """A part of the results: the module and its arguments, and what stores the output of the process."""

    command: Sequence[str]
    store: Callable[[str], None]
    private: Sequence[str] = ()  # arguments that name a place on this machine, which nobody needs to know
    captured: bool = False  # whether the results are what the process prints


def parts(data: Path, peers_python: str | None = None, actions: Path | None = None) -> dict[str, Part]:
    """All parts by name, in the order in which they run: the longest and the noisiest at the end."""
    recorded = () if actions is None else ("--actions", str(actions))
    peers = () if peers_python is None else ("--peers-python", peers_python)
    found = {"verify": Part(("trueonline", "verify", "--json", "--seed", str(SEED)), _verification(data), captured=True)}
    for name in EXPERIMENTS:
        command = ("trueonline", "reproduce", name, "--seed", str(SEED), *SCALES.get(name, ()), "--out", str(WORK / name))
        found[name] = Part(command, _experiment(data, name))
    for name in SECTIONS:
        file = data / "benchmarks.json"
        shown = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
        part = f"benchmarks/{name}"
        private = recorded if part == RECORDED else peers
        found[part] = Part(("benchmarks", name, "--json", str(shown)), lambda output: None, private)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.store", description="Run what is missing of the results that the documentation shows."
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="which to run, by default all; --list names them")
    parser.add_argument("--list", action="store_true", help="name the parts and when each was run")
    parser.add_argument("--again", action="store_true", help="forget these parts first, so that they are run again")
    parser.add_argument("--peers-python", metavar="PYTHON", help="as for python -m benchmarks")
    parser.add_argument(
        "--actions",
        type=Path,
        metavar="DIR",
        help=f"as for python -m benchmarks. {RECORDED} is left out without it",
    )
    parser.add_argument("--data", type=Path, default=DATA, metavar="DIR", help="the folder of the stored results")
    options = parser.parse_args()
    known = parts(options.data.resolve(), options.peers_python, options.actions and options.actions.resolve())
    unknown = [name for name in options.parts if name not in known]
    if unknown:
        parser.error(f"unknown part {unknown[0]!r}; known are {', '.join(known)}")
    about = options.data / "about.json"
    done = _read(about)
    if options.list:
        print("\n".join(f"{name:<24}{done[name]['machine']['date'] if name in done else '–'}" for name in known))
        return
    names, left_out = [], {}
    for name in options.parts or known:
        why = lacking(name, options.actions) if options.again or name not in done else None
        if why is None:
            names.append(name)
        elif options.parts:
            parser.error(f"{name} cannot be run: {why}")
        else:
            left_out.setdefault(why, []).append(name)
    for why, some in left_out.items():
        print(f"Left out: {', '.join(some)} ({why})")
    options.data.mkdir(parents=True, exist_ok=True)
    if options.again:
        _write(about, {name: entry for name, entry in _read(about).items() if name not in names})
        for name in EXPERIMENTS:
            if name in names:
                shutil.rmtree(ROOT / WORK / name, ignore_errors=True)
    failed = [name for name in names if name not in _read(about) and not run(name, known[name], about)]
    size = sum(path.stat().st_size for path in options.data.rglob("*") if path.is_file())
    print(f"{options.data}: {size / 1e6:.2f} MB")
    if failed:
        sys.exit(f"These parts failed: {', '.join(failed)}. Repair the cause, and run the same command again.")


def lacking(name: str, actions: Path | None) -> str | None:
    """The requirement of a part that is missing here. None if it can be run."""
    if name == RECORDED and actions is None:
        return "no recorded actions, see --actions"
    return without_gpu() if name in ON_GPU else None


@cache
def without_gpu() -> str | None:
    """Why no GPU can be used. None if one can. Asked in another process, which gives the GPU's memory back."""
    asked = "from trueonline.study.engines.cuda.device import gpu; gpu(0)"
    done = subprocess.run([sys.executable, "-c", asked], check=False, capture_output=True, text=True)
    return f"no GPU: {done.stderr.strip().rpartition('Error: ')[2]}" if done.returncode else None


def run(name: str, part: Part, about: Path) -> bool:
    """Run a part, store its results, and then enter it into `about`. False if it failed, and then nothing was entered."""
    shown = " ".join(part.command)
    print(f"\n=== {name}: {shown} ===", flush=True)
    made_on = {**machine.describe(), "packages": ", ".join(f"{package} {version(package)}" for package in PACKAGES)}
    begin = perf_counter()
    command = [sys.executable, "-m", *part.command, *part.private]
    done = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE if part.captured else None, text=True)
    seconds = perf_counter() - begin
    try:
        if done.returncode and not part.captured:  # verify ends with 1 if a method is not exact, and prints so: a result
            raise ValueError(f"exit status {done.returncode}")
        part.store(done.stdout or "")
    except (OSError, ValueError) as error:
        print(f"{name} failed after {seconds:.0f} s: {error}", file=sys.stderr, flush=True)
        return False
    entry = {"command": shown, "seconds": round(seconds, 1), "seed": SEED, "machine": made_on}
    _write(about, _read(about) | {name: entry})
    print(f"[{name}: {seconds:.0f} s]", flush=True)
    return True


def _verification(data: Path) -> Callable[[str], None]:
    return lambda output: _write(data / "verify.json", json.loads(output))


def _experiment(data: Path, name: str) -> Callable[[str], None]:
    """Store an experiment's pictures, tables and verdicts. Verdicts of other experiments stay."""

    def store(output: str) -> None:
        made, folder = ROOT / WORK / name / name, data / name
        files = {path.name: picture(path) for path in made.glob("*.png")}
        files |= dict(table(path) for path in made.glob("*.csv"))
        folder.mkdir(exist_ok=True)
        for file, content in files.items():
            _put(folder / file, content)
        for old in folder.iterdir():
            if old.name not in files:
                old.unlink()
        verdicts = json.loads((ROOT / WORK / name / "verdicts.json").read_text(encoding="utf-8"))
        others = [each for each in _read(data / "verdicts.json") if each["experiment"] != name]
        places = {known: place for place, known in enumerate(EXPERIMENTS)}
        _write(data / "verdicts.json", sorted([*others, *verdicts], key=lambda each: places[each["experiment"]]))

    return store


def picture(path: Path) -> bytes:
    """A PNG file with fewer colours."""
    from PIL import Image

    small = io.BytesIO()
    with Image.open(path) as image:
        image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(small, "png", optimize=True)
    return small.getvalue()


def table(path: Path) -> tuple[str, bytes]:
    """A CSV file with fewer digits: its name and content. A large one is compressed."""
    rounded = io.StringIO()
    with path.open(encoding="utf-8", newline="") as file:
        csv.writer(rounded, lineterminator="\n").writerows([_short(cell) for cell in row] for row in csv.reader(file))
    content = rounded.getvalue().encode()
    if len(content) <= LARGE:
        return path.name, content
    return f"{path.name}.gz", gzip.compress(content, mtime=0)


def _short(cell: str) -> str:
    """Integers and words stay as they are."""
    try:
        return cell if cell.lstrip("-").isdigit() else f"{float(cell):.{DIGITS}g}"
    except ValueError:
        return cell


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _write(path: Path, content: Any) -> None:
    _put(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def _put(path: Path, content: bytes) -> None:
    write_whole(path, lambda file: file.write(content))


if __name__ == "__main__":
    main()
