"""The text that `trueonline predict` and `trueonline live` print: warnings, how a run resumed, and the summary at the end."""

from __future__ import annotations

import io
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from typing import Any

from trueonline.streams.running.stream_checkpoint import Checkpoint
from trueonline.streams.running.stream_run import Run
from trueonline.terminal import print_table
from trueonline.words import duration, listed, number, printable

WARN_SECONDS = 2.0  # seconds between looks for something to warn of
WIDTH = 80  # characters in a line
MOST_QUESTIONS = 20  # of a fleet, in the table
HEADS = ("question", "error", "newest\nvalue", "mean\nso far", "better\nby", "lately", "in\nband", "scored")
SILENT_COUNTERS = ("read", "received", "connections", "widened")  # counters that are not news

MEANINGS = {
    "mean": "Predictions over a horizon are means of the coming values, in the unit of the signal.",
    "return": "Predictions with a discount are returns: discounted sums of the coming values.",
}
EXPLANATION = (
    '"error" is the mean absolute difference between a prediction and what came true. "newest value" and "mean so far" are the '
    'errors of two forecasts that need no learning. "better by" compares the error with the smaller of these two. If it is '
    'negative, the predictions are worse. "lately" is the same over about the last five hundred samples. "in band" is the share '
    "of bands that contained what came true. A band is judged when 40 % of its prediction has come true. The newest prediction "
    'stands for the rest. "scored" counts the samples behind the errors: those of which at least 99 % has come true.'
)
UNSCORED = (
    "A prediction is scored when 99 % of it has come true. That takes about five horizons without a long gap, and this stream "
    "was shorter."
)

Say = Callable[[str], None]


class Warner:
    """Prints each warning of a run once, as soon as it shows."""

    def __init__(self, say: Say) -> None:
        self._say, self._due = say, time.monotonic() + WARN_SECONDS
        self._said: set[str] = set()

    def __call__(self, run: Run) -> None:
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + WARN_SECONDS
            self.tell(run.warnings())

    def tell(self, warnings: Mapping[str, str]) -> None:
        for kind, warning in warnings.items():
            if kind not in self._said:
                self._said.add(kind)
                self._say(f"Warning: {warning}.")


def report_resumption(run: Run, checkpoint: Checkpoint, say: Say) -> None:
    """Say from where a run resumes, and what was lost."""
    age = max(0.0, time.time() - float(checkpoint.about["written"]))
    say(f"Resuming from sample {run.resumed_at:,}, the checkpoint of {duration(age)} ago.")
    if run.source.lost:
        say(f"Lost: {run.source.lost}.")
        return
    if run.source.replayable:
        say("Nothing is lost: the source is read again from there.")
        return
    lost = ["all samples sent since the run stopped"]
    if run.lost:
        say(f"Kept: {run.lost:,} rows that were written after the checkpoint. New times come after theirs.")
        lost.insert(0, "what was learned after the checkpoint")
    if run.output.at_checkpoints:
        lost.insert(0, "all predictions after the checkpoint, because Parquet gets its rows at checkpoints")
    say(f"Lost: {listed(lost)}. This source does not send them again.")


def report_new_source(run: Run, checkpoint: Checkpoint, say: Say) -> None:
    """Say that a run continues from what was learned from another source."""
    learned = run.predictor.samples
    say(
        f"Continues what was learned from {checkpoint.source}, {learned:,} samples. The new source is read from its beginning."
    )


def report_pace(pace: float | None, say: Say) -> None:
    """Say how fast a recording is replayed, unless that is in real time or as fast as possible."""
    if pace not in (None, 1.0):
        say(f"Replayed {pace:,.15g} times as fast as recorded. --pace 1 is real time.")


def as_text(summary: dict[str, Any], out: str | None, explain: bool = False) -> str:
    """The summary as text, with a table of all questions. `out` is where predictions were written. `explain` names the experts."""
    with redirect_stdout(io.StringIO()) as text:
        took = f" in {duration(summary['seconds'])}" if "seconds" in summary else ""
        print(f"{summary['samples']:,} samples{took}, {summary['dropped']:,} dropped.")
        counters = {
            name: number for name, number in summary["counters"].items() if number and name not in SILENT_COUNTERS
        }
        if counters:
            counts = ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in counters.items())
            print(f"Counted: {counts}.")
        if summary["questions"] and summary["samples"]:
            print()
            shown = summary["questions"][:MOST_QUESTIONS] if "signal" in summary["questions"][0] else summary["questions"]
            print_table(HEADS, [_row(question) for question in shown], width=WIDTH)
            print()
            if len(shown) < len(summary["questions"]):
                left = len(summary["questions"]) - len(shown)
                print(f"These are the worst. {left:,} more questions are better; --json has them all.")
                print()
            meanings = [MEANINGS[kind] for kind in MEANINGS if kind in {each["as"] for each in summary["questions"]}]
            print(textwrap.fill(" ".join([*meanings, EXPLANATION]), WIDTH))
            unscored = [question["name"] for question in summary["questions"] if not question["scored"]]
            if unscored:
                print(textwrap.fill(f"No score yet: {', '.join(unscored)}. {UNSCORED}", WIDTH))
        if explain:
            _print_experts(summary["questions"])
        if summary["samples"] and out not in (None, "-"):
            print(f"Predictions are in {out}.")
    return "\n".join(printable(line).rstrip() for line in text.getvalue().split("\n")).strip("\n")


def _row(question: dict[str, Any]) -> list[str]:
    return [
        f"{question['signal']} {question['name']}" if "signal" in question else question["name"],
        number(question["error"]),
        number(question["naive"]["hold"]),
        number(question["naive"]["mean"]),
        _share(question["skill"]),
        _share(question["recent"]["skill"]),
        _share(question["band"]["inside"]),
        f"{question['scored']:,}",
    ]


def _print_experts(questions: Sequence[dict[str, Any]]) -> None:
    """The heaviest experts of each question."""
    for question in questions:
        print()
        if not question["experts"]:
            print(f"{question['name']} has one learner and no experts; --method auto has.")
            continue
        print(f"The heaviest experts of {question['name']} now:")
        for each in question["experts"]:
            print(f"  {each['weight']:4.0%}  {each['expert']}")


def _share(value: float | None) -> str:
    """A share in per cent, a dash if it is missing."""
    return "–" if value is None else f"{value:.0%}".replace("%", " %")
