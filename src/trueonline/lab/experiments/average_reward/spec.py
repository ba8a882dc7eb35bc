"""Average reward — differential TD(λ) and Sarsa(λ)

Continuing tasks without discount. The paper has no such experiment. The methods learn the reward rate, the mean reward of
a step, and differential values: by how much the rewards from a state on exceed the reward rate, in total. Both are compared with
the exact solution.

The left chart of the figure shows long runs of true online differential TD(λ), with λ = 0.8 and step-sizes that fall
(α = 0.5 / (1 + t / 1,000), β = α / 10), on random processes of 10 states as in section 5.1. The middle chart sweeps constant
step-sizes over 1,000 steps, with β = ηα and η from 0.01 to 1. True online TD(λ) with γ = 0.99 is beside
it. Differential values are determined up to a constant, so the error is the variance of the difference over the stationary
distribution, for both methods.

The right chart is the access-control queue of Sutton and Barto (2018, Example 10.2): ten servers, and customers that pay 1, 2,
4 or 8. Agents are tabular and ε-greedy with ε = 0.1, so the reward rate of the ε-greedy optimal policy is what they can hope
for. That rate is exact, as are the optimal one and that of accepting all customers. β = α / 10. In the table, the
shortfall is the share of the optimal reward rate that is missed. For processes it is the error of the middle chart.

Criteria and grids were fixed before the results were seen, but after one trial run of the agent on the queue.

Question: Can the same methods learn the reward rate of a task that never ends?

Paper: The paper has no such experiment.

Look: Left: the error falls to zero as the step-sizes fall. Middle: how it depends on the step-size. Right: an agent that
decides which customers to accept, beside the best possible rate.
"""

from __future__ import annotations

import numpy as np

DIFFERENTIAL, DISCOUNTED = "true_online_differential", "true_online"
SARSA, DISCOUNTED_SARSA = "true_online_differential_sarsa", "true_online_sarsa"
DISCOUNT = 0.99  # of the methods that a user would take instead

# Prediction, on random processes with 10 states, 3 next states and σ = 0.1, as in the paper.
PROCESSES, K, B, SIGMA = 20, 10, 3, 0.1
LONG_RUN, LAM = 20_000, 0.8  # a long run with step-sizes that fall
CHECKPOINTS = np.unique(np.geomspace(10, LONG_RUN, 25).astype(int))
REST = 0.1  # what must be left of the initial error at the end of it
SHORT_RUN, RUNS_OF_SWEEP = 1_000, 5
STEP_SIZES = tuple(float(alpha) for alpha in 2.0 ** np.arange(-7, 1))
TRACE_DECAYS = (0.0, 0.4, 0.8, 0.9, 0.95)
ETAS = (0.01, 0.1, 1.0)

# Control.
RUNS, STEPS, PIECE = 5, 20_000, 1_000
EPSILON, ETA = 0.1, 0.1
CONTROL_STEP_SIZES, CONTROL_LAMS = (0.01, 0.03, 0.1), (0.0, 0.8)
GOAL = 0.95  # the share of the reward rate of the ε-greedy optimal policy that must be reached
RATE_TOLERANCE = 0.1  # by how much R̄ may differ from what the agent earns
