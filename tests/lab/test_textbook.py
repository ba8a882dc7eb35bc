"""The random walk of Sutton and Barto: many runs in one stream, many settings at once, and claims that can fail."""

import numpy as np
import pytest

import trueonline as to
from trueonline.lab.claims import FAILS, HOLDS, NOISE, Estimate
from trueonline.lab.experiment import Settings
from trueonline.lab.experiments import textbook
from trueonline.problems import random_walk

WALK = random_walk(19)


@pytest.fixture(scope="module")
def runs():
    return [textbook.episodes(WALK, [3, number]) for number in range(4)]


def rms_by_hand(weights):
    return np.sqrt(sum((w - v) ** 2 for w, v in zip(weights, (np.arange(19) - 9) / 10, strict=True)) / 19)


def test_a_run_is_ten_whole_episodes(runs):
    for run in runs:
        assert len(run) == 10
        for states, rewards, discounts in run:
            assert states[0] == 9
            assert discounts.tolist() == [1.0] * (len(rewards) - 1) + [0.0]
            assert abs(rewards[-1]) == 1.0


@pytest.mark.parametrize(("lam", "alpha"), [(0.0, 0.5), (0.8, 0.4), (0.95, 0.6), (0.95, 0.9), (1.0, 0.1)])
@pytest.mark.parametrize("name", ["accumulate", "true_online"])
def test_runs_in_one_stream_do_not_mix(runs, name, lam, alpha):
    """Also where a run diverges."""
    together = textbook.online_errors(textbook.LEARNERS[name], lam, alpha, runs, WALK)
    for run, error in zip(runs, together, strict=True):
        learner, total = textbook.LEARNERS[name](19, alpha, lam, 1.0), 0.0
        for states, rewards, discounts in run:
            learner.run(states, rewards, discounts)
            total += rms_by_hand(learner.weights)
        np.testing.assert_allclose(error, min(total / 10, textbook.DIVERGED), rtol=1e-9)


def test_all_settings_at_once_are_the_definition_of_the_offline_algorithm(runs):
    errors = textbook.offline_errors(runs[0], WALK)
    for lam, alpha in [(0.0, 0.5), (0.8, 0.4), (1.0, 0.05)]:
        learner, total = to.OfflineLambdaReturn(19, alpha, lam, 1.0), 0.0
        for states, rewards, discounts in runs[0]:
            learner.run(states, rewards, discounts)
            total += rms_by_hand(learner.weights)
        place = textbook.TRACE_DECAYS.index(lam), textbook.STEP_SIZES.index(alpha)
        np.testing.assert_allclose(errors[place], total / 10, rtol=1e-12)


def test_an_error_that_overflows_is_a_large_one(runs):
    """All warnings are errors here, so this also shows that none is raised."""
    errors = textbook.online_errors(to.AccumulateTD, 1.0, 1e40, runs, WALK)
    assert (errors == textbook.DIVERGED).all()


def test_the_outcome_has_three_panels_with_a_line_for_each_trace_decay(tmp_path, monkeypatch):
    monkeypatch.setattr(textbook, "STEP_SIZES", (0.2, 0.4, 1.0))
    outcome = textbook.run(Settings(tmp_path, runs=2))
    assert outcome.data.num_rows == 3 * 8 * 3
    panels = outcome.figures["figure"]().axes
    assert [panel.get_title().split(":")[0] for panel in panels] == ["Figure 12.3", "Figure 12.6", "Figure 12.8"]
    assert all(len(panel.get_lines()) >= 8 for panel in panels)
    assert outcome.claims[-1].verdict == HOLDS, "true online TD(λ) is exact"


def test_with_the_targets_of_the_book_the_offline_algorithm_is_td_0_at_trace_decay_0(runs):
    place = textbook.STEP_SIZES.index(0.4)
    newest = textbook.newest_weights_errors(runs[0], WALK)[place]
    np.testing.assert_allclose(newest, textbook.online_errors(to.TrueOnlineTD, 0.0, 0.4, runs[:1], WALK)[0], rtol=1e-12)
    assert abs(newest - textbook.offline_errors(runs[0], WALK)[0, place]) > 1e-4
    errors = {name: Estimate(np.full((2, 8, 28), error)) for name, error in (("true_online", 0.3), ("offline", 0.25))}
    claim = textbook.lines_of_td0(errors, np.full(28, 0.3))
    assert claim.verdict == FAILS
    assert list(claim.numbers.values()) == pytest.approx([0.05, 0.0])
    assert textbook.lines_of_td0({**errors, "offline": errors["true_online"]}, np.zeros(28)).verdict == HOLDS


def judged(change):
    """The verdicts on errors that are as the book has them, after a change. Seven runs are all alike but for some noise."""
    lams, alphas = np.array(textbook.TRACE_DECAYS)[:, None], np.array(textbook.STEP_SIZES)
    noise = np.random.default_rng(0).normal(0.0, 1e-4, (7, 1, 1))
    base = 0.26 + (lams - 0.8) ** 2 + (alphas - 0.4) ** 2 + noise
    errors = {
        "offline": base + 0.01,
        "accumulate": np.where(alphas > 0.9, 20.0 * base, base),
        "true_online": base - 0.005,
    }
    change(errors)
    return [
        claim.verdict for claim in textbook.judged({name: Estimate.mean(part, 0) for name, part in errors.items()}, 7)
    ]


def test_claims_hold_where_errors_are_as_the_book_has_them():
    assert judged(lambda errors: None) == [HOLDS] * 7


def best_at_lambda_0(errors):
    errors["offline"][:, 0] -= 1.0


def noisy_level(errors):
    errors["true_online"] = errors["true_online"] + np.linspace(-0.1, 0.1, 7)[:, None, None]


@pytest.mark.parametrize(
    ("place", "change", "verdict"),
    [
        (0, best_at_lambda_0, FAILS),
        (3, lambda errors: errors.update(accumulate=1.2 * errors["accumulate"]), FAILS),
        (4, lambda errors: errors.update(accumulate=errors["offline"]), FAILS),
        (5, lambda errors: errors.update(true_online=errors["offline"] + 0.01), FAILS),
        (6, lambda errors: errors.update(true_online=errors["true_online"] - 0.05), FAILS),
        (6, noisy_level, NOISE),
    ],
)
def test_claims_fail_where_they_are_not(place, change, verdict):
    assert judged(change)[place] == verdict
