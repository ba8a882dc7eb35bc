"""The learner of sweeps, against the equations with dense vectors; and its error, which is kept in O(1), against the plain sum."""

import numpy as np
import pytest

from tests.study.own_rules import OFF_POLICY, ON_POLICY, OWN, PLAIN, plain_weights
from trueonline import catalog
from trueonline.study import SweptMethod

ONE = np.ones(1)


class Stream:
    """A trajectory over some features, and what the error is measured by: any numbers that a sweep may meet."""

    def __init__(self, features, trajectory, metric, target, first=None, after=0):
        self.features, (self.states, self.rewards, self.discounts, self.ratios) = features, trajectory
        self.probabilities = np.minimum(0.7 * self.ratios, 1.0) if len(self.ratios) > 1 else ONE
        self.states = self.states.astype(np.int32)
        self.metric, self.target, self.after = metric, target, after
        self.first = np.zeros(len(target)) if first is None else first

    @property
    def x(self):
        """The features of all states that are visited, as vectors."""
        if self.features.ndim == 1:
            return np.eye(len(self.target))[self.features[self.states]]
        return self.features[self.states]

    def errors(self, method, alphas, lams, *, plain_sum=False, second=0.5):
        """The errors of the compiled sweep. `plain_sum` gives B as a full matrix, for which the error is summed at every step."""
        method = method if isinstance(method, SweptMethod) else SweptMethod(method, second=second)
        root = np.linalg.cholesky(self.metric).T.copy()
        if (root == np.diag(np.diag(root))).all() and not plain_sum:
            root = np.diag(root).copy()
        found = np.empty((1, len(alphas), len(lams)))
        arrays, run = (
            (self.features, root, self.target, self.first),
            (self.states, self.rewards, self.discounts, np.column_stack((self.ratios, self.probabilities))),
        )
        method.sweep(arrays, 0.9, self.after, [run], np.array(alphas), np.array(lams), found)
        return found[0]

    def mean_error(self, weights):
        """The error from its definition, of the weights after every step."""
        off = np.array([*weights]) - self.target
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.einsum("ti,ij,tj->t", off, self.metric, off)[self.after :].sum()
        first = self.first - self.target
        return total / (len(self.rewards) - self.after) / (first @ self.metric @ first) if total < np.inf else np.inf


def random_stream(rng, form, steps=60, n=4, scale=1.0, discounts=(0.0, 0.9, 1.0), ratios=True, after=0):
    """States in any order, with themselves as their next ones too; tables where states share features; ends in between."""
    n_states = 2 * n
    if form == "tabular":
        features = np.append(np.arange(n), rng.integers(n, size=n_states - n)).astype(np.int32)
    else:
        features = rng.integers(2, size=(n_states, n)) * 1.0 if form == "binary" else rng.normal(size=(n_states, n))
    trajectory = (
        rng.integers(n_states, size=steps + 1),
        scale * rng.normal(size=steps),
        rng.choice(discounts, p=[0.1, *[0.9 / (len(discounts) - 1)] * (len(discounts) - 1)], size=steps),
        rng.uniform(0.3, 1.7, size=steps) if ratios else ONE,
    )
    square = rng.normal(size=(n, n))
    metric = np.diag(rng.uniform(0.1, 1.0, size=n)) if form == "tabular" else square @ square.T + np.eye(n)
    return Stream(features, trajectory, metric, rng.normal(size=n), rng.normal(size=n), after)


# --- The equations --------------------------------------------------------------------------------

RULES = (*PLAIN, *OWN)


def compiled_method(name):
    second = 0.5 if name not in catalog.METHODS or "second_step_size" in catalog.METHODS[name].settings else None
    return SweptMethod(OWN[name][0] if name in OWN else name, second=second)


def weights_of(name, stream, alpha, lam):
    """The weights of the plain method after every step."""
    given = {"eta": compiled_method(name).second, "ratios": stream.ratios, "probabilities": stream.probabilities}
    return plain_weights(name, stream.x, stream.rewards, stream.discounts, stream.first, alpha, lam, **given)


def test_every_swept_method_has_its_equations_here():
    assert set(catalog.names(swept=True)) == set(PLAIN)


ALPHAS, LAMS = (0.01, 0.3, 1e12), (0.0, 0.6, 1.0)


# Dense features take one imprint a step, and the rules of users are there for the quick error, which tables have.
FORMS = {name: ("tabular", "full B", *(("dense",) if name not in OWN else ())) for name in RULES}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "form"),
    [
        (name, form)
        if form in ("tabular", "dense") or name == "true_online"
        else pytest.param(name, form, marks=pytest.mark.apart)
        for name in RULES
        for form in FORMS[name]
    ],
)
def test_errors_are_those_of_the_equations(name, form, seed):
    rng = np.random.default_rng([seed, *map(ord, form)])
    kind = "tabular" if form in ("tabular", "full B") else "binary" if name == "replace" else "dense"
    stream = random_stream(rng, kind, n=(2, 4, 6)[seed], ratios=name in OFF_POLICY, after=int(rng.choice([0, 20])))
    if form == "full B":
        stream.metric = stream.metric + 0.1
    found = stream.errors(compiled_method(name), ALPHAS, LAMS)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = [[stream.mean_error(weights_of(name, stream, alpha, lam)) for lam in LAMS] for alpha in ALPHAS]
    assert (found[0] < np.inf).all()
    np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_some_cells_are_infinite():
    """Otherwise the test above would not see that they are the same."""
    stream = random_stream(np.random.default_rng(0), "dense", discounts=(0.0, 0.9))
    found = stream.errors("accumulate", ALPHAS, LAMS)
    assert np.isinf(found[2]).all()
    assert np.isfinite(found[:2]).all()


# --- The error in O(1) ----------------------------------------------------------------------------

# Each kind of memory and each operation. The other rules combine the same operations.
DISTINCT = ("true_online", "replace", "true_online_gtd", *OWN)
TABULAR = [
    name if name in DISTINCT else pytest.param(name, marks=pytest.mark.apart)
    for name in (*ON_POLICY, "gtd", "true_online_gtd", "true_online_emphatic", "true_online_differential", *OWN)
]


def check_quick(stream, name, alphas, lams, rtol=1e-10):
    """The error that is kept in O(1) is the plain sum over the weights, which are the same bits in both.

    Weights are rounded, so that an error below 1e-20 of the first one has fewer digits in either form.
    """
    quick = stream.errors(compiled_method(name), alphas, lams)
    plain = stream.errors(compiled_method(name), alphas, lams, plain_sum=True)
    np.testing.assert_array_equal(np.isinf(quick), np.isinf(plain))
    np.testing.assert_allclose(quick, plain, rtol=rtol, atol=1e-21)
    assert not np.isnan(quick).any()
    return plain


@pytest.mark.parametrize("seed", range(9))
@pytest.mark.parametrize("name", TABULAR)
def test_the_quick_error_is_the_plain_sum_on_random_streams(name, seed):
    rng = np.random.default_rng(seed)
    discounts = [(0.0, 0.9), (0.0, 1.0), (0.0, 0.5, 1.0)][seed % 3]
    steps = int(rng.integers(1, 400))
    stream = random_stream(
        rng, "tabular", steps, int(rng.integers(1, 12)), float(rng.choice([1.0, 1e-3, 1e4])), discounts, after=steps // 2
    )
    check_quick(
        stream, name, 10.0 ** rng.uniform(-3, 0.5, size=4), rng.choice([0.0, 0.5, 0.99, 1.0], size=3, replace=False)
    )


def long_stream(rng, n, steps=20_000, scale=None, discount=0.99, after=0):
    scale = np.ones(steps) if scale is None else scale
    trajectory = rng.integers(n, size=steps + 1), scale * rng.normal(size=steps), np.full(steps, discount), ONE
    metric = np.diag(rng.dirichlet(np.ones(n)))
    return Stream(np.arange(n, dtype=np.int32), trajectory, metric, rng.normal(size=n), after=after)


@pytest.mark.parametrize("after", [0, 19_000])
@pytest.mark.parametrize("n", [2, 30])
@pytest.mark.parametrize("name", TABULAR)
def test_long_runs_lose_no_digits(name, n, after):
    stream = long_stream(np.random.default_rng(n), n, after=after)
    plain = check_quick(stream, name, (0.001, 0.1, 0.4), (0.0, 0.9, 1.0))
    assert np.isfinite(plain[0, 0])


@pytest.mark.parametrize("after", [0, 19_000])
@pytest.mark.parametrize("name", ["true_online", "two rebases"])
def test_nothing_is_lost_where_the_trace_never_fades(name, after):
    """γλ = 1: what is owed is never paid."""
    stream = long_stream(np.random.default_rng(4), 10, discount=1.0, after=after)
    plain = check_quick(stream, name, (1e-5, 1e-4), (1.0, 0.9999))
    assert np.isfinite(plain).all()


@pytest.mark.parametrize("name", ["true_online", "replace"])
@pytest.mark.parametrize("after", [0, 15_000, 19_990])
def test_weights_may_grow_to_a_million_and_come_back(name, after):
    scale = np.ones(20_000)
    scale[5_000:7_000] = 1e7
    stream = long_stream(np.random.default_rng(5), 10, scale=scale, discount=0.5, after=after)
    plain = check_quick(stream, name, (0.02, 0.3), (0.0, 0.5, 0.9))
    assert (plain > 1e6).any() == (after == 0)


@pytest.mark.parametrize("after", [0, 500, 1_000, 19_999])
@pytest.mark.parametrize("name", ["true_online", "replace"])
def test_an_error_that_converges_to_zero_keeps_its_digits(name, after):
    """A ring without noise: the error falls to that of rounding, which sums of the first errors would not show."""
    n, steps, discount = 6, 20_000, 0.9
    rewards = np.arange(1.0, n + 1)
    values = np.linalg.solve(np.eye(n) - discount * np.roll(np.eye(n), 1, axis=1), rewards)
    states = np.arange(steps + 1) % n
    trajectory = states, rewards[states[:-1]], np.full(steps, discount), ONE
    stream = Stream(np.arange(n, dtype=np.int32), trajectory, np.diag(np.full(n, 1.0 / n)), values, after=after)
    plain = check_quick(stream, name, (0.1, 0.3), (0.0, 0.5, 0.9))
    assert (plain < 1e-24).all() == (after == 19_999)


@pytest.mark.parametrize("name", TABULAR)
def test_a_state_that_is_its_own_next_state_is_counted_once(name):
    rng = np.random.default_rng(6)
    stream = random_stream(rng, "tabular", 500, 5, discounts=(0.0, 0.9), after=400)
    stream.states[1::2] = stream.states[:-1:2]
    check_quick(stream, name, (0.01, 0.3), (0.0, 0.7, 1.0))


def test_the_second_rebase_of_a_step_may_undo_the_scale_of_the_first():
    """At γλ = 1, `two_rebases` rebases by 1/256 and by 256 in a step, and what was owed in between was paid."""
    stream = long_stream(np.random.default_rng(7), 5, steps=50, discount=1.0)
    check_quick(stream, "two rebases", (0.01, 0.1), (1.0,))


@pytest.mark.parametrize("rare", [1e-6, 1e-10, 1e-14])
def test_a_trace_that_vanishes_from_an_entry_that_weighs_much_leaves_the_digits_of_the_others(rare):
    """With α = 2 and γ = λ = 1 a second visit takes the dutch trace away, and R falls by 14 digits. The next reward needs them.

    Entry 0 counts most in the error and is right from the first. Entry 2, where the reward comes, counts next to nothing.
    """
    states, rewards = np.array([1, 0, 0, 2, 2]), np.array([0.0, 0.0, 0.0, 0.1])
    metric, target = np.diag([1.0, rare, 1e-200]), np.array([0.0, 1.0, 5.0])
    stream = Stream(np.arange(3, dtype=np.int32), (states, rewards, np.ones(4), ONE), metric, target, after=3)
    found = stream.errors("true_online", (2.0,), (1.0,))
    np.testing.assert_allclose(found, [[0.64]], rtol=1e-12)
    np.testing.assert_allclose(found, [[stream.mean_error(weights_of("true_online", stream, 2.0, 1.0))]], rtol=1e-12)
