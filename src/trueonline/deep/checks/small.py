"""Streaming methods with small networks over features, with the parameters of every learner, so that `verify` can compare them.

Each stream of `verify` has another one of `NETWORKS`: it follows from the step-size of the stream.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from trueonline.control.policies import Policy
from trueonline.deep.checks.definition import ACDefinition, QDefinition, SarsaDefinition, TDDefinition
from trueonline.deep.network import ACTIVATIONS, MLP
from trueonline.deep.stream_ac import StreamAC
from trueonline.deep.stream_q import StreamQ
from trueonline.deep.stream_sarsa import StreamSarsa
from trueonline.deep.stream_td import StreamTD
from trueonline.inputs import Schedule

WIDTHS = ((9,), (8, 12), (12, 7, 9))
NETWORKS: list[dict[str, Any]] = [
    {"hidden": ()},
    *(
        {"hidden": hidden, "activation": activation, "layer_norm": layer_norm}
        for hidden, activation, layer_norm in product(WIDTHS, ACTIVATIONS, (True, False))
    ),
]


def _net(n_inputs: int, n_outputs: int, step_size: float | Schedule, network: Any) -> MLP:
    first: Any = step_size(0) if callable(step_size) else step_size
    drawn = NETWORKS[int(first * 2**40) % len(NETWORKS)] if network is None else network
    return MLP(n_inputs, n_outputs=n_outputs, sparsity=0.5, seed=1, **drawn)


def stream_td(
    n_features: int, step_size: float | Schedule, trace_decay: float, discount: float, network: Any = None
) -> StreamTD:
    """Stream TD(λ) over features."""
    return StreamTD(_net(n_features, 1, step_size, network), discount, trace_decay, step_size)


def stream_td_definition(
    n_features: int, step_size: float | Schedule, trace_decay: float, discount: float, network: Any = None
) -> TDDefinition:
    """Its definition over features."""
    return TDDefinition(_net(n_features, 1, step_size, network), discount, trace_decay, step_size)


class ToldAC(StreamAC):
    """Stream AC(λ) with a policy that chooses actions by the probabilities of the actor."""

    def __init__(self, *, policy: Policy, **named: Any) -> None:
        super().__init__(**named)
        self._told = policy

    def _choose(self, x: np.ndarray, t: int) -> tuple[int, bool]:
        return self._told(self.probabilities(x), self.rng, t), True


def _agent(name: str, kind: Any) -> Callable[..., Any]:
    """A function that makes agents of a kind, or definitions, over features."""

    def made(
        n_features: int,
        n_actions: int,
        step_size: float | Schedule,
        trace_decay: float,
        discount: float,
        policy: Policy,
        seed: Any,
        network: Any = None,
    ) -> Any:
        nets = {"net": _net(n_features, n_actions, step_size, network)}
        if kind in (ToldAC, ACDefinition):
            nets = {"actor": nets["net"], "critic": _net(n_features, 1, step_size, network)}
        return kind(**nets, discount=discount, trace_decay=trace_decay, step_size=step_size, policy=policy, seed=seed)

    made.__name__ = name
    return made


stream_q, stream_q_definition = _agent("stream_q", StreamQ), _agent("stream_q_definition", QDefinition)
stream_sarsa = _agent("stream_sarsa", StreamSarsa)
stream_sarsa_definition = _agent("stream_sarsa_definition", SarsaDefinition)
stream_ac, stream_ac_definition = _agent("stream_ac", ToldAC), _agent("stream_ac_definition", ACDefinition)
