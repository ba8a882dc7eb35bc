"""Gymnasium environments: made by name, checked before anything runs, and seeded episode by episode."""

from __future__ import annotations

import difflib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points
from numbers import Integral
from typing import Any

import numpy as np

from trueonline import catalog
from trueonline.inputs import protocol_of
from trueonline.inputs.seeds import seed_of
from trueonline.optional import optional

TRAINING, EVALUATION, FILM = "training episode", "evaluation episode", "filmed episode"  # each has seeds of its own

Features = Callable[[Any], Any]  # from an observation to x; with `n_features`, this is checked too
Seed = int | Sequence[int]


def gymnasium() -> Any:
    """The package."""
    return optional("environments need Gymnasium", "gymnasium", extra="gym")


def make(name: str, **options: Any) -> Any:
    """The environment of this name, as `gymnasium.make` makes it, or a ValueError that says what to do."""
    gym = gymnasium()
    _register(gym, name.rpartition("/")[0])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # an old version that is gone is an error anyway
            return gym.make(name, **options)
    except gym.error.UnregisteredEnv as error:
        close = _close(name, gym.registry)
        hint = f"; close are {', '.join(close)}" if close else f": {error}"
        raise ValueError(f"unknown environment {name!r}{hint}") from None
    except (gym.error.Error, ImportError) as error:
        raise ValueError(f"the environment {name!r} cannot be made: {error}") from None
    except Exception as error:  # the environment's own constructor may raise anything
        given = ", ".join(f"{key}={value!r}" for key, value in options.items()) or "no options"
        raise ValueError(
            f"the environment {name!r} cannot be made with {given}: {type(error).__name__}: {error}"
        ) from error


def _register(gym: Any, namespace: str) -> None:
    """Register the environments of the installed package for this namespace, such as MinAtar. Gymnasium leaves this to others."""
    if namespace and not any(spec.namespace == namespace for spec in gym.registry.values()):
        for entry in entry_points(group="gymnasium.envs", name=namespace):
            entry.load()()


def _close(name: str, known: Mapping[str, Any]) -> list[str]:
    """Names that may have been meant, the closest first."""
    by_lower = {each.lower(): each for each in known}
    stem = name.lower().rpartition("-v")[0] or name.lower()
    same = [each for lower, each in by_lower.items() if lower.rpartition("-v")[0] == stem]
    near = [by_lower[each] for each in difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)]
    return list(dict.fromkeys([*same, *near]))[:4]


@contextmanager
def opened(env: Any) -> Iterator[Any]:
    """An environment as it was given; one given by name is made, and closed at the end."""
    if not isinstance(env, str):
        if not isinstance(env, gymnasium().Env):
            raise ValueError(
                f"env must be a Gymnasium environment or the name of one, got {type(env).__name__}{_hint(env)}"
            )
        yield env
        return
    made = make(env)
    try:
        yield made
    finally:
        made.close()


def _hint(env: Any) -> str:
    return "; train_vector takes a vector of environments" if hasattr(env, "single_observation_space") else ""


def fitting(env: Any, agent: Any, features: Features) -> Callable[[Any], Any]:
    """From the agent's actions to those of the environment, once agent and features are known to fit.

    Raises
    ------
    TypeError
        If the agent is something else.
    ValueError
        If environment, agent and features do not fit together.
    """
    parts = ("n_actions", "start", "step", "end", "truncate")
    if isinstance(agent, type) or not all(hasattr(agent, name) for name in parts):
        agents = ", ".join(catalog.classes("control"))
        predicts = ", which predicts and does not act" if hasattr(agent, "predict") else ""
        given = f"the class {agent.__name__}" if isinstance(agent, type) else type(agent).__name__
        raise TypeError(f"agent must be an agent, got {given}{predicts}; agents are {agents}")
    protocol_of(agent)  # TypeError for an argument of `step` that nobody would give
    executed = _vectors(env, agent) if getattr(agent, "continuous", False) else _numbered(env, agent)
    if isinstance(features, type) or not callable(features):
        given = f"the class {features.__name__}" if isinstance(features, type) else f"{features!r:.80}"
        raise ValueError(f"features must be callable, from an observation to x, got {given}")
    n_features = getattr(features, "n_features", agent.n_features)
    if n_features != agent.n_features:
        raise ValueError(
            f"the agent has {agent.n_features} features, but {type(features).__name__} makes {n_features}: "
            f"make the agent with n_features={n_features}"
        )
    return executed


def _numbered(env: Any, agent: Any) -> Callable[[int], int]:
    actions = discrete(env)
    if agent.n_actions != actions.n:
        fix = f"its network with n_outputs={actions.n}" if hasattr(agent, "net") else f"it with n_actions={actions.n}"
        raise ValueError(f"the agent has {agent.n_actions} actions, but the environment {actions.n}: make {fix}")
    first = int(actions.start)
    return lambda action: first + action


def _vectors(env: Any, agent: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Actions within the bounds of a Box: the agent learns from the action that it chose, beyond the bounds too."""
    space = env.action_space
    if not isinstance(space, gymnasium().spaces.Box):
        raise ValueError(f"the agent has continuous actions (a Box), but those of {title(env)} are {space}")
    size = int(np.prod(space.shape))
    if agent.n_actions != size:
        raise ValueError(
            f"an action of the agent has {agent.n_actions} numbers, but those of {title(env)} have {size}: "
            f"make its actor with n_outputs={2 * size}"
        )
    return lambda action: np.clip(action.reshape(space.shape), space.low, space.high).astype(space.dtype)


def discrete(env: Any) -> Any:
    """The environment's action space if it is discrete; ValueError otherwise."""
    if not isinstance(env.action_space, gymnasium().spaces.Discrete):
        raise ValueError(
            f"this agent chooses among some actions (a Discrete space), but those of {title(env)} are "
            f"{env.action_space}; deep.StreamAC with continuous=True (train --agent stream-ac) has continuous ones"
        )
    return env.action_space


def title(env: Any) -> str:
    """The name of an environment."""
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__


def described(env: Any) -> dict[str, Any]:
    """A description that tells one environment from another, as far as can be seen from outside. JSON can hold it."""
    spec, base = env.spec, type(env.unwrapped)
    kwargs = {name: value for name, value in (spec.kwargs if spec else {}).items() if name != "render_mode"}
    return {
        "name": spec.id if spec else f"{base.__module__}.{base.__qualname__}",
        "wrappers": str(env),
        "options": json.loads(json.dumps(kwargs, default=repr, sort_keys=True)),
        "steps": spec.max_episode_steps if spec else None,
        "observations": str(env.observation_space),
        "actions": str(env.action_space),
    }


def entropy(seed: Seed) -> tuple[int, ...]:
    """A seed as whole numbers ≥ 0."""
    parts = tuple(seed) if isinstance(seed, Sequence) and not isinstance(seed, str) else (seed,)
    if not parts or not all(isinstance(part, Integral) and not isinstance(part, bool) and part >= 0 for part in parts):
        raise ValueError(f"seed must be a whole number ≥ 0, or several, got {seed!r}")
    return tuple(int(part) for part in parts)


def seed_of_agent(agent: Any) -> Seed:
    """The seed that an agent was made with: random numbers if nobody gave it one. 0 for an agent that has no generator."""
    sequence = getattr(getattr(getattr(agent, "rng", None), "bit_generator", None), "seed_seq", None)
    seed = getattr(sequence, "entropy", None)
    return 0 if seed is None else np.atleast_1d(np.array(seed, object)).tolist()


def episode_seed(purpose: str, episode: int, seed: tuple[int, ...]) -> int:
    """The seed of an episode, from its number alone: so a run that was stopped resumes as if it had not been."""
    return int(
        np.random.SeedSequence(seed_of(purpose, episode, *seed)).generate_state(1)[0] >> 1
    )  # 31 bits suit everyone
