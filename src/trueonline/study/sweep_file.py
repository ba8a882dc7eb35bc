"""A study from a TOML file: problems, representations and methods by name, grids and runs as numbers."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trueonline import features, problems, study
from trueonline.inputs import ratio
from trueonline.learners.off_policy import MonteCarlo
from trueonline.learners.provisional_learners import ProvisionalTD
from trueonline.terminal import shortest  # names of methods must differ

Problem = problems.FiniteMRP | problems.OffPolicyProblem

# The features that a problem is seen through; `as_is` leaves it its own, and the weights that it begins with.
REPRESENTATIONS: dict[str, Callable[[Problem, Any], np.ndarray] | None] = {
    "as_is": None,
    "tabular": lambda problem, seed: features.tabular(problem.n_states),
    "binary": lambda problem, seed: features.binary_code(problem.n_states),
    "binary_unit": lambda problem, seed: features.binary_code(problem.n_states, unit_length=True),
    "non_binary": lambda problem, seed: features.random_unit(problem.n_states, seed=seed),
}


def _from_arrays(path: str, folder: Path) -> Problem:
    """A Markov reward process; with a behaviour or a target, a decision process with the two."""
    with np.load(folder / path, allow_pickle=False) as arrays:
        given = {name: arrays[name] for name in arrays.files}
    for name in ("reward_std", "discount", "start"):
        if name in given:
            given[name] = given[name].item()
    return problems.OffPolicyProblem(**given) if {"behaviour", "target"} & set(given) else problems.FiniteMRP(**given)


PROBLEMS: dict[str, Callable[..., Problem]] = {
    "random_mrp": problems.random_mrp,
    "random_walk": problems.random_walk,
    "one_state": problems.one_state,
    "two_state": problems.two_state,
    "random_mdp": problems.random_mdp,
    "baird": problems.baird,
    "off_policy.two_state": problems.off_policy.two_state,
    "arrays": _from_arrays,
}
LEARNERS = {
    "monte_carlo": MonteCarlo,
    "provisional_td": ProvisionalTD,
}  # that have no kernel of a sweep: these go a step at a time
WITH_ETA = ("gtd", "true_online_gtd")  # that have a second step-size
SETTINGS = {"methods", "step_sizes", "trace_decays", "runs", "steps", "after", "seed", "problems"}


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
        represent = REPRESENTATIONS[name]
        seen = problem if represent is None else problem.with_features(represent(problem, [41, seed]))
        methods = _methods(spec.get("methods", study.applicable(seen)))
        cases.append(
            study.Case(
                problem=seen,
                methods=methods,
                step_sizes=tuple(spec.get("step_sizes", study.STEP_SIZES)),
                trace_decays=tuple(spec.get("trace_decays", study.TRACE_DECAYS)),
                runs=spec.get("runs", 50),
                steps=spec.get("steps", 100),
                after=spec.get("after", 0),
                seed=spec.get("seed", 0),
                labels={"problem": label, "representation": name},
            )
        )
    return cases


def _methods(given: Sequence[Any]) -> dict[str, Any]:
    """Methods by name. One with a second step-size may be a table { method = "gtd", eta = 4.0 }, or with a list of η."""
    made: dict[str, Any] = {}
    for one in given:
        if not isinstance(one, dict):
            _known("method", {str(one)}, {*study.METHODS, *study.OFF_POLICY, *LEARNERS})
            made[one] = LEARNERS.get(one)
            continue
        _known("setting of a method", set(one), {"method", "eta"})
        name, etas = one.get("method"), one.get("eta", [])
        if name not in WITH_ETA or etas == []:
            raise ValueError(
                f'a method with settings must be {{ method = "gtd", eta = … }}, with {" or ".join(WITH_ETA)} and at least one η, '
                f"the ratio of its second step-size to its first, got {one!r}; name others without settings"
            )
        for given_eta in etas if isinstance(etas, list) else [etas]:
            eta = ratio("eta", given_eta)
            made[f"{name}, η = {shortest(eta)}"] = study.Method(name, second=eta)
    return made


def _list(name: str, given: Any) -> list[Any]:
    if not isinstance(given, list):
        raise ValueError(f"{name} must be a list, such as [...], got {given!r}")
    return given


def _known(what: str, names: set[Any], known: set[str]) -> None:
    unknown = sorted(str(name) for name in names - known)
    if unknown:
        raise ValueError(f"unknown {what} {unknown[0]!r}; known are {', '.join(sorted(known))}")
