"""From a forward view to a backward view that equals it at every step."""

from trueonline.derive.backward import Derivation, derive
from trueonline.derive.factoring import NotDerivableError
from trueonline.derive.forward_view import ForwardViewError

__all__ = ["Derivation", "ForwardViewError", "NotDerivableError", "derive"]
