"""Streams, the forms in which learners get them, and the comparison with oracles."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

import trueonline as to
from tests.oracles import prediction as naive
from tests.oracles.swift import swift_td

STEPS = 50
TOLERANCE = 1e-10

examples = partial(settings, deadline=None, derandomize=True)


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
def streams(draw, values="real", schedule=False, n=None, steps=STEPS, scales=(1.0, 1e-3, 1e3)):
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
    rewards = draw(st.sampled_from(scales)) * rng.normal(size=steps)
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


METHODS = {
    "Algorithm 1": (to.AccumulateTD, naive.accumulate_td, False),
    "replacing traces": (to.ReplaceTD, naive.replace_td, False),
    "Algorithm 2": (to.TrueOnlineTD, naive.true_online_td, False),
    "Algorithm 4": (to.TrueOnlineTD, naive.true_online_td_varying, True),
    "SwiftTD": (to.SwiftTD, swift_td, False),
}


# The sizes of rewards for SwiftTD, which multiplies what sums leave by θ/α, up to 10⁷, and by the error. With rewards of 1,000 a
# rounding error of one feature can change the weights by a third, in the equations themselves.
SWIFT_SCALES = (1.0, 1e-3)


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


def assert_follows(steps, wanted: list[Step], trace: bool = True) -> None:
    steps = list(steps)
    assert_close((step.weights for step in steps), (step.weights for step in wanted), "weights")
    assert_close((step.delta for step in steps), (step.delta for step in wanted), "δ")
    if trace:
        assert_close((step.trace for step in steps), (step.trace for step in wanted), "trace")
