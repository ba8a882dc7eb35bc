"""Beyond the paper: how the advantage of true online TD(λ) depends on k, b and σ, over a grid of classes of random MRPs.

`spec` has the specification, `advantages` the numbers, `pictures` draws them, and `claims` judges them.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from trueonline import study
from trueonline.lab.best_rows import BestRows
from trueonline.lab.claims import resample
from trueonline.lab.experiment import Experiment, Outcome, Settings
from trueonline.lab.experiments import random_mrps
from trueonline.lab.experiments.many_mrps import note
from trueonline.lab.experiments.mrp_grid import advantages, claims, pictures, spec
from trueonline.problems import random_mrp


def cases(number: int, settings: Settings, runs: int) -> list[study.Case]:
    """The MRPs with this number, one of each class. Those that differ in σ alone are the same process with other noise."""
    made = []
    for k, b, sigma in spec.classes():
        mrp = random_mrp(k, b, sigma, seed=random_mrps.sequence("MRPs of a grid", settings.seed, k, b, number))
        features = random_mrps.sequence("features of MRPs of a grid", settings.seed, k, b, number)
        how = (features, runs, spec.STEPS_PER_STATE * k, settings.seed)
        made += [random_mrps.case(mrp, spec.label(k, b, sigma), name, *how) for name in random_mrps.PAPERS]
    return made


def run(settings: Settings) -> Outcome:
    mrps, runs = settings.options.get("mrps") or spec.MRPS_OF_A_CLASS, settings.number(spec.RUNS)
    found = random_mrps.bests(lambda number: cases(number, settings, runs), mrps, spec.MRPS_AT_ONCE, settings)
    settings.say("All results are there. Judging the claims and drawing take about a minute.")
    each = random_mrps.by_place(found)
    weights = resample(mrps, seed=settings.seed)
    data = advantages.table(each, weights, runs)
    figures = {
        "figure": lambda: pictures.advantages(data, "accumulate"),
        "against-replace": lambda: pictures.advantages(data, "replace"),
        "best-trace-decays": lambda: pictures.trace_decays(each),
    }
    parquet = pa.BufferOutputStream()
    pq.write_table(found, parquet)
    files = {"mrps.parquet": parquet.getvalue().to_pybytes()}  # every MRP, representation and method, for other questions
    return Outcome(data, figures, claims.claims(each, weights), files, note(mrps, runs))


BEST = BestRows(("representation", "other", "sigma"), "advantage", mean_over="k")
EXPERIMENT = Experiment("mrp-grid", spec.__doc__, run, BEST)
