"""`run` equals repeated `update`, in whatever form features come, and nothing is lost where traces fade.

`tests/test_catalog.py` compares updates with definitions, and `tests/forward` compares these with oracles.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse

import trueonline as to
from tests.oracles import prediction as naive
from tests.oracles.swift import swift_td

STEPS = 50


def assert_near(actual, wanted, what: str) -> None:
    """Relative to the largest of all that is wanted."""
    actual, wanted = np.array(list(actual)), np.array(list(wanted))
    np.testing.assert_allclose(actual, wanted, rtol=0.0, atol=1e-10 * np.abs(wanted).max(), err_msg=what)


# --- Features in every form -----------------------------------------------------------------------


def pair(x, rng):
    """(indices, values) in any order, with a zero among them where there is room."""
    indices = rng.permutation(np.union1d(np.flatnonzero(x), rng.integers(len(x))))
    return indices, x[indices]


def active(x, rng):
    """The indices of the active features. All of them would be taken for values, and are refused: these come as a pair."""
    indices = rng.permutation(np.flatnonzero(x))
    return indices if len(indices) < len(x) or len(x) == 1 else (indices, np.ones(len(x)))


def mixed(x: np.ndarray, rng: np.random.Generator) -> Any:
    ways = [lambda: x, lambda: list(x), lambda: pair(x, rng), lambda: (list(range(len(x))), list(x))]
    if np.isin(x, (0.0, 1.0)).all():
        ways += [lambda: active(x, rng), lambda: x.astype("f4")]
        ways += [lambda: np.flatnonzero(x)[::-1].astype(np.int32)] * (not x.all())
    if x.sum() == x.max() == 1.0:
        ways += [lambda: int(x.argmax()), x.argmax]
    return ways[rng.integers(len(ways))]()


def padded_pairs(X, rng):
    """A pair of 2-D arrays: as many indices in each row, some of value zero."""
    width = int((X != 0.0).sum(axis=1).max())
    order = rng.permuted(np.argsort(X == 0.0, axis=1, kind="stable")[:, :width], axis=1)
    return order, np.take_along_axis(X, order, axis=1)


def unsorted_csr(X, rng):
    """A CSR matrix whose values come in two parts each, in no order."""
    row, column = np.nonzero(X)
    twice = rng.permutation(np.arange(2 * len(row)) % max(1, len(row)))
    twice = twice[np.argsort(row[twice], kind="stable")]
    indptr = np.concatenate(([0], np.cumsum(np.bincount(row[twice], minlength=len(X)))))
    return sparse.csr_array((X[row, column][twice] / 2.0, column[twice], indptr), X.shape)


# What X may be, by the values it can hold: "real" needs floats, "some active" has as many active features in each row.
TABLES = {
    "2-D floats": ("real", lambda X, rng: X),
    "2-D floats, by columns": ("real", lambda X, rng: np.asfortranarray(X)),
    "CSR": ("real", lambda X, rng: sparse.csr_array(X)),
    "CSR matrix": ("binary", lambda X, rng: sparse.csr_matrix(X)),
    "CSR, duplicates": ("real", unsorted_csr),
    "CSC": ("real", lambda X, rng: sparse.csc_array(X)),
    "2-D indices": ("some active", lambda X, rng: X if X.all() else rng.permuted([np.flatnonzero(x) for x in X], axis=1)),
    "1-D states": ("states", lambda X, rng: X.argmax(axis=1)),
    "list of states": ("states", lambda X, rng: [int(x.argmax()) for x in X]),
    "2-D pair": ("real", padded_pairs),
    "list of dense rows": ("real", lambda X, rng: [list(x) for x in X]),
    "ragged indices": ("binary", lambda X, rng: [active(x, rng) for x in X]),
    "ragged pairs": ("real", lambda X, rng: [pair(x, rng) for x in X]),
    "list of mixed forms": ("real", lambda X, rng: [mixed(x, rng) for x in X]),
}


# --- run = updates --------------------------------------------------------------------------------


class Stream(NamedTuple):
    X: np.ndarray
    rewards: np.ndarray
    discounts: np.ndarray
    trace_decays: np.ndarray
    starts: np.ndarray


def drawn(rng: np.random.Generator, values: str) -> Stream:
    """Rows linger; γ is 0 at times, and λ 0 or 1. Where a row starts anew, nobody may look at the reward before it."""
    n, density = int(rng.integers(1, 13)), rng.choice([0.1, 0.3, 0.6, 1.0])
    if values == "states":
        X = np.eye(n)[rng.integers(n, size=STEPS + 1)]
    elif values == "some active":
        X = (rng.random((STEPS + 1, n)).argsort(axis=1) < max(1, round(n * density))).astype(float)
    else:
        X = (rng.random((STEPS + 1, n)) < density).astype(float)
        X *= 1.0 if values == "binary" else np.where(rng.random(X.shape) < 0.1, 1.0, rng.normal(size=X.shape))
    for t in np.flatnonzero(rng.random(STEPS) < rng.choice([0.0, 0.5])):
        X[t + 1] = X[t]
    gammas, lams = rng.random((2, STEPS))
    gammas[rng.random(STEPS) < 0.1], gammas[rng.random(STEPS) < 0.2] = 0.0, 1.0
    lams[rng.random(STEPS) < 0.1], lams[rng.random(STEPS) < 0.2] = 0.0, 1.0
    starts = np.append(False, rng.random(STEPS) < rng.choice([0.0, 0.1]))
    return Stream(X, np.where(starts[1:], 1e9, rng.normal(size=STEPS)), gammas, lams, starts)


# The loop is that of all methods. So these stand for the others: binary features, and step-sizes that are constant or not.
FEW = [(to.ReplaceTD, False), (to.TrueOnlineTD, False), (to.TrueOnlineTD, True)]


def learners(stream: Stream, kind, schedule, rng) -> tuple:
    shares = rng.uniform(0.01, 1.0, STEPS) / max(1.0, (stream.X**2).sum(axis=1).max())
    step_size = (lambda t: float(shares[t])) if schedule else float(shares[0])
    initial = rng.normal(size=stream.X.shape[1])
    return tuple(kind(stream.X.shape[1], step_size, 0.9, 0.9, initial_weights=initial) for _ in range(2))


def updated(learner, stream: Stream, form=lambda x: x) -> list[float]:
    """The values of all states that are left, before their update."""
    values = []
    learner.start(form(stream.X[0]))
    for t in range(STEPS):
        values.append(learner.predict(form(stream.X[t])))
        if stream.starts[t + 1]:
            learner.start(form(stream.X[t + 1]))
        else:
            learner.update(stream.rewards[t], form(stream.X[t + 1]), stream.discounts[t], stream.trace_decays[t])
    return values


def assert_same(one, other, values, wanted) -> None:
    assert_near(values, wanted, "V")
    assert_near([one.weights, one.trace], [other.weights, other.trace], "weights and trace")
    assert one.steps == other.steps


@pytest.mark.parametrize("form", TABLES)
@pytest.mark.parametrize(("kind", "schedule"), FEW)
def test_run_equals_updates(kind, schedule, form):
    values, make = TABLES[form]
    for seed in range(4):
        rng = np.random.default_rng(seed)
        stream = drawn(rng, "binary" if kind.binary and values == "real" else values)
        ran, stepped = learners(stream, kind, schedule, rng)
        seen = ran.run(make(stream.X, rng), *stream[1:3], trace_decays=stream.trace_decays, starts=stream.starts)
        assert_same(ran, stepped, seen, updated(stepped, stream))


@pytest.mark.parametrize(("kind", "schedule"), FEW)
def test_a_stream_may_come_in_pieces_of_run_and_update(kind, schedule):
    """Pieces that share a row, each in its own form; some of them one `update`. And in changing forms, step by step."""
    forms = ["2-D floats", "CSR", "2-D pair", "ragged pairs", "list of mixed forms"]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        stream = drawn(rng, "binary" if kind.binary else "real")
        learner, stepped = learners(stream, kind, schedule, rng)
        wanted = updated(stepped, stream, lambda x, rng=rng: mixed(x, rng))
        seen, at = [], 0
        learner.start(mixed(stream.X[0], rng))
        while at < STEPS:
            upto = min(at + int(rng.integers(1, 20)), STEPS)
            if upto == at + 1 and not stream.starts[upto]:
                seen.append(learner.predict(mixed(stream.X[at], rng)))
                learner.update(
                    stream.rewards[at], mixed(stream.X[upto], rng), stream.discounts[at], stream.trace_decays[at]
                )
            else:
                X, *given = (part[at:upto] for part in stream[:4])
                X = TABLES[forms[rng.integers(5)]][1](stream.X[at : upto + 1], rng)
                starts = stream.starts[at : upto + 1].copy()
                starts[0] = False  # the row was begun at the end of the piece before
                seen.extend(learner.run(X, *given[:2], trace_decays=given[2], starts=starts, resume=True))
            at = upto
        assert_same(learner, stepped, seen, wanted)


def test_numbers_stand_for_constant_discounts_and_trace_decays():
    rng = np.random.default_rng(5)
    X, rewards = rng.normal(size=(31, 4)) / 2.0, rng.normal(size=30)
    as_own = to.TrueOnlineTD(4, 0.1, trace_decay=0.6, discount=0.8)
    as_given, in_arrays = (to.TrueOnlineTD(4, 0.1, trace_decay=0.1, discount=0.1) for _ in range(2))
    as_own.run(X, rewards)
    as_given.run(X, rewards, 0.8, trace_decays=0.6)
    in_arrays.run(X, rewards, [0.8] * 30, trace_decays=[0.6] * 30)
    for learner in (as_own, as_given):
        np.testing.assert_array_equal(learner.weights, in_arrays.weights)


def test_integers_as_many_as_features_are_refused_in_a_list_of_rows_too():
    """With two features, [0, 1] could be the indices of both, or a vector."""
    X = [np.array([0, 1]), np.array([0.0, 1.0]), np.array([1.0, 0.0])]
    learner = to.TrueOnlineTD(2, 0.1, 0.9, 0.9)
    with pytest.raises(ValueError, match=r"X\[0\] has 2 integers, as many as there are features"):
        learner.run(X, [1.0, 2.0])


# --- Many features: traces fade and are forgotten, and nobody notices -----------------------------

BURSTS = [(to.AccumulateTD, naive.accumulate_td), (to.ReplaceTD, naive.replace_td)]
BURSTS += [(to.TrueOnlineTD, naive.true_online_td), (to.SwiftTD, swift_td)]


@pytest.mark.parametrize(("kind", "oracle"), BURSTS)
@pytest.mark.parametrize("seed", range(6))
def test_traces_of_hundreds_of_features_come_and_go_in_changing_forms(kind, oracle, seed):
    """Rows of hundreds of features and of none, fast decay, frequent starts."""
    rng, n = np.random.default_rng(seed), 400
    X = np.zeros((STEPS + 1, n))
    for x, size in zip(X, rng.choice([0, 1, 5, 100, 250], STEPS + 1), strict=True):
        places = rng.choice(n, size, replace=False)
        x[places] = 1.0 if kind.binary else rng.normal(size=size)
    rewards, gammas = rng.normal(size=STEPS), rng.choice([0.3, 0.9, 0.01, 1e-12], STEPS, p=[0.7, 0.1, 0.1, 0.1])
    starts = rng.choice(np.arange(1, STEPS), rng.integers(6), replace=False)
    forms = [lambda x: x, lambda x: active(x, rng) if kind.binary else pair(x, rng)]
    rows = [forms[rng.integers(2)](x) for x in X]
    learner, found, episodes, first = kind(n, 1e-3, trace_decay=0.9, discount=0.3), [], [], 0
    learner.start(rows[0])
    for t in range(STEPS):
        if t + 1 in starts:
            learner.start(rows[t + 1])
        else:
            learner.update(rewards[t], rows[t + 1], gammas[t])
            found.append((learner.weights, learner.trace))
        if t + 1 in starts or t == STEPS - 1:
            last = t if t + 1 in starts else t + 1
            constants = (np.full(last - first, 0.9), np.full(last - first, 1e-3))
            episodes.append(naive.Episode(X[first : last + 1], rewards[first:last], gammas[first:last], *constants))
            first = t + 1
    for ours, theirs, what in zip(
        zip(*found, strict=True), zip(*oracle(episodes, np.zeros(n)), strict=True), ("weights", "trace"), strict=True
    ):
        assert_near(ours, theirs, what)


# --- For a long time ------------------------------------------------------------------------------

LONG = 10_000

DECAY_RATES = {0.9: (0.9, 1.0), 0.99: (0.995, 0.99 / 0.995), 1.0: (1.0, 1.0)}


class ActiveRows:
    """Binary features as a sequence of dense rows, made when they are asked for."""

    def __init__(self, indices: np.ndarray, n: int) -> None:
        self.indices, self.n = indices, n

    def __getitem__(self, t: int) -> np.ndarray:
        x = np.zeros(self.n)
        x[self.indices[t]] = 1.0
        return x


def tiles(rng: np.random.Generator) -> np.ndarray:
    """Eight shifted 20 × 20 tilings of a wandering point and a bias: regions are left for long and visited again."""
    t = np.arange(LONG + 1)[:, None]
    point = 0.5 + 0.45 * np.sin(t * [2 * np.pi / 7000, 2 * np.pi / 4100]) + 0.02 * rng.normal(size=(LONG + 1, 2))
    shifted = np.clip(point[:, None, :] * 19 + np.linspace(0.0, 1.0, 8, endpoint=False)[None, :, None], 0.0, 19.9)
    cell = shifted.astype(int)
    tile = np.arange(8) * 400 + cell[..., 0] * 20 + cell[..., 1]
    return np.column_stack((tile, np.full(LONG + 1, 3200)))


def assert_long_run(learner, oracle, episode, X, visited) -> None:
    """In ten pieces: values at every step, weights and trace after each piece; relative to the largest so far."""
    n = len(visited)
    after = oracle([episode], np.zeros(n))
    w = np.zeros(n)
    largest = {"weights": 0.0, "trace": 0.0, "V": 0.0}

    def assert_so_far(what, actual, wanted):
        largest[what] = max(largest[what], np.abs(wanted).max())
        assert np.isfinite(largest[what])
        assert np.abs(actual - wanted).max() <= 1e-9 * largest[what], what

    unvisited = np.setdiff1d(np.arange(learner.n_features), visited)
    piece = LONG // 10
    for begin in range(0, LONG, piece):
        values = learner.run(X[begin : begin + piece + 1], episode.rewards[begin : begin + piece], resume=True)
        wanted = np.empty(piece)
        for t in range(piece):
            wanted[t] = w @ episode.x[begin + t]
            w, e = next(after)
        assert_so_far("V", values, wanted)
        for what, ours, theirs in (("weights", learner.weights, w), ("trace", learner.trace, e)):
            assert not ours[unvisited].any()
            assert_so_far(what, ours[visited], theirs)
    assert np.abs(w).max() > 0.1


LONG_RUNS = [(to.TrueOnlineTD, naive.true_online_td, 0.99), (to.TrueOnlineTD, naive.true_online_td, 1.0)]
LONG_RUNS += [(to.ReplaceTD, naive.replace_td, 0.9)]


@pytest.mark.parametrize(("learner_class", "oracle", "rate"), LONG_RUNS)
def test_200_000_features_stay_exact_for_10_000_steps(learner_class, oracle, rate):
    """Against eager loops over the features that are ever visited; the others must stay zero."""
    rng = np.random.default_rng(200_000)
    places = rng.choice(200_000, size=3201, replace=False)
    indices = tiles(rng)
    visited, numbered = np.unique(indices, return_inverse=True)
    rewards = np.sin(np.arange(LONG) / 300.0) + rng.normal(size=LONG)
    gamma, lam = DECAY_RATES[rate]
    learner = learner_class(200_000, 0.1 / 9, trace_decay=lam, discount=gamma)
    x = ActiveRows(numbered.reshape(indices.shape), len(visited))
    episode = naive.Episode(x, rewards, [gamma] * LONG, [lam] * LONG, [0.1 / 9] * LONG)
    assert_long_run(learner, oracle, episode, places[indices], places[visited])
