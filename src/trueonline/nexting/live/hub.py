"""The hub between the thread that learns and the pages that show it.

The learner copies new samples into a ring and continues. It takes no lock and waits for nobody. Every page reads from the ring
at its own pace, from where it stopped. A slow page gets more samples at a time. A page that is too slow for the ring gets the
number of samples that it missed. So no memory grows, whatever a page does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import time
from typing import Any, NamedTuple

import numpy as np

from trueonline.inputs import positive, unit
from trueonline.nexting.live import messages

MOST_BYTES = 32_000_000  # of the ring. It keeps fewer samples if there are many questions
LEAST_SAMPLES = 1200  # that the ring keeps if there is room, however slow the stream
FIRST_SHOWN = 4  # questions that a new page shows at most, each of another signal


@dataclass(frozen=True)
class Shown:
    """One question as the page knows it.

    `target` is the signal whose future it predicts, and `discount` is γ, or the signal whose value at each sample is γ.
    `horizon` is in seconds, for the label, and None if γ is a signal. `unit` is the unit of the signal.
    """

    name: str
    target: str
    discount: float | str
    horizon: float | None
    unit: str = ""


class Part(NamedTuple):
    """Samples read from the ring."""

    first: int  # the number of the first
    missed: int  # the number of samples between the requested one and the first
    times: np.ndarray
    received: np.ndarray
    columns: np.ndarray  # one row each: signals, then predictions
    starts: np.ndarray

    @property
    def end(self) -> int:
        return self.first + len(self.times)


class Hub:
    """Keeps the last `history` seconds of signals and predictions, at `rate` samples a second, and the last status.

    One thread, which learns, calls `publish` and `report`. All other methods may be called by any thread. The ring has at most
    `MOST_BYTES`, so with thousands of questions it holds less than `history`.
    """

    def __init__(
        self, questions: Sequence[Shown], signals: Sequence[str], rate: float, title: str = "", history: float = 120.0
    ) -> None:
        self.questions, self.signals = tuple(questions), tuple(signals)
        self.rate, self.title = positive("rate", rate), str(title)
        _check(self.questions, self.signals)
        wide = len(self.questions), len(self.signals)
        size = max(math.ceil(min(positive("history", history) * self.rate, MOST_BYTES)), LEAST_SAMPLES)
        self.size = max(min(size, MOST_BYTES // (17 + 4 * sum(wide))), 2)
        self._times, self._received = np.empty(self.size), np.empty(self.size)
        self._starts = np.empty(self.size, np.bool_)
        self._predictions = np.empty((self.size, wide[0]), np.float32)
        self._signals = np.empty((self.size, wide[1]), np.float32)
        # Samples before `_done` are in the ring. Those before `_claimed` − size may be overwritten at this moment. A reader
        # copies first, and then looks at `_claimed` to see how much of its copy is valid.
        self._claimed = self._done = 0
        self._wakes: tuple[Callable[[], None], ...] = ()
        self._status: tuple[int, str, bytes | None] = (0, "", None)
        self._number = {name: number for number, name in enumerate(self.signals)}

    # --- For the thread that learns ---------------------------------------------------------------

    def publish(self, times: Any, starts: Any, signals: Any, predictions: Any, received: float | None = None) -> None:
        """Show T samples: `times` in seconds (since 1970 or any other moment), whether each `starts` a new stream, T × `signals`
        and T × `predictions`. `received` is the time of arrival in seconds since 1970. The default is now."""
        t, begins = np.asarray(times, float), np.asarray(starts, np.bool_)
        S, V = np.asarray(signals), np.asarray(predictions)
        n = t.size
        shapes = ((n,), (n,), (n, len(self.signals)), (n, len(self.questions)))
        if (t.shape, begins.shape, S.shape, V.shape) != shapes:
            raise ValueError(
                f"times, starts, signals and predictions must have the shapes {shapes}, "
                f"got {(t.shape, begins.shape, S.shape, V.shape)}"
            )
        end = self._claimed = self._done + len(t)
        t, begins, S, V = (each[-self.size :] for each in (t, begins, S, V))
        at = (end - len(t)) % self.size
        upper = min(len(t), self.size - at)  # this many go to the end of the ring, the rest to its beginning
        with np.errstate(over="ignore", invalid="ignore"):  # a number too large for 32 bits is shown as a gap
            for ring, new in ((self._times, t), (self._starts, begins), (self._signals, S), (self._predictions, V)):
                ring[at : at + upper], ring[: len(t) - upper] = new[:upper], new[upper:]
        now = time() if received is None else received
        self._received[at : at + upper], self._received[: len(t) - upper] = now, now
        self._done = end
        self._wake()

    def report(self, status: Mapping[str, Any]) -> None:
        """Show the status.

        Its keys are "samples", "rate", "dropped" ({reason: number}), "clipped", "uptime" (s), "state" ("learning", "waiting" or
        "ended"), "note", and "questions", a list of {"error", "mean_return", "scored"}. The error is the mean absolute error.
        It has the unit of the return, as the mean return has. Any key may be missing or None. With thousands of questions,
        {"error": array, "mean_return": array, "scored": array} is faster than a list.
        """
        questions = status.get("questions")
        scores = self._status[2] if questions is None else messages.scores(questions, len(self.questions))
        words = messages.text("status", {name: value for name, value in status.items() if name != "questions"})
        self._status = self._status[0] + 1, words, scores
        self._wake()

    def _wake(self) -> None:
        for wake in self._wakes:
            wake()

    # --- For servers ------------------------------------------------------------------------------

    @property
    def samples(self) -> int:
        """The number of published samples."""
        return self._done

    @property
    def status(self) -> tuple[int, str, bytes | None]:
        """The number of the last status, its message (empty before the first), and the message of the scores, if any."""
        return self._status

    def listen(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever there is news. The thread that learns calls it, so it must be quick."""
        self._wakes = (*self._wakes, wake)

    def forget(self, wake: Callable[[], None]) -> None:
        """Stop calling `wake`."""
        self._wakes = tuple(each for each in self._wakes if each != wake)

    def hello(self) -> str:
        """The first message to a page."""
        return messages.text(
            "hello",
            {
                "title": self.title,
                "rate": self.rate,
                "kept": self.size / self.rate,
                "signals": self.signals,
                "questions": [asdict(question) for question in self.questions],
                "shown": self.first_shown(),
                "most": messages.MOST,
            },
        )

    def first_shown(self) -> tuple[int, ...]:
        """The questions that a new page shows: one of each target, up to `FIRST_SHOWN`."""
        firsts = {question.target: number for number, question in reversed(list(enumerate(self.questions)))}
        return tuple(sorted(firsts.values())[:FIRST_SHOWN])

    def needed(self, questions: Sequence[int]) -> tuple[int, ...]:
        """The signals that questions are about: their targets, and signals that are discounts."""
        names: dict[str, None] = {}
        for each in (self.questions[number] for number in questions):
            names[each.target] = None
            if isinstance(each.discount, str):
                names[each.discount] = None
        return tuple(self._number[name] for name in names)

    def read(self, first: int | None, signals: Sequence[int], questions: Sequence[int], most: int) -> Part:
        """At most `most` samples from number `first` on, or from the oldest sample in the ring."""
        done = self._done
        begin = min(max(first or 0, self._claimed - self.size), done)
        end = min(done, begin + most)
        places = np.arange(begin, end) % self.size
        columns = np.empty((len(signals) + len(questions), len(places)), np.float32)
        for row, number in enumerate(signals):
            columns[row] = self._signals[places, number]
        for row, number in enumerate(questions, len(signals)):
            columns[row] = self._predictions[places, number]
        times, received, starts = self._times[places], self._received[places], self._starts[places]
        torn = min(max(self._claimed - self.size - begin, 0), len(places))  # overwritten while they were copied
        missed = 0 if first is None else begin + torn - first
        return Part(begin + torn, missed, times[torn:], received[torn:], columns[:, torn:], starts[torn:])


def _check(questions: tuple[Shown, ...], signals: tuple[str, ...]) -> None:
    if not questions:
        raise ValueError("questions must have at least one question to show")
    names = [question.name for question in questions]
    for kind, group in (("signals", list(signals)), ("questions", names)):
        if len(set(group)) < len(group):
            twice = next(name for name in group if group.count(name) > 1)
            raise ValueError(f"two {kind} have the name {twice!r}; give each a name of its own")
    known = set(signals)
    for question in questions:
        if not isinstance(question.discount, str):
            unit(f"the discount of {question.name!r}", question.discount)
        for name in (question.target, question.discount):
            if isinstance(name, str) and name not in known:
                raise ValueError(
                    f"the question {question.name!r} is about {name!r}, which is not one of the signals {', '.join(signals)}"
                )
