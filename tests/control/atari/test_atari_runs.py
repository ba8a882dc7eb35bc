"""Runs by the text's protocol: actions, the limit of an episode, the divided step-size, and other games."""

from __future__ import annotations

import numpy as np
import pytest

from tests.control.atari.consoles import N, basic_features, console, follow, recorded
from trueonline.control import EpsilonGreedy, atari
from trueonline.control.atari import players, runs
from trueonline.control.atari.players import AgentPlayer, PublishedPlayer


def counted(emulator):
    return emulator._ale.getEpisodeFrameNumber()


@pytest.mark.parametrize(("protocol", "actions"), [("paper", 9), ("published", 18)])
def test_an_action_of_nine_or_eighteen_lasts_five_frames(protocol, actions, background):
    run = atari.AtariRun(atari.AtariSettings(protocol=protocol, episodes=1), background)
    assert len(run.emulator.actions) == actions
    assert len(run.player.agent.weights[0] if protocol == "paper" else run.player.w[0]) == actions
    first = counted(run.emulator)
    for decision in range(1, 20):
        run._decide()
        assert counted(run.emulator) - first == 5 * decision == run.frames


@pytest.mark.parametrize(("protocol", "ends"), [("paper", "truncate"), ("published", "end")])
def test_episodes_of_the_paper_are_cut_short_and_those_of_the_program_are_not(protocol, ends, background, monkeypatch):
    assert runs.EPISODE_FRAMES == 18_000 == 5 * 60 * 60
    monkeypatch.setattr(runs, "EPISODE_FRAMES", 201)
    run = recorded(atari.AtariSettings(protocol=protocol, episodes=2), background)
    said = [name for name, *_ in run.player.said]
    assert said.count(ends) == 2
    assert set(said) == {"start", "step", ends}
    frames = [frames for _, frames in run.episodes]
    if protocol == "paper":
        assert frames == [205, 205], "a whole number of actions"
        assert said.index("start", 1) == 42
    else:
        assert min(frames) > 205


def test_a_run_plays_an_episode_that_has_begun_to_its_end(background, monkeypatch):
    monkeypatch.setattr(runs, "EPISODE_FRAMES", 200)
    run = atari.play(atari.AtariSettings(frames=401), background)
    assert run.played == 600
    assert len(run.episodes) == 3
    assert run.mean_score == np.mean([score for score, _ in run.episodes])


def by_hand(method, said, alphas, trace_decay, seed):
    """The package's agent, with the step-size of every transition said beforehand."""
    step_size = alphas if isinstance(alphas, float) else lambda t: alphas[t]
    agent = players.AGENTS[method](N, 9, step_size, trace_decay, 0.999, EpsilonGreedy(0.01), seed=seed)
    return agent, follow(agent, said)


def left(said):
    """How many features are active in the state that each transition leaves."""
    sizes, here = [], None
    for name, *arguments in said:
        if name != "start":
            sizes.append(len(here))
        here = arguments[-1]
    return sizes


@pytest.fixture(scope="module")
def walk(background):
    """What players are told by the text's protocol: some episodes that are cut short, and one that ends.

    The first screen of Asterix has more features than any later one; so here the first two episodes begin with others.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "EPISODE_FRAMES", 200)
        short = recorded(atari.AtariSettings(episodes=3, seed=4), background).player.said
    first, second, *_ = (t for t, (name, *_) in enumerate(short) if name == "start")
    short[first], short[second] = ("start", short[first + 9][-1]), ("start", short[second + 3][-1])
    return short + recorded(atari.AtariSettings(episodes=1, seed=5), background).player.said


@pytest.mark.parametrize("method", list(players.AGENTS))
def test_the_player_is_the_package_s_agent_with_a_step_size_divided_by_the_largest_number_so_far(method, walk):
    assert {name for name, *_ in walk} == {"start", "step", "truncate", "end"}
    alphas = [0.7 / largest for largest in np.maximum.accumulate(left(walk)).tolist()]
    assert len(set(alphas)) > 3
    agent, answers = by_hand(method, walk, alphas, 0.9, seed=11)
    player = AgentPlayer(method, N, 9, 0.7, 0.9, 0.999, 0.01, 11, scaled=True)
    assert follow(player, walk) == answers
    np.testing.assert_array_equal(player.agent.weights, agent.weights)
    assert np.abs(agent.weights).max() > 1e-3


def test_a_fixed_step_size_is_not_divided(walk):
    agent, answers = by_hand("true_online", walk, 0.003, 0.9, seed=11)
    player = AgentPlayer("true_online", N, 9, 0.003, 0.9, 0.999, 0.01, 11, scaled=False)
    assert follow(player, walk) == answers
    np.testing.assert_array_equal(player.agent.weights, agent.weights)


@pytest.mark.parametrize("make", [AgentPlayer, PublishedPlayer])
def test_the_divisor_never_falls_and_counts_states_up_to_the_one_that_is_left(make):
    player = make("true_online", 50, 2, 0.5, 0.9, 0.999, 0.01, 0, scaled=True)
    sizes = [3, 5, 2, 9, 9, 1, 20, 4]
    player.start(np.arange(sizes[0]))
    for t, size in enumerate(sizes[1:]):
        player.step(1.0, np.arange(size))
        assert player.divisor == max(sizes[: t + 1]), "the state that is entered does not count yet"
    player.end(1.0)
    assert player.divisor == 20
    player.start(np.arange(30))
    assert player.divisor == 20
    player.end(0.0)
    assert player.divisor == 30, "it outlives episodes"


@pytest.mark.parametrize("protocol", atari.PROTOCOLS)
def test_chance_plays_every_action_and_learns_nothing(protocol, background):
    run = recorded(atari.AtariSettings(protocol=protocol, method="random", episodes=1), background)
    chosen = [answer for answer in run.player.answers if answer is not None]
    assert set(chosen) == set(range(len(run.emulator.actions)))
    assert all(len(said[-1]) == 0 for said in run.player.said if said[0] == "step"), "it does not look"


@pytest.mark.parametrize("game", ["klax", "carnival"])
def test_any_other_game_is_played_by_name(game):
    """Klax is European; Carnival has screens of 214 rows."""
    learned = atari.learn_background(game, decisions=20)
    run = recorded(atari.AtariSettings(game=game, episodes=1), learned, decisions=12)
    averaged = console(game, averaged=True)
    assert [name for name, *_ in run.player.said] == ["start", *["step"] * 12]
    assert run.player.said[0][1].tolist() == basic_features(averaged.getScreen(), learned)
    for (_, *_, x), action in zip(run.player.said[1:], run.player.answers, strict=False):
        for _ in range(5):
            averaged.act(run.emulator.actions[action])
        assert x.tolist() == basic_features(averaged.getScreen(), learned)
