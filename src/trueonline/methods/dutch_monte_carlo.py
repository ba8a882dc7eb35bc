"""Monte Carlo prediction with dutch traces, in constant memory (van Hasselt and Sutton 2015).

At every step the weights are those of updating each state of the episode, in turn, towards the return so far: as if the episode
ended now. Where it does end, they are those of storing the episode and updating towards its whole returns. λ has no meaning here.
"""

from trueonline.core.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, recall


@kernel
def dutch_monte_carlo(memory, x, reward, x_next, alpha, gamma, gamma_next):
    v, trace_x, v_next = recall(memory, x, x_next)  # V ← wᵀφ,  eᵀφ
    decay(memory, gamma)  # e ← γe …
    imprint(memory, x, alpha - alpha * gamma * trace_x, -alpha * v)  # … + αφ − αγ(eᵀφ)φ  and  w ← w − αVφ
    learn(memory, reward)  # w ← w + Re
    return v, reward + gamma_next * v_next - v, v_next
