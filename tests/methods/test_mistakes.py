"""Mistakes that other implementations made, as far as prediction goes: none of them is made here.

And `verify` finds each of them in a learner that has it planted.
"""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import trueonline as to

BACKWARD = [to.AccumulateTD, to.ReplaceTD, to.TrueOnlineTD]
EVERY = [*BACKWARD, to.OnlineLambdaReturn, to.OfflineLambdaReturn]
every_learner = pytest.mark.parametrize("learner_class", EVERY)
backward_learner = pytest.mark.parametrize("learner_class", BACKWARD)


def close(learner, wanted) -> None:
    np.testing.assert_allclose(learner.weights, wanted, rtol=1e-12, atol=1e-14)


# --- The trace decays by the γ of the state being left, not of the one being entered --------------


@every_learner
@pytest.mark.parametrize("way", ["None", "γ = 0", "run"])
def test_the_reward_at_the_end_teaches_every_state_of_the_episode(learner_class, way):
    """0 → 1 → 2 → the end with reward 1; γ_1 = ½, γ_2 = ¼, λ = 1: eligibilities ⅛, ¼ and 1."""
    learner = learner_class(4, 0.5, trace_decay=1.0, discount=1.0)
    if way == "run":
        learner.run([0, 1, 2, 3], [0.0, 0.0, 1.0], discounts=[0.5, 0.25, 0.0])
    else:
        learner.start(0)
        learner.update(0.0, 1, discount=0.5)
        learner.update(0.0, 2, discount=0.25)
        if way == "None":
            learner.update(1.0, None)
        else:
            learner.update(1.0, 3, discount=0.0)
    close(learner, [0.0625, 0.125, 0.5, 0.0])


@every_learner
def test_the_trace_decays_by_the_lambda_of_the_state_being_left(learner_class):
    """The same with λ_1 = ½, λ_2 = ¼ and γ = 1; what λ_3 is cannot matter."""
    for lam_3 in (0.0, 1.0):
        learner = learner_class(4, 0.5, trace_decay=0.9, discount=1.0)
        learner.run([0, 1, 2, 3], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0], trace_decays=[0.5, 0.25, lam_3])
        close(learner, [0.0625, 0.125, 0.5, 0.0])


@every_learner
@pytest.mark.parametrize("way", ["update", "run"])
def test_the_reward_after_the_end_teaches_no_state_of_the_episode(learner_class, way):
    """0 → 1 → the end; 2 → 3 → the end with reward 1."""
    learner = learner_class(4, 0.5, trace_decay=1.0, discount=1.0)
    if way == "run":
        learner.run([0, 1, 2, 3, 3], [0.0, 0.0, 0.0, 1.0], discounts=[1.0, 0.0, 1.0, 0.0])
    else:
        learner.start(0)
        learner.update(0.0, 1)
        learner.update(0.0, 2, discount=0.0)
        learner.update(0.0, 3)
        learner.update(1.0, None)
    close(learner, [0.0, 0.0, 0.5, 0.5])


# --- Truncation is not termination ----------------------------------------------------------------


@every_learner
def test_an_episode_that_is_cut_short_bootstraps_from_its_last_state(learner_class):
    """V = 1, V' = 10, R = 0 and γ = 0.9: δ = 0.9·10 − 1 where the episode is cut, and 0 − 1 where it ends."""
    weights = np.array([1.0, 10.0])

    def new():
        learner = learner_class(2, 0.5, trace_decay=0.9, discount=0.9, initial_weights=weights)
        learner.start(0)
        return learner

    cut = new()
    assert cut.update(0.0, 1) == pytest.approx(8.0)
    cut.start(0)
    close(cut, [5.0, 10.0])
    for ended, how in ((new(), {"x_next": None}), (new(), {"x_next": 1, "discount": 0.0})):
        assert ended.update(0.0, **how) == pytest.approx(-1.0)
        close(ended, [0.5, 10.0])

    ran = new()
    ran.run([0, 1, 0], [0.0, 1e6], starts=[False, False, True])
    close(ran, [5.0, 10.0])
    if learner_class in BACKWARD:
        np.testing.assert_array_equal(ran.trace, 0.0)
    ran = new()
    ran.run([0, 1], [0.0], discounts=[0.0])
    close(ran, [0.5, 10.0])


# --- No trace outlives a cut ----------------------------------------------------------------------


@every_learner
@pytest.mark.parametrize("way", ["start", "starts", "another run"])
def test_the_reward_after_a_cut_teaches_no_state_from_before_it(learner_class, way):
    learner = learner_class(4, 0.5, trace_decay=1.0, discount=1.0)
    if way == "starts":
        learner.run(
            [0, 1, 2, 3, 3], [0.0, 7.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0], starts=[False, False, True, False, False]
        )
    elif way == "another run":
        learner.run([0, 1], [0.0])
        learner.run([2, 3, 3], [0.0, 1.0], [1.0, 0.0])
    else:
        learner.start(0)
        learner.update(0.0, 1)
        learner.start(2)
        np.testing.assert_array_equal(learner.trace if learner_class in BACKWARD else 0.0, 0.0)
        learner.update(0.0, 3)
        learner.update(1.0, None)
    close(learner, [0.0, 0.0, 0.5, 0.5])


@backward_learner
@pytest.mark.parametrize("form", ["dense", "indices"])
@pytest.mark.parametrize("way", ["start", "starts", "None", "γ = 0"])
def test_after_a_cut_or_an_end_only_the_weights_are_left(learner_class, form, way):
    """From there on it is a new learner with those weights: no trace, and no V_old of the true online method."""
    rng = np.random.default_rng(77)
    X = (rng.random((21, 5)) < 0.5).astype(float)
    X[X.all(axis=1), 0] = 0.0  # indices of all features would be refused
    R = rng.normal(size=20)
    learner = learner_class(5, 0.2, trace_decay=0.9, discount=0.95)

    def given(t):
        return X[t] if form == "dense" else np.flatnonzero(X[t])

    if way == "starts":
        rows = X if form == "dense" else [given(t) for t in range(21)]
        starts = np.arange(21) == 11
        learner.run(rows[:12], R[:11], starts=starts[:12])
    else:
        learner.start(given(0))
        for t in range(9):
            learner.update(R[t], given(t + 1))
        if way == "None":
            learner.update(R[9], None)
        else:
            learner.update(R[9], given(11 if way == "γ = 0" else 10), None if way == "start" else 0.0)
    weights = learner.weights
    if way in ("start", "None"):
        learner.start(given(11))
    new = learner_class(5, 0.2, trace_decay=0.9, discount=0.95, initial_weights=weights)
    new.start(given(11))
    for t in range(11, 20):
        assert learner.update(R[t], given(t + 1)) == pytest.approx(new.update(R[t], given(t + 1)), rel=1e-12)
        close(learner, new.weights)
        np.testing.assert_allclose(learner.trace, new.trace, rtol=1e-12, atol=1e-14)
    assert np.abs(new.weights - weights).max() > 0.01


# --- Sparse real-valued features ------------------------------------------------------------------


@pytest.mark.parametrize("learner_class", [to.AccumulateTD, to.TrueOnlineTD])
def test_a_negative_feature_has_a_negative_trace(learner_class):
    learner = learner_class(3, 0.5, trace_decay=1.0, discount=0.5)
    learner.start((np.array([0]), np.array([-2.0])))
    learner.update(0.0, (np.array([1]), np.array([1.0])))
    learner.update(1.0, None)
    np.testing.assert_allclose(learner.trace, [-1.0, 1.0, 0.0])
    close(learner, [-0.5, 0.5, 0.0])


@pytest.mark.parametrize("learner_class", [to.AccumulateTD, to.TrueOnlineTD])
def test_negative_traces_of_hundreds_of_features_last_as_long_as_positive_ones(learner_class):
    """Features that are all negative, more than are kept without looking through them, and a slowly fading trace."""
    rng = np.random.default_rng(9)
    indices = np.array([rng.choice(600, 5, replace=False) for _ in range(301)])
    values = -rng.uniform(0.5, 1.5, size=indices.shape)
    rewards = rng.normal(size=300)
    X = np.zeros((301, 600))
    np.put_along_axis(X, indices, values, axis=1)
    as_pairs, as_dense = (learner_class(600, 0.05, trace_decay=0.9, discount=1.0) for _ in range(2))
    as_pairs.run((indices, values), rewards)
    as_dense.run(X, rewards)
    close(as_pairs, as_dense.weights)
    np.testing.assert_allclose(as_pairs.trace, as_dense.trace, rtol=1e-10, atol=1e-14)
    assert (as_pairs.trace < -1e-8).sum() > 300


@every_learner
def test_a_repeated_index_is_refused_rather_than_counted_once(learner_class):
    learner = learner_class(4, 0.5, trace_decay=0.9, discount=0.9)
    learner.start(0)
    learner.update(1.0, 1)
    before = learner.weights
    twice = np.array([2, 3, 2])
    for x in (twice, (twice, np.ones(3))):
        for attempt in (learner.start, learner.predict, lambda x: learner.update(1.0, x)):
            with pytest.raises(ValueError, match="index 2 more than once"):
                attempt(x)
    with pytest.raises(ValueError, match="index 2 more than once"):
        learner.run(np.array([[0, 1, 2], [2, 3, 2]]), [1.0])
    np.testing.assert_array_equal(learner.weights, before)


@pytest.mark.parametrize("learner_class", [to.AccumulateTD, to.TrueOnlineTD, to.OnlineLambdaReturn])
def test_a_repeated_entry_of_a_sparse_matrix_is_added_up(learner_class):
    """As the format has it, and as `toarray` does."""
    X = sparse.csr_array(([1.0, 0.5, 2.0, -0.5, 1.0], [2, 2, 0, 1, 1], [0, 2, 4, 5]), shape=(3, 3))
    assert X.toarray()[0, 2] == 1.5
    as_sparse, as_dense = (learner_class(3, 0.3, trace_decay=0.9, discount=0.9) for _ in range(2))
    as_sparse.run(X, [1.0, 2.0])
    as_dense.run(X.toarray(), [1.0, 2.0])
    close(as_sparse, as_dense.weights)
    assert as_dense.weights.any()


# --- A step-size bound that silently rescales -----------------------------------------------------


@pytest.mark.parametrize("learner_class", [to.AccumulateTD, to.TrueOnlineTD, to.OnlineLambdaReturn])
@pytest.mark.parametrize("scheduled", [False, True])
def test_a_step_size_is_taken_as_it_is_however_large(learner_class, scheduled):
    """α‖φ‖² = 10: far beyond what is stable, and exactly what was asked for."""
    x = np.array([1.0, -2.0])
    learner = learner_class(2, (lambda t: 2.0) if scheduled else 2.0, trace_decay=1.0, discount=1.0)
    learner.start(x)
    learner.update(1.0, 0.5 * x)
    close(learner, 2.0 * x)
    scale = 2.0 if scheduled and learner_class is not to.AccumulateTD else 1.0  # e⁺ carries α
    np.testing.assert_allclose(learner.trace, scale * x)


# --- Planted in a learner, each is found ----------------------------------------------------------


def dense(x, n: int) -> np.ndarray:
    if not isinstance(x, tuple) and np.asarray(x).dtype.kind == "f":
        return np.array(x)
    indices, values = x if isinstance(x, tuple) else (x, 1.0)
    result = np.zeros(n)
    result[indices] = values
    return result


class Eager:
    """True online TD(λ) with a time-dependent step-size (Algorithm 4), eagerly; with one mistake or none."""

    mistake = ""

    def __init__(self, n_features, step_size, trace_decay, discount):
        self.weights = np.zeros(n_features)
        self.step_size = step_size if callable(step_size) else lambda t: step_size
        self.trace_decay, self.discount = trace_decay, discount
        self.steps = 0
        self.last = None
        self.start(np.zeros(n_features))

    def start(self, x):
        if self.mistake == "truncation as termination" and self.last is not None:
            w, e, undone = self.last
            self.weights = w + undone * e
        if self.mistake != "trace kept across a cut" or self.steps == 0:
            self.e, self.v_old, self.gamma, self.lam = np.zeros(len(self.weights)), 0.0, 0.0, 0.0
        self.x, self.last = dense(x, len(self.weights)), None

    def update(self, reward, x_next, discount=None, trace_decay=None):
        x, w, n = self.x, self.weights, len(self.weights)
        x_next = np.zeros(n) if x_next is None else dense(x_next, n)
        gamma_next = self.discount if discount is None else discount
        lam_next = self.trace_decay if trace_decay is None else trace_decay
        alpha = self.step_size(self.steps)
        if self.mistake == "bounded step-size":
            alpha = min(alpha, 0.3 / max(x @ x, 0.3))
        decay = self.gamma * self.lam
        if self.mistake == "γ of the state entered":
            decay = gamma_next * self.lam
        elif self.mistake == "λ of the state entered":
            decay = self.gamma * lam_next
        elif self.mistake == "right for γ = 0 only":
            decay = 0.0
        v, v_next = w @ x, w @ x_next
        dutch = 0.0 if self.mistake == "accumulating trace" else alpha * decay * (self.e @ x)
        self.e = decay * self.e + (alpha - dutch) * x
        if self.mistake == "negative traces dropped":
            self.e = np.maximum(self.e, 0.0)
        elif self.mistake == "small traces dropped":
            self.e = np.where(np.abs(self.e) < 1e-4, 0.0, self.e)
        v_old = v if self.mistake == "no δ-correction" else self.v_old
        self.weights = w + (reward + gamma_next * v_next - v_old) * self.e - alpha * (v - v_old) * x
        self.last = self.weights, self.e, -gamma_next * v_next
        self.x, self.v_old, self.gamma, self.lam = x_next, v_next, gamma_next, lam_next
        self.steps += 1


MISTAKES = [
    "γ of the state entered",
    "λ of the state entered",
    "truncation as termination",
    "trace kept across a cut",
    "negative traces dropped",
    "small traces dropped",
    "bounded step-size",
    "right for γ = 0 only",
    "accumulating trace",
    "no δ-correction",
]


def test_verify_finds_no_mistake_where_there_is_none():
    report = to.verify(Eager)
    assert report.exact
    assert report.max_error < 1e-11
    assert report.definition == "OnlineLambdaReturn"


@pytest.mark.parametrize("mistake", MISTAKES)
def test_verify_finds_each_mistake(mistake):
    report = to.verify(type("Planted", (Eager,), {"mistake": mistake}), trials=2)
    assert not report.exact
    assert report.max_error > 1e-6


def test_verify_does_not_look_at_gamma_0_only():
    """With γ = 0 everywhere there is no trace, and every method is the same: such a test would find nothing."""
    seen = []

    class Watched(Eager):
        def update(self, reward, x_next, discount=None, trace_decay=None):
            seen.append((self.gamma * self.lam, 0.0 if x_next is None else discount))
            super().update(reward, x_next, discount, trace_decay)

    to.verify(Watched, trials=1)
    decays, discounts = np.array(seen, float).T
    assert np.mean(discounts > 0.0) > 0.8
    assert np.mean(decays > 0.1) > 0.5
    assert (discounts == 0.0).any()
    assert (discounts == 1.0).any()

    rng = np.random.default_rng(1)
    X, R = rng.normal(size=(21, 4)), rng.normal(size=20)
    right, wrong = (made(4, 0.1, trace_decay=0.9, discount=0.0) for made in (Eager, to.AccumulateTD))
    right.start(X[0])
    for t in range(20):
        right.update(R[t], X[t + 1], 0.0)
    wrong.run(X, R)
    close(wrong, right.weights)


# --- State survives a restart ---------------------------------------------------------------------


def sensor(form: str, steps: int = 60, n: int = 300):
    """Three active features a row, often the same as a row before; pairs are real-valued; one episode ends."""
    rng = np.random.default_rng(60)
    indices = np.array([t + rng.choice(12, 3, replace=False) for t in range(steps + 1)])
    values = rng.normal(size=indices.shape) if form == "pairs" else np.ones(indices.shape)
    x = list(indices)
    if form == "pairs":
        x = list(zip(indices, values, strict=True))
    elif form == "dense":
        x = [dense(row, n) for row in indices]
    discounts = rng.uniform(0.8, 1.0, size=steps)
    discounts[10] = 0.0
    return x, rng.normal(size=steps), discounts


def go_on(learner, x, rewards, discounts, steps) -> None:
    for t in steps:
        learner.update(float(rewards[t]), x[t + 1], float(discounts[t]), 0.9)


@every_learner
@pytest.mark.parametrize("form", ["dense", "indices", "pairs"])
@pytest.mark.parametrize("scheduled", [False, True], ids=["α constant", "α varying"])
@pytest.mark.parametrize("at", [11, 30], ids=["after an end", "in an episode"])
def test_a_saved_and_loaded_learner_goes_on_bit_for_bit(learner_class, form, scheduled, at, tmp_path):
    """Weights, trace, V_old, γ, λ, where it stands, and the t of the schedule."""
    if learner_class.binary and form == "pairs":
        form = "indices"
    stream = sensor(form)
    step_size = (lambda t: 0.3 / (1.0 + 0.1 * t)) if scheduled else 0.1
    kept = learner_class(300, step_size, trace_decay=0.9, discount=0.9)
    kept.start(stream[0][0])
    go_on(kept, *stream, range(at))
    kept.save(tmp_path / "learner.npz")
    with np.load(tmp_path / "learner.npz", allow_pickle=False) as file:
        assert all(file[name] is not None for name in file.files)  # nothing in it needs pickle
    loaded = to.load(tmp_path / "learner.npz", **({"step_size": step_size} if scheduled else {}))
    assert type(loaded) is learner_class
    assert loaded.steps == at
    for t in range(at, 60):
        for learner in (kept, loaded):
            go_on(learner, *stream, [t])
        np.testing.assert_array_equal(loaded.weights, kept.weights)
        if learner_class is not to.OfflineLambdaReturn:
            np.testing.assert_array_equal(loaded.trace, kept.trace)
    for learner in (kept, loaded):
        learner.start(stream[0][0])  # the offline method learns now at the latest
    np.testing.assert_array_equal(loaded.weights, kept.weights)
    assert kept.weights.any()


def test_state_survives_the_end_of_the_process(tmp_path):
    stream = sensor("indices")
    kept = to.TrueOnlineTD(300, 0.1, trace_decay=0.9, discount=0.9)
    kept.start(stream[0][0])
    go_on(kept, *stream, range(30))
    kept.save(tmp_path / "before.npz")
    np.savez(tmp_path / "stream.npz", x=stream[0], rewards=stream[1], discounts=stream[2])
    program = (
        "import sys, numpy as np, trueonline as to\n"
        "learner, stream = to.load(sys.argv[1]), np.load(sys.argv[2])\n"
        "for t in range(30, 60):\n"
        "    reward, gamma = float(stream['rewards'][t]), float(stream['discounts'][t])\n"
        "    learner.update(reward, stream['x'][t + 1], gamma, 0.9)\n"
        "learner.save(sys.argv[3])\n"
    )
    files = [str(tmp_path / name) for name in ("before.npz", "stream.npz", "after.npz")]
    subprocess.run([sys.executable, "-c", program, *files], check=True)
    go_on(kept, *stream, range(30, 60))
    after = to.load(tmp_path / "after.npz")
    np.testing.assert_array_equal(after.weights, kept.weights)
    np.testing.assert_array_equal(after.trace, kept.trace)
    assert after.steps == kept.steps == 60
