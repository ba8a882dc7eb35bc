"""Beyond the paper — the advantage over a grid of classes of MRPs

The paper has three classes (k, b, σ) of random MRPs. Here there are 165: k states from 5 to 200, b next states of
each state from 1 to k, and rewards with a standard deviation σ from 0 to 1. Each number is about twice to three times the
one before it, so that the grid covers what is small and what is large with few classes. The classes were chosen before any
result was seen.

Everything else is as in the paper or is continued from it. A run has 10 k steps, which are the paper's 100 steps for k = 10
and its 1,000 for k = 100. Non-binary features are five normal numbers for each state, scaled to unit length, for every k.
(The paper has five for k = 10 and for k = 100.) So for k = 5 they can represent all values exactly. α and λ come from the
paper's grids. MRPs that differ in σ alone have the same transitions, expected rewards and features.

The advantage is 1 − (best error of true online TD(λ)) / (best error of the other method). Each method is at its own best α
and λ on each MRP, and the mean over MRPs is geometric. Intervals are 95 % of 1,000 bootstrap samples of the MRPs. The best
α and λ are chosen and judged on the same runs, so the errors of all methods are a little too low.

With b = 1 every transition is certain, and the process ends in a cycle that has fewer states than k. A process that falls
into several parts has no unique stationary distribution and is drawn again. Only states of the stationary distribution
count in the error.

The first two claims are about all classes at once. Their intervals are wider, so that all of them together are right with
95 %. The claims about k, b and σ are those of section 5.4, which calls a domain with small b and σ less stochastic. They
are judged by the slopes of a least-squares fit over all classes.

Question: On which kinds of random tasks is true online TD(λ) most useful?

Paper: Its advantage is larger with fewer states, and with less randomness.

Look: Each cell is a class of tasks. The colour says how much better true online TD(λ) is than the other method.
"""

from __future__ import annotations

STATES = (5, 10, 20, 50, 100, 200)
BRANCHES = (1, 2, 3, 5, 10, 0)  # 0 stands for k: every state may follow
NOISES = (0.0, 0.03, 0.1, 0.3, 1.0)
STEPS_PER_STATE = 10  # as in the paper: 100 steps for k = 10, 1,000 for k = 100
MRPS_OF_A_CLASS, RUNS = 20, 10
MRPS_AT_ONCE = 1  # MRPs of each class: one is some 1,300 tasks
COMPARISONS = (  # representation and other method
    ("tabular", "accumulate"),
    ("binary", "accumulate"),
    ("non-binary", "accumulate"),
    ("tabular", "replace"),
    ("binary", "replace"),
)


def shapes() -> list[tuple[int, int]]:
    """All k and b. A b that is not less than k is left out, since k itself is one."""
    return [(k, b or k) for k in STATES for b in BRANCHES if b < k]


def classes() -> list[tuple[int, int, float]]:
    return [(k, b, sigma) for k, b in shapes() for sigma in NOISES]


def label(k: int, b: int, sigma: float) -> str:
    return f"({k}, {b}, {sigma:g})"
