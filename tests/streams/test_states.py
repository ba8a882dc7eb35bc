"""`state` and `restore` of everything in a predictor: what does not fit is refused, and a leaf stays as it was."""

import numpy as np
import pytest

from trueonline.streams.accuracy.bands import Bands
from trueonline.streams.accuracy.realised_returns import Returns
from trueonline.streams.accuracy.surprise import Surprise
from trueonline.streams.mixture.stream_views import Views
from trueonline.streams.predictor import Predictor
from trueonline.streams.questions.prediction_setup import Setup
from trueonline.streams.questions.time_scales import Pace
from trueonline.streams.signals import Bounds, Signals
from trueonline.streams.sources import Clean

STARTS = np.arange(60) == 0
X = np.random.default_rng(0).normal(size=(60, 1))
TIMES = np.arange(60.0)

USED = {
    "Bands": (lambda: Bands([0.5]), lambda it: it.follow(0 * X, X, STARTS)),
    "Returns": (lambda: Returns([0.5]), lambda it: it.follow(0 * X, X, STARTS)),
    "Surprise": (lambda: Surprise(1), lambda it: it.follow(X, None, TIMES, STARTS)),
    "Views": (lambda: Views([]), lambda it: it.see(TIMES, X, np.full(60, 0.9))),
    "Pace": (lambda: Pace(None, 0.0), lambda it: it.follow(TIMES, STARTS)),
    "Signals": (lambda: Signals(["lag(x, 2)"], 1.0), lambda it: it.derive(TIMES, X, STARTS)),
    "Bounds": (lambda: Bounds(["x"]), lambda it: it.scale(X)),
}


@pytest.mark.parametrize("name", USED)
def test_a_state_of_another_shape_or_type_is_refused_and_nothing_changes(name):
    make, use = USED[name]
    it = make()
    use(it)
    good = it.state()
    wrong = [None, [1, 2], {}]
    for part, array in good.items():
        other_type = array.astype("S8" if array.dtype.kind == "U" else np.float32)
        wrong += [{**good, part: each} for each in (None, array[:-1], other_type)]
        wrong.append({key: value for key, value in good.items() if key != part})
    for state in wrong:
        with pytest.raises(ValueError, match=rf"the state .*{name}"):
            it.restore(state)
    after = it.state()
    assert all(np.array_equal(good[part], after[part]) for part in good if good[part].dtype.kind in "iUb")
    assert all(np.array_equal(good[part], after[part], equal_nan=True) for part in good if good[part].dtype.kind == "f")
    again = make()
    again.restore(good)
    for array in good.values():
        array[...] = 0  # the state was copied
    use(again)
    use(it)
    assert all(array.tobytes() == again.state()[part].tobytes() for part, array in it.state().items())


@pytest.mark.parametrize("method", ["auto", "true_online"])
def test_a_predictor_resumes_bit_for_bit_and_refuses_a_state_that_lacks_an_array(method):
    setup = Setup(signals=["x"], targets=["x"], horizons=["5 samples"], method=method)
    predictor, again = Predictor(setup), Predictor(setup)
    predictor.learn(Clean(TIMES, X, STARTS))
    state = predictor.state()
    again.restore(state)
    later = Clean(TIMES + 60.0, X, np.zeros(60, bool))
    assert predictor.learn(later).table().tobytes() == again.learn(later).table().tobytes()
    assert again.samples == predictor.samples == 120
    for name in state:
        with pytest.raises((ValueError, KeyError)):
            Predictor(setup).restore({key: array for key, array in state.items() if key != name})
