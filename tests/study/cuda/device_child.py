"""Run tasks on the pretended driver (`pretended_driver.c`), and say what came of it as JSON: `test_device.py` starts this.

Each argument is a JSON object of variables that tell the driver how to behave.
"""

import json
import os
import sys
from threading import Thread

import numpy as np

import trueonline as to
from trueonline import study
from trueonline.core.memory import recall
from trueonline.study.engines.cuda import code, device, engine


@to.kernel
def with_parameters(memory, x, reward, x_next, rho, depth, width):
    v, _, v_next = recall(memory, x, x_next)
    return v, depth * width * rho * reward, v_next


OWN = to.method(with_parameters, parameters={"depth": 3.0, "width": 5.0})


def cases():
    grid = (0.1, 0.5, 1.0), (0.0, 0.9)
    problems = to.problems.random_mrp(10, 3, 0.1, seed=1), to.problems.random_walk(7), to.problems.baird()
    wide = problems[0].with_features(np.random.default_rng(0).normal(size=(10, 40)))
    return [
        study.Case(
            problem,
            {**dict.fromkeys(study.applicable(problem)), "own": OWN},
            *grid,
            5,
            50,
            after=after,
            parameters={"depth": [2.0, 7.0]},
        )
        for problem in (*problems, wide)
        for after in (0, 7)
    ]


def expected(task):
    """What the pretended kernel writes: a sum of the last number of everything that it was given."""
    case, method = task.case, task.resolved
    features, *measures = case.arrays
    constants = case.after + case.problem.discount + method.second + features.size + method.numbers[0]
    for run in task.runs:
        whole = constants + sum(float(part.ravel()[-1]) for part in (*case.trajectory(run), *measures))
        yield whole + 1e3 * np.array(case.step_sizes)[:, None] + 1e6 * np.array(case.trace_decays)


def attempt(tasks, variables):
    os.environ.update(variables)
    device.gpu.cache_clear()
    found, said = {}, []

    def run():
        try:
            engine.run(tasks, lambda task, table: found.update({task: table["error"].to_numpy()}), device.gpu(0))
        except (OSError, ValueError) as error:
            said.append(f"{type(error).__name__}: {error}")

    for _ in range(2):  # in two threads one after the other, the second time with what the first left
        thread = Thread(target=run)
        thread.start()
        thread.join()
    for name in variables:
        del os.environ[name]
    right = [task for task in found if np.allclose(found[task], np.ravel(list(expected(task))), rtol=1e-12, atol=0.0)]
    return {"tasks": len(tasks), "found": len(found), "right": len(right), "said": said}


if __name__ == "__main__":
    code.machine_code = lambda *about: bytes(64)
    every = [task for case in cases() for task in case.tasks()]
    json.dump([attempt(every, json.loads(argument)) for argument in sys.argv[1:]], sys.stdout)
