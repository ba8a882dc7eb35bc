"""A step of streaming deep RL beside the same step in PyTorch."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.report import Section, Settings, Table, Target
from benchmarks.timing import race
from trueonline import deep

SIZES = {"2 × 32 units": ((32, 32), 50.0), "2 × 128 units": ((128, 128), 20.0)}
INPUTS, ACTIONS = 5, 3
DISCOUNT, TRACE_DECAY, KAPPA = 0.99, 0.8, 2.0


def measure(settings: Settings) -> Section:
    section = Section(
        "Streaming deep RL",
        "One transition of stream Q(λ): `StreamQ.learn` beside the same update in PyTorch, eager, in single precision, on "
        f"one thread. The networks have {INPUTS} inputs and {ACTIONS} outputs. Times are per step.",
    )
    if find_spec("torch") is None:
        section.notes.append("PyTorch is not installed: nothing was compared.")
        return section
    steps = 100 if settings.quick else 1000
    rows = []
    for name, (hidden, wanted) in SIZES.items():
        X = np.random.default_rng(1).normal(size=(steps + 1, INPUTS))
        agent = deep.StreamQ(deep.MLP(INPUTS, hidden, ACTIONS, seed=0), DISCOUNT, TRACE_DECAY, kappa=KAPPA)
        competitors = {
            "learn": partial(_learn, agent, X),
            "run": partial(agent.run, X, np.zeros(steps, np.int64), X[1:, 0].copy()),
            "PyTorch": partial(_torch, *_module(hidden), X),
        }
        times = race(competitors, rounds=settings.rounds)
        ratio = times.ratio("PyTorch", "learn")
        rows.append([name, *(times.per_step(each, steps) for each in competitors), ratio])
        section.targets.append(
            Target(f"PyTorch against learn, {name}", f"≥ {wanted:g}×", str(ratio), ratio.median >= wanted)
        )
    section.tables.append(Table(("network", "learn", "run", "PyTorch", "PyTorch against learn"), rows))
    return section


def _learn(agent: deep.StreamQ, X: np.ndarray) -> None:
    for x, x_next in pairwise(X):
        agent.learn(x, 0, 0.5, x_next)


def _module(hidden: tuple[int, ...]) -> tuple[Any, Any]:
    """The same network in PyTorch, with its optimiser."""
    import torch

    torch.set_num_threads(1)
    layers, n_in = [], INPUTS
    for n in hidden:
        layers += [torch.nn.Linear(n_in, n), torch.nn.LayerNorm(n, elementwise_affine=False), torch.nn.LeakyReLU()]
        n_in = n
    module = torch.nn.Sequential(*layers, torch.nn.Linear(n_in, ACTIONS))
    return module, deep.ObGD(module.parameters(), 1.0, DISCOUNT, TRACE_DECAY, KAPPA)


def _torch(module: Any, optimiser: deep.ObGD, X: np.ndarray) -> None:
    import torch

    states = torch.from_numpy(X).float()
    for x, x_next in pairwise(states):
        with torch.no_grad():
            v_next = module(x_next).max()
        value = module(x)[0]
        delta = (0.5 + DISCOUNT * v_next - value).item()
        value.backward()
        optimiser.step(delta)
