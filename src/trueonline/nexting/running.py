"""A run over a stream: read, clean, learn, write, and now and then a checkpoint from which it goes on after kill -9."""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from trueonline.files import read_learner, write_learner
from trueonline.nexting.output import Output
from trueonline.nexting.predictor import Answers, Predictor
from trueonline.nexting.sources import Block, Clean, Cleaner, Source, skipping

KIND = "Predictor"
PATIENCE = 0.2  # seconds of waiting for a sample at a time
SPARING = 20.0  # writing checkpoints takes at most about a twentieth of the time
DROPPED = (
    "malformed",
    "huge",
    "dropped_overflow",
    "dropped_duplicate",
    "dropped_late",
    "dropped_missing",
    "dropped_time",
)
ENOUGH = 200  # distances between samples that tell their rate
TOLERANCE = 0.2  # by which it may differ from the rate that was given


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a checkpoint says, and the arrays that go with it."""

    about: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        try:
            kind, about, arrays = read_learner(path)
            if kind != KIND:
                raise ValueError(f"{path} holds a {kind}, and no checkpoint of predictions")
            wanted = {"setup", "source", "position", "cleaner", "rows", "counted", "written"}
            if not wanted <= about.keys():
                raise ValueError(f"{path} is damaged: it lacks {', '.join(sorted(wanted - about.keys()))}")
        except ValueError as error:
            raise ValueError(f"{error}; name another --checkpoint, or begin anew with --fresh") from None
        return cls(about, arrays)

    def refuse_others(self, path: Path, setup: dict[str, Any], source: dict[str, Any]) -> None:
        """ValueError unless this is of the same predictions from the same source."""
        for before, now in ((self.about["setup"], setup), (self.about["source"], source)):
            differing = [name for name in now if before.get(name) != now[name]]
            if differing:
                told = "; ".join(f"{name} was {before.get(name)!r:.60} and is {now[name]!r:.60}" for name in differing)
                raise ValueError(
                    f"the checkpoint {path} is of another run: {told}. Give the options of before to go on, --fresh to begin "
                    "anew, or another --checkpoint"
                )


class Run:
    """Source → cleaner → predictor → output. `source_told` is what names the source, for the checkpoint.

    `counted_times`: the times of samples are made from their numbers. A source that does not send again then counts from 0
    again, and its times are moved to after what was learned from, with a gap between.
    """

    def __init__(
        self,
        source: Source,
        source_told: dict[str, Any],
        cleaner: Cleaner,
        predictor: Predictor,
        output: Output,
        checkpoint: Path | None = None,
        every: float = 10.0,
        counted_times: bool = False,
    ) -> None:
        self.source, self._told = source, source_told
        self.cleaner, self.predictor, self.output = cleaner, predictor, output
        self.checkpoint, self._every = checkpoint, every
        self.resumed_at: int | None = None
        self.lost = 0  # samples that were learned from after the checkpoint, and will not come again
        self.ended = False  # whether the source has come to its end
        self._counted: dict[str, int] = {}  # by the sources of earlier runs, where those count from 0 again
        self._due = time.monotonic() + every
        self._counted_times, self._shift = counted_times, 0.0
        self._position: dict[str, Any] | None = None  # in the source, where a block was not used to its end
        self._times: list[float] = []  # of the first samples
        self._unsaved = ""  # why the last checkpoint could not be written
        self.held = ExitStack()  # what is to be let go of in the end: source, output, locks

    def go_on(self, found: Checkpoint) -> None:
        """Go on from a checkpoint of the same setup and source."""
        about = found.about
        self.predictor.restore(found.arrays)
        self.cleaner.restore(about["cleaner"])
        if self.source.replayable:
            self.source.seek(about["position"])
        else:
            self._counted = {name: int(number) for name, number in about["counted"].items()}
            if self._counted_times and about["cleaner"]["time"] is not None:
                self._shift = float(about["cleaner"]["time"]) + 2.0 * self.cleaner.max_gap
        beyond = self.output.go_on(int(about["rows"]), drop=self.source.replayable)
        self.resumed_at = self.predictor.samples
        self.lost = 0 if self.source.replayable else beyond

    def __call__(
        self,
        stop: Event,
        seen: Callable[[Answers], None] | None = None,
        idle: Callable[[], None] | None = None,
        limit: int | None = None,
    ) -> None:
        """Learn until the source ends, `stop` is set, or `limit` samples were learned from in all.

        `seen` is told of all samples, `idle` is called after each block and whenever none came for a while.
        """
        if self._position is not None:  # an earlier call left some of a block
            self.source.seek(self._position)
            self._position = None
        while not stop.is_set() and (limit is None or self.predictor.samples < limit):
            clean = self._cleaned() if limit is None else self._cleaned_to(limit)
            if clean is None:
                self.ended = True
                break
            if len(clean):
                if len(self._times) <= ENOUGH:
                    self._times += clean.times[:ENOUGH].tolist()
                answers = self.predictor.learn(clean)
                self.output.write(answers.times, answers.predictions)
                if seen is not None:
                    seen(answers)
            if idle is not None:
                idle()
            if self.checkpoint is not None and time.monotonic() >= self._due:
                self._try_to_save()
        self.ended |= limit is not None and self.predictor.samples >= limit

    def _cleaned(self) -> Clean | None:
        """The next samples; None at the end."""
        block = self.source.read(PATIENCE)
        if block is None:
            return None
        return self.cleaner(Block(block.times + self._shift, block.values) if self._shift else block)

    def _cleaned_to(self, limit: int) -> Clean | None:
        """The same, but no more than that many in all. What is left of a block counts as not read."""
        position, state, left = self.source.position(), self.cleaner.state(), limit - self.predictor.samples
        block = self.source.read(PATIENCE)
        if block is None:
            return None
        times = block.times + self._shift
        clean = self.cleaner(Block(times, block.values))
        if len(clean) > left:

            def kept(rows: int) -> int:
                self.cleaner.restore(state)
                return len(self.cleaner(Block(times[:rows], block.values[:rows])))

            rows = bisect_left(range(len(block)), left, key=kept)
            self.cleaner.restore(state)
            clean = self.cleaner(Block(times[:rows], block.values[:rows]))
            if self.source.replayable:
                self._position = skipping(position, block, rows)
        return clean

    def _try_to_save(self) -> None:
        """A full disk, or the like, does not end a run that may go on for months: it is tried again."""
        try:
            self.save()
            self._unsaved = ""
        except OSError as error:
            self._unsaved = str(error)
            self._due = time.monotonic() + self._every

    def save(self) -> None:
        """Write a checkpoint: after the rows that it knows of are safe."""
        if self.checkpoint is None:
            return
        begun = time.monotonic()
        self.output.keep()
        about = {
            "setup": self.predictor.setup.as_json(),
            "source": self._told,
            "position": self.source.position() if self._position is None else self._position,
            "cleaner": self.cleaner.state(),
            "rows": self.output.rows,
            "counted": self._source_counters(),
            "written": time.time(),
        }
        write_learner(self.checkpoint, KIND, about, self.predictor.state())
        now = time.monotonic()
        self._due = now + max(self._every, SPARING * (now - begun))

    def finish(self, forget: bool) -> None:
        """The last checkpoint, or none where all is done and nobody asked to keep one; the output is closed."""
        if not forget:
            self.save()
        self.output.close()
        if forget and self.checkpoint is not None:
            self.checkpoint.unlink(missing_ok=True)

    # --- What there is to tell --------------------------------------------------------------------

    def _source_counters(self) -> dict[str, int]:
        found = dict(self._counted)
        for name, number in self.source.counters().items():
            found[name] = found.get(name, 0) + number
        return found

    def counters(self) -> dict[str, int]:
        """Everything that was counted. `samples` of the cleaner are those that came, dropped ones among them."""
        cleaned = self.cleaner.counters()
        of_source = {f"source_{name}" if name == "truncated" else name: n for name, n in self._source_counters().items()}
        return {"read": cleaned.pop("samples"), **cleaned, **of_source, **self.predictor.counters()}

    def dropped(self) -> dict[str, int]:
        """Samples that were not learned from, by the reason."""
        counted = self.counters()
        return {name.removeprefix("dropped_"): counted[name] for name in DROPPED if counted.get(name)}

    def warnings(self) -> list[str]:
        """What the user should know of."""
        found = []
        rate, measured = self.predictor.setup.rate, self._rate()
        if rate and measured and not 1.0 - TOLERANCE < measured / rate < 1.0 + TOLERANCE:
            found.append(
                f"samples come {measured:.4g} a second by their times, and the rate was said to be {rate:g}: time scales and the "
                "longest gap are other than they seem; give the true rate"
            )
        if 1.0 in [question.discount for question in self.predictor.questions]:
            found.append("with a discount of 1 no return is ever known, and nothing is scored; give less than 1")
        if self._unsaved:
            found.append(f"the checkpoint could not be written: {self._unsaved}")
        dropped = self.dropped()
        most = max(dropped, key=dropped.__getitem__, default="")
        if dropped and dropped[most] > self.predictor.samples:
            why = {
                "malformed": self.source.complaint() or "",
                "time": "the times are not finite, or beyond ±1e11 s; is the time unit ms?",
                "missing": f"values of {', '.join(self.cleaner.signals)} are missing",
            }.get(most, "")
            found.append(f"more samples are dropped than used: {dropped[most]:,} {most}{why and f' ({why})'}")
        return found

    def _rate(self) -> float | None:
        """Samples a second, by the times of the first ones; None where times are made, or there are too few."""
        if self._counted_times or len(self._times) < 10:
            return None
        return 1.0 / float(np.median(np.diff(self._times)))

    def summary(self) -> dict[str, Any]:
        """What `--json` prints."""
        predictor = self.predictor
        asked = zip(predictor.questions, predictor.targets, predictor.horizons, predictor.scores(), strict=True)
        questions = [
            {"name": question.name, "target": target, "discount": question.discount, "horizon": horizon, **asdict(score)}
            for question, target, horizon, score in asked
        ]
        return {
            "samples": predictor.samples,
            "dropped": sum(self.dropped().values()),
            "questions": questions,
            "counters": self.counters(),
            "ended": self.ended,
            "resumed_at": self.resumed_at,
            "lost": self.lost,
            "measured_rate": self._rate(),
            "warnings": self.warnings(),
        }


def refuse_same(paths: dict[str, str | os.PathLike | None]) -> None:
    """ValueError where two of these are one file."""
    places = {name: Path(path).resolve() for name, path in paths.items() if path is not None}
    names = list(places)
    for i, name in enumerate(names):
        for other in names[i + 1 :]:
            if places[name] == places[other]:
                raise ValueError(f"{name} and {other} are one file, {places[name]}; give them different names")
