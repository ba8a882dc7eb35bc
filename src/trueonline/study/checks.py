"""Checks of a case, before any of it runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from trueonline import catalog
from trueonline.core.transition import asked
from trueonline.study.sweep_kernel import NAMES, Method, swept


def grid(name: str, given: Any, check: Callable[[str, Any], float]) -> tuple[float, ...]:
    """A grid of distinct numbers, each checked."""
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise ValueError(f"{name} must be a list of numbers, got {given!r}; a list may have one number, as [0.1]")
    values = tuple(check(name, value) for value in given)
    if not values or len(set(values)) < len(values):
        raise ValueError(f"{name} must be distinct numbers, at least one, got {values}")
    return values


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


def initial_weights(problem: Any) -> np.ndarray:
    """The weights that learning begins with, by default zeros."""
    weights = np.asarray(getattr(problem, "initial_weights", np.zeros(len(problem.lms_weights))))
    if weights.dtype.kind not in "fiu":
        raise ValueError(f"a problem's initial_weights must be numbers, got {weights.dtype}")
    return weights.astype(np.float64)


def check_methods(methods: Any, problem: Any) -> None:
    if not isinstance(methods, Mapping) or not methods:
        raise ValueError(f"methods must name at least one of {', '.join(NAMES)}, got {methods!r}")
    for name, method in methods.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"the name of a method must be a text, got {name!r}")
        if method is None and name not in NAMES:
            raise ValueError(f"unknown method {name!r}; known are {', '.join(NAMES)}, or give a kernel or a class")
        if isinstance(method, str):
            raise ValueError(
                f"the method {name!r} must be a kernel, a method or a class of learners, got the text {method!r}"
            )
        if not (method is None or inspect.isclass(method) or isinstance(method, Method | catalog.Method)):
            try:
                asked(method)
            except TypeError as error:
                raise ValueError(
                    f"the method {name!r} is neither a class of learners nor an update rule: {error}"
                ) from None
        chosen = swept(name, method)
        if inspect.isclass(chosen):
            _check_class(name, chosen, problem)
        row = chosen.row if isinstance(chosen, Method) else chosen
        if getattr(row, "binary", False) and not np.isin(problem.features, (0.0, 1.0)).all():
            raise ValueError(f"{name} needs binary features; leave it out of methods")
        if getattr(row, "group", "") == "average reward" and not getattr(problem, "average_reward", False):
            raise ValueError(
                f"{name} learns values up to a constant: sweep it on trueonline.problems.AverageReward(problem), whose error "
                "leaves out constants"
            )


def _check_class(name: str, kind: Any, problem: Any) -> None:
    if hasattr(kind, "step"):
        raise ValueError(f"the method {name!r} is a class of agents; a sweep is of predictions, and takes learners")
    try:
        signature = inspect.signature(kind)
    except (TypeError, ValueError):  # some hide it; then we shall see
        return
    row = getattr(kind, "method", None)
    if isinstance(row, catalog.Method) and "beta" in asked(row.resolve("rule")):
        if row.swept:
            raise ValueError(
                f"the method {name!r} needs a second step-size: sweep it as study.Method({row.name!r}, second=…), which makes "
                "it a multiple of the first"
            )
        if kind is row.resolve("learner"):
            raise ValueError(
                f"the method {name!r} needs a second step-size, and sweeps have no kernel for it: give a subclass whose "
                "constructor sets second_step_size"
            )
    more = {"initial_weights": None} if initial_weights(problem).any() else {}
    try:
        signature.bind(1, 0.1, 0.9, 0.9, **more)
    except TypeError as error:
        raise ValueError(
            f"the method {name!r} must be made by (n_features, step_size, trace_decay, discount)"
            f"{' and initial_weights, which this problem has' if more else ''}, but: {error}; methods with a second "
            "step-size are swept as study.Method('gtd', second=…)"
        ) from None
