"""Predictions from streams of samples."""

from trueonline.nexting.auto import Expert, FeatureSet, Mixture
from trueonline.nexting.horde import Horde
from trueonline.nexting.prediction_setup import Setup
from trueonline.nexting.predictor import Answers, DivergedError, Predictor
from trueonline.nexting.questions import Question, discount_of, horizon_of
from trueonline.nexting.sources import Clean, Cleaner, open_source

__all__ = [
    "Answers",
    "Clean",
    "Cleaner",
    "DivergedError",
    "Expert",
    "FeatureSet",
    "Horde",
    "Mixture",
    "Predictor",
    "Question",
    "Setup",
    "discount_of",
    "horizon_of",
    "open_source",
]
