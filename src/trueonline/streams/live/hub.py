"""The hub between the thread that learns and the pages that show it.

The learner copies new samples into a ring and continues. It takes no lock and waits for nobody. Every page reads from the ring
at its own pace, from where it stopped. A slow page gets more samples at a time. A page that is too slow for the ring gets the
number of samples that it missed. Samples that have left the ring are still in the buckets of the history, which reach back
to the beginning. So memory is bounded, for any behaviour of a page and any length of the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import time
from typing import Any, Literal, NamedTuple

import numpy as np

from trueonline.inputs import count
from trueonline.streams.live import messages
from trueonline.streams.live.history import BucketHistory, Buckets

RING_SAMPLES = 1 << 15  # samples that the ring keeps, if there is room
RING_BYTES = 32_000_000  # of the ring. It keeps fewer samples if there are many questions
MAX_BUCKETS = 2048  # of the history, at most …
HISTORY_BYTES = 16_000_000  # … and their bytes
FIRST_QUESTIONS = 4  # questions that a new page shows at most, each of another signal


@dataclass(frozen=True)
class PageQuestion:
    """One question as the page knows it.

    Parameters
    ----------
    name : str
        The name of the question.
    target : str
        The signal whose future it predicts.
    discount : float or str or None
        γ of every sample, or the signal whose value at each sample is γ. None: γ follows from `horizon`.
    horizon : float or None
        The time scale in seconds, None if there is none. Without a discount, γ = exp(−Δt/horizon).
    meaning : {"mean", "return"}
        Whether predictions are means of the coming values, in the unit of the signal, or discounted sums of them.
    """

    name: str
    target: str
    discount: float | str | None
    horizon: float | None
    meaning: Literal["mean", "return"]


class Part(NamedTuple):
    """Samples read from the ring."""

    first: int  # the number of the first
    missed: int  # the number of samples between the requested one and the first
    times: np.ndarray
    received: np.ndarray
    columns: np.ndarray  # one row each: signals, predictions, and the lower and upper ends of their bands
    starts: np.ndarray

    @property
    def end(self) -> int:
        return self.first + len(self.times)


class Past(NamedTuple):
    """Buckets read from the history."""

    first: int  # the number of the first sample of the first bucket
    width: int  # samples in a bucket
    begins: np.ndarray  # the times of the first sample of each bucket, and of the last
    ends: np.ndarray
    means: np.ndarray  # one row each, as in `Part`
    lows: np.ndarray  # one row for each signal
    highs: np.ndarray


class Status(NamedTuple):
    """The newest report. `number` counts the reports, and the rest are messages, which are empty before the first report."""

    number: int = 0
    words: str = ""
    scores: bytes = b""
    alerts: str = ""
    experts: Sequence[Any] = ()  # of each question, because a page gets those of its own questions only


class Hub:
    """Keeps the newest samples, all older ones in buckets, and the last status.

    One thread, which learns, calls `publish` and `report`. All other methods may be called by any thread. Memory is bounded: with
    thousands of questions fewer than `kept` samples are kept.

    Parameters
    ----------
    questions : sequence of PageQuestion
        The questions.
    signals : sequence of str
        The signals, in the order of `Answers.signals`.
    title : str
        The title of the page.
    kept : int
        The newest samples that pages get one by one.
    offset : float, optional
        How many seconds the clock of the input is east of UTC. None if its times are numbers. A status may change it.
    """

    def __init__(
        self,
        questions: Sequence[PageQuestion],
        signals: Sequence[str],
        title: str = "",
        kept: int = RING_SAMPLES,
        offset: float | None = None,
    ) -> None:
        self.questions, self.signals = tuple(questions), tuple(signals)
        self.title, self.offset = str(title), offset
        wide = len(self.signals) + 3 * len(self.questions)
        self.size = max(min(count("kept", kept), RING_BYTES // (17 + 4 * wide)), 2)
        self._times, self._received = np.empty(self.size), np.empty(self.size)
        self._starts = np.empty(self.size, np.bool_)
        self._columns = np.empty((self.size, wide), np.float32)
        # Samples before `_done` are in the ring. Those before `_claimed` − size may be overwritten at this moment. A reader
        # copies first, and then looks at `_claimed` to see how much of its copy is valid.
        self._claimed = self._done = 0
        most = max(min(MAX_BUCKETS, HISTORY_BYTES // (16 + 4 * (wide + 2 * len(self.signals)))), 2)
        self._history = BucketHistory(wide, len(self.signals), most, max(self.size // most, 1))
        self.pages = 0  # that look at it, as the server counts them
        self.wake: Callable[[], None] = lambda: None  # the server's, for news. The thread that learns calls it
        self._status = Status()
        self._number = {name: number for number, name in enumerate(self.signals)}

    # --- For the thread that learns ---------------------------------------------------------------

    def publish(self, answers: Any, received: float | None = None) -> None:
        """Show samples.

        Parameters
        ----------
        answers : Answers
            The samples with their predictions. If `low` and `high` are None, there is no band.
        received : float, optional
            The time of arrival in seconds since 1970. The default is now.

        Raises
        ------
        ValueError
            If the shapes do not fit. Nothing is shown then.
        """
        t, begins = np.asarray(answers.times, float), np.asarray(answers.starts, np.bool_)
        n, questions = t.size, len(self.questions)
        parts = [np.asarray(each) for each in (answers.signals, answers.predictions)]
        for each in (answers.low, answers.high):
            parts.append(np.broadcast_to(np.nan, (n, questions)) if each is None else np.asarray(each))
        shapes = [(n,), (n,), (n, len(self.signals)), *[(n, questions)] * 3]
        got = [each.shape for each in (t, begins, *parts)]
        if got != shapes:
            raise ValueError(
                f"times, starts, signals, predictions, low and high must have the shapes {shapes}, got {got}"
            )
        with np.errstate(over="ignore", invalid="ignore"):  # a number too large for 32 bits is shown as a gap
            rows = np.concatenate(parts, axis=1, dtype=np.float32, casting="unsafe")
            self._history.add(t, rows)
            end = self._claimed = self._done + n
            t, begins, rows = t[-self.size :], begins[-self.size :], rows[-self.size :]
            at = (end - len(t)) % self.size
            upper = min(len(t), self.size - at)  # this many go to the end of the ring, the rest to its beginning
            for ring, new in ((self._times, t), (self._starts, begins), (self._columns, rows)):
                ring[at : at + upper], ring[: len(t) - upper] = new[:upper], new[upper:]
        now = time() if received is None else received
        self._received[at : at + upper], self._received[: len(t) - upper] = now, now
        self._done = end
        self.wake()

    def report(self, status: Mapping[str, Any]) -> None:
        """Show the status.

        Parameters
        ----------
        status : mapping
            Any of "samples", "rate", "dropped" ({reason: number}), "clipped", "uptime" (s), "state" ("learning", "waiting" or
            "ended"), "note", "pace" (how many times as fast as recorded), "offset" (see `Hub`), and these three, which stay as
            they are if they are missing. "questions": arrays of mean absolute errors, "error", "hold" (if the newest value
            stayed), "mean" (if the mean so far stayed), "recent_error", "recent_hold" and "recent_mean", and their number
            "scored"; NaN is unknown. "experts": for each question the heaviest experts, [words, share], or None. "alerts": the
            newest alerts, the oldest first: {"time", "surprise", "question", "target", "value", "expected", "error",
            "usual_error"}.
        """
        words, before = dict(status), self._status
        questions, experts, alerts = (words.pop(name, None) for name in ("questions", "experts", "alerts"))
        if experts is not None and len(experts) != len(self.questions):
            raise ValueError(f"status must have experts of {len(self.questions)} questions, got {len(experts)}")
        scores = before.scores if questions is None else messages.scores(questions, len(self.questions))
        self.offset = words["offset"] = words.get("offset", self.offset)
        self._status = Status(
            before.number + 1,
            messages.text("status", words),
            scores,
            before.alerts if alerts is None else messages.text("alerts", {"alerts": alerts}),
            before.experts if experts is None else experts,
        )
        self.wake()

    # --- For servers ------------------------------------------------------------------------------

    @property
    def samples(self) -> int:
        """The number of published samples."""
        return self._done

    @property
    def status(self) -> Status:
        """The newest report."""
        return self._status

    def hello(self) -> str:
        """The first message to a page."""
        return messages.text(
            "hello",
            {
                "title": self.title,
                "offset": self.offset,
                "kept": self.size,
                "signals": self.signals,
                "questions": [asdict(question) for question in self.questions],
                "shown": self.first_shown(),
                "most": messages.MAX_QUESTIONS,
            },
        )

    def first_shown(self) -> tuple[int, ...]:
        """The questions that a new page shows: one of each target, up to `FIRST_QUESTIONS`."""
        firsts = {question.target: number for number, question in reversed(list(enumerate(self.questions)))}
        return tuple(sorted(firsts.values())[:FIRST_QUESTIONS])

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
        columns = np.empty((len(signals) + 3 * len(questions), len(places)), np.float32)
        for row, number in enumerate(self._wanted(signals, questions)):
            columns[row] = self._columns[places, number]
        times, received, starts = self._times[places], self._received[places], self._starts[places]
        torn = min(max(self._claimed - self.size - begin, 0), len(places))  # overwritten while they were copied
        missed = 0 if first is None else begin + torn - first
        return Part(begin + torn, missed, times[torn:], received[torn:], columns[:, torn:], starts[torn:])

    @property
    def buckets(self) -> Buckets:
        """The buckets of now. They are others when the old ones have merged, or the clock was set back."""
        return self._history.buckets

    def needs_history(self, buckets: Buckets) -> bool:
        """Whether buckets reach further back than the ring."""
        return self._claimed - self.size > buckets.first

    def past(self, buckets: Buckets, first: int, signals: Sequence[int], questions: Sequence[int]) -> Past:
        """The buckets from number `first` on."""
        part, wanted, some = slice(first, buckets.done), list(self._wanted(signals, questions)), list(signals)
        return Past(
            buckets.first + first * buckets.width,
            buckets.width,
            buckets.begins[part],
            buckets.ends[part],
            buckets.means[part, :][:, wanted].T,
            buckets.lows[part, :][:, some].T,
            buckets.highs[part, :][:, some].T,
        )

    def _wanted(self, signals: Sequence[int], questions: Sequence[int]) -> tuple[int, ...]:
        """The columns of signals, predictions, and the lower and upper ends of their bands."""
        firsts = (len(self.signals) + k * len(self.questions) for k in range(3))
        return (*signals, *(first + number for first in firsts for number in questions))
