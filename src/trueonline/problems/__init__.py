"""Problems with known answers: a model, seeded streams, exact values, and the best linear approximation of them."""

from trueonline.problems.examples import ONE_STATE_TERMINATION, one_state, random_walk, two_state
from trueonline.problems.finite_mrp import FiniteMRP, Trajectory
from trueonline.problems.random_mrp import random_mrp

__all__ = ["ONE_STATE_TERMINATION", "FiniteMRP", "Trajectory", "one_state", "random_mrp", "random_walk", "two_state"]
