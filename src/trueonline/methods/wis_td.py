"""WIS-TD(λ) (after Mahmood and Sutton 2015): weighted importance sampling, by a step-size for each feature.

The step-size of a feature is 1 over its usage (`core.memory.usage`): a large ratio counts for more without making a larger step.
`alpha` is η, the step-size of learners, by which usage is forgotten. On-policy the step-size of each feature tends to it.
Updates of earlier states are provisional: the ratios of later actions change them, by the trace d. Equal at every step to the
forward view, `forward.OnlineWISReturn`. With ρ = 1 throughout and U = 1/η, it is true online TD(λ): so it is without
`initial_step_size`.

Examples
--------
>>> import trueonline as to
>>> learner = to.WISTD(n_features=1, step_size=0.01, trace_decay=0.0, discount=0.0, initial_step_size=1e6)
>>> learner.start(0)
>>> for reward, ratio in ((1.0, 3.0), (5.0, 1.0)):
...     _ = learner.update(reward, 0, ratio=ratio)
>>> learner.weights.round(2)   # about (3·1 + 1·5) / (3 + 1)
array([2.01])
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import learn, settle_all
from trueonline.core.memory.two_traces import (
    decay_both,
    imprint_both,
    learn_from_second,
    recall_with_traces,
    second_learns,
)
from trueonline.core.memory.usage import use


@kernel
def wis_td(memory, x, reward, x_next, v_old, alpha, gamma, lam, gamma_next, rho):
    use(memory.usage, x, alpha, rho, gamma * lam)  # U, its trace, and with them A = diag(1 / U)
    v, e_x, d_x, v_next = recall_with_traces(memory, x, x_next)
    before = v_old if gamma > 0.0 else v  # V(S) as it was when S was entered; at a beginning, now
    delta_ = reward + gamma_next * v_next - before  # δ' ← R + γ'V' − V_old
    c, taken = rho * gamma * lam, (rho - 1.0) * gamma * lam
    learn_from_second(memory, taken)  # w ← w + (ρ − 1)γλ(d − ρ(dᵀφ)Aφ) + ρ(V_old − V)Aφ …
    decay_both(memory, c)  # e ← ργλe …,  d ← ργλd …
    imprint_both(memory, x, rho * (1.0 - c * e_x), rho * (before - v - taken * d_x), -rho * c * d_x)
    learn(memory, delta_)  # w: … + δ'e,  with e: … + ρ(1 − ργλeᵀφ)Aφ
    second_learns(memory, delta_ + (1.0 - gamma_next) * v_next)  # d: … − ρργλ(dᵀφ)Aφ + (R + V' − V_old)e
    settle_all(memory, x)
    return v, reward + gamma_next * v_next - v, v_next
