"""Time scales, and γ where the times between samples differ."""

import numpy as np
import pytest

from trueonline.streams import Clean, Predictor, Setup
from trueonline.streams.accuracy.scoring import Scores
from trueonline.streams.questions.time_scales import Pace, samples_of, time_scales
from trueonline.words import exact_duration


def test_a_horizon_in_time_is_an_integral_over_time_whatever_the_gaps():
    """What comes true, summed sample by sample, against the integral of the signal on a fine grid."""
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.choice([0.05, 0.3, 2.0], 400))
    x = rng.standard_normal(400).cumsum()
    horizon = 1.5
    fine = np.arange(times[0], times[-1] - 1e-3, 1e-3) + 5e-4
    signal = x[np.searchsorted(times, fine)]  # each value lasts from the sample before until its own time
    shown = np.arange(0, 200, 10)
    integral = [(np.exp(-(fine - times[t]) / horizon) * signal)[fine > times[t]].sum() * 1e-3 / horizon for t in shown]
    spans, _, begins = Pace(None, horizon).follow(times, np.zeros(400, bool))
    gammas = np.exp(-spans / horizon)
    came_true, weight = np.zeros((2, 400))
    for t in range(398, -1, -1):
        came_true[t] = (1.0 - gammas[t + 1]) * x[t + 1] + gammas[t + 1] * came_true[t + 1]
        weight[t] = (1.0 - gammas[t + 1]) + gammas[t + 1] * weight[t + 1]
    np.testing.assert_allclose(came_true[shown], integral, atol=2e-3)
    scores = Scores(["@1.5s"], [1.0], [True])
    cumulants = ((1.0 - gammas) * x)[:, None]
    known = came_true / np.maximum(weight, 0.5)  # where the stream ends, what is known stands for the rest
    scores.follow(known[:, None], x[:, None], cumulants, begins, gammas[:, None])
    score = scores.scores()[0]
    assert score.error < 1e-3 * score.naive.hold, "what waits is kept in single precision"
    assert score.scored > 350


def test_scores_are_those_of_the_definition():
    rng = np.random.default_rng(1)
    T, gamma = 3000, 0.9
    x, p = rng.standard_normal((2, T))
    scores = Scores([gamma], [1.0 / (1.0 - gamma)], [True])
    for block in (slice(0, 1), slice(1, 1000), slice(1000, T)):
        column = x[block, None]
        scores.follow(
            p[block, None], column, (1.0 - gamma) * column, np.zeros(len(column), bool), np.full((len(column), 1), gamma)
        )
    G = np.zeros(T)
    for t in range(T - 2, -1, -1):
        G[t] = x[t + 1] + gamma * G[t + 1]
    G /= 1.0 - gamma ** np.arange(T - 1, -1, -1.0) + (np.arange(T) == T - 1)  # what is known stands for the rest
    known = slice(0, T - int(np.ceil(np.log(0.01) / np.log(gamma))))
    mean = np.cumsum(x) / np.arange(1, T + 1)
    score = scores.scores()[0]
    for value, forecast in ((score.error, p), (score.naive.hold, x), (score.naive.mean, mean)):
        np.testing.assert_allclose(value, np.abs(forecast / (1.0 - gamma) - G)[known].mean(), rtol=1e-4)
    assert score.skill == 1.0 - score.error / min(score.naive.hold, score.naive.mean)
    so_far = scores.so_far()
    np.testing.assert_allclose([so_far["error"][0], so_far["hold"][0]], [score.error, score.naive.hold], rtol=0.05)
    again = Scores([gamma], [1.0 / (1.0 - gamma)], [True])
    again.restore(scores.state())
    assert again.scores() == scores.scores()


def test_the_end_of_a_stream_does_not_count_as_an_error():
    x, gammas = np.full((500, 1), 1000.0), np.full((500, 1), 0.95)
    scores = Scores([0.95], [1.0], [True])
    scores.follow(x + 1.0, x, (1.0 - gammas) * x, np.arange(500) == 0, gammas)
    score = scores.scores()[0]
    assert (score.error, score.naive.hold, score.deviation) == pytest.approx((1.0, 0.0, 0.0), abs=1e-9)


def test_a_horizon_of_many_samples_is_scored_and_one_that_is_too_long_is_told():
    t = np.arange(30_000.0)
    predictor = Predictor(Setup(signals=["x"], targets=["x"], horizons=[3600.0, 86400.0]))
    predictor.learn(Clean(t, np.sin(t / 3000.0)[:, None], t == 0.0))
    hour, day = predictor.scores()
    assert hour.scored == 30_000 - 1 - np.floor(3600.0 * np.log(100.0))
    assert day.scored == 0
    assert predictor.never_scored == ["1d"]


def test_a_first_sample_long_before_the_others_does_not_tell_the_usual_time():
    times = np.concatenate([[0.0], 1.7e9 + np.arange(300.0)])
    pace = Pace(None, longest=60.0)
    _, elapsed, _ = pace.follow(times, times == 0.0)
    assert pace.usual == 1.0
    assert (elapsed[2:] == 1.0).all()


def test_a_gap_that_was_given_is_the_one_that_counts():
    times = np.concatenate([np.arange(100.0), 500.0 + np.arange(100.0)])
    for max_gap, begins, gaps in ((None, [0, 100], 1), (100.0, [0, 100], 1), (1000.0, [0], 0)):
        predictor = Predictor(Setup(signals=["x"], targets=["x"], horizons=[5.0], max_gap=max_gap))
        answers = predictor.learn(Clean(times, np.ones((200, 1)), np.arange(200) == 0))
        assert np.flatnonzero(answers.starts).tolist() == begins
        assert predictor.counters()["gaps"] == gaps


def test_the_usual_time_between_samples_is_measured_and_a_long_gap_begins_something_new():
    times = np.concatenate([np.arange(100.0) * 5.0, 800.0 + np.arange(100.0) * 5.0])
    pace = Pace(None, longest=60.0)
    spans, elapsed, begins = (
        np.concatenate(parts)
        for parts in zip(
            *(pace.follow(times[b], np.zeros(len(times[b]), bool)) for b in (slice(0, 7), slice(7, 200))), strict=True
        )
    )
    assert np.flatnonzero(begins).tolist() == [0, 100]  # 305 s are more than ten samples and three horizons
    assert (spans[100], elapsed[100], pace.usual) == (5.0, 1.0, 5.0)
    assert not Pace(None, longest=600.0).follow(times, np.zeros(200, bool))[2][100]
    given = Pace(0.1, longest=60.0).follow(times, np.zeros(200, bool))[1]
    assert given[50] == 0.5  # half of the ten seconds that the rate says


def test_time_scales_say_what_they_are():
    scales = time_scales([900.0, "20 samples"], [0.9, "gamma"], None, None)
    assert [(s.label, s.discount, s.seconds, s.mean) for s in scales] == [
        ("15min", None, 900.0, True), ("20samples", 0.95, None, True), ("0.9", 0.9, None, False),
        ("gamma", "gamma", None, False),
    ]  # fmt: skip
    assert [s.factor(None) for s in scales] == [1.0, 1.0, pytest.approx(10.0), 1.0]
    assert time_scales([2.0], [], "return", 40.0)[0].factor(40.0) == pytest.approx(1.0 / (1.0 - np.exp(-1.0 / 80.0)))
    assert [exact_duration(s) for s in (90.0, 3600.0, 0.8, 172800.0)] == ["90s", "1h", "0.8s", "2d"]
    assert [samples_of(text) for text in ("1.5 samples", "1 sample", "5min")] == [1.5, 1.0, None]
    for arguments, message in (
        (([2.0], [], "return", None), "needs the rate"),
        (([], ["gamma"], "mean", None), "has no mean"),
        (([], [1.0], "mean", None), "has no mean"),
        (([2.0, 2.0], [], None, None), "the same"),
        ((["20 samples"], [0.95], None, None), "the same"),
        (([0.01], [], None, 40.0), "at least one sample"),
        ((["0.5 samples"], [], None, 40.0), "at least one sample"),
    ):
        with pytest.raises(ValueError, match=message):
            time_scales(*arguments)
