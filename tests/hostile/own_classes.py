"""Classes of a user's own, in many shapes, on a problem with importance ratios."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

import trueonline as to
from tests.checks.test_protocol import TDRC, WithoutRatio, Wrapper
from tests.hostile import FINE, REFUSED, PromiseError

PROMISE = "A class of a user's own gets the ratios of a problem, or is refused: no number of another problem."
TRIALS = 200
GRID: dict[str, Any] = {"step_sizes": [0.005], "trace_decays": [0.5], "runs": 1, "steps": 30, "seed": 1}


class InAnotherOrder(TDRC):
    def update(self, reward, x_next, ratio=1.0, discount=None):
        super().update(reward, x_next, discount, None, ratio)


class ByName(TDRC):
    def update(self, reward, x_next, *, ratio, discount=None):
        super().update(reward, x_next, discount, ratio=ratio)


class Whatever(TDRC):
    def update(self, reward, x_next, **parts):
        super().update(reward, x_next, parts.get("discount"), ratio=parts["ratio"])


class Inherited(ByName):
    pass


class Misspelt(TDRC):
    def update(self, reward, x_next, discount=None, ratios=1.0):
        super().update(reward, x_next, discount, ratio=ratios)


class WithoutStart:
    def update(self, reward, x_next, ratio=1.0):
        pass


TAKING = (TDRC, Wrapper, InAnotherOrder, ByName, Whatever, Inherited)
LACKING = (WithoutRatio, Misspelt, WithoutStart)
PROBLEMS = {"baird": to.problems.baird, "collision": to.problems.collision}


def trial(rng: random.Random, folder: Path, shared: Path) -> str:
    problem, seed = PROBLEMS[rng.choice(list(PROBLEMS))](), rng.randrange(1000)
    kind = rng.choice([*TAKING, *LACKING])
    options = {**GRID, "seed": seed, "step_sizes": [rng.choice([0.001, 0.005, 0.02])]}
    try:
        rows = to.sweep(problem, {"mine": kind, "tdrc": None}, **options).to_pylist()
    except (ValueError, TypeError) as error:
        if kind in TAKING or not str(error).strip():
            raise PromiseError(f"{kind.__name__} was refused: {error}") from error
        return REFUSED
    if kind in LACKING:
        raise PromiseError(f"{kind.__name__} was not refused")
    errors = {row["method"]: row["error"] for row in rows}
    if not np.isclose(errors["mine"], errors["tdrc"], rtol=1e-8):
        raise PromiseError(f"{kind.__name__} has the error {errors['mine']}, and TDRC {errors['tdrc']}")
    return FINE
