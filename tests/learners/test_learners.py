"""What learners promise beyond being exact."""

import numpy as np
import pytest
from scipy import sparse

import trueonline as to

# One class is behind all learners over a memory, and one behind all definitions.
LEARNERS = [to.TrueOnlineTD, to.OfflineLambdaReturn]


def stream(steps=60, n=10, seed=6):
    rng = np.random.default_rng(seed)
    X = (rng.random((steps + 1, n)) < 0.3).astype(float)
    return X, rng.normal(size=steps)


@pytest.mark.parametrize("learner_class", LEARNERS)
def test_repr_says_how_it_was_made(learner_class):
    learner = learner_class(n_features=10, step_size=0.1, trace_decay=0.9, discount=0.99)
    name = learner_class.__name__
    assert repr(learner) == f"{name}(n_features=10, step_size=0.1, trace_decay=0.9, discount=0.99)"
    assert repr(eval(repr(learner), {name: learner_class})) == repr(learner)
    with pytest.raises(AttributeError):
        learner.step_size = 0.2


def test_what_was_learned_cannot_be_changed_by_accident():
    learners = [to.TrueOnlineTD(3, 0.1, 0.9, 0.9, bound=0.5), to.OnlineLambdaReturn(3, 0.1, 0.9, 0.9)]
    learners += [to.WISGTD(3, 0.1, 0.9, 0.9, second_step_size=0.1), to.ProvisionalTD(3, 0.1, 0.9, 0.9)]
    learners += [to.SwiftTD(3, 0.1, 0.9, 0.9), to.forward.OnlineWISGTDReturn(3, 0.1, 0.9, 0.9, second_step_size=0.1)]
    for learner in learners:
        learner.start(0)
        learner.update(1.0, 1)
        for name in ("weights", "trace", "second_weights", "provisional_weights", "usage", "step_sizes"):
            if hasattr(learner, name):
                with pytest.raises(ValueError, match="read-only"):
                    getattr(learner, name)[0] = 5.0


@pytest.mark.parametrize("learner_class", LEARNERS)
def test_initial_weights(learner_class):
    given = np.arange(10.0)
    learner = learner_class(10, 0.1, 0.9, 0.99, initial_weights=given)
    given[:] = 0.0
    np.testing.assert_array_equal(learner.weights, np.arange(10.0))
    assert learner.predict([3, 4]) == 7.0


@pytest.mark.parametrize("learner_class", LEARNERS)
def test_run_resumes_if_it_is_told_to_and_starts_otherwise(learner_class, tmp_path):
    X, rewards = stream()
    whole, pieces, other, started = (learner_class(10, 0.1, 0.9, 0.99) for _ in range(4))
    whole.run(X, rewards)
    pieces.run(X[:21], rewards[:20], resume=True)  # a learner that is in no state starts
    pieces.save(tmp_path / "learner.npz")
    for learner in (pieces, to.load(tmp_path / "learner.npz")):
        learner.run(sparse.csr_matrix(X[20:]), rewards[20:], resume=True)  # the same state in another form
        np.testing.assert_allclose(learner.weights, whole.weights, rtol=1e-11)
    for learner in (other, started):
        learner.run(X[:21], rewards[:20])
    before = other.weights
    with pytest.raises(ValueError, match=r"resume=True continues from the state of the learner, .*, but X\[0\] is"):
        other.run(X[30:], rewards[30:], resume=True)
    with pytest.raises(ValueError, match="resume must be True or False, got 1"):
        other.run(X[20:], rewards[20:], resume=1)
    np.testing.assert_array_equal(other.weights, before)
    other.run(X[20:], rewards[20:])  # the row at which it stopped, by coincidence
    started.start(X[20])
    started.run(X[20:], rewards[20:], resume=True)
    assert not np.allclose(other.weights, whole.weights)
    np.testing.assert_array_equal(other.weights, started.weights)


@pytest.mark.parametrize("starts", [[True, False, False], [False, True, False]])
def test_a_resumed_stream_starts_where_its_starts_say(starts):
    learner, wanted = to.TrueOnlineTD(3, 0.1, 0.9, 0.9), to.TrueOnlineTD(3, 0.1, 0.9, 0.9)
    learner.run([0, 1], [1.0])
    learner.run([1, 2, 0], [1.0, 2.0], starts=starts, resume=True)
    wanted.start(0)
    wanted.update(1.0, 1)
    if starts[0]:
        wanted.start(1)
        wanted.update(1.0, 2)
    else:
        wanted.start(2)
    wanted.update(2.0, 0)
    np.testing.assert_allclose(learner.weights, wanted.weights, rtol=1e-14)
    np.testing.assert_allclose(learner.trace, wanted.trace, rtol=1e-14)


def test_a_schedule_counts_what_was_learned_from():
    seen = []
    learner = to.TrueOnlineTD(4, lambda t: seen.append(t) or 0.1, 0.9, 0.9)
    learner.run([0, 1, 2, 3, 0], np.ones(4), starts=[False, False, True, False, False])
    learner.update(1.0, 1)
    learner.start(2)
    learner.update(1.0, None)
    assert seen == [0, 1, 2, 3, 4]
    assert learner.steps == 5
    learner.reset()
    assert learner.steps == 0


def test_what_one_transition_is_told_is_not_that_of_the_next():
    told, spelt = (to.EmphaticTD(3, 0.1, 0.9, 0.9) for _ in range(2))
    for learner, usual in ((told, {}), (spelt, {"ratio": 1.0, "interest": 1.0})):
        learner.start(0)
        learner.update(1.0, 1, ratio=0.5, interest=0.0)
        for state in (2, 0):
            learner.update(1.0, state, **usual)
    np.testing.assert_array_equal(told.weights, spelt.weights)


def test_divergence_shows_and_is_told():
    states = np.random.default_rng(0).integers(3, size=4000)
    learner = to.AccumulateTD(3, 1.0, 0.99, 0.99)
    assert not learner.diverged
    values = learner.run(states, np.ones(3999))
    assert learner.diverged
    assert not np.isfinite(values[-1])
    assert np.isfinite(values[:10]).all()
    robust = to.TrueOnlineTD(3, 1.0, 0.99, 0.99)
    robust.run(states, np.ones(3999))
    assert not robust.diverged


def test_a_diverged_learner_still_tells_bad_features_from_divergence():
    learner = to.AccumulateTD(2, 2.0, 1.0, 0.9)
    learner.run(np.random.default_rng(0).normal(size=(4000, 2)), np.ones(3999))
    assert learner.diverged
    learner.run(np.ones((3, 2)), np.ones(2))
    with pytest.raises(ValueError, match=r"X\[1\] must be finite"):
        learner.run(np.array([[1.0, 1.0], [np.nan, 1.0]]), np.ones(1))


@pytest.mark.parametrize("learner_class", LEARNERS)
def test_numbers_of_any_type_and_order_are_the_same_stream(learner_class):
    """`tests/methods/test_run.py` has the forms."""
    X, rewards = stream()
    reference = learner_class(10, 0.1, 0.9, 0.99)
    expected = reference.run(X, rewards)
    readonly = X.copy()
    readonly.flags.writeable = False
    indices = [np.flatnonzero(x) for x in X]
    forms = [X.astype(np.float32), sparse.csr_array(X.astype(int)), sparse.coo_array(X), readonly, X[::-1][::-1]]
    forms += [[each.astype(kind) for each in indices] for kind in (np.int32, np.uint8)]
    for given in forms:
        learner = learner_class(10, 0.1, 0.9, 0.99)
        np.testing.assert_allclose(learner.run(given, rewards), expected, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(learner.weights, reference.weights, rtol=1e-10, atol=1e-12)


def test_long_index_lists_are_checked_for_repeats():
    learner = to.TrueOnlineTD(1000, 0.01, 0.9, 0.9)
    learner.start(np.arange(998, -1, -1))
    for reward in (1, np.float32(1.0), np.int64(1)):
        assert isinstance(learner.update(reward, [0]), float)
    learner.update(1.0, np.random.default_rng(8).permutation(1000)[:500])
    with pytest.raises(ValueError, match="index 7 more than once"):
        learner.update(1.0, np.concatenate((np.arange(100)[::-1], [7])))


def test_a_learner_holds_two_vectors_and_the_list():
    n = 1000
    learner = to.TrueOnlineTD(n, 0.1, 0.9, 0.9)
    numbers, places = learner._memory
    # u, z, y and slot, owner, and room for the current features and for the indices of a call
    assert numbers.nbytes + places.nbytes <= 3 * 8 * n + 2 * 4 * n + (8 + 4 + 4) * n + 1100
    learner.run(np.arange(60)[:, None], np.ones(59))
    parts = learner._dump_memory()
    assert len(parts["z"]) == len(parts["y"]) == len(parts["owner"]) <= 60
