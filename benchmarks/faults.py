"""Alerts on planted faults: hits by kind of stream and fault, the delay, and false alerts a day where nothing is wrong."""

from __future__ import annotations

import numpy as np

from benchmarks.report import Section, Settings, Table, Target
from trueonline.streams.outputs.alerts import BEGUN, DEFAULT_THRESHOLD, Incidents
from trueonline.streams.predictor import Predictor, Setup
from trueonline.streams.sources import Clean, TimeStyle

DAY = 86400.0
DAYS, FAULT_DAY = 14, 10.3  # of a stream with a fault, and when it begins
QUIET_DAYS = 60
SEEDS = 3


def quiet(kind: str, seconds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A stream in which nothing is wrong."""
    day, noise = 2.0 * np.pi * seconds / DAY, rng.standard_normal(len(seconds))
    if kind == "noise":
        return 50.0 + noise
    if kind == "daily pattern":
        return 10.0 + 3.0 * np.sin(day) + np.maximum(np.sin(2.0 * day), 0.0) + 0.3 * noise
    if kind == "counts with zeros":
        return rng.poisson(np.exp(1.5 * np.sin(day))).astype(float)
    if kind == "bursts":
        return np.exp(0.5 * np.sin(day) + 0.6 * noise)
    smooth = np.empty(len(seconds))  # a temperature: it returns to its usual level over hours
    smooth[0] = noise[0]
    keep = np.exp(-(seconds[1] - seconds[0]) / 7200.0)
    for t in range(1, len(seconds)):
        smooth[t] = keep * smooth[t - 1] + np.sqrt(1.0 - keep * keep) * noise[t]
    return 80.0 + 3.0 * smooth + np.sin(day)


STREAMS = {"noise": 60.0, "daily pattern": 300.0, "counts with zeros": 3600.0, "bursts": 300.0, "temperature": 300.0}


def fault(
    kind: str, x: np.ndarray, seconds: np.ndarray, begin: int, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """The stream with a fault from this sample on, and the hours in which an alert finds it. NaN: the sample is missing."""
    x, after = x.copy(), (seconds - seconds[begin]) / 3600.0
    spread, here = np.std(np.diff(x)) + 0.5 * np.std(x), after >= 0.0
    if kind == "spike":
        x[begin] += 10.0 * spread
        return x, 1.0
    if kind == "level shift":
        x[here] += 5.0 * spread
        return x, 12.0
    if kind == "drift":
        x[here] -= 8.0 * spread * np.minimum(after[here] / 32.0, 1.0)
        return x, 32.0
    if kind == "flat line":
        x[here & (after < 48.0)] = x[begin]
        return x, 48.0
    if kind == "noise burst":
        rows = here & (after < 12.0)
        x[rows] += 5.0 * spread * rng.standard_normal(rows.sum())
        return x, 12.0
    x[here & (after < 24.0)] = np.nan
    return x, 25.0


FAULTS = ("spike", "level shift", "drift", "flat line", "noise burst", "missing samples")


def incidents(seconds: np.ndarray, x: np.ndarray) -> list[float]:
    """When alerts are told."""
    known = np.isfinite(x)
    predictor = Predictor(Setup(signals=["x"], targets=["x"], horizons=["20 samples"]))
    told = Incidents(predictor, DEFAULT_THRESHOLD)
    clean = Clean(seconds[known], x[known][:, None], np.arange(known.sum()) == 0)
    return [alert.time for alert in told.follow(predictor.learn(clean), TimeStyle()) if alert.state == BEGUN]


def measure(settings: Settings) -> Section:
    seeds, days = (1, 10) if settings.quick else (SEEDS, QUIET_DAYS)
    hits, false, total, delays = [], [], 0, []
    for kind, step in STREAMS.items():
        seconds = np.arange(0.0, days * DAY, step)
        told = [len(incidents(seconds, quiet(kind, seconds, np.random.default_rng(seed)))) for seed in range(seeds)]
        false.append(sum(told) / (seeds * days))
        row = []
        for name in FAULTS:
            found = 0
            for seed in range(seeds):
                rng, seconds = np.random.default_rng(100 + seed), np.arange(0.0, DAYS * DAY, step)
                begin = int(FAULT_DAY * DAY / step)
                x, hours = fault(name, quiet(kind, seconds, rng), seconds, begin, rng)
                after = [(time - seconds[begin]) / 3600.0 for time in incidents(seconds, x)]
                inside = [each for each in after if 0.0 <= each <= hours]
                found, delays = found + bool(inside), [*delays, *inside[:1]]
            row.append(f"{found} of {seeds}")
            total += found
        hits.append((kind, *row, f"{30.0 * false[-1]:.2f}"))
    everything = len(STREAMS) * len(FAULTS) * seeds
    return Section(
        "Alerts on planted faults",
        f"{DAYS} days with a fault in the eleventh, and {days} days without one, {seeds} times each, at the default threshold of "
        f"{DEFAULT_THRESHOLD}. A hit is an alert that begins while the fault lasts. The median delay is {np.median(delays):.1f} h.",
        tables=[Table(("stream", *FAULTS, "false alerts in 30 days"), hits)],
        targets=[
            Target(
                "false alerts in 30 quiet days",
                "≤ 1",
                f"{30.0 * np.mean(false):.2f}",
                30.0 * float(np.mean(false)) <= 1.0,
            ),
            Target("faults found", "≥ 80 %", f"{total / everything:.0%}", total >= 0.8 * everything),
        ],
    )
