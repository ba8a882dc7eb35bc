"""The hub keeps the newest samples, whoever reads them."""

import numpy as np
import pytest

from tests.streams.live.helpers import RATE, publish, readings, small_hub
from trueonline.streams.live import Hub, PageQuestion
from trueonline.streams.predictor import Answers


def test_the_hub_keeps_the_newest_samples():
    hub = small_hub(kept=2000)
    signals, predictions = readings(5000)
    rng = np.random.default_rng(0)
    begin = 0
    while begin < 5000:  # pieces of all sizes, some larger than the ring
        end = min(begin + int(rng.choice([0, 1, 7, 500, 3000])), 5000)
        starts = np.arange(begin, end) % 10 == 0
        part = slice(begin, end)
        answers = Answers(np.arange(begin, end) / RATE, starts, signals[part], predictions[part], high=-predictions[part])
        hub.publish(answers, received=float(end))
        begin = end
        part = hub.read(None, (2, 0), (3, 1, 0), 10**6)
        kept = slice(max(end - hub.size, 0), end)
        assert (part.first, part.missed, part.end) == (kept.start, 0, end)
        np.testing.assert_array_equal(part.times, np.arange(kept.start, end) / RATE)
        np.testing.assert_array_equal(part.starts, np.arange(kept.start, end) % 10 == 0)
        np.testing.assert_array_equal(part.columns[:2], signals[kept][:, [2, 0]].T.astype(np.float32))
        expected = predictions[kept][:, [3, 1, 0]].T.astype(np.float32)
        np.testing.assert_array_equal(part.columns[2:5], expected)
        assert np.isnan(part.columns[5:8]).all()  # nobody gave the lower ends
        np.testing.assert_array_equal(part.columns[8:], -expected)
        assert not end or part.received[-1] == end
    assert hub.size == 2000
    assert hub.samples == 5000


def test_reading_goes_on_where_it_stopped_and_tells_what_was_missed():
    hub = small_hub(kept=2000)
    publish(hub, 1500)
    part = hub.read(0, (0,), (), 1000)
    assert (part.first, part.end, part.missed) == (0, 1000, 0)
    part = hub.read(part.end, (0,), (), 1000)
    assert (part.first, part.end, part.missed) == (1000, 1500, 0)
    publish(hub, 4000, first=1500)
    part = hub.read(part.end, (0,), (), 1000)
    assert (part.first, part.end, part.missed) == (3500, 4500, 2000)  # 5500 − 2000 = 3500


class Interrupted:
    """An array during whose reading something else happens."""

    def __init__(self, array, happens):
        self.array, self.happens = array, happens

    def __getitem__(self, places):
        found = self.array[places]
        happens, self.happens = self.happens, lambda: None
        happens()
        return found

    def __setitem__(self, places, values):
        self.array[places] = values


@pytest.mark.parametrize("name", ["_columns", "_times", "_received", "_starts"])
def test_what_is_overwritten_while_it_is_read_is_not_shown(name):
    hub = small_hub(kept=2000)
    publish(hub, 3000)
    setattr(hub, name, Interrupted(getattr(hub, name), lambda: publish(hub, 300, first=3000)))
    part = hub.read(1000, (0,), (0,), 10**6)  # 1000 … 2999 are there, but then 3000 … 3299 come
    assert (part.first, part.end, part.missed) == (1300, 3000, 300)
    signals, predictions = readings(3000)
    np.testing.assert_array_equal(part.times, np.arange(1300, 3000) / RATE)
    np.testing.assert_array_equal(part.columns[:2], np.vstack([signals[1300:, 0], predictions[1300:, 0]]).astype("f4"))


def test_memory_is_bounded_with_thousands_of_questions():
    many = [PageQuestion(f"q{k}", f"s{k % 50}", 0.9, 1.0, "mean") for k in range(6000)]
    hub = Hub(many, [f"s{k}" for k in range(50)])
    parts = (*vars(hub).values(), *vars(hub.buckets).values())
    total = sum(value.nbytes for value in parts if isinstance(value, np.ndarray))
    assert 32e6 < total <= 49e6
    assert hub.size > 400
    one = np.arange(6000.0)[None]
    hub.publish(Answers(np.ones(1), np.array([True]), np.ones((1, 50)), one, one - 1.0, one + 1.0))
    assert hub.read(None, (49,), (5999,), 10).columns.tolist() == [[1.0], [5999.0], [5998.0], [6000.0]]


def test_too_large_numbers_and_nan_are_no_error():
    hub = small_hub()
    hub.publish(Answers([0.0], [False], [[1e300, np.nan, 0.0]], [[np.inf, 0.0, 0.0, 1e-300]]))
    assert not np.isfinite(hub.read(None, (0, 1), (0,), 1).columns).any()


def test_first_shown_is_one_question_a_target():
    assert small_hub().first_shown() == (0, 2)
    many = [PageQuestion(f"{s}{k}", s, 0.9, 1.0, "mean") for s in "abcdef" for k in range(2)]
    assert Hub(many, list("abcdef")).first_shown() == (0, 2, 4, 6)


def test_misshapen_samples_and_status_change_nothing():
    hub = small_hub()
    good = ([0.0, 1.0], [False, False], np.ones((2, 3)), *[np.ones((2, 4))] * 3)
    for k, bad in enumerate(([0.0], [True], np.ones((2, 4)), *[np.ones((1, 4))] * 3)):
        with pytest.raises(ValueError, match="shapes"):
            hub.publish(Answers(*good[:k], bad, *good[k + 1 :]))
    with pytest.raises(ValueError, match="4 questions, got 1 for 'error'"):
        hub.report({"questions": {"error": [1.0]}})
    with pytest.raises(ValueError, match="experts of 4 questions, got 1"):
        hub.report({"experts": [None]})
    assert (hub.samples, hub.status.number, hub.buckets.done) == (0, 0, 0)
