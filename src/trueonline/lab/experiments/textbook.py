"""Sutton and Barto, chapter 12 — the random walk

The figure shows the RMS error over the 19 states at the end of an episode, averaged over the first ten episodes, as a
function of α for each λ. The experiment is that of Reinforcement Learning: An Introduction (second edition, 2018), chapter
12: the offline λ-return algorithm (Figure 12.3), TD(λ) with accumulating traces (Figure 12.6), and the online λ-return
algorithm, which is true online TD(λ) (Figure 12.8).

The book prints curves and no numbers. The claims are its words about the curves. One level is read off Figure 12.8, and the
picture shows it as a cross. The criteria were fixed before the first results were seen: "virtually identical" is a
difference below a tenth, and "much worse" is more than twice the error. Intervals come from a bootstrap over runs. TD(λ)
diverges at large α and λ. An error above 10⁹ counts as 10⁹.

The lines of λ = 0 depend on the targets of the offline algorithm. Here all values in a λ-return come from the weights at the
beginning of the episode. The claim is judged with this definition, in which the lines differ. The book's equation (12.1)
takes the value of the next state from the newest weights. At λ = 0 the offline algorithm is then TD(0), and the lines are the
same. For λ > 0 the definition of (12.1) cannot be computed offline, because its weights depend on later updates.

Question: Does this software also give the figures of the textbook?

Paper: The book of Sutton and Barto shows the same walk with 19 states for three methods. They are similar at their best
settings. TD(λ) is much worse with large steps and a long memory.

Look: Lower is better. Each line is one λ, from dark (no memory) to light (a long one). Compare how fast the lines rise on the
right.

Exceptions: The claim about λ = 0 depends on how the offline algorithm computes its targets. With the book's equation the two
lines are the same. The text below the figure says more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline import AccumulateTD, OnlineLambdaReturn, TrueOnlineTD
from trueonline.lab.best_rows import BestRows
from trueonline.lab.claims import EQUAL, FAILS, Claim, Estimate, decided, judge, overall
from trueonline.lab.experiment import Experiment, Outcome, Settings, largest_difference, stacked
from trueonline.lab.experiments import fig1
from trueonline.lab.style import NAMES, figure, lines_over_lam
from trueonline.problems import FiniteMRP, Trajectory, random_walk
from trueonline.words import count

STATES, EPISODES, RUNS = 19, 10, 100
TRACE_DECAYS = (0.0, 0.4, 0.8, 0.9, 0.95, 0.975, 0.99, 1.0)
SMALL_STEP_SIZES = (0.01, 0.02, 0.03, 0.04, 0.05, 0.065, 0.08, 0.1, 0.125, 0.15, 0.175)
STEP_SIZES = (*SMALL_STEP_SIZES, *(round(0.05 * i, 2) for i in range(4, 21)))
FIGURES = {"offline": "12.3", "accumulate": "12.6", "true_online": "12.8"}
LEARNERS = {"accumulate": AccumulateTD, "true_online": TrueOnlineTD}
READ_LEVEL, READING, READING_ERROR = (0.255, (0.8, 0.4), 0.01)  # Figure 12.8: an error, its λ and α, its exactness
AXIS = (0.25, 0.55)  # the book's
DIVERGED = 1e9  # a larger error counts as this one, because infinite ones have no means
SIMILARITY = 0.1  # errors that differ by less than a tenth are virtually identical
LARGE_STEP_SIZE = 1.0  # the step-size at which TD(λ) is said to be much worse
MUCH_WORSE = 2.0  # much worse: more than twice the error
LONG_TRACES = (0.8, 0.9, 0.95, 0.975, 0.99, 1.0)  # the λ at which it is


def episodes(walk: FiniteMRP, seed: object) -> list[Trajectory]:
    """The first ten episodes of a run."""
    run = fig1.episodes(walk, seed, EPISODES)
    ends = np.flatnonzero(run.discounts == 0.0) + 1
    parts = zip([0, *ends[:-1]], ends, strict=True)
    return [Trajectory(run.states[i : j + 1], run.rewards[i:j], run.discounts[i:j]) for i, j in parts]


def rms(weights: np.ndarray, walk: FiniteMRP) -> np.ndarray:
    """The RMS error over the states, which are the last dimension."""
    with np.errstate(over="ignore"):  # some settings diverge
        return np.sqrt(np.mean((weights - walk.values) ** 2, axis=-1))


def online_errors(
    learner_class: type, lam: float, alpha: float, runs: list[list[Trajectory]], walk: FiniteMRP
) -> np.ndarray:
    """For each run the error at the end of an episode, averaged over the episodes.

    All runs are learned in one stream, episode by episode. Each run has features of its own, so runs do not mix.
    """
    learner = learner_class(len(runs) * STATES, alpha, lam, walk.discount)
    total = np.zeros(len(runs))
    for number in range(EPISODES):
        parts = [run[number] for run in runs]
        states = np.concatenate([part.states[:-1] + r * STATES for r, part in enumerate(parts)])
        rewards, discounts = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
        learner.run(np.append(states, 0), rewards, discounts)  # the last episode has ended, so any state may follow
        total += rms(learner.weights.reshape(len(runs), STATES), walk)
    return np.nan_to_num(np.minimum(total / EPISODES, DIVERGED), nan=DIVERGED)


def offline_errors(run: list[Trajectory], walk: FiniteMRP) -> np.ndarray:
    """The same for the offline λ-return algorithm: an array over λ and α, for one run.

    At the end of an episode every state is updated in turn towards its λ-return, whose values are those of the weights at the
    beginning of the episode. All λ and α are computed at once.
    """
    lam, alpha = np.array(TRACE_DECAYS)[:, None], np.array(STEP_SIZES)
    w, total = np.zeros((len(lam), len(alpha), STATES)), np.zeros((len(lam), len(alpha)))
    for states, rewards, _ in run:
        values, length = w[..., states], len(rewards)
        targets = np.empty((length, *total.shape))
        targets[-1] = rewards[-1]
        for k in range(length - 2, -1, -1):
            targets[k] = rewards[k] + (1.0 - lam) * values[..., k + 1] + lam * targets[k + 1]
        for k in range(length):
            w[..., states[k]] += alpha * (targets[k] - w[..., states[k]])
        total += rms(w, walk)
    return total / EPISODES


def newest_weights_errors(run: list[Trajectory], walk: FiniteMRP) -> np.ndarray:
    """The errors of the offline algorithm at λ = 0 if its targets follow the book's (12.1): an array over α, for one run.

    There the return from t takes the value of the next state from the weights w_t, which the updates before it have changed.
    """
    alpha = np.array(STEP_SIZES)
    w, total = np.zeros((len(alpha), STATES)), np.zeros(len(alpha))
    for states, rewards, discounts in run:
        for state, next_state, reward, discount in zip(states[:-1], states[1:], rewards, discounts, strict=True):
            w[:, state] += alpha * (reward + discount * w[:, next_state] - w[:, state])
        total += rms(w, walk)
    return total / EPISODES


def run(settings: Settings) -> Outcome:
    walk = random_walk(STATES)
    runs = [episodes(walk, [settings.seed, number]) for number in range(settings.number(RUNS))]
    by_method = {"offline": np.stack([offline_errors(each, walk) for each in runs])}
    for name, learner in LEARNERS.items():
        grid = [[online_errors(learner, lam, alpha, runs, walk) for alpha in STEP_SIZES] for lam in TRACE_DECAYS]
        by_method[name] = np.array(grid).transpose(2, 0, 1)
    errors = {name: Estimate.mean(by_method[name], settings.seed) for name in FIGURES}  # over λ and α
    newest = np.mean([newest_weights_errors(each, walk) for each in runs], axis=0)
    claims = [*judged(errors, len(runs)), lines_of_td0(errors, newest), exactness(walk, runs[0][0])]
    note = f"{count(len(runs), 'run')} of {EPISODES} episodes, the same for all methods and settings."
    return Outcome(_table(errors), {"figure": lambda: _picture(errors, len(runs))}, claims, note=note)


def _table(errors: Mapping[str, Estimate]) -> pa.Table:
    lams, alphas = (grid.ravel() for grid in np.meshgrid(TRACE_DECAYS, STEP_SIZES, indexing="ij"))
    grid = {"trace_decay": lams, "step_size": alphas}
    return stacked({name: {**grid, **estimate.columns("rms_error")} for name, estimate in errors.items()})


def _picture(errors: Mapping[str, Estimate], runs: int) -> Any:
    """Three panels, as in the book: the error over α, a line for each λ."""
    drawing, (row,) = figure(1, 3, width=9.6, height=4.1, sharey=True)
    for axes, (name, number) in zip(row, FIGURES.items(), strict=True):
        lines_over_lam(axes, STEP_SIZES, errors[name].value, TRACE_DECAYS, linewidth=1.4)
        axes.set(xlabel="step-size α", xlim=(0.0, 1.0), ylim=AXIS)
        axes.set_title(f"Figure {number}: {NAMES[name]}")
    row[2].plot(
        READING[1], READ_LEVEL, "+", color="#D55E00", ms=11, mew=2, label=f"the book, λ = {READING[0]:g}", zorder=5
    )
    row[0].set_ylabel(f"RMS error over 19 states,\nfirst 10 episodes, {count(runs, 'run')}")
    handles, labels = row[2].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return drawing


def judged(errors: Mapping[str, Estimate], runs: int) -> list[Claim]:
    """The claims that intervals over runs decide."""
    claims = [_intermediate(name, errors[name]) for name in FIGURES]
    claims += [_virtually_identical(errors), _much_worse(errors)]
    gap = errors["true_online"].best() - errors["offline"].best()
    claims.append(
        Claim(
            "Figure 12.8: at its best α and λ, the online λ-return algorithm (true online TD(λ)) is at least as good as the "
            "offline one",
            gap.judge(at_most=0.0),
            {
                "true online": errors["true_online"].best().value,
                "offline": errors["offline"].best().value,
                "95 % interval of the difference": gap.interval,
            },
        )
    )
    level = errors["true_online"][TRACE_DECAYS.index(READING[0]), STEP_SIZES.index(READING[1])]
    claims.append(
        Claim(
            f"Figure 12.8: the error at λ = {READING[0]:g} and α = {READING[1]:g} is about {READ_LEVEL:g}",
            level.judge(at_least=READ_LEVEL - READING_ERROR, at_most=READ_LEVEL + READING_ERROR),
            {
                "error": level.value,
                "95 % interval": level.interval,
                "holds if": f"the interval lies within {READING_ERROR:g} of it",
            },
        )
    )
    return [replace(claim, samples=runs) for claim in claims]


def lines_of_td0(errors: Mapping[str, Estimate], newest: np.ndarray) -> Claim:
    """The lines of λ = 0. `newest` are the offline errors there with targets from the newest weights."""
    ours = errors["true_online"].value[0]
    apart = float(np.abs(ours - errors["offline"].value[0]).max())
    return Claim(
        "Figure 12.8: the line of λ = 0 is the same for both methods, if the targets of the offline algorithm come from the "
        "weights at the beginning of the episode",
        decided(apart <= EQUAL),
        {
            "largest difference of the errors": apart,
            "the same if targets come from the newest weights, as in the book's (12.1) (not judged)": float(
                np.abs(ours - newest).max()
            ),
        },
    )


def exactness(walk: FiniteMRP, episode: Trajectory) -> Claim:
    """Whether true online TD(λ) equals its definition at every step of an episode."""
    lam, alpha = READING
    learners = [each(STATES, alpha, lam, walk.discount) for each in (TrueOnlineTD, OnlineLambdaReturn)]
    apart = largest_difference(learners, *episode)
    return Claim(
        "True online TD(λ) computes the online λ-return algorithm at every step",
        decided(apart <= EQUAL),
        {"largest difference of any weight in an episode, at λ = 0.8 and α = 0.4": apart},
    )


def _intermediate(name: str, errors: Estimate) -> Claim:
    best = errors.best(1)  # over λ
    ends = Estimate(np.minimum(best[0].rows, best[-1].rows))
    gap = best[1:-1].best() - ends
    i, j = np.unravel_index(errors.value.argmin(), errors.value.shape)
    return Claim(
        f"Figure {FIGURES[name]}: {NAMES[name]} does best with an intermediate λ",
        gap.judge(at_most=0.0),
        {
            "best error": errors.best().value,
            "λ": TRACE_DECAYS[int(i)],
            "α": STEP_SIZES[int(j)],
            "best at λ = 0": best[0].value,
            "best at λ = 1": best[-1].value,
            "95 % interval of the difference": gap.interval,
        },
    )


def _virtually_identical(errors: Mapping[str, Estimate]) -> Claim:
    """At each λ over the step-sizes that are smaller than the best one of the offline algorithm."""
    ratios = errors["accumulate"] / errors["offline"]
    settings = [(i, j) for i, row in enumerate(errors["offline"].value) for j in range(int(row.argmin()))]
    verdicts = [ratios[place].judge(at_least=1.0 - SIMILARITY, at_most=1.0 + SIMILARITY) for place in settings]
    return Claim(
        "Figure 12.6: where α is smaller than the best for its λ, TD(λ) and the offline λ-return algorithm are virtually identical",
        overall(verdicts),
        {
            "largest relative difference": max(abs(ratios[place].value - 1.0) for place in settings),
            "settings": len(verdicts),
            "settings that differ by more than a tenth": verdicts.count(FAILS),
            "holds if": "all intervals of the ratio lie within a tenth of 1",
        },
    )


def _much_worse(errors: Mapping[str, Estimate]) -> Claim:
    places = [TRACE_DECAYS.index(lam) for lam in LONG_TRACES]
    ratios = (errors["accumulate"] / errors["offline"])[places, STEP_SIZES.index(LARGE_STEP_SIZE)]
    return Claim(
        f"Figure 12.6: at large α (here {LARGE_STEP_SIZE:g}) TD(λ) is much worse than the offline λ-return algorithm, for λ ≥ 0.8",
        overall([judge(low, high, at_least=MUCH_WORSE) for low, high in ratios.bounds.T]),
        {
            **{
                f"ratio of the errors, λ = {lam:g}": float(ratio)
                for lam, ratio in zip(LONG_TRACES, ratios.value, strict=True)
            },
            "holds if": f"each ratio is at least {MUCH_WORSE:g}",
        },
    )


EXPERIMENT = Experiment("textbook", __doc__, run, BestRows(("method",), "rms_error"))
