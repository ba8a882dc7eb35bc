"""Atari: features, colours, random numbers and learners against oracles; runs that are stopped, killed and resumed.

The oracles are written from the texts: the features from Bellemare et al. (2013), the published program's learner from the rules
in `published.py`. Colours are those of an emulator that averages them itself, random numbers those of the C library.
"""

from __future__ import annotations

import ctypes
import difflib
import json
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ale_py = pytest.importorskip("ale_py")

import trueonline as to  # noqa: E402
from trueonline.control import EpsilonGreedy, atari  # noqa: E402
from trueonline.control.atari import emulator as emulators  # noqa: E402
from trueonline.control.atari import players, published, runs, screens  # noqa: E402
from trueonline.control.atari.players import AgentPlayer, PublishedPlayer  # noqa: E402

SHARED = Path(__file__).parents[3] / "shared" / "data"
GAMES = ["asterix", "breakout", "space_invaders", "beam_rider"]
EUROPEAN = ["klax", "sir_lancelot"]
HIGHER = ["carnival"]  # screens of 214 rows
OTHERWISE = ["berzerk", "demon_attack", "private_eye", "solaris"]  # their first screen may differ after a reset
LEARNERS = ["accumulate", "replace", "true_online"]
ALL = [(protocol, method) for protocol, methods in atari.METHODS.items() for method in methods]
N, BIAS = 28_673, 28_672


def shared(name: str) -> Path:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} is not in ../shared/data, which is no part of the project")
    return path


@pytest.fixture(scope="module")
def background():
    """Good enough for tests that compare two ways of doing the same."""
    return atari.learn_background("asterix", decisions=60)


@pytest.fixture(scope="module")
def published_background():
    return atari.read_background(shared("asterix.bg"))


def console(game, *, averaged):
    """The emulator itself, set as every part of this package must have set it."""
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", 1)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setBool("color_averaging", averaged)
    ale.loadROM(ale_py.roms.get_rom_path(game))
    return ale


def looked_up(now, before):
    return screens.averages()[now >> 1, before >> 1]


# --- Features -------------------------------------------------------------------------------------


def basic_features(screen, background):
    """Which colours are in which tiles, other than the background's: all features, one pixel at a time; the bias is last."""
    height = len(screen)
    tall = -(-height // 14)  # 15, for 210 rows
    found = {BIAS}
    for y in range(height):
        for x in range(160):
            if screen[y, x] // 2 != background[y, x] // 2:
                found.add((y // tall * 16 + x // 10) * 128 + int(screen[y, x]) // 2)
    return sorted(found)


def test_there_are_28673_features():
    assert atari.N_FEATURES == 16 * 14 * 128 + 1 == N


@pytest.mark.parametrize("share", [0.0, 0.002, 0.1, 1.0])
@pytest.mark.parametrize("height", [210, 250])
def test_features_are_the_colours_of_each_tile_without_the_background(share, height):
    rng = np.random.default_rng([height, int(1000 * share)])
    background, colours, earlier = rng.integers(0, 128, (3, height, 160), dtype=np.uint8) * np.uint8(2)
    changed, flickers = rng.random((2, height, 160)) < share
    now = np.where(changed, colours, background)
    before = np.where(flickers, earlier, now)
    expected = basic_features(looked_up(now, before), background)
    found = atari.Screens(background).features(now, before)
    assert found.dtype == np.int64
    assert found.tolist() == expected, "and in rising order"


@pytest.mark.parametrize("colour", [2, 126, 128, 254])
def test_a_pixel_belongs_to_its_tile_also_at_the_border(colour):
    """Corners of tiles, at the edges of the words in which pixels are passed over, and of the words that hold colours."""
    empty = np.zeros((210, 160), np.uint8)
    looker = atari.Screens(empty)
    for y in (0, 14, 15, 29, 194, 195, 209):
        for x in (0, 7, 8, 9, 10, 79, 80, 149, 150, 152, 159):
            now = empty.copy()
            now[y, x] = colour
            assert looker.features(now, now).tolist() == [(y // 15 * 16 + x // 10) * 128 + colour // 2, BIAS]


def test_all_features_can_be_active_at_once():
    background = np.zeros((210, 160), np.uint8)
    now = np.tile((2 * np.arange(150) % 256).astype(np.uint8).reshape(15, 10), (14, 16))
    background[now == 0] = 2  # colour 0 counts too, where it is not the background
    found = atari.Screens(background).features(now, now)
    assert found.tolist() == list(range(N))


def test_an_object_of_the_background_s_colour_is_not_seen_and_one_that_only_flickers_is():
    background = np.full((210, 160), 26, np.uint8)
    looker = atari.Screens(background)
    assert looker.features(background, background).tolist() == [BIAS]
    flickering = background.copy()
    flickering[100, 100] = 200
    expected = (100 // 15 * 16 + 100 // 10) * 128 + int(looked_up(np.uint8(26), np.uint8(200))) // 2
    for pair in ((flickering, background), (background, flickering)):
        assert looker.features(*pair).tolist() == [expected, BIAS], "in whichever of the two frames it is"


def test_features_given_out_earlier_stay_as_they_were():
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 128, (2, 210, 160), dtype=np.uint8) * np.uint8(2)
    looker = atari.Screens(np.zeros((210, 160), np.uint8))
    found = looker.features(first, first)
    kept = found.copy()
    looker.features(second, second)
    np.testing.assert_array_equal(found, kept)


# --- Colours --------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", GAMES)
def test_the_table_averages_as_the_emulator_does_at_every_frame(game):
    raw, averaged = console(game, averaged=False), console(game, averaged=True)
    actions = raw.getLegalActionSet()
    rng = np.random.default_rng(0)
    before, different = raw.getScreen(), 0
    for frame in range(300):
        action = actions[rng.integers(len(actions))] if frame % 5 == 0 else action  # noqa: F821
        assert raw.act(action) == averaged.act(action)
        now = raw.getScreen()
        np.testing.assert_array_equal(looked_up(now, before), averaged.getScreen())
        np.testing.assert_array_equal(atari.NTSC[now.ravel() >> 1], raw.getScreenRGB().reshape(-1, 3))
        different += not np.array_equal(now, before)
        before = now
        if raw.game_over():
            raw.reset_game()
            averaged.reset_game()
            break
    assert different > 100, "there was something to average"


@pytest.mark.parametrize("game", [*GAMES[:2], *EUROPEAN, *HIGHER, *OTHERWISE])
def test_every_screen_that_is_looked_at_is_the_emulator_s_average_also_the_first_after_a_reset(game):
    ours, averaged = atari.Emulator(game), console(game, averaged=True)
    np.testing.assert_array_equal(looked_up(ours.now, ours.before), averaged.getScreen())
    rng = np.random.default_rng(1)
    for decision in range(1, 61):
        action = int(rng.integers(len(ours.actions)))
        points = sum(averaged.act(ours.actions[action]) for _ in range(5))
        assert ours.act(action) == points
        np.testing.assert_array_equal(looked_up(ours.now, ours.before), averaged.getScreen())
        assert ours.over == averaged.game_over()
        if ours.over or decision % 15 == 0:
            ours.reset()
            averaged.reset_game()
            np.testing.assert_array_equal(looked_up(ours.now, ours.before), averaged.getScreen(), f"reset at {decision}")


def test_the_palette_is_the_emulator_s():
    met = set()
    for game in ("asterix", "riverraid", "enduro", "time_pilot"):
        ale = console(game, averaged=False)
        for _ in range(40):
            for _ in range(10):
                ale.act(ale.getLegalActionSet()[1])
            screen = ale.getScreen().ravel()
            np.testing.assert_array_equal(atari.NTSC[screen >> 1], ale.getScreenRGB().reshape(-1, 3))
            met |= set(screen.tolist())
    assert len(met) >= 40
    assert len(np.unique(atari.NTSC, axis=0)) == 128


def test_the_table_of_averages_is_symmetric():
    table = screens.averages()
    np.testing.assert_array_equal(table, table.T)
    np.testing.assert_array_equal(table.diagonal(), np.arange(0, 256, 2))
    assert (table % 2 == 0).all()
    white, black = atari.NTSC[7], atari.NTSC[0]
    mixed = [int(0.77 * w + 0.23 * b) // 4 * 4 for w, b in zip(white.tolist(), black.tolist(), strict=True)]
    distances = [sum(abs(c - m) for c, m in zip(colour, mixed, strict=True)) for colour in atari.NTSC.tolist()]
    assert table[0, 7] == 2 * distances.index(min(distances)) == 8, "by an emulator's arithmetic, in steps of four"


def test_the_first_screen_of_asterix_has_431_features(published_background):
    emulator = atari.Emulator("asterix")
    assert len(emulator.features(atari.Screens(published_background))) == 431
    averaged = console("asterix", averaged=True).getScreen()
    assert len(basic_features(averaged, published_background)) == 431
    emulator.act(0)
    emulator.reset()
    assert len(emulator.features(atari.Screens(published_background))) == 431


# --- Random numbers -------------------------------------------------------------------------------


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
@pytest.mark.parametrize("seed", [0, 1, 2, 7, 1234567, 2**31 - 1, 2**31, 2**31 + 12345, 2**32 - 1])
def test_random_numbers_are_those_of_the_c_library(seed):
    libc = ctypes.CDLL("libc.so.6")
    libc.srand(ctypes.c_uint(seed))
    expected = [libc.rand() for _ in range(4000)]
    state = published.seeded(seed)
    assert [int(published.rand(state)) for _ in range(4000)] == expected
    state = published.seeded(seed)
    assert [int(published.rand.py_func(state)) for _ in range(100)] == expected[:100]


# --- The published program ------------------------------------------------------------------------


class Recorder:
    """A player that writes down what is said to it and what it answers."""

    def __init__(self, player):
        self.player, self.said, self.answers = player, [], []

    def __getattr__(self, name):
        asked = getattr(self.player, name)
        if name not in ("start", "step", "end", "truncate"):
            return asked

        def told(*arguments):
            self.said.append((name, *(a.copy() if isinstance(a, np.ndarray) else a for a in arguments)))
            self.answers.append(asked(*arguments))
            return self.answers[-1]

        return told


def recorded(settings, background, decisions=None):
    run = atari.Run(settings, background)
    run.player = Recorder(run.player)
    while not run.finished and (decisions is None or decisions > 0):
        run._decide()
        decisions = decisions and decisions - 1
    return run


EPISODES = 6


def test_the_published_program_s_episodes_are_played(published_background):
    """The first few. All 25 of them are played in test_asterix_command.py."""
    golden = json.loads(shared("asterix_published_episodes.json").read_text())["to_2.00_0.95_s1"]
    settings = {name: golden[name] for name in ("method", "step_size", "trace_decay", "seed")}
    run = atari.play(atari.Settings(protocol="published", episodes=EPISODES, **settings), published_background)
    assert [list(episode) for episode in run.episodes] == golden["episodes"][:EPISODES]
    assert run.played == sum(frames for _, frames in golden["episodes"][:EPISODES])


@pytest.fixture(scope="module")
def played(background):
    """Three episodes by the program's protocol, with all that the player was told."""
    settings = atari.Settings(protocol="published", step_size=2.0, trace_decay=0.95, seed=1, episodes=3)
    return recorded(settings, background)


class Program:
    """The published program's learner: eager, dense, one number after the other; from the rules in `published.py`.

    `skipped` counts the dutch increments left out, `silent` the steps without learning.
    """

    def __init__(self, method, features, actions, step_size, trace_decay, discount, epsilon, seed, *, scaled):
        self.method, self.scaled = method, scaled
        self.step_size, self.gamma, self.lam, self.one_in = step_size, discount, trace_decay, round(1 / epsilon)
        self.w, self.e = np.zeros((actions, features)), np.zeros((actions, features))
        self.random, self.largest = published.seeded(seed), 1
        for _ in range(published.SKIPPED):
            self.rand()
        self.skipped = self.silent = 0
        self.stopped = False

    def rand(self):
        return int(published.rand.py_func(self.random))

    def q(self, x):
        values = []
        for weights in self.w:
            total = 0.0
            for i in x:
                total += float(weights[i])
            values.append(total)
        return values

    def choose(self, q):
        tied = [a for a, value in enumerate(q) if abs(value - max(q)) < 1e-10]
        action = tied[self.rand() % len(tied)]
        if self.rand() % self.one_in == 0:
            action = self.rand() % len(q)
        return action

    def start(self, x):
        self.e[:] = 0.0
        q = self.q(x)
        self.x, self.action = x, self.choose(q)
        self.q_old = q[self.action]
        return self.action

    def end(self, reward):
        self.learn(reward, None)

    def step(self, reward, x_next):
        return self.learn(reward, x_next)

    def learn(self, reward, x_next):
        q = self.q(self.x)
        sound = all(abs(value) <= 1e8 for value in q)
        if not sound and self.method == "true_online":
            self.stopped = True
            return None
        action_next, value_next = 0, 0.0
        if x_next is not None:
            q_next = self.q(x_next)
            action_next = self.choose(q_next)
            value_next = q_next[action_next]
        self.largest = max(self.largest, len(self.x))
        alpha = self.step_size / self.largest if self.scaled else self.step_size
        delta = reward + self.gamma * value_next - q[self.action]
        here = self.action, self.x
        if not sound:
            self.silent += 1
        elif self.method == "true_online":
            along = 0.0
            for i in self.x:
                along += float(self.e[self.action, i])
            if 1 - alpha * along > 0.01:
                self.e[here] = self.e[here] + (1 - alpha * along)
            else:
                self.skipped += 1
            change = q[self.action] - self.q_old
            self.w += (alpha * (delta + change)) * self.e
            self.w[here] = self.w[here] - alpha * change
            self.decay()
        else:
            self.decay()
            self.e[here] = self.e[here] + 1.0 if self.method == "accumulate" else 1.0
            self.w += (alpha * delta) * self.e
        self.action, self.q_old = action_next, value_next
        self.x = self.x if x_next is None else x_next
        return action_next

    def decay(self):
        self.e *= self.gamma * self.lam
        self.e[self.e < 0.01] = 0.0


def follow(player, said, look=lambda: None):
    """Say the same to another player; its answers."""
    answers = []
    for name, *arguments in said:
        answers.append(getattr(player, name)(*arguments))
        look()
    return answers


@pytest.mark.parametrize("method", LEARNERS)
@pytest.mark.parametrize(("step_size", "trace_decay"), [(2.0, 0.95), (2.0, 0.99), (0.3, 0.5)])
def test_the_program_s_learner_is_repeated_bit_for_bit(method, step_size, trace_decay, played):
    """On the stream of real episodes. The oracle numbers the features that occur anew; the others must keep weight 0."""
    said = played.player.said[:450]
    assert {name for name, *_ in said} == {"start", "step", "end"}
    met = np.unique(np.concatenate([part for _, *parts in said for part in parts if isinstance(part, np.ndarray)]))
    renumbered = [
        (name, *(np.searchsorted(met, part) if isinstance(part, np.ndarray) else part for part in parts))
        for name, *parts in said
    ]
    numbers = (step_size, trace_decay, 0.999, 0.01, 5)
    program = Program(method, len(met), 18, *numbers, scaled=True)
    ours = PublishedPlayer(method, N, 18, *numbers, scaled=True)
    assert follow(ours, said) == follow(program, renumbered)
    assert np.abs(program.w).max() > 1e-3, "something was learned"
    np.testing.assert_array_equal(ours.w[met], program.w.T)
    np.testing.assert_array_equal(ours.e[met], program.e.T)
    assert not ours.w[np.setdiff1d(np.arange(N), met)].any()
    np.testing.assert_array_equal(ours.random, program.random)
    assert ours.divisor == program.largest


def made_up(seed, steps=400, features=12, episodes=4, reward=1.0):
    """A stream over few features, many of which are active again and again."""
    rng = np.random.default_rng(seed)

    def x():
        return np.sort(rng.choice(features, rng.integers(1, features // 2), replace=False))

    said = []
    for _ in range(episodes):
        said.append(("start", x()))
        said += [("step", float(rng.normal() * reward), x()) for _ in range(steps // episodes)]
        said.append(("end", float(rng.normal())))
    return said


@pytest.mark.parametrize("method", LEARNERS)
@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize(("step_size", "trace_decay"), [(2.0, 0.99), (0.5, 0.9), (0.1, 0.0), (0.05, 1.0)])
def test_the_program_s_learner_is_repeated_on_streams_where_its_rules_matter(method, scaled, step_size, trace_decay):
    said = made_up(1)
    numbers = (step_size, trace_decay, 0.999, 0.01, 9)
    program, ours = (make(method, 12, 3, *numbers, scaled=scaled) for make in (Program, PublishedPlayer))
    weights = [], []
    for teller, player, seen in ((program, program, weights[0]), (ours, ours, weights[1])):
        answers = []
        for name, *arguments in said:
            answers.append(getattr(player, name)(*arguments))
            seen.append(player.w.copy() if player is ours else player.w.T.copy())
            if program.stopped and len(weights[0]) == len(seen):
                break
        teller.answers = answers
    if program.stopped:
        assert ours.diverged
        weights[0].pop(), weights[1].pop()
        program.answers.pop(), ours.answers.pop()
    assert ours.answers == program.answers
    for theirs, our in zip(*weights, strict=True):
        np.testing.assert_array_equal(our, theirs)


def test_the_dutch_increment_is_left_out_where_it_is_small_or_negative():
    """1 − α eᵀφ: on the second visit of both features 1 − 0.5·(γλ + γλ) = 0.001 for γλ = 0.999, on another 1 − 0.4995."""
    numbers = (0.5, 1.0, 0.999, 0.01, 3)
    program, ours = (make("true_online", 4, 1, *numbers, scaled=False) for make in (Program, PublishedPlayer))
    both, one = np.array([0, 1]), np.array([1, 2])
    said = [("start", both), ("step", 1.0, both), ("step", 1.0, one), ("step", 1.0, both), ("end", 1.0)]
    follow(program, said[:3])
    assert program.skipped == 1
    follow(program, said[3:])
    assert 1 <= program.skipped < 4
    follow(ours, said)
    np.testing.assert_array_equal(ours.w, program.w.T)
    np.testing.assert_array_equal(ours.e, program.e.T)


@pytest.mark.parametrize("method", ["accumulate", "replace"])
def test_where_values_have_diverged_the_program_does_not_learn_at_that_step(method):
    said = made_up(2, reward=1e6)
    numbers = (40.0, 0.9, 0.999, 0.01, 4)
    program, ours = (make(method, 12, 3, *numbers, scaled=False) for make in (Program, PublishedPlayer))
    silent = []
    for name, *arguments in said:
        before = ours.w.copy(), ours.e.copy(), program.silent
        assert getattr(program, name)(*arguments) == getattr(ours, name)(*arguments)
        np.testing.assert_array_equal(ours.w, program.w.T)
        if program.silent > before[2]:
            silent.append(name)
            np.testing.assert_array_equal(ours.w, before[0])
            np.testing.assert_array_equal(ours.e, before[1])
    assert 0 < len(silent) < len(said)
    assert not ours.diverged, "the program goes on"


def test_where_values_have_diverged_true_online_stops():
    said = made_up(2, reward=1e6)
    numbers = (40.0, 0.9, 0.999, 0.01, 4)
    program, ours = (make("true_online", 12, 3, *numbers, scaled=False) for make in (Program, PublishedPlayer))
    for name, *arguments in said:
        weights = ours.w.copy()
        theirs, our = getattr(program, name)(*arguments), getattr(ours, name)(*arguments)
        assert ours.diverged == program.stopped
        if program.stopped:
            break
        assert our == theirs
    assert program.stopped
    np.testing.assert_array_equal(ours.w, weights)


def test_a_run_of_the_program_stops_when_it_diverges(background):
    settings = atari.Settings(protocol="published", step_size=1e15, trace_decay=0.9, seed=1, episodes=50)
    run = atari.play(settings, background)
    assert run.diverged
    assert run.finished
    assert len(run.episodes) < 50


@pytest.mark.parametrize(("gap", "tied"), [(0.0, True), (5e-11, True), (5e-10, False)])
def test_the_program_takes_values_within_1e_10_for_equal(gap, tied):
    player = PublishedPlayer("true_online", 1, 3, 0.1, 0.9, 0.999, 1e-9, 1, scaled=True)
    player.w[0] = [1.0, 1.0 + gap, 0.5]
    assert {player.start(np.array([0])) for _ in range(60)} == ({0, 1} if tied else {1})


def test_the_program_s_rewards_are_measured_by_the_first_one(played):
    """Asterix gives 50 points at first; later ones are worth as many fiftieths."""
    rewards = [said[1] for said in played.player.said if said[0] in ("step", "end")]
    assert sum(rewards) * 50 == sum(score for score, _ in played.episodes)
    assert next(filter(None, rewards)) == 1.0


# --- The text's protocol --------------------------------------------------------------------------


def counted(emulator):
    return emulator._ale.getEpisodeFrameNumber()


@pytest.mark.parametrize(("protocol", "actions"), [("paper", 9), ("published", 18)])
def test_an_action_of_nine_or_eighteen_lasts_five_frames(protocol, actions, background):
    run = atari.Run(atari.Settings(protocol=protocol, episodes=1), background)
    assert len(run.emulator.actions) == actions
    assert len(run.player.agent.weights[0] if protocol == "paper" else run.player.w[0]) == actions
    first = counted(run.emulator)
    for decision in range(1, 20):
        run._decide()
        assert counted(run.emulator) - first == 5 * decision == run.frames


@pytest.mark.parametrize(("protocol", "ends"), [("paper", "truncate"), ("published", "end")])
def test_episodes_of_the_paper_are_cut_short_and_those_of_the_program_are_not(protocol, ends, background, monkeypatch):
    assert runs.LIMIT == 18_000 == 5 * 60 * 60
    monkeypatch.setattr(runs, "LIMIT", 201)
    run = recorded(atari.Settings(protocol=protocol, episodes=2), background)
    said = [name for name, *_ in run.player.said]
    assert said.count(ends) == 2
    assert set(said) == {"start", "step", ends}
    frames = [frames for _, frames in run.episodes]
    if protocol == "paper":
        assert frames == [205, 205], "a whole number of actions"
        assert said.index("start", 1) == 42
    else:
        assert min(frames) > 205


def test_after_a_truncation_the_game_begins_anew(background, monkeypatch):
    monkeypatch.setattr(runs, "LIMIT", 200)
    run = recorded(atari.Settings(episodes=2), background)
    starts = [x for name, x in (said[:2] for said in run.player.said) if name == "start"]
    np.testing.assert_array_equal(*starts)


def test_a_run_plays_an_episode_that_has_begun_to_its_end(background, monkeypatch):
    monkeypatch.setattr(runs, "LIMIT", 200)
    run = atari.play(atari.Settings(frames=401), background)
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
        patch.setattr(runs, "LIMIT", 200)
        short = recorded(atari.Settings(episodes=3, seed=4), background).player.said
    first, second, *_ = (t for t, (name, *_) in enumerate(short) if name == "start")
    short[first], short[second] = ("start", short[first + 9][-1]), ("start", short[second + 3][-1])
    return short + recorded(atari.Settings(episodes=1, seed=5), background).player.said


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


@pytest.mark.parametrize("method", list(players.AGENTS))
def test_a_fixed_step_size_is_not_divided(method, walk):
    agent, answers = by_hand(method, walk, 0.003, 0.9, seed=11)
    player = AgentPlayer(method, N, 9, 0.003, 0.9, 0.999, 0.01, 11, scaled=False)
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


def test_the_same_settings_play_the_same_and_another_seed_does_not(background, monkeypatch):
    monkeypatch.setattr(runs, "LIMIT", 400)
    first, again, other = (
        recorded(atari.Settings(episodes=1, seed=seed, frames=None), background).player.answers for seed in (3, 3, 4)
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize("protocol", atari.PROTOCOLS)
def test_chance_plays_every_action_and_learns_nothing(protocol, background):
    run = recorded(atari.Settings(protocol=protocol, method="random", episodes=1), background)
    chosen = [answer for answer in run.player.answers if answer is not None]
    assert set(chosen) == set(range(len(run.emulator.actions)))
    assert all(len(said[-1]) == 0 for said in run.player.said if said[0] == "step"), "it does not look"


@pytest.mark.parametrize("game", ["breakout", "klax", "carnival"])
def test_any_other_game_is_played_by_name(game):
    """Breakout is American, Klax European; Carnival has screens of 214 rows."""
    learned = atari.learn_background(game, decisions=20)
    run = recorded(atari.Settings(game=game, episodes=1), learned, decisions=12)
    averaged = console(game, averaged=True)
    assert [name for name, *_ in run.player.said] == ["start", *["step"] * 12]
    assert run.player.said[0][1].tolist() == basic_features(averaged.getScreen(), learned)
    for (_, *_, x), action in zip(run.player.said[1:], run.player.answers, strict=False):
        for _ in range(5):
            averaged.act(run.emulator.actions[action])
        assert x.tolist() == basic_features(averaged.getScreen(), learned)


def test_there_are_more_than_a_hundred_games():
    assert len(atari.games()) > 100
    assert "asterix" in atari.games()
    assert atari.games() == sorted(atari.games())


# --- Stopping and going on ------------------------------------------------------------------------


def state(run):
    """All that determines how a run goes on, by name."""
    about, parts = run.player.dump()
    arrays = {**parts, **run.emulator.dump()}
    now = {name: getattr(run, name) for name in ("score", "frames", "played", "action", "diverged")}
    return {**now, "episodes": list(run.episodes)}, about, {name: array.tobytes() for name, array in arrays.items()}


def advance(run, decisions):
    for _ in range(decisions):
        if run.finished:
            break
        run._decide()


@pytest.mark.parametrize(("protocol", "method"), ALL)
def test_a_run_that_is_stopped_and_resumed_is_one_that_never_stopped(protocol, method, background, tmp_path, monkeypatch):
    """Stopped before the first decision, at the end of an episode (decision 30), and at random ones."""
    if protocol == "paper":
        monkeypatch.setattr(runs, "LIMIT", 150)
    settings = atari.Settings(
        protocol=protocol, method=method, step_size=1.0, seed=2, episodes=4 if protocol == "paper" else 1
    )
    rng = np.random.default_rng(len(method))
    stops = [0, *sorted({30, *rng.integers(1, 100, 3).tolist()})]
    never, states = atari.Run(settings, background), {}
    for stop, before in zip(stops, [0, *stops], strict=False):
        advance(never, stop - before)
        never.save(tmp_path / f"{stop}.npz")
        states[stop] = state(never)
    assert (states[30][0]["action"] is None) == (protocol == "paper")
    advance(never, 10**6)
    stopped = atari.Run(settings, background)
    for stop, following in zip(stops, [*stops[1:], 10**6], strict=True):
        stopped.resume(tmp_path / f"{stop}.npz")
        assert state(stopped) == states[stop], "what was written is what there was"
        advance(stopped, following - stop)
        assert state(stopped) == states.get(following, state(never))
    assert stopped.finished
    assert stopped.episodes == never.episodes


def test_resuming_forgets_what_a_run_did_before(background, tmp_path):
    """The traces of entries that the checkpoint does not name, too."""
    settings = atari.Settings(protocol="published", trace_decay=0.99, episodes=1)
    run = atari.Run(settings, background)
    advance(run, 5)
    run.save(tmp_path / "early.npz")
    advance(run, 100)
    late = state(run)
    run.resume(tmp_path / "early.npz")
    assert np.count_nonzero(run.player.e) == run.player.count
    advance(run, 100)
    assert state(run) == late


def test_the_emulator_s_state_goes_from_one_to_another():
    first, second = atari.Emulator("asterix"), atari.Emulator("asterix")
    for action in (1, 5, 2, 7):
        first.act(action)
    first.first_reward = 30.0
    second.restore(first.dump())
    assert second.first_reward == 30.0
    np.testing.assert_array_equal((second.now, second.before), (first.now, first.before))
    for action in (3, 4, 8):
        assert second.act(action) == first.act(action)
        np.testing.assert_array_equal((second.now, second.before), (first.now, first.before))


def test_a_finished_run_is_resumed_as_finished(background, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "LIMIT", 100)
    settings = atari.Settings(episodes=2)
    run = atari.play(settings, background)
    run.save(tmp_path / "c.npz")
    again = atari.play(settings, background, tmp_path / "c.npz")
    assert again.episodes == run.episodes
    assert state(again) == state(run)


def test_play_writes_checkpoints_while_it_plays_and_goes_on_from_them(background, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "LIMIT", 700)
    settings = atari.Settings(episodes=4, method="accumulate", step_size=0.1)
    path, beats = tmp_path / "c.npz", []

    def stop(frames):
        beats.append(frames)
        if len(beats) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        atari.play(settings, background, path, every=0.0, beat=stop)
    assert path.exists()
    assert beats == sorted(beats)
    resumed = atari.play(settings, background, path)
    whole = atari.play(settings, background)
    assert state(resumed) == state(whole)


PLAYING = """
import sys
from trueonline.control import atari
background = atari.read_background(sys.argv[1])
settings = atari.Settings(protocol="published", step_size=1.5, trace_decay=0.95, seed=8, frames=8000)
atari.play(settings, background, sys.argv[2], every=0.0)
"""


def test_a_run_that_is_killed_goes_on_from_its_checkpoint(background, tmp_path):
    picture, checkpoint = tmp_path / "background.txt", tmp_path / "run.npz"
    with open(picture, "wb") as file:
        atari.write_background(background, file)
    command = [sys.executable, "-c", PLAYING, str(picture), str(checkpoint)]
    rng = np.random.default_rng(0)
    for _ in range(2):
        written = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        process = subprocess.Popen(command)
        deadline = time.monotonic() + 120.0
        while not checkpoint.exists() or checkpoint.stat().st_mtime_ns == written:
            assert process.poll() is None, "the run ended before it was killed"
            assert time.monotonic() < deadline, "no checkpoint was written"
            time.sleep(0.01)
        time.sleep(0.05 * rng.random())  # perhaps while the next one is written
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    settings = atari.Settings(protocol="published", step_size=1.5, trace_decay=0.95, seed=8, frames=8_000)
    run = atari.Run(settings, background)
    run.resume(checkpoint)
    assert 0 < run.played + run.frames < 8_000
    run.play()
    whole = atari.play(settings, background)
    assert state(run) == state(whole)


OTHERS = {
    "step_size": ({"step_size": 0.6}, "step_size is 0.5, this run's is 0.6"),
    "trace_decay": ({"trace_decay": 0.8}, "trace_decay is 0.9, this run's is 0.8"),
    "method": ({"method": "replace"}, "method is true_online, this run's is replace"),
    "protocol": ({"protocol": "published"}, "protocol is paper, this run's is published"),
    "seed": ({"seed": 1}, "seed is 0, this run's is 1"),
    "episodes": ({"episodes": 3}, "episodes is 2, this run's is 3"),
    "scaled": ({"scaled": False}, "scaled is True, this run's is False"),
    "game": ({"game": "breakout"}, "game is asterix, this run's is breakout"),
}


@pytest.fixture(scope="module")
def checkpoint(background, tmp_path_factory):
    """Of a run by the default settings that has just begun its second episode."""
    path = tmp_path_factory.mktemp("checkpoint") / "c.npz"
    run = atari.Run(atari.Settings(episodes=2), background)
    while not run.episodes:
        run._decide()
    advance(run, 3)
    run.save(path)
    return path


@pytest.mark.parametrize(("given", "message"), OTHERS.values(), ids=OTHERS)
def test_a_checkpoint_of_another_setting_is_refused_and_nothing_changes(given, message, background, checkpoint):
    run = atari.Run(atari.Settings(**{"episodes": 2, **given}), background)
    before, content = state(run), checkpoint.read_bytes()
    with pytest.raises(ValueError, match=message) as error:
        run.resume(checkpoint)
    assert str(checkpoint) in str(error.value)
    assert state(run) == before
    assert checkpoint.read_bytes() == content


def test_a_checkpoint_with_another_background_or_emulator_is_refused(background, checkpoint, monkeypatch):
    other = background.copy()
    other[100, 100] ^= 2
    run = atari.Run(atari.Settings(episodes=2), other)
    before = state(run)
    with pytest.raises(ValueError, match="background"):
        run.resume(checkpoint)
    assert state(run) == before
    run.screens = atari.Screens(background)
    monkeypatch.setattr(runs, "version", lambda package: "0.0.1")
    with pytest.raises(ValueError, match=r"ale-py is .*, this run's is 0\.0\.1"):
        run.resume(checkpoint)
    assert state(run) == before
    monkeypatch.undo()
    run.resume(checkpoint)
    assert len(run.episodes) == 1


def test_damaged_files_and_files_of_another_kind_are_refused(background, tmp_path):
    run = atari.Run(atari.Settings(episodes=1), background)
    advance(run, 3)
    run.save(tmp_path / "c.npz")
    before, whole = state(run), (tmp_path / "c.npz").read_bytes()
    (tmp_path / "short.npz").write_bytes(whole[: len(whole) // 2])
    middle = len(whole) // 2
    (tmp_path / "flipped.npz").write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :])
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "text.npz").write_text("not a checkpoint")
    for name in ("short", "flipped", "empty", "text"):
        with pytest.raises(ValueError, match=f"{name}.npz .*damaged"):
            run.resume(tmp_path / f"{name}.npz")
        assert state(run) == before
    to.TrueOnlineTD(3, 0.1, 0.9, 0.9).save(tmp_path / "learner.npz")
    with pytest.raises(ValueError, match=r"learner\.npz holds a TrueOnlineTD"):
        run.resume(tmp_path / "learner.npz")
    with pytest.raises(FileNotFoundError):
        run.resume(tmp_path / "none.npz")
    assert state(run) == before


def test_a_checkpoint_whose_parts_are_missing_or_do_not_fit_is_refused_and_nothing_changes(background, tmp_path):
    """Such as one that another version of this package has written."""
    for protocol, part in (("paper", "player_u"), ("published", "player_w")):
        run = atari.Run(atari.Settings(protocol=protocol, episodes=1), background)
        advance(run, 3)
        run.save(tmp_path / "c.npz")
        with np.load(tmp_path / "c.npz") as file:
            parts = dict(file)
        advance(run, 3)
        before = state(run)
        for name, changed in (("missing", None), ("short", parts[part][:-1])):
            others = {key: array for key, array in parts.items() if key != part}
            np.savez(tmp_path / f"{name}.npz", **others, **({} if changed is None else {part: changed}))
            with pytest.raises(ValueError, match=rf"{name}\.npz"):
                run.resume(tmp_path / f"{name}.npz")
            assert state(run) == before


def test_a_checkpoint_that_cannot_be_written_leaves_the_old_one(background, tmp_path, monkeypatch):
    run = atari.Run(atari.Settings(episodes=1), background)
    run.save(tmp_path / "c.npz")
    before = (tmp_path / "c.npz").read_bytes()
    advance(run, 3)

    def full(*arguments, **named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space"):
        run.save(tmp_path / "c.npz")
    assert (tmp_path / "c.npz").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["c.npz"]


# --- Backgrounds ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("game", "decisions"), [("asterix", 300), ("klax", 60)])
def test_a_background_is_the_most_frequent_colour_of_each_pixel(game, decisions, monkeypatch):
    """Counted again over the screens of an emulator that averages, with the same actions."""
    taken, act = [], atari.Emulator.act

    def noted(emulator, action):
        taken.append(action)
        return act(emulator, action)

    monkeypatch.setattr(atari.Emulator, "act", noted)
    learned = atari.learn_background(game, decisions=decisions, seed=1)
    averaged = console(game, averaged=True)
    height = averaged.getScreen().shape[0]
    counts, resets = np.zeros((128, height, 160), int), 0
    for action in taken:
        for _ in range(5):
            averaged.act(averaged.getMinimalActionSet()[action])
        screen = averaged.getScreen()
        for colour in np.unique(screen):
            counts[colour // 2] += screen == colour
        if averaged.game_over():
            averaged.reset_game()
            resets += 1
    assert len(taken) == decisions
    assert resets > 0 or game != "asterix"
    assert learned.dtype == np.uint8
    np.testing.assert_array_equal(learned, 2 * counts.argmax(axis=0))


def test_the_background_learned_is_nearly_the_published_one(published_background):
    """35 of 33,600 pixels differ where this was written: those of a score and of objects at the borders of the screen."""
    learned = atari.learn_background("asterix")
    assert np.count_nonzero(learned != published_background) < 0.01 * learned.size


def test_a_background_is_written_and_read_again(tmp_path):
    rng = np.random.default_rng(0)
    for height in (210, 250):
        picture = rng.integers(0, 128, (height, 160), dtype=np.uint8) * np.uint8(2)
        with open(tmp_path / "b.txt", "wb") as file:
            atari.write_background(picture, file)
        lines = (tmp_path / "b.txt").read_text().splitlines()
        assert lines[0] == f"160,{height}"
        assert len(lines) == height + 1
        read = atari.read_background(tmp_path / "b.txt")
        assert read.dtype == np.uint8
        np.testing.assert_array_equal(read, picture)


def picture_text(rows=210, columns=160, head=None, colour="4"):
    return "\n".join([head or f"{columns},{rows}", *[",".join([colour] * columns)] * rows]) + "\n"


BAD_BACKGROUNDS = {
    "empty": ("", "no background"),
    "words": ("once upon a time\n", "no background"),
    "a row too few": (picture_text(209, head="160,210"), "209 rows"),
    "rows too short": (picture_text(210, 159), "159"),
    "one row too short": (picture_text().rstrip("\n").removesuffix(",4"), r"\[159, 160\]"),
    "another size announced": (picture_text(head="210,160"), "210,160"),
    "a size with three numbers": (picture_text(head="160,210,3"), "160,210,3"),
    "no size": (picture_text().split("\n", 1)[1], "background"),
    "too large a colour": (picture_text(colour="256"), "from 0 to 255"),
    "a negative colour": (picture_text(colour="-2"), "from 0 to 255"),
    "a huge colour": (picture_text(colour="9" * 30), "from 0 to 255"),
    "a colour with a point": (picture_text(colour="4.5"), "no background"),
    "a missing colour": (picture_text().replace("4,4,4", "4,,4", 1), "no background"),
    "no rows": ("160,0\n", "background"),
}


@pytest.mark.parametrize(("text", "message"), BAD_BACKGROUNDS.values(), ids=BAD_BACKGROUNDS)
def test_what_is_no_background_is_refused(text, message, tmp_path):
    (tmp_path / "b.txt").write_text(text)
    with pytest.raises(ValueError, match=message):
        atari.read_background(tmp_path / "b.txt")


def test_a_picture_is_no_background_text(tmp_path):
    (tmp_path / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    with pytest.raises(ValueError, match=r"b\.png is no background"):
        atari.read_background(tmp_path / "b.png")
    with pytest.raises(FileNotFoundError):
        atari.read_background(tmp_path / "none.txt")


@pytest.mark.parametrize(
    "given",
    [
        np.zeros((160, 210), np.uint8),
        np.zeros((210, 160)),
        np.zeros((210, 160), bool),
        np.full((210, 160), 256),
        np.full((210, 160), -1),
        np.zeros((0, 160), np.uint8),
        np.zeros(210 * 160, np.uint8),
        "asterix.bg",
        None,
    ],
    ids=str,
)
def test_what_is_no_picture_in_colours_is_no_background(given):
    with pytest.raises(ValueError, match="a background must"):
        atari.Screens(given)


@pytest.mark.parametrize(("game", "height", "other"), [("asterix", 210, 250), ("klax", 250, 210)])
def test_a_background_as_high_as_another_game_s_is_refused(game, height, other):
    with pytest.raises(ValueError, match=f"{height} rows of 160 colours, got shape .{other}, 160"):
        atari.Run(atari.Settings(game=game), np.zeros((other, 160), np.uint8))


def test_learning_a_background_takes_a_number_of_decisions():
    with pytest.raises(ValueError, match="decisions must be a whole number"):
        atari.learn_background("asterix", decisions=0)


# --- Bad input ------------------------------------------------------------------------------------


BAD_SETTINGS = {
    "protocol": ({"protocol": "papers"}, "unknown protocol 'papers'; known are paper, published"),
    "method": ({"method": "true"}, "unknown method 'true' for paper; known are accumulate"),
    "method of the other protocol": ({"protocol": "published", "method": "watkins_q"}, "unknown method 'watkins_q'"),
    "frames and episodes": ({"frames": 100, "episodes": 1}, "frames or after episodes"),
    "step_size 0": ({"step_size": 0.0}, "step_size must be a finite number > 0, got 0.0"),
    "step_size nan": ({"step_size": float("nan")}, "step_size must be .* got nan"),
    "step_size a schedule": ({"step_size": lambda t: 0.1}, "step_size must be"),
    "trace_decay": ({"trace_decay": 1.01}, "trace_decay must be a number in"),
    "seed": ({"seed": -1}, "seed must be a whole number"),
    "seed too large": ({"seed": 2**32}, "seed must be a whole number"),
    "seed true": ({"seed": True}, "seed must be a whole number"),
    "frames": ({"frames": 0}, "frames must be a whole number"),
    "episodes": ({"episodes": 1.5}, "episodes must be a whole number"),
}


@pytest.mark.parametrize(("given", "message"), BAD_SETTINGS.values(), ids=BAD_SETTINGS)
def test_bad_settings_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        atari.Settings(**given)


def test_settings_say_what_was_meant():
    settings = atari.Settings()
    assert (settings.frames, settings.episodes) == (4_320_000, None), "20 hours at 60 frames a second"
    assert atari.Settings(episodes=3).frames is None
    assert atari.FRAMES == 20 * 60 * 60 * 60
    assert (atari.DISCOUNT, atari.EPSILON) == (0.999, 0.01)


@pytest.mark.parametrize("game", ["asterisk", "space invaders", "Asterix", "", "no such game at all"])
def test_an_unknown_game_is_refused_with_names_that_are_close(game):
    with pytest.raises(ValueError, match="unknown game") as error:
        atari.Emulator(game)
    close = difflib.get_close_matches(game, atari.games(), 1)
    assert all(name in str(error.value) for name in close)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("game", [3, None, ["asterix"]])
def test_a_game_that_is_no_name_is_refused(game):
    with pytest.raises(ValueError, match="unknown game"):
        atari.Emulator(game)


@pytest.mark.parametrize("game", ["combat", "joust", "maze_craze", "warlords"])
def test_a_game_for_two_players_is_refused_and_not_the_end_of_the_process(game):
    with pytest.raises(ValueError, match=f"{game} is not a game for one player"):
        atari.Emulator(game)


def test_a_missing_rom_is_said_to_be_missing(monkeypatch, tmp_path):
    for answer in (None, tmp_path / "asterix.bin"):
        monkeypatch.setattr(ale_py.roms, "get_rom_path", lambda name, answer=answer: answer)
        with pytest.raises(ValueError, match="the ROM of asterix is missing"):
            atari.Emulator("asterix")


def test_without_the_emulator_the_extra_is_named(monkeypatch):
    for name in ("ale_py", "ale_py.roms"):
        monkeypatch.setitem(sys.modules, name, None)
    for attempt in (atari.games, atari.Emulator, atari.learn_background):
        with pytest.raises(ValueError, match=r"pip install 'trueonline\[atari\]'"):
            attempt()


def test_nothing_is_written_to_the_terminal_by_the_emulator(capfd):
    emulators.Emulator("asterix").act(0)
    assert capfd.readouterr() == ("", "")
