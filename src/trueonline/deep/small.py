"""Stream TD(λ) with a small network over features, with the parameters of every learner, so that `verify` can compare it."""

from __future__ import annotations

from trueonline.deep.definition import TDDefinition
from trueonline.deep.network import MLP
from trueonline.deep.stream_td import StreamTD
from trueonline.inputs import Schedule

KAPPA = 2.0  # smaller ones make larger steps, which magnify rounding


def stream_td(n_features: int, step_size: float | Schedule, trace_decay: float, discount: float) -> StreamTD:
    """Stream TD(λ) over features."""
    return StreamTD(MLP(n_features, (8, 8), sparsity=0.5, seed=1), discount, trace_decay, step_size, KAPPA)


def stream_td_definition(
    n_features: int, step_size: float | Schedule, trace_decay: float, discount: float
) -> TDDefinition:
    """Its definition over features."""
    return TDDefinition(MLP(n_features, (8, 8), sparsity=0.5, seed=1), discount, trace_decay, step_size, KAPPA)
