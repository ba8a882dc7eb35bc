"""The surprise of samples, against its definition with plain arrays, and on streams in which something goes wrong."""

import math

import numpy as np
import pytest

from trueonline.streams.accuracy.surprise import (
    BIN_WIDTH,
    BINS,
    FARTHER,
    FORGET_RATES,
    MAX_DAY,
    MAX_SIZES,
    PRIOR_SAMPLES,
    REASONS,
    RUN_SAMPLES,
    SHAPES,
    SIZE_RATES,
    SUDDEN,
    TAIL_SHARE,
    Surprise,
)

LEVEL, HOUR, NEXT, RUN, FLAT, GAP, DRIFT = range(7)
HOURS = np.arange(100_000) * 3600.0


class Past:
    """What is known of a figure: all its sizes so far, in usual sizes at their time, with weights that forget."""

    def __init__(self, k):
        self.k, self.scale, self.seen, self.logs = k, 0.0, 0, []

    def z(self, size):
        return size / self.scale if self.scale > 0 else (self.seen if size > 0 else 0.0)

    def probability(self, size, known=None, each=1.0):
        shape, z = SHAPES[self.k], self.z(size)
        weights = (1 - (0.0 if self.k == DRIFT else FORGET_RATES[self.k])) ** np.arange(len(self.logs))[::-1]
        total, known = weights.sum(), weights.sum() if known is None else known
        first = (1 + shape / (1 - shape) * z) ** -min(1 / shape, known + 1)
        if total == 0:
            return first
        at = np.clip(math.log(max(z, 1e-300)) / BIN_WIDTH + BINS // 2, 0, BINS - 0.5)
        bins = np.bincount(self.logs, weights, minlength=BINS)
        beyond = np.append(np.cumsum(bins[::-1])[::-1], 0.0)  # the weight from each edge on
        edge = next(b for b in range(BINS + 1) if beyond[b] < TAIL_SHARE * total * (1 + 1e-12))
        excess = (bins[edge:] * (np.arange(edge, BINS) + 0.5 - edge)).sum() * BIN_WIDTH
        tail = (excess + PRIOR_SAMPLES * shape) / (beyond[edge] + PRIOR_SAMPLES)
        share = max(beyond[edge], 0.5) * math.exp(-(at - edge) * BIN_WIDTH / tail)
        share = beyond[int(at)] if at <= edge else share
        w = PRIOR_SAMPLES / (PRIOR_SAMPLES + known)
        return (1 - w) * share / total + w**2 * first / each

    def place(self, size):
        return int(np.clip(math.log(max(self.z(size), 1e-300)) / BIN_WIDTH + BINS // 2, 0, BINS - 0.5))

    def remember(self, size):
        if self.seen:
            self.logs.append(self.place(size))
        self.seen += 1
        rate = max(SIZE_RATES[self.k], 1 / self.seen)
        self.scale = size if self.scale == 0 else self.scale + rate * (min(size, MAX_SIZES * self.scale) - self.scale)


def by_definition(x, forecasts, seconds, starts):
    """The surprise of one signal and the error that tells why."""
    figures, days, surprise, errors = [Past(k) for k in range(7)], {}, np.zeros(len(x)), np.full(len(x), np.nan)
    run, same, today, day_begins, before, over, largest = 0.0, 1, [], seconds[0], 0.0, 0, 0.0
    hours = seconds // 3600
    for t in range(1, len(x)):
        p, expected = {}, {}

        def view(k, size, about, p=p, expected=expected, t=t):
            size = 0.0 if size < 1e-12 * abs(x[t]) else size
            p[k], expected[k] = figures[k].probability(size), about
            figures[k].remember(size)

        if hours[t] % 24 != hours[t - 1] % 24:
            block = x[:t][hours[:t] == hours[t - 1]]
            count, mean = days.get(hours[t - 1] % 24, (0, 0.0))
            days[hours[t - 1] % 24] = count + 1, mean + max(0.1, 1 / (count + 1)) * (block.mean() - mean)
        view(LEVEL, abs(x[t] - x[:t].mean()), x[:t].mean())
        if hours[t] % 24 in days:
            usual = days[hours[t] % 24][1]
            view(HOUR, abs(x[t] - usual), usual)
        forecast = x[t - 1] if np.isnan(forecasts[t]) else forecasts[t]
        if not starts[t]:
            view(NEXT, abs(x[t] - forecast), forecast)
            run += (abs(x[t] - forecast) - run) * max(1 / RUN_SAMPLES, 1 / t)
            view(RUN, run, forecast)
        told = expected.get(NEXT, x[t - 1])
        expected[RUN] = told
        if seconds[t] > seconds[t - 1]:
            view(GAP, seconds[t] - seconds[t - 1], told)
        if x[t] != x[t - 1]:
            figures[FLAT].remember(same)
        same = same + 1 if x[t] == x[t - 1] else 1
        if same in 2 ** np.arange(1, 20):
            p[FLAT], expected[FLAT] = figures[FLAT].probability(same), told
        figures[DRIFT].scale = figures[LEVEL].scale
        if over:
            size = abs(x[t] - before)
            if over > 1 and p.get(NEXT, -1) >= SUDDEN and size > FARTHER * largest:
                p[DRIFT] = figures[DRIFT].probability(size, over - 1, len(figures[DRIFT].logs) / (over - 1))
                expected[DRIFT], largest = before, size
            today.append(figures[DRIFT].place(size))
        in_day = np.sum(seconds[1 : t + 1] > day_begins) if over else t
        if seconds[t] - day_begins >= 86400 or in_day >= MAX_DAY:
            figures[DRIFT].logs += today
            over, before, day_begins, largest, today = over + 1, x[:t].mean(), seconds[t], 0.0, []
        views = sorted((p[k], k) for k in range(4) if k in p)
        tests = (
            [(len(views) / 2 * math.e * math.sqrt(views[0][0] * views[1][0]), views[0][1])]
            if len(views) > 1
            else [(2.0, views[0][1])]
        )
        least, odd = min([*tests, *((p[k], k) for k in (FLAT, GAP, DRIFT) if k in p)])
        gap = figures[GAP].scale
        surprise[t] = math.exp(-max(3600 / gap, 1.0) * min(4 * least, 1.0))
        errors[t] = x[t] - expected[odd]
    return surprise, errors


def test_surprise_is_that_of_the_definition_in_blocks_of_any_size_and_resumed():
    rng = np.random.default_rng(0)
    T = 600
    x = np.round(rng.standard_t(3, size=T) + 3 * np.sin(np.arange(T) / 4), 1)
    x[400:420], x[300], x[500:] = x[400], 40.0, x[500:] - 0.1 * np.arange(100)
    seconds = np.cumsum(np.where(rng.random(T) < 0.02, 30_000.0, 3000.0))
    forecasts = np.where(rng.random(T) < 0.1, np.nan, 3 * np.sin(np.arange(T) / 4))
    starts = rng.random(T) < 0.01
    columns = x[:, None], forecasts[:, None]
    whole = Surprise(1).follow(*columns, seconds, starts)
    surprise, at, pieces = Surprise(1), 0, []
    while at < T:
        rows = slice(at, at + int(rng.integers(1, 60)))
        pieces.append(surprise.follow(*(each[rows] for each in columns), seconds[rows], starts[rows]))
        other = Surprise(1)
        other.restore(surprise.state())
        surprise, at = other, rows.stop
    for name, array in whole.items():
        assert np.array_equal(array, np.concatenate([piece[name] for piece in pieces]), equal_nan=True)
    expected, errors = by_definition(x, forecasts, seconds, starts)
    np.testing.assert_allclose(whole["surprise"], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(whole["error"][1:], errors[1:], rtol=1e-9, atol=1e-9)
    known = whole["suspect"] >= 0
    assert np.array_equal(known, np.arange(T) > 0)
    np.testing.assert_array_equal(whole["error"][known], (x - whole["expected"])[known])


def judged(x, seconds=None, forecasts=None):
    x = np.asarray(x, float).reshape(len(x), -1)
    seconds = HOURS[: len(x)] if seconds is None else seconds
    return Surprise(x.shape[1]).follow(x, forecasts, seconds, np.arange(len(x)) == 0)


def why(found, t):
    return REASONS[found["reason"][t]]


@pytest.mark.parametrize("kind", ["normal", "cauchy", "rounded", "swinging", "correlated"])
@pytest.mark.parametrize("interval", [60.0, 3600.0])
def test_usual_samples_are_rarely_surprising_at_any_pace(kind, interval):
    """A surprise of 0.99 comes in a hundredth of all hours or more rarely; with Cauchy noise, up to twice as often."""
    T = 60_000
    noise = np.random.default_rng(1).normal(size=T)
    x = {
        "normal": noise,
        "cauchy": np.random.default_rng(1).standard_cauchy(T),
        "rounded": np.round(0.7 * noise),
        "swinging": noise * (1 + 4 * (np.sin(np.arange(T) / 50) > 0)),
        "correlated": np.convolve(noise, 0.9 ** np.arange(50))[:T],
    }[kind]
    found = judged(x, interval * np.arange(T), 0 * x[:, None])["surprise"]
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    odd = np.unique(np.flatnonzero(found > 0.99) * interval // 3600)
    assert len(odd) <= (0.02 if kind == "cauchy" else 0.01) * T * interval / 3600
    assert (found > 0.5).any()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_each_fault_is_surprising_and_has_its_reason(scale):
    rng = np.random.default_rng(2)
    usual, seconds = rng.normal(size=3000), HOURS[:3000].copy()
    jump, shift, flat, burst = (usual.copy() for _ in range(4))
    jump[2500] = 12.0
    shift[2500:2540] += 4.0
    flat[2500:2600] = flat[2500]
    burst[2500:2540] *= 5.0
    seconds[2500:] += 100 * 3600.0
    faults = {
        "jump": (jump, HOURS[:3000], {"a level never seen", "a jump", "unusual at this time of day"}),
        "shift": (
            shift,
            HOURS[:3000],
            {"a level never seen", "a run of large errors", "unusual at this time of day"},
        ),
        "flat": (flat, HOURS[:3000], {"a flat line"}),
        "burst": (burst, HOURS[:3000], {"a level never seen", "a jump", "unusual at this time of day"}),
        "missing": (usual, seconds, {"missing samples"}),
    }
    for what, (x, times, reasons) in faults.items():
        found = judged(x * scale, times, np.zeros((3000, 1)))
        first = 2500 + int((found["surprise"][2500:2600] > 0.99).argmax())
        assert found["surprise"][first] > 0.99, what
        assert why(found, first) in reasons, what


def test_a_temperature_that_falls_slowly_is_surprising_long_before_the_end():
    """It falls from 91 to 27 within 32 hours, so slowly that every forecast of the next value is right."""
    rng = np.random.default_rng(3)
    T, begin, steps = 20 * 288, 18 * 288, 32 * 12
    swing = np.zeros(T)
    for t in range(1, T):
        swing[t] = 0.98 * swing[t - 1] + rng.normal(scale=0.5)
    x = 88.0 + swing + 2.0 * np.sin(2 * np.pi * np.arange(T) / 288)
    x[begin:] -= 64.0 * np.minimum((np.arange(T - begin) + 1) / steps, 1.0)
    found = judged(x, 300.0 * np.arange(T))
    assert (found["surprise"][288:begin] < 0.99).all()
    first = int((found["surprise"][begin:] > 0.99).argmax())
    assert 0 < first < steps / 2
    assert why(found, begin + first) in ("a level never seen", "a drift away from the usual level")


def test_a_fault_is_found_in_one_of_many_signals():
    x = np.random.default_rng(6).normal(size=(6000, 30))
    x[5000, 7] = 40.0
    found = judged(x)
    assert int(found["surprise"].argmax()) == 5000
    assert found["suspect"][5000] == 7
    assert (found["surprise"] > 0.99).mean() < 0.001


def test_a_new_source_is_no_gap():
    x, seconds = np.random.default_rng(7).normal(size=(1000, 1)), HOURS[:1000]
    for begin_another in (False, True):
        surprise = Surprise(1)
        surprise.follow(x, None, seconds, seconds == 0.0)
        if begin_another:
            surprise.begin_another()
        found = surprise.follow(x, None, seconds + 1e8, seconds == 0.0)
        assert (why(found, 0) == "missing samples") == (not begin_another)
        assert (found["surprise"][0] > 0.99) == (not begin_another)


def test_a_state_that_does_not_fit_is_refused():
    surprise = Surprise(1)
    surprise.follow(np.ones((200, 1)), None, HOURS[:200], HOURS[:200] == 0)
    for name, value in [("numbers", np.nan), ("hours", np.inf), ("figures", -1.0)]:
        state = surprise.state()
        state[name].flat[0] = value
        with pytest.raises(ValueError, match=name):
            Surprise(1).restore(state)
