"""Weights and eligibility trace as one object, exact at the cost of the active features only.

A method changes two vectors, the trace e and the weights w. A naive implementation touches all n entries of both at every step.
This memory keeps changes *owed*: two scalars s and c stand for the changes that every traced entry still has to undergo.

    e_i = s·z_k        w_i = u_i + y_k + c·z_k        with k = slot_i, the entry's place on the list of traced entries

Entries without trace have slot 0, where y and z are always zero. So reading needs no branch. The operations cost:

| what a method wants         | what is done                                                                          |
|-----------------------------|---------------------------------------------------------------------------------------|
| read wᵀx and eᵀx            | the sums above over the active features                                               |
| e ← g·e                     | s ← g·s                                                                               |
| e ← e + a·x and w ← w + b·x | z_k ← z_k + (a/s)·x_i and y_k ← y_k + (b − c·a/s)·x_i over the active features        |
| w ← w + b·e                 | c ← c + b·s                                                                           |
| e_i ← 1 where x_i = 1       | z_k ← 1/s and y_k ← y_k − c·(1/s − old z_k) over the active features                  |
| e ← 0                       | s ← 0                                                                                 |
| w ← g·w                     | G ← g·G, where w_i = G·(u_i + y_k + c·z_k), and all that is added to w is divided by G |

As s shrinks, digits are lost. So before an imprint, when s has left [EDGE, 1/EDGE], the list is *rebased*: y ← y + c·z,
z ← s·z, c ← 0, s ← 1, one vectorised pass over consecutive numbers. When the list has doubled since the last look,
entries whose trace is below DROP of the whole trace are taken off it (u_i ← u_i + y_k, slot_i ← 0). Since s ← 0 is an
ordinary value here, λ = 0, γ = 0 and the end of an episode need no case of their own.

Dense features make every entry traced. The same arrays are then used without the list (`lay_out`): z_k belongs to entry
k − 1 and y is not needed, because every step passes over all entries anyway and pays what is owed on its way. One pass
is enough: an imprint is only noted, and made by the next recall (or `settle`) while it reads.

This folder is the only place that knows how weights and trace are stored. Its words:

| word             | meaning                                                                                                    |
|------------------|------------------------------------------------------------------------------------------------------------|
| recall           | read wᵀx, eᵀx and wᵀx' at once                                                                             |
| imprint          | add a multiple of x to e, and another multiple to w                                                        |
| owe, owed        | changes that are postponed: s and c hold them for all traced entries at once                               |
| pay              | flush what is owed to w: y ← y + c·z over the list, and c ← 0                                              |
| rebase           | flush what is owed to both vectors, so that s is 1 and c is 0, and compact the list                        |
| fold             | rebase two traces together, so that the second no longer holds a multiple of the first (`two_traces`) |
| note, noted      | buffer an imprint of dense features until the next pass over all entries                                   |
| settle           | flush a noted imprint now, because no pass follows                                                         |
| lay out          | change between the list (sparse features) and the dense layout                                             |
| enlist           | put every entry on the list for good, for short runs; in `meta_gradient`, put one entry on the list        |
| share            | what is written for a feature: its value, times its own step-size if it has one                            |
| here             | the features of the current state, of which the buffers hold a copy                                        |
"""

import trueonline.core.memory.dense  # registers its loops
from trueonline.core.memory.arrays import (
    begin,
    checked_place,
    dump,
    lay_out,
    pay,
    rebuild,
    set_weights,
    snapshot,
    trace,
    traced,
    undo,
    weights,
)
from trueonline.core.memory.layout import (
    KINDS,
    Buffers,
    allocate,
    attach_one,
    beyond,
    each,
    here,
    meta,
    of_features,
    size,
    tuning,
)
from trueonline.core.memory.operations import (
    decay,
    erase,
    imprint,
    learn,
    length_squared,
    recall,
    replace,
    scale,
    settle,
    settle_all,
    shift,
    trace_along,
    used_step_size,
    value,
)
from trueonline.core.memory.sparse import action_values
from trueonline.core.memory.upkeep import products
