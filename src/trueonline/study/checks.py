"""Whether a case makes sense, before any of it is run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from trueonline.study.blocks import KERNELS


def grid(name: str, given: Any, check: Callable[[str, Any], float]) -> tuple[float, ...]:
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise ValueError(f"{name} must be several numbers, got {given!r}")
    found = tuple(check(name, value) for value in given)
    if not found or len(set(found)) < len(found):
        raise ValueError(f"{name} must be distinct numbers, at least one, got {found}")
    return found


def check_problem(problem: Any) -> None:
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
    if not w @ A @ w > 0.0:
        raise ValueError(
            "the problem's error at zero weights is zero: there is nothing to learn, and nothing to measure by"
        )


def check_methods(methods: Any, problem: Any) -> None:
    if not isinstance(methods, Mapping) or not methods:
        raise ValueError(f"methods must name at least one of {', '.join(KERNELS)}, got {methods!r}")
    for name, method in methods.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"the name of a method must be a text, got {name!r}")
        if method is None and name not in KERNELS:
            raise ValueError(f"unknown method {name!r}; known are {', '.join(KERNELS)}, or give a kernel or a class")
        if inspect.isclass(method) and hasattr(method, "step"):
            raise ValueError(f"the method {name!r} is a class of agents; a sweep is of predictions, and takes learners")
        if method is not None and not inspect.isclass(method):
            function = getattr(method, "py_func", None)
            if function is None or len(inspect.signature(function).parameters) != 9:
                raise ValueError(
                    f"the method {name!r} must be a class of learners, or a kernel with the nine arguments of those in "
                    f"trueonline.methods, got {method!r:.80}"
                )
        binary = name == "replace" if method is None else getattr(method, "binary", False)
        if binary and not np.isin(problem.features, (0.0, 1.0)).all():
            raise ValueError(f"{name} needs binary features; leave it out of methods")
