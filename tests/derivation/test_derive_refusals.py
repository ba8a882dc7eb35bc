"""Functions that have no backward view, or are no forward views: what is said of them."""

import math
import numbers
import pickle
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import sympy as sp

from tests.derivation.forward_views import _product, derived, td_zero, twice_for_floats
from trueonline.derivation import ForwardViewError, NotDerivableError, derive
from trueonline.derivation.quantities import At
from trueonline.derivation.views import gamma_return, lambda_return, off_policy_lambda_return, omega_return, ratio_step

# --- Forward views, as papers write them ----------------------------------------------------------


def _twice(k, h, R, V):
    return R[h] if k + 1 == h else R[k + 1] + (_twice(k + 1, h, R, V) + _twice(k + 1, h, R, V)) / 2


def two_steps(k, h, R, V, gamma, most=2):
    n = min(most, h - k)
    return sum(gamma ** (i - 1) * R[k + i] for i in range(1, n + 1)) + gamma**n * V(k + n - 1, k + n)


def newest_weights(k, h, R, V, gamma, lam):
    """The λ-return with all values from the newest weights."""
    G = [
        sum(gamma ** (i - 1) * R[k + i] for i in range(1, n + 1)) + gamma**n * V(h - 1, k + n)
        for n in range(1, h - k + 1)
    ]
    return (1 - lam) * sum(lam**n * g for n, g in enumerate(G[:-1])) + lam ** (h - k - 1) * G[-1]


# --- What cannot be -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("view", "k", "h"), [(gamma_return, 0, 2), (omega_return, 0, 2), (newest_weights, 0, 2), (two_steps, 0, 2)]
)
def test_what_does_not_factor_is_refused_with_the_place(view, k, h):
    with pytest.raises(NotDerivableError, match=f"at k = {k}, h = {h} ") as refused:
        derive(view)
    assert (refused.value.k, refused.value.h) == (k, h)
    assert refused.value.terms != 0


def test_a_target_may_not_change_its_mind_later():
    """Seven steps look like Monte Carlo for the first horizons."""
    with pytest.raises(NotDerivableError, match=r"at k = 0, h = 7 this is left of U_0\^8 − U_0\^7"):
        derive(lambda k, h, R, V, gamma: two_steps(k, h, R, V, gamma, most=7))
    with pytest.raises(
        NotDerivableError, match=r"the first target changes with time \(U_0\^1 = 2\*R\[1\], U_1\^2 = R\[2\]"
    ):
        derive(lambda k, h, R: R[k + 1] * (2 if k == 0 else 1))


class OfTime:
    """A quantity that is a number made of the time."""

    def __init__(self, number):
        self.number = number

    def __getitem__(self, j):
        return self.number(j)


NO_BACKWARD_VIEW = "no backward view"

INVERSE = OfTime(lambda j: 1 / (j + 1))


def odd_updates_do_not_grow(k, h, R, V, gamma, lam):
    return lambda_return(k, k + 1 if k % 2 else h, R, V, gamma, lam)


def odd_updates_grow_otherwise(k, h, R, V, gamma, lam):
    return lambda_return(k, h, R, V, gamma, OfTime(lambda j: 1 / 2) if k % 2 else lam)


@pytest.mark.parametrize(
    ("view", "shown"),
    [
        (
            lambda k, h, R, V, gamma: lambda_return(k, h, R, V, gamma, INVERSE),
            "the factor c_t changes with time (c_1 = gamma[1]/2, c_2 = gamma[2]/3, …)",
        ),
        (
            lambda k, h, R, V, lam: lambda_return(k, h, R, V, INVERSE, lam),
            "the first target changes with time (U_0^1 = R[1] + V(0, 1)/2, U_1^2 = R[2] + V(1, 2)/3, …)",
        ),
        (
            lambda k, h, R: sum(_product(INVERSE[j] for j in range(k + 1, i)) * R[i] for i in range(k + 1, h + 1)),
            "the factor c_t changes with time (c_1 = 1/2, c_2 = 1/3, …)",
        ),
        (
            lambda k, h, R: R[k + 1] + sum(R[i] / i for i in range(k + 2, h + 1)),
            "the factor d_t changes with time (d_1 = R[2]/2, d_2 = R[3]/3, …)",
        ),
        (
            lambda k, h, R, V, gamma: lambda_return(k, h, R, V, gamma, OfTime(lambda j: j % 2)),
            "the growth of the target changes with time (the first of U_0 = gamma[1]*",
        ),
        (odd_updates_do_not_grow, "the growth of the target changes with time (U_0^3 − U_0^2 = "),
        (
            lambda k, h, R, V, gamma: lambda_return(k, h, R, V, gamma, OfTime(lambda j: 0.5 if j < 20 else 0.25)),
            "the growth of the target changes with time (with numbers, U_19^21 − U_19^20 differs by ",
        ),
    ],
)
def test_a_weight_made_of_the_time_is_told_apart_from_a_target_that_does_not_factor(view, shown):
    """Such a target has a backward view, whose factors depend on the time. The message says how to write it."""
    with pytest.raises(NotDerivableError) as refused:
        derive(view)
    message = str(refused.value)
    assert shown in message
    assert "Write lam[j] or gamma[j]" in message
    assert "update(…, trace_decay=…) or update(…, discount=…)" in message
    assert NO_BACKWARD_VIEW not in message


@pytest.mark.parametrize(
    "view",
    [
        odd_updates_grow_otherwise,
        lambda k, h, R: sum(R[i] / (i - k) for i in range(k + 1, h + 1)),  # of the age, not of the time
        lambda k, h, R, V, gamma, lam: INVERSE[k] * newest_weights(k, h, R, V, gamma, lam),
        lambda k, h, R, V, gamma: two_steps(k, h, R, V, gamma, most=7),
        lambda k, h, R, V, gamma, lam: lambda_return(k, min(h, k + 60), R, V, gamma, lam),
    ],
)
def test_a_target_that_does_not_factor_has_no_backward_view(view):
    with pytest.raises(NotDerivableError, match="So it has no backward view with one trace"):
        derive(view)


def test_a_weight_that_is_given_with_each_transition_does_what_one_of_the_time_would():
    """The advice of the message, taken: λ_j = 1/(j + 1) through `lam[j]`, against the weights by their definition."""
    rng = np.random.default_rng(5)
    X, rewards = rng.normal(size=(13, 3)), rng.normal(size=12)
    learner = derived(off_policy_lambda_return, ratio_step).learner(
        3, 0.1, 0.9, 0.95
    )  # ratios are 1: it is `lambda_return`
    learner.start(X[0])
    for t in range(12):
        learner.update(rewards[t], X[t + 1], trace_decay=INVERSE[t + 1])
    thetas = [np.zeros(3)]
    R, gamma = OfTime(lambda j: rewards[j - 1]), OfTime(lambda j: 0.95)
    for h in range(1, 13):
        theta = np.zeros(3)
        for k in range(h):
            target = lambda_return(k, h, R, lambda i, j: thetas[i] @ X[j], gamma, INVERSE)
            theta = theta + 0.1 * (target - theta @ X[k]) * X[k]
        thetas.append(theta)
    np.testing.assert_allclose(learner.weights, thetas[-1], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "view",
    [
        twice_for_floats,
        lambda k, h, R: 1 if isinstance(R[k + 1], float) else 2,
        lambda k, h, gamma: 1 if isinstance(gamma[k + 1], numbers.Real) else 2,
    ],
)
def test_a_function_that_treats_numbers_otherwise_than_symbols_is_told_so(view):
    with pytest.raises(NotDerivableError, match="computes the same from numbers as from symbols"):
        derive(view)


def test_a_refusal_can_be_pickled():
    with pytest.raises(NotDerivableError) as refused:
        derive(two_steps)
    copied = pickle.loads(pickle.dumps(refused.value))
    assert (str(copied), copied.k, copied.h, copied.terms) == (str(refused.value), 0, 2, refused.value.terms)


@pytest.mark.parametrize(
    ("view", "said"),
    [
        (lambda k, h, R: R[h + 1], "beyond the horizon"),
        (lambda k, h, V: V(h, h), "beyond the horizon"),
        (lambda k, h, R: R[k - 5], "before the beginning"),
        (lambda k, h, R: R[0.5], "whole number"),
        (lambda k, h, Q: 0, "no 'Q'"),
        (lambda k, t, R: 0, "first arguments must be k and h"),
        (lambda k, h, R: R[h] / (h - h), "finite expression"),
        (lambda k, h, R: 1 / 0, "ZeroDivisionError"),
        (lambda k, h, R: "R[1]", "finite expression"),
        (lambda k, h, R: None, "finite expression"),
        (3, "must be a function"),
        (lambda k, h, R: R[k + 1] if R[k + 1] > 0 else 0, "use Min and Max"),
        (lambda k, h, R: R[k + 1] if R[k + 1] == 0 else 0, r"may not depend on whether R\[3\] is 0"),
        (lambda k, h, gamma: 1 if gamma[k + 1] else 0, "may not depend on whether"),
        (lambda k, h, R: 1 if R[k + 1] != 1.5 else 0, "may not depend on whether"),
        (lambda k, h, R, V: 1 if R[k + 1] == V(k, k + 1) else 0, r"may not depend on whether R\[3\] is V\(2, 3\)"),
        (lambda k, h, R: {0: 1}.get(R[k + 1], 2), r"the place of R\[3\] in a dictionary, a set or a cache"),
        (lambda k, h, R: {3 * R[k + 1]: 1}[3 * R[k + 1]], r"the place of 3\*R\[3\] in a dictionary"),
        (lambda k, h, R: R[k + 1] in {0, 1}, r"the place of R\[3\] in a dictionary"),
        (lambda k, h, R: R[k + 1] * (hash(R[k + 1]) % 2), r"the place of R\[3\] in a dictionary"),
        (cache(lambda k, h, R: R[k + 1]), "the place of R in a dictionary"),
        (lambda k, h, R: sp.Float("1e-400") * R[k + 1], "beyond the range of floats"),
        (lambda k, h, R: Fraction(1, 10**400) * R[k + 1], "beyond the range of floats"),
        (lambda k, h, R: 1e-200 * (1e-200 * R[k + 1]), "beyond the range of floats"),
        (lambda k, h, rho: rho, r"rho without an index; write rho\[j\]"),
        (lambda k, h, gamma: gamma * gamma[k + 1], "gamma with and without an index"),
        (lambda k, h, V: V(k), r"takes two times: V\(i, j\)"),
        (lambda k, h, V: V[k], r"takes two times: V\(i, j\)"),
        (lambda k, h, R: math.exp(R[k + 1]), "sympy.exp"),
        (lambda k, h, V_max, rho: rho[k] * V_max(k, k + 1), "agents, which have no importance ratios"),
        (_twice, "does it call itself twice"),
        (lambda k, h, R: R[k + 1] * sp.Symbol("x"), "none of the arguments"),
        (lambda k, h, lam: lam[k], r"needs lam\[0\], which is before the beginning"),
        (lambda k, h, V: V(k - 1, k), r"needs V\(-1, 0\), which is before the beginning"),
        (lambda k, h, R: sp.sin(R[k + 1]), "got sin"),
        (lambda k, h, V: V(h - 1, h - 2), r"needs V\(0, -1\), which is before the beginning"),
        (lambda k, h, V, V_max: V(k, k + 1) + V_max(k, k + 1), "not from both"),
    ],
)
def test_what_is_no_forward_view_is_said(view, said):
    with pytest.raises(ForwardViewError, match=said):
        derive(view)


def test_what_a_step_size_may_not_be():
    for step, said in (
        (lambda k, V: V(k, k), "no 'V'"),
        (lambda k, lam: lam[k], "before the beginning"),
        (lambda k: "x(", "finite expression"),
    ):
        with pytest.raises(ForwardViewError, match=said):
            derive(td_zero, step)
    with pytest.raises(
        NotDerivableError, match=r"the step-size changes with time \(β_0 = alpha\[0\], .* a schedule as step_size"
    ):
        derive(td_zero, lambda k, alpha: alpha[k] * (k + 1))


@pytest.mark.parametrize(
    ("view", "step"),
    [
        (lambda k, h, R, V, gamma: td_zero(k, h, R, V, gamma) + int(k >= 10), None),
        (lambda k, h, R, V, gamma, lam: lambda_return(k, h, R, V, gamma, lam) + int(k >= 300), None),
        (td_zero, lambda k, alpha: alpha[k] / (1 if k < 100 else 2)),
        (lambda k, h, R, V, gamma, lam: lambda_return(k, min(h, k + 60), R, V, gamma, lam), None),
        (twice_for_floats, None),
        (td_zero, lambda k, alpha: alpha[k] * int(k != 63)),
        (td_zero, lambda k, alpha: alpha[k] * int(k != 999)),
        (lambda k, h, R, V, gamma: td_zero(k, h, R, V, gamma) + int(k == 997), None),
        (lambda k, h, R: R[k + 1] * (1 + 5e-10 * (k >= 10)), None),
        (lambda k, h, R: 5e-10 * R[k + 1] * (1 + (k >= 10)), None),
        (lambda k, h, R, V, gamma, lam: lambda_return(k, h, R, V, gamma, lam) + R[h] * int(h == 777 and k == 775), None),
        (lambda k, h, R: R[k + 1] + (1 if 1 + R[k + 1] == 1 else 0), None),
        (lambda k, h, R: R[k + 1] * (2 if R[k + 1] - 3.75 == 0 else 1), None),
        (lambda k, h, R, V: V(k, k + 1) * (2 if V(k, k + 1) - 0.625 == 0 else 1), None),
    ],
)
def test_what_shows_itself_late_is_seen(view, step):
    with pytest.raises(NotDerivableError, match="with numbers"):
        derive(view, step)


def test_nothing_is_divided_by_that_may_be_zero():
    """The target divides by 1 + ρ; to divide by ρ is another thing."""

    def bounded(k, h, R, rho):
        return sum(_product(rho[j] / (1 + rho[j]) for j in range(k, i)) * R[i] for i in range(k + 1, h + 1))

    found = derive(bounded)
    assert found.checked.exact  # with ρ = 0 among the ratios

    def discounted(k, h, R, gamma):
        return sum(_product(gamma[j] for j in range(k + 1, i)) * R[i] / (1 + gamma[i - 1]) for i in range(k + 2, h + 1))

    found = derive(discounted)
    assert At("gamma", 0) in found.factors.d.free_symbols
    assert found.checked.exact


def test_a_beginning_divides_by_nothing():
    """λ of the state left is not known there; c may divide by it all the same, as the target does."""

    def inverse(k, h, R, gamma, lam):
        return sum(_product(gamma[j] / (1 + lam[j]) for j in range(k + 1, i)) * R[i] for i in range(k + 1, h + 1))

    found = derive(inverse)
    assert " if gamma > 0.0 else 0.0" in found.source()
    assert found.checked.exact


def test_factors_may_be_of_the_state_entered():
    """b_k = 1 − λ_{k+1}, c_t = γ_{t+1}, and a step-size with γ_{k+1}: all known when the transition is."""

    def entered(k, h, R, gamma, lam):
        more = (_product(gamma[j + 1] for j in range(k + 1, i)) * R[i] for i in range(k + 2, h + 1))
        return R[k + 1] + (1 - lam[k + 1]) * sum(more)

    found = derive(entered, lambda k, alpha, gamma: alpha[k] * (2 - gamma[k + 1]))
    assert found.factors.b == 1 - At("lam", 1)
    assert found.factors.c == At("gamma", 1)
    assert found.checked.exact


def test_floats_are_taken_for_the_fractions_they_stand_for():
    found = derive(lambda k, h, R: sum(0.9 ** (i - k - 1) * R[i] for i in range(k + 1, h + 1)))
    assert dict(found.equations())["c_t"] == "0.9"
    assert found.checked.exact
    with pytest.raises(NotDerivableError, match=r"give fractions, Fraction\(7, 10\) for 0\.7"):
        derive(lambda k, h, R: sum(0.123456789 ** (i - k - 1) * R[i] for i in range(k + 1, h + 1)))
    with pytest.raises(NotDerivableError, match=r"cannot tell whether .* floats are rounded: .* sympy\.sqrt\(2\)"):
        derive(lambda k, h, R, V, gamma: lambda_return(k, h, R, V, gamma, OfTime(lambda j: 1 / math.sqrt(j + 1))))


@pytest.mark.parametrize("number", [5e-10, 1 - 1e-12, 0.123456789, 1.2345678901234567, 5e-324, 1.5e100])
def test_a_float_is_kept(number):
    found = derive(lambda k, h, R: number * R[k + 1])
    assert f"({number!r}·R_{{t+1}} − V_t(S_t))" in dict(found.equations())["θ_{t+1}"]
    assert f"{number!r} * reward" in found.source()


def test_a_float_may_be_rounded():
    """0.99⁵ is 0.9509900499, but not as a float."""
    assert 0.99**5 != 0.9509900499
    found = derive(lambda k, h, R: sum(0.99 ** (i - k - 1) * R[i] for i in range(k + 1, h + 1)))
    assert dict(found.equations())["c_t"] == "0.99"
    assert dict(derive(lambda k, h, R: 1 / 3 * R[k + 1]).equations())["θ_{t+1}"].endswith("R_{t+1}/3 − V_t(S_t)))·φ_t")


def test_numbers_of_other_libraries_are_no_comparison():
    numbers = Fraction(1, 10), np.float64(0.1), sp.Rational(1, 10)
    found = derive(lambda k, h, R: sum(number * R[k + 1] + R[k + 1] * number for number in numbers))
    assert "0.6·R_{t+1}" in dict(found.equations())["θ_{t+1}"]


def test_quantities_go_into_arrays_matrices_and_functions_of_sympy():
    def view(k, h, R, V, gamma):
        discounted = np.array([1, gamma]) * np.array([R[k + 1], V(k, k + 1)])
        squared = (sp.Matrix([[R[k + 1]]]) * R[k + 1])[0, 0]
        return discounted.sum() + abs(-sp.sqrt(squared)) - sp.Abs(+R[k + 1])

    assert "α_t·(R_{t+1} + γ·V_t(S_{t+1}) − V_t(S_t))" in dict(derive(view).equations())["θ_{t+1}"]
