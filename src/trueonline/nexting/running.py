"""A run over a stream: read, clean, learn, write, and now and then a checkpoint from which it goes on after kill -9."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from trueonline.files import read_learner, write_learner
from trueonline.nexting.output import Output
from trueonline.nexting.predictor import Answers, Predictor
from trueonline.nexting.questions import horizon_of
from trueonline.nexting.sources import Block, Clean, Cleaner, Source

KIND = "Predictor"
PATIENCE = 0.2  # seconds of waiting for a sample at a time
SPARING = 20.0  # writing checkpoints takes at most about a twentieth of the time
DROPPED = ("malformed", "huge", "dropped_overflow", "dropped_duplicate", "dropped_late", "dropped_missing")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a checkpoint says, and the arrays that go with it."""

    about: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        kind, about, arrays = read_learner(path)
        if kind != KIND:
            raise ValueError(f"{path} holds a {kind}, and no checkpoint of predictions")
        wanted = {"setup", "source", "position", "cleaner", "rows", "counted", "written"}
        if not wanted <= about.keys():
            raise ValueError(f"{path} is damaged: it lacks {', '.join(sorted(wanted - about.keys()))}")
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
        self.source, self._told, self.cleaner, self.predictor, self.output = (
            source,
            source_told,
            cleaner,
            predictor,
            output,
        )
        self.checkpoint, self._every = checkpoint, every
        self.resumed_at: int | None = None
        self.lost = 0  # samples that were learned from after the checkpoint, and will not come again
        self.ended = False  # whether the source has come to its end
        self._counted: dict[str, int] = {}  # by the sources of earlier runs, where those count from 0 again
        self._due = time.monotonic() + every
        self._counted_times, self._shift = counted_times, 0.0
        self._position: dict[str, Any] | None = None  # in the source, where a block was not used to its end

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
        while not stop.is_set() and (limit is None or self.predictor.samples < limit):
            clean = self._cleaned() if limit is None else self._cleaned_to(limit)
            if clean is None:
                self.ended = True
                break
            if len(clean):
                answers = self.predictor.learn(clean)
                self.output.write(answers.times, answers.predictions)
                if seen is not None:
                    seen(answers)
            if idle is not None:
                idle()
            if self.checkpoint is not None and time.monotonic() >= self._due:
                self.save()

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
            rows = 1 + int(np.flatnonzero(times == clean.times[left - 1])[-1])
            self.cleaner.restore(state)
            clean = self.cleaner(Block(times[:rows], block.values[:rows]))
            if self.source.replayable:
                self._position = {**position, "skip": position["skip"] + rows}
        return clean

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
        """The last checkpoint, or none where all is done and nobody asked to keep one; then close everything."""
        try:
            if forget and self.checkpoint is not None:
                self.output.close()
                self.checkpoint.unlink(missing_ok=True)
            else:
                self.save()
                self.output.close()
        finally:
            self.source.close()

    @contextmanager
    def abandoned_on_error(self) -> Iterator[None]:
        """Where something goes wrong, the last checkpoint and the rows stay as they are."""
        try:
            yield
        except BaseException:
            self.source.close()
            self.output.abandon()
            raise

    # --- What there is to tell --------------------------------------------------------------------

    def _source_counters(self) -> dict[str, int]:
        found = dict(self._counted)
        for name, number in self.source.counters().items():
            found[name] = found.get(name, 0) + number
        return found

    def counters(self) -> dict[str, int]:
        """Everything that was counted. `samples` of the cleaner are those that came, dropped ones among them."""
        cleaned = self.cleaner.counters()
        return {"read": cleaned.pop("samples"), **cleaned, **self._source_counters(), **self.predictor.counters()}

    def dropped(self) -> dict[str, int]:
        """Samples that were not learned from, by the reason."""
        counted = self.counters()
        return {name.removeprefix("dropped_"): counted[name] for name in DROPPED if counted.get(name)}

    def summary(self) -> dict[str, Any]:
        """What `--json` prints."""
        rate, predictor = self.predictor.setup.rate, self.predictor
        questions = []
        for question, target, score in zip(predictor.questions, predictor.targets, predictor.scores(), strict=True):
            known = rate is not None and not isinstance(question.discount, str)
            horizon = horizon_of(question.discount, rate) if known else None  # type: ignore[arg-type]
            questions.append(
                {
                    "name": question.name,
                    "target": target,
                    "discount": question.discount,
                    "horizon": horizon if horizon is not None and math.isfinite(horizon) else None,
                    **asdict(score),
                }
            )
        return {
            "samples": predictor.samples,
            "dropped": sum(self.dropped().values()),
            "questions": questions,
            "counters": self.counters(),
            "ended": self.ended,
            "resumed_at": self.resumed_at,
            "lost": self.lost,
        }


def refuse_same(paths: dict[str, str | os.PathLike | None]) -> None:
    """ValueError where two of these are one file."""
    places = {name: Path(path).resolve() for name, path in paths.items() if path is not None}
    names = list(places)
    for i, name in enumerate(names):
        for other in names[i + 1 :]:
            if places[name] == places[other]:
                raise ValueError(f"{name} and {other} are one file, {places[name]}; give them different names")
