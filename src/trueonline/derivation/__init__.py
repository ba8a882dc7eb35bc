"""From a forward view to a backward view that equals it at every step."""

try:
    import sympy  # noqa: F401
except ImportError:
    raise ImportError("derive needs SymPy: pip install 'trueonline[derive]'") from None

from trueonline.derivation.backward import Derivation
from trueonline.derivation.deriving import derive
from trueonline.derivation.quantities import ForwardViewError, Max, Min
from trueonline.derivation.refusals import NotDerivableError

__all__ = ["Derivation", "ForwardViewError", "Max", "Min", "NotDerivableError", "derive"]
