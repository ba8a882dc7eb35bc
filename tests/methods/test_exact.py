"""Exactness: every learner equals the oracles of `naive` at every step, whatever the stream and however it is given."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

import trueonline as to
from tests.oracles import prediction as naive
from tests.oracles.swift import swift_td

STEPS = 50
TOLERANCE = 1e-10
examples = partial(settings, deadline=None, derandomize=True)


# --- Streams --------------------------------------------------------------------------------------


class Stream(NamedTuple):
    """Episodes, and how each ends: by γ = 0, where the next goes on; by None or cut short; or not yet ("")."""

    n: int
    episodes: list[naive.Episode]
    endings: list[str]
    step_size: float | Callable[[int], float]
    discount: float  # the learner's own γ and λ, which most transitions share
    trace_decay: float
    initial: np.ndarray
    seed: int

    def learner(self, learner_class):
        return learner_class(self.n, self.step_size, self.trace_decay, self.discount, initial_weights=self.initial)


def rows(rng: np.random.Generator, values: str, n: int, density: float, linger: float) -> Iterator[np.ndarray]:
    """Feature vectors without end. Each is like the one before with probability `linger`."""
    some = max(1, round(n * density))
    x = None
    while True:
        if x is None or rng.random() >= linger:
            x = np.zeros(n)
            if values == "states":
                x[rng.integers(n)] = 1.0
            elif values == "some active":
                x[rng.choice(n, some, replace=False)] = 1.0
            else:
                active = rng.random(n) < density
                x[active] = 1.0 if values == "binary" or rng.random() < 0.1 else rng.normal(size=active.sum())
        yield x.copy()


DECAYS = st.floats(0.0, 1.0) | st.just(1.0)


@st.composite
def streams(draw, values="real", schedule=False, n=None, steps=STEPS):
    """A stream of `steps` transitions; the structure is Hypothesis's, the bulk of the numbers a seeded generator's."""
    n = n or draw(st.integers(1, 12), label="n")
    seed = draw(st.integers(0, 2**32 - 1), label="seed")
    rng = np.random.default_rng(seed)
    source = rows(rng, values, n, draw(st.sampled_from([0.1, 0.3, 0.6, 1.0])), draw(st.sampled_from([0.0, 0.5, 0.9])))
    discount, trace_decay = (draw(st.sampled_from([1.0, 0.99, 0.9, 0.3]) | DECAYS) for _ in range(2))
    gammas = draw(arrays(float, steps, elements=DECAYS, fill=st.just(discount)), label="γ")
    lams = draw(arrays(float, steps, elements=DECAYS | st.just(0.0), fill=st.just(trace_decay)), label="λ")
    breaks = st.dictionaries(st.integers(0, steps - 1), st.sampled_from(["γ = 0", "None", "cut"]), max_size=8)
    breaks = draw(breaks, label="endings")
    rewards = draw(st.sampled_from([1.0, 1e-3, 1e3])) * rng.normal(size=steps)
    shares = draw(arrays(float, steps if schedule else 1, elements=st.floats(1e-3, 1.0)), label="α·max φᵀφ")

    episodes, endings, x, largest, begun = [], [], [next(source)], 0.0, 0
    for t in range(steps):
        x.append(next(source))
        ending = breaks.get(t, "γ = 0" if gammas[t] == 0.0 else "")
        if ending == "γ = 0":
            gammas[t] = 0.0
        if ending or t == steps - 1:
            largest = max(largest, *(phi @ phi for phi in x))
            following = [x[-1] if ending == "γ = 0" else next(source)]
            if ending == "None":
                x[-1] = np.zeros(n)  # features of a terminal state, as the paper defines them
            span = slice(begun, t + 1)
            episodes.append(naive.Episode(x, rewards[span], gammas[span], lams[span], (), over=bool(ending)))
            endings.append(ending)
            x, begun = following, t + 1
    alphas = np.resize(shares / (largest or 1.0), steps)
    begins = [0, *accumulate(len(episode.rewards) for episode in episodes)]
    episodes = [episode._replace(alphas=alphas[begin:]) for episode, begin in zip(episodes, begins, strict=False)]
    step_size = (lambda t: float(alphas[t])) if schedule else float(alphas[0])
    initial = draw(st.sampled_from([0.0, 1.0])) * rng.normal(size=n)
    return Stream(n, episodes, endings, step_size, discount, trace_decay, initial, seed)


# --- Ways to give features ------------------------------------------------------------------------


def pair(x, rng):
    """(indices, values) in any order, with a zero among them where there is room."""
    indices = rng.permutation(np.union1d(np.flatnonzero(x), rng.integers(len(x))))
    return indices, x[indices]


def active(x, rng):
    """The indices of the active features. All of them would be taken for values, and are refused: these come as a pair."""
    indices = rng.permutation(np.flatnonzero(x))
    return indices if len(indices) < len(x) or len(x) == 1 else (indices, np.ones(len(x)))


def spelt(x: np.ndarray, form: str, rng: np.random.Generator) -> Any:
    if form == "dense":
        return x
    if form == "indices":
        return active(x, rng)
    if form == "pairs":
        return pair(x, rng)
    if form == "states":
        return int(x.argmax())
    ways = [lambda: x, lambda: list(x), lambda: pair(x, rng), lambda: (list(range(len(x))), list(x))]
    if np.isin(x, (0.0, 1.0)).all():
        ways += [lambda: active(x, rng), lambda: x.astype("f4")]
        ways += [lambda: np.flatnonzero(x)[::-1].astype(np.int32)] * (not x.all())
    if x.sum() == x.max() == 1.0:
        ways += [lambda: int(x.argmax()), x.argmax]
    return ways[rng.integers(len(ways))]()


# The form in which features are given, and the values they have; without real values for replacing traces.
FORMS = {"dense": "real", "indices": "binary", "pairs": "real", "states": "states", "mixed": "real"}


def values_for(form: str, learner_class: Any) -> str:
    return "binary" if learner_class.binary and FORMS[form] == "real" else FORMS[form]


# --- Following a stream, and comparing ------------------------------------------------------------


class Step(NamedTuple):
    weights: np.ndarray
    trace: np.ndarray
    delta: float


def follow(learner, stream: Stream, form: str = "dense", trace: bool = True) -> Iterator[Step]:
    """Take a learner through a stream, one `update` at a time."""
    rng = np.random.default_rng(stream.seed)
    learner.start(spelt(stream.episodes[0].x[0], form, rng))
    for number, (episode, ending) in enumerate(zip(stream.episodes, stream.endings, strict=True)):
        T = len(episode.rewards)
        for t in range(T):
            x_next = None if ending == "None" and t == T - 1 else spelt(episode.x[t + 1], form, rng)
            gamma, lam = episode.discounts[t], episode.trace_decays[t]
            delta = learner.update(
                float(episode.rewards[t]),
                x_next,
                None if gamma == stream.discount else gamma,
                None if lam == stream.trace_decay else lam,
            )
            yield Step(learner.weights, learner.trace if trace else np.zeros(stream.n), delta)
        if ending in ("None", "cut") and number + 1 < len(stream.episodes):
            learner.start(spelt(stream.episodes[number + 1].x[0], form, rng))
            if trace:
                np.testing.assert_array_equal(learner.trace, 0.0)


def expected(stream: Stream, oracle) -> list[Step]:
    """What `follow` must give. δ = R + γV' − V with the weights of before."""
    steps, w = [], stream.initial
    after = oracle(stream.episodes, stream.initial)
    for episode in stream.episodes:
        for t in range(len(episode.rewards)):
            delta = episode.rewards[t] + episode.discounts[t] * (w @ episode.x[t + 1]) - w @ episode.x[t]
            w, e = next(after)
            steps.append(Step(w, e, delta))
    return steps


def assert_close(actual, wanted, what: str, tolerance: float = TOLERANCE) -> None:
    """max_i |actual_t − wanted_t| ≤ tolerance · max over all times until t of |wanted|, at every t."""
    actual, wanted = np.array(list(actual)), np.array(list(wanted))
    assert actual.shape == wanted.shape
    assert np.isfinite(wanted).all(), "the oracle itself diverged: nothing is tested"
    actual, wanted = actual.reshape(len(actual), -1), wanted.reshape(len(wanted), -1)
    allowed = tolerance * np.maximum.accumulate(np.abs(wanted).max(axis=1))
    error = np.abs(actual - wanted).max(axis=1)
    late = np.flatnonzero(~(error <= allowed))
    assert not late.size, f"{what} after step {late[0]}: {actual[late[0]]} instead of {wanted[late[0]]}"


def assert_follows(steps, wanted: list[Step], trace: bool = True) -> None:
    steps = list(steps)
    assert_close((step.weights for step in steps), (step.weights for step in wanted), "weights")
    assert_close((step.delta for step in steps), (step.delta for step in wanted), "δ")
    if trace:
        assert_close((step.trace for step in steps), (step.trace for step in wanted), "trace")


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


# --- update = the algorithms as printed -----------------------------------------------------------

METHODS = {
    "Algorithm 1": (to.AccumulateTD, naive.accumulate_td, False),
    "Algorithm 1, α varying": (to.AccumulateTD, naive.accumulate_td, True),
    "replacing traces": (to.ReplaceTD, naive.replace_td, False),
    "replacing traces, α varying": (to.ReplaceTD, naive.replace_td, True),
    "Algorithm 2": (to.TrueOnlineTD, naive.true_online_td, False),
    "Algorithm 4": (to.TrueOnlineTD, naive.true_online_td_varying, True),
    "SwiftTD": (to.SwiftTD, swift_td, False),
}
each_method = pytest.mark.parametrize("method", METHODS)


@each_method
@pytest.mark.parametrize("form", FORMS)
@examples(max_examples=10)
@given(data=st.data())
def test_updates_equal_the_algorithm_as_printed(method, form, data):
    learner_class, oracle, schedule = METHODS[method]
    stream = data.draw(streams(values_for(form, learner_class), schedule))
    assert_follows(follow(stream.learner(learner_class), stream, form), expected(stream, oracle))


@pytest.mark.parametrize("schedule", [False, True], ids=["α constant", "α varying"])
@examples(max_examples=15)
@given(form=st.sampled_from(sorted(FORMS)), data=st.data())
def test_true_online_equals_the_online_forward_view(schedule, form, data):
    stream = data.draw(streams(FORMS[form], schedule))
    wanted = expected(stream, partial(naive.online_lambda_return, plus=schedule))
    assert_follows(follow(stream.learner(to.TrueOnlineTD), stream, form), wanted)


@examples(max_examples=25)
@given(stream=streams("states"))
def test_true_online_equals_the_tabular_algorithm_as_printed(stream):
    """Algorithm 6."""
    states = [
        episode._replace(x=[int(x.argmax()) if x.any() else None for x in episode.x]) for episode in stream.episodes
    ]
    steps = list(follow(stream.learner(to.TrueOnlineTD), stream, "states"))
    weights, traces = zip(*naive.tabular_true_online_td(states, stream.initial), strict=True)
    assert_close((step.weights for step in steps), weights, "weights")
    assert_close((step.trace for step in steps), traces, "trace")


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
@examples(max_examples=12)
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


def padded_pairs(X, rng):
    """A pair of 2-D arrays: as many indices in each row, some of value zero."""
    width = int((X != 0.0).sum(axis=1).max())
    order = np.argsort(X == 0.0, axis=1, kind="stable")[:, :width]
    order = rng.permuted(order, axis=1)
    return order, np.take_along_axis(X, order, axis=1)


def unsorted_csr(X, rng):
    """A CSR matrix whose values come in two parts each, in no order."""
    row, column = np.nonzero(X)
    value = X[row, column]
    twice = rng.permutation(np.arange(2 * len(row)) % max(1, len(row)))
    matrix = sparse.coo_array((value[twice] / 2.0, (row[twice], column[twice])), X.shape)
    indptr = np.concatenate(([0], np.cumsum(np.bincount(row[twice], minlength=len(X)))))
    order = np.argsort(row[twice], kind="stable")
    return sparse.csr_array((matrix.data[order], column[twice][order], indptr), X.shape)


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
    "list of mixed forms": ("real", lambda X, rng: [spelt(x, "mixed", rng) for x in X]),
}


def values_of_states(stream: Stream, table: Table, wanted: list[Step]) -> np.ndarray:
    """V_t(S_t) before each update; where a stream is cut, that of its last row with the weights so far."""
    weights = iter(step.weights for step in wanted)
    w, values = stream.initial, []
    for t, x in enumerate(table.X[:-1]):
        values.append(w @ x)
        w = w if table.starts[t + 1] else next(weights)
    return np.array(values)


@pytest.mark.parametrize("form", TABLES)
@examples(max_examples=20)
@given(method=st.sampled_from(sorted(METHODS)), data=st.data())
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


@pytest.mark.parametrize("learner_class", [to.OnlineLambdaReturn, to.OfflineLambdaReturn])
@examples(max_examples=8)
@given(stream=streams(), form=st.sampled_from(["2-D floats", "CSR", "ragged pairs", "list of mixed forms"]))
def test_run_of_a_definition_equals_its_updates(learner_class, stream, form):
    table, rng = tabled(stream), np.random.default_rng(stream.seed)
    updated, ran = stream.learner(learner_class), stream.learner(learner_class)
    wanted = list(follow(updated, stream, trace=False))
    X = TABLES[form][1](table.X, rng)
    ran.run(X, table.rewards, table.discounts, trace_decays=table.trace_decays, starts=table.starts)
    if stream.endings[-1] == "cut":
        updated.start(table.X[-1])
    elif stream.endings[-1] != "None":
        assert_close([ran.weights], [wanted[-1].weights], "weights")
    assert_close([ran.weights], [updated.weights], "weights")
    assert ran.steps == updated.steps == STEPS


@each_method
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
            seen.extend(learner.run(X, *given, trace_decays=decays, starts=starts))
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


def test_a_list_of_pairs_of_one_length_is_a_stream():
    X = [(np.array([t % 3]), np.array([0.5])) for t in range(5)]
    learner, plain = (to.TrueOnlineTD(3, 0.1, 0.9, 0.9) for _ in range(2))
    learner.run(X, [1.0, 2.0, 3.0, 4.0])
    plain.run(0.5 * np.eye(3)[[0, 1, 2, 0, 1]], [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(learner.weights, plain.weights, rtol=1e-12)


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
@examples(max_examples=40)
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


@pytest.mark.parametrize("learner_class", [to.AccumulateTD, to.ReplaceTD, to.TrueOnlineTD])
def test_a_forgotten_trace_stays_forgotten_when_dense_features_follow(learner_class):
    """A list of traced features that grew long, was thinned out and then emptied leaves nothing behind."""

    def learned(form):
        learner = learner_class(400, 1e-3, trace_decay=0.3, discount=1.0)
        learner.start(form(range(100)))
        for _ in range(60):
            learner.update(1.0, form([399]))  # the first hundred fade
        learner.update(1.0, form(range(100, 300)))
        for _ in range(6):
            learner.update(1.0, form([399]))  # … and are forgotten
        learner.start(form([]))
        learner.update(1.0, form([]))  # no trace at all
        learner.update(1.0, dense([1, 2]))
        learner.update(1.0, dense([1, 2]))
        return learner

    def dense(active):
        return np.isin(np.arange(400), active).astype(float)

    plain, sparse_ = learned(dense), learned(lambda active: np.array(active, dtype=np.int64))
    assert_close([sparse_.weights], [plain.weights], "weights")
    assert_close([sparse_.trace], [plain.trace], "trace")


@pytest.mark.parametrize("learner_class", [to.AccumulateTD, to.ReplaceTD, to.TrueOnlineTD])
def test_where_no_feature_is_active_and_no_trace_is_left_nothing_is_learned(learner_class):
    """Whatever the form in which nothing is given: dense, then by indices, then dense again."""
    nothing = np.array([], dtype=np.int64)
    learner = learner_class(2, 0.1, trace_decay=0.0, discount=1.0)
    learner.start(np.array([0.0, 1.0]))
    learner.update(1.0, np.array([0.0, 1.0]))
    learner.update(1.0, nothing)
    before = learner.weights
    for x_next in (nothing, np.zeros(2), np.zeros(2)):
        learner.update(1.0, x_next)
        np.testing.assert_array_equal(learner.weights, before)
        np.testing.assert_array_equal(learner.trace, 0.0)


# --- For a long time ------------------------------------------------------------------------------

LONG = 20_000
DECAY_RATES = {0.0: (0.97, 0.0), 0.5: (1.0, 0.5), 0.9: (0.9, 1.0), 0.99: (0.995, 0.99 / 0.995), 1.0: (1.0, 1.0)}


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
        values = learner.run(X[begin : begin + piece + 1], episode.rewards[begin : begin + piece])
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


LONG_RUNS = [(to.TrueOnlineTD, naive.true_online_td, rate) for rate in DECAY_RATES]
LONG_RUNS += [(to.AccumulateTD, naive.accumulate_td, 0.9), (to.ReplaceTD, naive.replace_td, 0.99)]


@pytest.mark.parametrize(("learner_class", "oracle", "rate"), LONG_RUNS)
def test_200_000_features_stay_exact_for_20_000_steps(learner_class, oracle, rate):
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


@pytest.mark.parametrize(("learner_class", "oracle", "rate"), LONG_RUNS[:-1])
def test_dense_features_stay_exact_for_20_000_steps(learner_class, oracle, rate):
    rng = np.random.default_rng(50)
    X = rng.normal(size=(LONG + 1, 50)) / np.sqrt(50.0)
    rewards = np.sin(np.arange(LONG) / 300.0) + rng.normal(size=LONG)
    gamma, lam = DECAY_RATES[rate]
    learner = learner_class(50, 0.05, trace_decay=lam, discount=gamma)
    episode = naive.Episode(X, rewards, [gamma] * LONG, [lam] * LONG, [0.05] * LONG)
    assert_long_run(learner, oracle, episode, X)
