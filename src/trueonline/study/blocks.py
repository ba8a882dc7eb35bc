"""The sweep kernel: one trajectory, every step-size and trace decay, the error measured after every step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from trueonline.forms import Active, Dense, pointer
from trueonline.kernels import operation, specialise
from trueonline.memory import DISCOUNT, LAM_NEXT, RATIO, RATIO_OLD, TRACE_DECAY, attach, enlist, offset
from trueonline.methods import accumulate_td, replace_td, true_online_td

method = true_online_td  # a placeholder, for which `specialise` puts each method


def sweep(numbers, places, features, states, rewards, discounts, ratios, discount, root, target, alphas, lams, errors):
    """Write to errors[i, j] the mean over the steps of ‖B(w − w*)‖², over its value at w = 0, for α_i and λ_j.

    Infinite where it is no longer a finite number.
    """
    memory = attach(numbers, places)
    head = memory.head
    head[DISCOUNT] = discount
    nothing = np.zeros(memory.n)
    off = nothing - target
    initial = squared(root, off)
    for i in range(alphas.size):
        for j in range(lams.size):
            enlist(memory, nothing)
            head[LAM_NEXT] = head[TRACE_DECAY] = lams[j]
            total = v_old = gamma = 0.0
            for t in range(rewards.size):
                x = seen(features, states[t], states[max(t - 1, 0)])
                x_next = seen(features, states[t + 1], states[t])
                head[RATIO] = ratios[min(t, ratios.size - 1)]
                _, _, v_old = method(memory, v_old, x, rewards[t], x_next, alphas[i], gamma, discounts[t], lams[j])
                gamma, head[RATIO_OLD] = discounts[t], head[RATIO]
                offset(memory, x, target, off)
                total += squared(root, off)
                if not total < np.inf:
                    break
            errors[i, j] = total / rewards.size / initial if total < np.inf else np.inf


def seen(features, state, before):
    """The features of a state: from a matrix of all of them, or of the indices of the active ones."""
    raise NotImplementedError("for kernels only")


@operation(seen)
def _seen(features, state, before):
    def active(features, state, before):
        size = features.shape[1]
        return Active(pointer(features, state * size), size)

    def dense(features, state, before):
        size = features.shape[1]
        return Dense(pointer(features, state * size), pointer(features, before * size), size)

    return active if isinstance(features.dtype, types.Integer) else dense


def squared(root, off):
    """‖Br‖², with B a matrix or the diagonal of one. A sum of squares: rounding cannot turn it negative."""
    raise NotImplementedError("for kernels only")


@operation(squared, reassociate=True)
def _squared(root, off):
    def diagonal(root, off):
        total = 0.0
        for i in range(off.size):
            part = root[i] * off[i]
            total += part * part
        return total

    def full(root, off):
        total = 0.0
        for i in range(off.size):
            part = 0.0
            for j in range(off.size):
                part += root[i, j] * off[j]
            total += part * part
        return total

    return diagonal if root.ndim == 1 else full


def compiled(method: Any, *, cached: bool = False) -> Any:
    """The sweep kernel of a method."""
    return specialise(sweep, method.py_func.__name__, cached=cached, method=method)


METHODS = {"accumulate": accumulate_td, "replace": replace_td, "true_online": true_online_td}
KERNELS = {name: compiled(method, cached=True) for name, method in METHODS.items()}
