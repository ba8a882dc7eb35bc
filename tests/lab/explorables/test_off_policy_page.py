"""The page on off-policy learning: its methods against the learners of the package, and its two tasks."""

import numpy as np
import pytest

import trueonline as to
from trueonline.problems import counterexamples

TOLERANCE = 1e-12
RUN = """
const { Learner, TASKS, walk } = trueonline.offPolicy;
return arguments[0].map((one) => {
    const walked = walk(TASKS[one.task], one);
    const { features, weights, gamma } = TASKS[one.task];
    const learner = new Learner(one.method, weights, { gamma, ...one });
    const taken = walked.ratios.map((ratio, t) => {
        learner.update(features[walked.states[t]], one.rewards[t], features[walked.states[t + 1]], ratio);
        return Array.from(learner.w);
    });
    return { ...walked, taken, features, weights, gamma };
});
"""
# Without second weights GTD(λ) is off-policy TD(λ).
LEARNERS = {
    "td": (to.GTD, 0.0),
    "gtd": (to.GTD, None),
    "emphatic": (to.EmphaticTD, None),
    "provisional": (to.ProvisionalTD, None),
}


@pytest.mark.parametrize("method", LEARNERS)
def test_a_method_equals_the_learner_of_the_package(browser, method):
    rng = np.random.default_rng(1)
    kind, beta = LEARNERS[method]
    cases = [
        {
            "task": str(rng.choice(["baird", "two_state"])), "method": method, "seed": seed, "steps": 30,
            "agrees": rng.uniform(0.1, 1.0), "lam": rng.uniform(), "alpha": rng.uniform(0, 0.02),
            "beta": rng.uniform(0, 0.1) if beta is None else beta, "rewards": rng.normal(size=30).tolist(),
        }
        for seed in range(200)
    ]  # fmt: skip
    browser.open("off_policy")
    for one, found in zip(cases, browser.run(RUN, cases), strict=True):
        more = {"second_step_size": one["beta"]} if kind is to.GTD else {}
        learner = kind(len(found["weights"]), one["alpha"], one["lam"], found["gamma"], found["weights"], **more)
        x = np.array(found["features"], float)[found["states"]]
        learner.start(x[0])
        for reward, ratio, x_next, weights in zip(one["rewards"], found["ratios"], x[1:], found["taken"], strict=True):
            learner.update(reward, x_next, ratio=ratio)
            assert np.abs(learner.weights - weights).max() <= TOLERANCE * max(1.0, np.abs(learner.weights).max())


@pytest.mark.parametrize("name", ["baird", "two_state"])
def test_a_task_is_that_of_the_package(browser, name):
    browser.open("off_policy")
    task = browser.run("return trueonline.offPolicy.TASKS[arguments[0]]", name)
    problem = getattr(counterexamples, name)()
    assert np.array_equal(task["features"], problem.features)
    assert (task["weights"], task["gamma"]) == (list(problem.initial_weights), problem.discount)
    given = {"seed": 1, "steps": 2000, "agrees": task["usual"]}
    states, ratios = browser.run(
        "const o = trueonline.offPolicy; const w = o.walk(o.TASKS[arguments[0]], arguments[1]); return [w.states, w.ratios]",
        name, given,
    )  # fmt: skip
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.3)
    assert np.unique(ratios) == pytest.approx(np.unique(problem.trajectory(100, 1).ratios))
    assert {state for state, ratio in zip(states[1:], ratios, strict=True) if ratio} == {len(problem.features) - 1}
