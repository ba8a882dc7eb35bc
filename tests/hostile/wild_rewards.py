"""Rewards of 10² to 10⁶ times the usual size, single and in bursts, for every method with step-size adaptation."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

import trueonline as to
from tests.hostile import FINE, PromiseError
from trueonline import catalog

PROMISE = (
    "Wild rewards move no step-size farther than the guide says, and true online TD(λ) learns as well as before again."
)
TRIALS = 100
THETA, LAM, BOUND, FORGOTTEN, LENGTH = 0.1, 0.9, 0.1, 40_000, 5_000
ADAPTING = [
    row
    for row in catalog.METHODS.values()
    if row.adapts
    and row.trace != "none"
    and row.group in ("prediction", "off-policy")
    and row.memory in catalog.OWN_MEMORIES
]
SIZES, TARGET = np.array([1.0, 30.0, 1.0]), np.array([15.0, -1.0, 0.5])


def trial(rng: random.Random, folder: Path, shared: Path) -> str:
    return rng.choice([bounded_moves, bounded_moves, recovery])(rng)


def wild(rng: random.Random, rewards: np.ndarray, at: int) -> np.ndarray:
    """The rewards with up to twenty outliers of one size and either sign from `at` on."""
    out, length = rewards.copy(), rng.choice([1, 2, 20])
    size = 10.0 ** rng.uniform(2.0, 6.0) * rewards.std()
    out[at : at + length] += [rng.choice([-size, size]) for _ in range(length)]
    return out


def stream(rng: random.Random, steps: int, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.random.default_rng(rng.randrange(2**32))
    X = numbers.choice([-1.0, 1.0], size=(steps + 1, 3)) if rng.random() < 0.5 else numbers.normal(size=(steps + 1, 3))
    return X * sizes, (X * sizes)[:-1] @ TARGET + numbers.normal(size=steps)


def bounded_moves(rng: random.Random) -> str:
    """|Δ ln r| ≤ θ/(1 − γλ) + 0.1θ ln 300, not counting what the cap of r takes back."""
    row, gamma, at = rng.choice(ADAPTING), rng.choice([0.0, 0.9]), rng.choice([0, 1, 10, rng.randrange(2_000)])
    X, rewards = stream(rng, at + 100, np.ones(3))
    X = np.abs(np.sign(X)) * (np.random.default_rng(at).random(X.shape) < 0.7) if row.binary else X
    learner = row.resolve("learner")(3, 0.1, LAM, gamma, meta_step_size=THETA, **{**row.settings, **row.options})
    learner.start(X[0])
    limit = THETA * (1.0 / (1.0 - gamma * LAM) + 0.1 * np.log(300.0))
    for x, reward, x_next in zip(X, wild(rng, rewards, at), X[1:], strict=False):
        before = np.log(learner.step_sizes)
        learner.update(reward, x_next)
        after, squares = np.log(learner.step_sizes), (x * x).sum()
        with np.errstate(divide="ignore"):
            cap = np.log(BOUND * np.minimum(300.0 / squares, 1.0 / x**2))
        moved = np.maximum(after - before, np.minimum(before, cap) - after)
        if moved.max() > limit + 1e-9 or not np.isfinite(learner.weights).all():
            raise PromiseError(
                f"{row.name}, γ = {gamma}: ln r moved by {moved}, and the limit is {limit}; w = {learner.weights}"
            )
    return FINE


def recovery(rng: random.Random) -> str:
    """40,000 steps after the outliers, the error is below twice that of a learner without them, or its own of before."""
    gamma, at = rng.choice([0.0, 0.9]), rng.randrange(10_000, 15_000, 250)
    X, rewards = stream(rng, at + FORGOTTEN + LENGTH, SIZES)
    usual = errors(gamma, X, rewards)
    again = errors(gamma, X, wild(rng, rewards, at))[-LENGTH // 250 :].mean()
    if not again < 2.0 * max(usual[-LENGTH // 250 :].mean(), usual[20:40].mean()):
        raise PromiseError(f"γ = {gamma}, outliers at {at}: the error is {again}, and {usual[20:40].mean()} before them")
    return FINE


def errors(gamma: float, X: np.ndarray, rewards: np.ndarray) -> np.ndarray:
    """The squared error of the weights, every 250 steps."""
    learner, found = to.TrueOnlineTD(3, 0.1, LAM, gamma, meta_step_size=THETA), []
    for t in range(0, len(rewards), 250):
        learner.run(X[t : t + 251], rewards[t : t + 250], resume=t > 0)
        found.append(((SIZES * (learner.weights - TARGET)) ** 2).sum())
    return np.array(found)
