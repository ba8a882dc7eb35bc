"""The surprise of errors, against its definition with plain arrays, and against errors of all kinds."""

import math

import numpy as np
import pytest

from trueonline.streams.accuracy.surprise import (
    BIN_WIDTH,
    BINS,
    FORGET_RATE,
    MAX_SIZES,
    MEAN_LENGTH,
    MIN_WEIGHT,
    PEAK_FADE,
    PRIOR_SAMPLES,
    PRIOR_SHAPE,
    SIZE_RATE,
    TAIL_SHARE,
    WARM_UP,
    Surprise,
)


def share_above(values, ages, at):
    """The probability of `at` or more: of values in bins with weights that forget, and a Pareto tail beyond the largest 2 %."""
    weights = (1 - FORGET_RATE) ** ages
    bin_weights = np.bincount((values / BIN_WIDTH + BINS // 2).astype(int), weights, minlength=BINS)
    beyond = np.append(np.cumsum(bin_weights[::-1])[::-1], 0.0)  # the weight from each edge on
    total = beyond[0]
    edge = next(b for b in range(1, BINS + 1) if beyond[b] < TAIL_SHARE * total)
    x = at / BIN_WIDTH + BINS // 2
    if x <= edge:
        return beyond[int(x)] / total
    excess = (bin_weights[edge:] * (np.arange(edge, BINS) + 0.5 - edge)).sum() * BIN_WIDTH
    shape = (excess + PRIOR_SAMPLES * PRIOR_SHAPE) / (beyond[edge] + PRIOR_SAMPLES)
    return max(beyond[edge], 0.5) / total * math.exp(-(x - edge) * BIN_WIDTH / shape)


def probabilities(errors, starts):
    """For each sample the smallest probability of the four figures of one target, and its usual size. NaN while unknown."""
    smallest, usual = np.full((2, len(errors)), np.nan)
    past = [[], [], [], []]  # (logarithm, number of the error that it came with)
    scale = seen = run = 0
    drift = size = 0.0
    for t, error in enumerate(errors):
        run = 0 if starts[t] else run
        if np.isnan(error):
            continue
        scale = abs(error) if seen == 0 else scale
        seen, run = seen + 1, run + 1
        z = error / scale
        rate = max(1 / MEAN_LENGTH, 1 / run)
        drift, size = drift + rate * (np.arcsinh(z) - drift), size + rate * (abs(np.arcsinh(z)) - size)
        logs = [np.log(max(value, 1e-4)) for value in (abs(z), abs(drift), size, size)]
        logs = np.clip([logs[0], 2 * logs[1], 2 * logs[2], -2 * logs[3]], -12, 12 - BIN_WIDTH / 2)
        found = []
        for figure in range(4):
            if figure > 0 and run < MEAN_LENGTH:
                continue
            if seen > WARM_UP:
                values = np.array([value for value, when in past[figure] if when <= seen - MEAN_LENGTH])
                ages = np.arange(len(values))[::-1]
                found.append(
                    1.0 if ((1 - FORGET_RATE) ** ages).sum() < MIN_WEIGHT else share_above(values, ages, logs[figure])
                )
            past[figure].append((logs[figure], seen))
        if found:
            smallest[t], usual[t] = min(found), scale
        scale += max(SIZE_RATE, 1 / seen) * (min(abs(error), MAX_SIZES * scale) - scale)
    return smallest, usual


def by_definition(errors, starts):
    each = [probabilities(column, starts) for column in errors.T]
    p, usual = (np.array([one[k] for one in each]) for k in range(2))
    surprise, suspect, size = np.zeros(len(errors)), np.full(len(errors), -1), np.full(len(errors), np.nan)
    peak = margin = 0.0
    for t in range(len(errors)):
        peak, margin = peak * PEAK_FADE, margin * (1 - 1 / MEAN_LENGTH)
        if np.isnan(p[:, t]).all():
            continue
        suspect[t] = np.nanargmin(p[:, t])
        size[t] = usual[suspect[t], t]
        least = max(min(p[suspect[t], t] * 4 * np.isfinite(p[:, t]).sum(), 1.0), 1e-16)
        news = -np.log10(least) > peak + margin
        surprise[t] = 1 - (least if news else max(least, 0.1))
        peak, margin = (-np.log10(least), 1.0) if news else (peak, margin)
    return surprise, suspect, size


def test_surprise_is_that_of_the_definition_in_blocks_of_any_size_and_resumed():
    rng = np.random.default_rng(0)
    T = 1000
    errors = rng.standard_t(2, size=(T, 3)) * [1.0, 1e-6, 1e3]
    errors[rng.random((T, 3)) < 0.02] = np.nan
    starts = rng.random(T) < 0.005
    whole = Surprise(3).follow(errors, starts)
    surprise, at, pieces = Surprise(3), 0, []
    while at < T:
        to = at + int(rng.integers(1, 60))
        pieces.append(surprise.follow(errors[at:to], starts[at:to]))
        other = Surprise(3)
        other.restore(surprise.state())
        surprise, at = other, to
    for k, expected in enumerate(by_definition(errors, starts)):
        assert np.array_equal(whole[k], np.concatenate([piece[k] for piece in pieces]), equal_nan=True)
        np.testing.assert_allclose(whole[k], expected, rtol=1e-9, atol=1e-12)


def surprises(errors):
    return Surprise(1).follow(np.asarray(errors, float)[:, None], np.arange(len(errors)) == 0)[0]


@pytest.mark.parametrize("kind", ["normal", "cauchy", "rounded", "swinging", "correlated"])
def test_usual_errors_are_rarely_surprising(kind):
    """The level 0.999 is exceeded about once in a thousand samples, or less often."""
    rng = np.random.default_rng(1)
    T = 100_000
    noise = rng.normal(size=T)
    errors = {
        "normal": noise,
        "cauchy": rng.standard_cauchy(T),
        "rounded": np.round(0.7 * noise),
        "swinging": noise * (1 + 4 * (np.sin(np.arange(T) / 50) > 0)),
        "correlated": np.convolve(noise, 0.9 ** np.arange(50))[:T],
    }[kind]
    found = surprises(errors)
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    assert (found[WARM_UP:] > 0.999).mean() < 0.0012
    assert (found[WARM_UP:] > 0.99).sum() > 0


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_jumps_drifts_bursts_and_silence_are_surprising(scale):
    rng = np.random.default_rng(2)
    usual = rng.normal(size=3000)
    odd = {"jump": usual.copy(), "drift": usual.copy(), "burst": usual.copy(), "silence": usual.copy()}
    odd["jump"][2500] = 12.0
    odd["drift"][2500:2540] += 2.0
    odd["burst"][2500:2540] *= 4.0
    odd["silence"][2500:2600] *= 0.02
    for what, errors in odd.items():
        found = surprises(errors * scale)
        assert found[2500:2600].max() > 0.999, what
        assert found[2500:2600].max() > found[1000:2500].max(), what


def test_only_something_more_unusual_is_news_again():
    errors = np.random.default_rng(3).normal(size=6000)
    errors[2000], errors[2050], errors[2100], errors[5900] = 20.0, 15.0, 500.0, 15.0
    found = surprises(errors)
    assert found[2000] > 0.9999
    assert found[2050] <= 0.9
    assert found[2100] > found[2000]
    assert found[5900] > 0.999  # the peak has faded


def test_nothing_is_surprising_at_first_or_without_forecasts():
    errors = np.random.default_rng(5).normal(size=(300, 2))
    errors[50] = 1e3
    errors[:, 1] = np.nan
    errors[200] = np.nan
    surprise, suspect, usual = Surprise(2).follow(errors, np.arange(300) == 0)
    unknown = (np.arange(300) < WARM_UP) | (np.arange(300) == 200)
    assert (surprise[unknown] == 0.0).all()
    assert ((suspect == -1) == unknown).all()
    assert (np.isnan(usual) == unknown).all()
    assert (suspect[~unknown] == 0).all()


def test_many_targets_do_not_alarm_more_often_and_the_suspect_is_named():
    rng = np.random.default_rng(6)
    errors = rng.normal(size=(20_000, 30))
    errors[15_000, 7] = 40.0
    surprise, suspect, usual = Surprise(30).follow(errors, np.arange(20_000) == 0)
    assert (surprise > 0.999).mean() < 0.001
    assert int(surprise[1000:].argmax()) == 14_000  # after the first thousand
    assert suspect[15_000] == 7
    assert usual[15_000] == pytest.approx(np.sqrt(2 / np.pi), rel=0.2)


def test_a_state_that_does_not_fit_is_refused():
    surprise = Surprise(1)
    surprise.follow(np.ones((200, 1)), np.arange(200) == 0)
    for name, value in [("counts", -1), ("scales", -1.0), ("means", np.nan), ("bins", -1.0), ("peak", np.inf)]:
        state = surprise.state()
        state[name].flat[0] = value
        with pytest.raises(ValueError, match=name):
            Surprise(1).restore(state)
