"""Calls of `trueonline predict`, and a recording to predict from."""

import json
import subprocess
import sys

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
from click.testing import CliRunner

from tests.processes import start
from trueonline.cli import main

COMMAND = ["--rate", "40", "--signals", "a,b,c", "--target", "force", "--discount", "0.97", "--method", "true_online"]
COMMAND += ["--step-size", "0.1", "--trace-decay", "0.9", "--tilings", "8", "--bins", "10", "--features", "200000"]


def recording(rows=3000, seed=0):
    """Three signals that tell something about a fourth."""
    rng = np.random.default_rng(seed)
    t = np.arange(rows) / 40
    slow = np.cumsum(rng.normal(size=rows)) * 0.05
    columns = {"a": np.sin(2 * t), "b": np.cos(0.7 * t) + 0.02 * rng.normal(size=rows), "c": slow}
    return {**columns, "force": 2.0 + np.sin(2 * t + 0.4) + 0.1 * rng.normal(size=rows)}


def predict(*arguments, fails=False):
    result = CliRunner().invoke(main, ["predict", *map(str, arguments)])
    if fails:
        assert result.exit_code != 0
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.stderr
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout) if "--json" in arguments else result.stdout


def read(path):
    found = pq.read_table(path) if str(path).endswith("parquet") else pyarrow.csv.read_csv(path)
    return {name: found[name].to_numpy() for name in found.column_names}


def started(*arguments, **options):
    command = [sys.executable, "-m", "trueonline", "predict", *map(str, arguments)]
    return start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
