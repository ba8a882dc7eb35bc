"""The claims of the off-policy study: convergence on the counterexamples, and comparisons of methods at their best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueonline.lab.experiment import (
    HOLDS,
    ROUNDING,
    Claim,
    Settings,
    at_least,
    at_most,
    interval,
    overall,
    resample,
)
from trueonline.lab.experiments.offpolicy import spec
from trueonline.lab.experiments.offpolicy.sweep_errors import Errors
from trueonline.lab.style import NAMES

AT_0 = {"off_policy": "off-policy TD(0)", "gtd": "GTD(0)", "emphatic": "emphatic TD(0)"}


def convergence(ends: Mapping[str, Errors], settings: Settings) -> list[Claim]:
    """The claims about the error at the end, on each counterexample."""
    claims = []
    for problem, errors in ends.items():
        weights = resample(errors.units, seed=settings.seed)
        at_0 = errors.at_lambda_0()
        claims.append(diverges(problem, at_0, weights))
        for method in ("gtd", "emphatic"):
            claim = (
                f"{problem}: {AT_0[method]} does not diverge if its step-size is small enough: at its best its error at the "
                "end is no larger than at the beginning"
            )
            claims.append(_ends_below(claim, 1.0, at_0, method, weights))
        for method in spec.FAMILY:
            claim = (
                f"{problem}: the error of {NAMES[method]} goes to 0: at its best it ends below {100 * spec.GONE:g} % of the "
                "initial error"
            )
            claims.append(_ends_below(claim, spec.GONE, errors, method, weights))
    return claims


def diverges(problem: str, at_0: Errors, weights: np.ndarray) -> Claim:
    """TD(0), which is also its own true online form: at every step-size more than half of the runs end above 1."""
    worse = (at_0.by_method["off_policy"][:, 0, :, 0] > 1.0).astype(float)  # run × α
    samples = weights @ worse
    bounds = [interval(samples[:, i]) for i in range(len(spec.ALPHAS))]
    verdicts = [at_least(low, high, 0.5) for low, high in bounds]
    exceptions = [f"{alpha:g}" for alpha, verdict in zip(spec.ALPHAS, verdicts, strict=True) if verdict != HOLDS]
    return Claim(
        f"{problem}: off-policy TD(0) diverges at every step-size of the grid",
        overall(verdicts),
        {
            "holds if": "at every step-size the error of more than half of the runs is larger at the end than at the beginning",
            "share of such runs, α by α": [float(share) for share in worse.mean(axis=0)],
            "step-sizes": [float(alpha) for alpha in spec.ALPHAS],
            "exceptions": exceptions or "none",
            "runs": len(worse),
        },
        len(worse),
    )


def comparisons(
    counterexamples: Mapping[str, Errors], random: Mapping[tuple[str, float], Errors], settings: Settings
) -> list[Claim]:
    """The claims about which method is better, by the mean error over all steps."""
    named = {f"random MDPs, {name}, distance {distance:g}": errors for (name, distance), errors in random.items()}
    everywhere = {**counterexamples, **named}
    details = [
        _no_worse(place, errors, ours, plain, settings)
        for place, errors in everywhere.items()
        for plain, ours in spec.PAIRS.items()
    ]
    summaries = [
        _summary(
            "True online methods at their best are at least as good as their conventional counterparts at theirs, on all "
            "problems",
            details,
        )
    ]
    for other in ("gtd", "emphatic"):
        stable = [_no_worse(place, errors, "off_policy", other, settings) for place, errors in named.items()]
        claim = f"On random MDPs, where off-policy TD(λ) is mostly stable, it is at its best at least as good as {NAMES[other]}"
        summaries.append(_summary(claim, stable))
    return [*summaries, *details]


def _ends_below(claim: str, bound: float, errors: Errors, method: str, weights: np.ndarray) -> Claim:
    """The claim that the error at the end is below a bound, at the best parameters."""
    low, high = interval(errors.best(method, weights))
    return Claim(
        claim,
        at_most(low, high, bound),
        {
            "error at the end": float(errors.best(method)[0]),
            "with": errors.parameters(method),
            "95 % interval": [low, high],
            **_shares(errors, method),
        },
        errors.units,
    )


def _summary(claim: str, details: Sequence[Claim]) -> Claim:
    verdicts = [detail.verdict for detail in details]
    counts = {verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))}
    differences = [detail.numbers["relative difference"] for detail in details]
    return Claim(
        claim,
        overall(verdicts),
        {"comparisons": len(details), **counts, "smallest and largest difference": [min(differences), max(differences)]},
    )


def _no_worse(place: str, errors: Errors, ours: str, other: str, settings: Settings) -> Claim:
    weights = resample(errors.units, seed=settings.seed)
    low, high = interval(errors.best(ours, weights) / errors.best(other, weights) - 1.0)
    best = {NAMES[name]: float(errors.best(name)[0]) for name in (ours, other)}
    numbers: dict[str, Any] = {
        **best,
        "relative difference": float(errors.best(ours)[0] / errors.best(other)[0] - 1.0),
        "95 % interval": [low, high],
        **{f"parameters of {NAMES[name]}": errors.parameters(name) for name in (ours, other)},
    }
    return Claim(
        f"{place}: {NAMES[ours]} at its best is at least as good as {NAMES[other]}",
        at_most(low, high, ROUNDING),
        numbers,
        errors.units,
    )


def _shares(errors: Errors, method: str) -> dict[str, float]:
    """How many runs end with a larger error, at the best parameters and over all parameters."""
    by_setting = errors.by_method[method].reshape(errors.units, -1)
    mean = errors.mean(method)[0]
    return {
        "share of runs there whose error is larger at the end": float((by_setting[:, mean.argmin()] > 1.0).mean()),
        "share of all settings whose mean error is larger at the end": float((mean > 1.0).mean()),
    }
