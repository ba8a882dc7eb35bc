"""Every definition against the published backward view, and definitions against each other where they meet.

Every comparison is made after every transition of random streams: γ, λ, α, β, ρ and interest differ from step to step, ρ is 0
at times, and episodes end by γ = 0, by a terminal state, or are cut short.
"""

from functools import partial

import numpy as np
import pytest

from tests.oracles import average_reward, prediction, weighted
from tests.oracles import family as naive
from tests.oracles.prediction import Episode
from tests.oracles.swift import swift_td
from trueonline import check_learner, forward
from trueonline.forward.base import Definition

STEPS, N = 50, 6


def drawn(seed: int, *, ends: float = 0.08, **fixed: float | np.ndarray) -> list[Episode]:
    """A random stream of STEPS transitions, as its episodes; `fixed` says what does not vary."""
    rng = np.random.default_rng(seed)
    given = {
        "discounts": np.where(rng.random(STEPS) < 0.2, 1.0, rng.uniform(0.3, 1.0, STEPS)),
        "trace_decays": rng.choice([0.0, 0.3, 0.7, 0.9, 1.0], STEPS),
        "alphas": rng.uniform(0.05, 0.6, STEPS),
        "betas": rng.uniform(0.0, 0.5, STEPS) * (rng.random(STEPS) < 0.9),
        "ratios": rng.choice([0.0, 0.5, 1.0, 1.3, 2.0], STEPS, p=[0.15, 0.2, 0.25, 0.25, 0.15]),
        "interests": rng.choice([0.0, 0.5, 1.0, 2.0], STEPS),
        "rewards": rng.normal(size=STEPS),
    }
    given["probabilities"] = np.minimum(given["ratios"], 1.0) * np.random.default_rng(seed).random(STEPS)
    for name, value in fixed.items():
        given[name] = np.broadcast_to(value, STEPS).astype(float)
    x = rng.normal(size=(STEPS + 1, N)) / np.sqrt(N) * (rng.random((STEPS + 1, N)) < 0.7)
    expected = rng.normal(size=(STEPS + 1, N)) / np.sqrt(N)
    episodes, first = [], 0
    for t in range(STEPS):
        ending = str(rng.choice(["γ = 0", "terminal", "cut"])) if rng.random() < ends else ""
        if ending in ("γ = 0", "terminal"):
            given["discounts"] = given["discounts"].copy()
            given["discounts"][t] = 0.0
        if not ending and t < STEPS - 1:
            continue
        part = slice(first, t + 1)
        rows = [*x[first : t + 2]]
        means = [*expected[first + 1 : t + 2]]
        if ending == "terminal":
            rows[-1] = means[-1] = np.zeros(N)
        parts = {name: values[part] for name, values in given.items()}
        episodes.append(Episode(x=rows, expected=means, over=bool(ending), **parts))
        first = t + 1
    return episodes


def made(definition, episodes: list[Episode], w_0: np.ndarray, **options):
    """A learner that takes the step-sizes of the stream."""
    alphas = np.concatenate([episode.alphas for episode in episodes])
    return definition(N, lambda t: float(alphas[t]), 0.5, 0.5, initial_weights=w_0, **options)


def followed(learner: Definition, episodes: list[Episode], *attributes: str, terminal: bool = True) -> list[np.ndarray]:
    """Take a definition through the stream; the weights, or what `attributes` names, after every transition.

    A cut is followed by `start` before the weights are looked at, as offline methods learn then. After γ = 0 no start is needed.
    `terminal=False`: the end is given by γ = 0 and the features of the terminal state, instead of by None.
    """
    found, goes_on = [], False
    for episode in episodes:
        if not goes_on:
            learner.start(episode.x[0])
        goes_on = episode.discounts[-1] == 0.0 and np.any(episode.x[-1])
        steps = len(episode.rewards)
        for t in range(steps):
            last = t == steps - 1
            is_end = terminal and last and episode.over and not np.any(episode.x[-1])
            given = {
                "ratio": episode.ratios,
                "probability": episode.probabilities,
                "interest": episode.interests,
                "x_expected": episode.expected,
            }
            more = {name: values[t] for name, values in given.items() if name in learner.takes}
            numbers = map(float, (episode.discounts[t], episode.trace_decays[t]))
            learner.update(float(episode.rewards[t]), None if is_end else episode.x[t + 1], *numbers, **more)
            if last and episode.over and not goes_on:
                learner.start(np.zeros(N))
            found.append([np.array(getattr(learner, name)) for name in attributes or ("weights",)])
    return [np.array(each) for each in zip(*found, strict=True)]


def assert_same(actual, wanted, tolerance: float = 1e-10) -> None:
    """Relative to the largest weight so far."""
    actual, wanted = (np.array(each).reshape(len(each), -1) for each in (actual, wanted))
    assert actual.shape == wanted.shape
    scale = np.maximum.accumulate(np.abs(wanted).max(axis=1))
    error = np.abs(actual - wanted).max(axis=1) / np.where(scale > 0.0, scale, 1.0)
    assert error.max() <= tolerance


def differ(a, b) -> bool:
    return bool(np.abs(np.array(a) - np.array(b)).max() > 1e-3)


def weights_0(seed: int) -> np.ndarray:
    return np.random.default_rng(seed + 1000).normal(size=N)


SEEDS = pytest.mark.parametrize("seed", [1, 2])


# --- The oracles, by hand ------------------------------------------------------------------------


def test_the_oracles_give_what_the_paper_gives_by_hand():
    """Two steps, worked out on paper: φ_0 = (1, 0), φ_1 = (1, 1), α = ½, γ_1 = ½, λ_1 = ½, R = 2, 4, then the end.

    δ_0 = 2, w_1 = (1, 0). Then V = 1, V_old = 0, δ_1 = 3 and γλ = ¼.
    Accumulating: e = (1¼, 1), w = (2⅞, 1½). Replacing: e = (1, 1), w = (2½, 1½).
    Dutch: e = (1¼, 1) − ½·¼·1·(1, 1) = (1⅛, ⅞), w = (1, 0) + ½·4·e − ½·1·(1, 1) = (2¾, 1¼).
    Forward: G_0 = ½(2 + ½·0) + ½(2 + ½·4) = 3 → (1½, 0); G_1 = 4 → + ½(4 − 1½)(1, 1) = (2¾, 1¼).
    Offline: the same, because V(S_1) = 0 with the first weights and with w_0.
    """
    x = [np.array([1.0, 0.0]), np.array([1.0, 1.0]), np.array([5.0, 5.0])]
    episode = prediction.Episode(x, [2.0, 4.0], [0.5, 0.0], [0.5, 0.9], [0.5, 0.5])
    w = np.zeros(2)
    last = {oracle.__name__: list(oracle([episode], w))[-1] for oracle in ORACLES}
    np.testing.assert_array_equal(last["accumulate_td"], [[2.875, 1.5], [1.25, 1.0]])
    np.testing.assert_array_equal(last["replace_td"], [[2.5, 1.5], [1.0, 1.0]])
    np.testing.assert_array_equal(last["true_online_td"], [[2.75, 1.25], [1.125, 0.875]])
    np.testing.assert_array_equal(last["online_lambda_return"], [[2.75, 1.25], [1.125, 0.875]])
    np.testing.assert_array_equal(last["true_online_td_varying"], [[2.75, 1.25], [0.5625, 0.4375]])
    np.testing.assert_array_equal(list(prediction.offline_lambda_return([episode], w)), [[0.0, 0.0], [2.75, 1.25]])


ORACLES = (
    prediction.accumulate_td,
    prediction.replace_td,
    prediction.true_online_td,
    prediction.true_online_td_varying,
    prediction.online_lambda_return,
)


# --- Definition against published backward view ---------------------------------------------------


def betas_of(episodes) -> np.ndarray:
    return np.concatenate([episode.betas for episode in episodes])


def with_betas(oracle):
    return lambda episodes, w_0: oracle(episodes, w_0, betas_of(episodes))


def swift_equations(n, step_size, *settings, **named):
    """With the first step-size, as SwiftTD takes no others."""
    return forward.SwiftTDEquations(n, step_size(0), *settings, **named, **SWIFT)


def with_usage(oracle):
    return lambda episodes, w_0: oracle(episodes, w_0, 0.7)


ONE, TWO, RATE = ("weights",), ("weights", "second_weights"), ("weights", "reward_rate")
WEIGHTED = {"initial_step_size": 0.7}
SWIFT = {"bound": 0.3, "decay": 0.99, "meta_step_size": 0.01}
BACKWARD_VIEWS = [  # the definition, its oracle, and what the oracle has; of traces nothing is compared
    (forward.AccumulateSum, prediction.accumulate_td, ONE),
    (forward.ReplaceSum, prediction.replace_td, ONE),
    (forward.ImpliedSum, prediction.td_star, ONE),
    (forward.OnlineLambdaReturn, prediction.true_online_td_varying, ONE),
    (swift_equations, partial(swift_td, **SWIFT), ONE),
    (forward.OffPolicySum, naive.off_policy_td, ONE),
    (forward.EmphaticSum, naive.emphatic_td, ONE),
    (forward.OnlineEmphaticReturn, naive.true_online_emphatic_td, ONE),
    (forward.EpisodeMonteCarlo, partial(naive.offline_td, lam=1.0), ONE),
    (forward.OnlineMonteCarlo, naive.monte_carlo_so_far, ONE),
    (forward.OfflineLambdaReturn, naive.offline_td, ONE),
    (forward.ProvisionalTDView, naive.provisional_td, ONE),
    (forward.ProvisionalQView, naive.provisional_q, ONE),
    (forward.TreeBackupSum, naive.tree_backup, ONE),
    (partial(forward.ABTDSum, psi_0=0.9, psi_max=3.0), partial(naive.abtd, psi_0=0.9, psi_max=3.0), ONE),
    (partial(forward.VTraceSum, largest_ratio=1.7), partial(naive.v_trace, rho_bar=1.7, c_bar=1.0), ONE),
    (
        partial(forward.VTraceSum, largest_ratio=1.1, largest_trace_ratio=1.1),
        partial(naive.off_policy_td, largest=1.1),
        ONE,
    ),
    (forward.HTDSum, naive.htd, TWO),
    (partial(forward.EmphaticBetaSum, follow_on_decay=0.6), partial(naive.emphatic_td, decay=0.6), ONE),
    (forward.GTDSum, naive.gtd, TWO),
    (forward.OnlineGTDReturn, naive.true_online_gtd, TWO),
    (partial(forward.TDRCSum, regularization=0.7), partial(naive.gtd, kappa=0.7), TWO),
    (forward.GTD2Sum, partial(naive.gtd, second=True), TWO),
    (forward.ProximalGTD2Sum, partial(naive.gtd, second=True, ahead=True), TWO),
    (forward.OnlineDifferentialReturn, with_betas(average_reward.true_online_differential_td), RATE),
    (partial(forward.OnlineWISReturn, **WEIGHTED), with_usage(weighted.wis_td), ("weights", "usage")),
    (partial(forward.WISGTDSum, **WEIGHTED), with_usage(weighted.wis_gtd), (*TWO, "usage")),
    (partial(forward.OnlineWISGTDReturn, **WEIGHTED), with_usage(weighted.wis_true_online_gtd), (*TWO, "usage")),
]
STREAMS = {f"stream {seed}": drawn(seed) for seed in (1, 2)}
# Every trace is as long as it gets.
STREAMS["one episode"] = drawn(4, ends=0.0, ratios=np.random.default_rng(4).uniform(0.5, 1.4, STEPS))


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize(("definition", "oracle", "names"), BACKWARD_VIEWS)
def test_a_definition_is_its_backward_view_at_every_step(definition, oracle, names, stream):
    episodes, w_0 = STREAMS[stream], weights_0(1)
    if definition is forward.ReplaceSum:
        episodes = [each._replace(x=[(x != 0.0) / 1.0 for x in each.x], alphas=each.alphas / N) for each in episodes]
    betas = betas_of(episodes)
    more = {} if names in (ONE, ("weights", "usage")) else {"second_step_size": lambda t: float(betas[t])}
    found = followed(made(definition, episodes, w_0, **more), episodes, *names)
    wanted = list(oracle(episodes, w_0))
    for ours, right in zip(found, zip(*wanted) if isinstance(wanted[0], tuple) else [wanted], strict=False):  # noqa: B905
        assert_same(ours, right)
        assert np.abs(right).max() > 0.1


def test_the_trace_of_the_online_lambda_return_is_that_of_its_equation():
    """After an end it begins a new history, in which there is none yet."""
    episodes, w_0 = STREAMS["one episode"], weights_0(2)
    found = followed(made(forward.OnlineLambdaReturn, episodes, w_0), episodes, "weights", "trace")
    wanted = list(zip(*prediction.online_lambda_return(episodes, w_0, plus=True), strict=True))
    for ours, right in zip(found, wanted, strict=True):
        assert_same(ours[:-1], right[:-1])


def test_an_end_by_none_and_an_end_by_a_discount_of_zero_are_the_same():
    episodes, w_0 = drawn(4), weights_0(4)
    assert any(episode.over and not np.any(episode.x[-1]) for episode in episodes)
    for definition in (forward.OnlineEmphaticReturn, forward.ProvisionalTDView, forward.EpisodeMonteCarlo):
        results = [followed(made(definition, episodes, w_0), episodes, terminal=each)[0] for each in (True, False)]
        assert_same(*results)


# --- Reductions -----------------------------------------------------------------------------------

NO_SECOND, SECOND = {"second_step_size": 0.0}, {"second_step_size": 0.3}
REDUCTIONS = {
    "GTD(λ) without second weights": (forward.GTDSum, NO_SECOND, forward.OffPolicySum, {}),
    "true online GTD(λ) without second weights": (forward.OnlineGTDReturn, NO_SECOND, forward.OnlineOffPolicyReturn, {}),
    "GTD(1)": (forward.GTDSum, SECOND, forward.OffPolicySum, {"trace_decays": 1.0}),
    "true online GTD(1)": (forward.OnlineGTDReturn, SECOND, forward.OnlineOffPolicyReturn, {"trace_decays": 1.0}),
    "TD(λ) on-policy": (forward.OffPolicySum, {}, forward.AccumulateSum, {"ratios": 1.0}),
    "true online TD(λ) on-policy": (forward.OnlineOffPolicyReturn, {}, forward.OnlineLambdaReturn, {"ratios": 1.0}),
    "emphatic TD(1)": (forward.EmphaticSum, {}, forward.OffPolicySum, {"interests": 1.0, "trace_decays": 1.0}),
    "true online emphatic TD(1)": (
        forward.OnlineEmphaticReturn, {}, forward.OnlineOffPolicyReturn, {"interests": 1.0, "trace_decays": 1.0}
    ),
    "Monte Carlo, also at cuts": (forward.EpisodeMonteCarlo, {}, forward.OfflineLambdaReturn, {"trace_decays": 1.0}),
    "HTD(λ) on-policy": (forward.HTDSum, SECOND, forward.AccumulateSum, {"ratios": 1.0}),
    "V-trace(λ) on-policy": (forward.VTraceSum, {}, forward.AccumulateSum, {"ratios": 1.0}),
    "Tree Backup(λ) of a deterministic policy": (
        forward.TreeBackupSum, {}, forward.AccumulateSum, {"ratios": 1.0, "probabilities": 1.0}
    ),
    "provisional TD(λ) on-policy": (forward.ProvisionalTDView, {}, forward.AccumulateSum, {"ratios": 1.0, "alphas": 0.2}),
    "WIS-TD(λ) on-policy": (forward.OnlineWISReturn, {}, forward.OnlineLambdaReturn, {"ratios": 1.0, "alphas": 0.2}),
}  # fmt: skip


@SEEDS
@pytest.mark.parametrize(("definition", "options", "plain", "fixed"), REDUCTIONS.values(), ids=REDUCTIONS)
def test_at_the_limits_it_is_another_one(definition, options, plain, fixed, seed):
    """And elsewhere it is not."""
    episodes, w_0 = drawn(seed, **fixed), weights_0(seed)
    found = followed(made(definition, episodes, w_0, **options), episodes)
    assert_same(*found, *followed(made(plain, episodes, w_0), episodes))
    episodes, options = drawn(seed), options and SECOND
    found = followed(made(definition, episodes, w_0, **options), episodes)
    assert differ(found, followed(made(plain, episodes, w_0), episodes))


# --- The contract ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        *(forward.EpisodeMonteCarlo, forward.OnlineEmphaticReturn, forward.ProvisionalQView),
        *(partial(each, second_step_size=0.1) for each in (forward.GTDSum, forward.OnlineWISGTDReturn)),
    ],
)
def test_a_definition_keeps_the_contract_but_is_not_saved(kind):
    with pytest.raises(AssertionError, match=r"breaks the contract:\n  saved equals continued: [^\n]*\Z"):
        check_learner(kind)


@pytest.mark.parametrize("beta", [-0.1, np.nan, True, "0.1", None])
def test_a_wrong_second_step_size_is_refused(beta):
    with pytest.raises(ValueError, match="second_step_size must be a finite number ≥ 0"):
        forward.OnlineGTDReturn(2, 0.1, 0.5, 0.9, second_step_size=beta)
    learner = forward.GTDSum(2, 0.1, 0.5, 0.9, second_step_size=lambda t: beta)
    learner.start(0)
    with pytest.raises(ValueError, match=r"second_step_size\(0\) must be a finite number ≥ 0"):
        learner.update(1.0, 1)
    assert learner.steps == 0
    assert not learner.x


@pytest.mark.parametrize("interest", [-1.0, np.inf, False, "1"])
def test_a_wrong_interest_is_refused_before_anything_changes(interest):
    learner = forward.OnlineEmphaticReturn(2, 0.1, 0.5, 0.9)
    learner.start(0)
    with pytest.raises(ValueError, match="interest must be a finite number ≥ 0"):
        learner.update(1.0, 1, interest=interest)
    assert learner.steps == 0
    assert not learner.interests
    learner.update(1.0, 1)
    assert learner.interests == [1.0]
