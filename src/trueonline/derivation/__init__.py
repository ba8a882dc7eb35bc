"""From a forward view to a backward view that equals it at every step."""

try:
    import sympy  # noqa: F401
except ImportError:
    raise ImportError("derive needs SymPy: pip install 'trueonline[derive]'") from None

from trueonline.derivation.backward import Derivation, derive
from trueonline.derivation.factoring import NotDerivableError
from trueonline.derivation.forward_view import ForwardViewError, Max, Min

__all__ = ["Derivation", "ForwardViewError", "Max", "Min", "NotDerivableError", "derive"]
