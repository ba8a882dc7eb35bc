"""Times of one installed version, in nanoseconds a step, as JSON: `benchmarks.versions` runs this file in two environments.

It uses the public interface alone, so that it runs with an older version too.
"""

import json
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

import trueonline as to
from trueonline import control, study
from trueonline.control import atari
from trueonline.derivation import derive, views
from trueonline.lab.experiment import Settings
from trueonline.lab.experiments import random_mrps
from trueonline.streams.horde.horde import Horde
from trueonline.streams.questions.questions import Question, discount_of

QUICK = "--quick" in sys.argv  # whether it runs at all, and no number
STEPS, PIECES = (500, 1) if QUICK else (20_000, 5)


def best(function, steps):
    """The shortest of several pieces of work: what else the machine does can only add to it."""
    function()
    taken = []
    for _ in range(PIECES):
        begin = perf_counter()
        function()
        taken.append(perf_counter() - begin)
    return 1e9 * min(taken) / steps


def whole(numbers, runs):
    """A study with all cores, from its problems to results on disk."""
    taken = []
    for _ in range(1 if QUICK else 2):
        with tempfile.TemporaryDirectory() as folder:
            begin = perf_counter()
            cases = [
                case
                for number in numbers
                for case in random_mrps.cases(number, Settings(Path(folder)), runs, random_mrps.PAPERS)
            ]
            study.execute(cases, folder)
            taken.append(perf_counter() - begin)
    return 1e9 * min(taken) / sum(task.steps for case in cases for task in case.tasks())


def updates(learner, rows):
    def work():
        learner.start(rows[0])
        update = learner.update
        for x in rows[1:]:
            update(1.0, x)

    return work


def main():
    rng = np.random.default_rng(0)
    sparse = rng.integers(222, size=(STEPS + 1, 9)) + 222 * np.arange(9)
    dense = rng.normal(size=(STEPS // 4 + 1, 100)) / 10.0
    rewards = rng.normal(size=STEPS)
    settings = {"step_size": 0.01, "trace_decay": 0.9, "discount": 0.99}
    found = {}

    learner = to.TrueOnlineTD(2000, **settings)
    found["sparse: run, 9 of 2,000 active"] = best(lambda: learner.run(sparse, rewards), STEPS)
    found["update: 9 of 2,000 active"] = best(updates(learner, list(sparse)), STEPS)
    wide = to.TrueOnlineTD(100, **settings)
    found["dense: run, 100 features"] = best(lambda: wide.run(dense, rewards[: len(dense) - 1]), len(dense) - 1)
    found["update: 100 dense features"] = best(updates(wide, list(dense)), len(dense) - 1)
    for name, method, more in (
        ("gtd", to.GTD, {"second_step_size": 0.01}),
        ("true online gtd", to.TrueOnlineGTD, {"second_step_size": 0.01}),
        ("emphatic", to.EmphaticTD, {}),
        ("step-size adaptation", to.TrueOnlineTD, {"bound": 1.0, "meta_step_size": 0.01}),
    ):
        other = method(2000, **settings, **more)
        found[f"family: {name}, run"] = best(lambda other=other: other.run(sparse, rewards), STEPS)
    derived = derive(views.lambda_return).learner(2000, **settings)
    found["derived: run"] = best(lambda: derived.run(sparse, rewards), STEPS)
    found["derived: update"] = best(updates(derived, list(sparse)), STEPS)

    agent = control.TrueOnlineSarsa(2000, 3, **settings, seed=0)
    rows = list(sparse[:3001])

    def act():
        agent.start(rows[0])
        for x in rows[1:]:
            agent.step(0.1, x)

    found["agent: step"] = best(act, len(rows) - 1)

    problem = to.problems.random_mrp(100, 10, 0.1, seed=0)
    grid = tuple(np.arange(1, 21) / 10.0), (0.0, 0.5, 0.8, 0.9, 0.95, 1.0)
    for name in ("accumulate", "replace", "true_online"):
        task = study.Case(problem, {name: None}, *grid, 4, 1000).tasks()[0]
        found[f"study: sweep, {name}, 100 states"] = best(task.compute, task.steps)
    for name, numbers, runs in (("Figure 4", (0,), 50), ("two MRPs of each class, as in many-mrps", (1, 2), 10)):
        found[f"study: {name}, a step of the whole"] = whole(numbers, 1 if QUICK else runs)

    discounts = [discount_of(seconds, 10.0) for seconds in (0.5, 1.0, 2.0, 4.0, 8.0)]
    questions = [Question(f"{i}", discounts[i % len(discounts)], 0.9, 0.1 / 9) for i in range(200)]
    horde = Horde(20_000, questions)
    cumulants = rng.normal(size=(2000, len(questions)))
    met = np.sort(rng.integers(2000, size=(2001, 9)) + 2000 * np.arange(9), axis=1)
    found["horde: run, 200 questions"] = best(lambda: horde.run(met, cumulants), len(cumulants))

    run, settings = ((getattr(atari, f"Atari{name}", None) or getattr(atari, name)) for name in ("Run", "Settings"))
    play = run(settings(step_size=0.5, trace_decay=0.9), atari.learn_background("asterix", decisions=300))
    found["atari: a decision"] = best(lambda: [play._decide() for _ in range(200)], 200)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
