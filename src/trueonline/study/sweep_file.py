"""A study from a TOML file: problems, representations and methods by name, grids and runs as numbers."""

from __future__ import annotations

import inspect
import json
import tokenize
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from trueonline import features, files, problems, study
from trueonline.core.compiling import user_file
from trueonline.inputs import ratio
from trueonline.inputs.seeds import seed_of
from trueonline.study.checks import check_known
from trueonline.study.kernels.swept_methods import ETA_METHODS, NAMES, resolve
from trueonline.words import listed, shortest

Problem = problems.FiniteMRP | problems.OffPolicyProblem | problems.AverageReward

# The features of a problem. `as_is` keeps the problem's own features and initial weights.
REPRESENTATIONS: dict[str, Callable[[Problem, Any], np.ndarray] | None] = {
    "as_is": None,
    "tabular": lambda problem, seed: features.tabular(problem.n_states),
    "binary": lambda problem, seed: features.binary_code(problem.n_states),
    "binary_unit": lambda problem, seed: features.binary_code(problem.n_states, unit_length=True),
    "non_binary": lambda problem, seed: features.random_unit(problem.n_states, seed=seed),
}


def _from_arrays(path: str, folder: Path) -> Problem:
    """A Markov reward process, or a decision process if there is a behaviour or a target."""
    try:
        with open(folder / path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except (*files.DAMAGED, OverflowError, SyntaxError, tokenize.TokenError) as error:
        raise ValueError(
            f"{folder / path} is not a file that numpy.savez wrote, or is damaged ({type(error).__name__}): write it again"
        ) from None
    for name in ("reward_std", "discount", "start"):
        if name in arrays and (name != "start" or not arrays[name].ndim):  # a start may be a distribution
            arrays[name] = arrays[name].item()
    off_policy = {"behaviour", "target"} & set(arrays)
    return problems.OffPolicyProblem(**arrays) if off_policy else problems.FiniteMRP(**arrays)


PROBLEMS: dict[str, Callable[..., Problem]] = {
    "random_mrp": problems.random_mrp,
    "random_walk": problems.random_walk,
    "one_state": problems.one_state,
    "two_state": problems.two_state,
    "random_mdp": problems.random_mdp,
    "baird": problems.baird,
    "collision": problems.collision,
    "off_policy.two_state": problems.off_policy.two_state,
    "arrays": _from_arrays,
}
COMMON = ("kind", "label", "representations", "average_reward")  # what every problem may have beside its own settings
DEFAULTS = {"step_sizes": study.STEP_SIZES, "trace_decays": study.TRACE_DECAYS, "runs": 50, "steps": 100}
SETTINGS = {"methods", "problems", "after", "seed", "version", "parameters", *DEFAULTS}


def read(path: str | Path) -> list[study.Case]:
    """Read the cases that a file describes.

    Parameters
    ----------
    path : path
        The TOML file.

    Returns
    -------
    list of study.Case
        A case for each problem, each of its seeds and each of its representations.

    Raises
    ------
    ValueError
        If the file is not TOML, or if it contains something unknown or out of range.
    """
    path = Path(path)
    try:
        spec = tomllib.loads(path.read_text("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    check_known("setting", set(spec), SETTINGS)
    for name in ("methods", "step_sizes", "trace_decays"):
        _list(name, spec.get(name, [None]))
    if isinstance(spec.get("seed"), list):
        raise ValueError(
            f"seed above [[problems]] must be one number, got {spec['seed']!r}; write a list below [[problems]]"
        )
    tables = spec.get("problems")
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise ValueError(f"{path} names no problem: add a [[problems]] with kind = one of {', '.join(PROBLEMS)}")
    methods = _methods(spec["methods"], path.parent) if "methods" in spec else None
    return [case for number, table in enumerate(tables, 1) for case in _cases(spec, methods, table, number, path.parent)]


def _cases(
    spec: dict[str, Any], methods: dict[str, Any] | None, table: dict[str, Any], number: int, folder: Path
) -> list[study.Case]:
    """The cases of one table [[problems]]."""
    arguments = dict(table)
    kind = arguments.pop("kind", None)
    names = _list("representations", arguments.pop("representations", ["as_is"]))
    label = arguments.pop("label", f"{kind} {number}")
    average = arguments.pop("average_reward", False)
    if not isinstance(average, bool):
        raise ValueError(f"average_reward must be true or false, got {average!r}")
    if not isinstance(label, str | int | float):
        raise ValueError(f"label must be a text, got {label!r}")
    if not names:
        raise ValueError(f"representations must name at least one of {', '.join(REPRESENTATIONS)}")
    check_known("kind of problem", {str(kind)}, set(PROBLEMS))
    check_known("representation", {str(name) for name in names}, set(REPRESENTATIONS))
    make = partial(PROBLEMS[kind], folder=folder) if kind == "arrays" else PROBLEMS[kind]
    parameters = inspect.signature(make).parameters
    known = {*parameters, *COMMON} - {"folder"}
    missing = [name for name, each in parameters.items() if each.default is each.empty and name not in arguments]
    cases = []
    for more, seed, seed_label in _seeds(arguments, label):
        try:
            check_known("setting", set(arguments), known)
            if missing:
                raise ValueError(f"{listed(missing)} must be set, as in {missing[0]} = …")
            problem = make(**{**arguments, **more})
            problem = problems.AverageReward(problem) if average else problem  # type: ignore[arg-type]
        except (TypeError, ValueError) as error:
            raise ValueError(f"problem {number} ({kind}): {error}") from None
        cases += [_case(spec, methods, problem, name, seed, seed_label) for name in names]
    return cases


def _seeds(arguments: dict[str, Any], label: Any) -> list[tuple[dict[str, Any], Any, str]]:
    """For each seed of a problem: the arguments that it changes, the seed, and the label. A list means several problems."""
    seed = arguments.get("seed", 0)
    if not isinstance(seed, list):
        return [({}, seed, str(label))]
    if not seed or len({repr(each) for each in seed}) < len(seed):
        raise ValueError(f"seed must be a whole number or a list of different ones, got {seed!r}")
    return [({"seed": each}, each, f"{label}, seed {each}") for each in seed]


def _case(
    spec: dict[str, Any], methods: dict[str, Any] | None, problem: Problem, name: str, seed: int, label: str
) -> study.Case:
    """One problem in one representation."""
    represent = REPRESENTATIONS[name]
    if represent is not None:
        problem = problem.with_features(
            represent(problem, np.random.SeedSequence(seed_of("features of a sweep file", seed)))
        )
    methods = dict.fromkeys(study.applicable(problem)) if methods is None else methods
    numbers = {**DEFAULTS, **{name: value for name, value in spec.items() if name not in ("methods", "problems")}}
    labels = {"problem": label, "representation": name}
    return study.Case(problem, methods, **numbers, labels=labels)


def _methods(entries: Sequence[Any], folder: Path) -> dict[str, Any]:
    """The methods of all cases, resolved. An entry is a name, a "file.py:name", or a table with settings."""
    methods: dict[str, Any] = {}
    for entry in entries:
        for name, given in _entry(entry, folder).items():
            method = resolve(name, given)
            if name in methods and methods[name] != method:
                raise ValueError(f'methods has {name!r} twice; give one of them a name: {{ method = …, name = "…" }}')
            methods[name] = method
    return methods


def _entry(entry: Any, folder: Path) -> dict[str, Any]:
    """The methods of one entry: several for a list of η."""
    table = entry if isinstance(entry, dict) else {"method": entry}
    check_known("setting of a method", set(table), {"method", "eta", "name"})
    method = table.get("method")
    if isinstance(method, str) and user_file.is_reference(method):
        name, own = user_file.load_name(method, folder)
        if "eta" in table:
            raise ValueError(f"eta is a setting of {listed(ETA_METHODS)}, got {entry!r}; leave it out for {method!r}")
        return {_text("name", table.get("name", name)): own}
    if not isinstance(entry, dict):
        check_known("method", {str(entry)}, set(NAMES))
        return {entry: None}
    etas = table.get("eta", [])
    if method not in ETA_METHODS or etas == [] or "name" in table:
        raise ValueError(
            f'a method with settings must be {{ method = "gtd", eta = … }}, with {listed(ETA_METHODS, "or")} and at least one η, '
            f"the ratio of its second step-size to its first, or {{ method = {user_file.FORM}, name = … }}, got {entry!r}; "
            "name others without settings"
        )
    values = [ratio("eta", eta) for eta in (etas if isinstance(etas, list) else [etas])]
    return {f"{method}, η = {shortest(eta)}": study.SweptMethod(method, second=eta) for eta in values}


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} must be a text, got {value!r}")
    return value


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list, such as {json.dumps([value], default=str)}, got {value!r}")
    return value
