"""Average reward: differential TD(λ) on random processes, and differential Sarsa(λ) on the access-control queue.

`spec` has the specification. `random_processes` and `queue_runs` run and judge prediction and control, and `pictures` draws both.
"""

from __future__ import annotations

import numpy as np

from trueonline.lab.best_rows import BestRows
from trueonline.lab.experiment import Experiment, Outcome, Settings
from trueonline.lab.experiments.average_reward import pictures, queue_runs, random_processes, spec
from trueonline.problems import AccessControl, AverageReward, random_mrp


def run(settings: Settings) -> Outcome:
    problems = [
        AverageReward(random_mrp(spec.K, spec.B, spec.SIGMA, seed=np.random.SeedSequence([settings.seed, number])))
        for number in range(settings.number(spec.PROCESSES))
    ]
    # Process × 2 × time.
    courses = np.array([random_processes.course(problem, [settings.seed, i]) for i, problem in enumerate(problems)])
    swept = random_processes.sweeps(problems, settings)
    queue = AccessControl()
    earned, rates = queue_runs.control_runs(queue, settings)
    claims = [
        random_processes.exactness(problems[0], settings),
        *random_processes.convergence(courses, settings.seed),
        *random_processes.comparisons(swept),
        *queue_runs.queue_claims(queue, earned, rates, settings.seed),
    ]
    figures = {"figure": lambda: pictures.picture(courses, swept, earned, queue)}
    return Outcome(pictures.data(swept, earned, queue), figures, claims)


BEST = BestRows(("task", "method"), "shortfall")
EXPERIMENT = Experiment("average-reward", spec.__doc__, run, BEST)
