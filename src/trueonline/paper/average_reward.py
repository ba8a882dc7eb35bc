"""Average reward: differential TD(λ) on random processes, and differential Sarsa(λ) on the access-control queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from trueonline import TrueOnlineDifferentialTD, control, study
from trueonline.catalog import METHODS
from trueonline.forward import OnlineDifferentialReturn
from trueonline.paper.experiment import (
    ROUNDING,
    Chart,
    Claim,
    Experiment,
    Outcome,
    Settings,
    at_least,
    at_most,
    exactly,
    gathered,
    interval,
    resample,
    table,
)
from trueonline.paper.style import COLOURS, NAMES, figure, line
from trueonline.problems import AccessControl, AverageReward, Trajectory, random_mrp

DIFFERENTIAL, DISCOUNTED = "true_online_differential", "true_online"
SARSA, DISCOUNTED_SARSA = "true_online_differential_sarsa", "true_online_sarsa"
DISCOUNT = 0.99  # of the methods that a user would take instead

# Prediction, on random processes with 10 states, 3 next states and σ = 0.1, as in the paper.
PROCESSES, K, B, SIGMA = 20, 10, 3, 0.1
LONG, LAM = 20_000, 0.8  # a long run with step-sizes that fall
CHECKPOINTS = np.unique(np.geomspace(10, LONG, 25).astype(int))
CLOSE = 0.1  # what must be left of the initial error at the end of it
SHORT, RUNS_OF_SWEEP = 1_000, 5
STEP_SIZES = tuple(float(alpha) for alpha in 2.0 ** np.arange(-7, 1))
TRACE_DECAYS = (0.0, 0.4, 0.8, 0.9, 0.95)
ETAS = (0.01, 0.1, 1.0)

# Control.
RUNS, STEPS, PIECE = 5, 20_000, 1_000
EPSILON, ETA = 0.1, 0.1
CONTROL_STEP_SIZES, CONTROL_LAMS = (0.01, 0.03, 0.1), (0.0, 0.8)
NEAR = 0.95  # the share of the reward rate of the ε-greedy optimal policy that must be reached
AGREES = 0.1  # by how much R̄ may differ from what the agent earns


def alpha(t: int) -> float:
    """The step-size of the long runs."""
    return 0.5 / (1.0 + t / 1_000.0)


def beta(t: int) -> float:
    """The step-size of R̄ in the long runs."""
    return 0.1 * alpha(t)


class Discounted:
    """The same process, and the same error, for a method that discounts."""

    discount = DISCOUNT

    def __init__(self, problem: AverageReward) -> None:
        self.problem = problem
        self.features, self.metric, self.lms_weights = problem.features, problem.metric, problem.lms_weights

    def trajectory(self, steps: int, seed: Any) -> Trajectory:
        run = self.problem.trajectory(steps, seed)
        return Trajectory(run.states, run.rewards, np.full(steps, DISCOUNT))


def run(settings: Settings) -> Outcome:
    problems = [
        AverageReward(random_mrp(K, B, SIGMA, seed=np.random.SeedSequence([settings.seed, number])))
        for number in range(settings.number(PROCESSES))
    ]
    courses = np.array([course(problem, [settings.seed, i]) for i, problem in enumerate(problems)])  # run × 2 × time
    swept = sweeps(problems, settings)
    queue = AccessControl()
    earned, rates = control_runs(queue, settings)
    claims = [
        exactness(problems[0], settings),
        *convergence(problems, courses, settings),
        *comparisons(swept, settings),
        *queue_claims(queue, earned, rates, settings),
    ]
    curves = {name: errors.mean(axis=1).min(axis=1) for name, errors in swept.items()}  # at the best α and η, over λ
    charts = [_sweep_chart(swept), _control_chart(earned)]
    pictures = {"figure": _picture(courses, curves, earned, queue)}
    return Outcome(_data(swept, earned, queue), pictures, charts, claims, shown="figure")


# --- Prediction -------------------------------------------------------------------------------------


def course(problem: AverageReward, seed: Any) -> np.ndarray:
    """|R̄ − r̄| and the error of the values, at the checkpoints of a long run; each at zero weights comes first."""
    states, rewards, _ = problem.trajectory(LONG, seed)
    learner = TrueOnlineDifferentialTD(K, alpha, LAM, second_step_size=beta)
    found, done = [(abs(problem.reward_rate), problem.error(np.zeros(K)))], 0
    for upto in CHECKPOINTS:
        learner.run(states[done : upto + 1], rewards[done:upto])
        found.append((abs(learner.reward_rate - problem.reward_rate), problem.error(learner.weights)))
        done = upto
    return np.array(found).T


def sweeps(problems: list[AverageReward], settings: Settings) -> dict[str, np.ndarray]:
    """The mean squared error of each method: λ × process × (η and α), relative to that of zero weights."""
    grid: Any = {"step_sizes": STEP_SIZES, "trace_decays": TRACE_DECAYS, "runs": RUNS_OF_SWEEP, "steps": SHORT}
    grid |= {"seed": settings.seed}
    methods = {f"{DIFFERENTIAL}, η = {eta:g}": study.Method(DIFFERENTIAL, second=eta) for eta in ETAS}
    cases = {
        DIFFERENTIAL: [study.Case(problem, methods, **grid) for problem in problems],
        DISCOUNTED: [study.Case(Discounted(problem), {DISCOUNTED: None}, **grid) for problem in problems],
    }
    options: Any = {"engine": settings.engine, "threads": settings.threads, "progress": settings.progress}
    study.execute([case for some in cases.values() for case in some], settings.tasks, **options)
    found = {}
    for name, some in cases.items():
        shape = (len(some), -1, RUNS_OF_SWEEP, len(STEP_SIZES), len(TRACE_DECAYS))
        results = [gathered(study.gather(case, settings.tasks))["error"].to_numpy() for case in some]
        errors = np.array(results).reshape(shape).mean(axis=2)  # process × η × α × λ
        found[name] = errors.reshape(len(some), -1, len(TRACE_DECAYS)).transpose(2, 0, 1)
    return found


def exactness(problem: AverageReward, settings: Settings) -> Claim:
    states, rewards, _ = problem.trajectory(200, [settings.seed, 1])
    numbers: Any = {"n_features": K, "step_size": 0.5, "trace_decay": LAM, "discount": 1.0, "second_step_size": 0.05}
    ours, definition = TrueOnlineDifferentialTD(**numbers), OnlineDifferentialReturn(**numbers)
    off = 0.0
    for each in (ours, definition):
        each.start(int(states[0]))
    for state, reward in zip(states[1:], rewards, strict=True):
        for each in (ours, definition):
            each.update(float(reward), int(state))
        off = max(off, np.abs(ours.weights - definition.weights).max(), abs(ours.reward_rate - definition.reward_rate))
    return Claim(
        "True online differential TD(λ) equals the online differential λ-return algorithm at every step",
        exactly(float(off)),
        {"largest difference of a weight or of R̄ over 200 steps": float(off)},
    )


def convergence(problems: list[AverageReward], courses: np.ndarray, settings: Settings) -> list[Claim]:
    weights = resample(len(courses), seed=settings.seed)
    squares = courses**2
    about = ("R̄ approaches the exact reward rate", "The values approach the exact differential values, up to a constant")
    claims = []
    for part, claim in enumerate(about):
        first, last = squares[:, part, 0], squares[:, part, -1]
        low, high = interval(np.sqrt((weights @ last) / (weights @ first)))
        numbers = {
            "holds if": f"after {LONG:,} steps at most {CLOSE:g} of the initial error is left (RMS over processes)",
            "left": float(np.sqrt(last.mean() / first.mean())),
            "95 % interval": [low, high],
            "processes": len(problems),
        }
        claims.append(Claim(claim, at_most(low, high, CLOSE), numbers, len(problems)))
    return claims


def comparisons(swept: Mapping[str, np.ndarray], settings: Settings) -> list[Claim]:
    ours = swept[DIFFERENTIAL]
    weights = resample(ours.shape[1], seed=settings.seed)

    def best(errors: np.ndarray) -> tuple[float, np.ndarray]:
        """The least mean over processes, of all parameters; and the same in each bootstrap sample."""
        flat = errors.transpose(1, 0, 2).reshape(errors.shape[1], -1)
        with np.errstate(invalid="ignore"):
            samples = np.nan_to_num(weights @ np.where(np.isfinite(flat), flat, 1e300), nan=np.inf)
        return float(flat.mean(axis=0).min()), samples.min(axis=1)

    mine, samples = best(ours)
    claims = []
    for claim, other, name in (
        ("Differential TD(λ) with λ > 0 is at least as good as with λ = 0, at the best α and η", ours[:1], "λ = 0"),
        (
            f"Differential TD(λ) is at least as good as true online TD(λ) with γ = {DISCOUNT}, each at its best parameters",
            swept[DISCOUNTED],
            f"γ = {DISCOUNT}",
        ),
    ):
        one, own = best(ours[1:]) if name == "λ = 0" else (mine, samples)
        theirs, their_samples = best(other)
        low, high = interval(own / their_samples - 1.0)
        numbers = {
            "mean squared error over the first 1,000 steps (initial = 1)": one,
            f"the same with {name}": theirs,
            "95 % interval of the ratio, less 1": [low, high],
            "processes": ours.shape[1],
        }
        claims.append(Claim(claim, at_most(low, high, ROUNDING), numbers, ours.shape[1]))
    return claims


# --- Control ----------------------------------------------------------------------------------------


def control_runs(queue: AccessControl, settings: Settings) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The mean reward in each piece of a run, by method: setting × run × piece; and R̄ at the end of those with an R̄."""
    runs, earned, rates = settings.number(RUNS), {}, []
    grid = [(step_size, lam) for step_size in CONTROL_STEP_SIZES for lam in CONTROL_LAMS]
    for method in (SARSA, DISCOUNTED_SARSA):
        found = []
        for step_size, lam in grid:
            for number in range(runs):
                seed = [settings.seed, number]
                common: Any = {
                    "step_size": step_size,
                    "trace_decay": lam,
                    "policy": control.EpsilonGreedy(EPSILON),
                    "seed": seed,
                }
                common |= {"second_step_size": ETA * step_size} if method == SARSA else {"discount": DISCOUNT}
                agent = METHODS[method].resolve("learner")(queue.n_states, queue.n_actions, **common)
                found.append(play(queue, agent, np.random.default_rng([*seed, 1])))
                rates += [agent.reward_rate] if method == SARSA else []
        earned[method] = np.array(found).reshape(len(grid), runs, -1)
    return earned, np.array(rates).reshape(len(grid), runs)


def play(queue: AccessControl, agent: Any, rng: np.random.Generator) -> np.ndarray:
    """Let an agent act; the mean reward of each piece of the run."""
    rewards = np.empty(STEPS)
    state = queue.start
    action = agent.start(state)
    for t in range(STEPS):
        rewards[t], state = queue.step(state, action, rng)
        action = agent.step(float(rewards[t]), state)
    return rewards.reshape(-1, PIECE).mean(axis=1)


def exact_rates(queue: AccessControl) -> dict[str, float]:
    """Reward rates of policies that need no learning."""
    explores = EPSILON / 2.0 + (1.0 - EPSILON) * np.eye(2)
    return {
        "optimal": queue.optimal_reward_rate,
        "optimal, ε-greedy": queue.reward_rate(explores[queue.optimal_policy]),
        "accept all": queue.reward_rate(np.ones(queue.n_states, int)),
    }


def queue_claims(
    queue: AccessControl, earned: Mapping[str, np.ndarray], rates: np.ndarray, settings: Settings
) -> list[Claim]:
    late = {name: pieces[:, :, pieces.shape[2] // 2 :].mean(axis=2) for name, pieces in earned.items()}  # setting × run
    runs = late[SARSA].shape[1]
    weights = resample(runs, seed=settings.seed)
    mean = {name: rewards.mean(axis=1) for name, rewards in late.items()}
    samples = {name: (weights @ rewards.T).max(axis=1) for name, rewards in late.items()}
    exact = exact_rates(queue)
    best = int(mean[SARSA].argmax())
    ours = {
        "mean reward of a step in the second half, at the best α and λ": float(mean[SARSA][best]),
        "95 % interval": list(interval(samples[SARSA])),
        "runs": runs,
    }
    apart = np.abs(rates[best] - late[SARSA][best])
    apart_samples = interval(weights @ apart)
    against = interval(samples[SARSA] - samples[DISCOUNTED_SARSA])
    goal = NEAR * exact["optimal, ε-greedy"]
    return [
        Claim(
            f"Access control: differential Sarsa(λ) earns at least {NEAR:.0%} of what the ε-greedy optimal policy earns",
            at_least(*interval(samples[SARSA]), goal),
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
            at_least(*interval(samples[SARSA]), exact["accept all"]),
            {**ours, "exact, accept all": exact["accept all"]},
            runs,
        ),
        Claim(
            f"Access control: differential Sarsa(λ) earns at least what Sarsa(λ) with γ = {DISCOUNT} earns, at the best α and λ",
            at_least(*against),
            {
                **ours,
                f"γ = {DISCOUNT}": float(mean[DISCOUNTED_SARSA].max()),
                "95 % interval of the difference": list(against),
            },
            runs,
        ),
        Claim(
            "Access control: R̄ of differential Sarsa(λ) agrees with what it earns",
            at_most(*apart_samples, AGREES),
            {
                "holds if": f"the mean of |R̄ at the end − mean reward in the second half| is at most {AGREES:g}",
                "mean": float(apart.mean()),
                "95 % interval": list(apart_samples),
                "R̄ of each run": rates[best].tolist(),
            },
            runs,
        ),
    ]


# --- Tables and pictures ----------------------------------------------------------------------------


def _data(swept: Mapping[str, np.ndarray], earned: Mapping[str, np.ndarray], queue: AccessControl) -> pa.Table:
    rows = []
    for name, errors in swept.items():
        means = errors.mean(axis=1).reshape(len(TRACE_DECAYS), -1, len(STEP_SIZES))
        etas = ETAS if name == DIFFERENTIAL else (0.0,)
        for (i, j, k), error in np.ndenumerate(means):
            rows.append(("random processes", name, STEP_SIZES[k], TRACE_DECAYS[i], etas[j], float(error)))
    grid = [(step_size, lam) for step_size in CONTROL_STEP_SIZES for lam in CONTROL_LAMS]
    for name, pieces in earned.items():
        late = pieces[:, :, pieces.shape[2] // 2 :].mean(axis=(1, 2))
        for (step_size, lam), reward in zip(grid, late, strict=True):
            eta = ETA if name == SARSA else 0.0
            rows.append(("access control", name, step_size, lam, eta, float(1.0 - reward / queue.optimal_reward_rate)))
    return table(("task", "method", "step_size", "trace_decay", "eta", "shortfall"), rows)


def _sweep_chart(swept: Mapping[str, np.ndarray]) -> Chart:
    rows = []
    for name, errors in swept.items():
        for lam, over_alpha in zip(TRACE_DECAYS, errors.mean(axis=1), strict=True):
            best = over_alpha.reshape(-1, len(STEP_SIZES)).min(axis=0)  # over η
            rows += [(name, lam, step_size, float(error)) for step_size, error in zip(STEP_SIZES, best, strict=True)]
    return Chart(
        table(("method", "λ", "step_size", "error"), rows),
        x="step_size",
        y="error",
        series="method",
        x_title="α",
        y_title=f"MSE over the first {SHORT:,} steps (initial = 1)",
        choose="λ",
        log_x=True,
        log_y=True,
        y_domain=(0.1, 10.0),
        title="Differential values of random processes, up to a constant, at the best η",
    )


def _control_chart(earned: Mapping[str, np.ndarray]) -> Chart:
    rows = []
    for name, pieces in earned.items():
        best = pieces[:, :, pieces.shape[2] // 2 :].mean(axis=(1, 2)).argmax()
        over_time = pieces[best]
        spread = 2.0 * over_time.std(axis=0, ddof=min(1, len(over_time) - 1)) / np.sqrt(len(over_time))
        for piece, mean in enumerate(over_time.mean(axis=0)):
            rows.append(
                (name, (piece + 1) * PIECE, float(mean), float(mean - spread[piece]), float(mean + spread[piece]))
            )
    return Chart(
        table(("method", "step", "reward", "low", "high"), rows),
        x="step",
        y="reward",
        series="method",
        x_title="step",
        y_title=f"mean reward over {PIECE:,} steps",
        low="low",
        high="high",
        title="Access control, each method at its best α and λ",
    )


def _picture(
    courses: np.ndarray, curves: Mapping[str, np.ndarray], earned: Mapping[str, np.ndarray], queue: AccessControl
) -> Any:
    drawing, ((over_time, over_lam, acting),) = figure(1, 3, width=10.2, height=3.9)
    left = np.sqrt((courses**2).mean(axis=0) / (courses[:, :, :1] ** 2).mean(axis=0))[:, 1:]
    for part, name, dashes in ((0, "reward rate R̄", (4, 2)), (1, "differential values", ())):
        style: dict[str, Any] = {"dashes": dashes} if dashes else {}
        over_time.plot(CHECKPOINTS, left[part], color=COLOURS[DIFFERENTIAL], label=name, linewidth=1.6, **style)
    over_time.set(xscale="log", yscale="log", xlabel="step", ylabel="RMS error (initial = 1)")
    over_time.set_title(f"differential TD(λ) against the exact\nsolution, {len(courses)} random processes", fontsize=9)
    over_time.legend(loc="lower left", fontsize=8)
    for name, curve in curves.items():
        line(over_lam, range(len(TRACE_DECAYS)), curve, name)
    over_lam.set_xticks(range(len(TRACE_DECAYS)), [f"{lam:g}" for lam in TRACE_DECAYS])
    over_lam.set(xlabel="λ", ylabel=f"MSE, first {SHORT:,} steps (initial = 1)", yscale="log")
    ticks = (0.1, 0.2, 0.5, 1, 2, 5, 10)
    over_lam.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    over_lam.minorticks_off()
    over_lam.set_title("differential values up to a constant,\nbest α and η", fontsize=9)
    over_lam.set_xlim(-0.2, len(TRACE_DECAYS) - 0.8)
    over_lam.legend([NAMES[DIFFERENTIAL], f"{NAMES[DISCOUNTED]}, γ = {DISCOUNT}"], fontsize=8)
    for name, pieces in earned.items():
        best = pieces[:, :, pieces.shape[2] // 2 :].mean(axis=(1, 2)).argmax()
        label = NAMES[name] + (f", γ = {DISCOUNT}" if name == DISCOUNTED_SARSA else "")
        line(acting, np.arange(1, pieces.shape[2] + 1) * PIECE / 1_000, pieces[best].mean(axis=0), name, label=label)
    for (name, rate), dash in zip(exact_rates(queue).items(), ((), (6, 2), (1, 2)), strict=True):
        style = {"dashes": dash} if dash else {}
        acting.plot([0, STEPS / 1_000], [rate, rate], color="#555555", linewidth=1.0, label=f"{name} (exact)", **style)
    acting.set(xlabel="step / 1,000", ylabel="mean reward of a step", xlim=(0, STEPS / 1_000), ylim=(1.6, 2.8))
    acting.set_title("access control, best α and λ", fontsize=9)
    acting.legend(fontsize=7, loc="lower right")
    return drawing


EXPERIMENT = Experiment(
    "average-reward",
    "Average reward — differential TD(λ) and Sarsa(λ)",
    f"""Continuing tasks without discount. The paper has no such experiment. The methods learn the reward rate, the mean reward of
a step, and differential values: by how much the rewards from a state on exceed the reward rate, in total. Both are compared with
the exact solution.

The left chart of the figure shows long runs of true online differential TD(λ), with λ = {LAM} and step-sizes that fall
(α = 0.5 / (1 + t / 1,000), β = α / 10), on random processes of 10 states as in section 5.1. The middle chart sweeps constant
step-sizes over {SHORT:,} steps, with β = ηα and η from {ETAS[0]} to {ETAS[-1]:g}. True online TD(λ) with γ = {DISCOUNT} is beside
it. Differential values are determined up to a constant, so the error is the variance of the difference over the stationary
distribution, for both methods.

The right chart is the access-control queue of Sutton and Barto (2018, Example 10.2): ten servers, and customers that pay 1, 2,
4 or 8. Agents are tabular and ε-greedy with ε = {EPSILON}, so the reward rate of the ε-greedy optimal policy is what they can hope
for. That rate is exact, as are the optimal one and that of accepting all customers. β = α / 10. In the table, the
shortfall is the share of the optimal reward rate that is missed. For processes it is the error of the middle chart.

Criteria and grids were fixed before the results were seen, but after one trial run of the agent on the queue.""",
    run,
)
