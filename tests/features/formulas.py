"""What makers of features should give, computed the slow way."""

import math

INF = math.inf


def scaled(x, low, high, scale=1.0):
    """u in [0, 1]."""
    x = min(max(x, low), high)
    if low == -INF and high == INF:
        return 0.5 + math.atan(x / scale) / math.pi
    if high == INF:
        return (2 / math.pi) * math.atan((x - low) / scale)
    if low == -INF:
        return 1 - (2 / math.pi) * math.atan((high - x) / scale)
    return (x - low) / (high - low)


def drawn(rng, d):
    """Bounds of every sort, and bins, for d dimensions."""
    low = rng.normal(size=d) * 10
    high = low + rng.exponential(5, size=d) + 0.1
    low[rng.random(d) < 0.2] = -INF
    high[rng.random(d) < 0.2] = INF
    return low, high, rng.integers(1, 7, size=d).tolist(), rng.exponential(2, size=d) + 0.1
