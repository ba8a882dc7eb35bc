"""From observations to features."""

from trueonline.features.states import binary_code, random_unit, tabular

__all__ = ["binary_code", "random_unit", "tabular"]
