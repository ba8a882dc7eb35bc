"""The methods of the pages against the learners of the package, at 1,000 random settings each.

Differences are relative to the largest weight of the run, or to 1 if that is larger.
"""

import numpy as np
import pytest

import trueonline as to

SETTINGS = 1_000
TOLERANCE = 1e-12
LEARNERS = {"accumulate": to.AccumulateTD, "replace": to.ReplaceTD, "true_online": to.TrueOnlineTD}

RUN = """
const { Learner, onlineLambdaReturn } = trueonline.methods;
return arguments[0].map((one) => {
    const learner = new Learner(one.method, one.weights.length, one);
    const steps = one.rewards.map((reward, t) => {
        const {delta} = learner.update(one.features[t], reward, one.ends[t] ? null : one.features[t + 1]);
        return [Array.from(learner.w), Array.from(learner.e), delta];
    });
    return steps;
});
"""
TRIANGLE = """
const { onlineLambdaReturn } = trueonline.methods;
return arguments[0].map((one) => onlineLambdaReturn(one).map((row) => ({
    weights: Array.from(row.weights), cells: row.cells.map((c) => [c.k, c.h, c.target, ...c.weights])})));
"""


def settings(rng, *, method, steps, single=False):
    """A random stream with random parameters: features that are a table, binary or dense, and episodes that end."""
    n = int(rng.integers(1, 8))
    form = rng.choice(["table", "binary"] if method == "replace" else ["table", "binary", "dense"])
    x = {
        "table": np.eye(n)[rng.integers(n, size=steps + 1)],
        "binary": (rng.random((steps + 1, n)) < 0.4).astype(float),
        "dense": rng.normal(size=(steps + 1, n)),
    }[form]
    largest = max(1.0, (x**2).sum(axis=1).max())  # steps beyond 1/|x|² diverge, and rounding grows with them
    ends = np.zeros(steps, bool) if single else rng.random(steps) < 0.1
    if single and rng.random() < 0.5:
        ends[-1] = True
    return {
        "method": method,
        "alpha": float(rng.uniform(0, 1) / largest),
        "gamma": float(rng.choice([rng.uniform(), 1.0, 0.0], p=[0.8, 0.15, 0.05])),
        "lam": float(rng.choice([rng.uniform(), 1.0, 0.0], p=[0.7, 0.15, 0.15])),
        "weights": rng.normal(size=n).tolist(),
        "features": x.tolist(),
        "rewards": rng.normal(size=steps).tolist(),
        "ends": ends.tolist(),
        "terminal": bool(ends[-1]),
    }


def learned(kind, one):
    """The learner of the package on the same stream: weights, trace and TD error after each step."""
    learner = kind(len(one["weights"]), one["alpha"], one["lam"], one["gamma"], one["weights"])
    x = np.array(one["features"])
    learner.start(x[0])
    for t, (reward, end) in enumerate(zip(one["rewards"], one["ends"], strict=True)):
        delta = learner.update(reward, None if end else x[t + 1])
        yield learner.weights, learner.trace, delta
        if end:
            learner.start(x[t + 1])


@pytest.mark.parametrize("method", LEARNERS)
def test_a_method_equals_the_learner_of_the_package(browser, method):
    rng = np.random.default_rng(1)
    cases = [settings(rng, method=method, steps=25) for _ in range(SETTINGS)]
    browser.open("traces")
    for one, steps in zip(cases, browser.run(RUN, cases), strict=True):
        (w, e, delta), (weights, traces, errors) = (
            map(np.array, zip(*run, strict=True)) for run in (steps, learned(LEARNERS[method], one))
        )
        size = max(1.0, np.abs(weights).max())
        assert np.abs(w - weights).max() <= TOLERANCE * size
        assert np.abs(e - traces).max() <= TOLERANCE * max(1.0, np.abs(traces).max())
        assert np.abs(delta - errors).max() <= TOLERANCE * 10 * size


def test_the_triangle_equals_the_online_lambda_return_algorithm(browser):
    """Every row ends with the weights of the definition, and the targets are the interim λ-returns."""
    rng = np.random.default_rng(2)
    cases = [settings(rng, method="true_online", steps=int(rng.integers(1, 11)), single=True) for _ in range(SETTINGS)]
    browser.open("traces")
    for one, rows in zip(cases, browser.run(TRIANGLE, cases), strict=True):
        x, rewards = np.array(one["features"]), np.array(one["rewards"])
        steps = len(rewards)
        discounts = np.full(steps, one["gamma"])
        if one["terminal"]:
            discounts[-1] = 0.0
        lam = np.full(steps, one["lam"])
        weights = [np.array(one["weights"]), *(w for w, _, _ in learned(to.OnlineLambdaReturn, one))]
        next_values = np.array([w @ after for w, after in zip(weights, x[1:], strict=False)])
        size = max(1.0, np.abs(weights).max(), np.abs(next_values).max())
        found, expected = [], []
        for h, row in enumerate(rows, start=1):
            assert [cell[:2] for cell in row["cells"]] == [[k, h] for k in range(h)]
            w = weights[0]
            for k in range(h):
                g = to.forward.interim_lambda_return(k, h, rewards, discounts, lam, next_values)
                w = w + one["alpha"] * (g - w @ x[k]) * x[k]
                expected.append([g, *w])
            expected.append([0.0, *weights[h]])
            found += [cell[2:] for cell in row["cells"]] + [[0.0, *row["weights"]]]
        assert np.abs(np.array(found) - expected).max() <= TOLERANCE * max(size, np.abs(expected).max())


def test_replacing_traces_refuse_features_that_are_neither_0_nor_1(browser):
    browser.open("traces")
    said = browser.run("""
        const learner = new trueonline.methods.Learner("replace", 2, {alpha: 0.1});
        try { learner.update([1, 0.5], 0, null); } catch (error) { return [error.message, Array.from(learner.e)]; }""")
    assert said == ["replacing traces need features of 0 or 1, got 0.5", [0, 0]]


def test_random_numbers_are_uniform_normal_and_the_same_for_the_same_seed(browser):
    browser.open("traces")
    draw = """const r = trueonline.methods.random(arguments[0]);
        return [() => r.uniform(), () => r.normal(), () => r.integer(5)].map((draw) => Array.from({length: 4000}, draw))"""
    uniform, normal, integers = (np.array(part) for part in browser.run(draw, 5))
    assert 0.0 <= uniform.min() < uniform.max() < 1.0
    assert uniform.mean() == pytest.approx(0.5, abs=5 * np.sqrt(1 / 12 / 4000))
    assert normal.mean() == pytest.approx(0.0, abs=5 / np.sqrt(4000))
    assert normal.std() == pytest.approx(1.0, abs=0.06)
    assert set(integers.tolist()) == set(range(5))
    assert browser.run(draw, 5)[0] == uniform.tolist()
    assert browser.run(draw, 6)[0] != uniform.tolist()
