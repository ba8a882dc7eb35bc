"""The differential λ-return: for continuing tasks without discount, rewards count by how much they exceed the reward rate.

    trueonline derive examples/differential_return.py      # its backward view, checked against this file

`rbar[j]` is R̄_j, the estimate of the reward rate before the transition out of S_j. The method that is derived learns R̄ beside the
weights, from the TD error (Wan, Naik and Sutton 2021). It is `trueonline.TrueOnlineDifferentialTD`. docs/methods/differential_td.md
explains the idea.
"""


def differential_return(k, h, R, V, gamma, lam, rbar):
    above = R[k + 1] - rbar[k]
    if k + 1 == h:  # the horizon: bootstrap
        return above + gamma[h] * V(k, h)
    rest = differential_return(k + 1, h, R, V, gamma, lam, rbar)
    return above + gamma[k + 1] * ((1 - lam[k + 1]) * V(k, k + 1) + lam[k + 1] * rest)
