"""Provisional TD(λ) and Q(λ): with means, and on long streams.

`tests/test_catalog.py` compares both with their definitions, in every form. Here runs get features in few forms.
"""

import numpy as np
import pytest

from tests.oracles.family import provisional_q, provisional_td
from tests.oracles.prediction import Episode
from trueonline import ProvisionalQ, ProvisionalTD
from trueonline.core import memory
from trueonline.core.memory import two_traces

ORACLES = {ProvisionalTD: provisional_td, ProvisionalQ: provisional_q}
METHODS = pytest.mark.parametrize("method", ORACLES)


# --- Streams with all that may vary ---------------------------------------------------------------

N, K = 30, 4
FORMS = {"dense": lambda x: x.copy(), "active": np.flatnonzero, "pairs": lambda x: (np.flatnonzero(x), x[x != 0.0])}


class Drawn:
    """T transitions of binary features, with φ̄ besides. The stream is cut where `starts` says, and γ = 0 at times."""

    def __init__(
        self, seed: int, T: int, *, ratios=(0.0, 0.0, 0.5, 0.5, 1.0, 1.0, 4.0), reward: float = 0.0, ends: float = 0.05
    ):
        rng = np.random.default_rng(seed)
        self.T, self.n, self.reward = T, N, reward
        self.x = np.zeros((T + 1, N))
        np.put_along_axis(self.x, rng.random((T + 1, N)).argsort(axis=1)[:, :K], 1.0, axis=1)
        self.expected = (self.x + np.roll(self.x, 1, axis=1) + np.roll(self.x, 7, axis=1)) / 3.0
        self.rewards = rng.normal(size=T) + reward
        self.discounts = np.where(rng.random(T) < ends, 0.0, rng.choice([0.9, 0.95, 1.0], T))
        self.trace_decays = rng.choice([0.0, 0.8, 0.9, 1.0], T, p=[ends, 0.4, 0.4, 0.2 - ends])
        self.alphas = rng.uniform(0.005, 0.02, T)
        self.ratios = rng.choice(ratios, T)
        self.starts = rng.random(T + 1) < ends

    def episodes(self):
        first = 0
        for t in range(self.T):
            ends = self.discounts[t] == 0.0 or self.starts[t + 1] or t == self.T - 1
            if ends and t + 1 > first:
                cut = bool(self.starts[t + 1])  # no transition leads into a row that begins anew
                last = t - cut
                part = slice(first, last + 1)
                given = {"expected": self.expected[first + 1 : last + 2]}
                names = ("rewards", "discounts", "trace_decays", "alphas", "ratios")
                given |= {name: getattr(self, name)[part] for name in names}
                yield Episode(x=self.x[first : last + 2], **given)
                first = t + 1

    def made(self, method, **settings):
        learned = np.cumsum(~self.starts[1:]) - 1
        alphas = {int(k): float(self.alphas[t]) for t, k in enumerate(learned) if not self.starts[t + 1]}
        return method(N, lambda t: alphas[t], 0.5, 0.5, **settings)

    def step(self, learner, t: int, form, mean_form=None) -> None:
        """Go on from row t to row t + 1."""
        if self.starts[t + 1]:
            learner.start(form(self.x[t + 1]))
            return
        more = {} if mean_form is None else {"x_expected": mean_form(self.expected[t + 1])}
        numbers = float(self.discounts[t]), float(self.trace_decays[t]), float(self.ratios[t])
        learner.update(float(self.rewards[t]), form(self.x[t + 1]), *numbers, **more)

    def run(self, learner, first: int, last: int, form, mean_form=None) -> np.ndarray:
        """Go on from row `first` to row `last`."""
        part, rows = slice(first, last), slice(first, last + 1)
        starts = self.starts[rows].copy()
        starts[0] &= first == 0
        numbers = {
            "discounts": self.discounts[part],
            "trace_decays": self.trace_decays[part],
            "ratios": self.ratios[part],
        }
        if mean_form is not None:
            numbers["expected"] = [mean_form(x) for x in self.expected[rows]]
        return learner.run([form(x) for x in self.x[rows]], self.rewards[part], starts=starts, resume=True, **numbers)

    def oracle(self, method) -> np.ndarray:
        """The weights after every step, also after those that are not learned from."""
        found = iter(ORACLES[method](self.episodes(), np.zeros(N)))
        weights = np.zeros((self.T + 1, N))
        for t in range(self.T):
            weights[t + 1] = weights[t] if self.starts[t + 1] else next(found)
        assert next(found, None) is None
        return weights[1:]


def assert_near(actual, wanted, tolerance: float = 1e-10) -> None:
    """At every step, relative to the largest weight so far."""
    scale = np.maximum.accumulate(np.abs(wanted).max(axis=1))
    error = np.abs(np.array(actual) - wanted).max(axis=1) / np.where(scale > 0.0, scale, 1.0)
    assert error.max() <= tolerance


# --- Long streams ---------------------------------------------------------------------------------

STREAMS = {
    "ends and cuts": {},
    "zero or two": {"ratios": (0.0, 2.0), "ends": 0.0},
    "around one": {"ratios": (0.7, 1.3), "ends": 0.0, "reward": 100.0},
    "on-policy": {"ratios": (1.0,), "ends": 0.0, "reward": 100.0},
    "always half": {"ratios": (0.5,), "ends": 0.0, "reward": 100.0},  # w_1 and w_2 would part for ever
    "seldom large": {"ratios": (0.01, 0.01, 0.01, 0.01, 3.5), "ends": 0.001},
}


@METHODS
@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_long_streams_equal_eager_arithmetic(method, stream):
    drawn = Drawn(2, 4000, **stream)
    wanted = drawn.oracle(method)
    assert 0.1 < np.abs(wanted).max() < 1e6
    mean_form = FORMS["pairs"] if method is ProvisionalQ else None
    learner, found = drawn.made(method), []
    learner.start(FORMS["active"](drawn.x[0]))
    for first in range(0, drawn.T, 100):
        if method is ProvisionalTD:  # step by step: to compile its runs over active features takes longer
            for t in range(first, first + 100):
                drawn.step(learner, t, FORMS["active"])
        else:
            drawn.run(learner, first, first + 100, FORMS["active"], mean_form)
        found.append(learner.weights)
    assert_near(found, wanted[99::100], 1e-12)


@METHODS
def test_features_may_change_their_form(method):
    """Entries then leave the lists of both memories, and come back, each by itself."""
    drawn = Drawn(3, 600, ratios=(0.5, 1.0, 1.5), ends=0.01)
    drawn.expected = drawn.x
    forms = [FORMS[name] for name in np.random.default_rng(3).permutation(np.repeat(list(FORMS), 40))]
    learner, found = drawn.made(method), []
    learner.start(forms[0](drawn.x[0]))
    for t in range(drawn.T):
        form = forms[t // 5]
        mean_form = form if form is FORMS["dense"] else FORMS["pairs"]
        drawn.step(learner, t, form, mean_form if method is ProvisionalQ else None)
        found.append(learner.weights)
    assert_near(found, drawn.oracle(method), 1e-12)


@METHODS
def test_many_features_few_of_them_traced(method):
    """Entries fade and leave the list; w is what eager arithmetic has, and no weights stay in the second memory."""
    n, T = 3000, 3000
    rng = np.random.default_rng(4)
    where = (np.cumsum(rng.integers(0, 3, T + 1))[:, None] + np.arange(0, n, n // 3)) % n
    X = np.zeros((T + 1, n))
    np.put_along_axis(X, where, 1.0, axis=1)
    rewards, ratios = rng.normal(size=T), rng.choice([0.6, 1.0, 1.4], T)
    constants = {
        name: np.full(T, value) for name, value in (("discounts", 0.95), ("trace_decays", 0.9), ("alphas", 0.05))
    }
    episode = Episode(X, rewards, ratios=ratios, expected=X[1:], **constants)
    *_, wanted = ORACLES[method]([episode], np.zeros(n))
    learner = method(n, 0.05, 0.9, 0.95)
    if method is ProvisionalQ:
        learner.run(where, rewards, ratios=ratios, expected=[(row, np.ones(3)) for row in where])
    else:
        learner.start(where[0])
        for t in range(T):
            learner.update(rewards[t], where[t + 1], ratio=ratios[t])
    assert_near([learner.weights], wanted[None], 1e-12)
    first, second = memory.each(learner._memory)
    assert first.numbers[two_traces.COUNT] == second.numbers[two_traces.COUNT] < n / 3
    assert 1e-2 * two_traces.MIDDLE > np.abs(first.numbers[two_traces.DECAYED]) > 0.0


# --- Means are checked as features are ------------------------------------------------------------


def test_bad_input_changes_nothing():
    drawn = Drawn(10, 40, ends=0.0)
    x, X, mean = drawn.x[5], drawn.x, drawn.expected
    learner, undisturbed = ProvisionalQ(N, 0.05, 0.9, 0.95), ProvisionalQ(N, 0.05, 0.9, 0.95)
    with pytest.raises(RuntimeError, match="no episode has begun"):
        learner.update(1.0, x, x_expected=x)
    for each in (learner, undisturbed):
        drawn.run(each, 0, 30, FORMS["dense"], FORMS["dense"])
    bad_mean = np.where(np.arange(41)[:, None] == 7, np.nan, mean)
    attempts = [
        ("x_expected must be finite", lambda: learner.update(1.0, x, x_expected=x * np.nan)),
        ("x_expected must have n_features = 30", lambda: learner.update(1.0, x, x_expected=x[1:])),
        ("x_expected has index 30", lambda: learner.update(1.0, np.array([1]), x_expected=np.array([30]))),
        ("as many rows as X, 41, got 40", lambda: learner.run(X, drawn.rewards, expected=mean[1:])),
        (r"expected\[7\] must be finite", lambda: learner.run(X, drawn.rewards, expected=bad_mean)),
        ("ratios must be 40 numbers", lambda: learner.run(X, drawn.rewards, expected=mean, ratios=drawn.ratios[1:])),
    ]
    for message, attempt in attempts:
        with pytest.raises(ValueError, match=message):
            attempt()
    for each in (learner, undisturbed):
        drawn.run(each, 30, 40, FORMS["dense"], FORMS["dense"])
    for name in ("weights", "trace", "provisional_weights"):
        np.testing.assert_array_equal(getattr(learner, name), getattr(undisturbed, name))
