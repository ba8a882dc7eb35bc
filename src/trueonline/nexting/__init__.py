"""Predictions from streams of samples."""

from trueonline.nexting.horde import Horde
from trueonline.nexting.questions import Question, discount_of, horizon_of

__all__ = ["Horde", "Question", "discount_of", "horizon_of"]
