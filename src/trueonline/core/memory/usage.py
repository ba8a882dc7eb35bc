"""The usage of features, whose inverse is their step-size (Mahmood and Sutton 2015).

The usage U_i of a feature is the sum of the importance weights of its updates so far. Earlier updates are forgotten at the rate
ηφ_i². An earlier weight is provisional: the ratio of each later action changes it, by the trace v.

    U ← (1 − ηφ∘φ)∘(U + (ρ − 1)γλv) + ρφ∘φ        v ← ργλ(1 − ηφ∘φ)∘v + ρφ∘φ        α_i = 1 / U_i, or 0 if U_i = 0

The numbers kept are v and P = U − v. No later ratio changes P:

    P ← (1 − ηφ∘φ)∘(P + (1 − γλ)v)

Nothing cancels in this equation. U itself would lose digits when a small ρ subtracts most of it, and its inverse would be noise.

v decays everywhere by one factor, and P changes everywhere by a multiple of v. So (P, v) is a memory of the kind that weights and
their trace have, with one more operation: at active features, both shrink by a factor. A step costs the active features only.
"""

from __future__ import annotations

from trueonline.core.compiling.kernels import kernel, operation, outlined
from trueonline.core.forms import Dense, entry, is_a, loops
from trueonline.core.memory import decay, learn, used_step_size
from trueonline.core.memory.layout import COUNT, C, S
from trueonline.core.memory.upkeep import MIDDLE, REACH, rebase


@outlined
def pay(usage):
    """y ← y + c·z and c ← 0. Not fused as in `rebase`, so that of −c·z + c·z nothing is left."""
    for k in range(1, int(usage.head[COUNT]) + 1):
        usage.y[k] += usage.head[C] * usage.z[k]
    usage.head[C] = 0.0


def use(usage, x, eta, rho, decayed):
    """P ← (1 − ηx∘x)∘(P + (1 − decayed)·v) and v ← ρ·decayed·(1 − ηx∘x)∘v + ρx∘x, at once."""
    raise NotImplementedError("for kernels only")


@loops(use, dense=False)
def use_sparse(usage, x, eta, rho, decayed):
    head = usage.head
    learn(usage, 1.0 - decayed)
    decay(usage, rho * decayed)
    if abs(head[S] - MIDDLE) > REACH:
        pay(usage)
        rebase(usage)
    count = int(head[COUNT])
    for j in range(x.size):
        i, x_i = entry(x, j)
        kept, fresh = 1.0 - eta * x_i * x_i, rho * x_i * x_i / head[S]
        k = usage.slot[i]
        if k == 0:
            count += 1
            usage.slot[i] = count
            usage.owner[count] = i
            k = count
            usage.z[k] = usage.y[k] = 0.0
        usage.u[i] *= kept
        usage.y[k] = kept * usage.y[k] - head[C] * fresh
        usage.z[k] = kept * usage.z[k] + fresh
    head[COUNT] = count


@loops(use, dense=True, reassociate=True)
def use_dense(usage, x, eta, rho, decayed):
    head = usage.head
    learn(usage, 1.0 - decayed)
    decay(usage, rho * decayed)
    s, c = head[S], head[C]
    for i in range(x.size):
        square = x.values[i] * x.values[i]
        kept, z = 1.0 - eta * square, usage.z[i + 1]
        usage.u[i] = kept * (usage.u[i] + c * z)
        usage.z[i + 1] = kept * (s * z) + rho * square
    head[S], head[C] = 1.0, 0.0


@operation
def learn_by_usage(memory, x, b):
    """w ← w + b·α∘e, in a pass over all traced entries. Called when nothing is noted; x tells the layout."""

    def learn_dense(memory, x, b):
        b *= memory.head[S]
        for i in range(x.size):
            alpha = used_step_size(memory.usage, i)
            memory.u[i] += b * alpha * memory.z[i + 1]

    def learn_listed(memory, x, b):
        b *= memory.head[S]
        for k in range(1, int(memory.head[COUNT]) + 1):
            alpha = used_step_size(memory.usage, memory.owner[k])
            memory.y[k] += b * alpha * memory.z[k]

    return learn_dense if is_a(Dense, x) else learn_listed


@kernel
def shift_by_usage(memory, x, b):
    """w ← w + b·α∘x."""
    for j in range(x.size):
        i, x_i = entry(x, j)
        alpha = used_step_size(memory.usage, i)
        memory.u[i] += b * alpha * x_i
