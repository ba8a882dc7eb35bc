"""The definitions of the off-policy family against the published backward views, and against each other where they meet.

Every comparison is made after every transition of random streams: γ, λ, α, β, ρ and interest differ from step to step, ρ is 0
at times, and episodes end by γ = 0, by a terminal state, or are cut short.
"""

import pickle
from functools import partial

import numpy as np
import pytest

from tests.oracles import family as naive
from tests.oracles.family import Episode
from trueonline import forward
from trueonline.derivation import views
from trueonline.forward.base import Definition
from trueonline.forward.gradient import GradientDefinition

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

    A cut is followed by `start` before the weights are looked at, as offline methods learn then. `terminal=False`: the end is
    given by γ = 0 and the features of the terminal state, instead of by None.
    """
    found = []
    for episode in episodes:
        learner.start(episode.x[0])
        steps = len(episode.rewards)
        for t in range(steps):
            last = t == steps - 1
            is_end = terminal and last and episode.over and not np.any(episode.x[-1])
            more = {}
            if "ratio" in learner.takes:
                more["ratio"] = float(episode.ratios[t])
            if "probability" in learner.takes:
                more["probability"] = float(episode.probabilities[t])
            if "interest" in learner.takes:
                more["interest"] = float(episode.interests[t])
            if isinstance(learner, forward.ProvisionalQView):
                more["x_expected"] = episode.expected[t]
            x_next = None if is_end else episode.x[t + 1]
            numbers = episode.rewards[t], x_next, episode.discounts[t], episode.trace_decays[t]
            learner.update(float(numbers[0]), x_next, float(numbers[2]), float(numbers[3]), **more)
            if last and episode.over:
                learner.start(np.zeros(N))
            found.append([np.array(getattr(learner, name)) for name in attributes or ("weights",)])
    return [np.array(each) for each in zip(*found, strict=True)]


def assert_same(actual, wanted, tolerance: float = 1e-10) -> None:
    """Relative to the largest weight so far."""
    actual, wanted = np.array(actual), np.array(wanted)
    assert actual.shape == wanted.shape
    scale = np.maximum.accumulate(np.abs(wanted).max(axis=1))
    error = np.abs(actual - wanted).max(axis=1) / np.where(scale > 0.0, scale, 1.0)
    assert error.max() <= tolerance


def differ(a, b) -> bool:
    return bool(np.abs(np.array(a) - np.array(b)).max() > 1e-3)


def weights_0(seed: int) -> np.ndarray:
    return np.random.default_rng(seed + 1000).normal(size=N)


SEEDS = pytest.mark.parametrize("seed", [1, 2])


# --- Definition against published backward view ---------------------------------------------------

BACKWARD_VIEWS = [
    (forward.OffPolicySum, naive.off_policy_td),
    (forward.EmphaticSum, naive.emphatic_td),
    (forward.OnlineEmphaticReturn, naive.true_online_emphatic_td),
    (forward.EpisodeMonteCarlo, partial(naive.offline_td, lam=1.0)),
    (forward.OnlineMonteCarlo, naive.monte_carlo_so_far),
    (forward.OfflineLambdaReturn, naive.offline_td),
    (forward.ProvisionalTDView, naive.provisional_td),
    (forward.ProvisionalQView, naive.provisional_q),
    (forward.ProvisionalTDView, partial(naive.provisional_active, actions=False)),
    (forward.ProvisionalQView, partial(naive.provisional_active, actions=True)),
    (forward.TreeBackupSum, naive.tree_backup),
    (partial(forward.ABTDSum, psi_0=0.9, psi_max=3.0), partial(naive.abtd, psi_0=0.9, psi_max=3.0)),
    (partial(forward.VTraceSum, largest_ratio=1.7), partial(naive.v_trace, rho_bar=1.7, c_bar=1.0)),
    (
        partial(forward.VTraceSum, largest_ratio=1.1, largest_trace_ratio=1.1),
        partial(naive.off_policy_td, largest=1.1),
    ),
    (partial(forward.EmphaticBetaSum, follow_on_decay=0.6), partial(naive.emphatic_td, decay=0.6)),
    (forward.GTDSum, naive.gtd),
    (forward.OnlineGTDReturn, naive.true_online_gtd),
    (partial(forward.TDRCSum, regularization=0.7), partial(naive.gtd, kappa=0.7)),
    (forward.HTDSum, naive.htd),
    (forward.GTD2Sum, partial(naive.gtd, second=True)),
    (forward.ProximalGTD2Sum, partial(naive.gtd, second=True, ahead=True)),
]
STREAMS = {f"stream {seed}": drawn(seed) for seed in (1, 2, 3)}
# Every trace is as long as it gets.
STREAMS["one episode"] = drawn(4, ends=0.0, ratios=np.random.default_rng(4).uniform(0.5, 1.4, STEPS))


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize(("definition", "oracle"), BACKWARD_VIEWS)
def test_a_definition_is_its_backward_view_at_every_step(definition, oracle, stream):
    """In both weights, where it has two."""
    episodes, w_0 = STREAMS[stream], weights_0(1)
    wanted = list(oracle(episodes, w_0))
    if not issubclass(getattr(definition, "func", definition), GradientDefinition):
        assert_same(*followed(made(definition, episodes, w_0), episodes), wanted)
        return
    betas = np.concatenate([episode.betas for episode in episodes])
    learner = made(definition, episodes, w_0, second_step_size=lambda t: float(betas[t]))
    for found, right in zip(
        followed(learner, episodes, "weights", "second_weights"), zip(*wanted, strict=True), strict=True
    ):
        assert_same(found, right)
        assert np.abs(right).max() > 0.1


@pytest.mark.parametrize("seed", [1, 2])
def test_the_traces_of_the_definitions_are_those_of_the_oracles(seed):
    """e of true online GTD(λ) with its explicit sum; c_te + αρ(1 − c_tφᵀe)φ is what the oracle goes by."""
    episodes, w_0 = drawn(seed, ends=0.0), weights_0(seed)
    betas = episodes[0].betas
    learner = made(forward.OnlineGTDReturn, episodes, w_0, second_step_size=lambda t: float(betas[t]))
    e, g, f = followed(learner, episodes, "trace", "correlation_trace", "second_trace")
    episode = episodes[0]
    zero = np.zeros(N)
    for t in range(STEPS):
        phi, rho, c = episode.x[t], episode.ratios[t], episode.ratios[t] * naive.left_behind(episode, t)
        before = [each[t - 1] if t else zero for each in (e, g, f)]
        alpha, beta = episode.alphas[t], episode.betas[t]
        np.testing.assert_allclose(e[t], c * before[0] + alpha * rho * (1 - c * (phi @ before[0])) * phi, atol=1e-12)
        np.testing.assert_allclose(g[t], c * before[1] + rho * phi, atol=1e-12)
        np.testing.assert_allclose(f[t], c * before[2] + beta * (rho - c * (phi @ before[2])) * phi, atol=1e-12)


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
    "provisional TD(λ) on-policy": (forward.ProvisionalTDView, {}, forward.AccumulateSum, {"ratios": 1.0, "alphas": 0.2}),
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


@SEEDS
def test_an_emphasis_of_one_makes_emphatic_methods_off_policy_td(seed):
    """I_t = 1 − (1 − λ_t)ρ_{t−1}γ_tF_{t−1} keeps M at 1 whatever λ is."""
    episodes, w_0 = drawn(seed, ratios=np.random.default_rng(seed).uniform(0.0, 0.5, STEPS)), weights_0(seed)
    even = []
    for episode in episodes:
        F, interests = 0.0, []
        for t in range(len(episode.rewards)):
            passed = episode.ratios[t - 1] * episode.discounts[t - 1] * F if t > 0 else 0.0
            interests.append(1.0 - (1.0 - episode.trace_decays[t - 1]) * passed)
            F = passed + interests[-1]
        even.append(episode._replace(interests=interests))
    for definition, plain in (
        (forward.EmphaticSum, forward.OffPolicySum),
        (forward.OnlineEmphaticReturn, forward.OnlineOffPolicyReturn),
    ):
        assert_same(*(followed(made(kind, even, w_0), even)[0] for kind in (definition, plain)))


def test_the_followon_trace_begins_anew_with_every_episode():
    """M after an end by γ = 0, and after a cut, is the interest alone; before, it is more than that."""
    learner = forward.OnlineEmphaticReturn(1, 0.1, 0.5, 1.0)
    learner.start(0)
    learner.update(0.0, 0, interest=1.0)
    learner.update(0.0, 0, interest=1.0)
    assert learner.emphases == [1.0, 0.5 * 1.0 + 0.5 * 2.0]
    learner.update(0.0, 0, 0.0, interest=1.0)
    learner.update(0.0, 0, interest=0.25)
    assert learner.emphases == [0.25]
    learner.start(0)
    learner.update(0.0, 0, interest=2.0)
    assert learner.emphases == [2.0]


@SEEDS
def test_the_off_policy_return_is_the_one_that_derive_takes(seed):
    episode = drawn(seed, ends=0.0)[0]
    values = np.random.default_rng(seed).normal(size=STEPS)
    given = {
        "R": dict(enumerate(episode.rewards, start=1)),
        "gamma": dict(enumerate(episode.discounts, start=1)),
        "lam": dict(enumerate(episode.trace_decays, start=1)),
        "rho": dict(enumerate(episode.ratios)),
        "V": lambda i, j: values[j - 1],
    }
    h = 20
    history = [list(part[:h]) for part in episode[1:4]]
    found = forward.off_policy_lambda_returns(*history, list(episode.ratios[:h]), list(values[:h]))
    wanted = [views.off_policy_lambda_return(k, h, **given) for k in range(h)]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


# --- Monte Carlo ----------------------------------------------------------------------------------


@SEEDS
def test_all_monte_carlo_methods_meet_where_episodes_end(seed):
    """That which stores the episode, that with the returns so far, and the online λ-return algorithm with λ = 1."""
    episodes = [each for each in drawn(seed, trace_decays=1.0, ends=0.2) if each.over and each.discounts[-1] == 0.0]
    ends = np.cumsum([len(episode.rewards) for episode in episodes]) - 1
    w_0 = weights_0(seed)
    kinds = (
        forward.EpisodeMonteCarlo,
        forward.OnlineMonteCarlo,
        forward.OfflineLambdaReturn,
        forward.OnlineLambdaReturn,
    )
    found = [followed(made(kind, episodes, w_0), episodes)[0] for kind in kinds]
    for each in found[1:]:
        assert_same(each[ends], found[0][ends])
    assert_same(found[2], found[0])  # at every step
    assert differ(found[1], found[0])
    assert differ(found[3], found[0])
    assert differ(found[3], found[1])


# --- Provisional methods --------------------------------------------------------------------------


def interim_errors(episode: Episode, w: np.ndarray, t: int, actions: bool) -> list[float]:
    """δ^ρ_{k,t} of the paper for k < t, with values of fixed weights, written out term by term."""
    V = [0.0, *(each @ w for each in (episode.expected if actions else episode.x[1:]))]
    errors = []
    for k in range(t):
        here = episode.x[k] @ w
        first = 1.0 if actions else episode.ratios[k]

        def carry(i, k=k):
            carried = (
                episode.discounts[j - 1] * episode.trace_decays[j - 1] * episode.ratios[j] for j in range(k + 1, i + 1)
            )
            return np.prod(list(carried))

        def flat(i, k=k):
            return sum(episode.rewards[k:i])

        total = 0.0
        for i in range(k + 1, t + 1):
            ended, bootstrapped = flat(i) - here, flat(i) + V[i] - here
            gamma, lam = episode.discounts[i - 1], episode.trace_decays[i - 1] if i < t else 0.0
            total += first * carry(i - 1) * ((1.0 - gamma) * ended + gamma * (1.0 - lam) * bootstrapped)
        errors.append(total)
    return errors


@pytest.mark.parametrize("actions", [False, True], ids=["PTD", "PQ"])
@pytest.mark.parametrize("seed", [1, 2])
def test_with_fixed_values_provisional_methods_are_the_published_interim_forward_view(seed, actions):
    episode = next(each for each in drawn(seed, ends=0.05) if len(each.rewards) >= 12)
    w_0 = weights_0(seed)
    oracle = naive.provisional_q if actions else naive.provisional_td
    found = list(oracle([episode], w_0, frozen=True))
    for t in range(1, min(20, len(episode.rewards)) + 1):
        errors = interim_errors(episode, w_0, t, actions)
        wanted = w_0 + sum(episode.alphas[k] * errors[k] * episode.x[k] for k in range(t))
        np.testing.assert_allclose(found[t - 1], wanted, rtol=0, atol=1e-11 * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("actions", [False, True], ids=["PTD", "PQ"])
def test_with_lambda_of_one_provisional_methods_are_monte_carlo_with_importance_ratios(actions):
    """At the end of an undiscounted episode: Σ_k α_k (ρ_k ⋯ ρ_{T−1}) (G_k − V(S_k)) φ_k, without ρ_k where actions are given."""
    episode = drawn(
        1, ends=0.0, trace_decays=1.0, discounts=1.0, ratios=np.random.default_rng(1).uniform(0.5, 1.5, STEPS)
    )[0]
    T = 12
    cut = {name: getattr(episode, name)[:T] for name in episode._fields if name not in ("x", "over")}
    cut["discounts"] = np.array([*episode.discounts[: T - 1], 0.0])
    episode, w_0 = Episode(x=episode.x[: T + 1], **cut), weights_0(1)
    oracle = naive.provisional_q if actions else naive.provisional_td
    found = list(oracle([episode], w_0, frozen=True))[-1]
    wanted = w_0.copy()
    for k in range(T):
        followed_through = np.prod(episode.ratios[k + 1 if actions else k :])
        error = sum(episode.rewards[k:]) - w_0 @ episode.x[k]
        wanted += episode.alphas[k] * followed_through * error * episode.x[k]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


def test_where_the_policies_part_provisional_td_takes_back_and_off_policy_td_does_not():
    w = {}
    for kind in (forward.ProvisionalTDView, forward.OnlineOffPolicyReturn):
        learner = kind(2, 0.5, 1.0, 1.0, initial_weights=[0.0, 8.0])
        learner.start(0)
        learner.update(0.0, 1)
        w[kind, "before"] = learner.weights[0]
        learner.update(0.0, None, ratio=0.0)
        w[kind, "after"] = learner.weights[0]
    assert w[forward.ProvisionalTDView, "before"] == w[forward.OnlineOffPolicyReturn, "before"] == 4.0
    assert w[forward.ProvisionalTDView, "after"] == 0.0
    assert w[forward.OnlineOffPolicyReturn, "after"] == 4.0


# --- The contract ---------------------------------------------------------------------------------


MAKERS = [
    forward.OffPolicySum,
    forward.OnlineOffPolicyReturn,
    forward.EmphaticSum,
    forward.OnlineEmphaticReturn,
    partial(forward.GTDSum, second_step_size=0.1),
    partial(forward.OnlineGTDReturn, second_step_size=0.1),
    forward.EpisodeMonteCarlo,
    forward.OnlineMonteCarlo,
    forward.ProvisionalTDView,
    forward.ProvisionalQView,
    partial(forward.OnlineDifferentialReturn, second_step_size=0.1),
    partial(forward.OnlineWISReturn, initial_step_size=0.7),
    partial(forward.WISGTDSum, second_step_size=0.1),
    partial(forward.OnlineWISGTDReturn, second_step_size=0.1),
]


@pytest.mark.parametrize("make", MAKERS)
def test_after_a_discount_of_zero_no_start_is_needed(make):
    """x_next is then where the next episode begins, with no trace and nothing provisional."""
    rng = np.random.default_rng(9)
    x, rewards = rng.normal(size=(9, 3)), rng.normal(size=8)
    found = []
    for anew in (False, True):
        learner = make(3, 0.2, 0.8, 0.9)
        learner.start(x[0])
        for t in range(8):
            learner.update(rewards[t], x[t + 1], 0.0 if t in (3, 7) else 0.9)
            if anew and t == 3:
                learner.start(x[t + 1])
        found.append(learner.weights)
    np.testing.assert_array_equal(*found)
    assert np.any(found[0])


@pytest.mark.parametrize("make", MAKERS)
def test_a_pickle_goes_on_where_the_definition_was(make):
    learner = make(3, 0.2, 0.8, 0.9)
    learner.start(0)
    learner.update(1.0, 1)
    other = pickle.loads(pickle.dumps(learner))
    for each in (learner, other):
        each.update(2.0, 2, 0.5)
        each.update(-1.0, None)
    np.testing.assert_array_equal(other.weights, learner.weights)
    assert np.any(learner.weights)


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
