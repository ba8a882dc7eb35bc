"""The claims of the grid: about all classes at once, and about the trends over k, b and σ."""

from __future__ import annotations

import numpy as np

from trueonline.lab.claims import FAILS, HOLDS, NOISE, ROUNDING, Claim, Estimate
from trueonline.lab.experiments.mrp_grid import spec
from trueonline.lab.experiments.mrp_grid.advantages import Numbers, log_ratios
from trueonline.lab.experiments.random_mrps import PAPERS
from trueonline.lab.style import NAMES


def claims(each: Numbers, weights: np.ndarray) -> list[Claim]:
    """All claims of the grid."""
    claims = []
    for other in ("accumulate", "replace"):
        representations = [name for name, against in spec.COMPARISONS if against == other]
        logs = np.hstack([log_ratios(each, name, other) for name in representations])
        places = [f"{spec.label(*kind)} {name}" for name in representations for kind in spec.classes()]
        claims.append(everywhere(other, logs, places, weights))
    for representation in PAPERS:
        claims += trends(representation, log_ratios(each, representation, "accumulate"), weights)
    return claims


def everywhere(other: str, logs: np.ndarray, places: list[str], weights: np.ndarray) -> Claim:
    """A claim about all classes at once. Its intervals contain all means with 95 % together.

    Some of hundreds of separate intervals would exclude 0 by chance. Here a mean may be `width` standard errors away, where
    `width` is the 95 % quantile of the largest distance, in standard errors, that a bootstrap sample has in any class.
    """
    means, samples = logs.mean(axis=0), weights @ logs
    spread = samples.std(axis=0)
    distances = np.abs(samples - means) / np.where(spread > 0.0, spread, 1.0)
    width = float(np.quantile(distances.max(axis=1), 0.95))
    low, high = means - width * spread, means + width * spread
    worse, better, no_worse = low > ROUNDING, high < -ROUNDING, high <= ROUNDING
    worst = int(means.argmax())
    return Claim(
        f"In every class and representation true online TD(λ) is on average at least as good as {NAMES[other]}",
        FAILS if worse.any() else HOLDS if no_worse.all() else NOISE,
        {
            "classes and representations": len(means),
            "mean is better": int((means < -ROUNDING).sum()),
            "mean is worse": int((means > ROUNDING).sum()),
            "better, beyond the simultaneous 95 % interval": int(better.sum()),
            "worse, beyond it": int(worse.sum()),
            "which": [places[i] for i in np.flatnonzero(worse)] or "none",
            "largest mean loss": float(np.exp(means[worst]) - 1.0),
            "in": places[worst],
            "largest mean advantage": float(1.0 - np.exp(means.min())),
            "found in": places[int(means.argmin())],
        },
        len(logs),
    )


def trends(representation: str, logs: np.ndarray, weights: np.ndarray) -> list[Claim]:
    """Section 5.4: the advantage is larger with fewer states, and with a less stochastic return (small b, small σ)."""
    grid = np.array([(1.0, np.log2(k), np.log2(b), sigma) for k, b, sigma in spec.classes()])
    slopes = (
        logs @ np.linalg.pinv(grid).T
    )  # of each MRP: least squares are linear, so their mean is the slope of the mean
    meanings = (
        ("there are fewer states k", "k is doubled"),
        ("a state has fewer next states b", "b is doubled"),
        ("rewards are less noisy (σ)", "σ grows by 1"),
    )
    claims = []
    for slope, (words, unit) in zip(slopes.T[1:], meanings, strict=True):
        change = Estimate.mean(slope, 0, weights)
        growth = Estimate(np.exp(change.rows) - 1.0)
        claims.append(
            Claim(
                f"{representation}: the advantage over {NAMES['accumulate']} is larger if {words}",
                change.judge(at_least=0.0),
                {
                    f"growth of the ratio of errors when {unit}": growth.value,
                    "95 % interval": growth.interval,
                    "fit": "least squares of ln(ratio) on log₂ k, log₂ b and σ over all classes",
                },
                len(logs),
            )
        )
    return claims
