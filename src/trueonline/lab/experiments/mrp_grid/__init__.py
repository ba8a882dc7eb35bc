"""Beyond the paper: how the advantage of true online TD(λ) depends on k, b and σ, over a grid of classes of random MRPs.

`spec` has the specification, `advantages` the numbers, `pictures` draws them, and `claims` judges them.
"""

from __future__ import annotations

from trueonline import study
from trueonline.lab.experiment import Experiment, Outcome, Settings, resample
from trueonline.lab.experiments import random_mrps
from trueonline.lab.experiments.mrp_grid import advantages, claims, pictures, spec
from trueonline.lab.experiments.random_mrps import PAPERS, REPRESENTATIONS, _seed
from trueonline.problems import random_mrp


def cases(number: int, settings: Settings, runs: int) -> list[study.Case]:
    """The MRPs with this number, one of each class. Those that differ in σ alone are the same process with other noise."""
    made = []
    for k, b, sigma in spec.classes():
        mrp = random_mrp(k, b, sigma, seed=_seed("MRPs of a grid", settings.seed, k, b, number))
        for name in PAPERS:
            seen = mrp.with_features(
                REPRESENTATIONS[name](k, _seed("features of MRPs of a grid", settings.seed, k, b, number))
            )
            methods, grids = dict.fromkeys(study.applicable(seen)), (study.STEP_SIZES, study.TRACE_DECAYS)
            labels = {"mrp": spec.label(k, b, sigma), "representation": name}
            made.append(study.Case(seen, methods, *grids, runs, spec.STEPS_PER_STATE * k, settings.seed, labels))
    return made


def run(settings: Settings) -> Outcome:
    mrps, runs = settings.mrps or spec.MRPS_OF_A_CLASS, settings.number(spec.RUNS)
    found = list(random_mrps.bests(lambda number: cases(number, settings, runs), mrps, spec.AT_ONCE, settings))
    settings.say("All results are there. Judging the claims and drawing take about a minute.")
    each = advantages.by_place(found)
    weights = resample(mrps, seed=settings.seed)
    data = advantages.table(each, weights, runs)
    drawn = {
        "figure": pictures.advantages(data, "accumulate"),
        "against-replace": pictures.advantages(data, "replace"),
        "best-trace-decays": pictures.trace_decays(each),
    }
    return Outcome(
        data,
        drawn,
        [pictures.chart(data)],
        claims.claims(each, weights, settings),
        shown="figure",
        files={"mrps.parquet": advantages.as_parquet(found)},
        note=f"Here there are {mrps:,} MRPs of each class, with {runs:,} run{'s'[: runs != 1]} on each.",
    )


EXPERIMENT = Experiment("mrp-grid", spec.TITLE, spec.TEXT, run)
