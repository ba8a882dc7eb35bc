"""One update rule per file, in the order of the paper's pseudo-code, written over `core.memory`.

A rule learns from one transition. Its signature names what it needs of the transition (`core.transition` lists what there is),
and it returns V(S), the TD error δ, and V(S'). `gamma` and `lam` belong to the state being left: the trace decays by them.
`gamma_next` belongs to the state being entered: the bootstrap is discounted by it, and 0 ends the episode. V(S') comes back as
`v_old` of the next step, and γ = 0 clears the trace, so a rule needs no control flow for episodes.
"""

from trueonline.catalog import METHODS

_RULES = [row.resolve(part) for row in METHODS.values() if row.rule for part in ("rule", "varying")]
globals().update({rule.py_func.__name__: rule for rule in _RULES})  # over the modules of the same names

__all__ = sorted({rule.py_func.__name__ for rule in _RULES})  # noqa: PLE0605
