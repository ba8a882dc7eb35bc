"""A sweep at a glance: the best parameters of each method, and in a notebook the error over the step-size."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass

import pyarrow as pa

from trueonline import notebook
from trueonline.study.tasks import SCHEMA
from trueonline.words import count


@dataclass(frozen=True, eq=False)
class Summary:
    """The results of a sweep at a glance. A notebook shows a table and a picture.

    Parameters
    ----------
    table : pyarrow.Table or data frame
        The results, as `trueonline.sweep` returns them, or a data frame of them.

    Raises
    ------
    ValueError
        If a column of the results, or a value in it, is missing.

    Examples
    --------
    >>> import trueonline as to
    >>> table = to.sweep(to.problems.random_walk(), methods=("true_online",), step_sizes=(0.1, 0.3), trace_decays=(0.8,), runs=5)
    >>> print(to.study.Summary(table))
    true_online: error 0.494 ± 0.0309 with step_size 0.3, trace_decay 0.8
    ± is half of a 95 % interval over 5 runs. The best of 2 settings was chosen by these runs, so its error is too low on average.
    sweep(…, confirm=50) judges it by fresh runs.
    """

    table: pa.Table

    def __post_init__(self) -> None:
        from trueonline.study import results

        object.__setattr__(self, "table", results.read(self.table))

    @property
    def best(self) -> pa.Table:
        """The parameters with the least mean error: a row for each method on each problem."""
        from trueonline.study import results

        return results.best(self.table)

    def __str__(self) -> str:
        from trueonline.study import results

        labels, parameters = results.labels(self.table), results.parameters(self.table)
        lines = [
            f"{', '.join([*(str(row[name]) for name in labels), row['method']])}: error {row['error']:.4g}"
            + (f" ± {row['half_width']:.3g}" if row["half_width"] is not None else "")
            + f" with step_size {row['step_size']:g}, trace_decay {row['trace_decay']:g}"
            + "".join(f", {name} {row[name]:g}" for name in parameters if row[name] is not None)
            for row in self.best.to_pylist()
        ]
        return "\n".join([*lines, *results.remarks(self.table, "sweep(…, confirm=50)")])

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows."""
        from trueonline.study import results, sweep_figure

        if not self.table.num_rows:
            return notebook.heading("No results")
        best, drawn = self.best, io.BytesIO()
        sweep_figure.save(self.table, drawn, "svg")
        rows = [list(row.values()) for row in best.to_pylist()]
        title = f"Best parameters of each method (mean error over {count(results.runs(self.table), 'run')})"
        columns = ["±" if name == "half_width" else name.replace("_", " ") for name in best.column_names]
        return notebook.table(columns, rows, title) + notebook.picture(drawn.getvalue(), "Error over the step-size")


def show_in_notebooks() -> None:
    """Let a notebook show the table of a sweep as its summary: a pyarrow table has no such picture, and cannot be given one."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None:
        shell.display_formatter.formatters["text/html"].for_type(pa.Table, _as_html)


def _as_html(table: pa.Table) -> str | None:
    """The summary of a sweep. None for any other table, which is then shown as before."""
    if not set(table.column_names) >= set(SCHEMA.names) or any(table[name].null_count for name in SCHEMA.names):
        return None
    return Summary(table)._repr_html_()
