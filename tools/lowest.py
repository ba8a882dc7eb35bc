"""Runs tests with the lowest versions that pyproject.toml allows: `make test-lowest`.

uv resolves the lowest version of each package that this one names, and the newest of all others, for the lowest Python. The
installed versions are printed, so that a failure names its versions.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.environments import ROOT, Environment, find_python, run, supported

# The tests that a bound can break: those of everything that calls another package. Tests of single sources, pages and studies add
# nothing to this.
TESTS = (
    *("core", "methods", "learners", "forward", "checks", "features", "problems", "study", "cli", "derivation"),
    *("lab/report", "streams/sources/test_csv.py", "streams/sources/test_parquet.py", "streams/test_predict.py"),
    *("streams/test_predict_resuming.py", "streams/test_predict_options.py", "streams/test_horde.py"),
    *("streams/test_predictor.py", "streams/mixture", "streams/live/test_feed.py", "control/gym", "lab/test_paper.py"),
)
TOOLS = ("hypothesis", "numpydoc", "psutil", "pytest", "pytest-xdist", "pyyaml", "selenium")  # their newest versions


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.lowest", description=__doc__)
    parser.add_argument("--jobs", default="2", help="Processes that run the tests side by side.")
    parser.add_argument("tests", nargs="*", help="Files and folders, by default those that use other packages.")
    chosen = parser.parse_args()
    version = supported()[0]
    interpreter = find_python(version)
    if interpreter is None:
        sys.exit(f"Python {version} is not here, and the lowest versions are those of the lowest Python: install it")
    with tempfile.TemporaryDirectory(prefix="trueonline-lowest-") as folder:
        lowest = Path(folder, "lowest.txt")
        run(
            *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--resolution", "lowest-direct", "--extra", "all"),
            *(
                "--python-version",
                version,
                "--no-header",
                "--no-annotate",
                "--output-file",
                lowest,
                ROOT / "pyproject.toml",
            ),
            stdout=subprocess.DEVNULL,
        )
        print(f"Python {version} with:\n{lowest.read_text('utf-8')}", flush=True)
        environment = Environment(Path(folder, "environment"), interpreter)
        environment.install("--requirement", lowest, "--editable", ROOT, *TOOLS)
        tests = chosen.tests or [f"tests/{name}" for name in TESTS]
        pytest = ("-m", "pytest", "-m", "not slow", "-q", "-n", chosen.jobs, "--dist", "loadfile")
        pytest += ("-W", "ignore::DeprecationWarning")  # old packages call what newer ones below them have deprecated
        run(environment.python, *pytest, *tests, cwd=ROOT)


if __name__ == "__main__":
    main()
