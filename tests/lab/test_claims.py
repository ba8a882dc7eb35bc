"""The statistics of claims, against their definitions, and what few samples can decide."""

import numpy as np
import pytest

from trueonline.lab.best_rows import BestRows
from trueonline.lab.claims import (
    ENOUGH,
    FAILS,
    HOLDS,
    NOISE,
    Claim,
    Errors,
    Estimate,
    counts,
    decided,
    judge,
    overall,
    resample,
)  # fmt: skip
from trueonline.lab.experiment import table
from trueonline.lab.experiments import random_mrps


def test_verdicts_follow_intervals():
    assert judge(-2.0, -1.0, at_most=0.0) == judge(-1.0, 0.0, at_most=0.0) == judge(0.0, 1.0, at_least=0.0) == HOLDS
    assert judge(0.1, 0.2, at_most=0.0) == judge(-0.2, -0.1, at_least=0.0) == FAILS
    assert judge(-0.1, 0.1, at_most=0.0) == judge(-0.1, 0.1, at_least=0.0) == NOISE
    assert judge(0.9, 1.05, at_least=0.9, at_most=1.1) == HOLDS
    assert judge(1.05, 1.15, at_least=0.9, at_most=1.1) == judge(0.8, 1.2, at_least=0.9, at_most=1.1) == NOISE
    assert judge(1.15, 1.2, at_least=0.9, at_most=1.1) == judge(0.1, 0.2, at_least=0.9, at_most=1.1) == FAILS
    assert judge(np.nan, np.nan, at_least=0.0) == NOISE
    assert (decided(True), decided(False)) == (HOLDS, FAILS)
    assert [overall(each) for each in ([HOLDS, HOLDS], [HOLDS, NOISE], [NOISE, FAILS])] == [HOLDS, NOISE, FAILS]
    assert counts([NOISE, HOLDS, NOISE]) == {HOLDS: 1, NOISE: 2}


@pytest.mark.parametrize("verdict", [HOLDS, FAILS, NOISE])
def test_few_samples_decide_nothing(verdict):
    few, enough = (Claim("c", verdict, {"gap": 1.0}, samples) for samples in (ENOUGH - 1, ENOUGH))
    assert few.verdict == NOISE
    assert few.numbers == {"gap": 1.0, "not decided": "4 of at least 5 samples (runs, MRPs or games)"}
    assert (enough.verdict, enough.numbers) == (verdict, {"gap": 1.0})
    assert Claim("c", verdict).verdict == verdict, "an equality needs no samples"


def test_the_bootstrap_covers_what_it_should():
    """The 95 % interval of a mean holds the truth in about 95 % of experiments."""
    rng, hits = np.random.default_rng(12), 0
    for trial in range(300):
        low, high = Estimate.mean(rng.normal(1.0, 2.0, size=50), seed=trial).interval
        hits += low <= 1.0 <= high
    assert 0.89 <= hits / 300 <= 0.98


def test_arithmetic_applies_to_the_number_and_to_every_sample():
    one, two = Estimate(np.array([4.0, 2.0, 8.0])), Estimate(np.array([2.0, 1.0, 1.0]))
    assert ((one / two - 1.0).value, (one / two - 1.0).samples.tolist()) == (1.0, [1.0, 7.0])
    grid = Estimate(np.array([[1.0, 2.0], [4.0, 3.0]]))
    assert grid.best().rows.tolist() == [1.0, 3.0]
    assert grid.largest().rows.tolist() == [2.0, 4.0]
    assert grid[1].rows.tolist() == [2.0, 3.0]


def test_the_best_of_a_bootstrap_sample_is_chosen_again_among_all_settings():
    """Two runs, one α, two λ: each run has another best λ."""
    errors = Errors({"true_online": np.array([[[0.2, 0.9]], [[0.8, np.inf]]])}, seed=3)
    assert errors.best("true_online").value == pytest.approx(0.5)
    assert errors.place("true_online") == (0, 0)
    expected = np.array([[0.2, 0.8], [0.9, 1e12]])  # λ × run
    drawn = resample(2, seed=3)
    np.testing.assert_allclose(errors.best("true_online").samples, (drawn @ expected.T).min(axis=1))
    np.testing.assert_allclose(random_mrps.td0(errors).best("true_online").samples, drawn @ expected[0])
    assert errors.ratio("true_online", "true_online").interval == [0.0, 0.0]


def test_bands_choose_the_best_step_size_again_in_every_bootstrap_sample():
    alphas, lams, runs = len(random_mrps.ALPHAS), len(random_mrps.LAMS), 4
    errors = np.random.default_rng(1).exponential(size=(runs, alphas, lams))
    errors[2, 5] = np.inf  # a run that diverged
    labels = {"mrp": "(1, 1, 0)", "representation": "tabular"}
    found = random_mrps.at_best_alpha([Errors({"true_online": errors}, 3, labels)])
    drawn = np.rint(resample(runs, seed=3) * runs).astype(int)
    for j in (0, lams // 2, lams - 1):
        best = [min(np.repeat(errors[:, i, j], times).mean() for i in range(alphas)) for times in drawn]
        assert np.isclose(found["low"][j].as_py(), np.quantile(best, 0.025), rtol=1e-9)
        assert np.isclose(found["high"][j].as_py(), np.quantile(best, 0.975), rtol=1e-9)
        means = errors[:, :, j].mean(axis=0)
        assert np.isclose(found["error"][j].as_py(), means.min(), rtol=1e-12)
        assert found["step_size"][j].as_py() == random_mrps.ALPHAS[means.argmin()]


def test_the_best_rows_of_a_table():
    rows = [("true_online", 0, 0.1, 0.0, 2.0), ("true_online", 1, 0.1, 0.0, 4.0), ("true_online", 0, 0.2, 0.9, 5.0)]
    data = table(("method", "run", "step_size", "trace_decay", "error"), [*rows, ("own", 0, 0.1, 0.0, 7.0)])
    assert BestRows(("method",), "error").of(data) == (
        "The smallest error of each method over α, λ:",
        ["method", "error", "α", "λ"],
        [["true online TD(λ)", 2.0, 0.1, 0.0], ["own", 7.0, 0.1, 0.0]],
    )
    largest = BestRows(("method",), "error", mean_over="run", largest=True)
    assert largest.of(data)[2] == [["true online TD(λ)", 5.0, 0.2, 0.9], ["own", 7.0, 0.1, 0.0]]
