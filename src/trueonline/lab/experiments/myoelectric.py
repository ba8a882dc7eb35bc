"""Figure 6 and Appendix D: predicting the motor angle and the grip force of a myoelectric arm (section 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trueonline import study
from trueonline.lab import recordings
from trueonline.lab.experiment import (
    FAILS,
    HOLDS,
    NOISE,
    ROUNDING,
    Chart,
    Claim,
    Experiment,
    Outcome,
    Settings,
    at_most,
    gathered,
    interval,
    overall,
    resample,
    table,
)
from trueonline.lab.experiments import myoelectric_runs as runs
from trueonline.lab.recordings import SIGNALS, Recording
from trueonline.lab.style import COLOURS, NAMES, figure, line
from trueonline.problems import arm

STEPS = arm.SAMPLES  # of learning that are scored
SHOWN = (0.0, 0.4, 0.8, 0.9, 0.95, 0.99, 1.0)  # λ in the pictures of Appendix D
MINUTE = 60 * arm.RATE  # samples in the picture of the signals


@dataclass(frozen=True, eq=False)
class Errors:
    """The errors on one stream: for each method an array over α, λ and block of time, infinite where it diverged."""

    source: str
    target: str
    of: str  # the predicted signal, in words
    step_sizes: np.ndarray
    trace_decays: np.ndarray
    by_method: dict[str, np.ndarray]
    seed: int  # of the bootstrap

    @property
    def panel(self) -> str:
        return f"{self.of} ({self.source})"

    def mean(self, method: str) -> np.ndarray:
        return self.by_method[method].mean(axis=2)

    def best(self, method: str) -> np.ndarray:
        """For each λ the error at its best α."""
        return self.mean(method).min(axis=0)

    def best_alphas(self, method: str) -> np.ndarray:
        return self.step_sizes[self.mean(method).argmin(axis=0)]

    @cached_property
    def samples(self) -> dict[str, np.ndarray]:
        """The best error for bootstrap samples of the blocks, each with its own best α: an array over sample and λ."""
        by_method = {}
        for method, errors in self.by_method.items():
            finite = np.minimum(errors, 10.0 * runs.HUGE)  # 0 · ∞ is not a number
            means = resample(errors.shape[2], seed=self.seed) @ finite.reshape(-1, errors.shape[2]).T
            by_method[method] = means.reshape(-1, *errors.shape[:2]).min(axis=1)
        return by_method

    def ratio(self, method: str) -> tuple[np.ndarray, np.ndarray]:
        """For each λ the error relative to λ = 0, where all methods are the same, and this ratio for the bootstrap samples."""
        zero = int(self.trace_decays.argmin())
        return (
            self.best(method) / self.best("true_online")[zero],
            self.samples[method] / self.samples["true_online"][:, [zero]],
        )


def run(settings: Settings) -> Outcome:
    sources = [recordings.simulated(STEPS + runs.tail(runs.DISCOUNT), settings.seed)]
    if settings.data is not None:
        sources.append(recordings.read(settings.data, settings.columns, settings.rate))
    results = errors(sources, settings)
    pictures = {"figure": _picture(results)}
    for recording in sources:
        some = [each for each in results if each.source == recording.name]
        pictures |= {f"appendix-d-{recording.name}": _details(some), f"signals-{recording.name}": _signals(recording)}
    best, every = _best(results), _every(results)
    names: dict[str, Any] = {"columns": "panel", "series": "method", "y": "error"}
    title = "mean absolute return error, over that of λ = 0"
    charts = [
        Chart(best, x="trace_decay", x_title="λ", y_title=title, low="low", high="high", **names),
        Chart(
            every.filter(pc.field("error") < 3.0),
            x="step_size",
            x_title="step-size α, over 9",
            y_title=title,
            choose="trace_decay",
            log_x=True,
            y_domain=(0.0, 2.0),
            title="All step-sizes (Appendix D)",
            **names,
        ),
    ]
    claims = [claim for each in results for claim in _claims(each)]
    note = " ".join(recording.about for recording in sources)
    return Outcome(every, pictures, charts, claims, shown="signals-simulator", note=note)


def errors(sources: Sequence[Recording], settings: Settings) -> list[Errors]:
    """The errors of all settings on all streams. Results that exist already are read."""
    by_stream = {
        (recording, stream.target): runs.tasks([stream]) for recording in sources for stream in runs.streams(recording)
    }
    options: dict[str, Any] = {"engine": settings.engine, "threads": settings.threads, "progress": settings.progress}
    study.execute_tasks([task for some in by_stream.values() for task in some], settings.tasks, **options)
    per_stream = []
    for (recording, target), tasks in by_stream.items():
        results = gathered(study.gather_tasks(tasks, settings.tasks))
        alphas, parts = np.array(tasks[0].step_sizes), tasks[0].stream.parts
        pieces: dict[str, list[np.ndarray]] = {}
        values, at = results["error"].to_numpy(), 0
        for task in tasks:
            piece = values[at : at + task.rows].reshape(len(alphas), len(task.trace_decays), parts)
            pieces.setdefault(task.method, []).append(piece)
            at += task.rows
        lams = np.array([lam for task in tasks if task.method == "true_online" for lam in task.trace_decays])
        of = recording.position if target == "position" else "grip force"
        by_method = {method: np.concatenate(some, axis=1) for method, some in pieces.items()}
        per_stream.append(Errors(recording.name, target, of, alphas, lams, by_method, settings.seed))
    return per_stream


# --- Tables and pictures --------------------------------------------------------------------------


def _best(results: Sequence[Errors]) -> pa.Table:
    """For each λ the normalised error at the best α, with a 95 % interval."""
    rows = []
    for each in results:
        for method in each.by_method:
            ratio, samples = each.ratio(method)
            for j, (lam, alpha) in enumerate(zip(each.trace_decays, each.best_alphas(method), strict=True)):
                rows.append((each.panel, method, lam, alpha, ratio[j], *interval(samples[:, j])))
    names = ("panel", "method", "trace_decay", "step_size", "error", "low", "high")
    return table(names, rows)


def _every(results: Sequence[Errors]) -> pa.Table:
    """For all settings the absolute error, and the error relative to λ = 0 at its best α."""
    tables = []
    for each in results:
        alpha, lam = np.meshgrid(each.step_sizes, each.trace_decays, indexing="ij")
        td0 = each.best("true_online")[each.trace_decays.argmin()]
        for method in each.by_method:
            mean = each.mean(method).ravel()
            words = {"panel": each.panel, "source": each.source, "target": each.target, "method": method}
            columns: dict[str, Any] = {name: [word] * mean.size for name, word in words.items()}
            columns |= {"step_size": alpha.ravel(), "trace_decay": lam.ravel()}
            tables.append(pa.table({**columns, "error": mean / td0, "absolute_error": mean}))
    return pa.concat_tables(tables)


def _picture(results: Sequence[Errors]) -> Any:
    """Figure 6: targets across, recordings down."""
    sources = list(dict.fromkeys(each.source for each in results))
    drawing, axes = figure(len(sources), 2, width=7.4, height=0.6 + 2.4 * len(sources), sharex=True, sharey=True)
    for each in results:
        row, column = sources.index(each.source), runs.TARGETS.index(each.target)
        panel = axes[row, column]
        for method in each.by_method:
            ratio, samples = each.ratio(method)
            low, high = np.quantile(samples, [0.025, 0.975], axis=0)
            panel.fill_between(each.trace_decays, low, high, color=COLOURS[method], alpha=0.12, linewidth=0)
            line(panel, each.trace_decays, ratio, method)
        panel.set(xlim=(0.0, 1.0), title=each.panel)
        if column == 0:
            panel.set_ylabel("absolute return error\n(λ = 0 is 1)")
        if row == len(sources) - 1:
            panel.set_xlabel("λ, each at its best α")
    for panel in axes.flat:
        panel.axhline(1.0, color="#999999", linewidth=0.8, zorder=0)
    low, high = axes[0, 0].get_ylim()
    axes[0, 0].set_ylim(low, min(high, 1.5))
    drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return drawing


def _details(results: Sequence[Errors]) -> Any:
    """Appendix D: the error against α, a line for each of some λ; targets across, methods down."""
    import matplotlib as mpl

    shades = mpl.colormaps["viridis"]
    methods = list(results[0].by_method)
    drawing, axes = figure(len(methods), 2, width=7.4, height=7.6, sharex=True)
    for column, each in enumerate(results):
        for row, method in enumerate(methods):
            panel = axes[row, column]
            ratio = each.mean(method) / each.best("true_online")[each.trace_decays.argmin()]
            for position, lam in enumerate(SHOWN):
                at = int(abs(each.trace_decays - lam).argmin())
                shade = shades(position / (len(SHOWN) - 1) * 0.92)
                panel.plot(each.step_sizes, ratio[:, at], ".-", color=shade, linewidth=1.2, ms=3.5, label=f"λ = {lam:g}")
            panel.set(xscale="log", ylim=(0.0, 2.0), title=each.panel if row == 0 else "")
            if column == 0:
                panel.set_ylabel(f"{NAMES[method]}\nabsolute return error")
            if row == len(methods) - 1:
                panel.set_xlabel("α, over 9")
    drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=7, fontsize=7.5)
    return drawing


def _signals(recording: Recording) -> Any:
    """A minute in the middle of the recording."""
    rows = recording.signals
    first = max(0, len(rows) // 2 - MINUTE // 2)
    some = rows[first : first + MINUTE]
    drawing, axes = figure(len(SIGNALS), 1, width=7.4, height=5.6, sharex=True)
    for panel, name, values in zip(axes[:, 0], SIGNALS, some.T, strict=True):
        panel.plot((first + np.arange(len(some))) / arm.RATE, values, color="#333333", linewidth=0.8)
        for begin in np.flatnonzero(recording.starts[first : first + MINUTE]):
            panel.axvline((first + begin) / arm.RATE, color=COLOURS["accumulate"], linewidth=0.8, linestyle=":")
        panel.set_ylabel(name)
    axes[0, 0].set_title(f"A minute of the {recording.name}")
    axes[-1, 0].set_xlabel("seconds")
    return drawing


# --- Claims ---------------------------------------------------------------------------------------


def _claims(each: Errors) -> list[Claim]:
    first = (
        ("replace", "accumulate", "is better than {} at all λ > 0")
        if each.target == "force"
        else ("accumulate", "replace", "dominates {}")
    )
    pairs = [first, *(("true_online", other, "dominates {}") for other in ("accumulate", "replace"))]
    return [_claim(each, *pair) for pair in pairs]


def _claim(each: Errors, better: str, worse: str, relation: str) -> Claim:
    """`better` has no larger error than `worse`, both at their best α, for every λ > 0 (λ = 0 is the same for all)."""
    difference = each.best(better) / each.best(worse) - 1.0
    samples = each.samples[better] / each.samples[worse] - 1.0
    verdicts = {
        float(lam): at_most(*interval(samples[:, j]), ROUNDING) for j, lam in enumerate(each.trace_decays) if lam > 0.0
    }
    which = {word: [lam for lam, verdict in verdicts.items() if verdict == word] for word in (HOLDS, FAILS, NOISE)}
    at_best = interval(each.samples[better].min(axis=1) / each.samples[worse].min(axis=1) - 1.0)
    numbers: dict[str, Any] = {
        "λ at which it holds": f"{len(which[HOLDS])} of {len(verdicts)}",
        "λ at which it does not": which[FAILS] or "none",
        "λ within noise": which[NOISE] or "none",
        "relative difference for each λ": [float(value) for value in difference],
        "at the best α and λ of each": float(each.best(better).min() / each.best(worse).min() - 1.0),
        "95 % interval of that": list(at_best),
    }
    for method in (better, worse):
        at = int(each.best(method).argmin())
        blocks = each.by_method[method][each.mean(method)[:, at].argmin(), at]
        numbers[f"best of {method}, over λ = 0"] = float(each.ratio(method)[0][at])
        numbers[f"its α × {runs.TILINGS + 1} and λ ({method})"] = [
            float(each.best_alphas(method)[at]),
            float(each.trace_decays[at]),
        ]
        numbers[f"of its error, share of the first block ({method})"] = float(blocks[0] / blocks.sum())
    text = f"{NAMES[better]} {relation.format(NAMES[worse])}"
    return Claim(f"{each.panel}: {text}", overall(list(verdicts.values())), numbers)


EXPERIMENT = Experiment(
    "myoelectric",
    "Figure 6 and Appendix D — a myoelectric arm",
    f"""A person moves a robot hand with two muscles. There are two predictions: the discounted sum (γ = 0.97) of the motor
angle, and that of the grip force. There are five signals: position, velocity and force of the gripper, and two muscle
signals. Each signal is normalised to the range from its smallest to its largest value. The five are tile-coded jointly with
10 bins each, 8 tilings and a bias unit. This makes 800,001 features, which are hashed to 200,000, and 9 of them are active.
There are {STEPS:,} steps at 40 Hz. The error is the mean of |V − G| over all steps, relative to the error at λ = 0. V is
the prediction before the learner sees the step, and G is the realised return. α is divided by 9.

The paper's recordings are not public. A simulated arm replaces them. Its parameters were fixed before anything was learned
from it. The option --data adds a recording of yours.

G is computed backwards over the recording. A step is scored if at least {runs.tail(runs.DISCOUNT)} samples follow it, so
the truncated part is less than a thousandth of the largest possible return. The simulated recording is longer by this
number of samples, so all {STEPS:,} steps are scored.

There is one stream, and there are no runs to take an interval over. Intervals come from a bootstrap over time. Errors are
averaged over {runs.BLOCKS} consecutive blocks, and 1,000 samples of the blocks are drawn, the same for all methods. Each
sample has its own best α. The intervals tell how much a verdict depends on parts of this recording. They tell nothing about
other people or arms. A claim about all λ holds if the interval of every λ > 0 supports it, and fails if the interval of one
λ contradicts it.""",
    run,
)
