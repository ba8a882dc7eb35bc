"""From observations to features."""

from trueonline.features.bits import Bits
from trueonline.features.fourier import Fourier
from trueonline.features.spaces import Table, from_space, restore
from trueonline.features.states import binary_code, random_unit, tabular
from trueonline.features.tiles import TileCoder

__all__ = ["Bits", "Fourier", "Table", "TileCoder", "binary_code", "from_space", "random_unit", "restore", "tabular"]
