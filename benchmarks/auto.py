"""Predictions without tuning: error, bands and time beside other packages, and the error with each ingredient left out once."""

from __future__ import annotations

import csv
import datetime
import math
import os
import subprocess
import tempfile
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.report import Seconds, Section, Settings, Table, Target
from trueonline.streams.mixture import Expert, Mixture
from trueonline.streams.mixture.experts import LEARNED_BASES, PACES, all_experts
from trueonline.streams.mixture.stream_views import Views
from trueonline.streams.predictor import Predictor
from trueonline.streams.questions.prediction_setup import Setup
from trueonline.streams.sources import Clean

GAMMAS = (0.9, 0.98)
STREAMS = (
    "TRUEONLINE_STREAMS"  # names a folder of CSV files: a column of times, then signals, of which the first is the target
)
LIMIT = 100e-6  # seconds a sample, for one question
QUESTIONS, RATE = 25, 100.0  # at so many samples a second half of a core must stay idle
SEED = 0
PEER_SAMPLES = 4000  # of each stream in the comparison with other packages
RECENT = 500  # errors that rolling quantiles are of
PEERS = {
    "rls": "robust RLS on lags and calendar",
    "river": "river, adaptive random forest",
    "lightgbm": "LightGBM, trained ten times",
    "statsforecast": "statsforecast, AutoETS",
}


# --- Streams --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Stream:
    name: str
    seconds: np.ndarray
    signals: np.ndarray
    others: list[str]


def artificial(samples: int) -> list[Stream]:
    """Streams of known kinds, five minutes apart, where no folder of recordings is named."""
    rng = np.random.default_rng(SEED)
    t = np.arange(samples)
    day, noise = 2.0 * np.pi * t / 288.0, rng.standard_normal(samples)
    spikes = np.where(rng.random(samples) < 0.02, 20.0 * rng.random(samples), 0.0)
    kinds = {
        "daily": 10.0 + 3.0 * np.sin(day) + np.maximum(np.sin(2.0 * day), 0.0) + 0.3 * noise,
        "noise": 50.0 + noise,
        "random walk": 100.0 + 0.5 * noise.cumsum(),
        "spikes": 5.0 + 0.5 * noise + spikes,
        "steps": np.repeat(rng.normal(0.0, 10.0, samples // 500 + 1), 500)[:samples] + 0.5 * noise,
    }
    return [Stream(name, 300.0 * t, values[:, None], []) for name, values in kinds.items()]


def recorded(folder: Path) -> list[Stream]:
    """The CSV files of a folder. The first column has times, as numbers or in ISO 8601."""
    streams = []
    for path in sorted(folder.rglob("*.csv")):
        with open(path, encoding="utf-8", newline="") as file:
            head, *rows = csv.reader(file)
        signals = np.array([[float(cell) for cell in row[1:]] for row in rows])
        streams.append(
            Stream(f"{path.parent.name}/{path.stem}", np.array([_seconds(row[0]) for row in rows]), signals, head[2:])
        )
    return streams


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC).timestamp()


# --- Errors ---------------------------------------------------------------------------------------


def came_true(x: np.ndarray, gamma: float) -> np.ndarray:
    """M_t = (1 − γ)·x_{t+1} + γ·M_{t+1}, and 0 at the end."""
    out = np.zeros(len(x))
    for t in range(len(x) - 2, -1, -1):
        out[t] = (1.0 - gamma) * x[t + 1] + gamma * out[t + 1]
    return out


Keep = Callable[[Expert], bool]


def ratio(stream: Stream, gamma: float, keep: Keep, looks: Sequence[float] | None = None) -> float:
    """The error of the mixture of the experts to keep over that of the better of two naive forecasts."""
    x, T = np.ascontiguousarray(stream.signals[:, 0]), len(stream.seconds)
    views, gammas = Views(stream.others), np.full(T, gamma)
    X, bases = views.see(stream.seconds, stream.signals, gammas)
    experts = [each for each in all_experts(views.feature_sets) if keep(each)]
    mixture = Mixture(views.feature_sets, experts, views.bases, **({} if looks is None else {"looks": looks}))
    predictions = mixture.run(X, bases[:, 0], bases, gammas)
    return against_naive(x, gamma, predictions)


def against_naive(x: np.ndarray, gamma: float, predictions: np.ndarray) -> float:
    """The error of predictions over that of the better of two naive forecasts."""
    M, known = came_true(x, gamma), slice(0, len(x) - wait(gamma))
    least = 1e-6 * np.abs(M[known]).mean()  # of a stream that never changes
    so_far = np.cumsum(x) / np.arange(1, len(x) + 1)
    own, hold, mean = (max(np.abs(each - M)[known].mean(), least) for each in (predictions, x, so_far))
    return float(own / min(hold, mean))


def wait(gamma: float) -> int:
    """The samples after which all but 1 % of a mean is known."""
    return math.ceil(math.log(0.01) / math.log(gamma))


def variants() -> Iterator[tuple[str, Keep, Sequence[float] | None]]:
    """All experts, and each ingredient left out once."""

    def without(test: Keep) -> Keep:
        return lambda expert: not test(expert)

    yield "all of it", lambda expert: True, None
    yield "without learners (naive forecasts, weighted)", lambda expert: expert.features is None, None
    yield (
        "with learners on the mean alone",
        without(lambda e: e.features is not None and e.base != "mean"),
        None,
    )
    for base in LEARNED_BASES:
        yield (
            f"without learners on the base {base}",
            without(lambda e, base=base: e.features is not None and e.base == base),
            None,
        )
    for word in ("hour", "value", "slope", "level", "week"):
        yield f"without features of {word}", without(lambda e, word=word: word in (e.features or "")), None
    for pace in PACES:
        name = "without step-size {:g} with λ = {:g}".format(*pace)
        yield name, without(lambda e, pace=pace: e.features is not None and (e.step_size, e.trace_decay) == pace), None
    yield "without the early look", lambda expert: True, (0.1,)
    yield "without the late look", lambda expert: True, (0.9,)
    yield "one look, when all but 1 % is known", lambda expert: True, (0.01,)


def errors(streams: list[Stream], quick: bool) -> Table:
    rows = []
    for name, keep, looks in variants():
        found = np.array([ratio(stream, gamma, keep, looks) for stream in streams for gamma in GAMMAS])
        rows.append(
            (name, f"{np.exp(np.log(found).mean()):.3f}", f"{found.max():.3f}", f"{(found > 1.0).sum()} of {len(found)}")
        )
        if quick and len(rows) == 2:
            break
    return Table(("experts", "error / naive", "worst", "worse than naive"), rows)


# --- Other packages -------------------------------------------------------------------------------


Forecast = tuple[np.ndarray, np.ndarray, np.ndarray]  # with the ends of its band


def rolling(x: np.ndarray, gamma: float, predictions: np.ndarray) -> Forecast:
    """Predictions with a plain band: the 5 % and 95 % quantiles of the last errors that are known."""
    errors, later = came_true(x, gamma) - predictions, wait(gamma)
    ends, kept = np.full((2, len(x)), np.nan), list[float]()
    for t in range(later, len(x)):
        insort(kept, errors[t - later])
        if len(kept) > RECENT:
            del kept[bisect_left(kept, errors[t - later - RECENT])]
        if len(kept) >= 20:
            ends[:, t] = np.interp(np.array([0.05, 0.95]) * (len(kept) - 1), np.arange(len(kept)), kept)
    return predictions, predictions + ends[0], predictions + ends[1]


def own_forecast(stream: Stream, gamma: float) -> Forecast:
    """Predictions and bands through all parts of `predict`."""
    names = ["target", *stream.others]
    predictor = Predictor(Setup(signals=names, targets=names[:1], discounts=[gamma], meaning="mean"))
    rising = np.diff(np.maximum.accumulate(stream.seconds), prepend=-np.inf) > 0.0  # late samples keep the last answer
    rows = np.arange(rising.sum()) == 0
    found = predictor.learn(Clean(stream.seconds[rising], stream.signals[rising], rows))
    at = np.cumsum(rising) - 1
    return found.predictions[at, 0], found.low[at, 0], found.high[at, 0]  # type: ignore[index]


def beside_others(streams: list[Stream], python: str) -> Table:
    """One row for each package: error, bands and time."""
    short = [Stream(s.name, s.seconds[:PEER_SAMPLES], s.signals[:PEER_SAMPLES], s.others) for s in streams]
    cases = {f"{gamma} {i}": (s, gamma) for i, s in enumerate(short) for gamma in GAMMAS}
    samples = sum(len(stream.seconds) for stream, _ in cases.values())
    own_forecast(*next(iter(cases.values())))  # compiles
    begun = perf_counter()
    own = {key: own_forecast(*case) for key, case in cases.items()}
    took = Seconds((perf_counter() - begun) / samples)
    values = {key: np.ascontiguousarray(stream.signals[:, 0]) for key, (stream, _) in cases.items()}

    def plain(found: dict[str, np.ndarray]) -> dict[str, Forecast]:
        return {key: rolling(values[key], cases[key][1], predictions) for key, predictions in found.items()}

    def winkler(key: str, forecast: Forecast, rows: np.ndarray) -> float:
        """The mean width of the bands, and twenty times the distance of what they missed."""
        M, (_, low, high) = came_true(values[key], cases[key][1]), forecast
        score = high - low + 20.0 * np.maximum(np.maximum(low - M, M - high), 0.0)
        return float(max(score[rows].mean(), 1e-6 * np.abs(M).mean()))

    own_plain = plain({key: forecast[0] for key, forecast in own.items()})

    def row(name: str, found: dict[str, Forecast], seconds: object) -> tuple:
        errors = np.array([against_naive(values[key], cases[key][1], found[key][0]) for key in cases])
        inside, widths = [], []
        for key, (_, gamma) in cases.items():
            M, (_, low, high) = came_true(values[key], gamma), found[key]
            judged = np.arange(len(M)) < len(M) - wait(gamma)
            rows = judged & np.isfinite(own_plain[key][1] + own[key][1])  # those where all have a band
            inside.append(((low <= M) & (high >= M))[judged & np.isfinite(low)].mean())
            widths.append(winkler(key, found[key], rows) / winkler(key, own[key], rows))
        right = (np.array(inside) >= 0.8) & (np.array(inside) <= 0.95)
        score = f"{np.exp(np.log(widths).mean()):.2f}"
        bands = (f"{np.mean(inside):.0%}", f"{right.sum()} of {len(right)}", score)
        return name, f"{np.exp(np.log(errors).mean()):.3f}", f"{errors.max():.2f}", *bands, seconds

    table = [row("trueonline", own, took), row("the same, plain bands", own_plain, "")]
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "cases.npz", Path(folder) / "found.npz"
        np.savez(given, **{key: np.array([values[key], cases[key][0].seconds]) for key in cases})
        for peer, title in PEERS.items():
            child = str(Path(__file__).with_name("auto_peer.py"))
            try:
                command = [python, child, peer, str(given), str(found)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                reason = (done.stderr.strip().splitlines() or [""])[-1] if done.returncode else ""
            except OSError as error:
                reason = f"no interpreter ({error.strerror})"
            if reason:
                missing = "not installed" if "NotFoundError" in reason else reason
                table.append((title, missing, *["–"] * 5))
                continue
            with np.load(found) as file:
                seconds = Seconds(float(file["seconds"]) / samples)
                table.append(row(f"{title} ({file['version']})", plain({key: file[key] for key in cases}), seconds))
    return Table(("forecasts", "error / naive", "worst", "band holds", "80 to 95 %", "Winkler score", "a sample"), table)


# --- Times ----------------------------------------------------------------------------------------


def seconds_a_sample(questions: int, block: int, samples: int) -> float:
    """Seconds a sample through all parts of `predict`: signals, mixtures, bands, surprise and scores."""
    rng = np.random.default_rng(SEED)
    targets = [f"s{i}" for i in range(questions)]
    setup = Setup(signals=targets[:1], targets=targets, horizons=["50 samples"])
    predictor = Predictor(setup)
    values = rng.standard_normal((samples + block, questions)).cumsum(axis=0)
    times = np.arange(samples + block) / RATE
    begun = 0.0
    for first in range(0, samples + block, block):
        rows = slice(first, first + block)
        if first == block:
            begun = perf_counter()  # the first block compiles
        predictor.learn(Clean(times[rows], values[rows], np.arange(first, first + len(times[rows])) == 0))
    return (perf_counter() - begun) / samples


def measure(settings: Settings) -> Section:
    samples = 2_000 if settings.quick else 10_000
    one, one_live = seconds_a_sample(1, 1000, samples), seconds_a_sample(1, 1, samples)
    many = seconds_a_sample(QUESTIONS, 1, samples // 10)
    folder = os.environ.get(STREAMS)
    streams = recorded(Path(folder)) if folder else artificial(1000 if settings.quick else 4000)
    idle = 1.0 - many * RATE
    return Section(
        "Predictions without tuning",
        f"The mixture of `auto` on {len(streams)} {'recorded' if folder else 'artificial'} streams and γ = {GAMMAS[0]} and "
        f"{GAMMAS[1]}: its mean absolute error over that of the better of two forecasts that need no learning (the newest value "
        f"stays, the mean so far stays), as a geometric mean. Set {STREAMS} to a folder of CSV files to use other streams. The "
        f"first table has the first {PEER_SAMPLES:,} samples of each. Other packages get plain bands: rolling quantiles of "
        "errors. Winkler scores (width, and twenty times what is missed) are over that of `trueonline`.",
        tables=[
            beside_others(streams, settings.peers_python),
            errors(streams, settings.quick),
            Table(
                ("through all of `predict`", "a sample", "of the limit"),
                [
                    ("one question, blocks of 1,000", Seconds(one), f"{one / LIMIT:.0%}"),
                    ("one question, a sample at a time", Seconds(one_live), f"{one_live / LIMIT:.0%}"),
                    (f"{QUESTIONS} questions, a sample at a time", Seconds(many), f"{many * RATE / 0.5:.0%}"),
                ],
            ),
        ],
        targets=[
            Target("one question with all experts, a sample", "≤ 100 µs", str(Seconds(one)), one <= LIMIT),
            Target(f"{QUESTIONS} questions at {RATE:g} Hz, idle share of a core", "≥ 50 %", f"{idle:.0%}", idle >= 0.5),
        ],
    )
