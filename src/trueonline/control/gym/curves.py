"""The learning curve of a training, or of several runs of it."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from trueonline import catalog
from trueonline.files import write_whole
from trueonline.inputs import count
from trueonline.look import figure, look
from trueonline.optional import optional
from trueonline.study.results import student_interval

MIN_RUNS_OF_INTERVAL = 5  # runs; of fewer, an interval would fill the picture and say nothing
WINDOW = 100  # episodes in a running mean, at most


def running_mean(returns: Any, window: int) -> np.ndarray:
    """The mean of the last `window` numbers at each place; of those that there are, at the beginning.

    >>> running_mean([1.0, 3.0, 5.0, 7.0], 2)
    array([1., 2., 4., 6.])
    """
    sums = np.concatenate([[0.0], np.cumsum(returns, dtype=float)])
    ends = np.arange(1, len(sums))
    begins = np.maximum(ends - window, 0)
    return (sums[ends] - sums[begins]) / (ends - begins)


def curve(
    path: str | os.PathLike, returns: Any, *, title: str = "", window: int | None = None, label: str = "return"
) -> None:
    """Draw the returns of one run, or of several runs, over the episodes.

    For one run, every return is drawn thin, and the running mean bold. For several runs, the running means are drawn thin,
    and their mean over the runs bold. With five runs or more there is a 95 % interval too (Student's t, at each episode by itself).

    Parameters
    ----------
    path : path-like
        The picture. Its ending says the format, such as .png or .pdf.
    returns : array_like, shape (episodes,) or (runs, episodes)
        The returns, such as `Training.returns`.
    title : str
        A line above the picture.
    window : int, optional
        Episodes in a running mean. By default a twentieth of all, and at most 100.
    label : str
        The label of the vertical axis.

    Raises
    ------
    ValueError
        If runs are not equally long, or matplotlib is missing.
    """
    runs = np.atleast_2d(np.asarray(returns, float))
    if runs.ndim != 2 or runs.shape[1] == 0:
        raise ValueError(f"returns must be those of one run, or of several that are equally long, got shape {runs.shape}")
    episodes = runs.shape[1]
    window = max(1, min(WINDOW, episodes // 20)) if window is None else count("window", window)
    optional("a curve needs matplotlib", "matplotlib", extra="study")
    with look():
        picture = _drawn(runs, window, title, label)
        ending = Path(path).suffix[1:] or "png"
        write_whole(path, partial(picture.savefig, format=ending))


def _drawn(runs: np.ndarray, window: int, title: str, label: str) -> Any:
    made, ((axes,),) = figure(1, 1, width=6.4, height=3.8)
    number = np.arange(1, runs.shape[1] + 1)
    means = np.array([running_mean(run, window) for run in runs])
    thin = {"color": catalog.GREEN, "solid_joinstyle": "round", "zorder": 2}
    marker = {"marker": "o", "markersize": 3} if len(number) == 1 else {}
    smoothed = f"mean of the last {window}" if window > 1 else ""
    if len(runs) == 1:
        if window > 1:
            axes.plot(number, runs[0], linewidth=0.5, alpha=0.4, label="each episode", **thin)
        axes.plot(number, means[0], color=catalog.GREEN, linewidth=1.8, label=smoothed or "each episode", **marker)
    else:
        middle, low, high = student_interval(means)
        axes.plot(
            number, middle, color=catalog.GREEN, linewidth=1.8, label=f"mean of {len(runs)} runs", zorder=3, **marker
        )
        if len(runs) >= MIN_RUNS_OF_INTERVAL:
            band = {"color": catalog.GREEN, "alpha": 0.18, "linewidth": 0, "label": "its 95 % interval"}
            axes.fill_between(number, low, high, **band)
        shown = f" ({smoothed})" if smoothed else ""
        for i, each in enumerate(means):
            axes.plot(number, each, linewidth=0.6, alpha=0.5, label=f"each run{shown}" if i == 0 else None, **thin)
        room = 0.06 * float(np.ptp(means)) or 1.0  # with few runs the band is wide: the lines matter more
        axes.set_ylim(means.min() - room, means.max() + room)
    axes.set(xlabel="episode", ylabel=label, title=title)
    if len(number) > 1:
        axes.set_xlim(1, len(number))
    if window > 1 or len(runs) > 1:
        made.legend(loc="outside lower center", ncols=3)
    return made
