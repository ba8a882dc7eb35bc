"""The predictor on streams that are unusual, and its saved state."""

import numpy as np
import pytest

from trueonline.streams import Clean, Predictor, Setup


def learned(predictor, values, block=100):
    """The answers at all samples, in blocks."""
    values = np.asarray(values, float).reshape(len(values), -1)
    times, starts = np.arange(len(values)) * 60.0, np.arange(len(values)) == 0
    parts = [slice(at, at + block) for at in range(0, len(values), block)]
    return [predictor.learn(Clean(times[part], values[part], starts[part])) for part in parts]


@pytest.mark.parametrize("name", ["level", "trend", "signals", "value"])
def test_a_signal_may_have_the_name_of_a_feature(name):
    predictor = Predictor(Setup(signals=["x", name, "slope"], targets=["x"], horizons=["5 samples"]))
    assert np.isfinite(learned(predictor, np.ones((10, 3)))[-1].predictions).all()


def test_a_signal_that_is_given_twice_is_refused_by_its_name():
    with pytest.raises(ValueError, match="the signal x is given twice"):
        Setup(signals=["x", "y", "x"], targets=["x"], horizons=["5 samples"])


@pytest.mark.parametrize("method", ["auto", "true_online"])
def test_a_block_of_no_samples_changes_nothing(method):
    predictor, alone = (
        Predictor(Setup(signals=["x"], targets=["x"], horizons=["5 samples", 60.0], method=method)) for _ in range(2)
    )
    none = Clean(np.empty(0), np.empty((0, 1)), np.empty(0, bool))
    x = np.sin(np.arange(300.0))
    for part in (x[:150], x[150:]):
        answers = predictor.learn(none)
        assert predictor.table(answers).shape == (0, len(predictor.output_columns))
        assert np.array_equal(learned(predictor, part)[-1].predictions, learned(alone, part)[-1].predictions)
    assert predictor.scores() == alone.scores()


@pytest.mark.parametrize("size", [1e-310, 1e-300, 1e90])
def test_values_of_any_size_give_finite_answers_and_a_state_that_can_be_restored(size):
    rng = np.random.default_rng(0)
    predictor = Predictor(Setup(signals=["x"], targets=["x"], horizons=["5 samples", 600.0], discounts=[0.0]))
    for answers in learned(predictor, size * rng.normal(size=600)):
        assert np.isfinite(answers.predictions).all()
        assert not (answers.low > answers.high).any()
        assert ((answers.surprise >= 0.0) & (answers.surprise <= 1.0)).all()
    again = Predictor(predictor.setup)
    again.restore(predictor.state())
    assert again.scores() == predictor.scores()
