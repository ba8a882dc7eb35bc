"""Classes of a user's own, in many shapes, on a problem with importance ratios."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

import trueonline as to
from tests.hostile import FINE, REFUSED, PromiseError

PROMISE = "A class of a user's own gets the ratios of a problem, or is refused: no number of another problem."
TRIALS = 200
GRID: dict[str, Any] = {"step_sizes": [0.005], "trace_decays": [0.5], "runs": 1, "steps": 30, "seed": 1}


class OffPolicyTD:
    """Off-policy TD(λ) with dense vectors. Subclasses have other signatures of `update`."""

    def __init__(self, n_features, step_size, trace_decay, discount, initial_weights=None):
        self.alpha, self.lam, self.gamma = step_size, trace_decay, discount
        self.weights = np.zeros(n_features) if initial_weights is None else np.array(initial_weights)

    def start(self, x):
        self.x, self.e, self.decay = np.array(x), np.zeros(len(self.weights)), 0.0

    def learn(self, reward, x_next, discount=None, ratio=1.0):
        gamma = 0.0 if x_next is None else self.gamma if discount is None else discount
        there = np.zeros(len(self.weights)) if x_next is None else np.array(x_next)
        delta = reward + gamma * self.weights @ there - self.weights @ self.x
        self.e = ratio * (self.decay * self.e + self.x)
        self.weights = self.weights + self.alpha * delta * self.e
        self.x, self.decay = there, gamma * self.lam


class Positional(OffPolicyTD):
    def update(self, reward, x_next, discount=None, trace_decay=None, ratio=1.0):
        self.learn(reward, x_next, discount, ratio)


class InAnotherOrder(OffPolicyTD):
    def update(self, reward, x_next, ratio=1.0, discount=None):
        self.learn(reward, x_next, discount, ratio)


class ByName(OffPolicyTD):
    def update(self, reward, x_next, *, ratio, discount=None):
        self.learn(reward, x_next, discount, ratio)


class Whatever(OffPolicyTD):
    def update(self, reward, x_next, **parts):
        self.learn(reward, x_next, parts.get("discount"), parts["ratio"])


class Inherited(Positional):
    pass


class WithoutRatio(OffPolicyTD):
    def update(self, reward, x_next, discount=None, trace_decay=None):
        self.learn(reward, x_next, discount)


class Misspelt(OffPolicyTD):
    def update(self, reward, x_next, discount=None, ratios=1.0):
        self.learn(reward, x_next, discount, ratios)


class WithoutStart:
    def update(self, reward, x_next, ratio=1.0):
        pass


TAKING = (Positional, InAnotherOrder, ByName, Whatever, Inherited)
LACKING = (WithoutRatio, Misspelt, WithoutStart)
PROBLEMS = {"baird": to.problems.baird, "collision": to.problems.collision}


def trial(rng: random.Random, folder: Path, shared: Path) -> str:
    problem, seed = PROBLEMS[rng.choice(list(PROBLEMS))](), rng.randrange(1000)
    kind = rng.choice([*TAKING, *LACKING])
    options = {**GRID, "seed": seed, "step_sizes": [rng.choice([0.001, 0.005, 0.02])]}
    try:
        rows = to.sweep(problem, {"mine": kind, "off_policy": None}, **options).to_pylist()
    except (ValueError, TypeError) as error:
        if kind in TAKING or not str(error).strip():
            raise PromiseError(f"{kind.__name__} was refused: {error}") from error
        return REFUSED
    if kind in LACKING:
        raise PromiseError(f"{kind.__name__} was not refused")
    errors = {row["method"]: row["error"] for row in rows}
    if not np.isclose(errors["mine"], errors["off_policy"], rtol=1e-8):
        raise PromiseError(f"{kind.__name__} has the error {errors['mine']}, and off-policy TD(λ) {errors['off_policy']}")
    return FINE
