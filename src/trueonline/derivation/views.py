"""Forward views of the literature, in the form that `derive` takes. Start from them, and change them.

`gamma_return` and `omega_return` have no backward view at a cost that does not grow with time, and `derive` says so.
"""

from __future__ import annotations

from typing import Any


def lambda_return(k: int, h: int, R: Any, V: Any, gamma: Any, lam: Any) -> Any:
    """The interim λ-return (section 3.1), with γ and λ of each state.

    Its backward view is true online TD(λ), and with actions true online Sarsa(λ).

    Parameters
    ----------
    k, h : int
        The update and the horizon.
    R, V, gamma, lam : quantities of a forward view
        See `trueonline.derivation.derive`.

    Returns
    -------
    number or sympy.Expr
        U_k^h.
    """
    total, weight = 0, 1
    rewards, discount = 0, 1
    for j in range(k + 1, h + 1):
        rewards, discount = rewards + discount * R[j], discount * gamma[j]
        n_step = rewards + discount * V(j - 1, j)  # G_k^{(j − k)}
        if j < h:
            total, weight = total + weight * (1 - lam[j]) * n_step, weight * lam[j]
    return total + weight * n_step


def differential_lambda_return(k: int, h: int, R: Any, V: Any, gamma: Any, lam: Any, rbar: Any) -> Any:
    """The interim λ-return of rewards above the reward rate, R_{j+1} − R̄_j, with the R̄_j of each time.

    Its backward view is true online differential TD(λ), and with actions true online differential Sarsa(λ). γ is 1 for continuing
    tasks without discount.

    Parameters
    ----------
    k, h : int
        The update and the horizon.
    R, V, gamma, lam, rbar : quantities of a forward view
        See `trueonline.derivation.derive`.

    Returns
    -------
    number or sympy.Expr
        U_k^h.
    """
    above = R[k + 1] - rbar[k]
    if k + 1 == h:
        return above + gamma[h] * V(k, h)
    rest = differential_lambda_return(k + 1, h, R, V, gamma, lam, rbar)
    return above + gamma[k + 1] * ((1 - lam[k + 1]) * V(k, k + 1) + lam[k + 1] * rest)


def constant_lambda_return(k: int, h: int, R: Any, V: Any, gamma: Any, lam: Any) -> Any:
    """The interim λ-return with constant γ and λ, as the paper prints it.

    Parameters
    ----------
    k, h : int
        The update and the horizon.
    R, V, gamma, lam : quantities of a forward view
        See `trueonline.derivation.derive`.

    Returns
    -------
    number or sympy.Expr
        U_k^h.
    """
    G = _constant_n_step(k, h, R, V, gamma)
    return (1 - lam) * sum(lam**n * g for n, g in enumerate(G[:-1])) + lam ** (h - k - 1) * G[-1]


def _constant_n_step(k: int, h: int, R: Any, V: Any, gamma: Any) -> list[Any]:
    """G_k^{(1)}, …, G_k^{(h−k)} with constant γ."""
    rewards, returns = 0, []
    for n in range(1, h - k + 1):
        rewards = rewards + gamma ** (n - 1) * R[k + n]
        returns.append(rewards + gamma**n * V(k + n - 1, k + n))
    return returns


def monte_carlo(k: int, h: int, R: Any, gamma: Any) -> Any:
    """The return so far, without bootstrapping.

    Its backward view is the Monte Carlo method with dutch traces (van Hasselt and Sutton 2015).

    Parameters
    ----------
    k, h : int
        The update and the horizon.
    R, gamma : quantities of a forward view
        See `trueonline.derivation.derive`.

    Returns
    -------
    number or sympy.Expr
        U_k^h.
    """
    return sum(gamma ** (i - k - 1) * R[i] for i in range(k + 1, h + 1))


def watkins(k: int, h: int, R: Any, V_max: Any, gamma: Any, lam: Any, greedy: Any) -> Any:
    """The target of section 6.2, which stops growing at the first action that is not greedy.

    Its backward view is the true online version of Watkins's Q(λ).

    Parameters
    ----------
    k, h : int
        The update and the horizon.
    R, V_max, gamma, lam, greedy : quantities of a forward view
        See `trueonline.derivation.derive`.

    Returns
    -------
    number or sympy.Expr
        U_k^h.
    """
    if k + 1 == h:
        return R[h] + gamma[h] * V_max(k, h)
    on = lam[k + 1] * greedy[k + 1]
    rest = watkins(k + 1, h, R, V_max, gamma, lam, greedy)
    return R[k + 1] + gamma[k + 1] * ((1 - on) * V_max(k, k + 1) + on * rest)


def off_policy_lambda_return(k: int, h: int, R: Any, V: Any, gamma: Any, lam: Any, rho: Any) -> Any:
    """The λ-return of van Hasselt, Mahmood and Sutton (2014). Its step-size is `ratio_step`.

    Parameters
    ----------
    k, h : int
        The update and the horizon.
    R, V, gamma, lam, rho : quantities of a forward view
        See `trueonline.derivation.derive`.

    Returns
    -------
    number or sympy.Expr
        U_k^h.
    """
    if k + 1 == h:
        return R[h] + gamma[h] * V(k, h)
    rest = off_policy_lambda_return(k + 1, h, R, V, gamma, lam, rho)
    later = rho[k + 1] * rest + (1 - rho[k + 1]) * V(k, k + 1)
    return R[k + 1] + gamma[k + 1] * ((1 - lam[k + 1]) * V(k, k + 1) + lam[k + 1] * later)


def ratio_step(k: int, alpha: Any, rho: Any) -> Any:
    """The step-size α_kρ_k of off-policy updates.

    Parameters
    ----------
    k : int
        The update.
    alpha, rho : quantities of a forward view
        See `trueonline.derivation.derive`.

    Returns
    -------
    number or sympy.Expr
    """
    return alpha[k] * rho[k]


def usage(k: int, h: int, gamma: Any, lam: Any, rho: Any) -> Any:
    """The weight of update k in the usage of a feature, as far as it is known at horizon h (Mahmood and Sutton 2015).

    It is the λ-return of importance ratios. The usage u_i of feature i moves towards this weight, u_i ← u_i + φ_i² (U_k^h − ηu_i).

    Parameters
    ----------
    k, h : int
        The update and the horizon.
    gamma, lam, rho : quantities of a forward view
        See `trueonline.derivation.derive`.

    Returns
    -------
    number or sympy.Expr
        U_k^h.
    """
    if k + 1 == h:
        return rho[k]
    later = gamma[k + 1] * lam[k + 1]
    return rho[k] * (1 - later + later * usage(k + 1, h, gamma, lam, rho))


def feature_step(k: int, i: int, alpha: Any) -> Any:
    """The step-size α_{k,i} of feature i: a number for each feature.

    Parameters
    ----------
    k, i : int
        The update and the feature.
    alpha : quantity of a forward view
        See `trueonline.derivation.derive`.

    Returns
    -------
    number or sympy.Expr
    """
    return alpha[k, i]


def feature_ratio_step(k: int, i: int, alpha: Any, rho: Any) -> Any:
    """The step-size α_{k,i}ρ_k of off-policy updates, with a number for each feature.

    With α_{k,i} = 1/u_{k+1,i}, for the usage u of Mahmood and Sutton (2015), these are the step-sizes of WIS-TO-GTD(λ).

    Parameters
    ----------
    k, i : int
        The update and the feature.
    alpha, rho : quantities of a forward view
        See `trueonline.derivation.derive`.

    Returns
    -------
    number or sympy.Expr
    """
    return alpha[k, i] * rho[k]


# --- Without a backward view --------------------------------------------------------------------------


def gamma_return(k: int, h: int, R: Any, V: Any, gamma: Any) -> Any:
    """The γ-return of TD_γ (Konidaris, Niekum and Thomas 2011): n-step returns, weighted by 1 / Σ_{i<n} γ^{2i}.

    Parameters
    ----------
    k, h : int
        The update and the horizon.
    R, V, gamma : quantities of a forward view
        See `trueonline.derivation.derive`.

    Returns
    -------
    number or sympy.Expr
        U_k^h.
    """
    weights = [1 / sum(gamma ** (2 * i) for i in range(n)) for n in range(1, h - k + 1)]
    return _mean(weights, _constant_n_step(k, h, R, V, gamma))


def omega_return(k: int, h: int, R: Any, V: Any, gamma: Any, correlation: float = 0.5) -> Any:
    """The Ω-return (Thomas, Niekum, Theocharous and Konidaris 2015): n-step returns, weighted by Ω⁻¹1, with Ω their covariance.

    The covariance of the i-step and the j-step return is here the variance of the shorter one, times `correlation` for each
    further step of the longer one. Every covariance whose weights are not geometric leads to the same refusal.

    Parameters
    ----------
    k, h : int
        The update and the horizon.
    R, V, gamma : quantities of a forward view
        See `trueonline.derivation.derive`.
    correlation : float, optional
        The factor for each further step.

    Returns
    -------
    number or sympy.Expr
        U_k^h.
    """
    import sympy as sp

    variance = [sum(gamma ** (2 * i) for i in range(n)) for n in range(1, h - k + 1)]
    length = len(variance)
    shared = lambda i, j: variance[min(i, j)] * sp.nsimplify(correlation) ** abs(i - j)  # noqa: E731
    weights = sp.Matrix(length, length, shared).LUsolve(sp.ones(length, 1))
    return _mean(list(weights), _constant_n_step(k, h, R, V, gamma))


def _mean(weights: list[Any], values: list[Any]) -> Any:
    return sum(w * g for w, g in zip(weights, values, strict=True)) / sum(weights)
