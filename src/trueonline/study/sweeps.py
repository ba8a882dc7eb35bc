"""`sweep`: methods over step-sizes and trace decays, on one problem or on several, with the grids of the paper."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline import catalog
from trueonline.inputs import count
from trueonline.inputs.seeds import seed_of
from trueonline.study import results
from trueonline.study.cases import Case
from trueonline.study.checks import check_problem
from trueonline.study.storage.execution import run

METHODS = catalog.names("prediction", swept=True)
OFF_POLICY = catalog.names("off-policy", swept=True)  # methods that use importance ratios
AVERAGE_REWARD = catalog.names("average reward", swept=True)
STEP_SIZES = tuple(float(alpha) for alpha in (*10.0 ** np.arange(-3.0, -1.0, 0.2), *np.arange(1, 21) / 10.0))
TRACE_DECAYS = tuple(float(lam) for lam in (*np.arange(9) / 10.0, *np.arange(90, 101) / 100.0))


def applicable(problem: Any) -> tuple[str, ...]:
    """The methods that fit a problem.

    Parameters
    ----------
    problem : Problem
        The problem.

    Returns
    -------
    tuple of str
        The off-policy methods if the problem has importance ratios, and those with a reward rate for average-reward problems.
        Otherwise the methods of the paper, with replacing traces only if the features are binary.

    Examples
    --------
    >>> from trueonline import problems
    >>> applicable(problems.random_walk())
    ('accumulate', 'replace', 'true_online')
    """
    check_problem(problem)
    if hasattr(problem, "ratios"):
        return OFF_POLICY
    if getattr(problem, "average_reward", False):
        return AVERAGE_REWARD
    binary = np.isin(problem.features, (0.0, 1.0)).all()
    return tuple(name for name in METHODS if binary or not catalog.METHODS[name].binary)


def sweep(
    problem: Any,
    methods: Iterable[str] | Mapping[str, Any] | None = None,
    step_sizes: Iterable[float] = STEP_SIZES,
    trace_decays: Iterable[float] = TRACE_DECAYS,
    runs: int = 50,
    steps: int = 100,
    seed: int = 0,
    engine: str = "local",
    out: str | os.PathLike | None = None,
    after: int = 0,
    version: str = "",
    parameters: Mapping[str, Iterable[float]] | None = None,
    confirm: int | None = None,
) -> pa.Table:
    """Sweep methods over step-sizes and trace decays, on one problem or on several.

    All methods and parameters of a run see the same trajectory. The default grids are the paper's.

    Parameters
    ----------
    problem : Problem, list of Problem, or mapping from labels to Problem
        The problem, such as a `FiniteMRP` or an `OffPolicyProblem`. Several problems are swept one after the other.
    methods : str, iterable of str, or mapping, optional
        Names of methods, or a mapping from names to methods. A method in a mapping is a kernel or a class of learners of
        your own, a `study.SweptMethod`, or None for the method of this package with that name. By default all methods that fit
        the problem: see `study.applicable`.
    step_sizes, trace_decays : iterable of float
        The grid of α and λ.
    runs : int
        The number of runs.
    steps : int
        The number of transitions in a run.
    seed : int
        The seed of the trajectories.
    engine : str
        "local", "cuda", "cuda:NUMBER", "dask" or "dask:ADDRESS", as in `study.execute`. All give the same results, bit for bit.
    out : path, optional
        A folder that keeps the results, so that a sweep can be resumed. By default the results stay in memory.
    after : int
        The number of steps at the beginning of a run that the error leaves out.
    version : str
        A text that is part of the name of each result. Change it when a method of yours changes in a way that its code does not
        show, such as a compiled library or a file that it reads. Changes of its Python code are noticed without it.
    parameters : mapping, optional
        Grids of the methods' own parameters by their names, such as `{"regularization": [0.0, 1.0]}`, and of `"eta"`, the ratio of
        the second step-size to the first. Arguments of a class with a number as default are parameters too, such as
        `{"meta_step_size": [0.001, 0.01]}` of `"swift_td"`. Each becomes a column. A method is swept over those that it has; the
        columns of the others are null in its rows.
    confirm : int, optional
        Run the best setting of each method again, so many times with a fresh seed, and return these runs only. The best of many
        settings was also lucky, so its error is too low in the runs that chose it. In these runs it is not.

    Returns
    -------
    pyarrow.Table
        The columns are `method`, `step_size`, `trace_decay`, those of `parameters`, `run` and `error`. With several problems, the
        first column is `problem`: the label of the problem, or its class and its number in the list. `error` is the mean squared
        error against the LMS solution, averaged over the steps (section 5.1). It is relative to the error of the weights that
        learning begins with (zeros, or the problem's `initial_weights`), and infinite if the run diverged.

    Raises
    ------
    ValueError
        If an argument is out of range, if no method has one of `parameters`, if a method does not fit a problem, or if `engine` is
        a GPU that is not there.

    Examples
    --------
    >>> import trueonline as to
    >>> table = to.sweep(to.problems.random_mrp(10, 3, 0.1), step_sizes=[0.1, 0.2], trace_decays=[0.9], runs=2)
    >>> table.num_rows, table.column_names
    (12, ['method', 'step_size', 'trace_decay', 'run', 'error'])
    >>> walks = {"five": to.problems.random_walk(5), "nineteen": to.problems.random_walk(19)}
    >>> table = to.sweep(walks, "true_online", step_sizes=[0.1], trace_decays=[0.9], runs=1)
    >>> table["problem"].to_pylist()
    ['five', 'nineteen']
    """
    if isinstance(methods, str):
        methods = (methods,)
    if methods is not None and not isinstance(methods, Mapping):
        listed = tuple(methods) if isinstance(methods, Iterable) else (methods,)
        if not all(isinstance(name, str) for name in listed):
            raise ValueError(
                f'methods must be names, or a mapping from names to methods, such as {{"mine": my_method}}, got {methods!r}'
            )
        methods = dict.fromkeys(listed)
    alphas, lams = (tuple(grid) if isinstance(grid, Iterator) else grid for grid in (step_sizes, trace_decays))
    numbers: tuple[Any, Any, int, int, int] = (alphas, lams, runs, steps, seed)
    more: Any = {"after": after, "version": version, "parameters": parameters or {}}
    if confirm is not None:
        count("confirm", confirm)
    cases = [
        Case(one, dict.fromkeys(applicable(one)) if methods is None else methods, *numbers, labels=labels, **more)
        for one, labels in _labelled_problems(problem)
    ]
    table = run(cases, engine=engine, out=out)
    assert table is not None, "without shares nothing is missing"
    if confirm is None:
        return table
    fresh = run(confirmation(cases, table, confirm), engine=engine, out=out)
    assert fresh is not None
    return fresh


def confirmation(cases: Sequence[Case], table: pa.Table, runs: int) -> list[Case]:
    """The best setting of each method of some cases, chosen by the table of their results, with so many runs of a fresh seed."""
    confirming = []
    for row in results.best(table).to_pylist():
        (case,) = [one for one in cases if all(row[name] == value for name, value in one.labels.items())]
        seed = int(np.random.SeedSequence(seed_of("confirmation of a sweep", case.seed)).generate_state(1)[0])
        own = {name: (row[name],) for name in case.parameters if row[name] is not None}
        setting: dict[str, Any] = {
            "step_sizes": (row["step_size"],),
            "trace_decays": (row["trace_decay"],),
            "parameters": own,
        }
        confirming.append(
            replace(case, methods={row["method"]: case.methods[row["method"]]}, runs=runs, seed=seed, **setting)
        )
    return confirming


def _labelled_problems(problem: Any) -> list[tuple[Any, dict[str, str]]]:
    """Problems with their labels. A problem alone has no label."""
    if isinstance(problem, Mapping):
        labelled = {str(label): one for label, one in problem.items()}
        if len(labelled) < len(problem):
            raise ValueError(f"the labels of problems must differ, got {list(problem)!r:.80}")
    elif isinstance(problem, list | tuple):
        labelled = {f"{type(one).__name__} {number}": one for number, one in enumerate(problem, 1)}
    else:
        return [(problem, {})]
    if not labelled:
        raise ValueError("problem must be a problem, or several, got none")
    return [(one, {"problem": label}) for label, one in labelled.items()]
