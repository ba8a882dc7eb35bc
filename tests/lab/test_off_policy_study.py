"""The study of off-policy methods, scaled down."""

import numpy as np
import pytest

from trueonline import study
from trueonline.lab import style
from trueonline.lab.claims import FAILS, HOLDS, NOISE, Errors
from trueonline.lab.experiment import Settings
from trueonline.lab.experiments import offpolicy as paper
from trueonline.problems import baird


def test_every_method_of_the_study_has_its_look():
    """The true online form has the colour and the marker of its counterpart, and a whole line."""
    for plain, ours in paper.spec.PAIRS.items():
        assert style.NAMES[ours] == f"true online {style.NAMES[plain]}"
        assert (style.COLOURS[ours], style.MARKERS[ours]) == (style.COLOURS[plain], style.MARKERS[plain])
        assert style.DASHES[plain] != style.DASHES[ours] == ()
    for look in (style.NAMES, style.COLOURS, style.MARKERS):
        assert len({look[name] for name in paper.spec.PAIRS}) == 3


# --- The study ------------------------------------------------------------------------------------


@pytest.fixture
def scaled_down(monkeypatch):
    """Two step-sizes, two trace decays and few steps."""
    changes = {
        "ALPHAS": np.array([2.0**-10, 2.0**-4]),
        "LAMS": np.array([0.0, 0.8]),
        "VARIANTS": {name: (0.25, 1.0) if "gtd" in name else (0.0,) for name in paper.spec.FAMILY},
        "STEPS": 200,
        "LAST_STEPS": 20,
        "TIMES": np.array([1, 7, 50, 200]),
        "MDP_STEPS": 50,
        "DISTANCES": (0.0, 1.0),
    }
    for name, value in changes.items():
        monkeypatch.setattr(paper.spec, name, value)


def test_the_study_runs_scaled_down(scaled_down, tmp_path):
    outcome = paper.run(Settings(tmp_path, runs=5))
    assert outcome.data.num_rows == 2 * 2 * 6
    assert set(outcome.data["method"].to_pylist()) == set(paper.spec.FAMILY)
    assert (outcome.data["low"].to_numpy() <= outcome.data["high"].to_numpy()).all()
    assert len(outcome.claims) == 2 * (1 + 2 + 6) + 3 + 3 * (2 + 4)
    assert {claim.verdict for claim in outcome.claims} <= {HOLDS, FAILS, NOISE}
    assert list(outcome.figures) == ["figure"]
    assert outcome.files["lines.csv"].decode().count("\n") == 2 * 6 * 4 + 1
    again = paper.run(Settings(tmp_path, runs=5))
    assert again.claims == outcome.claims
    few = paper.run(Settings(tmp_path, runs=2))
    assert {claim.verdict for claim in few.claims} == {NOISE}, "two runs decide nothing"


def test_lines_over_time_are_what_the_engine_measures(scaled_down, tmp_path):
    settings = Settings(tmp_path, runs=2)
    last = paper.spec.case(baird(), 2, 200, 0, after=199)
    study.execute([last], tmp_path)
    found = paper.spec.over_runs(last, settings)
    lines = paper.spec.over_time(last, found)
    for method in paper.spec.FAMILY:
        eta, alpha, lam = paper.spec.best_setting(found, method)
        grid = (paper.spec.VARIANTS[method], list(paper.spec.ALPHAS), list(paper.spec.LAMS))
        place = tuple(values.index(value) for values, value in zip(grid, (eta, alpha, lam), strict=True))
        np.testing.assert_allclose(lines[method][:, -1], found.by_method[method][:, *place], rtol=1e-8)


def test_td_diverges_where_most_runs_end_worse_at_every_step_size():
    errors = np.full((6, 1, len(paper.spec.ALPHAS), 1), 2.0)
    assert paper.claims.diverges("it", Errors({"off_policy": errors})).verdict == HOLDS
    errors[:3, 0, 3] = 0.5
    assert paper.claims.diverges("it", Errors({"off_policy": errors})).verdict == NOISE
    errors[:, 0, 3] = 0.5
    found = paper.claims.diverges("it", Errors({"off_policy": errors}))
    assert found.verdict == FAILS
    assert found.numbers["exceptions"] == [f"{paper.spec.ALPHAS[3]:g}"]
