"""From forward views to backward views: what is known is found again, what cannot be is refused, and what is found is exact."""

import inspect
import itertools

import numpy as np
import pytest

import trueonline as to
from trueonline.derivation import ForwardViewError, NotDerivableError, derive
from trueonline.methods import true_online_td_varying

sp = pytest.importorskip("sympy")


# --- Forward views, as papers write them --------------------------------------------------------------


def returns(k, n, R, V, gamma):
    """G_k^{(n)}, with γ of each state."""
    total, weight = 0, 1
    for i in range(k + 1, k + n + 1):
        total, weight = total + weight * R[i], weight * gamma[i]
    return total + weight * V(k + n - 1, k + n)


def lambda_return(k, h, R, V, gamma, lam):
    total, weight = 0, 1
    for n in range(1, h - k):
        total, weight = total + weight * (1 - lam[k + n]) * returns(k, n, R, V, gamma), weight * lam[k + n]
    return total + weight * returns(k, h - k, R, V, gamma)


def constant_lambda_return(k, h, R, V, gamma, lam):
    G = [
        sum(gamma ** (i - 1) * R[k + i] for i in range(1, n + 1)) + gamma**n * V(k + n - 1, k + n)
        for n in range(1, h - k + 1)
    ]
    return (1 - lam) * sum(lam**n * g for n, g in enumerate(G[:-1])) + lam ** (h - k - 1) * G[-1]


def monte_carlo(k, h, R, gamma):
    return sum(gamma ** (i - k - 1) * R[i] for i in range(k + 1, h + 1))


def td_zero(k, h, R, V, gamma):
    return R[k + 1] + gamma[k + 1] * V(k, k + 1)


def watkins(k, h, R, V_max, gamma, lam, greedy):
    going = lam[k + 1] * greedy[k + 1] if k + 1 < h else 0
    rest = going * watkins(k + 1, h, R, V_max, gamma, lam, greedy) if k + 1 < h else 0
    return R[k + 1] + gamma[k + 1] * ((1 - going) * V_max(k, k + 1) + rest)


def off_policy(k, h, R, V, gamma, lam, rho):
    """Of van Hasselt et al. (2014), in an update with α_kρ_k."""
    rest = V(k, k + 1)
    if k + 1 < h:
        later = rho[k + 1] * off_policy(k + 1, h, R, V, gamma, lam, rho) + (1 - rho[k + 1]) * V(k, k + 1)
        rest = (1 - lam[k + 1]) * V(k, k + 1) + lam[k + 1] * later
    return R[k + 1] + gamma[k + 1] * rest


def per_decision(k, h, R, V, gamma, lam, rho):
    """With the ratio inside of the target, and the value of the state itself for the rest."""
    rest = V(k, k + 1)
    if k + 1 < h:
        rest = (1 - lam[k + 1]) * V(k, k + 1) + lam[k + 1] * per_decision(k + 1, h, R, V, gamma, lam, rho)
    return rho[k] * (R[k + 1] + gamma[k + 1] * rest) + (1 - rho[k]) * V(k, k)


def ratio_step(k, alpha, rho):
    return alpha[k] * rho[k]


def gamma_return(k, h, R, V, gamma):
    """Of TD_γ (Konidaris et al. 2011)."""
    weights = [1 / sum(gamma ** (2 * i) for i in range(n)) for n in range(1, h - k + 1)]
    G = [
        sum(gamma ** (i - 1) * R[k + i] for i in range(1, n + 1)) + gamma**n * V(k + n - 1, k + n)
        for n in range(1, h - k + 1)
    ]
    return sum(w * g for w, g in zip(weights, G, strict=True)) / sum(weights)


def two_steps(k, h, R, V, gamma):
    n = min(2, h - k)
    return sum(gamma ** (i - 1) * R[k + i] for i in range(1, n + 1)) + gamma**n * V(k + n - 1, k + n)


def newest_weights(k, h, R, V, gamma, lam):
    """The λ-return with all values from the newest weights."""
    G = [
        sum(gamma ** (i - 1) * R[k + i] for i in range(1, n + 1)) + gamma**n * V(h - 1, k + n)
        for n in range(1, h - k + 1)
    ]
    return (1 - lam) * sum(lam**n * g for n, g in enumerate(G[:-1])) + lam ** (h - k - 1) * G[-1]


# --- What is found ------------------------------------------------------------------------------------


DELTA = "R_{t+1} + γ_{t+1}·V_t(S_{t+1}) − V_{t−1}(S_t)"


@pytest.mark.parametrize(
    ("view", "step", "c", "d", "moved"),
    [
        (lambda_return, None, "γ_t·λ_t", DELTA, "θ_t + d_t·e_t + α_t·(V_{t−1}(S_t) − V_t(S_t))·φ_t"),
        (
            constant_lambda_return, None, "γ·λ", DELTA.replace("γ_{t+1}", "γ"),
            "θ_t + d_t·e_t + α_t·(V_{t−1}(S_t) − V_t(S_t))·φ_t",
        ),
        (monte_carlo, None, "γ", "R_{t+1}", "θ_t + d_t·e_t − α_t·V_t(S_t)·φ_t"),
        (off_policy, ratio_step, "ρ_t·γ_t·λ_t", DELTA, "θ_t + d_t·e_t + α_t·ρ_t·(V_{t−1}(S_t) − V_t(S_t))·φ_t"),
        (
            watkins, None, "γ_t·λ_t·g_t", "R_{t+1} + γ_{t+1}·max_a Q_t(S_{t+1}, a) − max_a Q_{t−1}(S_t, a)",
            "θ_t + d_t·e_t + α_t·(max_a Q_{t−1}(S_t, a) − V_t(S_t))·φ_t",
        ),
    ],
)  # fmt: skip
def test_known_methods_are_found_again(view, step, c, d, moved):
    found = dict(derive(view, step).equations())
    assert (found["c_t"], found["d_t"], found["θ_{t+1}"]) == (c, d, moved)
    beta = "α_t·ρ_t" if step else "α_t"
    assert found["e_t"] == f"c_t·(e_{{t−1}} − {beta}·(φ_tᵀe_{{t−1}})·φ_t) + {beta}·φ_t"


def test_one_step_targets_need_no_trace():
    found = derive(td_zero)
    assert found.factors.c == found.factors.d == 0


def test_the_condition_holds_for_later_horizons_too():
    """What is read off the first horizons is true of others."""
    found = derive(lambda_return)
    view, moved = (
        found.view,
        lambda e, by: e.xreplace({s: s.shifted(by) for s in e.free_symbols if hasattr(s, "shifted")}),
    )
    for k, h in ((0, 8), (3, 8), (6, 8)):
        product = sp.prod([moved(found.factors.c, j) for j in range(k + 1, h + 1)]) * moved(found.factors.d, h)
        assert sp.expand(view.interim(k, h + 1) - view.interim(k, h) - product) == 0


@pytest.mark.parametrize("view", [lambda_return, constant_lambda_return, monte_carlo, watkins, td_zero])
def test_the_first_steps_are_equal_as_symbols(view):
    """θ_3 by the forward view and by the equations, with two features and symbols for everything."""
    found = derive(view)
    phi = [sp.Matrix(sp.symbols(f"phi{t}_0 phi{t}_1")) for t in range(4)]
    start = sp.Matrix(sp.symbols("theta_0 theta_1"))
    later = lambda e, by: e.xreplace({s: s.shifted(by) for s in e.free_symbols if hasattr(s, "shifted")})  # noqa: E731
    forward, backward, e = [start], start, sp.zeros(2, 1)

    def known(expression):
        """With values as products of weights and features. A maximum stays a symbol."""
        values = {
            s: (forward[max(s.at[0], 0)].T * phi[s.at[1]])[0]
            for s in expression.free_symbols
            if getattr(s, "letter", "") == "V"
        }
        return expression.xreplace(values)

    for h in range(1, 4):
        theta = start
        for k in range(h):
            target = known(view(k, h, **_symbols(view, h)))
            theta = theta + found.view.beta(k) * (target - (theta.T * phi[k])[0]) * phi[k]
        t = h - 1
        c, d, beta = (known(later(part, t)) for part in (found.factors.c, found.factors.d, found.factors.beta))
        correction = known(later(found.correction, t))
        e = c * (e - beta * (phi[t].T * e)[0] * phi[t]) + beta * phi[t]
        backward = backward + d * e + beta * correction * phi[t]
        assert (theta - backward).applyfunc(sp.expand) == sp.zeros(2, 1)
        forward.append(theta)


def _symbols(view, h):
    from trueonline.derivation.forward_view import LAST, At, Quantity

    given = {name: Quantity(name, h + last) for name, last in LAST.items()}
    given |= {kind: (lambda i, j, kind=kind: At(kind, i, j)) for kind in ("V", "V_max")}
    return {name: given[name] for name in list(inspect.signature(view).parameters)[2:]}


# --- What runs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", [lambda_return, td_zero])
def test_a_derived_learner_equals_its_forward_view(view):
    report = to.verify(derive(view).learner, trials=2, steps=50)
    assert report.definition.endswith("ForwardView")
    assert report.max_error < 1e-12
    assert len(report.rows) == 10


@pytest.mark.parametrize("view", [constant_lambda_return, monte_carlo])
def test_so_does_one_with_constants(view):
    learner = derive(view).learner
    assert to.verify(learner, kinds=["constant γ and λ"], trials=8, steps=50).max_error < 1e-12
    made = learner(3, 0.1, 0.9, 0.8)
    made.start(0)
    before = made.weights
    with pytest.raises(ValueError, match="constant of this forward view"):
        made.update(1.0, 1, discount=0.5)
    np.testing.assert_array_equal(made.weights, before)


@pytest.mark.parametrize("view", [lambda_return, watkins])
def test_a_derived_agent_equals_its_forward_view(view):
    assert to.verify(derive(view).agent, trials=1, steps=40).max_error < 1e-12


def test_a_derived_method_is_the_one_that_is_known():
    rng = np.random.default_rng(0)
    derived = derive(lambda_return).learner(30, lambda t: 0.1 / (1 + t / 50), 0.8, 0.95)
    known = to.TrueOnlineTD(30, lambda t: 0.1 / (1 + t / 50), 0.8, 0.95)
    X = np.array([rng.choice(30, size=4, replace=False) for _ in range(301)])
    rewards = rng.normal(size=300)
    np.testing.assert_allclose(derived.run(X, rewards), known.run(X, rewards), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(derived.weights, known.weights, rtol=1e-12, atol=1e-13)
    source = derive(lambda_return).source()
    assert (
        len(source.split('"""')[-1].splitlines())
        <= len(inspect.getsource(true_online_td_varying.py_func).splitlines()) + 8
    )


def test_a_derived_method_can_be_swept():
    from trueonline import problems

    problem = problems.random_walk()
    kernel = derive(lambda_return).learner._methods[0]
    grid = {"step_sizes": [0.05, 0.2], "trace_decays": [0.0, 0.9], "runs": 2, "seed": 0}
    table = to.sweep(problem, methods={"derived": kernel, "true_online": None}, **grid).to_pylist()
    errors = {name: [row["error"] for row in table if row["method"] == name] for name in ("derived", "true_online")}
    np.testing.assert_allclose(errors["derived"], errors["true_online"], rtol=1e-10)


def test_the_file_is_what_is_compiled(tmp_path):
    found = derive(lambda_return)
    text = found.source()
    compile(text, "derived.py", "exec")
    assert "c = gamma * lam" in text
    assert "d = reward + gamma_next * v_next - v_old" in text
    assert inspect.getsource(found.learner._methods[0].py_func) in text  # to be seen in tracebacks
    assert r"\theta_{t+1} &= \theta_t + d_t \mathbf{e}_t" in found.latex()


# --- What cannot be -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("view", "k", "h"), [(gamma_return, 0, 2), (newest_weights, 0, 2), (two_steps, 0, 2)]
)  # fmt: skip
def test_what_does_not_factor_is_refused_with_the_place(view, k, h):
    with pytest.raises(NotDerivableError, match=f"at k = {k}, h = {h}") as refused:
        derive(view)
    assert refused.value.terms != 0


def test_an_omega_return_is_refused():
    """Weights of the n-step returns from a covariance (Thomas et al. 2015): symbols here, any that depend on the length."""

    def omega_return(k, h, R, V, gamma):
        length = h - k
        weights = [sp.Rational(1, 1 + i * length) for i in range(length)]
        G = [
            sum(gamma ** (i - 1) * R[k + i] for i in range(1, n + 1)) + gamma**n * V(k + n - 1, k + n)
            for n in range(1, length + 1)
        ]
        return sum(w * g for w, g in zip(weights, G, strict=True)) / sum(weights)

    with pytest.raises(NotDerivableError):
        derive(omega_return)


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
        (lambda k, h, R: "something else entirely (", "failed"),
        (lambda k, h, R: None, "finite expression"),
        (3, "must be a function"),
    ],
)
def test_what_is_no_forward_view_is_said(view, said):
    with pytest.raises(ForwardViewError, match=said):
        derive(view)


@pytest.mark.parametrize(("view", "step"), [(off_policy, ratio_step), (per_decision, None)])
def test_a_derived_learner_with_ratios_equals_its_forward_view(view, step):
    learner = derive(view, step).learner
    assert to.verify(learner, trials=2, steps=50).max_error < 1e-12
    rng = np.random.default_rng(0)
    X, rewards, ratios = rng.normal(size=(41, 5)), rng.normal(size=40), rng.random(40) * 2
    at_once, in_steps = (learner(5, 0.1, 0.9, 0.95) for _ in range(2))
    at_once.run(X, rewards, ratios=ratios)
    in_steps.start(X[0])
    for reward, x, ratio in zip(rewards, X[1:], ratios, strict=True):
        in_steps.update(reward, x, ratio=ratio)
    np.testing.assert_allclose(at_once.weights, in_steps.weights, rtol=1e-12, atol=1e-14)
    for bad in (-1.0, np.nan, np.inf, "1"):
        with pytest.raises(ValueError, match="ratio"):
            in_steps.update(0.0, X[0], ratio=bad)


def test_every_letter_can_be_asked_for_alone():
    for letter, k in itertools.product(("R", "gamma", "lam"), (0, 1)):
        view = eval(f"lambda k, h, {letter}: {letter}[k + 1] + {k}")
        assert derive(view).factors.c == 0
