"""A fleet: one predictor for each of many signals of a stream, behind the interface of one predictor.

Every sample has a name: the code in the last column of a block (`sources.labels`). `FleetCleaner` and `Fleet` divide blocks by this
code, give each signal its part, and put the parts together again in the order of the samples. So whatever takes the answers of
one predictor takes those of a fleet. A new name makes a new predictor. A signal that cannot be predicted leaves the fleet, and the
others stay.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from trueonline.files import packed, unpacked
from trueonline.streams.predictor import Answers, Predictor, Setup
from trueonline.streams.sources import Block, Clean, Cleaner, Labels

Shard = tuple[int, int]


def in_shard(name: str, shard: Shard) -> bool:
    """Whether a name belongs to a part of a fleet: the number of the part, from 1, and how many there are.

    The hash of the name decides, so it is the same part on every machine.

    >>> [in_shard(name, (1, 2)) for name in ("north", "south", "east", "west")]
    [False, False, True, True]
    """
    part, parts = shard
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % parts == part - 1


def divided(codes: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The different codes, each with its rows."""
    if (codes == codes[:1]).all():  # also none at all
        yield from ((int(code), np.arange(len(codes))) for code in codes[:1])
        return
    order = np.argsort(codes, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        yield int(codes[rows[0]]), rows


def part(answers: Answers, rows: np.ndarray) -> Answers:
    """Some of the samples of answers."""
    return Answers(**{each.name: getattr(answers, each.name)[rows] for each in fields(Answers)})


class FleetCleaner:
    """Cleans blocks of many signals, each with a cleaner of its own. The codes of the signals stay the last column.

    Parameters
    ----------
    labels : Labels
        The names of the signals.
    cleaner : callable
        Makes the cleaner of a signal, from its name.
    shard : (int, int), optional
        The part of the fleet to take (`in_shard`). Samples of other signals are left out and not counted.
    """

    def __init__(self, labels: Labels, cleaner: Callable[[str], Cleaner], shard: Shard = (1, 1)) -> None:
        self._labels, self._made, self._shard = labels, cleaner, shard
        self._of: dict[str, Cleaner | None] = {}  # None for a signal of another part of the fleet
        self.broken: dict[str, str] = {}  # why a signal left the fleet
        first = cleaner("")
        self.signals, self.max_gap, self._none = first.signals, first.max_gap, first.counters()

    def __call__(self, block: Block) -> Clean:
        """Clean a block."""
        parts = []
        for code, rows in divided(block.values[:, -1]):
            name = self._labels.names[code]
            if name not in self._of:
                self._of[name] = self._made(name) if in_shard(name, self._shard) else None
            cleaner = self._of[name]
            if cleaner is None or name in self.broken:
                continue
            try:
                clean = cleaner(Block(block.times[rows], block.values[rows, :-1], block.offset))
            except ValueError as error:  # a value is missing that must not be
                self.broken[name] = str(error)
                continue
            assert clean.rows is not None
            values = np.column_stack([clean.values, np.full(len(clean), float(code))])
            parts.append((clean.times, values, clean.starts, rows[clean.rows]))
        if not parts:
            return Clean(
                np.empty(0), np.empty((0, len(self.signals) + 1)), np.empty(0, np.bool_), rows=np.empty(0, np.int64)
            )
        times, values, starts, rows = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(rows)
        return Clean(times[order], values[order], starts[order], block.offset, rows[order])

    def counters(self) -> dict[str, int]:
        """The counts of all cleaners together."""
        together = dict(self._none)
        for cleaner in filter(None, self._of.values()):
            for name, number in cleaner.counters().items():
                together[name] += number
        return together

    def state(self) -> dict[str, Any]:
        """All that `restore` needs, as for a `Cleaner`."""
        return {
            "names": list(self._labels.names),
            "of": {name: cleaner.state() for name, cleaner in self._of.items() if cleaner is not None},
            "broken": dict(self.broken),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state. ValueError if it is none."""
        names, of, broken = (state.get(each) for each in ("names", "of", "broken"))
        if (
            not isinstance(names, list)
            or not isinstance(of, dict)
            or not isinstance(broken, dict)
            or not of.keys() <= {*map(str, names)}
        ):
            raise ValueError(f"this is not the state of a fleet: {str(state)[:80]}")
        self._labels.restore([str(name) for name in names])
        self._of = {name: self._made(name) for name in of}
        for name, each in of.items():
            self._of[name].restore(each)  # type: ignore[union-attr]
        self.broken = {str(name): str(why) for name, why in broken.items()}


class _States(Mapping[str, np.ndarray]):
    """The names of predictors, and the packed state of each."""

    def __init__(self, members: dict[str, Predictor]) -> None:
        self._members = list(members.values())
        self._names = np.frombuffer(json.dumps(list(members)).encode(), np.uint8)

    def __getitem__(self, key: str) -> np.ndarray:
        return self._names if key == "names" else packed(self._members[int(key)].state())

    def __iter__(self) -> Iterator[str]:
        return iter(["names", *(f"{place:06d}" for place in range(len(self._members)))])

    def __len__(self) -> int:
        return len(self._members) + 1


class Fleet:
    """One predictor for each signal, made when its first sample comes, behind the interface of one `Predictor`.

    Parameters
    ----------
    setup : Setup
        The settings that all signals share.
    labels : Labels
        The names of the signals.
    cleaner : FleetCleaner
        The cleaner of the same fleet. Its `broken` are the signals that left it.
    coverage : callable, optional
        The share of what comes true that bands should contain, by the name of a signal.

    Attributes
    ----------
    members : dict from str to Predictor
        The predictors, by the names of their signals.
    first : Predictor
        A predictor with the same settings that learns nothing.
    """

    def __init__(
        self,
        setup: Setup,
        labels: Labels,
        cleaner: FleetCleaner,
        coverage: Callable[[str], float | None] = lambda name: None,
    ) -> None:
        self.setup, self.labels, self._cleaner, self._coverage = setup, labels, cleaner, coverage
        self.members: dict[str, Predictor] = {}
        self.samples = 0  # learned from, of all signals
        first = Predictor(setup)  # says what all have in common, and learns nothing
        self.columns, self.names, self.scales, self.targets = first.columns, first.names, first.scales, first.targets
        self.observed, self.horizons, self.meanings = first.observed, first.horizons, first.meanings
        self.output_columns = (*first.output_columns, labels.column)
        self.first = first

    def _member(self, name: str) -> Predictor:
        if name not in self.members:
            coverage = self._coverage(name)
            self.members[name] = Predictor(self.setup if coverage is None else replace(self.setup, coverage=coverage))
        return self.members[name]

    def learn(self, clean: Clean) -> Answers:
        """Learn from samples of many signals. The answers are in the order of the samples.

        A signal whose learner fails leaves the fleet, and its samples have no answers.
        """
        parts, places = [], []
        for code, rows in divided(clean.values[:, -1]):
            name = self.labels.names[code]
            own = Clean(clean.times[rows], clean.values[rows, :-1], clean.starts[rows], clean.offset)
            try:
                answers = self._member(name).learn(own)
            except ValueError as error:
                self._cleaner.broken[name] = str(error)
                self.members.pop(name, None)
                continue
            parts.append(answers)
            places.append(rows)
        if not parts:
            return replace(self.first.no_answers(), codes=np.empty(0))
        order = np.argsort(np.concatenate(places))
        merged = {
            each.name: np.concatenate([getattr(part, each.name) for part in parts])[order]
            for each in fields(Answers)
            if each.name != "codes"
        }
        self.samples += len(order)
        return Answers(**merged, codes=clean.values[np.sort(np.concatenate(places)), -1])

    def table(self, answers: Answers) -> np.ndarray:
        """The numbers that outputs write. The last column has the codes of the signals."""
        assert answers.codes is not None
        return np.column_stack([self.first.table(answers), answers.codes])

    @property
    def usual_interval(self) -> float | None:
        """The usual time between samples of a signal: the median over the signals."""
        known = [each.usual_interval for each in self.members.values() if each.usual_interval is not None]
        return float(np.median(known)) if known else None

    @property
    def never_scored(self) -> list[str]:
        """The time scales that are never scored, for any signal."""
        return list(dict.fromkeys(label for each in self.members.values() for label in each.never_scored))

    def begin_another(self) -> None:
        """Score from now on, because another source begins."""
        for each in self.members.values():
            each.begin_another()

    def counters(self) -> dict[str, int]:
        """The counts of all predictors together."""
        together = dict.fromkeys(self.first.counters(), 0)
        for each in self.members.values():
            for name, number in each.counters().items():
                together[name] += number
        return together

    def worst_first(self) -> list[tuple[str | None, Predictor]]:
        """The names of signals and their predictors, those first whose errors are largest against naive forecasts."""
        worst = {
            name: min((score.skill for score in each.scores() if score.skill is not None), default=math.inf)
            for name, each in self.members.items()
        }
        return [(name, self.members[name]) for name in sorted(worst, key=worst.__getitem__)]

    def state(self) -> Mapping[str, np.ndarray]:
        """The state of all predictors, each packed into one array when it is asked for. Nothing may be learned meanwhile."""
        return _States(self.members)

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Resume from a state, which is emptied: there is no room for two fleets. ValueError if it does not fit."""
        try:
            names = json.loads(np.asarray(state.pop("names")).tobytes())
            for place, name in enumerate(names):
                self._member(str(name)).restore(unpacked(state.pop(f"{place:06d}")))
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"this is not the state of a fleet ({error!r:.80})") from None
        self.samples = sum(each.samples for each in self.members.values())
