"""Demons beside an agent: they learn what separate learners would, about values that are known, and resume bit for bit."""

import numpy as np
import pytest

import trueonline as to
from trueonline.control import Demon, Demons

PROBLEM = to.problems.random_mdp(5, 2, 2, 0.1, distance=0.5, seed=3)
QUESTIONS = [
    Demon("reward", lambda step: step.reward, 0.8),
    Demon("target", lambda step: step.reward, 0.8, lambda state: PROBLEM.target[state]),
    Demon("signal", 0, 0.8),
    Demon("state two", lambda step: step.next_observation == 2, lambda state: 0.5 if state == 4 else 0.9),
]


def watched(questions=QUESTIONS, **given):
    agent = to.control.TrueOnlineSarsa(5, 2, 0.1, 0.9, 0.9, to.control.EpsilonGreedy(0.5), seed=4)
    return Demons(agent, to.features.Table(5), questions, **{"step_size": 0.1, **given})


def follow(demons, steps, start=True, seed=5):
    """Act in the process; the transitions (state, action, reward, next state)."""
    rng, state, seen = np.random.default_rng(seed), 0, []
    action = demons.start(demons.features(state)) if start else demons.agent.action
    for _ in range(steps):
        following = int(rng.choice(5, p=PROBLEM.transitions[state, action]))
        reward = float(PROBLEM.rewards[state, action, following])
        seen.append((state, action, reward, following))
        state, action = following, demons.step(reward, demons.features(following))
    return seen


def test_each_demon_learns_what_a_learner_alone_would():
    demons, agent = watched(), to.control.TrueOnlineSarsa(5, 2, 0.1, 0.9, 0.9, to.control.EpsilonGreedy(0.5), seed=4)
    own, two, signal = (to.TrueOnlineTD(5, 0.1, 0.9, 1.0) for _ in range(3))
    other = to.TreeBackup(5, 0.1, 0.9, 1.0)
    seen = follow(demons, 200)
    action = agent.start(0)
    for learner in (own, two, signal, other):
        learner.start(0)
    for state, taken, reward, following in seen:
        assert taken == action
        values = agent.values(state)
        best = values >= values.max() - 1e-9
        chance = 0.25 + 0.5 * best[action] / best.sum()
        own.update(reward, following, discount=0.8)
        wanted = PROBLEM.target[state, action]
        other.update(reward, following, discount=0.8, ratio=wanted / chance, probability=wanted)
        signal.update(float(following), following, discount=0.8)
        two.update(float(following == 2), following, discount=0.5 if following == 4 else 0.9)
        action = agent.step(reward, following)
    assert np.array_equal(agent.weights, demons.agent.weights), "the agent learns and acts as it would alone"
    for learner, name in ((own, "reward"), (other, "target"), (signal, "signal"), (two, "state two")):
        np.testing.assert_allclose(demons.learners[name].weights, learner.weights, rtol=1e-12)


def test_it_resumes_bit_for_bit(tmp_path):
    demons = watched()
    seen = follow(demons, 50)
    demons.truncate(0.0, demons.features(seen[-1][3]))
    demons.save(tmp_path)
    again = watched()
    again.restore(tmp_path)
    for each in (demons, again):
        follow(each, 50, seed=6)
    assert np.array_equal(demons.predict(3), again.predict(3))
    assert np.array_equal(demons.agent.weights, again.agent.weights)
    other = watched([Demon("reward", lambda step: 0.0, 0.8, lambda state: PROBLEM.target[state])])
    before = other.agent
    with pytest.raises(ValueError, match=r"reward.npz .* holds TrueOnlineTD"):
        other.restore(tmp_path)
    assert other.agent is before


def test_what_does_not_fit_is_refused():
    for given, message in (
        (("a/b", abs, 0.9), "name must be made of letters"),
        (("a", -3, 0.9), "cumulant must be a function"),
        (("a", abs, 1.5), "discount must be"),
        (("a", abs, 0.9, 3), "policy must be a function"),
    ):
        with pytest.raises(ValueError, match=message):
            Demon(*given)
    for questions in ([], [QUESTIONS[0]] * 2, [Demon("agent", abs, 0.9)]):
        with pytest.raises(ValueError, match="demons must be at least one, with different names"):
            watched(questions)
    silent = to.control.TrueOnlineSarsa(5, 2, 0.1, 0.9, 0.9, lambda values, rng, t: 0)
    with pytest.raises(ValueError, match="whose policy has probabilities"):
        Demons(silent, to.features.Table(5), QUESTIONS, 0.1)
    Demons(silent, to.features.Table(5), QUESTIONS[:1], 0.1)


def test_a_bad_answer_changes_nothing():
    for bad, message in (
        (Demon("bad", lambda step: np.nan, 0.9), "the cumulant of bad"),
        (Demon("bad", lambda step: 0.0, lambda state: 2.0), "the discount of bad"),
        (Demon("bad", lambda step: 0.0, 0.9, lambda state: [0.5, 0.6]), "the policy of bad must give 2 probabilities"),
    ):
        demons = watched([QUESTIONS[0], bad])
        demons.start(demons.features(0))
        with pytest.raises(ValueError, match=message):
            demons.step(1.0, demons.features(1))
        assert not demons.learners["reward"].weights.any()
        assert demons.agent.steps == 0


@pytest.mark.parametrize("reward", [float("nan"), "1", None])
def test_a_bad_reward_changes_nothing_even_if_no_cumulant_looks_at_it(reward):
    demons = watched(QUESTIONS[2:])
    follow(demons, 20)
    before = [each.weights.copy() for each in (demons.agent, *demons.learners.values())]
    for call in (lambda: demons.step(reward, demons.features(1)), lambda: demons.end(reward)):
        with pytest.raises(ValueError, match="reward must be a finite number"):
            call()
    after = [each.weights for each in (demons.agent, *demons.learners.values())]
    assert all(np.array_equal(*pair) for pair in zip(before, after, strict=True))


def test_an_episode_that_was_going_on_when_demons_were_saved_is_not_resumed(tmp_path):
    """The probability of its last action is not saved."""
    demons, again = watched(), watched()
    follow(demons, 20)
    demons.save(tmp_path)
    again.restore(tmp_path)
    with pytest.raises(ValueError, match="call start first"):
        again.step(1.0, again.features(1))
    assert np.array_equal(again.learners["target"].weights, demons.learners["target"].weights)
    follow(again, 5)


def test_features_of_another_object_are_refused():
    """Demons would hear of no observation, or of an old one."""
    env = to.control.environment(PROBLEM)
    demons = watched()
    with pytest.raises(ValueError, match="give their own `features` to `train`"):
        to.control.train(env, demons, to.features.Table(5), steps=10)
    demons.start(demons.features(0))
    with pytest.raises(ValueError, match="give their own `features` to `train`"):
        demons.step(1.0, 2)
    assert demons.agent.steps == 0
    assert not demons.learners["reward"].weights.any()
