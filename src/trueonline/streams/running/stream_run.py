"""A run over a stream: read, clean, learn, write, and save checkpoints from which it resumes, even after kill -9."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from trueonline.files import write_learner
from trueonline.streams.fleet import Fleet, FleetCleaner
from trueonline.streams.outputs.alerts import Alerts
from trueonline.streams.outputs.fleet_alerts import FleetAlerts
from trueonline.streams.outputs.notifying import Notifier
from trueonline.streams.outputs.output import Output
from trueonline.streams.outputs.publishing import Publisher
from trueonline.streams.predictor import Answers, Predictor
from trueonline.streams.running.stream_checkpoint import KIND, Checkpoint, checked_earlier
from trueonline.streams.sources import Clean, Cleaner, Source, TimeStyle
from trueonline.words import exact_duration

READ_SECONDS = 0.2  # seconds to wait for a sample at a time
STOP_SECONDS = 1.0  # seconds for samples that were sent before the run was stopped
# Without a setting, a checkpoint is written as often as this many bytes a day allow, within these limits.
BYTES_A_DAY, LEAST_SECONDS, MOST_SECONDS = 1e9, 10.0, 3600.0
CHECKPOINT_SHARE = 20.0  # writing checkpoints takes at most about a twentieth of the time
DROP_COUNTERS = (
    "malformed",
    "huge",
    "not_received",
    "dropped_overflow",
    "dropped_at_stop",
    "dropped_duplicate",
    "dropped_late",
    "dropped_missing",
    "dropped_time",
)
MANY_SIGNALS = 1000  # of a fleet, from which on each should have several samples
RATE_SAMPLES = 200  # samples from whose times the rate is measured
RATE_TOLERANCE = 0.2  # the share by which the measured rate may differ from the given one


class Run:
    """Connects a source, a cleaner, a predictor and an output.

    `source_options` describe the source for the checkpoint. `counted_times` says that times are made from the numbers of
    samples. A live source then counts from 0 again after a restart, so its times are shifted to after the last sample that was
    learned from, with a gap between. If `alerts` is set, it reports surprising samples. If `publisher` is set, it sends all
    answers to a broker.
    """

    def __init__(
        self,
        source: Source,
        source_options: dict[str, Any],
        cleaner: Cleaner | FleetCleaner,
        predictor: Predictor | Fleet,
        output: Output,
        checkpoint: Path | None = None,
        every: float | None = None,
        counted_times: bool = False,
    ) -> None:
        self.source, self._source_options = source, source_options
        self.cleaner, self.predictor, self.output = cleaner, predictor, output
        self.checkpoint, self._every = checkpoint, every
        self.alerts: Alerts | FleetAlerts | None = None
        self.publisher: Publisher | None = None
        self.notifiers: list[Notifier] = []
        self.resumed_at: int | None = None
        self.lost = 0  # samples that were learned from after the checkpoint and will not come again
        self.ended = False  # whether the source has ended, or the limit is reached
        self._at_end = not source.replayable  # whether nothing of the source is left to be read
        self._earlier: dict[str, Any] = {"samples": 0, "counters": {}}  # of the sources before this one
        self._counted: dict[str, int] = {}  # by the sources of earlier runs, if sources count from 0 again
        self._due = time.monotonic() + (every or LEAST_SECONDS)
        self._counted_times, self._shift = counted_times, 0.0
        self._position: dict[str, Any] | None = None  # in the source, if the last block was not used up
        self._times: list[float] = []  # of the first samples
        self._save_error = ""  # why the last checkpoint could not be written
        self.resources = ExitStack()  # closed at the end: source, output, locks

    def begin(self) -> None:
        """Begin from scratch."""
        if self.alerts is not None:
            self.alerts.resume({}, self.source.replayable)

    def resume(self, checkpoint: Checkpoint) -> None:
        """Resume from a checkpoint of the same setup and source."""
        about = checkpoint.about
        self.predictor.restore(checkpoint.arrays)
        self._earlier = checked_earlier(about["earlier"], self.predictor.samples)
        self.cleaner.restore(about["cleaner"])
        if about.get("times") is not None:
            self.source.style = self.output.style = TimeStyle.from_json(about["times"])
        if self.alerts is not None:
            self.alerts.resume(about["alerts"], self.source.replayable)
        if self.publisher is not None:
            self.publisher.lost = about["not_published"]
        beyond = self.output.resume(int(about["rows"]), drop=self.source.replayable)
        if self.source.replayable:
            self.source.seek(about["position"])
        else:
            self._counted = {name: int(number) for name, number in about["counted"].items()}
            if self._counted_times and about["cleaner"]["time"] is not None:
                self._shift = max(float(about["cleaner"]["time"]), self.output.last_time) + 2.0 * self.cleaner.max_gap
        self.resumed_at = self.samples
        self.lost = 0 if self.source.replayable else beyond

    def learn_on(self, checkpoint: Checkpoint) -> None:
        """Continue with what was learned from another source. This one is read from its beginning."""
        self.predictor.restore(checkpoint.arrays)
        self.predictor.begin_another()
        self._earlier = {"samples": self.predictor.samples, "counters": self.predictor.counters()}
        if self.alerts is not None:
            self.alerts.resume(checkpoint.about["alerts"], self.source.replayable)

    @property
    def samples(self) -> int:
        """The number of samples of this source that were learned from."""
        return self.predictor.samples - int(self._earlier["samples"])

    def learn(
        self,
        stop: Event,
        seen: Callable[[Answers], None] | None = None,
        idle: Callable[[], None] | None = None,
        limit: int | None = None,
    ) -> None:
        """Learn until the source ends, `stop` is set, or `limit` samples were learned from in all.

        After `stop`, a live source gives what was sent before, for a second at most.
        `seen` is called with the answers of every block. `idle` is called after each block, and while no samples come.
        """
        finishing = False
        while limit is None or self.samples < limit:
            if stop.is_set() and not finishing:
                finishing = self.source.finish(STOP_SECONDS)
                if not finishing:
                    break
            clean = self._cleaned(limit)
            if clean is None:
                self.ended = not finishing
                self._at_end |= self.ended
                break
            if len(clean):
                if len(self._times) <= RATE_SAMPLES and isinstance(self.predictor, Predictor):
                    self._times += clean.times[:RATE_SAMPLES].tolist()
                answers = self.predictor.learn(clean)
                self.output.style = self.source.style or self.output.style
                self.output.write(answers.times, self.predictor.table(answers))
                self._tell(answers)
                if seen is not None:
                    seen(answers)
            if idle is not None:
                idle()
            if self.checkpoint is not None and time.monotonic() >= self._due:
                self._try_to_save()
        self.ended |= limit is not None and self.samples >= limit

    def _tell(self, answers: Answers) -> None:
        """Tell of alerts, and publish."""
        style = self.output.style
        alerts = [] if self.alerts is None else self.alerts.tell(answers, style)
        for alert in alerts:
            for notifier in self.notifiers:
                notifier.tell(alert.in_words(style.unit), alert.as_line())
        if self.publisher is not None:
            self.publisher.publish(answers, style, alerts)

    def _cleaned(self, limit: int | None) -> Clean | None:
        """The next samples, but no more than `limit` in all. The rest of a block counts as not read. None at the end."""
        before = None if limit is None else (self.source.position(), self.cleaner.state(), limit - self.samples)
        block = self.source.read(READ_SECONDS)
        if block is None:
            return None
        shifted = replace(block, times=block.times + self._shift) if self._shift else block
        clean = self.cleaner(shifted)
        if before is not None and len(clean) > before[2]:
            position, state, left = before
            assert clean.rows is not None
            rows = int(clean.rows[left - 1]) + 1
            self.cleaner.restore(state)
            clean = self.cleaner(shifted.part(0, rows))
            if self.source.replayable:
                self._position = self.source.position_within(position, block, rows)
        return clean

    def _try_to_save(self) -> None:
        """Save, and try again later if that fails: a full disk must not end a run of months."""
        try:
            self.save()
            self._save_error = ""
        except OSError as error:
            self._save_error = str(error)
            self._due = time.monotonic() + (self._every or LEAST_SECONDS)

    def save(self) -> None:
        """Write a checkpoint, after the rows that it knows of are safe."""
        if self.checkpoint is None:
            return
        begun = time.monotonic()
        self.output.sync()
        about = {
            "setup": self.predictor.setup.as_json(),
            "source": self._source_options,
            "position": self.source.position() if self._position is None else self._position,
            "cleaner": self.cleaner.state(),
            "rows": self.output.rows,
            "counted": self._source_counters(),
            "times": None if self.source.style is None else self.source.style.as_json(),
            "written": time.time(),
            "ended": self._at_end and self._position is None,
            "earlier": self._earlier,
            "alerts": {} if self.alerts is None else self.alerts.state(),
            "not_published": 0 if self.publisher is None else self.publisher.lost,
        }
        write_learner(self.checkpoint, KIND, about, self.predictor.state())
        now, pace = time.monotonic(), self.checkpoint.stat().st_size / BYTES_A_DAY * 86_400.0
        every = self._every or min(max(pace, LEAST_SECONDS), MOST_SECONDS)
        self._due = now + max(every, CHECKPOINT_SHARE * (now - begun))

    def finish(self, forget: bool) -> None:
        """Write the last checkpoint and close the output. `forget` removes the checkpoint instead.

        A run from scratch that found no sample leaves an existing file as it is.
        """
        for notifier in self.notifiers:
            notifier.finish(STOP_SECONDS / 2.0)
        if self.publisher is not None:
            self.publisher.finish()
        if self.predictor.samples and not forget:
            self.save()
        self.output.close()
        if self.predictor.samples and forget and self.checkpoint is not None:
            self.checkpoint.unlink(missing_ok=True)

    # --- Counters, warnings and the summary -------------------------------------------------------

    def _source_counters(self) -> dict[str, int]:
        counters = dict(self._counted)
        for name, number in self.source.counters().items():
            counters[name] = counters.get(name, 0) + number
        return counters

    def counters(self) -> dict[str, int]:
        """Everything that was counted. `read` counts all samples, also the dropped ones."""
        cleaned = self.cleaner.counters()
        of_source = {f"source_{name}" if name == "truncated" else name: n for name, n in self._source_counters().items()}
        before = self._earlier["counters"]
        of_signals = {name: number - before.get(name, 0) for name, number in self.predictor.counters().items()}
        of_signals["gaps"] += cleaned["gaps"]  # those by their times, and those that the predictor measured
        published = {} if self.publisher is None else {"not_published": self.publisher.lost}
        return {"read": cleaned.pop("samples"), **cleaned, **of_source, **of_signals, **published}

    def dropped(self) -> dict[str, int]:
        """The number of samples that were not learned from, for each reason."""
        counted = self.counters()
        return {name.removeprefix("dropped_"): counted[name] for name in DROP_COUNTERS if counted.get(name)}

    def warnings(self) -> dict[str, str]:
        """Problems that the user should know of, by their kinds. The numbers in a text may change later."""
        warnings = {}
        rate, measured = self.predictor.setup.rate, self._rate()
        if rate and measured and not 1.0 - RATE_TOLERANCE < measured / rate < 1.0 + RATE_TOLERANCE:
            warnings["rate"] = (
                f"samples come {measured:.4g} a second by their times, but --rate is {rate:g}: time scales and the longest gap are "
                "wrong by that factor; give the true rate, or leave --rate out: the times are enough"
            )
        usual = self.predictor.usual_interval
        short = [scale.label for scale in self.predictor.scales if usual and scale.seconds and scale.seconds < usual]
        if short:
            warnings["short horizon"] = (
                f"the horizon {short[0]} is shorter than the time between samples: "
                f"{exact_duration(float(f'{usual:.3g}'))} as measured; give a longer --horizon"
            )
        never = self.predictor.never_scored
        if never:
            warnings["not scored"] = (
                f"{never[0]} is too long to be scored: samples wait in memory until 99 % has come true, and there are too many of "
                "them; predictions are made all the same"
            )
        if 1.0 in [scale.discount for scale in self.predictor.scales]:
            warnings["discount of 1"] = (
                "with a discount of 1 a return is never known and nothing is scored; give a --discount below 1"
            )
        if self._save_error:
            warnings["checkpoint"] = f"the checkpoint could not be written: {self._save_error}"
        if remark := self.source.remark():
            warnings[remark] = remark
        if self.source.trouble:
            warnings["connection"] = f"the connection to the source is lost: {self.source.trouble}; it is tried again"
        if self.publisher is not None:
            warnings |= self.publisher.warnings()
        for notifier in self.notifiers:
            warnings |= notifier.warnings()
        if isinstance(self.predictor, Fleet) and isinstance(self.cleaner, FleetCleaner):
            warnings |= _of_fleet(self.predictor, self.cleaner)
        dropped = self.dropped()
        if dropped.get("overflow"):
            warnings["queue"] = (
                f"the queue of {self.source.queue:,} samples was full: samples come faster than they are learned from, and "
                "the oldest in the queue were dropped"
            )
        most = max(dropped, key=dropped.__getitem__, default="")
        if dropped and dropped[most] > self.samples:
            why = {
                "malformed": self.source.complaint() or "",
                "time": "the times are not finite, or beyond ±1e11 s; is the time unit ms? Then give --time-unit ms",
                "not_received": "by the numbers under seq; the broker or the network dropped them",
                "duplicate": "their time is that of the sample before; is --time the right column, with the time of day? "
                "If a column names signals, give it as --by",
                "late": "their time is before that of an earlier sample; are the files in the order of time?",
                "missing": f"values of {', '.join(self.cleaner.signals)} are missing",
            }.get(most, "")
            warnings["dropped"] = f"more samples are dropped than used: {dropped[most]:,} {most}{why and f' ({why})'}"
        return warnings

    def _rate(self) -> float | None:
        """Samples per second, from the times of the first samples. None if times are counted, or samples are too few."""
        if self._counted_times or len(self._times) < 10:
            return None
        between = float(np.median(np.diff(self._times)))
        return 1.0 / between if between > 1e-300 else None  # times that are nearly the same measure nothing

    def _scored(self) -> list[tuple[str | None, Predictor]]:
        """The predictors of a fleet with the names of their signals, the worst first; or the one that there is."""
        return [(None, self.predictor)] if isinstance(self.predictor, Predictor) else self.predictor.worst_first()

    def summary(self) -> dict[str, Any]:
        """The summary that `--json` prints."""
        return {
            "samples": self.samples,
            "dropped": sum(self.dropped().values()),
            "questions": [question for name, each in self._scored() for question in _questions(name, each)],
            "counters": self.counters(),
            "ended": self.ended,
            "resumed_at": self.resumed_at,
            "lost": self.lost,
            "measured_rate": self._rate(),
            "warnings": list(self.warnings().values()),
        }


def _of_fleet(fleet: Fleet, cleaner: FleetCleaner) -> dict[str, str]:
    """The warnings of a fleet."""
    warnings = {f"left {name}": f"{name} left the fleet: {why}" for name, why in cleaner.broken.items()}
    if MANY_SIGNALS <= len(fleet.members) > fleet.samples / 3.0:
        warnings["names"] = (
            f"{len(fleet.members):,} names of signals came with {fleet.samples:,} samples: is {fleet.labels.column} the right "
            "column for --by? Each signal takes memory"
        )
    return warnings


def _questions(signal: str | None, predictor: Predictor) -> list[dict[str, Any]]:
    """What the summary says of each question of a predictor."""
    inside = predictor.inside()
    return [
        {
            **({} if signal is None else {"signal": signal}),
            "name": predictor.names[q],
            "target": predictor.targets[q],
            "discount": scale.discount,
            "horizon": predictor.horizons[q],
            "as": "mean" if scale.mean else "return",
            **asdict(score),
            "band": {"coverage": predictor.setup.coverage, "inside": inside[q]},
            "experts": [{"expert": words, "weight": weight} for words, weight in predictor.experts(q)],
        }
        for q, (scale, score) in enumerate(zip(predictor.scales, predictor.scores(), strict=True))
    ]
