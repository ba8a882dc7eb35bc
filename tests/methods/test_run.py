"""`run` equals repeated `update`, in whatever form features come, and nothing is lost where traces fade."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import trueonline as to
from tests.methods.method_streams import (
    METHODS,
    STEPS,
    TABLES,
    Step,
    Stream,
    assert_close,
    examples,
    expected,
    spelt,
    streams,
    values_for,
)
from tests.oracles import prediction as naive

# --- run = updates, in whatever form --------------------------------------------------------------


class Table(NamedTuple):
    """A stream as `run` takes it, and the transitions of it that are learned from."""

    X: np.ndarray
    rewards: np.ndarray
    discounts: np.ndarray
    trace_decays: np.ndarray
    starts: np.ndarray
    learned: np.ndarray


def tabled(stream: Stream) -> Table:
    """None is γ = 0 into the next beginning; a cut is a row that starts anew, and a reward that nobody may look at."""
    X = [stream.episodes[0].x[0]]
    rewards, discounts, trace_decays, starts = [], [], [], [False]
    for number, (episode, ending) in enumerate(zip(stream.episodes, stream.endings, strict=True)):
        more = number + 1 < len(stream.episodes)
        begin = stream.episodes[number + 1].x[0] if more else X[0]
        discounts += [*episode.discounts[:-1], 0.0 if ending == "None" else episode.discounts[-1]]
        X += [*episode.x[1:-1], begin if ending == "None" else episode.x[-1]]
        rewards += [*episode.rewards]
        trace_decays += [*episode.trace_decays]
        starts += [False] * len(episode.rewards)
        if ending == "cut":
            X.append(begin)
            rewards.append(1e9)
            discounts.append(0.7)
            trace_decays.append(0.7)
            starts.append(True)
    starts = np.array(starts)
    return Table(np.array(X), *map(np.array, (rewards, discounts, trace_decays)), starts, np.flatnonzero(~starts[1:]))


def values_of_states(stream: Stream, table: Table, wanted: list[Step]) -> np.ndarray:
    """V_t(S_t) before each update; where a stream is cut, that of its last row with the weights so far."""
    weights = iter(step.weights for step in wanted)
    w, values = stream.initial, []
    for t, x in enumerate(table.X[:-1]):
        values.append(w @ x)
        w = w if table.starts[t + 1] else next(weights)
    return np.array(values)


# The loop is that of all methods. So these stand for the others: binary features, and step-sizes that are constant or not.
FEW = ["replacing traces", "Algorithm 2", "Algorithm 4"]


@pytest.mark.parametrize("form", TABLES)
@examples(max_examples=8)
@given(method=st.sampled_from(FEW), data=st.data())
def test_run_equals_the_algorithm_as_printed(form, method, data):
    learner_class, oracle, schedule = METHODS[method]
    values, make = TABLES[form]
    stream = data.draw(streams("binary" if learner_class.binary and values == "real" else values, schedule))
    wanted, table, rng = expected(stream, oracle), tabled(stream), np.random.default_rng(stream.seed)
    learner = stream.learner(learner_class)
    seen = learner.run(
        make(table.X, rng), table.rewards, table.discounts, trace_decays=table.trace_decays, starts=table.starts
    )
    assert_close(seen, values_of_states(stream, table, wanted), "V")
    assert_close([learner.weights], [wanted[-1].weights], "weights")
    assert learner.steps == STEPS
    if stream.endings[-1] == "cut":
        np.testing.assert_array_equal(learner.trace, 0.0)
    else:
        assert_close([learner.trace], [wanted[-1].trace], "trace")


@pytest.mark.parametrize("method", FEW)
@examples(max_examples=10)
@given(data=st.data())
def test_a_stream_may_come_in_pieces_of_run_and_update(method, data):
    """Pieces that share a row, each in its own form; some of them one `update`."""
    learner_class, oracle, schedule = METHODS[method]
    stream = data.draw(streams(values_for("mixed", learner_class), schedule))
    wanted, table, rng = expected(stream, oracle), tabled(stream), np.random.default_rng(stream.seed)
    forms = ["2-D floats", "CSR", "2-D pair", "ragged pairs", "list of mixed forms"]
    learner, seen, at = stream.learner(learner_class), [], 0
    learner.start(spelt(table.X[0], "mixed", rng))
    while at < len(table.rewards):
        upto = min(at + data.draw(st.integers(1, 20)), len(table.rewards))
        if upto == at + 1 and not table.starts[upto]:
            seen.append(learner.predict(spelt(table.X[at], "mixed", rng)))
            x_next = spelt(table.X[upto], "mixed", rng)
            learner.update(table.rewards[at], x_next, table.discounts[at], table.trace_decays[at])
        else:
            X = TABLES[data.draw(st.sampled_from(forms))][1](table.X[at : upto + 1], rng)
            given = (table.rewards[at:upto], table.discounts[at:upto])
            decays, starts = table.trace_decays[at:upto], table.starts[at : upto + 1]
            seen.extend(learner.run(X, *given, trace_decays=decays, starts=starts, resume=True))
        at = upto
    assert_close(seen, values_of_states(stream, table, wanted), "V")
    assert_close([learner.weights], [wanted[-1].weights], "weights")


def test_numbers_stand_for_constant_discounts_and_trace_decays():
    rng = np.random.default_rng(5)
    X, rewards = rng.normal(size=(31, 4)) / 2.0, rng.normal(size=30)
    episode = naive.Episode(X, rewards, [0.8] * 30, [0.6] * 30, [0.1] * 30)
    *_, (w, e) = naive.true_online_td([episode], np.zeros(4))
    as_own = to.TrueOnlineTD(4, 0.1, trace_decay=0.6, discount=0.8)
    as_given = to.TrueOnlineTD(4, 0.1, trace_decay=0.1, discount=0.1)
    as_own.run(X, rewards)
    as_given.run(X, rewards, 0.8, trace_decays=0.6)
    for learner in (as_own, as_given):
        assert_close([learner.weights, learner.trace], [w, e], "weights and trace")


# --- Rows of one shape and of different kinds -----------------------------------------------------


def test_integers_as_many_as_features_are_refused_in_a_list_of_rows_too():
    """With two features, [0, 1] could be the indices of both, or a vector."""
    X = [np.array([0, 1]), np.array([0.0, 1.0]), np.array([1.0, 0.0])]
    learner = to.TrueOnlineTD(2, 0.1, 0.9, 0.9)
    with pytest.raises(ValueError, match=r"X\[0\] has 2 integers, as many as there are features"):
        learner.run(X, [1.0, 2.0])


# --- Many features: traces fade and are forgotten, and nobody notices -----------------------------


@st.composite
def bursts(draw, binary, steps=STEPS):
    """Rows of hundreds of features and of none, fast decay, frequent starts: the traces that are kept come and go."""
    n = 400
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = draw(st.lists(st.sampled_from([0, 1, 5, 100, 250]), min_size=steps + 1, max_size=steps + 1))
    X = np.zeros((steps + 1, n))
    for x, size in zip(X, sizes, strict=True):
        active = rng.choice(n, size, replace=False)
        x[active] = 1.0 if binary else rng.normal(size=size)
    rewards = rng.normal(size=steps)
    starts = draw(st.sets(st.integers(1, steps), max_size=6))
    gammas = draw(arrays(float, steps, elements=st.sampled_from([0.9, 0.01, 1e-12]), fill=st.just(0.3)))
    begins = [0, *sorted(starts)]
    episodes = []
    for begin, end in zip(begins, [*begins[1:], steps + 1], strict=True):
        T = end - begin - 1
        if T:
            span = slice(begin, end - 1)
            episodes.append(naive.Episode(X[begin:end], rewards[span], gammas[span], np.full(T, 0.9), np.full(T, 1e-3)))
    forms = [draw(st.sampled_from(["dense", "indices" if binary else "pairs"])) for _ in range(steps + 1)]
    return X, rewards, gammas, starts, episodes, forms


@pytest.mark.parametrize("method", ["Algorithm 1", "replacing traces", "Algorithm 2", "SwiftTD"])
@examples(max_examples=12)
@given(data=st.data())
def test_traces_of_hundreds_of_features_come_and_go_in_changing_forms(method, data):
    learner_class, oracle, _ = METHODS[method]
    X, rewards, gammas, starts, episodes, forms = data.draw(bursts(learner_class.binary))
    rng = np.random.default_rng(0)
    learner = learner_class(X.shape[1], 1e-3, trace_decay=0.9, discount=0.3)
    learner.start(spelt(X[0], forms[0], rng))
    steps = []
    for t in range(STEPS):
        if t + 1 in starts:
            learner.start(spelt(X[t + 1], forms[t + 1], rng))
        else:
            learner.update(rewards[t], spelt(X[t + 1], forms[t + 1], rng), gammas[t])
            steps.append((learner.weights, learner.trace))
    wanted = list(oracle(episodes, np.zeros(X.shape[1])))
    assert len(steps) == len(wanted)
    if wanted:
        assert_close((w for w, _ in steps), (w for w, _ in wanted), "weights")
        assert_close((e for _, e in steps), (e for _, e in wanted), "trace")


# --- For a long time ------------------------------------------------------------------------------

LONG = 10_000

DECAY_RATES = {0.5: (1.0, 0.5), 0.9: (0.9, 1.0), 0.99: (0.995, 0.99 / 0.995), 1.0: (1.0, 1.0)}


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


def assert_long_run(learner, oracle, episode, X, visited=None) -> None:
    """In ten pieces: values at every step, weights and trace after each piece; relative to the largest so far."""
    n = learner.n_features if visited is None else len(visited)
    after = oracle([episode], np.zeros(n))
    w = np.zeros(n)
    largest = {"weights": 0.0, "trace": 0.0, "V": 0.0}

    def assert_near(what, actual, wanted):
        largest[what] = max(largest[what], np.abs(wanted).max())
        assert np.isfinite(largest[what])
        assert np.abs(actual - wanted).max() <= 1e-9 * largest[what], what

    unvisited = np.setdiff1d(np.arange(learner.n_features), np.arange(n) if visited is None else visited)
    piece = LONG // 10
    for begin in range(0, LONG, piece):
        values = learner.run(X[begin : begin + piece + 1], episode.rewards[begin : begin + piece], resume=True)
        wanted = np.empty(piece)
        for t in range(piece):
            wanted[t] = w @ episode.x[begin + t]
            w, e = next(after)
        weights, trace = learner.weights, learner.trace
        if visited is not None:
            assert not weights[unvisited].any()
            assert not trace[unvisited].any()
            weights, trace = weights[visited], trace[visited]
        assert_near("V", values, wanted)
        assert_near("weights", weights, w)
        assert_near("trace", trace, e)
    assert np.abs(w).max() > 0.1


LONG_RUNS = [(to.TrueOnlineTD, naive.true_online_td, rate) for rate in (0.5, 0.99, 1.0)]
LONG_RUNS += [(to.AccumulateTD, naive.accumulate_td, 0.9), (to.ReplaceTD, naive.replace_td, 0.99)]


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


@pytest.mark.parametrize(("learner_class", "oracle", "rate"), LONG_RUNS[1:4:2])
def test_dense_features_stay_exact_for_10_000_steps(learner_class, oracle, rate):
    rng = np.random.default_rng(50)
    X = rng.normal(size=(LONG + 1, 50)) / np.sqrt(50.0)
    rewards = np.sin(np.arange(LONG) / 300.0) + rng.normal(size=LONG)
    gamma, lam = DECAY_RATES[rate]
    learner = learner_class(50, 0.05, trace_decay=lam, discount=gamma)
    episode = naive.Episode(X, rewards, [gamma] * LONG, [lam] * LONG, [0.05] * LONG)
    assert_long_run(learner, oracle, episode, X)
