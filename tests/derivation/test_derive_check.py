"""The short check that `derive` makes, and how expressions are written."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from tests.derivation.forward_views import (
    clipped,
    derived,
    td_zero,
    twice_for_floats,
    undiscounted,
    weighted,
)
from trueonline.derivation import Derivation, ForwardViewError, derive, deriving
from trueonline.derivation.quantities import At
from trueonline.derivation.text.writing import KERNEL, TEXT, written
from trueonline.derivation.views import lambda_return, off_policy_lambda_return, ratio_step, watkins


@pytest.mark.parametrize(
    ("view", "step"),
    [
        (clipped, ratio_step),
        (undiscounted, None),
        (watkins, None),
        (weighted, None),
    ],
)
def test_derive_says_how_far_the_views_differ(view, step):
    found = derived(view, step)
    assert found.checked.exact
    assert found.checked.max_error < 1e-12
    assert str(found).endswith(f"differ by at most {found.checked.max_error:.1e} of the largest weight")
    wrong = replace(found, factors=replace(found.factors, d=found.factors.d + At("R", 1)))
    assert wrong.checked.max_error > 1e-3


def test_a_forward_view_that_soon_diverges_is_checked_before_it_does():
    assert derive(lambda k, h, R, V: R[k + 1] + sp.exp(V(k, k + 1))).checked.max_error < 1e-12


def test_a_target_must_be_finite_at_an_end():
    with pytest.raises(ForwardViewError, match="does it divide by a number that may be 0"):
        derive(lambda k, h, R, gamma: R[k + 1] / gamma[k + 1])


def test_a_method_that_is_not_its_forward_view_is_refused_with_the_difference(monkeypatch):
    """Without the checks before it, which find this too."""
    monkeypatch.setattr(deriving, "confirm_later", lambda view, factors: None)
    with pytest.raises(
        ForwardViewError, match=r"at 100 steps of 4 random streams: .* differ by at most \d\.\de[-+]\d\d of the"
    ):
        derive(twice_for_floats)


def test_the_short_check_runs_the_text_of_the_method(monkeypatch):
    found = derived(lambda_return)
    text = found.source()
    monkeypatch.setattr(Derivation, "source", lambda self: text.replace("c = gamma * lam", "c = gamma * lam * lam"))
    assert not replace(found).checked.exact


def test_sums_are_bracketed_where_they_are_multiplied():
    found = dict(derive(td_zero, lambda k, alpha, lam: alpha[k] * (1 + lam)).equations())
    assert found["e_t"] == "c_t·(e_{t−1} − α_t·(1 + λ)·(φ_tᵀe_{t−1})·φ_t) + α_t·(1 + λ)·φ_t"
    found = dict(derive(lambda k, h, R, V: sp.Rational(3, 10) * R[k + 1] + sp.Rational(7, 10) * V(k, k + 1)).equations())
    assert found["θ_{t+1}"] == "θ_t + d_t·e_t + α_t·(0.3·R_{t+1} + 0.7·V_t(S_{t+1}) − V_t(S_t))·φ_t"
    found = dict(derive(lambda k, h, R: -R[k + 1] - 3, lambda k: 1).equations())
    assert found["θ_{t+1}"] == "θ_t + d_t·e_t + (−3 − R_{t+1} − V_t(S_t))·φ_t"
    assert found["e_t"] == "c_t·(e_{t−1} − (φ_tᵀe_{t−1})·φ_t) + φ_t"


def test_a_view_may_be_called_anything():
    for name in ("decay", "class", 'x"""\nprint(1)\n"""'):
        view = lambda k, h, R, gamma: R[k + 1] + gamma[k + 1]  # noqa: E731
        view.__name__ = name
        learner = derive(view).learner(2, 0.5, 0.9, 0.9)  # the text was run: it is checked
    learner.start(0)
    assert learner.update(1.0, 1) == 1.0
    assert learner.weights[0] == pytest.approx(0.95)


def test_learners_and_agents_are_not_mistaken_for_each_other():
    with pytest.raises(ForwardViewError, match="use its agent"):
        derived(watkins).learner  # noqa: B018
    with pytest.raises(ForwardViewError, match="use its agent"):
        derived(watkins).method  # noqa: B018
    with pytest.raises(ForwardViewError, match="no importance ratios"):
        derived(off_policy_lambda_return, ratio_step).agent  # noqa: B018


def test_expressions_are_written_as_they_are_meant():
    """Powers, quotients and functions, in a kernel and as text."""
    gamma, lam, R = At("gamma", 1), At("lam", 0), At("R", 1)
    cases = {
        sp.sqrt(gamma): ("np.sqrt(gamma_next)", "√(γ_{t+1})"),
        gamma ** sp.Rational(3, 2): ("gamma_next**(1.5)", "γ_{t+1}^(3/2)"),
        R / (1 + gamma): ("reward / (1 + gamma_next)", "R_{t+1}/(1 + γ_{t+1})"),
        R / (gamma * lam): ("reward / (gamma_next * lam)", "R_{t+1}/(γ_{t+1}·λ_t)"),
        R * sp.Rational(1, 2): ("0.5 * reward", "R_{t+1}/2"),
        R * sp.Rational(9, 10): ("0.9 * reward", "0.9·R_{t+1}"),
        -0.25 * R: ("-0.25 * reward", "−0.25·R_{t+1}"),
        sp.Min(1, sp.Abs(R)): ("min(1, abs(reward))", "min(1, abs(R_{t+1}))"),
        sp.exp(-lam): ("np.exp(-lam)", "exp(−λ_t)"),
        (gamma - lam) ** 2: ("(gamma_next - lam)**2", "(γ_{t+1} − λ_t)^2"),
    }
    numbers = {"gamma_next": 0.7, "lam": 0.6, "reward": -1.3, "np": np}
    for expression, (code, text) in cases.items():
        assert (written(expression, KERNEL), written(expression, TEXT)) == (code, text)
        value = expression.subs({gamma: 0.7, lam: 0.6, R: -1.3})
        assert eval(code, numbers) == pytest.approx(float(value))
