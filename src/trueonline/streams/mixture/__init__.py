"""Predictions without tuning: a mixture of many small exact learners and the naive forecasts themselves.

| module              |                                                                                     |
|---------------------|-------------------------------------------------------------------------------------|
| `experts.py`        | the experts: what each learns from, on which base, how fast                         |
| `mixing.py`         | the weights of the experts, their equations and their regret bound                  |
| `mixture.py`        | `Mixture`: experts and weights over any features, one compiled call a block         |
| `mixture_kernel.py` | that call                                                                           |
| `stream_views.py`   | `Views`: the features and bases that `auto` makes of a stream                       |
| `auto_questions.py` | `AutoQuestions`: one mixture for each question, and one a target for the next value |
"""

from trueonline.streams.mixture.experts import Expert, FeatureSet
from trueonline.streams.mixture.mixture import Mixture

__all__ = ["Expert", "FeatureSet", "Mixture"]
