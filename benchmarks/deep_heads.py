"""Does a true online head help streaming deep RL? The study of `docs/methods/streaming_deep.md`.

    python -m benchmarks.deep_heads --out heads.json [--seeds 20] [--steps 100000] [--recording FILE] [--tasks NAME]

Four learners with the published settings differ in their last layer alone: as published; with a dutch trace, whose correction
has the step-size of the last update; with a true online head at its default step-size; with a SwiftTD head. Nothing was tuned on
these tasks. Seeds are 0, 1, …: networks, problems and episodes depend on them. The criteria were chosen before a run. For
prediction: the error over the second half of the stream, as a share of the spread of the true values. For control: the mean return
of the episodes that end in the last tenth of the steps, and of all episodes. Intervals are 95 % of bootstrapped means of paired
differences, or of logarithms of ratios.

This file needs NumPy, Numba and Gymnasium alone, so that it runs on a machine that has no more. LunarLander needs
`pip install "gymnasium[box2d]"`, and the games of MinAtar `pip install minatar`: they are left out where these are missing.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

METHODS = ("published", "dutch", "head", "swift")
CONTROL = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0", "LunarLander-v3", "MinAtar/Breakout-v1", "MinAtar/Asterix-v1")
DISCOUNT, TRACE_DECAY, HIDDEN = 0.99, 0.8, (32, 32)
STATES, BRANCHES, OBSERVED = 100, 4, 16  # of a random MRP
LAGS = (0, 1, 2, 4, 8, 16, 32)  # samples of the recording that an input has
RECORDED_DISCOUNT = 0.97  # at 200 Hz: the next sixth of a second


def dutch(learner: Any) -> Any:
    """A published learner whose last layer has a dutch trace. This is no setting of the library, as it does not help."""
    from trueonline.deep import kernels

    learner.net._numbers[kernels.LAST] = kernels.DUTCH
    return learner


def critic(method: str, n_inputs: int, seed: int, discount: float) -> Any:
    """A learner of predictions."""
    from trueonline import deep

    net = deep.MLP(n_inputs, HIDDEN, 1, seed=seed)
    if method in ("published", "dutch"):
        made = deep.StreamTD(net, discount, TRACE_DECAY)
        return made if method == "published" else dutch(made)
    return deep.TrueOnlineHead(net, discount, TRACE_DECAY, swift=method == "swift")


def agent(method: str, env: Any, seed: int, steps: int) -> Any:
    """An agent with the published settings: ε falls from 1 to 0.01 over a fifth of the steps."""
    import trueonline as to
    from trueonline import deep

    n = int(np.prod(env.observation_space.shape))
    net = deep.MLP(n + 1, HIDDEN, int(env.action_space.n), seed=seed)
    policy = to.control.EpsilonGreedy(to.control.Linear(1.0, 0.01, steps // 5))
    limit = env.spec.max_episode_steps or 10_000
    more: dict[str, Any] = {"policy": policy, "seed": seed, "normalise": True, "scale_rewards": True, "time_limit": limit}
    if method in ("published", "dutch"):
        made = deep.StreamQ(net, DISCOUNT, TRACE_DECAY, **more)
        return made if method == "published" else dutch(made)
    return deep.TrueOnlineHeadQ(net, DISCOUNT, TRACE_DECAY, swift=method == "swift", **more)


def environment(name: str) -> Any:
    """One of CONTROL."""
    import gymnasium

    if name.startswith("MinAtar/") and name not in gymnasium.registry:
        from minatar.gym import register_envs

        register_envs()
    return gymnasium.make(name)


def control_run(name: str, method: str, seed: int, steps: int) -> dict[str, float]:
    """One training: mean returns of all episodes, and of those in the last tenth of the steps."""
    import trueonline as to

    env = environment(name)
    learner = agent(method, env, seed, steps)
    training = to.control.train(
        env, learner, lambda observation: np.asarray(observation, float).ravel(), steps=steps, seed=seed
    )
    late = np.cumsum(training.lengths) > 0.9 * steps
    return {"all": float(training.returns.mean()), "late": float(training.returns[late].mean())}


def deep_teacher(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A random MRP whose rewards a deep network makes of its observations: observations, transitions, and expected rewards."""
    from trueonline import deep

    rng = np.random.default_rng([seed, 1])
    observations = rng.normal(size=(STATES, OBSERVED))
    transitions = np.zeros((STATES, STATES))
    for row in transitions:
        row[rng.choice(STATES, BRANCHES, replace=False)] = rng.dirichlet(np.ones(BRANCHES))
    teacher = deep.MLP(OBSERVED, (24, 24), 1, activation="tanh", sparsity=0.0, seed=seed + 1000)
    rewards = np.array([teacher(x)[0] for x in observations])
    return observations, transitions, (rewards - rewards.mean()) / rewards.std()


def mrp_run(method: str, seed: int, steps: int) -> dict[str, float]:
    """The root of the mean squared error of all values over the second half, as a share of their spread, γ = 0.9."""
    observations, transitions, rewards = deep_teacher(seed)
    values = np.linalg.solve(np.eye(STATES) - 0.9 * transitions, rewards)
    rng, learner = np.random.default_rng([seed, 2]), critic(method, OBSERVED, seed, 0.9)
    state, ahead, errors = 0, np.cumsum(transitions, axis=1), []
    learner.start(observations[state])
    visits = np.zeros(STATES)
    for t in range(steps):
        reward = rewards[state] + rng.normal()
        state = min(int(np.searchsorted(ahead[state], rng.random())), STATES - 1)
        learner.update(reward, observations[state])
        visits[state] += 1
        if t >= steps // 2 and t % (steps // 40) == 0:
            shares = visits / visits.sum()
            guessed = np.array([learner.predict(x) for x in observations])
            spread = shares @ (values - shares @ values) ** 2
            errors.append(float(shares @ (guessed - values) ** 2 / spread))
    return {"error": math.sqrt(float(np.mean(errors)))}


def recorded(path: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, the signal to come, and its discounted sums: the force of a grip from its past and that of the muscles."""
    with gzip.open(path, "rt") as file:
        file.readline()
        samples = np.loadtxt(file, delimiter=",", max_rows=40_000)
    signals = samples[:, 1:4]
    signals = (signals - signals[:2000].mean(0)) / (signals[:2000].std(0) + 1e-8)
    first = max(LAGS)
    X = np.clip(np.hstack([signals[first - lag : len(signals) - lag] for lag in LAGS]), -10.0, 10.0)
    signal = signals[first:, 0] * (1.0 - RECORDED_DISCOUNT)
    sums = np.zeros(len(signal))
    for t in range(len(signal) - 2, -1, -1):
        sums[t] = signal[t + 1] + RECORDED_DISCOUNT * sums[t + 1]
    return X, signal, sums


def recorded_run(method: str, seed: int, path: str) -> dict[str, float]:
    """The root of the mean squared error before each update over the second half, as a share of the spread."""
    X, signal, sums = recorded(path)
    learner = critic(method, X.shape[1], seed, RECORDED_DISCOUNT)
    learner.start(X[0])
    guessed = np.empty(len(X))
    for t in range(len(X) - 1):
        guessed[t] = learner.predict(X[t])
        learner.update(signal[t + 1], X[t + 1])
    part = slice(len(X) // 2, len(X) - 500)  # the last sums are cut off
    return {"error": float(np.sqrt(np.mean((guessed - sums)[part] ** 2) / np.var(sums[part])))}


def distance_run(method: str, seed: int, alpha: float, steps: int = 80) -> dict[str, float]:
    """How far the whole network is from the online λ-return with the same constant step-size, as a share of what it has learned.

    κ is so small that no step is bounded. The definition begins again at every step: with h known transitions, all states up to h
    are updated in turn towards G_k^{λ|h}, whose values are v(S_j) as they were when S_j was entered.
    """
    from trueonline import deep
    from trueonline.deep.checks.definition import Network
    from trueonline.forward.interim_returns import interim_lambda_return

    rng = np.random.default_rng([seed, 3])
    X, rewards = rng.normal(size=(steps + 1, 4)), rng.normal(size=steps)

    def net() -> Any:
        return deep.MLP(4, (8, 8), 1, sparsity=0.5, seed=seed)

    if method in ("published", "dutch"):
        learner: Any = deep.StreamTD(net(), 0.9, 0.9, alpha, 1e-12)
        learner = learner if method == "published" else dutch(learner)
    else:
        learner = deep.TrueOnlineHead(net(), 0.9, 0.9, alpha, 1e-12, head_step_size=alpha)
    learner.run(X, rewards)
    gammas, lams, entered = np.full(steps, 0.9), np.full(steps, 0.9), np.empty(steps)
    network = Network(net())
    for h in range(1, steps + 1):
        entered[h - 1] = network.outputs(X[h])[0]
        network = Network(net())
        for k in range(h):
            target = interim_lambda_return(k, h, rewards[:h], gammas[:h], lams[:h], entered[:h])
            outputs, jacobians = network.jacobians(X[k])
            by_w = [each[0] for each in jacobians]
            network.parameters = [
                w + alpha * (target - outputs[0]) * g for w, g in zip(network.parameters, by_w, strict=True)
            ]
    truth = np.concatenate([each.T.reshape(-1) for each in network.parameters])
    learned = truth - np.concatenate([each.T.reshape(-1) for each in net().parameters])
    return {"distance": float(np.linalg.norm(learner.weights - truth) / np.linalg.norm(learned))}


def work(task: tuple[Any, ...]) -> dict[str, Any]:
    kind, name, method, seed, *more = task
    run = {"control": lambda: control_run(name, method, seed, *more), "mrp": lambda: mrp_run(method, seed, *more)}
    run |= {"recorded": lambda: recorded_run(method, seed, *more), "distance": lambda: distance_run(method, seed, *more)}
    try:
        numbers = run[kind]()
    except ValueError as error:
        numbers = {"failed": 1.0}
        print(task, str(error)[:200], flush=True)
    return {"task": name, "method": method, "seed": seed, **numbers}


def interval(values: np.ndarray) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    means = values[rng.integers(len(values), size=(10_000, len(values)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def table(rows: list[dict[str, Any]]) -> list[str]:
    """One line for each task and measure: what was published, and the others against it."""
    lines = ["| task | published | dutch trace | true online head | SwiftTD head |", "|---|---|---|---|---|"]
    for task in dict.fromkeys(row["task"] for row in rows):
        here = [row for row in rows if row["task"] == task]
        for measure in ("error", "distance", "late", "all"):
            by = {m: {r["seed"]: r[measure] for r in here if r["method"] == m and measure in r} for m in METHODS}
            if not by["published"]:
                continue
            cells = []
            for method in METHODS:
                seeds = sorted(by["published"].keys() & by[method].keys())
                ours, base = (np.array([by[m][s] for s in seeds]) for m in (method, "published"))
                if not seeds:
                    cells.append("—")
                elif method == "published":
                    cells.append(f"{ours.mean():.3g} (n = {len(seeds)})")
                elif measure in ("error", "distance"):
                    ratios = np.log(ours / base)
                    low, high = np.exp(interval(ratios))
                    cells.append(f"× {np.exp(ratios.mean()):.2f} [{low:.2f}, {high:.2f}]")
                else:
                    low, high = interval(ours - base)
                    cells.append(f"{(ours - base).mean():+.3g} [{low:+.3g}, {high:+.3g}]")
            names = {"late": ", return at the end", "all": ", return of all", "error": ", error", "distance": ""}
            lines.append(f"| {task}{names[measure]} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--recording")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--tasks", nargs="*", default=[])
    given = parser.parse_args()

    made = []
    for name in CONTROL:
        try:
            environment(name).close()
            made.append(name)
        except Exception as error:  # an environment's package may be missing
            print(f"left out: {name}: {str(error)[:120]}", flush=True)
    tasks: list[tuple[Any, ...]] = []
    for seed in range(given.seeds):
        for method in METHODS:
            tasks += [("control", name, method, seed, given.steps) for name in made]
            tasks.append(("mrp", "random MRP, deep teacher", method, seed, given.steps // 5 * 2))
            if given.recording:
                tasks.append(("recorded", "grip force", method, seed, given.recording))
            if method != "swift":
                tasks += [("distance", f"distance, α = {alpha}", method, seed, alpha) for alpha in (0.001, 0.01, 0.1)]
    tasks = [task for task in tasks if not given.tasks or task[1] in given.tasks]
    for method in METHODS:  # compile once, before the others start
        work(("mrp", "warm", method, 0, 80))
        work(("control", "CartPole-v1", method, 0, 100))
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        for row in pool.map(work, tasks):
            rows.append(row)
            if len(rows) % 50 == 0:
                Path(given.out).write_text(json.dumps(rows))
                print(len(rows), "of", len(tasks), flush=True)
    Path(given.out).write_text(json.dumps(rows))
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
