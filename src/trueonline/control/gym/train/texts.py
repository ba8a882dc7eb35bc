"""The words of `trueonline train`: what it is about to do, and what came of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from trueonline import features
from trueonline.control.gym import environments
from trueonline.control.gym.evaluation import standard_error
from trueonline.control.gym.train.settings import TrainingSettings
from trueonline.features.spaces import Maker
from trueonline.terminal import RECENT_EPISODES
from trueonline.words import count, number

if TYPE_CHECKING:
    from trueonline.control.gym.train.results import Trained


def headline(settings: TrainingSettings, maker: Maker) -> str:
    """The title of the curve."""
    divided = settings.divided and maker.n_active > 1
    alpha = f"{settings.step_size:g}/{maker.n_active}" if divided else f"{settings.step_size:g}"
    return f"{settings.environment}: {settings.title}, α = {alpha}, λ = {settings.trace_decay:g}"


def intention(settings: TrainingSettings, maker: Maker, runs: int) -> Iterable[str]:
    """The settings of the training that is about to begin, a line each."""
    yield f"{settings.environment} with {settings.title}"
    alpha = f"{settings.alpha(maker):.4g}"
    if settings.divided:
        alpha += f" ({settings.step_size:g} divided by the {count(maker.n_active, 'active feature')})"
    epsilon = f"{settings.epsilon:g}"
    if settings.epsilon_final is not None:
        epsilon += f" → {settings.epsilon_final:g} in {settings.epsilon_steps:,} steps"
    exploring = "" if settings.method == "stream_ac" else f", ε = {epsilon}"
    yield _row("step-size", f"{alpha}, λ = {settings.trace_decay:g}, γ = {settings.discount:g}{exploring}")
    if settings.parameters:
        yield _row("parameters", ", ".join(f"{name} = {value:g}" for name, value in settings.parameters.items()))
    yield _row("features", _features(maker))
    several = f", {runs} runs" if runs > 1 else ""
    yield _row("episodes", f"{settings.episodes:,}{several}, seed {settings.seed}")


def _features(maker: Maker) -> str:
    about, n = maker.settings(), f"{maker.n_features:,}"
    if about["kind"] == "network":
        layers = f" of {' and '.join(map(str, about['hidden']))} units" if about["hidden"] else " without hidden layers"
        return f"learned by a network{layers} over {count(maker.n_features, 'number')}, normalised, and the time"
    if about["kind"] == "table":
        return f"{n}, one for each state"
    if about["kind"] == "bits":
        return f"{n}, one for each bit and one that is always active"
    if about["kind"] == "fourier":
        return f"{n} cosines of order {about['order']}"
    several = f" for each of {len(about['groups'])} groups of dimensions" if about["groups"] else ""
    return f"{n} tiles: {about['tilings']} tilings{several}, bins {about['bins']}"


def summary(trained: Trained) -> Iterable[str]:
    """The results of a training, a line each."""
    returns = trained.by_run("train", "return")
    last = returns[:, -RECENT_EPISODES:]
    which = f"last {last.shape[1]}" if last.shape[1] < returns.shape[1] else f"all {last.shape[1]}"
    over = "runs" if trained.runs > 1 else "episodes"
    yield _row(which, f"mean return {_mean(last)} (standard error over {over})")
    if trained.settings.evaluate:
        greedy = trained.by_run("evaluate", "return")
        each = " each" if trained.runs > 1 else ""
        yield _row("greedy", f"mean return {_mean(greedy)}, {greedy.shape[1]} episodes{each} without learning")
    if trained.diverged:
        runs = ", ".join(map(str, trained.diverged))
        where = f"in run {runs} " if trained.runs > 1 else ""
        yield _row("diverged", f"{where}the weights are no longer finite numbers: try a smaller --step-size")
    tables = ["episodes", *(["evaluation"] if trained.settings.evaluate else [])]
    names = [f"{table}.{ending}" for table in tables for ending in ("csv", "parquet")]
    names += ["curve.png", "agent.npz", "settings.json", *([] if trained.no_film else ["film.gif"])]
    yield _row("files", f"{trained.out}/{{{', '.join(names)}}}")


def _mean(returns: np.ndarray) -> str:
    """The mean with its standard error: of one run over its episodes, of several over the runs."""
    values = returns[0] if len(returns) == 1 else returns.mean(axis=1)
    error = standard_error(values)
    return number(values.mean(), 4) + ("" if np.isnan(error) else f" ± {number(error, 2)}")


def _row(name: str, text: str) -> str:
    return f"  {name:<10} {text}"


def suitable() -> Iterable[tuple[str, int, int, str]]:
    """The registered environments that can be made here: name, actions, features and observations.

    Environments without discrete actions, or whose observations have no features here, are left out.
    """
    gym = environments.gymnasium()
    for name, spec in list(gym.registry.items()):
        if str(spec.entry_point).startswith("ale_py"):  # games, which `trueonline atari` plays
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                env = environments.make(name)
                maker = features.from_space(env.observation_space)
                actions = int(environments.discrete(env).n)
            except ValueError:
                continue
        yield name, actions, maker.n_features, _observations(env.observation_space)


def _observations(space: Any) -> str:
    return f"{space.shape[0]} numbers" if type(space).__name__ == "Box" else str(space)
