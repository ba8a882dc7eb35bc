"""`derive`: from a forward view to the backward view that equals it, with every check on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sympy as sp

from trueonline.catalog import Parameter
from trueonline.derivation.backward import Derivation
from trueonline.derivation.factoring import Factors, factor
from trueonline.derivation.forward_view import ForwardView
from trueonline.derivation.later_horizons import confirm_later
from trueonline.derivation.quantities import At, ForwardViewError, constant
from trueonline.derivation.refusals import NotDerivableError, not_at_hand
from trueonline.derivation.text.writing import NAMES, TEXT, word
from trueonline.learners.own import declared

MAX_EXACT = 10**4  # a fraction of larger numbers than this may stand for a float that is not exact


def derive(
    target: Callable[..., Any],
    step: Callable[..., Any] | None = None,
    parameters: Mapping[str, float | Parameter] | None = None,
) -> Derivation:
    """Derive the backward view of a forward view.

    A forward view says what each update aims at: θ_{k+1} = θ_k + β_k (U_k^h − θ_kᵀφ_k) φ_k, for all k < h, from scratch at every
    horizon h. The backward view computes the same weights with a trace, at a cost that does not grow with time. `derive`
    finds it if the target grows by a product from each horizon to the next (see docs/guides/derive.md). It checks the first
    horizons as expressions, and horizons up to 200 and every time up to 1,000 with random numbers. Then it runs the method beside
    the forward view on a few short streams. `print` says how far the weights differ.

    Parameters
    ----------
    target : function (k, h, …)
        The interim target U_k^h of update k at horizon h. The names of its other arguments say what it is made of:
        `R[j]`, `gamma[j]`, `lam[j]`, `alpha[j]`, `rho[j]`, `rbar[j]`, `greedy[j]`, `V(i, j)` and `V_max(i, j)`. V(i, j) is the
        value of S_j under the weights of time i. `gamma`, `lam` and `alpha` without an index are constants. Arguments with a
        default are the function's own. Numbers that are made of k, h or j may not be weights: write `lam[j]` or `gamma[j]`
        and give the values with the transitions.
    step : function (k, …), optional
        The step-size β_k of update k, made of the same arguments without V and V_max. The default is `alpha[k]`. A function
        (k, i, …) gives a step-size for each feature i: `alpha[k, i]`, times what all features share.
    parameters : mapping, optional
        Parameters of the forward view: names of arguments of `target` and `step`, each with a default or a `trueonline.Parameter`.
        They are parameters of the learner and the agent, and sweeps sweep them, as those of `trueonline.method`.

    Returns
    -------
    Derivation
        The equations, a method file, and classes of learners and agents.

    Raises
    ------
    NotDerivableError
        If the target has no such backward view, or if the forward view changes with time. It is a ValueError.
    ForwardViewError
        If the target or the step-size is not a forward view, or does not depend on a parameter. It is a ValueError.

    Examples
    --------
    >>> import trueonline as to
    >>> def lambda_return(k, h, R, V, gamma, lam):
    ...     if k + 1 == h:
    ...         return R[h] + gamma[h] * V(k, h)
    ...     rest = lambda_return(k + 1, h, R, V, gamma, lam)
    ...     return R[k + 1] + gamma[k + 1] * ((1 - lam[k + 1]) * V(k, k + 1) + lam[k + 1] * rest)
    >>> derivation = to.derive(lambda_return)
    >>> dict(derivation.equations())["c_t"]
    'γ_t·λ_t'
    >>> learner = derivation.learner(n_features=3, step_size=0.5, trace_decay=0.9, discount=1.0)
    """
    view = ForwardView(target, step, declared(parameters))
    try:
        factors = factor(view)
    except NotDerivableError as error:
        if view.has_floats and any(max(abs(number.p), number.q) > MAX_EXACT for number in error.terms.atoms(sp.Rational)):
            rounded = (
                f"derive cannot tell whether {view.name} has a backward view, because its floats are rounded: give fractions, "
                f"Fraction(7, 10) for 0.7, or numbers of SymPy, sympy.sqrt(2). With the floats as they are, {error}"
            )
            error.args = (rounded,)
        raise
    derivation = Derivation(view, factors)
    if "alpha" in derivation.constants:  # then the step-size of an update is that constant, too
        same = {At("alpha", 0): constant("alpha")}
        derivation = Derivation(view, Factors(**{name: part.xreplace(same) for name, part in vars(factors).items()}))
    _check_letters(derivation)
    derivation.source()  # it raises if the method cannot be written
    confirm_later(view, factors)
    if not derivation.checked.exact:
        raise ForwardViewError(
            f"the method that was derived from {view.name} is not its forward view. {derivation.check_line()}. Does the target or "
            "the step-size depend on more than its arguments?"
        )
    return derivation


def _check_letters(derivation: Derivation) -> None:
    """Refuse what neither a learner nor an agent has at hand, and parameters that have no effect."""
    for name in derivation.view.parameters:
        if name not in derivation.letters:
            raise ForwardViewError(
                f"the method of {derivation.name} does not depend on the parameter {name!r}: leave it out"
            )
    if "V_max" in derivation.letters and {At("V", 0, 1), At("V", -1, 0)} & derivation.symbols:
        raise ForwardViewError(
            f"{derivation.name} bootstraps from both V_max and V, but an agent bootstraps either from the best action or from "
            "the action it takes, not from both: use one of them"
        )
    if derivation.acts and "rho" in derivation.letters:
        raise ForwardViewError(
            f"{derivation.name} has V_max or greedy, so it is for agents, which have no importance ratios: leave rho out"
        )
    if derivation.view.per_feature and "alpha" in derivation.view.letters:
        raise ForwardViewError(
            f"{derivation.name} has alpha, but its step-size is one for each feature: leave alpha out of the target"
        )
    if derivation.view.per_feature and derivation.acts:
        raise ForwardViewError(
            f"{derivation.name} has V_max or greedy, so it is for agents, which have one step-size: write step(k, …)"
        )
    unknown = sorted(
        word(symbol, TEXT)
        for symbol in derivation.symbols
        if isinstance(symbol, At) and (symbol.letter, *symbol.at) not in NAMES
    )
    if unknown:
        raise not_at_hand(unknown)
