"""Predictions from streams of samples."""

from trueonline.streams.horde.horde import Horde
from trueonline.streams.mixture import Expert, FeatureSet, Mixture
from trueonline.streams.predictor import Answers, DivergedError, Predictor
from trueonline.streams.questions.prediction_setup import Setup
from trueonline.streams.questions.questions import Question, discount_of, horizon_of
from trueonline.streams.sources import Clean, Cleaner, open_source

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
