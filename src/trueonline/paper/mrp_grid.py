"""Beyond the paper: how the advantage of true online TD(λ) depends on k, b and σ, over a grid of classes of random MRPs."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trueonline import study
from trueonline.paper import random_mrps
from trueonline.paper.experiment import (
    FAILS,
    HOLDS,
    NOISE,
    ROUNDING,
    Chart,
    Claim,
    Experiment,
    Outcome,
    Settings,
    at_least,
    interval,
    resample,
    table,
)
from trueonline.paper.random_mrps import PAPERS, REPRESENTATIONS, Best
from trueonline.paper.style import NAMES, figure
from trueonline.problems import random_mrp

STATES = (5, 10, 20, 50, 100, 200)
BRANCHES = (1, 2, 3, 5, 10, 0)  # 0 stands for k: every state may follow
NOISES = (0.0, 0.03, 0.1, 0.3, 1.0)
STEPS_PER_STATE = 10  # as in the paper: 100 steps for k = 10, 1,000 for k = 100
MRPS_OF_A_CLASS, RUNS = 20, 10
AT_ONCE = 1  # MRPs of each class: one is some 1,300 tasks
WIDEST = 3.4  # characters that fit into a cell of a picture. Longer texts are drawn smaller
NO_CLASS = {
    "facecolor": "#EEEEEE",
    "edgecolor": "#BBBBBB",
    "hatch": "/////",
}  # cells without a class: not white, which means 0
SHADES = 21  # of a colour scale: few, so that a shade can be found on the scale; odd, so that one is white
COMPARISONS = (  # representation and other method
    ("tabular", "accumulate"),
    ("binary", "accumulate"),
    ("non-binary", "accumulate"),
    ("tabular", "replace"),
    ("binary", "replace"),
)


def shapes() -> list[tuple[int, int]]:
    """All k and b. A b that is not less than k is left out, since k itself is one."""
    return [(k, b or k) for k in STATES for b in BRANCHES if b < k]


def classes() -> list[tuple[int, int, float]]:
    return [(k, b, sigma) for k, b in shapes() for sigma in NOISES]


def label(k: int, b: int, sigma: float) -> str:
    return f"({k}, {b}, {sigma:g})"


def cases(number: int, settings: Settings, runs: int) -> list[study.Case]:
    """The MRPs with this number, one of each class. Those that differ in σ alone are the same process with other noise."""
    made = []
    for k, b, sigma in classes():
        mrp = random_mrp(k, b, sigma, seed=_seed(51, settings.seed, k, b, number))
        for name in PAPERS:
            seen = mrp.with_features(REPRESENTATIONS[name](k, _seed(61, settings.seed, k, b, number)))
            methods, labels = dict.fromkeys(study.applicable(seen)), {"mrp": label(k, b, sigma), "representation": name}
            grids = (study.STEP_SIZES, study.TRACE_DECAYS)
            made.append(study.Case(seen, methods, *grids, runs, STEPS_PER_STATE * k, settings.seed, labels))
    return made


def _seed(*numbers: int) -> np.random.SeedSequence:
    """The first number, 51 for processes and 61 for features, keeps a seed apart from all other seeds."""
    return np.random.SeedSequence(numbers)


def run(settings: Settings) -> Outcome:
    mrps, runs = settings.mrps or MRPS_OF_A_CLASS, settings.number(RUNS)
    found = list(random_mrps.bests(lambda number: cases(number, settings, runs), mrps, AT_ONCE, settings))
    settings.say("All results are there. Judging the claims and drawing take about a minute.")
    each = _by_place(found)
    weights = resample(mrps, seed=settings.seed)
    data = _table(each, weights, runs)
    pictures = {
        "figure": _advantages(data, "accumulate"),
        "against-replace": _advantages(data, "replace"),
        "best-trace-decays": _trace_decays(each),
    }
    return Outcome(
        data,
        pictures,
        [_chart(data)],
        _claims(each, weights, settings),
        shown="figure",
        files={"mrps.parquet": _as_parquet(found)},
        note=f"Here there are {mrps:,} MRPs of each class, with {runs:,} run{'s'[: runs != 1]} on each.",
    )


# --- Numbers --------------------------------------------------------------------------------------

Place = tuple[str, str, str]  # class, representation and method


def _by_place(found: Sequence[Best]) -> dict[Place, list[Best]]:
    """The best of each place, in the order of the MRPs."""
    each: dict[Place, list[Best]] = {}
    for best in found:
        each.setdefault((best.mrp, best.representation, best.method), []).append(best)
    return each


def _column(bests: Sequence[Best], name: str) -> np.ndarray:
    return np.array([getattr(best, name) for best in bests])


def _log_ratios(each: dict[Place, list[Best]], representation: str, other: str) -> np.ndarray:
    """ln of the best error of true online over that of the other method: MRP by class. Below 0, true online is better."""
    logs = {
        method: np.log([_column(each[label(*kind), representation, method], "error") for kind in classes()])
        for method in ("true_online", other)
    }
    return (logs["true_online"] - logs[other]).T


def _table(each: dict[Place, list[Best]], weights: np.ndarray, runs: int) -> pa.Table:
    """A row for each class, representation and other method. Means of errors are geometric, parameters are medians."""
    rows = []
    for representation, other in COMPARISONS:
        logs = _log_ratios(each, representation, other)
        lows, highs = np.quantile(1.0 - np.exp(weights @ logs), [0.025, 0.975], axis=0)
        for place, (k, b, sigma) in enumerate(classes()):
            both = [each[label(k, b, sigma), representation, method] for method in ("true_online", other)]
            errors = [float(np.exp(np.log(_column(bests, "error")).mean())) for bests in both]
            over_td0 = [float(np.exp(np.log(_column(bests, "over_td0")).mean())) for bests in both]
            settings = [float(np.median(_column(bests, name))) for bests in both for name in ("step_size", "trace_decay")]
            here = logs[:, place]
            rows.append(
                (
                    *(k, b, sigma, STEPS_PER_STATE * k, representation, other, len(here), runs),
                    *(float(1.0 - np.exp(here.mean())), float(lows[place]), float(highs[place])),
                    *(float((here < -ROUNDING).mean()), float((here <= ROUNDING).mean())),
                    *(*errors, *over_td0, *settings),
                )
            )
    names = (
        *("k", "b", "sigma", "steps", "representation", "other", "mrps", "runs", "advantage", "low", "high"),
        *("share_better", "share_no_worse", "error", "other_error", "over_td0", "other_over_td0"),
        *("median_step_size", "median_trace_decay", "other_median_step_size", "other_median_trace_decay"),
    )
    return table(names, rows)


def _as_parquet(found: Sequence[Best]) -> bytes:
    """Every MRP, representation and method, for other questions."""
    rows = [tuple(vars(best).values()) for best in found]
    file = io.BytesIO()
    pq.write_table(table(tuple(Best.__dataclass_fields__), rows), file)
    return file.getvalue()


# --- Pictures -------------------------------------------------------------------------------------


def _chart(data: pa.Table) -> Chart:
    """The advantage over k, with a line for each b."""
    rows = sorted(data.to_pylist(), key=lambda row: _cell(row["k"], row["b"])[::-1])
    shown = [
        {
            "next states": "b = k" if row["b"] == row["k"] else f"b = {row['b']}",
            "σ": row["sigma"],
            "compared with": NAMES[row["other"]],
            **{name: row[name] for name in ("k", "representation", "advantage", "low", "high")},
        }
        for row in rows
    ]
    return Chart(
        pa.Table.from_pylist(shown),
        "k",
        "advantage",
        "next states",
        "number of states k",
        "advantage of true online TD(λ): 1 − ratio of best errors (bands: 95 %)",
        rows="representation",
        columns="σ",
        choose="compared with",
        low="low",
        high="high",
        log_x=True,
        y_domain=(-1.0, 1.0),
    )


def _cell(k: int, b: int) -> tuple[int, int]:
    """The place in a panel: a row for each k, a column for each b."""
    return STATES.index(k), BRANCHES.index(0 if b == k else b)


def _panels(
    rows: Sequence[str],
    name: str,
    scale: Any,
    colours: str,
    values: dict,
    form: Callable[[float], str],
    note: str = "",
) -> Any:
    """Heat maps with b across and k down: one row for each of `rows`, one column for each σ.

    `values` has for each row and σ a dictionary from (k, b) to a value, and whether the value is shown as a number.
    """
    from matplotlib import colormaps

    drawing, axes = figure(len(rows), len(NOISES), width=8.2, height=0.75 + 1.85 * len(rows), sharex=True, sharey=True)
    shading, least = colormaps[colours].resampled(SHADES), scale.vmin
    for (i, j), panel in np.ndenumerate(axes):
        image = np.full((len(STATES), len(BRANCHES)), np.nan)
        for (k, b), (value, shown) in values[rows[i], NOISES[j]].items():
            y, x = _cell(k, b)
            image[y, x], least = value, min(value, least)
            red, green, blue, _ = shading(scale(value))
            colour = "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else "black"
            text, size = (form(value), 6.0) if shown else ("·", 9.0)
            size *= min(1.0, WIDEST / len(text))
            panel.text(x, y, text, ha="center", va="center", fontsize=size, color=colour)
        drawn = panel.imshow(image, cmap=shading, norm=scale, aspect="auto")
        panel.set_xticks(range(len(BRANCHES)), [f"{b or 'k'}" for b in BRANCHES])
        panel.set_yticks(range(len(STATES)), [f"{k}" for k in STATES])
        panel.patch.set(**NO_CLASS, linewidth=0.0)
        panel.grid(visible=False)
        panel.tick_params(length=0)
        for side in panel.spines.values():
            side.set_visible(False)
    for panel, sigma in zip(axes[0], NOISES, strict=True):
        panel.set_title(f"σ = {sigma:g}")
    for panel, row in zip(axes[:, 0], rows, strict=True):
        panel.set_ylabel(f"{row} features", weight="bold")
    drawing.supylabel("number of states k", size="medium")
    drawing.supxlabel(
        f"number of next states b of each state\n{note}hatched: no class, since b < k (b = k has a column of its own)",
        size="medium",
    )
    beyond = "min" if least < scale.vmin else "neither"
    drawing.colorbar(drawn, ax=axes, label=name, shrink=0.8, aspect=30, pad=0.01, extend=beyond)
    return drawing


def _advantages(data: pa.Table, other: str) -> Any:
    """The advantage in percent. A loss has no bound, so colours end where those of the largest advantage do."""
    from matplotlib.colors import Normalize

    rows = [representation for representation, against in COMPARISONS if against == other]
    values: dict = {(row, sigma): {} for row in rows for sigma in NOISES}
    for row in data.to_pylist():
        if row["other"] == other:
            decided = row["low"] > ROUNDING or row["high"] < -ROUNDING
            values[row["representation"], row["sigma"]][row["k"], row["b"]] = (100.0 * row["advantage"], decided)
    bound = max(10.0, *(value for cells in values.values() for value, _ in cells.values()))
    title = f"how far the error is below that of {NAMES[other]}, %"
    return _panels(
        rows,
        title,
        Normalize(-bound, bound),
        "RdBu",
        values,
        lambda value: f"{value:.0f}".replace("-", "−") if abs(value) >= 0.5 else "0",
        "dot: the 95 % interval contains 0; ",
    )


def _trace_decays(each: dict[Place, list[Best]]) -> Any:
    """The median of the λ that is best for true online TD(λ)."""
    from matplotlib.colors import Normalize

    values: dict = {(row, sigma): {} for row in PAPERS for sigma in NOISES}
    for k, b, sigma in classes():
        for row in PAPERS:
            found = np.median(_column(each[label(k, b, sigma), row, "true_online"], "trace_decay"))
            values[row, sigma][k, b] = (float(found), True)
    title = "median of the best λ of true online TD(λ)"
    return _panels(
        PAPERS, title, Normalize(0.0, 1.0), "viridis", values, lambda value: f"{value:.2f}".strip("0").rstrip(".") or "0"
    )


# --- Claims ---------------------------------------------------------------------------------------


def _claims(each: dict[Place, list[Best]], weights: np.ndarray, settings: Settings) -> list[Claim]:
    claims = []
    for other in ("accumulate", "replace"):
        representations = [name for name, against in COMPARISONS if against == other]
        logs = np.hstack([_log_ratios(each, name, other) for name in representations])
        places = [f"{label(*kind)} {name}" for name in representations for kind in classes()]
        claims.append(_everywhere(other, logs, places, weights))
    for representation in PAPERS:
        claims += _trends(representation, _log_ratios(each, representation, "accumulate"), weights)
    return claims


def _everywhere(other: str, logs: np.ndarray, places: list[str], weights: np.ndarray) -> Claim:
    """A claim about all classes at once. Its intervals contain all means with 95 % together.

    Of hundreds of separate intervals some would exclude 0 by chance. Here a mean may be `width` standard errors away, where
    `width` is the 95 % quantile of the largest distance, in standard errors, that a bootstrap sample has in any class.
    """
    means, samples = logs.mean(axis=0), weights @ logs
    spread = samples.std(axis=0)
    distances = np.abs(samples - means) / np.where(spread > 0.0, spread, 1.0)
    width = float(np.quantile(distances.max(axis=1), 0.95))
    low, high = means - width * spread, means + width * spread
    worse, better = low > ROUNDING, high < -ROUNDING
    no_worse = high <= ROUNDING
    worst = int(means.argmax())
    return Claim(
        f"In every class and representation true online TD(λ) is on average at least as good as {NAMES[other]}",
        FAILS if worse.any() else HOLDS if no_worse.all() else NOISE,
        {
            "classes and representations": len(means),
            "mean is better": int((means < -ROUNDING).sum()),
            "mean is worse": int((means > ROUNDING).sum()),
            "better, beyond the simultaneous 95 % interval": int(better.sum()),
            "worse, beyond it": int(worse.sum()),
            "which": [places[i] for i in np.flatnonzero(worse)] or "none",
            "largest mean loss": float(np.exp(means[worst]) - 1.0),
            "in": places[worst],
            "largest mean advantage": float(1.0 - np.exp(means.min())),
            "found in": places[int(means.argmin())],
        },
        len(logs),
    )


def _trends(representation: str, logs: np.ndarray, weights: np.ndarray) -> list[Claim]:
    """Section 5.4: the advantage is larger with fewer states, and with a less stochastic return (small b, small σ)."""
    grid = np.array([(1.0, np.log2(k), np.log2(b), sigma) for k, b, sigma in classes()])
    slopes = (
        logs @ np.linalg.pinv(grid).T
    )  # of each MRP; the same as slopes of the mean, because least squares are linear
    claims = []
    for column, (words, unit) in enumerate(
        (
            ("there are fewer states k", "k is doubled"),
            ("a state has fewer next states b", "b is doubled"),
            ("rewards are less noisy (σ)", "σ grows by 1"),
        ),
        start=1,
    ):
        low, high = interval(weights @ slopes[:, column])
        change = slopes[:, column].mean()
        claims.append(
            Claim(
                f"{representation}: the advantage over {NAMES['accumulate']} is larger if {words}",
                at_least(low, high),
                {
                    f"growth of the ratio of errors when {unit}": float(np.exp(change) - 1.0),
                    "95 % interval": [float(np.exp(low) - 1.0), float(np.exp(high) - 1.0)],
                    "fit": "least squares of ln(ratio) on log₂ k, log₂ b and σ over all classes",
                },
                len(logs),
            )
        )
    return claims


EXPERIMENT = Experiment(
    "mrp-grid",
    "Beyond the paper — the advantage over a grid of classes of MRPs",
    """The paper has three classes (k, b, σ) of random MRPs. Here there are 165: k states from 5 to 200, b next states of
each state from 1 to k, and rewards with a standard deviation σ from 0 to 1. Each number is about twice to three times the
one before it, so that the grid covers what is small and what is large with few classes. The classes were chosen before any
result was seen.

Everything else is as in the paper or is continued from it. A run has 10 k steps, which are the paper's 100 steps for k = 10
and its 1,000 for k = 100. Non-binary features are five normal numbers for each state, scaled to unit length, for every k.
(The paper has five for k = 10 and for k = 100.) So for k = 5 they can represent all values exactly. α and λ come from the
paper's grids. MRPs that differ in σ alone have the same transitions, expected rewards and features.

The advantage is 1 − (best error of true online TD(λ)) / (best error of the other method). Each method is at its own best α
and λ on each MRP, and the mean over MRPs is geometric. Intervals are 95 % of 1,000 bootstrap samples of the MRPs. The best
α and λ are chosen and judged on the same runs, which flatters all methods a little.

With b = 1 every transition is certain, and the process ends in a cycle that has fewer states than k. A process that falls
into several parts has no unique stationary distribution and is drawn again. Only states of the stationary distribution
count in the error.

The first two claims are about all classes at once. Their intervals are wider, so that all of them together are right with
95 %. The claims about k, b and σ are those of section 5.4, which calls a domain with small b and σ less stochastic. They
are judged by the slopes of a least-squares fit over all classes.""",
    run,
)
