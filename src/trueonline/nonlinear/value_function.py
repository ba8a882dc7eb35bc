"""Checks of a differentiable value function: of its weights, its values and its gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trueonline import inputs

ValueAndGrad = Callable[[np.ndarray, Any], tuple[float, Any]]


def checked_function(value_and_grad: Any) -> ValueAndGrad:
    """The value function that a user gave; ValueError if it is not a function."""
    if not callable(value_and_grad):
        raise ValueError(f"value_and_grad must be a function of weights and x, got {type(value_and_grad).__name__}")
    return value_and_grad


def checked_weights(weights: Any) -> np.ndarray:
    """A float64 copy of weights of any shape; ValueError unless all of them are finite numbers."""
    array = inputs.as_array("weights", weights)
    if array.dtype.kind not in "fiu" or array.ndim == 0 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(
            f"weights must be a non-empty array of finite numbers, got {array.dtype} of shape {array.shape}"
            + (", not all finite" if array.dtype.kind == "f" and not np.isfinite(array).all() else "")
        )
    return np.array(array, np.float64)


def evaluate(value_and_grad: ValueAndGrad, weights: np.ndarray, x: Any) -> tuple[float, np.ndarray]:
    """V(x | w) and ∇V(x | w); ValueError unless they are finite numbers of the right shapes."""
    pair = value_and_grad(inputs.read_only(weights.view()), x)
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise ValueError(f"value_and_grad must return (value, gradient), got {type(pair).__name__}")
    raw: Any = pair[0]
    raw = raw.item() if getattr(raw, "ndim", None) == 0 else raw  # an array of one number
    value, gradient = inputs.number("the value from value_and_grad", raw), inputs.as_array("the gradient", pair[1])
    if gradient.dtype.kind not in "fiu" or gradient.shape != weights.shape:
        raise ValueError(
            f"the gradient from value_and_grad must be numbers of the weights' shape {weights.shape}, "
            f"got {gradient.dtype} of shape {gradient.shape}"
        )
    if not np.isfinite(gradient).all():
        raise ValueError(f"the gradient from value_and_grad must be finite, got one that is not, at a value of {value}")
    return value, gradient
