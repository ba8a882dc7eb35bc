"""A forward view of your own: the off-policy λ-return, with traces that a ratio above 1 does not lengthen.

    trueonline derive examples/careful_return.py      # its backward view, checked against this file
    python examples/careful_walk.py                   # does it learn?

docs/guides/derive.md explains the idea.
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
