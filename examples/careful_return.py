"""A forward view of one's own: the off-policy λ-return, with traces that do not trust ratios above 1.

    trueonline derive examples/careful_return.py      # its backward view, checked against this
    python examples/careful_walk.py                   # and does it learn?

docs/derive.md tells the story.
"""

from trueonline.derivation import Min


def careful_return(k, h, R, V, gamma, lam, rho):
    if k + 1 == h:  # the horizon: bootstrap
        return R[h] + gamma[h] * V(k, h)
    trust = lam[k + 1] * Min(1, rho[k + 1])
    rest = careful_return(k + 1, h, R, V, gamma, lam, rho)
    return R[k + 1] + gamma[k + 1] * ((1 - trust) * V(k, k + 1) + trust * rest)


def step(k, alpha, rho):
    return alpha[k] * rho[k]
