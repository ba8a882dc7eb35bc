"""Control: differential Sarsa(λ) on the access-control queue, against exact reward rates and against Sarsa(λ) that discounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueonline import control
from trueonline.catalog import METHODS
from trueonline.lab.experiment import Claim, Settings, at_least, at_most, interval, resample
from trueonline.lab.experiments.average_reward import spec
from trueonline.problems import AccessControl


def control_runs(queue: AccessControl, settings: Settings) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The mean reward in each piece of a run, by method: setting × run × piece; and R̄ at the end of those with an R̄."""
    runs, earned, rates = settings.number(spec.RUNS), {}, []
    grid = [(step_size, lam) for step_size in spec.CONTROL_STEP_SIZES for lam in spec.CONTROL_LAMS]
    for method in (spec.SARSA, spec.DISCOUNTED_SARSA):
        found = []
        for step_size, lam in grid:
            for number in range(runs):
                seed = [settings.seed, number]
                common: Any = {
                    "step_size": step_size,
                    "trace_decay": lam,
                    "policy": control.EpsilonGreedy(spec.EPSILON),
                    "seed": seed,
                }
                common |= (
                    {"second_step_size": spec.ETA * step_size} if method == spec.SARSA else {"discount": spec.DISCOUNT}
                )
                agent = METHODS[method].resolve("learner")(queue.n_states, queue.n_actions, **common)
                found.append(play(queue, agent, np.random.default_rng([*seed, 1])))
                rates += [agent.reward_rate] if method == spec.SARSA else []
        earned[method] = np.array(found).reshape(len(grid), runs, -1)
    return earned, np.array(rates).reshape(len(grid), runs)


def play(queue: AccessControl, agent: Any, rng: np.random.Generator) -> np.ndarray:
    """Let an agent act; the mean reward of each piece of the run."""
    rewards = np.empty(spec.STEPS)
    state = queue.start
    action = agent.start(state)
    for t in range(spec.STEPS):
        rewards[t], state = queue.step(state, action, rng)
        action = agent.step(float(rewards[t]), state)
    return rewards.reshape(-1, spec.PIECE).mean(axis=1)


def exact_rates(queue: AccessControl) -> dict[str, float]:
    """Reward rates of policies that need no learning."""
    explores = spec.EPSILON / 2.0 + (1.0 - spec.EPSILON) * np.eye(2)
    return {
        "optimal": queue.optimal_reward_rate,
        "optimal, ε-greedy": queue.reward_rate(explores[queue.optimal_policy]),
        "accept all": queue.reward_rate(np.ones(queue.n_states, int)),
    }


def queue_claims(
    queue: AccessControl, earned: Mapping[str, np.ndarray], rates: np.ndarray, settings: Settings
) -> list[Claim]:
    late = {name: pieces[:, :, pieces.shape[2] // 2 :].mean(axis=2) for name, pieces in earned.items()}  # setting × run
    runs = late[spec.SARSA].shape[1]
    weights = resample(runs, seed=settings.seed)
    mean = {name: rewards.mean(axis=1) for name, rewards in late.items()}
    samples = {name: (weights @ rewards.T).max(axis=1) for name, rewards in late.items()}
    exact = exact_rates(queue)
    best = int(mean[spec.SARSA].argmax())
    ours = {
        "mean reward of a step in the second half, at the best α and λ": float(mean[spec.SARSA][best]),
        "95 % interval": list(interval(samples[spec.SARSA])),
        "runs": runs,
    }
    apart = np.abs(rates[best] - late[spec.SARSA][best])
    apart_samples = interval(weights @ apart)
    against = interval(samples[spec.SARSA] - samples[spec.DISCOUNTED_SARSA])
    goal = spec.NEAR * exact["optimal, ε-greedy"]
    return [
        Claim(
            f"Access control: differential Sarsa(λ) earns at least {spec.NEAR:.0%} of what the ε-greedy optimal policy earns",
            at_least(*interval(samples[spec.SARSA]), goal),
            {
                **ours,
                "exact, optimal policy": exact["optimal"],
                "exact, ε-greedy": exact["optimal, ε-greedy"],
                "goal": goal,
            },
            runs,
        ),
        Claim(
            "Access control: differential Sarsa(λ) earns at least what accepting every customer earns",
            at_least(*interval(samples[spec.SARSA]), exact["accept all"]),
            {**ours, "exact, accept all": exact["accept all"]},
            runs,
        ),
        Claim(
            f"Access control: differential Sarsa(λ) earns at least what Sarsa(λ) with γ = {spec.DISCOUNT} earns, "
            "at the best α and λ",
            at_least(*against),
            {
                **ours,
                f"γ = {spec.DISCOUNT}": float(mean[spec.DISCOUNTED_SARSA].max()),
                "95 % interval of the difference": list(against),
            },
            runs,
        ),
        Claim(
            "Access control: R̄ of differential Sarsa(λ) agrees with what it earns",
            at_most(*apart_samples, spec.AGREES),
            {
                "holds if": f"the mean of |R̄ at the end − mean reward in the second half| is at most {spec.AGREES:g}",
                "mean": float(apart.mean()),
                "95 % interval": list(apart_samples),
                "R̄ of each run": rates[best].tolist(),
            },
            runs,
        ),
    ]
