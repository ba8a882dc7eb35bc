"""The best rows of an experiment's table, for its report and its page in the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import pyarrow as pa

from trueonline.lab.style import NAMES

PARAMETERS = {"step_size": "α", "trace_decay": "λ", "eta": "η", "own": "η or β", "step": "step"}
HEADINGS = PARAMETERS | {
    "mrp": "MRP", "rms_error": "RMS error", "low": "95 %, from", "high": "to", "panel": "signal",
    "over_td0": "mean of the error over that of TD(0)", "distance": "distance of target",
    "advantage": "mean advantage over all k and b", "other": "compared with", "sigma": "σ",
}  # fmt: skip


@dataclass(frozen=True)
class BestRows:
    """Which rows are the best: the smallest `value` for each combination of the columns `by`.

    Parameters
    ----------
    by : sequence of str
        Columns. Each combination of their values has one best row.
    value : str
        The column that decides.
    mean_over : str, optional
        A column, such as the run. The value is then the mean over it.
    largest : bool
        The largest value is the best.
    names : str
        The ending that a method's name in the table lacks of its name in the catalogue.
    """

    by: Sequence[str]
    value: str
    mean_over: str | None = None
    largest: bool = False
    names: str = ""

    def of(self, data: pa.Table) -> tuple[str, list[str], list[list[Any]]]:
        """A sentence about the best rows of a table, their headings, and the rows themselves."""
        rows, known = data.to_pylist(), data.column_names
        parameters = [name for name in PARAMETERS if name in known and name not in self.by]
        bounds = [] if self.mean_over else [name for name in ("low", "high") if name in known]
        if self.mean_over is not None:
            groups: dict[tuple, list[dict[str, Any]]] = {}
            for row in rows:
                groups.setdefault(tuple(row[name] for name in (*self.by, *parameters)), []).append(row)
            rows = [{**group[0], self.value: fmean(row[self.value] for row in group)} for group in groups.values()]
        best: dict[tuple, dict[str, Any]] = {tuple(row[name] for name in self.by): {} for row in rows}
        for row in sorted(rows, key=lambda row: row[self.value], reverse=self.largest):
            place = tuple(row[name] for name in self.by)
            best[place] = best[place] or row
        columns = [*self.by, self.value, *bounds, *parameters]
        over = ", ".join(PARAMETERS[name] for name in parameters)
        which = f"{'largest' if self.largest else 'smallest'} {'mean ' if self.mean_over else ''}{heading(self.value)}"
        about = f"The {which} of each method over {over}:" if over else "Each row is one result:"
        return (
            about,
            [heading(name) for name in columns],
            [[self._cell(row[name]) for name in columns] for row in best.values()],
        )

    def _cell(self, value: Any) -> Any:
        """A method by its name in the catalogue. Other values stay as they are."""
        if not isinstance(value, str):
            return value
        return NAMES.get(value + self.names, NAMES.get(value, value.removeprefix("MRP ")))


def heading(column: str) -> str:
    """The name of a column as people read it."""
    return HEADINGS.get(column, column.replace("_", " "))
