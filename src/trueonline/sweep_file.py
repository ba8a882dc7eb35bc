"""A study from a TOML file: problems and representations by name, grids and runs as numbers."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from trueonline import features, problems, study

REPRESENTATIONS = {
    "as_is": lambda problem, seed: problem.features,
    "tabular": lambda problem, seed: features.tabular(problem.n_states),
    "binary": lambda problem, seed: features.binary_code(problem.n_states),
    "binary_unit": lambda problem, seed: features.binary_code(problem.n_states, unit_length=True),
    "non_binary": lambda problem, seed: features.random_unit(problem.n_states, seed=seed),
}


def _from_arrays(path: str, folder: Path) -> problems.FiniteMRP:
    with np.load(folder / path, allow_pickle=False) as arrays:
        given = {name: arrays[name] for name in arrays.files}
    for name in ("reward_std", "discount", "start"):
        if name in given:
            given[name] = given[name].item()
    return problems.FiniteMRP(**given)


PROBLEMS: dict[str, Callable[..., problems.FiniteMRP]] = {
    "random_mrp": problems.random_mrp,
    "random_walk": problems.random_walk,
    "one_state": problems.one_state,
    "two_state": problems.two_state,
    "arrays": _from_arrays,
}
SETTINGS = {"methods", "step_sizes", "trace_decays", "runs", "steps", "seed", "problems"}


def read(path: str | Path) -> list[study.Case]:
    """The cases that a file describes; ValueError for anything it says that is not known."""
    path = Path(path)
    try:
        spec = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    _known("setting", set(spec), SETTINGS)
    for name in ("methods", "step_sizes", "trace_decays"):
        _list(name, spec.get(name, [None]))
    given = spec.get("problems")
    if not isinstance(given, list) or not given or not all(isinstance(problem, dict) for problem in given):
        raise ValueError(f"{path} names no problem: add a [[problems]] with kind = one of {', '.join(PROBLEMS)}")
    return [
        case for number, problem in enumerate(spec["problems"], 1) for case in _cases(spec, problem, number, path.parent)
    ]


def _cases(spec: dict[str, Any], given: dict[str, Any], number: int, folder: Path) -> list[study.Case]:
    arguments = dict(given)
    kind = arguments.pop("kind", None)
    names = _list("representations", arguments.pop("representations", ["as_is"]))
    label = arguments.pop("label", f"{kind} {number}")
    seed = arguments.get("seed", 0)
    if not isinstance(label, str | int | float):
        raise ValueError(f"label must be a text, got {label!r}")
    if not names:
        raise ValueError(f"representations must name at least one of {', '.join(REPRESENTATIONS)}")
    _known("kind of problem", {str(kind)}, set(PROBLEMS))
    _known("representation", {str(name) for name in names}, set(REPRESENTATIONS))
    try:
        problem = PROBLEMS[kind](**arguments, **({"folder": folder} if kind == "arrays" else {}))
    except TypeError as error:
        raise ValueError(f"problem {number} ({kind}): {error}") from None
    cases = []
    for name in names:
        seen = problem.with_features(REPRESENTATIONS[name](problem, [41, seed]))
        methods = [str(name) for name in spec.get("methods", study.applicable(seen))]
        cases.append(
            study.Case(
                problem=seen,
                methods=dict.fromkeys(methods),
                step_sizes=tuple(spec.get("step_sizes", study.STEP_SIZES)),
                trace_decays=tuple(spec.get("trace_decays", study.TRACE_DECAYS)),
                runs=spec.get("runs", 50),
                steps=spec.get("steps", 100),
                seed=spec.get("seed", 0),
                labels={"problem": label, "representation": name},
            )
        )
    return cases


def _list(name: str, given: Any) -> list[Any]:
    if not isinstance(given, list):
        raise ValueError(f"{name} must be a list, such as [...], got {given!r}")
    return given


def _known(what: str, names: set[Any], known: set[str]) -> None:
    unknown = sorted(str(name) for name in names - known)
    if unknown:
        raise ValueError(f"unknown {what} {unknown[0]!r}; known are {', '.join(sorted(known))}")
