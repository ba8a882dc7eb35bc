"""The claims of the off-policy study: convergence on the counterexamples, and comparisons of methods at their best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trueonline.lab.claims import HOLDS, ROUNDING, Claim, Errors, Estimate, counts, judge, overall
from trueonline.lab.experiments.offpolicy import spec
from trueonline.lab.experiments.offpolicy.spec import at_lambda_0, parameters
from trueonline.lab.style import NAMES

AT_0 = {"off_policy": "off-policy TD(0)", "gtd": "GTD(0)", "emphatic": "emphatic TD(0)"}


def convergence(ends: Mapping[str, Errors]) -> list[Claim]:
    """The claims about the error at the end, on each counterexample."""
    claims = []
    for problem, errors in ends.items():
        at_0 = at_lambda_0(errors)
        claims.append(diverges(problem, at_0))
        for method in ("gtd", "emphatic"):
            claim = (
                f"{problem}: {AT_0[method]} does not diverge if its step-size is small enough: at its best its error at the "
                "end is no larger than at the beginning"
            )
            claims.append(_ends_below(claim, 1.0, at_0, method))
        for method in spec.FAMILY:
            claim = (
                f"{problem}: the error of {NAMES[method]} goes to 0: at its best it ends below {100 * spec.GONE_SHARE:g} % of the "
                "initial error"
            )
            claims.append(_ends_below(claim, spec.GONE_SHARE, errors, method))
    return claims


def diverges(problem: str, at_0: Errors) -> Claim:
    """TD(0), which is also its own true online form: at every step-size more than half of the runs end above 1."""
    worse = Estimate.mean((at_0.by_method["off_policy"][:, 0, :, 0] > 1.0).astype(float), at_0.seed)  # over α
    verdicts = [judge(low, high, at_least=0.5) for low, high in worse.bounds.T]
    exceptions = [f"{alpha:g}" for alpha, verdict in zip(spec.ALPHAS, verdicts, strict=True) if verdict != HOLDS]
    return Claim(
        f"{problem}: off-policy TD(0) diverges at every step-size of the grid",
        overall(verdicts),
        {
            "holds if": "at every step-size the error of more than half of the runs is larger at the end than at the beginning",
            "share of such runs, α by α": worse.value.tolist(),
            "step-sizes": spec.ALPHAS.tolist(),
            "exceptions": exceptions or "none",
            "runs": at_0.samples,
        },
        at_0.samples,
    )


def comparisons(counterexamples: Mapping[str, Errors], random: Mapping[tuple[str, float], Errors]) -> list[Claim]:
    """The claims about which method is better, by the mean error over all steps."""
    named = {f"random MDPs, {name}, distance {distance:g}": errors for (name, distance), errors in random.items()}
    details = [
        _no_worse(place, errors, ours, plain)
        for place, errors in {**counterexamples, **named}.items()
        for plain, ours in spec.PAIRS.items()
    ]
    claim = "True online methods at their best are at least as good as their conventional counterparts at theirs, on all problems"
    summaries = [_summary(claim, details)]
    for other in ("gtd", "emphatic"):
        stable = [_no_worse(place, errors, "off_policy", other) for place, errors in named.items()]
        claim = f"On random MDPs, where off-policy TD(λ) is mostly stable, it is at its best at least as good as {NAMES[other]}"
        summaries.append(_summary(claim, stable))
    return [*summaries, *details]


def _ends_below(claim: str, bound: float, errors: Errors, method: str) -> Claim:
    """The claim that the error at the end is below a bound, at the best parameters."""
    best, mean = errors.best(method), errors.mean(method)
    h, i, j = errors.place(method)
    there = errors.by_method[method][:, h, i, j]
    return Claim(
        claim,
        best.judge(at_most=bound),
        {
            "error at the end": best.value,
            "with": parameters(errors, method),
            "95 % interval": best.interval,
            "share of runs there whose error is larger at the end": float((there > 1.0).mean()),
            "share of all settings whose mean error is larger at the end": float((mean > 1.0).mean()),
        },
        errors.samples,
    )


def _summary(claim: str, details: Sequence[Claim]) -> Claim:
    verdicts = [detail.verdict for detail in details]
    differences = [detail.numbers["relative difference"] for detail in details]
    numbers = {"comparisons": len(details), **counts(verdicts)}
    return Claim(
        claim, overall(verdicts), numbers | {"smallest and largest difference": [min(differences), max(differences)]}
    )


def _no_worse(place: str, errors: Errors, ours: str, other: str) -> Claim:
    ratio = errors.ratio(ours, other)
    return Claim(
        f"{place}: {NAMES[ours]} at its best is at least as good as {NAMES[other]}",
        ratio.judge(at_most=ROUNDING),
        {
            **{NAMES[name]: errors.best(name).value for name in (ours, other)},
            "relative difference": ratio.value,
            "95 % interval": ratio.interval,
            **{f"parameters of {NAMES[name]}": parameters(errors, name) for name in (ours, other)},
        },
        errors.samples,
    )
