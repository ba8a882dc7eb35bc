"""One update rule per file, in the order of the paper's pseudo-code, written over `trueonline.core.memory`.

Every method learns from one transition and has the same signature:

    method(memory, v_old, x, reward, x_next, alpha, gamma, gamma_next, lam) → V, δ, V'

`gamma` and `lam` belong to the state being left: the trace decays by them. `gamma_next` belongs to the state being
entered: the bootstrap is discounted by it, and 0 means that the episode ends there. With V' given back as the next
`v_old`, and a trace that γ = 0 or a fresh start has cleared, episodes need no control flow inside a method.
"""

from trueonline.methods.accumulate_td import accumulate_td
from trueonline.methods.dutch_monte_carlo import dutch_monte_carlo
from trueonline.methods.emphatic_td import emphatic_td
from trueonline.methods.gtd import gtd
from trueonline.methods.replace_td import replace_td
from trueonline.methods.true_online_emphatic_td import true_online_emphatic_td
from trueonline.methods.true_online_gtd import true_online_gtd
from trueonline.methods.true_online_td import true_online_td
from trueonline.methods.true_online_td_varying import true_online_td_varying

__all__ = [
    "accumulate_td",
    "dutch_monte_carlo",
    "emphatic_td",
    "gtd",
    "replace_td",
    "true_online_emphatic_td",
    "true_online_gtd",
    "true_online_td",
    "true_online_td_varying",
]
