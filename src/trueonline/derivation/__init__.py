"""From a forward view to a backward view that equals it at every step."""

from trueonline.derivation.backward import Derivation, derive
from trueonline.derivation.factoring import NotDerivableError
from trueonline.derivation.forward_view import ForwardViewError, Max, Min

__all__ = ["Derivation", "ForwardViewError", "Max", "Min", "NotDerivableError", "derive"]
