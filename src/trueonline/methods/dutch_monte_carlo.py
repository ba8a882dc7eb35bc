"""Monte Carlo prediction with dutch traces, in constant memory (van Hasselt and Sutton 2015).

At every step the weights are as if the episode ended now, and each of its states were updated, in turn, towards its return so far.
At the end of the episode they equal the weights of storing it and updating towards whole returns. λ has no meaning here.
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
