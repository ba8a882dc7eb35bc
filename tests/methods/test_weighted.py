"""Weighted importance sampling: WIS-TD(λ), WIS-GTD(λ) and WIS-TO-GTD(λ) over streams, against dense vectors."""

from functools import partial

import numpy as np
import pytest

import trueonline as to
from tests.methods.test_provisional import FORMS, Drawn, N, assert_near
from tests.oracles import weighted as naive

ALPHA_0, BETA = 0.05, 0.01
SECOND = {"second_step_size": BETA}
METHODS = {
    "wis_td": (to.WISTD, naive.wis_td),
    "wis_gtd": (partial(to.WISGTD, **SECOND), naive.wis_gtd),
    "wis_true_online_gtd": (partial(to.WISTrueOnlineGTD, **SECOND), naive.wis_true_online_gtd),
}
each_method = pytest.mark.parametrize("name", METHODS)


def oracle(name, drawn) -> list[np.ndarray]:
    """Weights (second weights) and usage after every step, also after those that are not learned from."""
    episodes = (episode._replace(betas=[BETA] * len(episode.rewards)) for episode in drawn.episodes())
    found = METHODS[name][1](episodes, np.zeros(N), ALPHA_0)
    steps, now = [], None
    for t in range(drawn.T):
        now = now if drawn.starts[t + 1] else next(found)
        if now is None:
            now = (*(np.zeros(N) for _ in range(2 if name != "wis_td" else 1)), np.full(N, 1.0 / ALPHA_0))
        steps.append(now)
    assert next(found, None) is None
    return [np.array(each) for each in zip(*steps, strict=True)]


def seen(name, learner) -> tuple[np.ndarray, ...]:
    second = () if name == "wis_td" else (learner.second_weights,)
    return (learner.weights, *second, learner.usage)


@each_method
def test_a_long_stream_follows_the_equations(name):
    """Ratios of 0 to 4, cuts and ends: lists are rebased, and traces come and go. Forms change on the way."""
    drawn = Drawn(11, 1500, ends=0.02)
    forms = ["active", "dense", "pairs", "dense", *["active"] * 71]
    learner = drawn.made(METHODS[name][0], initial_step_size=ALPHA_0)
    learner.start(FORMS["active"](drawn.x[0]))
    found = []
    for t in range(drawn.T):
        drawn.step(learner, t, FORMS[forms[t // 20]])
        found.append(seen(name, learner))
    wanted = oracle(name, drawn)
    for ours, theirs in zip(zip(*found, strict=True), wanted, strict=True):
        assert_near(ours, theirs)


@each_method
def test_a_feature_without_usage_has_step_size_zero(name):
    """η = 1 forgets all, and ρ = 0 adds nothing."""
    learner = METHODS[name][0](2, 1.0, trace_decay=0.5, discount=0.9)
    learner.start(0)
    learner.update(1.0, 0, ratio=0.0)
    np.testing.assert_array_equal(learner.usage, [0.0, 1.0])
    np.testing.assert_array_equal(learner.step_sizes, [0.0, 1.0])
    learner.update(1.0, 1, ratio=2.0)
    np.testing.assert_array_equal(learner.usage, [2.0, 1.0])
    assert np.isfinite(learner.weights).all()
    assert learner.weights[0] == 1.0


def test_the_first_step_size_is_saved(tmp_path):
    learner = to.WISTD(2, 0.02, trace_decay=0.9, discount=0.95, initial_step_size=0.5)
    learner.start(0)
    learner.update(1.0, 1, ratio=2.0)
    learner.update(1.0, 0, ratio=3.0)
    learner.save(tmp_path / "weighted.npz")
    other = to.load(tmp_path / "weighted.npz")
    assert other.initial_step_size == 0.5
    np.testing.assert_array_equal(other.usage, learner.usage)
    other.reset()
    np.testing.assert_array_equal(other.usage, 2.0)


def test_a_schedule_gives_the_first_step_size_too(tmp_path):
    def schedule(t):
        return 0.5 / (1 + t)

    learner = to.WISTD(2, schedule, trace_decay=0.9, discount=0.9)
    assert learner.initial_step_size is None
    np.testing.assert_array_equal(learner.step_sizes, 0.5)
    learner.start(0)
    learner.update(1.0, 1, ratio=2.0)
    learner.save(tmp_path / "weighted.npz")
    other = to.load(tmp_path / "weighted.npz", step_size=schedule)
    np.testing.assert_array_equal(other.usage, learner.usage)
    np.testing.assert_array_equal(learner.usage, [0.5 * 2.0 + 2.0, 2.0])


@each_method
def test_usage_that_is_taken_back_leaves_nothing(name):
    """η = 1 forgets earlier usage, and ρ = 0 with γλ = 1 takes back that of the episode. Its inverse would be noise, not 0."""
    rng = np.random.default_rng(0)
    learner = METHODS[name][0](N, 1.0, trace_decay=1.0, discount=1.0)
    forms = ("active", "dense", "active")
    shape = lambda t, i: FORMS[forms[t % 3]](1.0 * (np.arange(N) == i))  # noqa: E731
    learner.start(shape(0, 0))
    here, decay, settled, trace = 0, 0.0, np.ones(N), np.zeros(N)
    for t in range(300):
        there, ratio, lam = int(rng.integers(N)), float(rng.choice([0.0, 0.3, 1.7])), float(rng.choice([1.0, 1.0, 0.3]))
        learner.update(0.0, shape(t + 1, there), ratio=ratio, trace_decay=lam)
        settled, trace = settled + (1.0 - decay) * trace, ratio * decay * trace
        settled[here], trace[here], here, decay = 0.0, ratio, there, lam
        np.testing.assert_allclose(learner.usage, settled + trace, rtol=1e-9, atol=0.0)


def test_a_learner_that_diverged_shows_its_numbers_without_warnings():
    learner = to.WISTD(6, 0.05, trace_decay=0.9, discount=0.95)
    learner.start([0, 1])
    for sign in (1.0, -1.0) * 15:
        learner.update(sign * 1e308, (np.array([1, 2]), np.array([1e150, 1e160])))
    assert learner.diverged
    assert np.isnan(learner.step_sizes[1])
