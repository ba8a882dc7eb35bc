"""Monte Carlo prediction with dutch traces: no bootstrapping, in constant memory (van Hasselt and Sutton 2015).

At the end of an episode the weights are those of storing the episode and updating each of its states towards its return. Before
the end they are as if the episode ended now. λ (`trace_decay`) has no meaning here and is ignored.

Examples
--------
>>> import trueonline as to
>>> learner = to.MonteCarlo(n_features=2, step_size=0.5, trace_decay=1.0, discount=1.0)
>>> learner.start(0)
>>> _ = learner.update(1.0, 1), learner.update(1.0, None)
>>> learner.weights
array([1. , 0.5])
"""

from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, recall


@kernel
def dutch_monte_carlo(memory, x, reward, x_next, alpha, gamma, gamma_next):
    v, trace_x, v_next = recall(memory, x, x_next)  # V ← wᵀφ,  eᵀφ
    decay(memory, gamma)  # e ← γe …
    imprint(memory, x, alpha - alpha * gamma * trace_x, -alpha * v)  # … + αφ − αγ(eᵀφ)φ  and  w ← w − αVφ
    learn(memory, reward)  # w ← w + Re
    return v, reward + gamma_next * v_next - v, v_next
