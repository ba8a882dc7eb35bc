"""Problems with known answers: a model, seeded trajectories, exact values, and the best linear approximation of the values."""

from trueonline.problems import counterexamples as off_policy
from trueonline.problems.access_control import AccessControl
from trueonline.problems.average_reward import AverageReward
from trueonline.problems.counterexamples import baird, collision, random_mdp
from trueonline.problems.examples import ONE_STATE_TERMINATION, one_state, random_walk, two_state
from trueonline.problems.finite_mrp import FiniteMRP
from trueonline.problems.off_policy_problem import OffPolicyProblem
from trueonline.problems.random_mrp import random_mrp
from trueonline.problems.trajectories import OffPolicyTrajectory, Trajectory

# `two_state` is the paper's example. The counterexample of the same name is `off_policy.two_state`.
__all__ = [
    "ONE_STATE_TERMINATION",
    "AccessControl",
    "AverageReward",
    "FiniteMRP",
    "OffPolicyProblem",
    "OffPolicyTrajectory",
    "Trajectory",
    "baird",
    "collision",
    "off_policy",
    "one_state",
    "random_mdp",
    "random_mrp",
    "random_walk",
    "two_state",
]
