"""Tables of results: written as Parquet and CSV, and summed up with DuckDB."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from trueonline.files import write_whole
from trueonline.study.tasks import SCHEMA


def write(table: pa.Table, path: str | Path) -> None:
    """Write a table to PATH.parquet and PATH.csv."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_whole(f"{path}.parquet", lambda file: pq.write_table(table, file))
    write_whole(f"{path}.csv", lambda file: pyarrow.csv.write_csv(table, file))


def query(sql: str, **tables: pa.Table) -> pa.Table:
    """Ask DuckDB about tables.

    Parameters
    ----------
    sql : str
        The query.
    **tables : pyarrow.Table
        The tables, by the names that the query uses.

    Returns
    -------
    pyarrow.Table
    """
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.sql(sql).to_arrow_table()


def labels(table: pa.Table) -> list[str]:
    """The columns that tell one problem from another."""
    return [name for name in table.column_names if name not in SCHEMA.names]


def _quoted(name: str) -> str:
    """The name of a column, as SQL wants it."""
    return '"{}"'.format(name.replace('"', '""'))


def means(table: pa.Table) -> pa.Table:
    """The mean error over the runs at each point of the grid, and its standard error.

    Parameters
    ----------
    table : pyarrow.Table
        The results of a sweep.

    Returns
    -------
    pyarrow.Table
        The labels, `method`, `step_size`, `trace_decay`, `error` and `standard_error`, which is missing for a single run
        and where a run diverged.
    """
    groups = ", ".join([*map(_quoted, labels(table)), "method", "step_size", "trace_decay"])
    rows = query(
        f"SELECT {groups}, avg(error) AS error, list(error) AS errors FROM results GROUP BY ALL ORDER BY ALL",
        results=table,
    )
    spread = [standard_error(np.array(errors)) for errors in rows["errors"].to_pylist()]
    return rows.drop_columns(["errors"]).append_column("standard_error", pa.array(spread, pa.float64()))


def best(table: pa.Table) -> pa.Table:
    """The parameters with the least mean error, for each method on each problem.

    Parameters
    ----------
    table : pyarrow.Table
        The results of a sweep.

    Returns
    -------
    pyarrow.Table
        The labels, `method`, `error`, `standard_error`, `step_size` and `trace_decay`: a row for each method and problem.
    """
    groups = ", ".join([*map(_quoted, labels(table)), "method"])
    return query(
        f"""
        SELECT {groups}, min(error) AS error, arg_min_null(standard_error, error) AS standard_error,
               arg_min(step_size, error) AS step_size, arg_min(trace_decay, error) AS trace_decay
        FROM means GROUP BY ALL ORDER BY ALL
        """,
        means=means(table),
    )


def standard_error(values: np.ndarray) -> float | None:
    """The standard error of a mean; None for one value, and where values are not finite or too large to square."""
    if len(values) < 2 or not np.isfinite(values).all():
        return None
    with np.errstate(over="ignore"):
        spread = float(values.std(ddof=1) / np.sqrt(len(values)))
    return spread if np.isfinite(spread) else None
