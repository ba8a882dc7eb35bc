"""The returns of section 3, with γ and λ of every state in their own right.

Time runs as in the arrays of a stream: `rewards[t]` is R_{t+1}, `discounts[t]` is γ_{t+1}, `trace_decays[t]` is λ_{t+1},
and `next_values[t]` is V(S_{t+1} | w_t), the value of the next state with the weights of before.
"""

from __future__ import annotations

import numpy as np


def n_step_returns(k: int, h: int, rewards: np.ndarray, discounts: np.ndarray, next_values: np.ndarray) -> np.ndarray:
    """G_k^{(1)}, …, G_k^{(h−k)}.

    G_k^{(n)} = Σ_{i=1}^{n} (∏_{j=1}^{i−1} γ_{k+j}) R_{k+i} + (∏_{j=1}^{n} γ_{k+j}) V(S_{k+n} | w_{k+n−1})
    """
    discount = np.cumprod(discounts[k:h])  # ∏_{j=1}^{n} γ_{k+j}, n = 1, …, h − k
    rewarded = np.cumsum(np.concatenate(([1.0], discount[:-1])) * rewards[k:h])
    return rewarded + discount * next_values[k:h]


def interim_lambda_return(
    k: int,
    h: int,
    rewards: np.ndarray,
    discounts: np.ndarray,
    trace_decays: np.ndarray,
    next_values: np.ndarray,
) -> float:
    """G_k^{λ|h}, the λ-return of S_k that uses data up to the horizon h > k only.

    G_k^{λ|h} = Σ_{n=1}^{h−k−1} (1 − λ_{k+n}) (∏_{j=1}^{n−1} λ_{k+j}) G_k^{(n)} + (∏_{j=1}^{h−k−1} λ_{k+j}) G_k^{(h−k)}

    >>> one = np.ones(3)
    >>> float(interim_lambda_return(0, 3, rewards=one, discounts=one, trace_decays=one, next_values=one))
    4.0
    """
    lam = trace_decays[k : h - 1]
    so_far = np.concatenate(([1.0], np.cumprod(lam)))  # ∏_{j=1}^{n−1} λ_{k+j}, n = 1, …, h − k
    share = so_far * np.concatenate((1.0 - lam, [1.0]))
    return float(share @ n_step_returns(k, h, rewards, discounts, next_values))


def lambda_return(
    k: int, rewards: np.ndarray, discounts: np.ndarray, trace_decays: np.ndarray, next_values: np.ndarray
) -> float:
    """G_k^λ: the interim λ-return whose horizon is the end of the episode."""
    return interim_lambda_return(k, len(rewards), rewards, discounts, trace_decays, next_values)
