"""Checks of a case, before any of it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np


def grid(name: str, given: Any, check: Callable[[str, Any], float]) -> tuple[float, ...]:
    """A grid of distinct numbers, each checked."""
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise ValueError(f"{name} must be a list of numbers, got {given!r}; a list may have one number, as [0.1]")
    values = tuple(check(name, value) for value in given)
    if not values or len(set(values)) < len(values):
        raise ValueError(f"{name} must be distinct numbers, at least one, got {values}")
    return values


def check_known(what: str, names: Iterable[Any], known: Iterable[str]) -> None:
    """ValueError for a name that is not known."""
    unknown = sorted(str(name) for name in {*names} - {*known})
    if unknown:
        raise ValueError(f"unknown {what} {unknown[0]!r}; known are {', '.join(sorted(known))}")


def check_problem(problem: Any) -> None:
    """Refuse a problem without the attributes of `study.Problem`."""
    missing = [
        name for name in ("features", "metric", "lms_weights", "discount", "trajectory") if not hasattr(problem, name)
    ]
    if missing:
        raise ValueError(f"a problem must have {missing[0]}, got {type(problem).__name__}; see trueonline.study.Problem")
    phi, A, w = (np.asarray(part) for part in (problem.features, problem.metric, problem.lms_weights))
    n = phi.shape[-1] if phi.ndim == 2 else -1
    if any(part.dtype.kind not in "fiu" for part in (phi, A, w)) or phi.ndim != 2 or (A.shape, w.shape) != ((n, n), (n,)):
        raise ValueError(
            "a problem's features must be a matrix with a row for each state, its metric and lms_weights as large as a row, "
            f"got shapes {phi.shape}, {A.shape} and {w.shape}"
        )
    if not all(np.isfinite(part).all() for part in (phi, A, w)):
        raise ValueError("a problem's features, metric and lms_weights must be finite")
    first = initial_weights(problem)
    if first.shape != (n,) or not np.isfinite(first).all():
        raise ValueError(f"a problem's initial_weights must be {n} finite numbers, got {first!r:.80}")
    if not (first - w) @ A @ (first - w) > 0.0:
        where = "its initial weights" if first.any() else "zero weights"
        raise ValueError(f"the problem's error at {where} is zero: there is nothing to learn, and nothing to measure by")


def provided(problem: Any) -> frozenset[str]:
    """The parts of a transition that a problem says it provides (`inputs.protocol`)."""
    off_policy = hasattr(problem, "ratios")
    if off_policy and hasattr(problem, "behaviour") and hasattr(problem, "target"):
        off_policy = not np.array_equal(problem.behaviour, problem.target)
    return frozenset(("discount", "ratio") if off_policy else ("discount",))


def initial_weights(problem: Any) -> np.ndarray:
    """The weights that learning begins with, by default zeros."""
    weights = np.asarray(getattr(problem, "initial_weights", np.zeros(len(problem.lms_weights))))
    if weights.dtype.kind not in "fiu":
        raise ValueError(f"a problem's initial_weights must be numbers, got {weights.dtype}")
    return weights.astype(np.float64)
