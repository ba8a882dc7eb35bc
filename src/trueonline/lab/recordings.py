"""Recordings of an arm: five signals at 40 Hz, simulated or read from a file.

**A file** (CSV, also compressed, or Parquet) has columns for these *roles*: `force`, the muscle signals `muscle1` and `muscle2`,
and optionally `position` and `velocity` of the gripper, and `recording`, whose value changes when another recording begins. A
role is the column of the same name unless `columns` says otherwise. These rules were fixed before anything was learned from
such a file:

- A muscle signal that goes below zero is raw EMG. It is rectified, and its *envelope* is the mean of the last 0.2 s.
- Without `muscle1` and `muscle2`, the candidates are all columns whose names begin with `emg`. The two candidates whose
  envelopes vary most over the whole file are used, the larger first.
- Without `position`, the *slow force* replaces it: the mean of the force over the last second. It is smooth, and the best
  indication of the movement of the hand that such a file has. It is not an angle.
- Without `velocity`, the velocity is the difference of the position from the previous sample, times the rate.
- Samples are *decimated* to 40 Hz by averages over consecutive samples. Nothing looks ahead, and no average reaches across the
  beginning of a recording.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trueonline.control.gym.curves import running_mean
from trueonline.inputs import number
from trueonline.optional import optional
from trueonline.problems import arm
from trueonline.words import count, listed

SIGNALS = ("position", "velocity", "force", "muscle1", "muscle2")
ROLES = (*SIGNALS, "recording")
ENVELOPE_SECONDS = 0.2  # seconds over which a rectified signal is averaged
SLOWNESS = 1.0  # seconds over which the force is averaged to replace a position


@dataclass(frozen=True, eq=False)
class Recording:
    """Signals at 40 Hz: a row for each sample, with the columns of `SIGNALS`. `starts` marks the first row of each recording."""

    name: str
    signals: np.ndarray
    starts: np.ndarray
    about: str  # its origin and its processing
    position: str = "motor angle"  # the meaning of its position

    def normalised(self) -> np.ndarray:
        """Each signal from 0 at its smallest to 1 at its largest."""
        low, high = self.signals.min(axis=0), self.signals.max(axis=0)
        constant = [name for name, span in zip(SIGNALS, high - low, strict=True) if not span > 0.0]
        if constant:
            raise ValueError(
                f"the {constant[0]} of {self.name} never changes, so nothing can be learned from it; use another recording"
            )
        return (self.signals - low) / (high - low)


def simulated(length: int, seed: int = 0) -> Recording:
    """The simulated arm."""
    starts = np.zeros(length, np.bool_)
    starts[0] = True
    about = f"A simulated arm, {length:,} samples at {arm.RATE} Hz, seed {seed}."
    return Recording("simulator", arm.simulate(length, seed), starts, about)


def parse(text: str) -> dict[str, str]:
    """`role=column,role=column` as a mapping from roles to columns."""
    columns: dict[str, str] = {}
    for part in text.split(","):
        role, sign, column = (piece.strip() for piece in part.partition("="))
        if not (sign and column) or role not in ROLES:
            raise ValueError(f"columns must be role=column,…, with roles {', '.join(ROLES)}, got {part.strip()!r}")
        if role in columns:
            raise ValueError(f"columns must name each role once, got {role} twice")
        columns[role] = column
    return columns


def read(path: str | os.PathLike, columns: Mapping[str, str] | None = None, rate: float = arm.RATE) -> Recording:
    """The recording in a file that has `rate` samples a second, a multiple of 40. `columns` maps roles to columns."""
    every = number("rate", rate, f"a multiple of {arm.RATE}", lambda v: v > 0.0 and v % arm.RATE == 0.0) / arm.RATE
    table = _Table(path, dict(columns or {}))
    pieces = table.pieces()
    width, whole = round(ENVELOPE_SECONDS * rate), int(every)

    def reduced(values: np.ndarray) -> np.ndarray:
        return np.concatenate([_decimated(values[piece], whole) for piece in pieces])

    def envelope(values: np.ndarray) -> np.ndarray:
        if values.min() < 0.0:
            values = np.concatenate([running_mean(np.abs(values[piece]), width) for piece in pieces])
        return reduced(values)

    lengths = [len(piece) // whole for piece in pieces]
    starts = np.zeros(sum(lengths), np.bool_)
    starts[np.cumsum([0, *lengths])[:-1][np.array(lengths) > 0]] = True
    muscles, chosen = _muscles(table, envelope)
    force = table.column("force")
    position, notes = table.column("position") if table.has("position") else None, []
    if position is None:
        position = np.concatenate([running_mean(force[piece], round(SLOWNESS * rate)) for piece in pieces])
        notes.append(
            f"It has no position: the slow force, its mean over the last {SLOWNESS:g} s, stands in for the angle."
        )
    slow = reduced(position)
    if table.has("velocity"):
        velocity = reduced(table.column("velocity"))
    else:
        velocity = np.where(starts, 0.0, np.diff(slow, prepend=slow[:1]) * arm.RATE)
        notes.append("The velocity is the difference between consecutive positions.")
    signals = np.column_stack([slow, velocity, reduced(force), *muscles])
    parts = int(starts.sum())
    about = (
        f"The file {Path(path).name}: {table.rows:,} samples at {rate:g} Hz, averaged to {len(signals):,} at {arm.RATE} Hz, in "
        f"{count(parts, 'recording')}. Muscle signals: {listed(chosen)}. {' '.join(notes)}"
    )
    meaning = "motor angle" if table.has("position") else "slow force"
    return Recording("recording", np.ascontiguousarray(signals), starts, about.strip(), meaning)


def _muscles(table: _Table, envelope: Any) -> tuple[list[np.ndarray], list[str]]:
    """The two muscle signals, and the names of their columns."""
    named = [role for role in ("muscle1", "muscle2") if table.has(role)]
    if len(named) == 2:
        return [envelope(table.column(role)) for role in named], [table.name(role) for role in named]
    candidates = [name for name in table.names if name.lower().startswith("emg")]
    if named or len(candidates) < 2:
        raise ValueError(
            f"{table.path} must have two muscle signals, in columns muscle1 and muscle2, or at least two whose names begin with "
            f"emg; it has {', '.join(table.names)}. Give --columns muscle1=…,muscle2=…"
        )
    envelopes = {name: envelope(table.values(name)) for name in candidates}
    first, second = sorted(candidates, key=lambda name: -float(envelopes[name].var()))[:2]
    return [envelopes[first], envelopes[second]], [first, second]


def _decimated(values: np.ndarray, every: int) -> np.ndarray:
    """Means of `every` consecutive values. A remainder at the end is dropped."""
    length = len(values) // every
    return values[: length * every].reshape(length, every).mean(axis=1)


class _Table:
    """The columns of a file, as numbers, by role or name."""

    def __init__(self, path: str | os.PathLike, columns: dict[str, str]) -> None:
        self.path, self.columns = path, columns
        self.table = _load(path)
        self.names, self.rows = self.table.column_names, self.table.num_rows
        unknown = [role for role in columns if role not in ROLES]
        if unknown:
            raise ValueError(f"unknown role {unknown[0]!r}; known are {', '.join(ROLES)}")
        missing = [name for name in columns.values() if name not in self.names]
        if missing:
            raise ValueError(f"{path} has no column {missing[0]!r}; it has {', '.join(self.names)}")
        if not self.rows:
            raise ValueError(f"{path} has no rows")

    def name(self, role: str) -> str:
        """The name of the column with a role."""
        return self.columns.get(role, role)

    def has(self, role: str) -> bool:
        """Whether there is a column with a role."""
        return self.name(role) in self.names

    def column(self, role: str) -> np.ndarray:
        """The numbers of a role."""
        if not self.has(role):
            raise ValueError(
                f"{self.path} must have a column {self.name(role)!r}; it has {', '.join(self.names)}. "
                f"Give --columns {role}=… if the column has another name"
            )
        return self.values(self.name(role))

    def pieces(self) -> list[np.ndarray]:
        """The rows of each recording. A recording begins whenever the value of that role changes, a number or a text."""
        rows = np.arange(self.rows)
        if not self.has("recording"):
            return [rows]
        values = self.table[self.name("recording")].combine_chunks().dictionary_encode()
        codes = values.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.split(rows, np.flatnonzero(np.diff(codes)) + 1)

    def values(self, name: str) -> np.ndarray:
        """The numbers of a column. ValueError unless all are finite."""
        import pyarrow as pa

        try:
            values = self.table[name].cast(pa.float64()).to_numpy().astype(np.float64)
        except (pa.ArrowException, ValueError):
            raise ValueError(
                f"the column {name!r} of {self.path} must hold numbers, got {self.table[name].type}"
            ) from None
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise ValueError(
                f"the column {name!r} of {self.path} must hold finite numbers, got {values[bad[0]]} in row {bad[0] + 1}; "
                "fill the gap, or begin another recording there"
            )
        return values


def _load(path: str | os.PathLike) -> Any:
    pa = optional("reading a recording needs pyarrow", "pyarrow", "pyarrow.csv", "pyarrow.parquet", extra="study")
    if not Path(path).is_file():
        raise ValueError(f"there is no file {path}")
    try:
        if Path(path).suffix == ".parquet":
            return pa.parquet.read_table(path, partitioning=None)
        return pa.csv.read_csv(path)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} is not a readable CSV or Parquet file: {error}") from None
