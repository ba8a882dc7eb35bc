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


def read(table: Any, columns: Sequence[str] = SCHEMA.names) -> pa.Table:
    """The results of a sweep, as a table or a data frame.

    Parameters
    ----------
    table : pyarrow.Table, or data frame of pandas, polars or another package with Arrow
        The results.
    columns : sequence of str
        The columns that they must have, with a value in every row.

    Returns
    -------
    pyarrow.Table
        The results.

    Raises
    ------
    ValueError
        If it is not a table, or if a column or a value is missing.
    """
    found = pa.table(table) if hasattr(table, "__arrow_c_stream__") else None
    if found is None:
        raise ValueError(f"table must be the results of a sweep, a table or a data frame, got {table!r:.80}")
    texts = {pa.large_string(), pa.string_view()}  # of polars, which pyarrow cannot sort
    fields = [field.with_type(pa.string()) if field.type in texts else field for field in found.schema]
    found = found.cast(pa.schema(fields))
    found = found.select([name for name in found.column_names if not name.startswith("__index_level")])  # of pandas
    for name in columns:
        if name not in found.column_names:
            raise ValueError(f"table has no column {name!r}, as the results of a sweep have; it has {found.column_names}")
        if found[name].null_count:
            row = found[name].is_null().to_pylist().index(True)
            advice = f"leave such rows out, by table.filter(pyarrow.compute.field({name!r}).is_valid())"
            raise ValueError(f"{name} is missing in row {row} of the table: {advice}")
    return found


def labels(table: pa.Table) -> list[str]:
    """The columns that tell one problem from another."""
    return [name for name in table.column_names if name not in SCHEMA.names and name not in parameters(table)]


def parameters(table: pa.Table) -> list[str]:
    """The columns of parameters: numbers, as labels are texts."""
    return [field.name for field in table.schema if field.name not in SCHEMA.names and field.type == pa.float64()]


def problems(table: pa.Table) -> dict[tuple[str, ...], pa.Table]:
    """The results on each problem, by the problem's labels."""
    names = labels(table)
    if not names:
        return {(): table}
    keys = [tuple(row.values()) for row in table.select(names).to_pylist()]
    return {key: table.filter(pa.array([each == key for each in keys])) for key in dict.fromkeys(keys)}


def runs(table: pa.Table) -> int:
    """The number of runs of each point of the grid."""
    return len(pc.unique(table["run"]))


def remarks(table: pa.Table, remedy: str) -> list[str]:
    """What a reader of the best settings should know: what ± is, and that the best is chosen by luck too."""
    n = runs(table)
    keys = [*labels(table), "method"]
    points = table.group_by([*keys, "step_size", "trace_decay", *parameters(table)]).aggregate([]).group_by(keys)
    settings = max(points.aggregate([([], "count_all")])["count_all"].to_pylist(), default=1)
    remark = f"± is half of a 95 % interval over {n:,} runs." if n > 1 else "One run says nothing about how sure this is."
    if settings == 1:
        return [remark]
    chosen = f"The best of {settings:,} settings was chosen by these runs, so its error is too low on average."
    return [f"{remark} {chosen}", f"{remedy} judges it by fresh runs."]


def means(table: pa.Table, interval: float = 0.95) -> pa.Table:
    """The mean error over the runs at each point of the grid, and half of an interval for it.

    Parameters
    ----------
    table : pyarrow.Table
        The results of a sweep.
    interval : float
        The level of the interval, by Student's t.

    Returns
    -------
    pyarrow.Table
        The labels, `method`, `step_size`, `trace_decay`, parameters, `error` and `half_width`, which is missing for a single
        run and where a run diverged.
    """
    keys = [*labels(table), "method", "step_size", "trace_decay", *parameters(table)]
    grouped = _sorted(table.group_by(keys, use_threads=False).aggregate([("error", "list")]), keys)
    errors = [np.array(each) for each in grouped["error_list"].to_pylist()]
    with np.errstate(over="ignore"):
        mean = [each.mean() for each in errors]
    found = grouped.select(keys).append_column("error", pa.array(mean, pa.float64()))
    return found.append_column("half_width", pa.array([half_width(each, interval) for each in errors], pa.float64()))


def best(table: pa.Table) -> pa.Table:
    """The parameters with the least mean error, for each method on each problem.

    Parameters
    ----------
    table : pyarrow.Table
        The results of a sweep.

    Returns
    -------
    pyarrow.Table
        The labels, `method`, `error`, `half_width` of its 95 % interval, `step_size`, `trace_decay` and parameters: a row for
        each method and problem.
    """
    keys = [*labels(table), "method"]
    columns = ("error", "half_width", "step_size", "trace_decay", *parameters(table))
    ordered = _sorted(means(table), [*keys, "error"])
    with_missing = pc.ScalarAggregateOptions(skip_nulls=False)
    firsts = ordered.group_by(keys, use_threads=False).aggregate([(name, "first", with_missing) for name in columns])
    return firsts.select([*keys, *(f"{name}_first" for name in columns)]).rename_columns([*keys, *columns])


def _sorted(table: pa.Table, names: Sequence[str]) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in names])


def half_width(values: np.ndarray, interval: float = 0.95) -> float | None:
    """Half of an interval for a mean, by Student's t. None for one value, and where values are infinite or too large to square."""
    if not 0.0 < interval < 1.0:
        raise ValueError(f"interval must be between 0 and 1, such as 0.95, got {interval!r}")
    if len(values) < 2 or not np.isfinite(values).all():
        return None
    from scipy.stats import t

    with np.errstate(over="ignore"):
        spread = float(t.ppf(0.5 + interval / 2.0, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return spread if np.isfinite(spread) else None


def student_interval(values: np.ndarray) -> tuple[Any, Any, Any]:
    """The mean over the first axis, and the ends of its 95 % interval by Student's t. One value has no interval: they are NaN."""
    stats = optional("intervals by Student's t need SciPy", "scipy.stats", extra="sparse")
    mean, n = np.asarray(values.mean(axis=0)), len(values)
    spread = stats.t.ppf(0.975, n - 1) * stats.sem(values) if n > 1 else mean * np.nan
    return mean, mean - spread, mean + spread
