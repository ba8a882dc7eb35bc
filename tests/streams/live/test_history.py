"""All of a stream in buckets: what they hold, and how pages get them."""

import struct

import numpy as np
import pytest

from tests.processes import wait_for as until
from tests.streams.live.helpers import QUESTIONS, SIGNALS, connect, heard, publish, readings, small_hub
from trueonline.streams.live import Hub, Server, messages
from trueonline.streams.live.history import BucketHistory
from trueonline.streams.predictor import Answers


def check(buckets, times, rows, signals, first=0):
    """The buckets are those of the samples from number `first` on, cut into pieces of one width."""
    n, width = buckets.done, buckets.width
    assert buckets.first == first
    assert n == (len(times) - first) // width
    whole = slice(first, first + n * width)
    t, X = times[whole].reshape(n, width), rows[whole].reshape(n, width, rows.shape[1])
    np.testing.assert_array_equal(buckets.begins[:n], t[:, 0])
    np.testing.assert_array_equal(buckets.ends[:n], t[:, -1])
    np.testing.assert_allclose(buckets.means[:n], X.astype(float).mean(axis=1), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(buckets.lows[:n], X[:, :, :signals].min(axis=1))
    np.testing.assert_array_equal(buckets.highs[:n], X[:, :, :signals].max(axis=1))


@pytest.mark.parametrize(("most", "width"), [(2, 3), (8, 1), (64, 4)])
def test_buckets_are_those_of_all_samples_however_they_come(most, width):
    rng = np.random.default_rng(most)
    times, rows = np.cumsum(rng.exponential(size=6000)), rng.standard_normal((6000, 5)).astype(np.float32)
    rows[1234, 3] = np.nan  # and so is the mean of its bucket
    history, at = BucketHistory(5, 2, most, width), 0
    while at < 6000:
        end = min(at + int(rng.choice([0, 1, 2, 7, 100, 1000])), 6000)
        history.add(times[at:end], rows[at:end])
        at = end
        check(history.buckets, times[:at], rows[:at], 2)
        doubled = next(each for each in (width * 2**k for k in range(20)) if at // each < most)
        assert history.buckets.width == doubled
    assert doubled > width


def test_readers_keep_what_they_hold():
    history = BucketHistory(1, 1, 4)
    history.add(np.arange(3.0), np.arange(3.0)[:, None])
    held = history.buckets
    history.add(np.arange(3.0, 50.0), np.arange(3.0, 50.0)[:, None])
    assert held.begins[:3].tolist() == held.means[:3, 0].tolist() == [0.0, 1.0, 2.0]
    assert history.buckets is not held


def test_a_clock_that_is_set_back_begins_the_history_anew():
    times = np.concatenate([np.arange(50.0), np.arange(40.0, 70.0), np.arange(10.0, 100.0)])
    rows = np.arange(170.0, dtype=np.float32)[:, None]
    for pieces in ([170], [20, 35, 30, 50, 35], [50, 30, 90]):
        history, at = BucketHistory(1, 1, 16), 0
        for length in pieces:
            history.add(times[at : at + length], rows[at : at + length])
            at += length
        check(history.buckets, times, rows, 1, first=80)


def test_a_page_gets_buckets_when_samples_have_left_the_ring():
    hub = small_hub(kept=1000)
    hub._history = BucketHistory(15, 3, 16)
    publish(hub, 900)
    signals, predictions = readings(1450)
    rows = np.hstack([signals, predictions]).astype(np.float32)

    def buckets(client):
        while True:
            message = client.recv(timeout=300)
            if isinstance(message, bytes) and message[0] == messages.HISTORY:
                return unpack_history(message)

    with Server(hub) as served, connect(served) as client:
        assert len(heard(client, bytes)["times"]) == 900
        publish(hub, 140, first=900)  # 1040 samples: 8 buckets of 128, and 40 are no longer in the ring
        got = buckets(client)
        assert (got["anew"], got["subscription"], got["width"], got["first"]) == (1, 1, 128.0, 0.0)
        np.testing.assert_array_equal(got["begins"], np.arange(0, 1024, 128) / 40)
        np.testing.assert_array_equal(got["ends"], np.arange(127, 1024, 128) / 40)
        means = rows[:1024].reshape(8, 128, -1).mean(axis=1, dtype=float)
        np.testing.assert_allclose(got["columns"][:4], means[:, [0, 1, 3, 5]].T, rtol=1e-6)
        assert np.isnan(got["columns"][4:]).all()
        np.testing.assert_array_equal(got["lows"], rows[:1024].reshape(8, 128, -1).min(axis=1)[:, :2].T)
        np.testing.assert_array_equal(got["highs"], rows[:1024].reshape(8, 128, -1).max(axis=1)[:, :2].T)
        publish(hub, 410, first=1040)
        got = buckets(client)  # only the new ones
        assert (got["anew"], got["width"], got["first"], len(got["begins"])) == (0, 128.0, 1024.0, 3)
        client.send('{"subscribe": [3]}')
        got = buckets(client)  # and all of them for other questions
        assert (got["anew"], got["subscription"], got["first"], len(got["begins"])) == (1, 2, 0.0, 11)
        assert got["columns"].shape == (5, 11)


def unpack_history(data):
    kind, anew, c, n, subscription, s, width, first = struct.unpack_from("<BBHIIIdd", data)
    assert kind == messages.HISTORY
    at, parts = 32, []
    for dtype, count in (("<f8", n), ("<f8", n), ("<f4", n * c), ("<f4", n * s), ("<f4", n * s)):
        parts.append(np.frombuffer(data, dtype, count, at))
        at += parts[-1].nbytes
    assert at == len(data)
    names = ("begins", "ends", "columns", "lows", "highs")
    shaped = [*parts[:2], *(part.reshape(-1, n) for part in parts[2:])]
    return {"anew": anew, "subscription": subscription, "width": width, "first": first} | dict(
        zip(names, shaped, strict=True)
    )


def test_all_of_a_stream_is_seen_from_its_beginning(browser):
    signals, predictions = readings(34_000)
    hub = Hub(QUESTIONS[:1], SIGNALS, kept=1500)
    name, n = QUESTIONS[0].name, 20_000

    def more(first, end):
        band = predictions[first:end, :1]
        times, starts = np.arange(first, end) / 40, np.arange(first, end) == 0
        hub.publish(Answers(times, starts, signals[first:end], band, band - 1.0, band + 1.0))

    more(0, n)
    with Server(hub) as served:
        browser.open(served)
        until_drawn(browser, name)
        browser.key("3")
        assert browser.of("range()") == [0.0, (n - 1) / 40]
        until_drawn(browser, name, lambda lines: lines["times"][0] < 1.0)
        lines = {key: np.array(values, float) for key, values in browser.series(name).items()}
        width = hub.buckets.width
        assert 1 < width < 50
        assert 400 < len(lines["times"]) < 4000
        x, at = signals[:, 0].astype(np.float32), slice(5 * width, 6 * width)
        assert lines["times"][5] == pytest.approx((at.start + at.stop - 1) / 2 / 40)
        for line, value in (("signal", x[at].mean()), ("least", x[at].min()), ("most", x[at].max())):
            assert lines[line][5] == pytest.approx(value, rel=1e-5)
        np.testing.assert_allclose(lines["high"] - lines["low"], 2.0, atol=1e-3)
        came = np.zeros(n)
        for t in range(n - 2, -1, -1):
            came[t] = 0.05 * x[t + 1] + 0.95 * came[t + 1]
        exact = came[: 500 * width].reshape(500, width).mean(axis=1)
        away = np.abs(lines["realised"][:500] - exact)
        assert away.max() < 0.05 * np.ptp(exact)
        more(n, 34_000)  # wider buckets by now
        until_drawn(browser, name, lambda lines: lines["times"][-1] == 33_999 / 40 and lines["times"][0] < 1.0)
        assert hub.buckets.width > width
        assert browser.of("range()") == [0.0, 33_999 / 40]
        browser.key("1")
        until_drawn(browser, name, lambda lines: len(lines["times"]) == 402)  # samples again, one by one
        np.testing.assert_array_equal(browser.series(name)["signal"], signals[-402:, 0].astype("f4"))


def until_drawn(browser, name, true=lambda lines: len(lines["times"]) > 0):
    until(lambda: (lines := browser.series(name)) and lines["times"] and true(lines))
