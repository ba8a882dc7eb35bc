"""Checks of the arrays and numbers that define a problem."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from trueonline.inputs import as_array
from trueonline.words import count


def array(name: str, given: Any, dimensions: int) -> np.ndarray:
    """A copy of an array of finite numbers."""
    wanted = f"{name} must be an array of finite numbers with {count(dimensions, 'dimension')}"
    values = as_array(name, given)
    if values.dtype.kind not in "fiu" or values.ndim != dimensions:
        raise ValueError(f"{wanted}, got {values.dtype} of shape {values.shape}")
    if not np.isfinite(values).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise ValueError(f"{wanted}, got {values[where]} at {where}")
    return np.array(values, np.float64, order="C")


def check_probabilities(name: str, array: np.ndarray) -> None:
    """Refuse an array whose last dimension is not a distribution."""
    wrong = np.maximum(np.abs(array.sum(axis=-1) - 1.0), -array.min(axis=-1))
    if (array < 0.0).any() or wrong.max() > 1e-9:
        where = np.unravel_index(int(wrong.argmax()), wrong.shape)
        place = ", ".join(str(int(i)) for i in where)
        raise ValueError(f"{name}[{place}] must be probabilities that sum to 1, got {array[where]}")


def importance_ratios(behaviour: np.ndarray, target: np.ndarray) -> np.ndarray:
    """π(a | s) / b(a | s), and 0 for actions that neither policy takes."""
    uncovered = np.argwhere((target > 0.0) & (behaviour == 0.0))
    if len(uncovered):
        s, a = uncovered[0]
        raise ValueError(
            f"the target takes action {a} in state {s} with probability {target[s, a]:g}, but the behaviour never does: "
            "nothing can be learned about it; give that action a probability in behaviour"
        )
    with np.errstate(over="ignore"):
        ratios = np.divide(target, behaviour, out=np.zeros_like(target), where=behaviour > 0.0)
    if not np.isfinite(ratios).all():
        s, a = np.argwhere(~np.isfinite(ratios))[0]
        raise ValueError(
            f"the ratio of target to behaviour must be a finite number, but action {a} in state {s} has probabilities "
            f"{target[s, a]:g} and {behaviour[s, a]:g}; give the behaviour more of it"
        )
    return ratios


def fingerprint_of(about: tuple, *arrays: np.ndarray) -> str:
    """A hash of settings and arrays."""
    digest = hashlib.sha256(repr(about).encode())
    for part in arrays:
        digest.update(part.tobytes())
    return digest.hexdigest()


def check_features(features: np.ndarray, k: int) -> None:
    """Refuse features without one row for each of k states."""
    if len(features) != k or features.shape[1] == 0:
        raise ValueError(f"features must have a row for each of the {k} states, got shape {features.shape}")


def start_states(start: Any, k: int) -> tuple[int | np.ndarray, np.ndarray]:
    """The first state of an episode or a probability for each state, as given, and the probabilities in both cases."""
    if isinstance(start, int | np.integer) and not isinstance(start, bool) and 0 <= start < k:
        shares = np.zeros(k)
        shares[start] = 1.0
        return int(start), shares
    if np.ndim(start) == 0:
        raise ValueError(f"start must be a state from 0 to {k - 1}, got {start!r}; or give a probability for each state")
    shares = array("start", start, 1)
    if shares.shape != (k,):
        raise ValueError(f"start must be a state, or a probability for each of the {k} states, got shape {shares.shape}")
    if (shares < 0.0).any() or abs(shares.sum() - 1.0) > 1e-9:
        raise ValueError(f"start must be a state, or probabilities that sum to 1, got {shares}")
    shares.flags.writeable = False
    return shares, shares


def first_states(start: int | np.ndarray, steps: int, rng: np.random.Generator) -> np.ndarray:
    """A state for each of so many steps, in case an episode begins there. A single state needs no random number."""
    if isinstance(start, int):
        return np.full(steps, start)
    possible = np.flatnonzero(start)
    return possible[np.searchsorted(np.cumsum(start[possible])[:-1], rng.random(steps), side="right")]
