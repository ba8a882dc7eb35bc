"""Beyond the paper: the off-policy methods. Which of them converge, how fast, and is the true online form better?

`spec` has the specification and gathers the results, `picture` draws them, and `claims` judges them.
"""

from __future__ import annotations

import pyarrow as pa
from pyarrow import csv

from trueonline.lab.best_rows import BestRows
from trueonline.lab.experiment import Experiment, Outcome, Settings
from trueonline.lab.experiments.offpolicy import claims, picture, spec
from trueonline.words import count


def run(settings: Settings) -> Outcome:
    runs = settings.number(spec.RUNS)
    mdps = spec.MDPS if settings.runs is None else max(2, settings.runs)
    problems = {name: make() for name, make in spec.COUNTEREXAMPLES.items()}
    steps, seed = spec.STEPS, settings.seed
    ends = {name: spec.case(problem, runs, steps, seed, steps - spec.LAST_STEPS) for name, problem in problems.items()}
    whole = {name: spec.case(problem, runs, steps, seed) for name, problem in problems.items()}
    random = {
        (name, distance): [
            spec.case(spec.mdp(number, distance, name, settings), spec.MDP_RUNS, spec.MDP_STEPS, seed)
            for number in range(mdps)
        ]
        for name in spec.REPRESENTATIONS
        for distance in spec.DISTANCES
    }
    settings.sweep([*ends.values(), *whole.values(), *(case for some in random.values() for case in some)])

    at_end = {name: spec.over_runs(case, settings) for name, case in ends.items()}
    over_all = {name: spec.over_runs(case, settings) for name, case in whole.items()}
    on_mdps = {place: spec.over_mdps(some, settings) for place, some in random.items()}
    lines = {name: spec.over_time(case, over_all[name]) for name, case in whole.items()}
    tables = {"ends": picture.table_of_ends(at_end), "lines": picture.table_over_time(lines, over_all)}
    data = picture.table_of_mdps(on_mdps)
    return Outcome(
        data,
        {"figure": lambda: picture.picture(at_end, lines, data)},
        [*claims.convergence(at_end), *claims.comparisons(over_all, on_mdps)],
        {f"{name}.csv": _csv(table) for name, table in tables.items()},
        f"Here there are {count(runs, 'run')} of each counterexample, and {count(mdps, 'random MDP')}.",
    )


def _csv(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    csv.write_csv(table, sink)
    return sink.getvalue().to_pybytes()


BEST = BestRows(("representation", "distance", "method"), "error")
EXPERIMENT = Experiment("offpolicy", spec.__doc__, run, BEST)
