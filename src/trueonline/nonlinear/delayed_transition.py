"""The transitions that a delayed learner keeps, and their form in a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueonline.inputs import check_saved, saved_array

NUMBERS = ("alpha", "reward", "discount", "trace_decay", "next_value")  # the columns of a file


@dataclass(frozen=True, slots=True, eq=False)
class DelayedTransition:
    """From x to the next state: R, γ, λ and V of the state entered, and α of the update of x."""

    x: Any
    alpha: float
    reward: float
    discount: float
    trace_decay: float
    next_value: float  # V(S_{t+1} | w_t); 0 if γ = 0


def to_arrays(steps: list[DelayedTransition], here: list[Any]) -> dict[str, np.ndarray]:
    """Transitions, and the state that follows the last one if there is one (`here` has one item, or none)."""
    columns = {name: np.array([getattr(step, name) for step in steps], float) for name in NUMBERS}
    return columns | dict(_packed(x, i) for i, x in enumerate([*(step.x for step in steps), *here]))


def from_arrays(arrays: dict[str, np.ndarray]) -> tuple[list[DelayedTransition], list[Any]]:
    """The two arguments of `to_arrays`; ValueError if the arrays do not fit together."""
    length = len(np.atleast_1d(arrays[NUMBERS[0]]))
    columns = [saved_array(arrays, name, (length,), np.float64) for name in NUMBERS]
    fits = {name: np.isfinite(column) for name, column in zip(NUMBERS, columns, strict=True)}
    decays = {name: (arrays[name] >= 0.0) & (arrays[name] <= 1.0) for name in ("discount", "trace_decay")}
    check_saved({**fits, **decays, "alpha": arrays["alpha"] > 0.0})
    states = list(_unpacked(arrays))
    if len(states) not in (length, length + 1) or (length and len(states) == length):
        raise ValueError(f"it has {len(states)} states for {length} transitions")
    rows = zip(states[:length], *(column.tolist() for column in columns), strict=True)
    return [DelayedTransition(*row) for row in rows], states[length:]


def _packed(x: Any, i: int) -> tuple[str, np.ndarray]:
    """x under a name that tells a number from an array."""
    if isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "fiubc":
        return f"x{i}", np.asarray(x)
    if isinstance(x, bool | int | float) and np.asarray(x).dtype.kind in "fiub":
        return f"number{i}", np.asarray(x)
    raise ValueError(
        f"states of type {type(x).__name__} cannot be saved, only numbers and NumPy arrays of numbers: give such x, or save "
        "between episodes, after x_next=None"
    )


def _unpacked(arrays: dict[str, np.ndarray]) -> Iterable[Any]:
    i = 0
    while True:
        if f"x{i}" in arrays:
            check_saved({f"x{i}": arrays[f"x{i}"].dtype.kind in "fiubc"})
            yield arrays[f"x{i}"][()]  # a NumPy scalar if it was one
        elif f"number{i}" in arrays:
            check_saved({f"number{i}": arrays[f"number{i}"].dtype.kind in "fiub" and not arrays[f"number{i}"].ndim})
            yield arrays[f"number{i}"].item()
        else:
            return
        i += 1
