"""A sweep of agents from a TOML file: the arguments of `control.sweep` by their names."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from trueonline.control.gym.train.settings import TrainingSettings
from trueonline.control.studies.aggregates import aggregate, parameters
from trueonline.control.studies.sweeps import sweep
from trueonline.files import write_whole
from trueonline.study import results
from trueonline.study.checks import check_known
from trueonline.terminal import print_table
from trueonline.words import listed, number

# Not those of the command, and not what stands for all settings of agents.
OWN = {"engine", "threads", "out", "progress", "settings", "environment", "method", "evaluate"}
SETTINGS = {*inspect.signature(sweep).parameters, *TrainingSettings.__dataclass_fields__, "environments"} - OWN
CURVES = ("returns", "lengths")


def read(text: str) -> dict[str, Any] | None:
    """The arguments of `control.sweep` that a file holds. None if it is about no environments.

    Raises
    ------
    ValueError
        If a setting is unknown or missing.
    """
    given = tomllib.loads(text)
    if "environments" not in given:
        return None
    check_known("setting", given, SETTINGS)
    given["environment"] = given.pop("environments")
    missing = [name for name in ("agents", "step_sizes", "trace_decays") if name not in given]
    if missing:
        raise ValueError(f"a sweep of agents also needs {listed(missing)}")
    return given


def run(given: dict[str, Any], out: str, *, engine: str, threads: int | None, say: Callable[[str], None]) -> None:
    """Do what is missing of a sweep, leave its results in the folder `out`, and print the best settings in each environment."""
    table = sweep(**given, engine=engine, threads=threads, out=Path(out) / "tasks", progress=True)
    results.write(table.drop(list(CURVES)), f"{out}/results")
    write_whole(f"{out}/curves.parquet", lambda file: pq.write_table(table, file))
    rows, own = [], parameters(table)
    for environment in pc.unique(table["environment"]).to_pylist():
        ranked = aggregate(table.filter(pc.field("environment") == environment)).to_pylist()
        for agent in dict.fromkeys(row["agent"] for row in ranked):
            best = next(row for row in ranked if row["agent"] == agent)
            interval = f"{number(best['low'])} to {number(best['high'])}"
            setting = [best[name] for name in ("step_size", "trace_decay", *own)]
            rows.append(
                [environment, agent, number(best["iqm"]), interval, *("" if each is None else each for each in setting)]
            )
    print_table(["environment", "agent", "mean return", "95 % interval", "α", "λ", *own], rows)
    say("The mean return is the interquartile mean over the seeds.")
    say("The best of many settings was chosen by these seeds, so its return is too high on average.")
    say(
        f"All {table.num_rows:,} runs are in {out}/results.parquet and .csv, and with learning curves in {out}/curves.parquet."
    )
