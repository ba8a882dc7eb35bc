"""A mixture equals its definition at every step, keeps its regret below its bound, and resumes bit for bit."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import mixtures
from trueonline.streams.mixture import Expert, FeatureSet, Mixture
from trueonline.streams.mixture.mixing import DELAY
from trueonline.streams.mixture.mixture_kernel import RUN

SETS = [FeatureSet("one", 5, 1), FeatureSet("two", 12, 3)]
EXPERTS = [
    Expert("hold"),
    Expert("mean"),
    Expert("hold", "one", 0.3, 0.9),
    Expert("mean", "two", 0.1, 1.0),
    Expert("hold", "two", 1.0, 0.5),
    Expert("mean", "one", 0.03, 0.0),
]
AS_NUMBERS = [
    (0,), (1,), (0, 0, 1, 5, 0.3, 0.9), (1, 1, 3, 12, 0.1, 1.0), (0, 1, 3, 12, 1.0, 0.5), (1, 0, 1, 5, 0.03, 0.0),
]  # fmt: skip


def stream(seed, T=300, irregular=True):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 5, T), *(rng.integers(4 * k, 4 * k + 4, T) for k in range(3))])
    x = np.cumsum(rng.standard_normal(T)) + 10.0 * rng.standard_normal()
    bases = np.column_stack([x, np.cumsum(x) / np.arange(1, T + 1)])
    gammas = rng.uniform(0.5, 1.0, T) if irregular else np.full(T, 0.9)
    elapsed = rng.uniform(0.0, 3.0, T) if irregular else np.ones(T)
    starts = rng.random(T) < 0.02
    return X, x, bases, gammas, starts, elapsed


@pytest.mark.parametrize(
    ("seed", "looks", "memory", "room"),
    [(0, (0.8, 0.37, 0.1), 5000.0, 1024), (1, (0.5,), math.inf, 8), (2, (0.9, 0.0), 50.0, 16)],
)
def test_the_mixture_equals_its_definition_at_every_step(seed, looks, memory, room):
    X, x, bases, gammas, starts, elapsed = stream(seed)
    mixture = Mixture(SETS, EXPERTS, ["hold", "mean"], looks, memory, room)
    F = mixtures.forecasts(AS_NUMBERS, X, x, bases, gammas, starts, elapsed)
    expected, weights, _ = mixtures.mix(F, x, gammas, starts, looks, memory, room, naive=2)
    for t in range(len(x)):
        row = slice(t, t + 1)
        p = mixture.run(X[row], x[row], bases[row], gammas[row], starts[row], elapsed[row])
        np.testing.assert_allclose(p[0], expected[t], rtol=1e-5, atol=1e-5)  # weights are in single precision
        np.testing.assert_allclose(mixture.weights, weights[t], atol=1e-4)


def test_blocks_make_no_difference_and_a_state_resumes_bit_for_bit():
    X, x, bases, gammas, starts, elapsed = stream(3, T=500)
    whole = Mixture(SETS, EXPERTS, ["hold", "mean"])
    expected = whole.run(X, x, bases, gammas, starts, elapsed)
    mixture, parts = Mixture(SETS, EXPERTS, ["hold", "mean"]), []
    for begin, end in ((0, 1), (1, 7), (7, 200), (200, 201), (201, 500)):
        block = slice(begin, end)
        parts.append(mixture.run(X[block], x[block], bases[block], gammas[block], starts[block], elapsed[block]))
        again = Mixture(SETS, EXPERTS, ["hold", "mean"])
        again.restore(mixture.state())
        mixture = again
    np.testing.assert_array_equal(np.concatenate(parts), expected)
    np.testing.assert_array_equal(mixture.weights, whole.weights)


@given(
    seed=st.integers(0, 2**32),
    scales=st.lists(st.sampled_from([0.0, 1e-6, 1.0, 1e6]), min_size=1, max_size=4),
    gamma=st.sampled_from([0.0, 0.5, 0.9]),
    memory=st.sampled_from([20.0, 1000.0, math.inf]),
)
@settings(max_examples=25, deadline=None)
def test_the_regret_stays_below_its_bound_whatever_the_stream_does(seed, scales, gamma, memory):
    rng = np.random.default_rng(seed)
    T, names = 60 * len(scales), list("abcd")
    bases = rng.standard_normal((T, 4)) * np.repeat(scales, 60)[:, None]
    # The values spite the mixture: they go where its forecast of the moment is not.
    mixture = Mixture([], [Expert(name) for name in names], names, looks=(0.5,), memory=memory)
    values, forecast = np.zeros(T), 0.0
    for t in range(T):
        values[t] = -math.copysign(np.abs(bases[t]).max(), forecast)
        row = slice(t, t + 1)
        forecast = mixture.run(np.empty((1, 0), int), values[row], bases[row], gamma)[0]
    _, _, history = mixtures.mix(bases, values, np.full(T, gamma), np.zeros(T, bool), (0.5,), memory, 1024, naive=4)
    fade = 1.0 - 1.0 / memory if math.isfinite(memory) else 1.0
    regret = np.zeros(4)
    for _, own, losses in history:
        regret = fade * regret + own - losses
    assert (regret <= mixture.regret_bound() * (1.0 + 1e-9) + 1e-9).all()


def test_read_only_arrays_and_other_types_need_no_kernel_of_their_own():
    X, x, bases, gammas, starts, elapsed = stream(6, T=50)
    mixture, other = Mixture(SETS, EXPERTS, ["hold", "mean"]), Mixture(SETS, EXPERTS, ["hold", "mean"])
    expected, compiled = mixture.run(X, x, bases, gammas, starts, elapsed), len(RUN.signatures)
    strange = [X.astype(np.int32), np.repeat(x, 2)[::2], np.asfortranarray(bases), gammas, starts.copy(), elapsed]
    for array in strange:
        array.flags.writeable = False
    np.testing.assert_array_equal(other.run(*strange), expected)
    assert len(RUN.signatures) == compiled


def test_with_two_looks_k_is_not_zero_even_if_forecasts_come_true_at_once():
    names = list("abc")
    for looks, zero in (((0.5,), True), ((0.9, 0.1), False)):
        rng = np.random.default_rng(0)
        bases, x = rng.normal(size=(200, 3)), rng.normal(size=200)
        mixture = Mixture([], [Expert(name) for name in names], names, looks)
        mixture.run(np.empty((200, 0), int), x, bases, 0.0)
        assert (abs(mixture.state()["carried"][DELAY]) < 1e-9) == zero


def test_shaping_with_any_base_changes_no_optimal_answer():
    """A tabular chain: learners on three bases, of which one is nonsense, find the mean over the horizon of every state."""
    rng = np.random.default_rng(5)
    values, nonsense = np.array([1.0, -2.0, 5.0]), np.array([40.0, -30.0, 7.0])
    gamma, T = 0.8, 60_000
    states = np.cumsum(rng.choice([1, 2], T)) % 3
    P = np.array([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]])
    exact = np.linalg.solve(np.eye(3) - gamma * P, (1.0 - gamma) * P @ values)
    x = values[states]
    bases = np.column_stack([x, np.zeros(T), nonsense[states]])
    for base in ("value", "zero", "nonsense"):
        experts = [Expert("zero"), Expert(base, "state", 0.01, 0.9)]
        mixture = Mixture([FeatureSet("state", 3, 1)], experts, ["value", "zero", "nonsense"])
        p = mixture.run(states[:, None], x, bases, gamma)
        late = slice(T // 2, None)
        learned = [p[late][states[late] == s].mean() for s in range(3)]
        np.testing.assert_allclose(learned, exact, atol=0.06)


def test_bad_settings_and_blocks_are_refused_before_anything_changes():
    with pytest.raises(ValueError, match="base 'nothing'; known are hold"):
        Mixture(SETS, [Expert("nothing")], ["hold"])
    with pytest.raises(ValueError, match="features 'three'"):
        Mixture(SETS, [Expert("hold"), Expert("hold", "three")], ["hold"])
    with pytest.raises(ValueError, match="at least one naive expert"):
        Mixture(SETS, [Expert("hold", "one")], ["hold"])
    with pytest.raises(ValueError, match="falling"):
        Mixture(SETS, EXPERTS, ["hold", "mean"], looks=(0.1, 0.5))
    mixture = Mixture(SETS, EXPERTS, ["hold", "mean"])
    X, x, bases, gammas, *_ = stream(0, T=10)
    before = mixture.state()
    wrong = X.copy()
    wrong[3, 0] = 5
    for arguments, message in (
        ((wrong, x, bases, gammas), "X must hold integers"),
        ((X, np.full(10, np.nan), bases, gammas), "values must be finite"),
        ((X, x, bases[:, :1], gammas), "must have the shapes"),
        ((X, x, bases, 1.5), "discounts must be from 0 to 1"),
    ):
        with pytest.raises(ValueError, match=message):
            mixture.run(*arguments)
    for name, array in mixture.state().items():
        np.testing.assert_array_equal(array, before[name])


def test_a_damaged_state_is_refused():
    X, x, bases, gammas, starts, elapsed = stream(4, T=100)
    mixture = Mixture(SETS, EXPERTS, ["hold", "mean"])
    mixture.run(X, x, bases, gammas, starts, elapsed)
    state = mixture.state()
    lacking = {name: array for name, array in state.items() if name != "ring"}
    for ring in ({}, {"ring": state["ring"][:0]}):
        with pytest.raises(ValueError, match="ring"):
            Mixture(SETS, EXPERTS, ["hold", "mean"]).restore({**lacking, **ring})
    for name, spoil in {
        "ring": lambda a: a + 5000,
        "last": lambda a: a + 100,
        "numbers": lambda a: a[:-1],
        "traces": lambda a: a * np.nan,
        "table": lambda a: a * np.nan,
        "slots": lambda a: a - 3.0,
        "forecasts": lambda a: a[:-1],
    }.items():
        with pytest.raises(ValueError, match=r"does not fit|must be a whole number"):
            Mixture(SETS, EXPERTS, ["hold", "mean"]).restore({**state, name: spoil(state[name])})
