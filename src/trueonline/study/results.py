"""Tables of results: written as Parquet and CSV, and summed up with DuckDB."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from trueonline.files import write_whole

KEYS = ("method", "step_size", "trace_decay", "run", "error")


def write(table: pa.Table, path: str | Path) -> None:
    """The table as PATH.parquet and PATH.csv."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_whole(f"{path}.parquet", lambda file: pq.write_table(table, file))
    write_whole(f"{path}.csv", lambda file: pyarrow.csv.write_csv(table, file))


def query(sql: str, **tables: pa.Table) -> pa.Table:
    """The answer of DuckDB to a query over tables."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.sql(sql).to_arrow_table()


def best(table: pa.Table) -> str:
    """The best parameters of each method on each problem, as text."""
    labels = [f'"{name}"' for name in table.column_names if name not in KEYS]
    groups = ", ".join([*labels, "method"])
    rows = query(
        f"""
        WITH means AS (SELECT {groups}, step_size, trace_decay, avg(error) AS error FROM given GROUP BY ALL)
        SELECT {groups}, min(error) AS error, arg_min(step_size, error) AS step_size,
               arg_min(trace_decay, error) AS trace_decay
        FROM means GROUP BY ALL ORDER BY ALL
        """,
        given=table,
    )
    shown = [rows.column_names, *([_cell(value) for value in row.values()] for row in rows.to_pylist())]
    widths = [max(len(row[i]) for row in shown) for i in range(len(shown[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown
    )


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
