"""Forward views, as papers write them."""

from functools import cache

from trueonline.derivation import Max, Min, derive


def td_zero(k, h, R, V, gamma):
    return R[k + 1] + gamma[k + 1] * V(k, k + 1)


def clipped(k, h, R, V, gamma, lam, rho, low=-0.5, high=0.5):
    """Functions beside sums and products, arguments of one's own, and a ratio that is clipped."""
    believed = Max(low, Min(high, V(k, k + 1)))
    trust = lam[k + 1] * Min(1, rho[k + 1]) if k + 1 < h else 0
    rest = trust * clipped(k + 1, h, R, V, gamma, lam, rho) if k + 1 < h else 0
    return R[k + 1] + gamma[k + 1] * ((1 - trust) * believed + rest)


def undiscounted(k, h, R, V, lam):
    """No γ at all: what ends an episode must still be seen to."""
    rest = V(k, k + 1)
    if k + 1 < h:
        rest = (1 - lam) * V(k, k + 1) + lam * undiscounted(k + 1, h, R, V, lam)
    return R[k + 1] + rest


def weighted(k, h, R, V, gamma, lam, alpha):
    """A growth that has a factor of time k: b is not 1. And a step-size in the target."""
    more = (
        _product(gamma[j] * lam[j] for j in range(k + 1, i)) * (R[i] - lam[i] * V(i - 1, i)) for i in range(k + 2, h + 1)
    )
    return R[k + 1] + alpha[k] * sum(more)


def _product(parts):
    total = 1
    for part in parts:
        total = total * part
    return total


def cautious_sarsa(k, h, R, V, gamma, lam, greedy):
    """Sarsa(λ) whose target stops growing at an action that is not greedy."""
    on = lam[k + 1] * greedy[k + 1] if k + 1 < h else 0
    rest = on * cautious_sarsa(k + 1, h, R, V, gamma, lam, greedy) if k + 1 < h else 0
    return R[k + 1] + gamma[k + 1] * ((1 - on) * V(k, k + 1) + rest)


def capped(k, h, R, V, gamma, lam, rho, cap):
    """A parameter in the target."""
    if k + 1 == h:
        return R[h] + gamma[h] * V(k, h)
    trust = lam[k + 1] * Min(cap, rho[k + 1])
    rest = capped(k + 1, h, R, V, gamma, lam, rho, cap)
    return R[k + 1] + gamma[k + 1] * ((1 - trust) * V(k, k + 1) + trust * rest)


@cache
def derived(view, step=None):
    return derive(view, step)


def twice_for_floats(k, h, R):
    """The class of a product cannot be refused when it is asked for, as that of a symbol can."""
    return R[k + 1] * (2 if isinstance(1 * R[k + 1] + 0.5, float) else 1)
