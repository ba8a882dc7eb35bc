"""A whole training on Mountain Car: what the environment, the features and the agent take of it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import Seconds, Section, Settings, Table, at_most, short
from benchmarks.timing import Times, race
from trueonline.control import EpsilonGreedy, TrueOnlineSarsa, train
from trueonline.features import TileCoder

EPISODES, TILINGS, BINS = 50, 8, 8
STEP_SIZE, TRACE_DECAY, DISCOUNT, EPSILON = 0.5 / TILINGS, 0.9, 1.0, 0.1


def measure(settings: Settings) -> Section:
    section = Section(
        "Mountain Car",
        f"`train` on MountainCar-v0, {EPISODES} episodes of 200 steps at most: true online Sarsa(λ), α = 0.5 / {TILINGS}, "
        f"λ = {TRACE_DECAY:g}, γ = {DISCOUNT:g}, ε = {EPSILON:g}, {TILINGS} tilings of {BINS} × {BINS} tiles. The parts are "
        "timed by themselves, in turns with the whole: the environment is given the same actions again, the features the same "
        "observations, the agent the same features and rewards.",
    )
    if find_spec("gymnasium") is None:
        section.notes.append("Gymnasium is not installed: nothing was measured.")
        return section
    import gymnasium

    env = gymnasium.make("MountainCar-v0")
    course = recorded(env)
    steps = sum(len(episode.actions) for episode in course)
    competitors = {
        "training": lambda: trained(env),
        "environment": lambda: environment(env, course),
        "features": lambda: features(course),
        "agent": lambda: agent(course),
    }
    times = race(competitors, rounds=settings.rounds, tries=1 if settings.quick else 3)
    whole, world, coding, acting = (np.array(times.rounds[name]) for name in competitors)
    times = Times({**times.rounds, "ours": list(coding + acting), "rest": list(whole - world - coding - acting)})
    parts = {
        "the whole training": "training",
        "the environment": "environment",
        "features": "features",
        "the agent: values, choice, learning": "agent",
        "features and agent": "ours",
        "what all takes longer when it alternates": "rest",
    }
    rows = [(what, times.per_step(name, steps), _share(times, name)) for what, name in parts.items()]
    ours, took = times.ratio("ours", "environment"), times.per_step("ours", steps)
    section.tables.append(Table(("what", "per step", "of the whole"), rows))
    section.targets.append(at_most("features and agent against the environment", 1.0, ours))
    last = float(np.mean([len(episode.actions) for episode in course[-10:]]))
    table = [("trueonline", took, "1", short(last)), _peer(settings, took)]
    section.tables.append(
        Table(("features and agent of", "per step", "ratio", "steps in each of the last ten episodes"), table)
    )
    section.notes.append(
        f"{steps:,} steps in {EPISODES} episodes. The peer runs in a process of its own afterwards, so that its ratio is "
        "rougher; its car is moved by the same equations, without Gymnasium, and not counted. Both tile codings have as many "
        "tiles, which lie a little differently."
    )
    env.close()
    return section


# --- The training and its parts -------------------------------------------------------------------


@dataclass
class Episode:
    """All that was said in it."""

    seed: int
    observations: list[np.ndarray]
    features: list[np.ndarray]
    actions: list[int]
    terminated: bool = False


def coder() -> TileCoder:
    return TileCoder(low=[-1.2, -0.07], high=[0.6, 0.07], bins=BINS, tilings=TILINGS)


def learner() -> TrueOnlineSarsa:
    numbers = (coder().n_features, 3, STEP_SIZE, TRACE_DECAY, DISCOUNT)
    return TrueOnlineSarsa(*numbers, EpsilonGreedy(EPSILON), seed=0)


def trained(env: Any) -> Any:
    return train(env, learner(), coder(), episodes=EPISODES, seed=0)


def environment(env: Any, course: list[Episode]) -> None:
    for episode in course:
        env.reset(seed=episode.seed)
        for action in episode.actions:
            observation, *_ = env.step(action)
        assert np.array_equal(observation, episode.observations[-1])


def features(course: list[Episode]) -> None:
    code = coder()
    for episode in course:
        for observation in episode.observations:
            code(observation)


def agent(course: list[Episode]) -> None:
    player = learner()
    for episode in course:
        first, *between, last = episode.features
        chosen = [player.start(first), *(player.step(-1.0, x) for x in between)]
        assert chosen == episode.actions
        if episode.terminated:
            player.end(-1.0)
        else:
            player.truncate(-1.0, last)


def recorded(env: Any) -> list[Episode]:
    """The same training, written down."""
    import gymnasium

    course: list[Episode] = []
    code = coder()

    class Notes(gymnasium.Wrapper):
        def reset(self, *, seed: int | None = None, options: dict | None = None) -> Any:
            found = self.env.reset(seed=seed, options=options)
            course.append(Episode(int(seed or 0), [found[0].copy()], [code(found[0])], []))
            return found

        def step(self, action: Any) -> Any:
            found = self.env.step(action)
            episode = course[-1]
            episode.observations.append(found[0].copy())
            episode.features.append(code(found[0]))
            episode.actions.append(int(action))
            episode.terminated = bool(found[2])
            assert found[1] == -1.0
            return found

    trained(Notes(env))
    return course


def _share(times: Times, name: str) -> str:
    return f"{100 * times.ratio(name, 'training').median:.0f} %"


# --- The same by another package ------------------------------------------------------------------


def _peer(settings: Settings, ours: Seconds) -> tuple:
    name = "MushroomRL, TrueOnlineSARSALambda"
    child = Path(__file__).with_name("mountain_car_child.py")
    about = {"episodes": EPISODES, "tilings": TILINGS, "bins": BINS, "alpha": STEP_SIZE, "lam": TRACE_DECAY}
    about |= {"gamma": DISCOUNT, "epsilon": EPSILON, "rounds": 1 if settings.quick else 3}
    command = [settings.peers_python, str(child), json.dumps(about)]
    try:
        found = subprocess.run(command, check=False, capture_output=True, text=True)
    except OSError as error:
        return name, f"no interpreter ({error.strerror})", "–", "–"
    if found.returncode:
        reason = (found.stderr.strip().splitlines() or ["no reason given"])[-1]
        return name, "not installed" if "ModuleNotFoundError" in reason else reason, "–", "–"
    answer = json.loads(found.stdout)
    took = Seconds(answer["seconds"])
    return name, took, f"{short(took.seconds / ours.seconds)}×", short(answer["last"])
