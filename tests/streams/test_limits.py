"""Forecasts respect the range seen so far, softly, and the bounds that the user gives."""

import numpy as np
import pytest

from trueonline.streams.accuracy.limits import Limits
from trueonline.streams.predictor import Predictor, Setup
from trueonline.streams.sources import Clean


def test_limits_are_the_range_so_far_and_an_nth_of_it_more_in_blocks_of_any_size():
    x = np.random.default_rng(0).normal(size=(50, 2)).cumsum(axis=0)
    whole, limits, at = Limits(2).follow(x), Limits(2), 0
    for size in (1, 20, 4, 25):
        part = limits.follow(x[at : at + size])
        for ends, all_ends in zip(part, whole, strict=True):
            assert np.array_equal(ends, all_ends[at : at + size + 1])
        at += size
        other = Limits(2)
        other.restore(limits.state())
        limits = other
    for n in range(1, 51):
        low, high = x[:n].min(axis=0), x[:n].max(axis=0)
        np.testing.assert_allclose(whole[0][n], low - (high - low) / n, rtol=1e-9)
        np.testing.assert_allclose(whole[1][n], high + (high - low) / n, rtol=1e-9)


def learn(x, **settings):
    predictor = Predictor(Setup(signals=["x"], targets=["x"], horizons=["5 samples", "50 samples"], **settings))
    return predictor.learn(Clean(3600.0 * np.arange(len(x)), x[:, None], np.arange(len(x)) == 0))


def test_counts_are_not_forecast_to_be_negative():
    x = np.random.default_rng(1).poisson(0.3, 2000).astype(float)
    low, high = (each[:, 0] for each in Limits(1).follow(x[:, None]))
    free, bound = learn(x), learn(x, minimum=0.0, maximum=2.5)
    for each in (free.predictions, free.low[2:], free.high[2:]):
        within = slice(len(x) + 1 - len(each), None)
        assert (each >= low[within, None]).all()
        assert (each <= high[within, None]).all()
    assert (free.low[2:] < 0.0).any()  # softly
    for each in (bound.predictions, bound.low[2:], bound.high[2:]):
        assert each.min() >= 0.0
        assert each.max() <= 2.5
    assert (bound.low[2:] == 0.0).any()
    assert (bound.expected[1:][bound.reason[1:] == 2] >= 0.0).all()


@pytest.mark.parametrize("value", [0.0, 45.7])
def test_the_bands_of_a_signal_that_never_changes_hold_it_despite_rounding(value):
    answers = learn(np.full(300, value))
    for away in (-1e-13, 0.0, 1e-13):
        assert (answers.low[2:] <= value + away).all()
        assert (answers.high[2:] >= value + away).all()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"minimum": 2.0, "maximum": 1.0}, "min must be below max, got 2 and 1"),
        ({"minimum": float("nan")}, "min must be a finite number"),
        ({"minimum": 0.0, "method": "true_online"}, "min and max are for the method 'auto'"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        Setup(signals=["x"], targets=["x"], horizons=["5 samples"], **settings)


def test_a_state_that_does_not_fit_is_refused():
    limits = Limits(1)
    limits.follow(np.ones((3, 1)))
    state = limits.state()
    state["seen"][0] = 2.0  # above the highest
    with pytest.raises(ValueError, match="seen"):
        Limits(1).restore(state)
