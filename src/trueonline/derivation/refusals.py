"""Why `derive` refuses a forward view: it has no backward view with one trace, or it changes with time."""

from __future__ import annotations

import sympy as sp

from trueonline.derivation.quantities import ForwardViewError

WEIGHT_ADVICE = (
    "Write lam[j] or gamma[j] instead of a number that is made of j, k or h, and give λ_j or γ_j with each transition: "
    "update(…, trace_decay=…) or update(…, discount=…)"
)
STEP_ADVICE = "Write alpha[k] instead of a number that is made of k, and give the learner a schedule as step_size"


class NotDerivableError(ValueError):
    """`derive` finds no backward view of a forward view.

    There are two reasons, and the message says which one holds. Either the target does not grow by a product, and a
    backward view with one trace does not exist. Or the forward view changes with time, and the message says how to
    write it so that it does not.

    Parameters
    ----------
    message : str
        The reason, and the remedy.
    k, h : int
        The update and the horizon at which the forward view was refused.
    terms : sympy.Expr
        The expression or the number that shows the reason.

    Attributes
    ----------
    k, h : int
        As above.
    terms : sympy.Expr
        As above.

    Examples
    --------
    >>> from trueonline.derivation import derive
    >>> def one_step_then_two(k, h, R):
    ...     return sum(R[i] for i in range(k + 1, min(h, k + 2) + 1))
    >>> try:
    ...     derive(one_step_then_two)
    ... except NotDerivableError as error:
    ...     print(error.k, error.h, error.terms)
    0 2 R[3]
    """

    def __init__(self, message: str, k: int = 0, h: int = 0, terms: sp.Expr = sp.S.Zero) -> None:
        super().__init__(message)
        self.k, self.h, self.terms = k, h, terms


def no_backward_view(k: int, h: int, why: str, terms: sp.Expr) -> NotDerivableError:
    """The error for a target that does not grow by a product."""
    return NotDerivableError(
        f"the target does not grow by a product: at k = {k}, h = {h} {why}: {short(terms)}. So it has no backward view "
        "with one trace, at a cost that does not grow with time",
        k,
        h,
        terms,
    )


def changes_with_time(
    part: str, shown: str, k: int, h: int, terms: sp.Expr, advice: str = WEIGHT_ADVICE
) -> NotDerivableError:
    """The error for a forward view with a part, such as "the step-size", that depends on the time itself."""
    return NotDerivableError(
        f"{part} changes with time ({shown}), but derive looks for an update that is the same at all times. {advice}",
        k,
        h,
        terms,
    )


def not_at_hand(names: list[str]) -> ForwardViewError:
    """The error for a method that needs more than it is given."""
    return ForwardViewError(
        f"the update of time t would need {', '.join(names)}, which is not at hand then: write the target so that its growth needs "
        "only the quantities of one transition, ρ_{t−1} and V_{t−1}(S_t)"
    )


def short(expression: sp.Expr, most: int = 160) -> str:
    """The expression as text, of `most` characters at most."""
    text = str(expression)
    return text if len(text) <= most else f"{text[: most - 3].rsplit(' ', 1)[0]} …"
