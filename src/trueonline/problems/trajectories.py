"""Runs of a process, on-policy and off-policy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Trajectory(NamedTuple):
    """A run of a process.

    Attributes
    ----------
    states : numpy.ndarray
        The states, one more than there are rewards.
    rewards : numpy.ndarray
        ``rewards[t]`` is the reward of the transition from ``states[t]``.
    discounts : numpy.ndarray
        ``discounts[t]`` is 0 if the transition ended an episode. Then ``states[t + 1]`` begins the next episode.
    """

    states: np.ndarray
    rewards: np.ndarray
    discounts: np.ndarray


class _WithRatios(NamedTuple):
    states: np.ndarray
    rewards: np.ndarray
    discounts: np.ndarray
    ratios: np.ndarray


class OffPolicyTrajectory(_WithRatios):
    """A run of the behaviour. It unpacks into states, rewards, discounts and ratios.

    It also has `probabilities`, an array: ``probabilities[t]`` is π(A_t | S_t).

    Attributes
    ----------
    states : numpy.ndarray
        The states, one more than there are rewards.
    rewards : numpy.ndarray
        ``rewards[t]`` is the reward of the transition from ``states[t]``.
    discounts : numpy.ndarray
        ``discounts[t]`` is 0 if the transition ended an episode. Then ``states[t + 1]`` begins the next episode.
    ratios : numpy.ndarray
        ``ratios[t]`` is π(A_t | S_t) / b(A_t | S_t) of the action that was taken in ``states[t]``.
    """

    probabilities: np.ndarray
