"""Statistics of a sweep of agents: interquartile means and performance profiles, with intervals (Agarwal et al. 2021).

Runs are few and returns are skewed. The interquartile mean, the mean of the middle half of all scores, is not moved by some lucky
runs, and has a narrower interval than the median. Intervals are percentiles of a stratified bootstrap: runs are drawn again with
replacement within each environment, so that no sample lacks an environment.

Agarwal, Schwarzer, Castro, Courville and Bellemare (2021), Deep Reinforcement Learning at the Edge of the Statistical Precipice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline.inputs import count, unit
from trueonline.study import results

SETTING = ("agent", "step_size", "trace_decay")
SCORES = ("mean_return", "final_return")
KNOWN = {"environment", *SETTING, "seed", *SCORES}  # other columns of floats are parameters
Statistic = Callable[[np.ndarray], np.ndarray]  # from scores (…, runs of all environments) to one number each


def interquartile_mean(scores: Any) -> np.ndarray:
    """The mean of the middle half: a quarter of the numbers, rounded down, is left out at either end.

    Parameters
    ----------
    scores : array_like, shape (…, n)
        The numbers.

    Returns
    -------
    ndarray
        A mean for each row.

    Examples
    --------
    >>> float(interquartile_mean([0.0, 1.0, 2.0, 90.0]))
    1.5
    """
    ordered = np.sort(np.asarray(scores, float), axis=-1)
    cut = ordered.shape[-1] // 4
    return ordered[..., cut : ordered.shape[-1] - cut].mean(axis=-1)


def aggregate(
    table: pa.Table,
    score: str = "mean_return",
    *,
    between: Mapping[str, tuple[float, float]] | None = None,
    interval: float = 0.95,
    samples: int = 2000,
    seed: int = 0,
) -> pa.Table:
    """The interquartile mean of each agent and setting over all runs and environments, with an interval.

    The best row is chosen by the numbers that it shows, so its mean is too good. Run it again with other seeds to report it.

    Parameters
    ----------
    table : pyarrow.Table or data frame
        The runs, as `control.sweep` returns them, or a data frame of them.
    score : str
        "mean_return" or "final_return".
    between : mapping from str to (float, float), optional
        For each environment the returns that become 0 and 1, such as those of a random and of a good policy. With several
        environments, returns of different size cannot be compared without it.
    interval : float
        The share of the bootstrap samples inside the interval.
    samples : int
        The number of bootstrap samples.
    seed : int
        The seed of the samples.

    Returns
    -------
    pyarrow.Table
        `agent`, `step_size`, `trace_decay`, parameters, `iqm`, `low`, `high`, `mean`, `median` and `runs` of each environment. The
        best comes first.

    Raises
    ------
    ValueError
        If the score is unknown, the table lacks a column or a value, a setting lacks runs that others have, or environments are
        many and `between` does not have them.

    Examples
    --------
    >>> import pyarrow as pa, trueonline as to
    >>> one = {"environment": "Lake", "agent": "mine", "step_size": 0.5, "trace_decay": 0.9}
    >>> table = pa.Table.from_pylist([{**one, "seed": n, "mean_return": r} for n, r in enumerate([0.1, 0.2, 0.3, 0.9])])
    >>> to.control.aggregate(table).select(["agent", "iqm", "mean", "runs"]).to_pylist()
    [{'agent': 'mine', 'iqm': 0.25, 'mean': 0.375, 'runs': 4}]
    """
    rows = []
    names, found = _scores(table, score, between)
    for setting, scores in found.items():
        low, high = _interval(scores, interquartile_mean, interval, samples, seed)
        flat = scores.reshape(-1)
        numbers = interquartile_mean(flat), low, high, flat.mean(), np.median(flat)
        named = dict(zip(("iqm", "low", "high", "mean", "median"), map(float, numbers), strict=True))
        rows.append({**dict(zip(names, setting, strict=True)), **named})
        rows[-1]["runs"] = scores.shape[1]
    return pa.Table.from_pylist(sorted(rows, key=lambda row: -row["iqm"]))


def profile(
    table: pa.Table,
    thresholds: Iterable[float],
    score: str = "mean_return",
    *,
    between: Mapping[str, tuple[float, float]] | None = None,
    interval: float = 0.95,
    samples: int = 2000,
    seed: int = 0,
) -> pa.Table:
    """The performance profile of each agent and setting: the share of runs with a score above each threshold.

    Parameters
    ----------
    table, score, between, interval, samples, seed : object
        As in `aggregate`.
    thresholds : iterable of float
        The thresholds.

    Returns
    -------
    pyarrow.Table
        `agent`, `step_size`, `trace_decay`, parameters, `threshold`, `share`, `low` and `high`.

    Raises
    ------
    ValueError
        As in `aggregate`.

    Examples
    --------
    >>> import pyarrow as pa, trueonline as to
    >>> one = {"environment": "Lake", "agent": "mine", "step_size": 0.5, "trace_decay": 0.9}
    >>> table = pa.Table.from_pylist([{**one, "seed": n, "mean_return": r} for n, r in enumerate([0.1, 0.2, 0.3, 0.9])])
    >>> to.control.profile(table, [0.0, 0.25, 1.0])["share"].to_pylist()
    [1.0, 0.5, 0.0]
    """
    rows = []
    names, found = _scores(table, score, between)
    for setting, scores in found.items():
        for threshold in map(float, thresholds := tuple(thresholds)):

            def share(values: np.ndarray, threshold: float = threshold) -> np.ndarray:
                return (values > threshold).mean(axis=-1)

            low, high = _interval(scores, share, interval, samples, seed)
            numbers = {
                "threshold": threshold,
                "share": float(share(scores.reshape(-1))),
                "low": float(low),
                "high": float(high),
            }
            rows.append({**dict(zip(names, setting, strict=True)), **numbers})
    return pa.Table.from_pylist(rows)


def parameters(table: pa.Table) -> list[str]:
    """The columns of parameters of agents."""
    return [field.name for field in table.schema if field.type == pa.float64() and field.name not in KNOWN]


def _scores(
    table: pa.Table, score: str, between: Mapping[str, tuple[float, float]] | None
) -> tuple[list[str], dict[tuple[Any, ...], np.ndarray]]:
    """What tells settings from each other, and the scores of each setting, shape (environments, runs)."""
    if score not in SCORES:
        raise ValueError(f"score must be {' or '.join(SCORES)}, got {score!r}")
    found: dict[tuple[Any, ...], dict[str, dict[int, float]]] = {}
    columns = ("environment", *SETTING, "seed", score)
    table = results.read(table, columns)
    told = [*SETTING, *parameters(table)]
    for row in table.to_pylist():
        place = found.setdefault(tuple(row[name] for name in told), {})
        place.setdefault(row["environment"], {})[row["seed"]] = row[score]
    names = list(dict.fromkeys(table["environment"].to_pylist()))
    if len(names) > 1 and between is None:
        raise ValueError(f"returns of {', '.join(names)} cannot be compared as they are: give `between` for each of them")
    lacking = [name for name in names if between is not None and name not in between]
    if lacking:
        raise ValueError(f"between has no returns for {lacking[0]}")
    scales = {name: (0.0, 1.0) if between is None else between[name] for name in names}
    for name, (low, high) in scales.items():
        if not low < high:
            raise ValueError(f"between[{name!r}] must be a lower and a higher return, got {(low, high)}")
    seeds = {frozenset(runs) for setting in found.values() for runs in setting.values()}
    if len(seeds) > 1 or any(set(setting) != set(names) for setting in found.values()):
        raise ValueError("every agent and setting must have runs with the same seeds on all environments")
    scaled = {
        setting: np.array(
            [
                [(value - scales[name][0]) / (scales[name][1] - scales[name][0]) for value in runs[name].values()]
                for name in names
            ]
        )
        for setting, runs in found.items()
    }
    return told, scaled


def _interval(scores: np.ndarray, statistic: Statistic, interval: float, samples: int, seed: int) -> np.ndarray:
    """The ends of the percentile interval of a stratified bootstrap."""
    tails = 50.0 * (1.0 - unit("interval", interval))
    rng = np.random.default_rng(seed)
    tasks, runs = scores.shape
    drawn = rng.integers(runs, size=(count("samples", samples), tasks, runs))
    again = np.take_along_axis(scores[None], drawn, axis=2).reshape(len(drawn), -1)
    return np.percentile(statistic(again), [tails, 100.0 - tails])
