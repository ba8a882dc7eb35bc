"""Beyond the paper — eleven off-policy methods on the Collision task

The study of Ghiassian and Sutton (2021, An empirical comparison of off-policy prediction learning algorithms on the Collision
task, arXiv:2106.00922), at its full size. A vehicle drives towards a wall and may turn away. How likely is a collision, and how
soon, if it never turned? Each of the 50 runs has 20,000 steps and features of its own. All methods see the same runs.

The grids are those of the configurations in the study's public program: α = 2⁻¹⁸ … 1, twelve λ from 0 to 1 (ζ for ABTD(ζ)), η =
2⁻⁶, 2⁻⁴ … 2⁸ for gradient methods, and β = 0, 0.2 … 1 for emphatic TD(λ, β). V-trace(λ) clips the ratios of its trace alone, as the
program does.

The target policy is deterministic, so π = min(1, ρ). So V-trace(λ) and Tree Backup(λ) are the same here, and so is ABTD(λ/2). All
ζ ≥ ½ are the same too.

The error of a run is the root of the mean squared error of the values, weighted by how often the behaviour visits a state. The
mean is over all steps ("the run"), or over the last 1 % of them ("the end"). The best setting has the smallest mean over runs. A
diverged run counts as 10¹². Intervals come from 1,000 bootstrap samples of the runs, each with its own best setting.

Departures: the study takes the root at each step, and then the mean. Its features were drawn with other random numbers. It repeated
its best settings on fresh runs. Here intervals contain the choice. Its text was not available. The claims are the sentences of its
abstract, and their criteria were fixed before results were looked at.

Question: Which of eleven methods learns fastest and best about one way of acting while it watches another?

Paper: The study says that emphatic methods are the best here, gradient methods and TD(λ) come next, and V-trace, Tree Backup and
ABTD are last.

Look: Lower is better. A wide valley is easy to hit: many step-sizes are good. Where lines of different λ lie close to each other,
λ matters little.

Exceptions: The order may depend on the features that are drawn. A claim about many comparisons fails when one of them does.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline import study
from trueonline.inputs.seeds import seed_of
from trueonline.lab.best_rows import BestRows
from trueonline.lab.claims import HOLDS, ROUNDING, Claim, Errors, Estimate, counts, overall
from trueonline.lab.experiment import Experiment, Outcome, Settings, table
from trueonline.lab.style import NAMES, figure, lines_over_lam
from trueonline.problems.counterexamples import collision
from trueonline.words import count, duration

ALPHAS = 2.0 ** np.arange(-18, 1)
LAMS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 0.875, 0.9, 0.9375, 0.96875, 0.984375, 1.0)
OWN = {"eta": 2.0 ** np.arange(-6, 9, 2), "follow_on_decay": np.arange(6) / 5.0}  # η and β
SIGNS = {"eta": "η", "follow_on_decay": "β"}
RUNS, STEPS, LAST = 50, 20_000, 200
MEASURES = {"the run": 0, "the end": STEPS - LAST}  # each with the number of steps that it leaves out

EMPHATIC = ("emphatic", "emphatic_beta")
MIDDLE = ("off_policy", "gtd", "gtd2", "htd", "proximal_gtd2", "tdrc")
BOTTOM = ("v_trace", "tree_backup", "abtd")
METHODS = (*EMPHATIC, *MIDDLE, *BOTTOM)
DRAWN = (0.0, 0.5, 0.9, 1.0)  # the λ of lines
FIRST = 0.7  # more than the error at the beginning, which is 0.689 with any features


def run(settings: Settings) -> Outcome:
    runs = settings.number(RUNS)
    cases = {measure: [case(run, after, settings) for run in range(runs)] for measure, after in MEASURES.items()}
    tasks = {measure: study.cases.expand(some) for measure, some in cases.items()}
    everything = [task for some in tasks.values() for each in some for task in each]
    missing = [task for task in everything if study.read_task(task, settings.tasks) is None]
    if missing:
        settings.say(estimate(missing, len(everything), settings))
    study.execute_tasks(everything, settings.tasks, **settings.how)
    errors = {
        measure: errors_of(cases[measure], [settings.gathered(each) for each in tasks[measure]], settings.seed)
        for measure in MEASURES
    }
    return Outcome(
        table_of(errors),
        {"figure": lambda: picture(errors["the run"]), "end": lambda: picture(errors["the end"])},
        claims(errors),
        note=f"Here there are {count(runs, 'run')}.",
    )


def case(run: int, after: int, settings: Settings) -> study.Case:
    """The sweep of one run, which has its own features and its own trajectory."""
    features, own = (
        np.random.SeedSequence(seed_of(f"{what} of the Collision task", settings.seed, run))
        for what in ("features", "trajectories")
    )
    methods: dict[str, Any] = dict.fromkeys(METHODS)
    methods["v_trace"] = study.SweptMethod("v_trace", parameters={"largest_ratio": 2.0})  # no ratio is larger
    seed, grids = int(own.generate_state(1)[0]), {name: tuple(values) for name, values in OWN.items()}
    return study.Case(collision(features), methods, tuple(ALPHAS), LAMS, 1, STEPS, seed, after=after, parameters=grids)


def estimate(missing: Sequence[Any], of: int, settings: Settings) -> str:
    """How long the missing tasks will take, from a trial of each method on this machine."""
    steps = sum(task.steps for task in missing)
    done = "" if len(missing) == of else f" ({of - len(missing):,} of {of:,} tasks are done already)"
    size = f"The Collision task: {steps:,} learning steps{done}."
    if settings.engine != "local":
        return size
    seconds = 0.0
    for method in METHODS:
        tasks = [task for task in missing if task.method == method]
        if tasks:
            trial, alphas = tasks[0].case, ALPHAS[[5, 10]]
            for lams in (np.zeros(1), np.array(LAMS)):  # the first trial compiles, or loads what has been compiled
                began = time.thread_time()  # other work on the machine does not count
                found = np.empty((1, len(alphas), len(lams)))
                trial.methods[method].sweep(
                    trial.arrays, trial.problem.discount, 0, [trial.trajectory(0)], alphas, lams, found
                )
                taken = (time.thread_time() - began) / (found.size * trial.steps)
            seconds += taken * sum(task.steps for task in tasks)
    cores = settings.threads or os.cpu_count() or 1
    return (
        f"{size} This takes {duration(seconds)} of core time, or {duration(seconds / cores)} on {count(cores, 'core')}."
    )


# --- The results ----------------------------------------------------------------------------------


def errors_of(cases: Sequence[study.Case], results: Sequence[pa.Table], seed: int) -> Errors:
    """The root of the mean squared value error of each run: for each method an array over run, η or β, α and λ."""
    found: dict[str, list[np.ndarray]] = {method: [] for method in METHODS}
    for one, result in zip(cases, results, strict=True):
        problem = one.problem
        off = problem.features @ problem.lms_weights - problem.values
        floor = float(problem.stationary @ off**2)
        begun = problem.initial_weights - problem.lms_weights
        names, relative = result["method"].to_numpy(zero_copy_only=False), result["error"].to_numpy()
        for method, arrays in found.items():
            excess = relative[names == method].reshape(-1, len(ALPHAS), len(LAMS)) * (begun @ problem.metric @ begun)
            arrays.append(np.sqrt(floor + excess))
    return Errors({method: np.stack(arrays) for method, arrays in found.items()}, seed)


def own_grid(method: str) -> tuple[str, np.ndarray]:
    """The sign and the values of the parameter that a method has beside α and λ."""
    name = "follow_on_decay" if method == "emphatic_beta" else "eta" if method in MIDDLE[1:] else None
    return (SIGNS[name], OWN[name]) if name else ("", np.array([np.nan]))


def table_of(errors: Mapping[str, Errors]) -> pa.Table:
    """The mean error at each α and λ, at the best η or β there, with its interval."""
    rows = []
    for (measure, each), method in product(errors.items(), METHODS):
        sign, values = own_grid(method)
        chosen = each.mean(method).argmin(axis=0)
        best = each.estimate(method).best(0)
        low, high = best.bounds
        for i, j in np.ndindex(chosen.shape):
            other = f"{sign} = {values[chosen[i, j]]:g}" if sign else ""
            rows.append((measure, method, float(ALPHAS[i]), LAMS[j], other, best.value[i, j], low[i, j], high[i, j]))
    return table(("measure", "method", "step_size", "trace_decay", "own", "error", "low", "high"), rows)


def claims(errors: Mapping[str, Errors]) -> list[Claim]:
    """The sentences of the abstract. Their numbers name the comparisons that do not hold."""
    whole, end = errors["the run"], errors["the end"]
    others = (*MIDDLE, *BOTTOM)
    parts = {
        "The two emphatic methods learn fastest: at their best, they have a lower error over the run than each other method": [
            _lower(whole, "the run", ours, other) for ours, other in product(EMPHATIC, others)
        ],
        "The two emphatic methods reach the lowest errors: at their best, they have a lower error at the end than each other "
        "method": [_lower(end, "the end", ours, other) for ours, other in product(EMPHATIC, others)],
        "Gradient methods and off-policy TD(λ) are more sensitive to λ than emphatic methods: from the best to the worst λ, their "
        "error over the run grows by a larger factor": [
            _steadier(whole, ours, other) for ours, other in product(EMPHATIC, MIDDLE)
        ],
        "V-trace(λ), Tree Backup(λ) and ABTD(ζ) are no faster than gradient methods and off-policy TD(λ): at their best, they have "
        "no lower error over the run": [_lower(whole, "the run", ours, other) for ours, other in product(MIDDLE, BOTTOM)],
        "V-trace(λ), Tree Backup(λ) and ABTD(ζ) have a higher asymptotic error than each other method: at their best, at the end": [
            _lower(end, "the end", ours, other) for ours, other in product((*EMPHATIC, *MIDDLE), BOTTOM)
        ],
    }
    return [_summary(claim, details) for claim, details in parts.items()]


def _summary(claim: str, details: Sequence[Claim]) -> Claim:
    verdicts = [detail.verdict for detail in details]
    numbers: dict[str, Any] = {"comparisons": len(details), **counts(verdicts)}
    numbers |= {detail.claim: told(detail.numbers) for detail in details if detail.verdict != HOLDS}
    return Claim(claim, overall(verdicts), numbers, details[0].samples)


def told(numbers: Mapping[str, Any]) -> str:
    """A comparison in words: the relative difference with its interval, and what it compares."""
    difference, (low, high), *others = numbers.values()
    names = list(numbers)[2:]
    shown = "; ".join(f"{name}: {value}" for name, value in zip(names, others, strict=True))
    return f"{difference:+.3f} [{low:+.3f}, {high:+.3f}]; {shown}".replace("-", "−")


def _lower(errors: Errors, measure: str, ours: str, other: str) -> Claim:
    names = NAMES[ours], NAMES[other]
    numbers = {
        name: f"{errors.best(method).value:.4g} at {_setting(errors, method)}"
        for name, method in zip(names, (ours, other), strict=True)
    }
    return _judged(
        f"{names[0]} has an error no larger than {names[1]}, {measure}", errors.ratio(ours, other), numbers, errors
    )


def _steadier(errors: Errors, ours: str, other: str) -> Claim:
    def spread(method: str) -> Estimate:
        return errors.best_by_lam(method).largest() / errors.best(method)

    numbers = {f"worst λ over best λ, {NAMES[each]}": f"{spread(each).value:.3g}" for each in (ours, other)}
    ratio = spread(ours) / spread(other) - 1.0
    return _judged(f"{NAMES[ours]} is no more sensitive to λ than {NAMES[other]}", ratio, numbers, errors)


def _judged(claim: str, ratio: Estimate, numbers: Mapping[str, Any], errors: Errors) -> Claim:
    found = {"relative difference": ratio.value, "95 % interval": ratio.interval, **numbers}
    return Claim(claim, ratio.judge(at_most=ROUNDING), found, errors.samples)


def _setting(errors: Errors, method: str) -> str:
    """The best setting in words."""
    h, i, j = errors.place(method)
    sign, values = own_grid(method)
    return f"α = {ALPHAS[i]:g}, λ = {LAMS[j]:g}" + (f", {sign} = {values[h]:g}" if sign else "")


# --- The picture ----------------------------------------------------------------------------------


def picture(errors: Errors) -> Any:
    """The error against α for some λ, a panel for each method, and the best of each method in the last panel."""
    drawing, axes = figure(3, 4, width=10.5, height=7.6)
    panels = axes.ravel()
    shown = [LAMS.index(lam) for lam in DRAWN]
    for panel, method in zip(panels, METHODS, strict=False):
        best = errors.estimate(method).best(0)
        low, high = best.bounds
        lines_over_lam(panel, ALPHAS, best.value[:, shown].T, DRAWN, zorder=3)
        for place, line in zip(shown, panel.lines, strict=True):
            panel.fill_between(ALPHAS, low[:, place], high[:, place], color=line.get_color(), alpha=0.2, linewidth=0)
        sign, _ = own_grid(method)
        panel.set(
            title=NAMES[method] + (f", best {sign}" if sign else ""), xlim=(ALPHAS[0], ALPHAS[-1]), ylim=(0.0, FIRST)
        )
        panel.set_xscale("log", base=2)
        panel.set_xticks(2.0 ** np.arange(-15, 0, 5))
    panels[0].legend(fontsize=7)
    for panel in axes[-1, :-1]:
        panel.set_xlabel("α")
    for panel in axes[:, 0]:
        panel.set_ylabel("root mean squared error")
    _draw_best(panels[-1], errors)
    return drawing


def _draw_best(panel: Any, errors: Errors) -> None:
    for place, method in enumerate(METHODS):
        best = errors.best(method)
        tier = "#009E73" if method in EMPHATIC else "#0072B2" if method in MIDDLE else "#7F7F7F"
        panel.plot([place, place], best.interval, color=tier)
        panel.plot(place, best.value, "o", color=tier, markersize=4)
    panel.set_xticks(range(len(METHODS)), [NAMES[method] for method in METHODS], rotation=60, ha="right", fontsize=6.5)
    panel.grid(visible=False, axis="x")
    panel.set(title="each at its best", ylim=(0.0, None))


BEST = BestRows(("measure", "method"), "error")
EXPERIMENT = Experiment("collision", __doc__, run, BEST)
