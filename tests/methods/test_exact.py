"""The oracles by hand, and the λ-return algorithms of the package against them, whatever the stream and however it is given.

`tests/forward/test_family_definitions.py` has the other definitions, and `tests/test_catalog.py` compares learners with them.
"""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trueonline as to
from tests.methods.method_streams import STEPS, assert_close, assert_follows, examples, expected, follow, streams
from tests.oracles import prediction as naive

# --- The oracles themselves -----------------------------------------------------------------------


def test_the_oracles_give_what_the_paper_gives_by_hand():
    """Two steps, worked out on paper: φ_0 = (1, 0), φ_1 = (1, 1), α = ½, γ_1 = ½, λ_1 = ½, R = 2, 4, then the end.

    δ_0 = 2, w_1 = (1, 0). Then V = 1, V_old = 0, δ_1 = 3 and γλ = ¼.
    Accumulating: e = (1¼, 1), w = (2⅞, 1½). Replacing: e = (1, 1), w = (2½, 1½).
    Dutch: e = (1¼, 1) − ½·¼·1·(1, 1) = (1⅛, ⅞), w = (1, 0) + ½·4·e − ½·1·(1, 1) = (2¾, 1¼).
    Forward: G_0 = ½(2 + ½·0) + ½(2 + ½·4) = 3 → (1½, 0); G_1 = 4 → + ½(4 − 1½)(1, 1) = (2¾, 1¼).
    Offline: the same, because V(S_1) = 0 with the first weights and with w_0.
    """
    x = [np.array([1.0, 0.0]), np.array([1.0, 1.0]), np.array([5.0, 5.0])]
    episode = naive.Episode(x, [2.0, 4.0], [0.5, 0.0], [0.5, 0.9], [0.5, 0.5])
    w = np.zeros(2)
    last = {oracle.__name__: list(oracle([episode], w))[-1] for oracle in ORACLES}
    np.testing.assert_array_equal(last["accumulate_td"], [[2.875, 1.5], [1.25, 1.0]])
    np.testing.assert_array_equal(last["replace_td"], [[2.5, 1.5], [1.0, 1.0]])
    np.testing.assert_array_equal(last["true_online_td"], [[2.75, 1.25], [1.125, 0.875]])
    np.testing.assert_array_equal(last["online_lambda_return"], [[2.75, 1.25], [1.125, 0.875]])
    np.testing.assert_array_equal(last["true_online_td_varying"], [[2.75, 1.25], [0.5625, 0.4375]])
    np.testing.assert_array_equal(list(naive.offline_lambda_return([episode], w)), [[0.0, 0.0], [2.75, 1.25]])


ORACLES = (
    naive.accumulate_td,
    naive.replace_td,
    naive.true_online_td,
    naive.true_online_td_varying,
    naive.online_lambda_return,
)


# --- The package's definitions = the definitions --------------------------------------------------


@pytest.mark.parametrize("schedule", [False, True], ids=["α constant", "α varying"])
@examples(max_examples=8)
@given(data=st.data())
def test_online_lambda_return_is_its_definition(schedule, data):
    """Its trace is compared where an episode goes on: at an end it begins a new history, in which there is none yet."""
    stream = data.draw(streams("real", schedule))
    wanted = expected(stream, partial(naive.online_lambda_return, plus=schedule))
    steps = list(follow(stream.learner(to.OnlineLambdaReturn), stream, "mixed"))
    assert_follows(steps, wanted, trace=False)
    ends = np.cumsum([len(episode.rewards) for episode in stream.episodes]) - 1
    going_on = np.setdiff1d(np.arange(STEPS), ends)
    if going_on.size:
        assert_close((steps[t].trace for t in going_on), (wanted[t].trace for t in going_on), "trace")


@pytest.mark.parametrize("schedule", [False, True], ids=["α constant", "α varying"])
@examples(max_examples=8)
@given(data=st.data())
def test_offline_lambda_return_is_its_definition(schedule, data):
    """An episode that `start` cuts short is closed by it, so the weights change there, and not at its last `update`."""
    stream = data.draw(streams("real", schedule))
    after = list(naive.offline_lambda_return(stream.episodes, stream.initial))
    wanted, last = list(after), -1
    for episode, ending in zip(stream.episodes, stream.endings, strict=True):
        last += len(episode.rewards)
        if ending == "cut" and episode.discounts[-1] > 0.0:
            before = last - len(episode.rewards)
            wanted[last] = after[before] if before >= 0 else stream.initial
    learner = stream.learner(to.OfflineLambdaReturn)
    steps = [step.weights for step in follow(learner, stream, "mixed", trace=False)]
    if stream.endings[-1] == "cut":
        learner.start(np.zeros(stream.n))
    assert_close([*steps, learner.weights], [*wanted, after[-1]], "weights")
