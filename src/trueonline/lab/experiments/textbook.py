"""Figures 12.3, 12.6 and 12.8 of Sutton and Barto: three λ-return methods on the random walk with 19 states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline import AccumulateTD, OnlineLambdaReturn, TrueOnlineTD
from trueonline.lab.experiment import (
    FAILS,
    HOLDS,
    NOISE,
    Chart,
    Claim,
    Experiment,
    Outcome,
    Settings,
    at_least,
    at_most,
    exactly,
    interval,
    overall,
    resample,
)
from trueonline.lab.style import NAMES, figure
from trueonline.problems import FiniteMRP, Trajectory, random_walk
from trueonline.words import count

STATES, EPISODES, RUNS = 19, 10, 100
TRACE_DECAYS = (0.0, 0.4, 0.8, 0.9, 0.95, 0.975, 0.99, 1.0)
STEP_SIZES = (
    0.01,
    0.02,
    0.03,
    0.04,
    0.05,
    0.065,
    0.08,
    0.1,
    0.125,
    0.15,
    0.175,
    *(round(0.05 * i, 2) for i in range(4, 21)),
)
FIGURES = {"offline": "12.3", "accumulate": "12.6", "true_online": "12.8"}
LEARNERS = {"accumulate": AccumulateTD, "true_online": TrueOnlineTD}
LEVEL, AT, WITHIN = 0.255, (0.8, 0.4), 0.01  # the error in Figure 12.8 at this λ and α, and how exactly it can be read
AXIS = (0.25, 0.55)  # the book's
DIVERGED = 1e9  # a larger error counts as this one, because infinite ones have no means
SIMILAR = 0.1  # errors that differ by less than a tenth are virtually identical
LARGE = 1.0  # the step-size at which TD(λ) is said to be much worse
MUCH = 2.0  # much worse: more than twice the error
TRACED = (0.8, 0.9, 0.95, 0.975, 0.99, 1.0)  # the λ at which it is


def episodes(walk: FiniteMRP, seed: object) -> list[Trajectory]:
    """The first ten episodes of a run."""
    steps = 4000
    while True:
        run = walk.trajectory(steps, seed)
        ends = np.flatnonzero(run.discounts == 0.0)[:EPISODES] + 1
        if len(ends) == EPISODES:
            parts = zip([0, *ends[:-1]], ends, strict=True)
            return [Trajectory(run.states[i : j + 1], run.rewards[i:j], run.discounts[i:j]) for i, j in parts]
        steps *= 2  # the same seed gives the same beginning


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

    At the end of an episode every state is updated in turn towards its λ-return. All λ and α are computed at once.
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


def run(settings: Settings) -> Outcome:
    walk = random_walk(STATES)
    runs = [episodes(walk, [settings.seed, number]) for number in range(settings.number(RUNS))]
    errors = {"offline": np.stack([offline_errors(each, walk) for each in runs], axis=2)}
    for name, learner in LEARNERS.items():
        table = [[online_errors(learner, lam, alpha, runs, walk) for alpha in STEP_SIZES] for lam in TRACE_DECAYS]
        errors[name] = np.array(table)
    means = {name: part.mean(axis=2) for name, part in errors.items()}
    weights = resample(len(runs), seed=settings.seed)
    samples = {name: np.einsum("br,lar->bla", weights, part) for name, part in errors.items()}
    data = _data(means, samples)
    charts = [
        Chart(
            data,
            "step_size",
            "rms_error",
            "method",
            "step-size α",
            "RMS error over the first 10 episodes",
            choose="trace_decay",
            low="low",
            high="high",
            y_domain=AXIS,
        )
    ]
    return Outcome(
        data,
        {"figure": _picture(means, len(runs))},
        charts,
        _claims(walk, runs[0], means, samples, len(runs)),
        shown="figure",
        note=f"{len(runs)} runs of {EPISODES} episodes, the same for all methods and settings.",
    )


def _data(means: dict[str, np.ndarray], samples: dict[str, np.ndarray]) -> pa.Table:
    lams, alphas = (grid.ravel() for grid in np.meshgrid(TRACE_DECAYS, STEP_SIZES, indexing="ij"))
    return pa.concat_tables(
        pa.table(
            {
                "method": [name] * len(lams),
                "trace_decay": lams,
                "step_size": alphas,
                "rms_error": means[name].ravel(),
                "low": np.quantile(samples[name], 0.025, axis=0).ravel(),
                "high": np.quantile(samples[name], 0.975, axis=0).ravel(),
            }
        )
        for name in FIGURES
    )


def _picture(means: dict[str, np.ndarray], runs: int) -> Any:
    """Three panels, as in the book: the error over α, a line for each λ."""
    import matplotlib as mpl

    shades = mpl.colormaps["viridis"](np.linspace(0.0, 0.92, len(TRACE_DECAYS)))
    drawing, (row,) = figure(1, 3, width=9.6, height=4.1, sharey=True)
    for axes, (name, number) in zip(row, FIGURES.items(), strict=True):
        for lam, errors, shade in zip(TRACE_DECAYS, means[name], shades, strict=True):
            axes.plot(STEP_SIZES, errors, color=shade, linewidth=1.4, label=f"λ = {lam:g}")
        axes.set(xlabel="step-size α", xlim=(0.0, 1.0), ylim=AXIS)
        axes.set_title(f"Figure {number}: {NAMES[name]}")
    row[2].plot(AT[1], LEVEL, "+", color="#D55E00", ms=11, mew=2, label=f"the book, λ = {AT[0]:g}", zorder=5)
    row[0].set_ylabel(f"RMS error over 19 states,\nfirst 10 episodes, {count(runs, 'run')}")
    handles, labels = row[2].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return drawing


def _ratio(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    return interval(ours / theirs)


def _claims(
    walk: FiniteMRP,
    first: list[Trajectory],
    means: dict[str, np.ndarray],
    samples: dict[str, np.ndarray],
    runs: int,
) -> list[Claim]:
    claims = [_intermediate(name, means[name], samples[name]) for name in FIGURES]
    claims.append(_virtually_identical(means, samples))
    claims.append(_much_worse(means, samples))
    low, high = interval(samples["true_online"].min(axis=(1, 2)) - samples["offline"].min(axis=(1, 2)))
    claims.append(
        Claim(
            "Figure 12.8: at its best α and λ, the online λ-return algorithm (true online TD(λ)) is at least as good as the "
            "offline one",
            at_most(low, high),
            {
                "true online": float(means["true_online"].min()),
                "offline": float(means["offline"].min()),
                "95 % interval of the difference": [low, high],
            },
        )
    )
    i, j = TRACE_DECAYS.index(AT[0]), STEP_SIZES.index(AT[1])
    low, high = interval(samples["true_online"][:, i, j])
    near = low >= LEVEL - WITHIN and high <= LEVEL + WITHIN
    far = high < LEVEL - WITHIN or low > LEVEL + WITHIN
    claims.append(
        Claim(
            f"Figure 12.8: the error at λ = {AT[0]:g} and α = {AT[1]:g} is about {LEVEL:g}",
            HOLDS if near else FAILS if far else NOISE,
            {
                "error": float(means["true_online"][i, j]),
                "95 % interval": [low, high],
                "holds if": f"the interval lies within {WITHIN:g} of it",
            },
        )
    )
    claims = [replace(claim, samples=runs) for claim in claims]  # those below are about equalities
    same = float(np.abs(means["true_online"][0] - means["offline"][0]).max())
    claims.append(
        Claim(
            "Figure 12.8: the line of λ = 0 is the same for both methods",
            exactly(same),
            {"largest difference of the errors": same},
        )
    )
    apart = _distance(walk, first[0])
    claims.append(
        Claim(
            "True online TD(λ) computes the online λ-return algorithm at every step",
            exactly(apart),
            {"largest difference of any weight in an episode, at λ = 0.8 and α = 0.4": apart},
        )
    )
    return claims


def _intermediate(name: str, means: np.ndarray, samples: np.ndarray) -> Claim:
    best, inner = samples.min(axis=2), slice(1, -1)
    low, high = interval(best[:, inner].min(axis=1) - np.minimum(best[:, 0], best[:, -1]))
    i, j = np.unravel_index(means.argmin(), means.shape)
    return Claim(
        f"Figure {FIGURES[name]}: {NAMES[name]} does best with an intermediate λ",
        at_most(low, high),
        {
            "best error": float(means.min()),
            "λ": TRACE_DECAYS[int(i)],
            "α": STEP_SIZES[int(j)],
            "best at λ = 0": float(means[0].min()),
            "best at λ = 1": float(means[-1].min()),
            "95 % interval of the difference": [low, high],
        },
    )


def _virtually_identical(means: dict[str, np.ndarray], samples: dict[str, np.ndarray]) -> Claim:
    """At each λ over the step-sizes that are smaller than the best one of the offline algorithm."""
    verdicts, worst = [], 0.0
    for i, mean in enumerate(means["offline"]):
        for j in range(int(mean.argmin())):
            low, high = _ratio(samples["accumulate"][:, i, j], samples["offline"][:, i, j])
            inside, outside = low >= 1.0 - SIMILAR and high <= 1.0 + SIMILAR, low > 1.0 + SIMILAR or high < 1.0 - SIMILAR
            verdicts.append(HOLDS if inside else FAILS if outside else NOISE)
            worst = max(worst, abs(float(means["accumulate"][i, j] / mean[j]) - 1.0))
    return Claim(
        "Figure 12.6: where α is smaller than the best for its λ, TD(λ) and the offline λ-return algorithm are virtually identical",
        overall(verdicts),
        {
            "largest relative difference": worst,
            "settings": len(verdicts),
            "settings that differ by more than a tenth": verdicts.count(FAILS),
            "holds if": "all intervals of the ratio lie within a tenth of 1",
        },
    )


def _much_worse(means: dict[str, np.ndarray], samples: dict[str, np.ndarray]) -> Claim:
    j, places = STEP_SIZES.index(LARGE), [TRACE_DECAYS.index(lam) for lam in TRACED]
    verdicts = [at_least(*_ratio(samples["accumulate"][:, i, j], samples["offline"][:, i, j]), MUCH) for i in places]
    return Claim(
        f"Figure 12.6: at large α (here {LARGE:g}) TD(λ) is much worse than the offline λ-return algorithm, for λ ≥ 0.8",
        overall(verdicts),
        {
            **{
                f"ratio of the errors, λ = {TRACE_DECAYS[i]:g}": float(means["accumulate"][i, j] / means["offline"][i, j])
                for i in places
            },
            "holds if": f"each ratio is at least {MUCH:g}",
        },
    )


def _distance(walk: FiniteMRP, episode: Trajectory) -> float:
    """The largest difference between true online TD(λ) and its definition over an episode."""
    lam, alpha = AT
    learner, wanted = (each(STATES, alpha, lam, walk.discount) for each in (TrueOnlineTD, OnlineLambdaReturn))
    apart = 0.0
    for each in (learner, wanted):
        each.start(int(episode.states[0]))
    for state, reward, discount in zip(episode.states[1:], episode.rewards, episode.discounts, strict=True):
        for each in (learner, wanted):
            each.update(float(reward), int(state), float(discount))
        apart = max(apart, float(np.abs(learner.weights - wanted.weights).max()))
    return apart


EXPERIMENT = Experiment(
    "textbook",
    "Sutton and Barto, chapter 12 — the random walk",
    """The chart shows the RMS error over the 19 states at the end of an episode, averaged over the first ten episodes, as a
function of α for each λ. The experiment is that of Reinforcement Learning: An Introduction (second edition, 2018), chapter
12: the offline λ-return algorithm (Figure 12.3), TD(λ) with accumulating traces (Figure 12.6), and the online λ-return
algorithm, which is true online TD(λ) (Figure 12.8).

The book prints curves and no numbers. The claims are its words about the curves. One level is read off Figure 12.8, and the
picture shows it as a cross. The criteria were fixed before the first results were seen: "virtually identical" is a
difference below a tenth, and "much worse" is more than twice the error. Intervals come from a bootstrap over runs. TD(λ)
diverges at large α and λ. An error above 10⁹ counts as 10⁹.""",
    run,
)
