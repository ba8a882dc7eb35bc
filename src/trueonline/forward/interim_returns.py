"""The returns of section 3. Every state has its own γ and λ.

Time runs as in the arrays of a stream: `rewards[t]` is R_{t+1}, `discounts[t]` is γ_{t+1}, `trace_decays[t]` is λ_{t+1},
and `next_values[t]` is V(S_{t+1} | w_t), the value of the next state with the weights from before the update.
"""

from __future__ import annotations

import numpy as np


def n_step_returns(k: int, h: int, rewards: np.ndarray, discounts: np.ndarray, next_values: np.ndarray) -> np.ndarray:
    """Compute the n-step returns G_k^{(1)}, …, G_k^{(h−k)} of S_k.

    G_k^{(n)} = Σ_{i=1}^{n} (∏_{j=1}^{i−1} γ_{k+j}) R_{k+i} + (∏_{j=1}^{n} γ_{k+j}) V(S_{k+n} | w_{k+n−1})

    Parameters
    ----------
    k : int
        The time of the state S_k.
    h : int
        The horizon, h > k.
    rewards : numpy.ndarray
        `rewards[t]` is R_{t+1}.
    discounts : numpy.ndarray
        `discounts[t]` is γ_{t+1}.
    next_values : numpy.ndarray
        `next_values[t]` is V(S_{t+1} | w_t).

    Returns
    -------
    numpy.ndarray
        The h − k returns.

    Examples
    --------
    >>> one = np.ones(3)
    >>> n_step_returns(0, 3, rewards=one, discounts=one, next_values=one)
    array([2., 3., 4.])
    """
    discount = discounts[k:h].cumprod()  # ∏_{j=1}^{n} γ_{k+j}, n = 1, …, h − k
    rewarded = (np.concatenate(([1.0], discount[:-1])) * rewards[k:h]).cumsum()
    return rewarded + discount * next_values[k:h]


def interim_lambda_return(
    k: int, h: int, rewards: np.ndarray, discounts: np.ndarray, trace_decays: np.ndarray, next_values: np.ndarray
) -> float:
    """Compute the interim λ-return G_k^{λ|h} of S_k, from data up to the horizon h only.

    G_k^{λ|h} = Σ_{n=1}^{h−k−1} (1 − λ_{k+n}) (∏_{j=1}^{n−1} λ_{k+j}) G_k^{(n)} + (∏_{j=1}^{h−k−1} λ_{k+j}) G_k^{(h−k)}

    Parameters
    ----------
    k : int
        The time of the state S_k.
    h : int
        The horizon, h > k.
    rewards : numpy.ndarray
        `rewards[t]` is R_{t+1}.
    discounts : numpy.ndarray
        `discounts[t]` is γ_{t+1}.
    trace_decays : numpy.ndarray
        `trace_decays[t]` is λ_{t+1}.
    next_values : numpy.ndarray
        `next_values[t]` is V(S_{t+1} | w_t).

    Returns
    -------
    float
        The interim λ-return.

    Examples
    --------
    >>> one = np.ones(3)
    >>> float(interim_lambda_return(0, 3, rewards=one, discounts=one, trace_decays=one, next_values=one))
    4.0
    """
    return float(lambda_shares(trace_decays[k:h]) @ n_step_returns(k, h, rewards, discounts, next_values))


def lambda_return(
    k: int, rewards: np.ndarray, discounts: np.ndarray, trace_decays: np.ndarray, next_values: np.ndarray
) -> float:
    """Compute the λ-return G_k^λ of S_k: the interim λ-return whose horizon is the end of the episode.

    Parameters
    ----------
    k : int
        The time of the state S_k.
    rewards : numpy.ndarray
        `rewards[t]` is R_{t+1}.
    discounts : numpy.ndarray
        `discounts[t]` is γ_{t+1}.
    trace_decays : numpy.ndarray
        `trace_decays[t]` is λ_{t+1}.
    next_values : numpy.ndarray
        `next_values[t]` is V(S_{t+1} | w_t).

    Returns
    -------
    float
        The λ-return.

    Examples
    --------
    >>> one = np.ones(3)
    >>> lambda_return(1, rewards=one, discounts=one, trace_decays=one, next_values=np.zeros(3))
    2.0
    """
    return interim_lambda_return(k, len(rewards), rewards, discounts, trace_decays, next_values)


# --- The shares that an average gives to the n-step returns -------------------------------------------


def lambda_shares(trace_decays: np.ndarray) -> np.ndarray:
    """The shares of the interim λ-return, from λ_{k+1}, …, λ_h. They are geometric, and the longest return gets the rest.

    >>> lambda_shares(np.array([0.5, 0.5, 0.5]))
    array([0.5 , 0.25, 0.25])
    """
    lam = trace_decays[:-1]
    so_far = np.concatenate(([1.0], lam.cumprod()))  # ∏_{j=1}^{n−1} λ_{k+j}, n = 1, …, h − k
    return so_far * np.concatenate((1.0 - lam, [1.0]))


def gamma_shares(discounts: np.ndarray) -> np.ndarray:
    """The shares of the γ-return, from γ_{k+1}, …, γ_h: the inverse variance of each n-step return, scaled to sum to 1.

    Var_n = Σ_{i=1}^{n} ∏_{j=1}^{i−1} γ_{k+j}². Here all rewards have the same variance and are uncorrelated, and the bootstrap is
    certain. With a constant γ this is Σ_{i=1}^{n} γ^{2(i−1)}, the model of Konidaris, Niekum and Thomas (2011).

    >>> gamma_shares(np.array([1.0, 1.0]))   # 1 : 1/2
    array([0.66666667, 0.33333333])
    """
    squares = np.cumprod(np.concatenate(([1.0], discounts[:-1] ** 2)))  # ∏_{j=1}^{i−1} γ_{k+j}², i = 1, …, h − k
    certainty = 1.0 / np.cumsum(squares)
    return certainty / certainty.sum()


def omega_shares(covariance: np.ndarray) -> np.ndarray:
    """The shares of the Ω-return, Ω⁻¹1 / (1ᵀΩ⁻¹1): the average of least variance if Ω is the covariance of the n-step returns.

    Shares may be negative. The shortest return gets everything if the longer ones only add to its noise:

    >>> omega_shares(np.array([[1.0, 1.0], [1.0, 2.0]]))
    array([1., 0.])
    """
    certainty = np.linalg.solve(covariance, np.ones(len(covariance)))
    return certainty / certainty.sum()


def first_shares(shares: np.ndarray, length: int) -> np.ndarray:
    """The first of given shares, for the returns that are known so far. The longest return gets the shares of all longer ones.

    At the end of an episode this changes nothing: all returns that would reach beyond the end are the same.

    >>> first_shares(np.array([0.5, 0.25, 0.25]), 2)
    array([0.5, 0.5])
    """
    return np.concatenate((shares[: length - 1], [shares[length - 1 :].sum()]))
