"""Figure 6 and Appendix D — a myoelectric arm

A person moves a robot hand with two muscles. There are two predictions: the discounted sum (γ = 0.97) of the motor
angle, and that of the grip force. There are five signals: position, velocity and force of the gripper, and two muscle
signals. Each signal is normalised to the range from its smallest to its largest value. The five are tile-coded jointly with
10 bins each, 8 tilings and a bias unit. This makes 800,001 features, which are hashed to 200,000, and 9 of them are active.
There are 58,000 steps at 40 Hz. The error is the mean of |V − G| over all steps, relative to the error at λ = 0. V is
the prediction before the learner sees the step, and G is the realised return. α is divided by 9.

The paper's recordings are not public. A simulated arm replaces them. Its parameters were fixed before anything was learned
from it. The option --data adds a recording of yours.

G is computed backwards over the recording. A step is scored if at least 227 samples follow it, so
the truncated part is less than a thousandth of the largest possible return. The simulated recording is longer by this
number of samples, so all 58,000 steps are scored.

There is one stream, and there are no runs to take an interval over. Intervals come from a bootstrap over time. Errors are
averaged over 50 consecutive blocks, and 1,000 samples of the blocks are drawn, the same for all methods. Each
sample has its own best α. The intervals tell how much a verdict depends on parts of this recording. They tell nothing about
other people or arms. A claim about all λ holds if the interval of every λ > 0 supports it, and fails if the interval of one
λ contradicts it.

Question: Does it also help on the signals of a robot arm?

Paper: The arm is moved by the muscles of a person. Two quantities are predicted: the angle of its motor and the force of its
grip. On both, true online TD(λ) is better than the older TD(λ) at every λ.

Look: Lower is better, and the error at λ = 0, without a memory of the past, is 1. Compare the lines at the same λ.

Exceptions: The recordings of the paper are not public. A simulated arm stands in for them, whose parameters were fixed before
anything was learned from it. So a claim that fails here may be true of the real arm. The page on the myoelectric arm in the
documentation has the results on a real recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline.lab import recordings
from trueonline.lab.best_rows import BestRows
from trueonline.lab.claims import FAILS, HOLDS, NOISE, ROUNDING, Claim, Errors, Estimate, judge, overall
from trueonline.lab.experiment import Experiment, Outcome, Settings, stacked
from trueonline.lab.experiments import myoelectric_runs as runs
from trueonline.lab.recordings import SIGNALS, Recording
from trueonline.lab.style import COLOURS, NAMES, band, figure, legend_above, line, lines_over_lam
from trueonline.problems import arm

STEPS = arm.SAMPLES  # of learning that are scored
SHOWN_TRACE_DECAYS = (0.0, 0.4, 0.8, 0.9, 0.95, 0.99, 1.0)  # λ in the pictures of Appendix D
MINUTE = 60 * arm.RATE  # samples in the picture of the signals


@dataclass(frozen=True, eq=False)
class Prediction:
    """The errors of one prediction on one recording: for each method an array over block of time, α and λ."""

    source: str
    target: str
    signal: str  # the predicted signal, in words
    step_sizes: np.ndarray
    trace_decays: np.ndarray
    errors: Errors

    @property
    def panel(self) -> str:
        """The title of its panel."""
        return f"{self.signal} ({self.source})"

    @property
    def td0(self) -> Estimate:
        """The error at λ = 0, where all methods are the same, at its best α."""
        return self.errors.best_by_lam("true_online")[[int(self.trace_decays.argmin())]]

    def ratio(self, method: str) -> Estimate:
        """For each λ the error at its best α, relative to λ = 0."""
        return self.errors.best_by_lam(method) / self.td0


def check(settings: Settings) -> None:
    """ValueError if the recording cannot be read. So this is known before any experiment has run."""
    settings.shared(recorded)


def recorded(settings: Settings) -> Recording | None:
    """The recording of the option `--data`, if it is given."""
    data, columns, rate = (settings.options.get(name) for name in ("data", "columns", "rate"))
    if data is None:
        return None
    return recordings.read(
        Path(data), {} if columns is None else recordings.parse(columns), arm.RATE if rate is None else rate
    )


def run(settings: Settings) -> Outcome:
    simulated = recordings.simulated(STEPS + runs.tail(runs.DISCOUNT), settings.seed)
    sources = [source for source in (simulated, settings.shared(recorded)) if source is not None]
    predictions = learn(sources, settings)
    figures: dict[str, Any] = {"figure": lambda: _picture(predictions)}
    for recording in sources:
        some = [each for each in predictions if each.source == recording.name]
        figures[f"appendix-d-{recording.name}"] = partial(_details, some)
        figures[f"signals-{recording.name}"] = partial(_signals, recording)
    claims = [claim for each in predictions for claim in judged(each)]
    return Outcome(_table(predictions), figures, claims, note=" ".join(recording.about for recording in sources))


def learn(sources: Sequence[Recording], settings: Settings) -> list[Prediction]:
    """The errors of all settings on all streams. Results that exist already are read."""
    streams = [(recording, stream) for recording in sources for stream in runs.streams(recording)]
    tasks = [runs.tasks([stream]) for _, stream in streams]
    settings.finish([task for some in tasks for task in some])
    predictions = []
    for (recording, stream), some in zip(streams, tasks, strict=True):
        signal = recording.position if stream.target == "position" else "grip force"
        grid = np.array(runs.STEP_SIZES), np.array(runs.TRACE_DECAYS)
        pieces: dict[str, list[np.ndarray]] = {}
        for task in some:
            shape = (len(task.step_sizes), len(task.trace_decays), stream.parts)
            piece = settings.gathered([task])["error"].to_numpy().reshape(shape)
            pieces.setdefault(task.method, []).append(piece.transpose(2, 0, 1))
        by_method = {method: np.concatenate(each, axis=2) for method, each in pieces.items()}
        errors = Errors(by_method, settings.seed)
        predictions.append(Prediction(recording.name, stream.target, signal, *grid, errors))
    return predictions


# --- Tables and pictures --------------------------------------------------------------------------


def _table(predictions: Sequence[Prediction]) -> pa.Table:
    """For all settings the absolute error, and the error relative to λ = 0 at its best α."""
    tables = []
    for each in predictions:
        alpha, lam = (grid.ravel() for grid in np.meshgrid(each.step_sizes, each.trace_decays, indexing="ij"))
        columns = {}
        for method, errors in each.errors.by_method.items():
            mean = errors.mean(axis=0).ravel()
            numbers = {"error": mean / each.td0.value, "absolute_error": mean}
            columns[method] = {"step_size": alpha, "trace_decay": lam, **numbers}
        tables.append(stacked(columns, panel=each.panel, source=each.source, target=each.target))
    return pa.concat_tables(tables)


def _picture(predictions: Sequence[Prediction]) -> Any:
    """Figure 6: targets across, recordings down."""
    sources = list(dict.fromkeys(each.source for each in predictions))
    drawing, axes = figure(len(sources), 2, width=7.4, height=0.6 + 2.4 * len(sources), sharex=True, sharey=True)
    for each in predictions:
        panel = axes[sources.index(each.source), runs.TARGETS.index(each.target)]
        for method in each.errors.by_method:
            ratio = each.ratio(method)
            band(panel, each.trace_decays, ratio.bounds, method, alpha=0.12)
            line(panel, each.trace_decays, ratio.value, method)
        panel.set(xlim=(0.0, 1.0), title=each.panel)
    for panel in axes.flat:
        panel.axhline(1.0, color="#999999", linewidth=0.8, zorder=0)
    for panel in axes[:, 0]:
        panel.set_ylabel("absolute return error\n(λ = 0 is 1)")
    for panel in axes[-1]:
        panel.set_xlabel("λ, each at its best α")
    low, high = axes[0, 0].get_ylim()
    axes[0, 0].set_ylim(low, min(high, 1.5))
    legend_above(drawing, axes.flat)
    return drawing


def _details(predictions: Sequence[Prediction]) -> Any:
    """Appendix D: the error against α, a line for each of some λ; targets across, methods down."""
    methods = list(predictions[0].errors.by_method)
    drawing, axes = figure(len(methods), 2, width=7.4, height=7.6, sharex=True)
    for each, column in zip(predictions, axes.T, strict=True):
        places = [int(abs(each.trace_decays - lam).argmin()) for lam in SHOWN_TRACE_DECAYS]
        for method, panel in zip(methods, column, strict=True):
            ratio = each.errors.mean(method) / each.td0.value
            lines_over_lam(panel, each.step_sizes, ratio[:, places].T, SHOWN_TRACE_DECAYS, ".-", linewidth=1.2, ms=3.5)
            panel.set(xscale="log", ylim=(0.0, 2.0))
        column[0].set_title(each.panel)
        column[-1].set_xlabel("α × 9, the number of active features")
    for method, panel in zip(methods, axes[:, 0], strict=True):
        panel.set_ylabel(f"{NAMES[method]}\nabsolute return error")
    legend_above(drawing, [axes[0, 0]], columns=7, fontsize=7.5)
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
        panel.set_ylabel(name.replace("muscle", "muscle "))
    axes[0, 0].set_title(f"A minute of the {recording.name}")
    axes[-1, 0].set_xlabel("seconds")
    return drawing


# --- Claims ---------------------------------------------------------------------------------------


def judged(each: Prediction) -> list[Claim]:
    """The claims about one prediction on one recording."""
    first = (
        ("replace", "accumulate", "is better than {} at all λ > 0")
        if each.target == "force"
        else ("accumulate", "replace", "dominates {}")
    )
    pairs = [first, *(("true_online", other, "dominates {}") for other in ("accumulate", "replace"))]
    return [_claim(each, *pair) for pair in pairs]


def _claim(each: Prediction, better: str, worse: str, relation: str) -> Claim:
    """`better` has no larger error than `worse`, both at their best α, for every λ > 0 (λ = 0 is the same for all)."""
    errors = each.errors
    difference = errors.best_by_lam(better) / errors.best_by_lam(worse) - 1.0
    verdicts = {
        float(lam): judge(low, high, at_most=ROUNDING)
        for lam, low, high in zip(each.trace_decays, *difference.bounds, strict=True)
        if lam > 0.0
    }
    which = {word: [lam for lam, verdict in verdicts.items() if verdict == word] for word in (HOLDS, FAILS, NOISE)}
    numbers: dict[str, Any] = {
        "λ at which it holds": f"{len(which[HOLDS])} of {len(verdicts)}",
        "λ at which it does not": which[FAILS] or "none",
        "λ within noise": which[NOISE] or "none",
        "relative difference for each λ": difference.value.tolist(),
        "at the best α and λ of each": errors.ratio(better, worse).value,
        "95 % interval of that": errors.ratio(better, worse).interval,
    }
    for method in (better, worse):
        i, j = errors.place(method)
        blocks = errors.by_method[method][:, i, j]
        numbers[f"best of {method}, over λ = 0"] = float(each.ratio(method).value[j])
        numbers[f"its α × {runs.TILINGS + 1} and λ ({method})"] = [float(each.step_sizes[i]), float(each.trace_decays[j])]
        numbers[f"of its error, share of the first block ({method})"] = float(blocks[0] / blocks.sum())
    text = f"{NAMES[better]} {relation.format(NAMES[worse])}"
    return Claim(f"{each.panel}: {text}", overall(list(verdicts.values())), numbers)


EXPERIMENT = Experiment("myoelectric", __doc__, run, BestRows(("panel", "method"), "error"), check)
