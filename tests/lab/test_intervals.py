"""The bands of Figure 4, against their definition, and what few samples can decide."""

import numpy as np
import pytest

from trueonline.lab.experiment import ENOUGH, FAILS, HOLDS, NOISE, Claim, Settings, resample
from trueonline.lab.experiments import random_mrps


def test_bands_choose_the_best_step_size_again_in_every_bootstrap_sample(tmp_path):
    alphas, lams, runs = len(random_mrps.ALPHAS), len(random_mrps.LAMS), 4
    errors = np.random.default_rng(1).exponential(size=(runs, alphas, lams))
    errors[2, 5] = np.inf  # a run that diverged
    each = random_mrps.Errors("(1, 1, 0)", "tabular", {"true_online": errors})
    table = random_mrps.at_best_alpha([each], Settings(tmp_path, seed=3))
    counts = np.rint(resample(runs, seed=3) * runs).astype(int)
    for j in (0, lams // 2, lams - 1):
        best = [min(np.repeat(errors[:, i, j], drawn).mean() for i in range(alphas)) for drawn in counts]
        assert np.isclose(table["low"][j].as_py(), np.quantile(best, 0.025), rtol=1e-9)
        assert np.isclose(table["high"][j].as_py(), np.quantile(best, 0.975), rtol=1e-9)
        means = errors[:, :, j].mean(axis=0)
        assert np.isclose(table["error"][j].as_py(), means.min(), rtol=1e-12)
        assert table["step_size"][j].as_py() == random_mrps.ALPHAS[means.argmin()]


@pytest.mark.parametrize("verdict", [HOLDS, FAILS, NOISE])
def test_few_samples_decide_nothing(verdict):
    few, enough = (Claim("c", verdict, {"gap": 1.0}, samples) for samples in (ENOUGH - 1, ENOUGH))
    assert few.verdict == NOISE
    assert few.numbers == {"gap": 1.0, "not decided": "4 of at least 5 samples (runs, MRPs or games)"}
    assert (enough.verdict, enough.numbers) == (verdict, {"gap": 1.0})
    assert Claim("c", verdict).verdict == verdict, "an equality needs no samples"
