"""Who plays an Atari game: an agent of this package, the published program's learner, or chance.

All have `start`, `step`, `end` and `truncate` as agents do, and `dump` and `restore` for checkpoints.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline import catalog
from trueonline.control.atari import published
from trueonline.control.policies import EpsilonGreedy
from trueonline.core.compiling.kernels import call
from trueonline.inputs import check_saved, saved_array, saved_count

# The agents of the catalogue, by the names that the paper's game uses: "accumulate" is accumulate Sarsa(λ).
AGENTS: dict[str, Any] = {
    name.removesuffix("_sarsa"): catalog.METHODS[name].resolve("learner") for name in catalog.agents(scaled=True)
}


class AgentPlayer:
    """An agent of this package, whose step-size is divided by the largest number of active features so far, if `scaled`.

    With a step-size that changes, true online Sarsa(λ) is Algorithm 4 over ψ(s, a): still exact.
    """

    def __init__(
        self,
        method: str,
        n_features: int,
        n_actions: int,
        step_size: float,
        trace_decay: float,
        discount: float,
        epsilon: float,
        seed: int,
        *,
        scaled: bool,
    ) -> None:
        self.divisor, self.active, self._step_size = 1, 1, step_size
        alpha = self._alpha if scaled else step_size
        policy = EpsilonGreedy(epsilon)
        self.agent = AGENTS[method](n_features, n_actions, alpha, trace_decay, discount, policy, seed=seed)

    def _alpha(self, t: int) -> float:
        self.divisor = max(self.divisor, self.active)
        return self._step_size / self.divisor

    @property
    def diverged(self) -> bool:
        return self.agent.diverged

    def start(self, x: np.ndarray) -> int:
        self.active = len(x)
        return self.agent.start(x)

    def step(self, reward: float, x_next: np.ndarray) -> int:
        action = self.agent.step(reward, x_next)
        self.active = len(x_next)
        return action

    def end(self, reward: float) -> None:
        self.agent.end(reward)

    def truncate(self, reward: float, x_next: np.ndarray) -> None:
        self.agent.truncate(reward, x_next)

    def dump(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        settings = self.agent._settings()
        about = {"rng": settings["rng"], "action": settings["action"], "divisor": self.divisor, "active": self.active}
        return about, self.agent._dump()

    def restore(self, about: dict[str, Any], parts: dict[str, np.ndarray]) -> None:
        self.divisor, self.active = (saved_count(name, about[name]) for name in ("divisor", "active"))
        check_saved({"divisor": self.divisor >= 1})
        self.agent._restore(parts, about["rng"], about["action"])


class PublishedPlayer:
    """The published program's learner. It scales its step-size as `AgentPlayer` does."""

    def __init__(
        self,
        method: str,
        n_features: int,
        n_actions: int,
        step_size: float,
        trace_decay: float,
        discount: float,
        epsilon: float,
        seed: int,
        *,
        scaled: bool,
    ) -> None:
        self.method, self.scaled = published.CODES[method], scaled
        self.step_size, self.trace_decay, self.discount = step_size, trace_decay, discount
        self.one_in = round(1.0 / epsilon)
        self.w, self.e = np.zeros((2, n_features, n_actions))
        self.traced = np.empty(n_features * n_actions, np.int64)
        self.count = 0
        self.q = np.empty(n_actions)
        self.random = published.seeded(seed)
        for _ in range(published.SKIPPED):
            published.rand.py_func(self.random)
        self.divisor, self.q_old, self.action, self.x = 1, 0.0, 0, np.empty(0, np.int64)
        self.diverged = False

    def start(self, x: np.ndarray) -> int:
        self.e.reshape(-1)[self.traced[: self.count]] = 0.0
        self.count, self.x = 0, x
        self.action, self.q_old = call(published.BEGIN, self.w, x, self.q, self.one_in, self.random)
        return self.action

    def step(self, reward: float, x_next: np.ndarray, ends: bool = False) -> int:
        self.divisor = max(self.divisor, len(self.x))
        alpha = self.step_size / self.divisor if self.scaled else self.step_size
        before = (self.method, self.w, self.e, self.traced, self.count, self.x, self.action, reward, x_next, ends)
        rest = (self.q_old, alpha, self.discount, self.trace_decay, self.q, self.one_in, self.random)
        self.action, self.q_old, count = call(published.STEP, *before, *rest)
        self.diverged = count < 0
        self.count, self.x = max(count, 0), x_next
        return self.action

    def end(self, reward: float) -> None:
        self.step(reward, self.x, ends=True)

    def truncate(self, reward: float, x_next: np.ndarray) -> None:
        self.step(reward, x_next)

    def dump(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        about = {"divisor": self.divisor, "q_old": self.q_old, "action": self.action, "diverged": self.diverged}
        traced = self.traced[: self.count]
        return about, {"w": self.w, "traced": traced, "e": self.e.reshape(-1)[traced], "random": self.random, "x": self.x}

    def restore(self, about: dict[str, Any], parts: dict[str, np.ndarray]) -> None:
        count, active = (min(np.size(parts[name]), self.w.size) for name in ("traced", "x"))
        traced, e = saved_array(parts, "traced", (count,), np.int64), saved_array(parts, "e", (count,), np.float64)
        x, random = saved_array(parts, "x", (active,), np.int64), saved_array(parts, "random", (32,), np.uint32)
        w, (features, actions) = saved_array(parts, "w", self.w.shape, np.float64), self.w.shape
        check_saved(
            {
                "traced": len(np.unique(traced)) == count and ((traced >= 0) & (traced < self.w.size)).all(),
                "e": e != 0.0,
                "x": len(np.unique(x)) == active and ((x >= 0) & (x < features)).all(),
                "random": random[31] < 31,
            }
        )
        self.divisor, self.q_old = max(saved_count("divisor", about["divisor"]), 1), float(about["q_old"])
        self.action, self.diverged = saved_count("action", about["action"], actions - 1), bool(about["diverged"])
        self.w, self.random, self.x, self.count = w, random, x, count
        self.e[:] = 0.0
        self.traced[:count] = traced
        self.e.reshape(-1)[traced] = e


class RandomPlayer:
    """Every action equally often: its score is the one that a learner must exceed."""

    diverged = False

    def __init__(self, n_actions: int, seed: int) -> None:
        self.n_actions = n_actions
        self.rng = np.random.default_rng(seed)

    def start(self, x: np.ndarray) -> int:
        return int(self.rng.integers(self.n_actions))

    def step(self, reward: float, x_next: np.ndarray) -> int:
        return int(self.rng.integers(self.n_actions))

    def end(self, reward: float) -> None:
        pass

    def truncate(self, reward: float, x_next: np.ndarray) -> None:
        pass

    def dump(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"rng": self.rng.bit_generator.state}, {}

    def restore(self, about: dict[str, Any], parts: dict[str, np.ndarray]) -> None:
        self.rng.bit_generator.state = about["rng"]


Player = AgentPlayer | PublishedPlayer | RandomPlayer
