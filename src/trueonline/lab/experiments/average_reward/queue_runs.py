"""Control: differential Sarsa(λ) on the access-control queue, against exact reward rates and against Sarsa(λ) that discounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueonline import control
from trueonline.catalog import METHODS
from trueonline.lab.claims import Claim, Estimate
from trueonline.lab.experiment import Settings
from trueonline.lab.experiments.average_reward import spec
from trueonline.problems import AccessControl


def control_runs(queue: AccessControl, settings: Settings) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The mean reward in each piece of a run, by method: run × setting × piece; and R̄ at the end of those with an R̄."""
    grid = [(step_size, lam) for step_size in spec.CONTROL_STEP_SIZES for lam in spec.CONTROL_LAMS]
    shape = (settings.number(spec.RUNS), len(grid))
    earned = {name: np.empty((*shape, spec.STEPS // spec.PIECE)) for name in (spec.SARSA, spec.DISCOUNTED_SARSA)}
    rates = np.empty(shape)
    for method, rewards in earned.items():
        for run, place in np.ndindex(shape):
            step_size, lam = grid[place]
            seed = [settings.seed, run]
            own = {"second_step_size": spec.ETA * step_size} if method == spec.SARSA else {"discount": spec.DISCOUNT}
            agent: Any = METHODS[method].resolve("learner")(
                queue.n_states,
                queue.n_actions,
                step_size=step_size,
                trace_decay=lam,
                policy=control.EpsilonGreedy(spec.EPSILON),
                seed=seed,
                **own,
            )
            rewards[run, place] = play(queue, agent, np.random.default_rng([*seed, 1]))
            if method == spec.SARSA:
                rates[run, place] = agent.reward_rate
    return earned, rates


def late(pieces: np.ndarray) -> np.ndarray:
    """The mean reward in the second half of each run."""
    return pieces[..., pieces.shape[-1] // 2 :].mean(axis=-1)


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


def queue_claims(queue: AccessControl, earned: Mapping[str, np.ndarray], rates: np.ndarray, seed: int) -> list[Claim]:
    """What the agents earn in the second half of their runs, each at its best α and λ."""
    rewards = {name: Estimate.mean(late(pieces), seed) for name, pieces in earned.items()}
    ours, theirs = rewards[spec.SARSA].largest(), rewards[spec.DISCOUNTED_SARSA].largest()
    best = int(rewards[spec.SARSA].value.argmax())
    apart = Estimate.mean(np.abs(rates[:, best] - late(earned[spec.SARSA])[:, best]), seed)
    exact, runs = exact_rates(queue), len(rates)
    goal = spec.GOAL * exact["optimal, ε-greedy"]
    numbers = {
        "mean reward of a step in the second half, at the best α and λ": ours.value,
        "95 % interval": ours.interval,
        "runs": runs,
    }
    return [
        Claim(
            f"Access control: differential Sarsa(λ) earns at least {spec.GOAL:.0%} of what the ε-greedy optimal policy earns",
            ours.judge(at_least=goal),
            {
                **numbers,
                "exact, optimal policy": exact["optimal"],
                "exact, ε-greedy": exact["optimal, ε-greedy"],
                "goal": goal,
            },
            runs,
        ),
        Claim(
            "Access control: differential Sarsa(λ) earns at least what accepting every customer earns",
            ours.judge(at_least=exact["accept all"]),
            {**numbers, "exact, accept all": exact["accept all"]},
            runs,
        ),
        Claim(
            f"Access control: differential Sarsa(λ) earns at least what Sarsa(λ) with γ = {spec.DISCOUNT} earns, "
            "at the best α and λ",
            (ours - theirs).judge(at_least=0.0),
            {
                **numbers,
                f"γ = {spec.DISCOUNT}": theirs.value,
                "95 % interval of the difference": (ours - theirs).interval,
            },
            runs,
        ),
        Claim(
            "Access control: R̄ of differential Sarsa(λ) agrees with what it earns",
            apart.judge(at_most=spec.RATE_TOLERANCE),
            {
                "holds if": f"the mean of |R̄ at the end − mean reward in the second half| is at most {spec.RATE_TOLERANCE:g}",
                "mean": apart.value,
                "95 % interval": apart.interval,
                "R̄ of each run": rates[:, best].tolist(),
            },
            runs,
        ),
    ]
