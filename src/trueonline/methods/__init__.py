"""One update rule per file, in the order of the paper's pseudo-code, written over `core.memory`.

A rule learns from one transition. Its signature names what it needs of the transition (`core.transition` lists what there is),
and it returns V(S), the TD error δ, and V(S'). `gamma` and `lam` belong to the state being left: the trace decays by them.
`gamma_next` belongs to the state being entered: the bootstrap is discounted by it, and 0 ends the episode. V(S') comes back as
`v_old` of the next step, and γ = 0 clears the trace, so a rule needs no control flow for episodes.
"""

from trueonline.methods.accumulate_td import accumulate_td
from trueonline.methods.dutch_monte_carlo import dutch_monte_carlo
from trueonline.methods.emphatic_td import emphatic_td
from trueonline.methods.gtd import gtd
from trueonline.methods.provisional_q import provisional_q
from trueonline.methods.provisional_td import provisional_td
from trueonline.methods.replace_clearing import replace_clearing
from trueonline.methods.replace_td import replace_td
from trueonline.methods.swift_td import swift_td
from trueonline.methods.td_star import td_star
from trueonline.methods.true_online_differential_td import true_online_differential_td
from trueonline.methods.true_online_emphatic_td import true_online_emphatic_td
from trueonline.methods.true_online_gtd import true_online_gtd
from trueonline.methods.true_online_td import true_online_td
from trueonline.methods.true_online_td_varying import true_online_td_varying
from trueonline.methods.wis_gtd import wis_gtd
from trueonline.methods.wis_td import wis_td
from trueonline.methods.wis_true_online_gtd import wis_true_online_gtd

__all__ = [
    "accumulate_td",
    "dutch_monte_carlo",
    "emphatic_td",
    "gtd",
    "provisional_q",
    "provisional_td",
    "replace_clearing",
    "replace_td",
    "swift_td",
    "td_star",
    "true_online_differential_td",
    "true_online_emphatic_td",
    "true_online_gtd",
    "true_online_td",
    "true_online_td_varying",
    "wis_gtd",
    "wis_td",
    "wis_true_online_gtd",
]
