"""The weights of a mixture's experts: ML-Poly (Gaillard, Stoltz and van Erven 2014) with fading memory, and its regret bound.

**The mixture.** At sample t expert i forecasts f_{i,t}. The mixture forecasts p_t = Σ_i w_i f_{i,t}, with weights w_i ≥ 0 that
sum to 1.

**The targets of the weights.** A forecast is about M_t, the mean over the coming horizon, which is known late. So sample k is
*looked at* as soon as its open weight W_k = γ_{k+1} ⋯ γ_t has fallen to certain shares of the whole (`LOOKS`). The open part is
completed by the newest forecast of the mixture:

    y_k = A_k + W_k·p_t      A_k = the part of M_k that is known

**The update.** p_k is the forecast that was made, and g = sign(p_k − y_k) the gradient of |p_k − y_k|. Each look gives expert i
the regret r_i = g·(p_k − f_{i,k}). This is at least the loss |p_k − y_k| of the mixture minus that of the expert. Regrets are
divided by their size z, a running mean of mean_i |r_i|. So a change of the signal's unit is forgotten. No |r_i| counts more than
ten times: z is at least a tenth of the largest. So one wild value does not decide who is believed. A look whose largest |r_i| is
beyond the largest so far, B, is scaled down to B before B grows. Then

    R_i ← max(d·R_i + r_i, −300)      S_i ← d²·S_i + r_i²      w_i ∝ π_i·max(R_i, 0) / (B² + S_i)

The weights are π_i / Σ_j π_j while no regret is positive. The prior π_i of a learner is 1. That of a naive forecast is
1 + 20·30/(30 + n) at look n: many learners are lucky at first, and the naive forecasts are believed until there is some
experience. The factor d = 1 − 1/memory lets old regrets fade. The floor of −300 lets an
expert that was bad for long come back within some hundred good looks, when the stream has changed.

**The bound.** Regrets that fade are regrets of looks that weigh d^{−n} at look n. In these weights nothing fades, and the proof
is the usual one. A prior never grows, so Φ below never grows by it. Let R̂, Ŝ and B̂ be the sums and the largest size in these
weights, and B̂₁ the first size that was not zero. The potential Φ = Σ_i π_i·max(R̂_i, 0)² / (B̂² + Ŝ_i) grows with a look by at
most

    2·Σ_i π_i·r_i·max(R̂_i, 0) / (B̂² + Ŝ_i)  +  Σ_i π_i·u_i      u_i = r_i² / (B̂² + Ŝ_i)

The floor only raises R̂ where Φ does not see it. Scaled-down regrets have u_i ≤ 1, so u_i ≤ log₂(1 + u_i), and these sum up to
log₂(1 + Ŝ_i / B̂₁²). The first sum is zero if the weights are still those with which the forecast was made, because
Σ_i w_i r_i = 0. Otherwise it may be positive. K is the sum of these first sums over all looks, and the kernel adds it up. Scaling
down left out no more than B̂ in all. Hence

    Σ_n d^{−n}·(loss of the mixture − loss of expert i at look n) / z_n  ≤  B̂ + √((B̂² + Ŝ_i) · (K + Σ_j π_j·log₂(1 + Ŝ_j / B̂₁²)))

with the first priors π_j, because every π_i is at least 1. It holds for every stream. `Mixture.regret_bound` computes the right
side, divided by the weight of the newest look.

**What the bound does not say.**

- It is about losses divided by z_n, the size of regrets at that look. Where errors are large, they count less.
- It is about the targets y_k, which the mixture's own forecasts complete. They are not quite the means that come true.
- K is zero only if each look finds the weights of its forecast: with a single look and γ = 0. With two looks, the second look finds
  weights that the first one has changed, also with γ = 0. With delay, as for γ > 0, nothing bounds K before the stream is over. K
  may grow with every look, and then the bound allows an average loss above that of the best expert. So with delay, the bound says
  afterwards how large the regret may have been. It is no promise.

The regret could be that of the present weights instead of those of the forecast. Then K would vanish. But weights that have just
learned from neighbouring samples know most of what came true. They look better than they are, and streams without a pattern were
forecast up to a third worse than naive.
"""

from __future__ import annotations

from trueonline.core.compiling.kernels import kernel

LOOKS = (0.8, 0.1)  # the open weights at which a forecast is looked at: early, and nearly whole
MEMORY_LOOKS = 2_000.0  # looks after which a regret has faded to a third
SIZE_LOOKS = 1000.0  # looks over which the usual size of regrets is the mean
MAX_REGRET = 10.0  # no regret of a look counts more, in usual sizes
NAIVE_PRIOR, PRIOR_LOOKS = 20.0, 30.0  # how much more naive forecasts are believed at first, and looks until it is half
MIN_REGRET = -300.0  # no regret falls below it
MIN_SIZE = 1e-280  # smaller regrets are none: dividing by them could overflow
MAX_WAITING = 1024  # samples that may wait for their looks

# Numbers that the weights carry: looks, looks since the first with a regret, the usual size of regrets, B, B̂₁, the sum of all
# π_i·max(R_i, 0) / (B² + S_i), and K.
SEEN, FADED, SIZE, LARGEST, FIRST, TOTAL, DELAY = range(7)
CARRIED = 7
REGRET, SQUARES, WEIGHT = range(3)  # rows of the table, which has one column for each expert


@kernel
def mixed(weights, forecasts, size):
    """Σ_i w_i f_i, as a difference from the first forecast: forecasts that agree are mixed without rounding."""
    total = 0.0
    for i in range(size):
        total += weights[i] * (forecasts[i] - forecasts[0])
    return forecasts[0] + total


@kernel
def naive_prior(looks):
    """The prior of a naive forecast, if that of a learner is 1."""
    return 1.0 + NAIVE_PRIOR * PRIOR_LOOKS / (PRIOR_LOOKS + looks)


@kernel
def look(regret, squares, weights, carried, fade, forecasts, p, y, naive, size):
    """Learn the weights from one look: the forecasts of a sample, that of the mixture, and what has come true."""
    g = (p > y) - (p < y)
    largest = sum_of_sizes = 0.0
    for i in range(size):
        r = abs(g * (p - forecasts[i]))
        largest = max(largest, r)
        sum_of_sizes += r
    carried[SEEN] += 1.0
    carried[SIZE] += max(1.0 / SIZE_LOOKS, 1.0 / carried[SEEN]) * (sum_of_sizes / size - carried[SIZE])
    if carried[SIZE] > MIN_SIZE:  # else nobody has disagreed yet, or by next to nothing
        scale, bound = 1.0 / max(carried[SIZE], largest / MAX_REGRET), fade * carried[LARGEST]
        largest *= scale
        carried[FADED] += 1.0
        if carried[FADED] == 1.0:
            carried[FIRST] = largest
        if largest > bound:
            scale *= bound / largest
            bound = largest
        carried[LARGEST] = bound
        total = mean = 0.0
        prior = naive_prior(carried[SEEN])
        for i in range(size):
            r = scale * (g * (p - forecasts[i]))
            mean += weights[i] * r
            regret[i] = max(fade * regret[i] + r, MIN_REGRET)
            squares[i] = fade * fade * squares[i] + r * r
            if bound > 0.0:
                weights[i] = (prior if i < naive else 1.0) * max(regret[i], 0.0) / (bound * bound + squares[i])
            else:
                weights[i] = 0.0
            total += weights[i]
        carried[DELAY] += 2.0 * mean * carried[TOTAL] / fade
        carried[TOTAL] = total
        for i in range(size):
            if total > 0.0:
                weights[i] /= total
            else:
                weights[i] = (prior if i < naive else 1.0) / (prior * naive + size - naive)
