"""Beyond the paper: the off-policy methods. Which of them converge, how fast, and is the true online one better?

Grids, claims and what decides them were written down before the first results were looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline import study
from trueonline.features import binary_code, tabular
from trueonline.learners.interface import Learner
from trueonline.learners.off_policy import GTD, EmphaticTD, TrueOnlineEmphaticTD, TrueOnlineGTD
from trueonline.paper.experiment import (
    ENOUGH,
    NOISE,
    ROUNDING,
    Chart,
    Claim,
    Experiment,
    Outcome,
    Settings,
    at_least,
    at_most,
    interval,
    overall,
    resample,
)
from trueonline.paper.style import COLOURS, DASHES, MARKERS, NAMES, figure
from trueonline.problems import OffPolicyProblem, baird, random_mdp
from trueonline.problems import counterexamples as problems

ALPHAS = 2.0 ** np.arange(-14, 2)
LAMS = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 1.0])
ETAS = (0.0625, 0.25, 1.0, 4.0, 16.0)  # β/α
COUNTEREXAMPLES: dict[str, Callable[[], OffPolicyProblem]] = {"two states": problems.two_state, "Baird": baird}
STEPS, RUNS = 5_000, 50  # of the counterexamples
LAST = STEPS // 10  # how many of the steps are the end
GONE = 0.01  # what is left of the error where it counts as gone
STATES, ACTIONS, BRANCHING, SIGMA = 10, 3, 3, 0.1  # of the random MDPs
DISTANCES = (0.0, 0.25, 0.5, 1.0)
REPRESENTATIONS = {"tabular": tabular, "binary": binary_code}
MDPS, MDP_RUNS, MDP_STEPS = 30, 2, 1_000
TIMES = np.unique(np.geomspace(1, STEPS, 100).round().astype(int))  # of a line over time

PAIRS = {
    "off_policy": "true_online_off_policy",
    "gtd": "true_online_gtd",
    "emphatic": "true_online_emphatic",
}  # a method → its true online form
FAMILY = tuple(name for pair in PAIRS.items() for name in pair)
VARIANTS = {name: ETAS if "gtd" in name else (0.0,) for name in FAMILY}
LEARNERS: dict[str, Callable[..., Learner]] = {
    "off_policy": partial(GTD, second_step_size=0.0),
    "true_online_off_policy": partial(TrueOnlineGTD, second_step_size=0.0),
    "gtd": GTD,
    "true_online_gtd": TrueOnlineGTD,
    "emphatic": EmphaticTD,
    "true_online_emphatic": TrueOnlineEmphaticTD,
}
AT_0 = {"off_policy": "off-policy TD(0)", "gtd": "GTD(0)", "emphatic": "emphatic TD(0)"}


@dataclass(frozen=True)
class Errors:
    """The errors of each method in one place, over (unit, η, α, λ). Units are drawn anew by the bootstrap: runs, or MDPs."""

    by_method: dict[str, np.ndarray]

    @property
    def units(self) -> int:
        return len(next(iter(self.by_method.values())))

    def mean(self, method: str, weights: np.ndarray | None = None) -> np.ndarray:
        """The mean over units for each setting: (sample, settings). What has diverged counts as 10¹²."""
        errors = np.minimum(self.by_method[method], 1e12).reshape(self.units, -1)
        return errors.mean(axis=0, keepdims=True) if weights is None else weights @ errors

    def best(self, method: str, weights: np.ndarray | None = None) -> np.ndarray:
        """The mean error at the best parameters; of each bootstrap sample at its own best."""
        return self.mean(method, weights).min(axis=1)

    def best_setting(self, method: str) -> tuple[float, float, float]:
        """η, α and λ of the best."""
        h, i, j = np.unravel_index(int(self.mean(method).argmin()), self.by_method[method].shape[1:])
        return VARIANTS[method][h], float(ALPHAS[i]), float(LAMS[j])

    def at_lambda_0(self) -> Errors:
        return Errors({name: errors[..., :1] for name, errors in self.by_method.items()})


# --- The study ------------------------------------------------------------------------------------


def case(problem: OffPolicyProblem, runs: int, steps: int, seed: int, after: int = 0) -> study.Case:
    methods: dict[str, Any] = {}
    for name, etas in VARIANTS.items():
        methods |= (
            {f"{name}, η = {eta:g}": study.Method(name, second=eta) for eta in etas} if eta_of(name) else {name: None}
        )
    return study.Case(problem, methods, tuple(ALPHAS), tuple(LAMS), runs, steps, seed, after=after)


def eta_of(method: str) -> bool:
    """Whether a method has a second step-size to choose."""
    return len(VARIANTS[method]) > 1


def run(settings: Settings) -> Outcome:
    runs = settings.number(RUNS)
    mdps = MDPS if settings.runs is None else max(2, settings.runs)
    found = {name: make() for name, make in COUNTEREXAMPLES.items()}
    at_end = {name: case(problem, runs, STEPS, settings.seed, STEPS - LAST) for name, problem in found.items()}
    on_the_way = {name: case(problem, runs, STEPS, settings.seed) for name, problem in found.items()}
    random = {
        (name, distance): [
            case(mdp(n, distance, name, settings), MDP_RUNS, MDP_STEPS, settings.seed) for n in range(mdps)
        ]
        for name in REPRESENTATIONS
        for distance in DISTANCES
    }
    todo = [*at_end.values(), *on_the_way.values(), *(each for cases in random.values() for each in cases)]
    study.execute(todo, settings.tasks, engine=settings.engine, threads=settings.threads, progress=settings.progress)
    ends = {name: Errors(_errors(each, settings)) for name, each in at_end.items()}
    ways = {name: Errors(_errors(each, settings)) for name, each in on_the_way.items()}
    classes = {place: _over_mdps([_errors(each, settings) for each in cases]) for place, cases in random.items()}
    lines = {name: _lines(on_the_way[name], ways[name]) for name in ways}
    tables = {"ends": _ends(ends), "lines": _over_time(lines, ways), "classes": _classes(classes, settings)}
    charts = [
        _chart_of_ends(tables["ends"]),
        _chart_over_time(tables["lines"]),
        _chart_of_classes(tables["classes"]),
    ]
    claims = [*_counterexample_claims(ends, settings), *_comparisons(ways, classes, settings)]
    files = {f"{name}.csv": _csv(table) for name, table in tables.items() if name != "classes"}
    return Outcome(
        tables["classes"], {"figure": _picture(ends, lines, tables["classes"])}, charts, claims, "figure", files
    )


def mdp(number: int, distance: float, representation: str, settings: Settings) -> OffPolicyProblem:
    """The same process at every distance and in every representation; 61 keeps its seed apart from all others."""
    made = random_mdp(STATES, ACTIONS, BRANCHING, SIGMA, distance=distance, seed=[61, settings.seed, number])
    return made.with_features(REPRESENTATIONS[representation](STATES))


def _errors(each: study.Case, settings: Settings) -> dict[str, np.ndarray]:
    """Of each method over (run, η, α, λ)."""
    table = study.gather(each, settings.tasks)
    if table is None:
        raise RuntimeError("results vanished while they were gathered; run again")
    whole = iter(table["error"].to_numpy().reshape(-1, each.runs, len(ALPHAS), len(LAMS)))
    return {name: np.stack([next(whole) for _ in etas], axis=1) for name, etas in VARIANTS.items()}


def _over_mdps(found: Sequence[dict[str, np.ndarray]]) -> Errors:
    """Each MDP by the mean over its runs: one setting is chosen for all of them."""
    means = [{name: np.minimum(errors, 1e12).mean(axis=0) for name, errors in each.items()} for each in found]
    return Errors({name: np.stack([each[name] for each in means]) for name in FAMILY})


def _lines(each: study.Case, found: Errors) -> dict[str, np.ndarray]:
    """The error over time at the parameters with which its mean over all steps is smallest: (run, time)."""
    problem, made = each.problem, {}
    for name in FAMILY:
        eta, alpha, lam = found.best_setting(name)
        second = {"second_step_size": eta * alpha} if eta_of(name) else {}
        made[name] = np.empty((each.runs, len(TIMES)))
        for run in range(each.runs):
            states, rewards, discounts, ratios = each.trajectory(run)
            learner = LEARNERS[name](problem.n_features, alpha, lam, problem.discount, problem.initial_weights, **second)
            for point, (start, stop) in enumerate(pairwise((0, *TIMES))):
                X = problem.features[states[start : stop + 1]]
                learner.run(X, rewards[start:stop], discounts[start:stop], ratios=ratios[start:stop])  # type: ignore[call-arg]
                w = learner.weights
                made[name][run, point] = problem.error(w) if np.isfinite(w).all() else np.inf
    return made


# --- Claims ---------------------------------------------------------------------------------------


def _counterexample_claims(ends: dict[str, Errors], settings: Settings) -> list[Claim]:
    made = []
    for problem, found in ends.items():
        weights = resample(found.units, seed=settings.seed)
        at_0 = found.at_lambda_0()
        made.append(_diverges(problem, at_0, weights))
        for method in ("gtd", "emphatic"):
            low, high = interval(at_0.best(method, weights))
            made.append(
                Claim(
                    f"{problem}: {AT_0[method]} does not diverge where its step-size is small enough: at its best it ends with "
                    "no larger an error than it began with",
                    _judged(at_most(low, high, 1.0), found.units),
                    {**_at_best(at_0, method), "95 % interval": [low, high], **_shares(at_0, method)},
                )
            )
        for method in FAMILY:
            low, high = interval(found.best(method, weights))
            made.append(
                Claim(
                    f"{problem}: the error of {NAMES[method]} goes to 0: at its best it ends below {100 * GONE:g} % of what it was",
                    _judged(at_most(low, high, GONE), found.units),
                    {**_at_best(found, method), "95 % interval": [low, high], **_shares(found, method)},
                )
            )
    return made


def _diverges(problem: str, at_0: Errors, weights: np.ndarray) -> Claim:
    """TD(0), and its true online form, which is the same: at every step-size more than half of the runs end above 1."""
    worse = (at_0.by_method["off_policy"][:, 0, :, 0] > 1.0).astype(float)  # run × α
    samples = weights @ worse
    bounds = [interval(samples[:, i]) for i in range(len(ALPHAS))]
    verdicts = [at_least(low, high, 0.5) for low, high in bounds]
    exceptions = [f"{alpha:g}" for alpha, verdict in zip(ALPHAS, verdicts, strict=True) if verdict != "holds"]
    return Claim(
        f"{problem}: off-policy TD(0) diverges at every step-size of the grid",
        _judged(overall(verdicts), len(worse)),
        {
            "holds if": "at every step-size more than half of the runs end with a larger error than they began with",
            "share of such runs, α by α": [float(share) for share in worse.mean(axis=0)],
            "step-sizes": [float(alpha) for alpha in ALPHAS],
            "exceptions": exceptions or "none",
            "runs": len(worse),
        },
    )


def _comparisons(ways: dict[str, Errors], classes: dict[tuple[str, float], Errors], settings: Settings) -> list[Claim]:
    places = dict(ways)
    places |= {f"random MDPs, {name}, distance {distance:g}": found for (name, distance), found in classes.items()}
    pairs = [(place, plain, ours) for place in places for plain, ours in PAIRS.items()]
    details = [_no_worse(place, places[place], ours, plain, settings) for place, plain, ours in pairs]
    random = [place for place in places if place not in ways]
    made = [
        _summary(
            "True online methods at their best are at least as good as their conventional counterparts at theirs, on all "
            "problems",
            details,
        )
    ]
    for other in ("gtd", "emphatic"):
        stable = [_no_worse(place, places[place], "off_policy", other, settings) for place in random]
        made.append(
            _summary(
                f"On random MDPs, where off-policy TD(λ) is mostly stable, it is at its best at least as good as {NAMES[other]}",
                stable,
            )
        )
    return [*made, *details]


def _summary(said: str, claims: Sequence[Claim]) -> Claim:
    verdicts = [claim.verdict for claim in claims]
    counts = {verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))}
    differences = [claim.numbers["relative difference"] for claim in claims]
    return Claim(
        said,
        overall(verdicts),
        {"comparisons": len(claims), **counts, "smallest and largest difference": [min(differences), max(differences)]},
    )


def _no_worse(place: str, found: Errors, ours: str, other: str, settings: Settings) -> Claim:
    weights = resample(found.units, seed=settings.seed)
    low, high = interval(found.best(ours, weights) / found.best(other, weights) - 1.0)
    best = {NAMES[name]: float(found.best(name)[0]) for name in (ours, other)}
    return Claim(
        f"{place}: {NAMES[ours]} at its best is at least as good as {NAMES[other]}",
        _judged(at_most(low, high, ROUNDING), found.units),
        {
            **best,
            "relative difference": float(found.best(ours)[0] / found.best(other)[0] - 1.0),
            "95 % interval": [low, high],
            **{f"parameters of {NAMES[name]}": _parameters(found, name) for name in (ours, other)},
        },
    )


def _judged(verdict: str, units: int) -> str:
    return verdict if units >= ENOUGH else NOISE


def _parameters(found: Errors, method: str) -> str:
    eta, alpha, lam = found.best_setting(method)
    return f"α = {alpha:g}, λ = {lam:g}" + (f", η = {eta:g}" if eta_of(method) else "")


def _at_best(found: Errors, method: str) -> dict[str, Any]:
    return {"error at the end": float(found.best(method)[0]), "with": _parameters(found, method)}


def _shares(found: Errors, method: str) -> dict[str, float]:
    """At the best parameters, and over all of them: how many runs end worse than they began."""
    errors = found.by_method[method].reshape(found.units, -1)
    return {
        "share of runs there that end worse than they began": float(
            (errors[:, found.mean(method)[0].argmin()] > 1.0).mean()
        ),
        "share of all settings whose mean error is larger at the end": float((found.mean(method)[0] > 1.0).mean()),
    }


# --- Tables and charts ----------------------------------------------------------------------------


def _table(names: Sequence[str], rows: Sequence[tuple]) -> pa.Table:
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def _csv(table: pa.Table) -> bytes:
    from pyarrow import csv

    sink = pa.BufferOutputStream()
    csv.write_csv(table, sink)
    return sink.getvalue().to_pybytes()


def _at_best_eta(found: Errors, method: str) -> np.ndarray:
    """(unit, α, λ), with the best η for each α and λ."""
    errors = np.minimum(found.by_method[method], 1e12)
    best = errors.mean(axis=0).argmin(axis=0)
    return np.take_along_axis(errors, best[None, None], axis=1)[:, 0]


def _ends(ends: dict[str, Errors]) -> pa.Table:
    """The error at the end over α and λ: its median, and the middle four fifths of the runs."""
    rows = []
    for problem, found in ends.items():
        for method in FAMILY:
            low, middle, high = np.quantile(_at_best_eta(found, method), (0.1, 0.5, 0.9), axis=0)
            rows += [
                (problem, method, float(ALPHAS[i]), float(LAMS[j]), middle[i, j], low[i, j], high[i, j])
                for i, j in np.ndindex(middle.shape)
            ]
    return _table(("problem", "method", "step_size", "λ", "error", "low", "high"), rows)


def _over_time(lines: dict[str, dict[str, np.ndarray]], ways: dict[str, Errors]) -> pa.Table:
    rows = []
    for problem, by_method in lines.items():
        for method, errors in by_method.items():
            low, middle, high = np.quantile(np.minimum(errors, 1e12), (0.1, 0.5, 0.9), axis=0)
            parameters = _parameters(ways[problem], method)
            rows += [
                (problem, method, int(t), *numbers, parameters)
                for t, *numbers in zip(TIMES, middle, low, high, strict=True)
            ]
    return _table(("problem", "method", "step", "error", "low", "high", "parameters"), rows)


def _classes(classes: dict[tuple[str, float], Errors], settings: Settings) -> pa.Table:
    rows = []
    for (representation, distance), found in classes.items():
        weights = resample(found.units, seed=settings.seed)
        for method in FAMILY:
            eta, alpha, lam = found.best_setting(method)
            bounds = interval(found.best(method, weights))
            rows.append((representation, distance, method, float(found.best(method)[0]), *bounds, alpha, lam, eta))
    return _table(
        ("representation", "distance", "method", "error", "low", "high", "step_size", "trace_decay", "eta"), rows
    )


SEEN = (1e-6, 1e4)  # what the axes of errors that may go anywhere show


def _chart_of_ends(data: pa.Table) -> Chart:
    return Chart(
        data, "step_size", "error", "method", "α", "error at the end (at the beginning 1)",
        columns="problem", choose="λ", low="low", high="high", log_x=True, log_y=True, y_domain=SEEN,
        title="Counterexamples: the error at the end, over α, at the best η (median; 10 to 90 % of runs)",
    )  # fmt: skip


def _chart_over_time(data: pa.Table) -> Chart:
    return Chart(
        data, "step", "error", "method", "step", "error (at the beginning 1)",
        columns="problem", low="low", high="high", log_x=True, log_y=True, y_domain=SEEN,
        title="Counterexamples: the error over time, each at its best parameters (median; 10 to 90 % of runs)",
    )  # fmt: skip


def _chart_of_classes(data: pa.Table) -> Chart:
    return Chart(
        data, "distance", "error", "method", "distance of the target from the behaviour", "mean error (at the beginning 1)",
        columns="representation", low="low", high="high",
        title=f"Random MDPs: the mean error over the first {MDP_STEPS:,} steps, each at its best parameters (95 %)",
    )  # fmt: skip


# --- The picture ----------------------------------------------------------------------------------


def _picture(ends: dict[str, Errors], lines: dict[str, dict[str, np.ndarray]], classes: pa.Table) -> Any:
    from matplotlib.lines import Line2D

    made, axes = figure(3, 2, width=8.2, height=8.8)
    for column, problem in enumerate(ends):
        _draw_ends(axes[0, column], ends[problem])
        _draw_lines(axes[1, column], lines[problem])
        axes[0, column].set_title(f"{problem}: at the end, over α, at λ = 0")
        axes[1, column].set_title(f"{problem}: over time, each at its best")
    for column, representation in enumerate(REPRESENTATIONS):
        _draw_classes(axes[2, column], classes, representation)
        axes[2, column].set_title(f"random MDPs, {representation} features, each at its best")
    for row, said in enumerate(("error at the end", "error", f"mean error of {MDP_STEPS:,} steps")):
        axes[row, 0].set_ylabel(f"{said} (initial = 1)")
    handles = [Line2D([], [], label=NAMES[method], **_line(method) | _marker(method)) for method in FAMILY]
    made.legend(handles=handles, loc="outside upper center", ncols=3)
    return made


def _line(method: str) -> dict[str, Any]:
    return {"color": COLOURS[method], "linewidth": 1.5, "linestyle": (0, DASHES[method]) if DASHES[method] else "-"}


def _marker(method: str) -> dict[str, Any]:
    """Filled for true online methods."""
    filled = {} if method in PAIRS.values() else {"markerfacecolor": "white"}
    return {"color": COLOURS[method], "marker": MARKERS[method], "markersize": 4.5, **filled}


def _draw_ends(panel: Any, found: Errors) -> None:
    for method in PAIRS:  # at λ = 0 the true online form is the same
        median = np.quantile(_at_best_eta(found, method)[:, :, 0], 0.5, axis=0)
        panel.plot(ALPHAS, np.clip(median, *SEEN), clip_on=False, **_line(method) | _marker(method))
    _log(panel)
    panel.set(xlabel="α", xlim=(ALPHAS[0] / 1.3, ALPHAS[-1] * 1.3))


def _draw_lines(panel: Any, by_method: dict[str, np.ndarray]) -> None:
    for method, errors in by_method.items():
        low, middle, high = np.clip(np.quantile(np.minimum(errors, 1e12), (0.1, 0.5, 0.9), axis=0), *SEEN)
        panel.fill_between(TIMES, low, high, color=COLOURS[method], alpha=0.08, linewidth=0)
        width = 2.6 - 0.3 * FAMILY.index(method)  # some lie on each other: what is below is wider
        panel.plot(TIMES, middle, **_line(method) | {"linewidth": width})
    _log(panel)
    panel.set(xlabel="step", xlim=(1, STEPS))


def _log(panel: Any) -> None:
    panel.axhline(1.0, color="#777777", linewidth=0.9, zorder=0)
    panel.set(xscale="log", yscale="log", ylim=SEEN)
    panel.minorticks_off()


def _draw_classes(panel: Any, classes: pa.Table, representation: str) -> None:
    rows = [row for row in classes.to_pylist() if row["representation"] == representation]
    for position, method in enumerate(FAMILY):
        for place, row in enumerate(row for row in rows if row["method"] == method):
            x = place + (position - 2.5) * 0.13
            panel.plot([x, x], [row["low"], row["high"]], color=COLOURS[method], linewidth=1.2)
            panel.plot(x, row["error"], **_marker(method))
    panel.axhline(1.0, color="#777777", linewidth=0.9, zorder=0)
    panel.set_xticks(range(len(DISTANCES)), [f"{distance:g}" for distance in DISTANCES])
    panel.grid(visible=False, axis="x")
    panel.set(xlabel="distance of the target from the behaviour (bars: 95 %)", ylim=(0.0, None))


EXPERIMENT = Experiment(
    "offpolicy",
    "Beyond the paper — learning about one policy from another",
    f"""The paper's section 7 names methods that learn about one policy, the target, from what another, the behaviour, does.
Which of them converge, how fast, and is the true online form better? The methods are off-policy TD(λ), GTD(λ) and emphatic
TD(λ), each with its true online form. Off-policy TD(λ) is GTD(λ) without second weights (β = 0).

Counterexamples are where TD(0) diverges in expectation, however small its step-size: two states with the features 1 and 2,
and Baird's seven states. {RUNS} runs of {STEPS:,} steps, from the initial weights of the literature, at which the error is 1.
The error at the end is the mean over the last {LAST} steps. A run that ends above 1 has been made worse by learning.

Random MDPs have {STATES} states, {ACTIONS} actions and {BRANCHING} next states for each, σ = {SIGMA:g}. The
behaviour is uniform, and the distance says how far from it the target is: 0 is on-policy, 1 a deterministic target. There are
{MDPS} of them with {MDP_RUNS} runs of {MDP_STEPS:,} steps each, seen through tabular features and through the binary
code of the state. The error is the mean over all steps, from zero weights. One setting of the parameters is chosen for all.

Grids: 16 step-sizes from 2⁻¹⁴ to 2; λ = 0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95 and 1; and for GTD(λ) η = β/α = 1/16, 1/4, 1, 4 and
16, which gives it five times as many settings to choose the best from as the others have. All methods see the same trajectories.
Grids and claims were fixed before the first results were looked at.

Best is best in the mean over runs (or MDPs), where what has diverged counts as 10¹². Intervals come from 1,000 bootstrap
samples, in each of which the best parameters are chosen anew. At λ = 0 a method and its true online form are the same. Lines over
time are at the parameters that are best over all steps. What is beyond the axes of the figure is drawn at their edge.

Divergence in expectation and divergence of a run are not the same. On the two states a step of TD(0) multiplies the weight by
1 + 1.6α, by 1 − 0.8α or by 1. So a run almost surely goes to 0 where (1 + 1.6α)·|1 − 0.8α| < 1, which is for 0.625 < α < 1.6,
though the mean over runs grows without bound: that of ever rarer, ever larger exceptions.""",
    run,
)
