"""The cost of a whole decision in Asterix over the emulator's own five frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import islice
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

from benchmarks.report import Ratio, Seconds, Section, Settings, Table, at_most, short
from trueonline.control import atari
from trueonline.control.atari.emulator import SKIP, load

# Protocol, λ, and how long a decision may take at most, over the emulator's own frames.
CASES = (("paper", 0.9, 1.15), ("paper", 0.99, 1.25), ("published", 0.95, None))
STEP_SIZE = 0.5
PIECE = 40  # decisions that are timed at a time, first whole and then as frames alone: short, so that noise befalls both


def measure(settings: Settings) -> Section:
    section = Section(
        "Atari",
        f"Asterix, true online Sarsa(λ), with exact traces (protocol `paper`) or as the published program has it (`published`), "
        f"α = {STEP_SIZE:g} divided by the largest number of active features. A decision is five frames, two screens read, "
        "features, values, choice and learning. It is timed over pieces of the game, each followed by the same frames alone: "
        "the same emulator, which averages no colours, goes back and is given the same actions again.",
    )
    if find_spec("ale_py") is None:
        section.notes.append("ale-py is not installed: nothing was measured.")
        return section
    background = atari.learn_background("asterix", decisions=300 if settings.quick else 3600)
    columns = {}
    for protocol, trace_decay, limit in CASES:
        chosen = atari.AtariSettings(protocol=protocol, step_size=STEP_SIZE, trace_decay=trace_decay)
        run = atari.AtariRun(chosen, background)
        for _ in range(500 if settings.quick else 5_000):
            run._decide()
        name = f"{protocol}, λ = {trace_decay:g}"
        columns[name], ratio = _column(run, settings)
        if limit is not None:
            section.targets.append(at_most(f"a decision over its five frames, {name}", limit, ratio))
    rows = dict.fromkeys(what for column in columns.values() for what in column)
    table = [(what, *(column.get(what, "–") for column in columns.values())) for what in sorted(rows, key=ORDER.index)]
    section.tables.append(Table(("per decision", *columns), table))
    section.notes.append(
        "The parts are timed apart, in decisions that the clock lengthens a little; to read two screens takes 3 µs, the rest of "
        "that row is what frames lose that do not follow one another at once. The published program's learner evaluates, "
        "chooses and learns in one compiled step. The last row is what it would cost, over the bare frames, to let the "
        "emulator average the colours of every frame."
    )
    return section


SCREENS = "two screens read, frames interrupted"
ORDER = [
    "five frames by the emulator alone",
    SCREENS,
    "features",
    "values of all actions",
    "choice",
    "learning",
    "values, choice and learning",
    "all else, in Python",
    "a whole decision",
    "over the five frames alone",
    "frames a second",
    "active features",
    "entries with trace",
    "five frames, colours averaged by the emulator",
]


class Piece(NamedTuple):
    """Seconds per decision of a piece of the game."""

    whole: float
    frames: float
    averaged: float
    parts: dict[str, float]


def _column(run: atari.AtariRun, settings: Settings) -> tuple[dict[str, Any], Ratio]:
    count = settings.rounds * (3 if settings.quick else 20)
    plain = list(islice(_pieces(run, Counter()), count))
    spent, owners = Counter(), _clock(run)
    for owner, method, name in owners:
        setattr(owner, method, _clocked(spent, name, getattr(owner, method)))
    clocked = list(islice(_pieces(run, spent), count))
    for owner, method, _ in owners:
        delattr(owner, method)
    ratio = _ratio([piece.whole / piece.frames for piece in plain], settings.rounds)
    whole = median(piece.whole for piece in plain)
    active = _active(run)
    return {
        "five frames by the emulator alone": Seconds(median(piece.frames for piece in plain)),
        **{name: Seconds(median(piece.parts[name] for piece in clocked)) for name in clocked[0].parts},
        "a whole decision": Seconds(whole),
        "over the five frames alone": ratio,
        "frames a second": short(SKIP / whole),
        "active features": short(active),
        "entries with trace": f"{_traced(run):,}",
        "five frames, colours averaged by the emulator": _ratio(
            [piece.averaged / piece.frames for piece in plain], settings.rounds
        ),
    }, ratio


def _ratio(ratios: list[float], rounds: int) -> Ratio:
    """The median over the pieces of each round, and of these the median, the smallest and the largest."""
    size = len(ratios) // rounds
    medians = [median(ratios[size * k : size * (k + 1)]) for k in range(rounds)]
    return Ratio(median(medians), min(medians), max(medians))


def _pieces(run: atari.AtariRun, spent: Counter[str]) -> Iterator[Piece]:
    """Play on for ever; `spent` is filled by the clocks, if there are any."""
    ale, averaging = run.emulator._ale, load("asterix", averaged=True)
    while True:
        before, actions, episodes = ale.cloneState(include_rng=True), [], len(run.episodes)
        spent.clear()
        begin = perf_counter()
        for _ in range(PIECE):
            actions.append(run.action)
            run._decide()
        whole = perf_counter() - begin
        if None in actions or len(run.episodes) > episodes:
            continue  # an episode ended or began
        chosen = [run.emulator.actions[action] for action in actions]
        frames = _frames(ale, before, chosen)  # which leads to where the game is now
        averaged = _frames(averaging, before, chosen)
        parts = dict(spent)
        if parts:
            parts["all else, in Python"] = whole - sum(parts.values())
            parts[SCREENS] = parts.pop("act") - frames
        per_decision = {name: seconds / PIECE for name, seconds in parts.items()}
        yield Piece(whole / PIECE, frames / PIECE, averaged / PIECE, per_decision)


def _frames(ale: Any, before: Any, actions: list) -> float:
    """Seconds that the frames take by themselves."""
    ale.restoreState(before)
    act = ale.act
    begin = perf_counter()
    for action in actions:
        for _ in range(SKIP):
            act(action)
    return perf_counter() - begin


def _clock(run: atari.AtariRun) -> list[tuple[Any, str, str]]:
    """The methods to time: the object, the name of its method, and the name of the part that it counts as."""
    player: Any = run.player
    emulator = [(run.emulator, "act", "act"), (run.emulator, "features", "features")]
    if run.settings.protocol == "published":
        return [*emulator, (player, "step", "values, choice and learning")]
    parts = {"_evaluate": "values of all actions", "_choose": "choice", "_transition": "learning"}
    return emulator + [(player.agent, method, name) for method, name in parts.items()]


def _clocked(spent: Counter[str], name: str, function: Callable) -> Callable:
    def clocked(*arguments: Any, **named: Any) -> Any:
        begin = perf_counter()
        answer = function(*arguments, **named)
        spent[name] += perf_counter() - begin
        return answer

    return clocked


def _active(run: atari.AtariRun) -> float:
    """How many features are active, on average over some decisions."""
    found: list[int] = []
    while len(found) < 200:
        run._decide()
        found.append(len(run.emulator.features(run.screens)))
    return sum(found) / len(found)


def _traced(run: atari.AtariRun) -> int:
    """How many weights carry trace."""
    player: Any = run.player
    return int(player.count if run.settings.protocol == "published" else (player.agent.trace != 0.0).sum())
