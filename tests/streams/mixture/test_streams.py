"""What `auto` does with streams of known kinds: it uses a pattern, loses little where there is none, and survives what breaks."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from trueonline.streams import Clean, Predictor, Setup

EXAMPLE = Path(__file__).parents[3] / "examples" / "robustness.py"


def predicted(times, values, **setup):
    predictor = Predictor(Setup(signals=["x"], targets=["x"], **setup))
    answers = predictor.learn(Clean(times, values[:, None].copy(), np.arange(len(times)) == 0))
    return predictor, answers


def test_a_constant_stream_is_predicted_exactly_from_the_second_sample():
    predictor, answers = predicted(np.arange(300.0), np.full(300, 0.1), horizons=["20 samples"])
    np.testing.assert_array_equal(answers.predictions[1:, 0], 0.1)
    assert answers.surprise.max() < 0.999
    score = predictor.scores()[0]
    assert score.error == score.naive.hold == score.naive.mean
    assert score.error < 1e-3  # up to 1 % of what comes true is missing at the end of the stream


@pytest.mark.parametrize("samples", [10, 50])
def test_a_pattern_helps_and_no_pattern_costs_little(samples):
    rng = np.random.default_rng(0)
    times, noise = 300.0 * np.arange(4000), rng.standard_normal(4000)
    skills = {
        name: predicted(times, values, horizons=[f"{samples} samples"])[0].scores()[0].skill
        for name, values in {
            "daily": 10.0 + 3.0 * np.sin(2.0 * np.pi * times / 86400.0) + 0.3 * noise,
            "noise": 50.0 + noise,
            "walk": 100.0 + 0.5 * noise.cumsum(),
        }.items()
    }
    assert skills["daily"] > 0.4
    assert skills["noise"] > -0.1
    assert skills["walk"] > -0.1


def test_other_signals_help():
    """The target follows another signal, five samples later."""
    rng = np.random.default_rng(1)
    leader = np.repeat(rng.normal(size=400), 10)
    values = np.column_stack([np.r_[np.zeros(5), leader[:-5]], leader])
    errors = []
    for signals in (["x"], ["x", "leader"]):
        predictor = Predictor(Setup(signals=signals, targets=["x"], horizons=["5 samples"]))
        columns = [["x", "leader"].index(name) for name in predictor.columns]
        predictor.learn(Clean(np.arange(4000.0), values[:, columns].copy(), np.arange(4000) == 0))
        errors.append(predictor.scores()[0].error)
    assert errors[1] < 0.9 * errors[0]


def test_predictions_survive_what_breaks_and_recover():
    spec = importlib.util.spec_from_file_location("robustness", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    for name, (times, values) in example.streams().items():
        predictions, came_true = example.predict(times, values)
        assert np.isfinite(predictions).all(), name
        error, hold = np.abs(predictions - came_true), np.abs(values - came_true)
        late = times > times[-1] - 3 * 86400.0
        if "larger" in name:  # digested slowly: the error is small beside the old signal, not yet beside the new one
            assert error[late].mean() < 1e-3 * values.max(), name
        else:
            assert error[late].mean() < 0.6 * hold[late].mean(), name
