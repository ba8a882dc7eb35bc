"""Plants mistakes in a copy of the source, one at a time, and counts those that the tests notice: `python -m tools.mutants`.

A mutant is the source with one mistake (`tools/mistakes.py`). The tests of its folder run until one fails. A table shows the share
of mutants that a test noticed. Below are the mutants that survived. A mutant that survives lacks a test, or changes no behaviour.

Each finished mutant is a line of the file of results, so a run that was killed resumes. Results belong to one tree and its tests.
After a change, name another file, or delete the lines of the mutants to try again. A test that fails without a mutant too does
not count.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from importlib.util import cache_from_source
from pathlib import Path
from threading import Lock
from typing import Any

from tools.environments import ROOT
from tools.mistakes import KINDS, Mutant, choose
from trueonline.terminal import print_table

# The tests that could notice a mistake in a folder. A folder of tests stands for its files, without the folders below it.
TESTS = {
    "methods": ("methods", "checks", "test_catalog.py", "learners", "study/test_sweep_body.py", "control", "forward"),
    "core": ("core", "methods", "checks", "learners", "study/test_sweep_body.py", "study/test_task_names.py",
             "test_catalog.py", "control", "streams/test_horde.py"),
    "learners": ("learners", "methods", "checks", "test_catalog.py", "control", "forward", "streams/test_predictor.py",
                 "derivation/test_derive_diagonal.py"),
    "inputs": ("learners", "features", "problems", "forward", "methods", "control", "study/test_study.py", "streams/test_horde.py"),
    "study": ("study", "study/cuda", "lab/test_paper.py", "learners/test_own_methods.py"),
    "forward": ("forward", "checks", "test_catalog.py", "methods", "learners", "control"),
    "files": ("learners/test_saving.py", "control/test_agent_saving.py", "streams/test_output.py", "study/test_writer.py",
              "study/test_survival.py", "streams/test_predict_resuming.py", "streams/test_alerts.py", "test_hostile.py"),
}  # fmt: skip
# Keeps the order of the command, which the project's own hook changes, and puts tests last that are apart.
ORDER = """\n
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.get_closest_marker("apart") is not None)
"""
RUNNING: set[subprocess.Popen] = set()


class Copy:
    """A copy of the tree. The folder for compiled kernels beside it is kept from run to run, because kernels know their sources."""

    def __init__(self, source: Path, folder: Path, limit: float) -> None:
        self.tree, self._log, self._limit = folder / "tree", folder / "log", limit
        shutil.rmtree(self.tree, ignore_errors=True)
        left_out = shutil.ignore_patterns(".git", ".venv", ".hypothesis", "__pycache__", "_build", "dist")
        shutil.copytree(source, self.tree, ignore=left_out)
        with (self.tree / "conftest.py").open("a", encoding="utf-8") as file:
            file.write(ORDER)
        self._variables = {"PYTHONPATH": str(self.tree / "src"), "NUMBA_CACHE_DIR": str(folder / "kernels")}

    def run(self, *arguments: str) -> tuple[int | None, str]:
        """Run Python. Its status, or None if it took too long, and its output."""
        options: Any = {"cwd": self.tree, "env": {**os.environ, **self._variables}, "start_new_session": True}
        with self._log.open("wb") as log:
            process = subprocess.Popen([sys.executable, *arguments], stdout=log, stderr=log, **options)
        RUNNING.add(process)
        with suppress(subprocess.TimeoutExpired):
            process.wait(self._limit)
        status = process.poll()
        end(process)
        return status, self._log.read_text("utf-8", errors="replace")

    def test(self, *tests: str) -> tuple[int | None, str]:
        """Run tests until one fails. The status of pytest, and the name of the test."""
        shutil.rmtree(self.tree / ".hypothesis", ignore_errors=True)  # examples that other mutants failed
        options = ("-x", "-q", "--tb=no", "-m", "not slow", "-p", "no:cacheprovider", "--hypothesis-seed=0")
        status, output = self.run("-m", "pytest", *options, *tests)
        if status in (4, 5):
            raise RuntimeError(f"pytest found no tests:\n{output}")
        failed = re.search(r"^(?:FAILED|ERROR) ([^\s\[]+(?:\[.*?\])?)(?= - |$)", output, re.MULTILINE)
        return status, failed[1] if failed else f"status {status}"

    def write(self, mutant: Mutant, content: bytes) -> None:
        """Write the mutant's file, and remove its bytecode, which Python would use if time and length were the same."""
        path = self.tree / "src" / "trueonline" / mutant.file
        path.write_bytes(content)
        Path(cache_from_source(str(path))).unlink(missing_ok=True)

    def attempt(self, mutant: Mutant, results: Results) -> dict[str, Any]:
        """The outcome of a mutant: noticed, survived, or unusable because its module cannot be imported."""
        module = f"trueonline/{mutant.file}".removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        original = (self.tree / "src" / "trueonline" / mutant.file).read_bytes()
        tests, begin = tests_for(self.tree, mutant), time.monotonic()
        while True:
            self.write(mutant, mutant.planted(original))
            imported, _ = self.run("-c", f"import trueonline; trueonline.TrueOnlineTD; import {module}")
            left_out = [f"--deselect={name}" for name in results.failing]
            status, test = self.test(*tests, *left_out) if imported == 0 else (0, "")
            self.write(mutant, original)
            if status == 0:
                outcome = "survived" if imported == 0 else "unusable"
                return {"outcome": outcome, "seconds": round(time.monotonic() - begin)}
            if "::" not in test or results.passes(test, self):
                return {"outcome": "noticed", "by": test, "seconds": round(time.monotonic() - begin)}


def end(process: subprocess.Popen) -> None:
    """Kill a process and the processes that it has left behind."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    RUNNING.discard(process)


def stop(*_: Any) -> None:
    """End this program, all threads included."""
    for process in list(RUNNING):
        end(process)
    os._exit(1)


def tests_for(tree: Path, mutant: Mutant) -> list[str]:
    """The files of tests that could notice a mutant: the examples in its own file, then tests that name its module most often."""
    word = Path(mutant.file).stem.replace("_", "")
    places = [tree / "tests" / name for name in TESTS[mutant.folder]]
    files = dict.fromkeys(
        path for each in places for path in (sorted(each.glob("test_*.py")) or [each]) if path.is_file()
    )
    order = sorted(files, key=lambda path: -path.read_text("utf-8").replace("_", "").lower().count(word))
    return [path.relative_to(tree).as_posix() for path in (tree / "src" / "trueonline" / mutant.file, *order)]


class Results:
    """The file of results: a line for each mutant that was tried, and for each test that noticed one."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        self._lines: list[dict[str, Any]] = [
            json.loads(line) for line in lines if line.endswith("}")
        ]  # a kill cuts the last

    def add(self, **line: Any) -> None:
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            self._lines.append(line)
            file.write(f"\n{json.dumps(line, ensure_ascii=False)}")  # not after a line that a kill has cut

    @property
    def outcomes(self) -> dict[str, str]:
        return {line["name"]: line["outcome"] for line in self._lines if "name" in line}

    @property
    def failing(self) -> list[str]:
        return [line["test"] for line in self._lines if line.get("passes") is False]

    def passes(self, test: str, copy: Copy) -> bool:
        """Whether a test passes without a mutant, which is tried once."""
        known = {line["test"]: line["passes"] for line in self._lines if "test" in line}
        if test not in known:
            known[test] = copy.test(test)[0] == 0
            self.add(test=test, passes=known[test])
        return known[test]


def summarise(chosen: list[Mutant], outcomes: dict[str, str]) -> None:
    """Print the shares that are noticed, and the mutants that survive."""
    done = [mutant for mutant in chosen if mutant.name in outcomes]
    rows: list[tuple] = []
    for group in ("all", *dict.fromkeys(mutant.folder for mutant in chosen), *KINDS):
        told = [outcomes[m.name] == "noticed" for m in done if group in ("all", m.folder, m.kind)]
        rows.append((group, len(told), sum(told), f"{sum(told) / len(told):.0%}" if told else None))
    print_table(("mistakes", "tried", "noticed", "share"), rows, f"{len(done)} of {len(chosen)} mutants")
    for mutant in done:
        if outcomes[mutant.name] == "survived":
            print(f"\n{mutant.name} survives: {mutant.file}:{mutant.line}, {mutant.kind}\n    {mutant.change}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, default=84, help="How many mutants.")
    parser.add_argument("--folders", nargs="+", default=list(TESTS), choices=list(TESTS))
    parser.add_argument("--jobs", type=int, default=1, help="How many mutants are tried side by side.")
    parser.add_argument("--source", type=Path, default=ROOT, help="The tree. Nothing is written there.")
    parser.add_argument("--out", type=Path, default=Path("mutants.jsonl"), help="The file of results.")
    parser.add_argument("--minutes", type=float, default=60.0, help="A mutant whose tests take longer counts as noticed.")
    parser.add_argument("--list", action="store_true", help="Print the mutants and the results so far, and try nothing.")
    asked = parser.parse_args()
    results, lock, begun = Results(asked.out), Lock(), {""}

    def chosen() -> list[Mutant]:
        unusable = [name for name, outcome in results.outcomes.items() if outcome == "unusable"]
        return choose(asked.source, asked.folders, asked.number, asked.seed, unusable)

    def work(job: int) -> None:
        copy = Copy(asked.source, Path(f"{asked.out}.work", str(job)).resolve(), 60.0 * asked.minutes)
        while True:
            with lock:
                mutant = next((m for m in chosen() if m.name not in {*begun, *results.outcomes}), None)
                if mutant is None:
                    return
                begun.add(mutant.name)
            about = {key: value for key, value in asdict(mutant).items() if key not in ("start", "end", "text")}
            results.add(name=mutant.name, **about, **copy.attempt(mutant, results))
            print(mutant.name, results.outcomes[mutant.name], f"{mutant.file}:{mutant.line}", mutant.kind, flush=True)

    if asked.list:
        for mutant in chosen():
            print(mutant.name, results.outcomes.get(mutant.name, "-"), f"{mutant.file}:{mutant.line}", mutant.kind)
    else:
        os.nice(19)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        with ThreadPoolExecutor(asked.jobs) as pool:
            list(pool.map(work, range(asked.jobs)))
    summarise(chosen(), results.outcomes)


if __name__ == "__main__":
    main()
