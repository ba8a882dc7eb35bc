"""The page on step-sizes: its learner against that of the package."""

import numpy as np

import trueonline as to

TOLERANCE = 1e-12
RUN = """
return arguments[0].map((one) => {
    const learner = new trueonline.stepSizes.Adaptive(one.features[0].length, one);
    return one.rewards.map((reward, t) => {
        learner.update(one.features[t], reward, one.features[t + 1]);
        return [Array.from(learner.w), Array.from(learner.stepSizes)];
    });
});
"""


def test_the_learner_equals_that_of_the_package(browser):
    """Weights and step-sizes relative to their largest, at every step, also after an outlier."""
    rng = np.random.default_rng(1)
    cases = []
    for _ in range(60):
        n = int(rng.integers(1, 6))
        features = rng.normal(size=(121, n)) * 10.0 ** rng.uniform(-2, 2, size=n) * (rng.random((121, n)) < 0.7)
        rewards = features[:-1] @ rng.normal(size=n) + rng.normal(size=120)
        rewards[60] += rng.choice([0.0, 1e3])
        parameters = {
            "lam": rng.uniform(),
            "gamma": rng.choice([0.0, 0.9]),
            "theta": rng.uniform(0.01, 0.3),
            "bound": 0.1,
        }
        cases.append(
            {"features": features.tolist(), "rewards": rewards.tolist(), "alpha": rng.uniform(0.01, 0.2), **parameters}
        )
    browser.open("step_sizes")
    for one, steps in zip(cases, browser.run(RUN, cases), strict=True):
        x = np.array(one["features"])
        learner = to.TrueOnlineTD(
            x.shape[1], one["alpha"], one["lam"], one["gamma"], bound=one["bound"], meta_step_size=one["theta"]
        )
        learner.start(x[0])
        for reward, x_next, (weights, step_sizes) in zip(one["rewards"], x[1:], steps, strict=True):
            learner.update(reward, x_next)
            assert np.abs(learner.weights - weights).max() <= TOLERANCE * max(1.0, np.abs(learner.weights).max())
            assert np.abs(np.divide(step_sizes, learner.step_sizes) - 1.0).max() <= TOLERANCE


def test_with_the_page_s_settings_an_outlier_does_not_decide_the_step_sizes(browser):
    """What the page says: noise gets a small step-size, also in other units, and an outlier does not move one far."""
    browser.open("step_sizes")
    calm, wild = browser.run("""
        return [0, 1000].map((outlier) => {
            const settings = { seed: 1, steps: 4000, alpha: 0.02, large: 10, outlier, theta: 0.1 };
            const { adaptive } = trueonline.stepSizes.compare(settings);
            return { sizes: adaptive.stepSizes, errors: adaptive.errors };
        })""")
    usual = np.exp(np.log(np.array(calm["sizes"][1000:]) * [1, 100, 1]).mean(axis=0))
    assert usual[2] < 0.7 * usual[:2].min()
    moved = np.abs(np.log(np.divide(wild["sizes"][2001], calm["sizes"][2001])))
    assert moved.max() < 0.3
    assert max(wild["errors"][2000:2010]) > 10 * max(calm["errors"][2000:2010])
