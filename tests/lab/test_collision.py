"""The study of the Collision task, scaled down."""

import numpy as np
import pytest

import trueonline as to
from trueonline.lab.claims import FAILS, HOLDS, NOISE, Errors
from trueonline.lab.experiment import Settings
from trueonline.lab.experiments import collision as paper


@pytest.fixture
def scaled_down(monkeypatch):
    """Few parameters, and few steps."""
    changes = {
        "ALPHAS": 2.0 ** np.array([-9.0, -5.0]),
        "LAMS": (0.0, 0.5, 0.9, 1.0),
        "OWN": {"eta": np.array([0.25, 4.0]), "follow_on_decay": np.array([0.0, 0.8])},
        "STEPS": 120,
        "LAST": 20,
        "MEASURES": {"the run": 0, "the end": 100},
    }
    for name, value in changes.items():
        monkeypatch.setattr(paper, name, value)
    monkeypatch.setattr(paper, "estimate", lambda missing, of, settings: f"{len(missing)} of {of}")


def root_of_mean_square(run, measure, method, alpha, lam, settings, **more):
    """The error of a run from its definition, with the learner."""
    case = paper.case(run, paper.MEASURES[measure], settings)
    problem, (states, rewards, discounts, chances) = case.problem, case.trajectory(0)
    row = to.catalog.METHODS[method]
    learner = row.resolve("learner")(6, alpha, lam, 0.9, **row.options, **more)
    learner.start(problem.features[states[0]])
    squares = []
    for t, reward in enumerate(rewards):
        own = {"ratio": chances[t, 0]} | ({"probability": chances[t, 1]} if "probability" in learner.takes else {})
        learner.update(float(reward), problem.features[states[t + 1]], float(discounts[t]), **own)
        squares.append(problem.stationary @ (problem.features @ learner.weights - problem.values) ** 2)
    return np.sqrt(np.mean(squares[case.after :]))


def test_the_study_runs_scaled_down(scaled_down, tmp_path):
    said = []
    settings = Settings(tmp_path, runs=5, say=said.append)
    outcome = paper.run(settings)
    assert said == [f"{2 * 5 * (5 + 2 + 5 * 2)} of 170"]
    assert outcome.data.num_rows == 2 * 11 * 2 * 4
    assert (outcome.data["low"].to_numpy() <= outcome.data["high"].to_numpy()).all()
    assert len(outcome.claims) == 5
    assert {claim.verdict for claim in outcome.claims} <= {HOLDS, FAILS, NOISE}
    for draw in outcome.figures.values():
        titles = [panel.get_title() for panel in draw().axes]
        assert titles[0] == "emphatic TD(λ)"
        assert titles[3] == "GTD(λ), best η"
        assert len(titles) == 12
    assert paper.run(settings).claims == outcome.claims
    assert len(said) == 1, "everything was there"


@pytest.mark.parametrize("measure", ["the run", "the end"])
def test_errors_are_those_of_the_definition(scaled_down, tmp_path, measure):
    settings = Settings(tmp_path, runs=2)
    cases = [paper.case(run, paper.MEASURES[measure], settings) for run in range(2)]
    assert not np.array_equal(cases[0].problem.features, cases[1].problem.features)
    assert not np.array_equal(cases[0].trajectory(0)[0], cases[1].trajectory(0)[0])
    found = paper.errors_of(cases, [settings.finish(case.tasks()) for case in cases], 0)
    alpha, place = float(paper.ALPHAS[1]), (1, 2)
    for method, at, more in (
        ("emphatic_beta", 1, {"follow_on_decay": 0.8}),
        ("htd", 1, {"second_step_size": 4.0 * alpha}),
        ("tree_backup", 0, {}),
        ("abtd", 0, {}),
        ("v_trace", 0, {"largest_ratio": 2.0}),
    ):
        for run in range(2):
            expected = root_of_mean_square(run, measure, method, alpha, 0.9, settings, **more)
            assert found.by_method[method][run, at, *place] == pytest.approx(expected, rel=1e-9), method


def test_how_long_it_takes_is_said_first(tmp_path):
    settings = Settings(tmp_path, threads=2)
    tasks = paper.case(0, 0, settings).tasks()
    steps = sum(task.steps for task in tasks)
    assert steps == 51 * 19 * 12 * 20_000
    said = paper.estimate(tasks[:1], len(tasks), settings)
    assert said.startswith("The Collision task: 4,560,000 learning steps (50 of 51 tasks are done already). This takes ")
    assert said.endswith(" on 2 cores.")
    assert "takes" not in paper.estimate(tasks[:1], 1, Settings(tmp_path, engine="cuda"))


def errors(**levels):
    """Errors of six runs, around a level for each method, which is divided by `steep` at the largest λ."""
    rng, by_method = np.random.default_rng(0), {}
    for method in paper.METHODS:
        level, steep = levels.get(method, (1.0, 2.0))
        grid = np.full((1, 2, 12), level) * np.geomspace(steep, 1.0, 12)
        by_method[method] = grid + 0.01 * rng.normal(size=(6, 1, 1, 1))
    return Errors(by_method)


def test_claims_can_hold_and_fail():
    tiers = dict.fromkeys(paper.EMPHATIC, (0.5, 1.1)) | dict.fromkeys(paper.BOTTOM, (2.0, 2.0))
    verdicts = [claim.verdict for claim in paper.claims({"the run": errors(**tiers), "the end": errors(**tiers)})]
    assert verdicts == [HOLDS] * 5
    upside_down = dict.fromkeys(paper.EMPHATIC, (2.0, 3.0)) | dict.fromkeys(paper.BOTTOM, (0.5, 2.0))
    found = paper.claims(dict.fromkeys(("the run", "the end"), errors(**upside_down)))
    assert [claim.verdict for claim in found] == [FAILS] * 5
    assert "emphatic TD(λ) has an error no larger than GTD(λ), the run" in found[0].numbers
    assert found[0].numbers["comparisons"] == 18
