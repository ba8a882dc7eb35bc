"""Tables of results: written as Parquet and CSV, and summed up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from trueonline.files import write_whole
from trueonline.optional import optional
from trueonline.study.tasks import SCHEMA


def write(table: pa.Table, path: str | Path) -> None:
    """Write a table to PATH.parquet and PATH.csv."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_whole(f"{path}.parquet", lambda file: pq.write_table(table, file))
    write_whole(f"{path}.csv", lambda file: pyarrow.csv.write_csv(table, file))


def labels(table: pa.Table) -> list[str]:
    """The columns that tell one problem from another."""
    return [name for name in table.column_names if name not in SCHEMA.names and name not in parameters(table)]


def parameters(table: pa.Table) -> list[str]:
    """The columns of parameters: numbers, as labels are texts."""
    return [field.name for field in table.schema if field.name not in SCHEMA.names and field.type == pa.float64()]


def means(table: pa.Table) -> pa.Table:
    """The mean error over the runs at each point of the grid, and its standard error.

    Parameters
    ----------
    table : pyarrow.Table
        The results of a sweep.

    Returns
    -------
    pyarrow.Table
        The labels, `method`, `step_size`, `trace_decay`, parameters, `error` and `standard_error`, which is missing for a single
        run and where a run diverged.
    """
    keys = [*labels(table), "method", "step_size", "trace_decay", *parameters(table)]
    grouped = _sorted(table.group_by(keys, use_threads=False).aggregate([("error", "list")]), keys)
    errors = [np.array(each) for each in grouped["error_list"].to_pylist()]
    with np.errstate(over="ignore"):
        mean = [each.mean() for each in errors]
    found = grouped.select(keys).append_column("error", pa.array(mean, pa.float64()))
    return found.append_column("standard_error", pa.array([standard_error(each) for each in errors], pa.float64()))


def best(table: pa.Table) -> pa.Table:
    """The parameters with the least mean error, for each method on each problem.

    Parameters
    ----------
    table : pyarrow.Table
        The results of a sweep.

    Returns
    -------
    pyarrow.Table
        The labels, `method`, `error`, `standard_error`, `step_size`, `trace_decay` and parameters: a row for each method and
        problem.
    """
    keys = [*labels(table), "method"]
    columns = ("error", "standard_error", "step_size", "trace_decay", *parameters(table))
    ordered = _sorted(means(table), [*keys, "error"])
    with_missing = pc.ScalarAggregateOptions(skip_nulls=False)
    firsts = ordered.group_by(keys, use_threads=False).aggregate([(name, "first", with_missing) for name in columns])
    return firsts.select([*keys, *(f"{name}_first" for name in columns)]).rename_columns([*keys, *columns])


def _sorted(table: pa.Table, names: Sequence[str]) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in names])


def standard_error(values: np.ndarray) -> float | None:
    """The standard error of a mean; None for one value, and where values are not finite or too large to square."""
    if len(values) < 2 or not np.isfinite(values).all():
        return None
    with np.errstate(over="ignore"):
        spread = float(values.std(ddof=1) / np.sqrt(len(values)))
    return spread if np.isfinite(spread) else None


def student_interval(values: np.ndarray) -> tuple[Any, Any, Any]:
    """The mean over the first axis, and the ends of its 95 % interval by Student's t. One value has no interval: they are NaN."""
    stats = optional("intervals by Student's t need SciPy", "scipy.stats", extra="sparse")
    mean, n = np.asarray(values.mean(axis=0)), len(values)
    spread = stats.t.ppf(0.975, n - 1) * stats.sem(values) if n > 1 else mean * np.nan
    return mean, mean - spread, mean + spread
