"""Forward TD(λ) against its definition, and both against plain loops over the equations."""

import copy
import math
import sys

import numpy as np
import pytest

import trueonline as to
from trueonline import files
from trueonline.nonlinear import DelayedLambdaReturn, ForwardTD, horizon_within, torch_value
from trueonline.nonlinear.squashed import squashed

N, HIDDEN, T = 4, 3, 50
HORIZONS = [1, 2, 7, 20, math.inf]


# --- Value functions ------------------------------------------------------------------------------


def linear(w, x):
    return float(w @ x), x


def tanh_network(w, x):
    """V = bᵀtanh(Ax + c), with w one matrix of rows (A_i, c_i, b_i)."""
    A, c, b = w[:, :N], w[:, N], w[:, N + 1]
    h = np.tanh(A @ x + c)
    slope = b * (1.0 - h**2)
    return float(b @ h), np.column_stack((np.outer(slope, x), slope, h))


FUNCTIONS = {"linear": (linear, (N,)), "tanh": (tanh_network, (HIDDEN, N + 2))}


# --- Streams, and what they should lead to --------------------------------------------------------


def random_events(rng, steps=T, n=N):
    """Calls of start and update: γ, λ of every transition; ends with and without a next state, and truncations."""
    events, standing = [("start", rng.normal(size=n))], True
    for _ in range(steps):
        if not standing or rng.random() < 0.06:
            events.append(("start", rng.normal(size=n)))
        gamma = 0.0 if rng.random() < 0.08 else rng.uniform(0.3, 1.0)
        lam = rng.choice([0.0, 1.0, 1e-3, rng.random(), rng.random()])
        standing = gamma > 0.0 or rng.random() < 0.5
        events.append(("update", rng.normal(), rng.normal(size=n) if standing else None, gamma, float(lam)))
    return [*events, ("start", np.zeros(n))]


def episodes(events):
    """Each: whether a start began it, its first state, its transitions (R, x′, γ, λ), and whether it ended or was cut short."""
    found = []
    for kind, *given in events:
        if kind == "start":
            found.append([True, given[0], [], False])
            continue
        found[-1][2].append(given)
        if given[2] == 0.0:
            found[-1][3] = True
            if given[1] is not None:
                found.append([False, given[1], [], False])
    return found


def lambda_return(transitions, V, k, h):
    """Σ_{n<h−k} (1 − λ_{k+n}) ∏ λ G^(n) + ∏ λ G^(h−k)."""
    total, weight = 0.0, 1.0
    for n in range(1, h - k + 1):
        value, gammas = 0.0, 1.0
        for reward, _, gamma, _ in transitions[k : k + n]:
            value += gammas * reward
            gammas *= gamma
        value += gammas * V[k + n]
        lam = transitions[k + n - 1][3] if n < h - k else 0.0
        total += weight * (1.0 - lam) * value
        weight *= lam
    return total


def by_the_equations(function, w, events, alphas, K):
    """The weights after every event."""
    after, first = [], 0
    for started, x, transitions, ended in episodes(events):
        states, V, length = [x, *(x for _, x, _, _ in transitions)], [math.nan], len(transitions)
        if started:
            after.append(w)
        for h in range(1, length + 1):
            V.append(0.0 if transitions[h - 1][2] == 0.0 else function(w, states[h])[0])
            for k in range(h):
                if min(k + K, length if ended else math.inf) == h:
                    v, gradient = function(w, states[k])
                    w = w + alphas[first + k] * (lambda_return(transitions, V, k, h) - v) * gradient
            after.append(w)
        for k in range(length):
            if not ended and k + K > length:  # cut short
                v, gradient = function(w, states[k])
                w = w + alphas[first + k] * (lambda_return(transitions, V, k, length) - v) * gradient
        first += length
    return after


def by_the_learner(learner, events):
    """The same, of a learner."""
    after = []
    for kind, *given in events:
        getattr(learner, kind)(*given)
        after.append(learner.weights)
    return after


def close(found, expected, tolerance=1e-10):
    assert len(found) == len(expected) > 0
    for a, b in zip(found, expected, strict=True):
        assert np.abs(a - b).max() <= tolerance * max(1.0, np.abs(b).max())


@pytest.mark.parametrize("K", HORIZONS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_method_equals_its_definition_at_every_step(name, K):
    function, shape = FUNCTIONS[name]
    for seed in range(2):
        rng = np.random.default_rng(seed)
        events, w = random_events(rng), rng.normal(size=shape)
        alphas = rng.uniform(0.01, 0.2, size=T)

        def alpha(t, alphas=alphas):
            return float(alphas[t])

        method = by_the_learner(ForwardTD(function, w, alpha, 0.9, 0.95, horizon=K), events)
        definition = by_the_learner(DelayedLambdaReturn(function, w, alpha, 0.9, 0.95, horizon=K), events)
        close(method, definition)
        close(definition, by_the_equations(function, w, events, alphas, K))
        assert np.abs(method[-1] - w).max() > 1e-3


def test_the_method_stays_with_its_definition_where_dividing_would_not():
    """γλ = 0.05 and K = 60: 0.05⁻⁶⁰ is 1e78, which no recursion that divides survives."""
    rng = np.random.default_rng(3)
    X, R, w = rng.normal(size=(301, N)), rng.normal(size=300), rng.normal(size=(HIDDEN, N + 2))
    learners = [each(tanh_network, w, 0.05, 0.1, 0.5, horizon=60) for each in (ForwardTD, DelayedLambdaReturn)]
    values = [each.run(X, R) for each in learners]
    close([values[0]], [values[1]], 1e-12)
    close([learners[0].weights], [learners[1].weights], 1e-12)


# --- What it becomes at the limits ----------------------------------------------------------------


def test_the_horizon_is_the_smallest_within_the_tolerance():
    for discount, trace_decay, tolerance in [(0.99, 0.9, 0.01), (1.0, 0.1, 0.01), (0.9, 0.5, 0.3), (1.0, 0.999, 1e-6)]:
        K = horizon_within(tolerance, discount, trace_decay)
        decay = discount * trace_decay
        assert decay**K <= tolerance * (1 + 1e-9)
        assert decay ** (K - 1) > tolerance
        assert ForwardTD(linear, [0.0], 0.1, trace_decay, discount, tolerance=tolerance).horizon == K
    assert horizon_within(0.01, 1.0, 0.1) == 2
    assert ForwardTD(linear, [0.0], 0.1, 0.0, 1.0).horizon == 1
    with pytest.raises(ValueError, match=r"leaves no horizon .* give the horizon, or horizon=math\.inf"):
        ForwardTD(linear, [0.0], 0.1, 1.0, 1.0)


# --- The interface --------------------------------------------------------------------------------


def stream(seed=1, steps=T):
    rng = np.random.default_rng(seed)
    X, R = rng.normal(size=(steps + 1, N)), rng.normal(size=steps)
    gammas, lams, starts = rng.uniform(0.5, 1.0, size=steps), rng.random(steps), rng.random(steps + 1) < 0.05
    gammas[rng.random(steps) < 0.1] = 0.0
    return X, R, gammas, lams, starts, rng.normal(size=(HIDDEN, N + 2))


def halve(t):
    return 0.5 / (1.0 + 0.1 * t)


@pytest.mark.parametrize("kind", [ForwardTD, DelayedLambdaReturn])
@pytest.mark.parametrize("step_size", [None, halve])
def test_the_contract_of_learners_is_kept(kind, step_size):
    schedule = {"step_size": step_size} if step_size else {}

    def make(n_features, **settings):
        return kind(squashed, np.zeros(n_features), **{**settings, **schedule}, horizon=6)

    make.load = lambda path: kind.load(path, squashed, **schedule)
    assert len(to.check_learner(make).kept) == 10


def test_run_takes_trace_decays_and_starts():
    X, R, gammas, lams, starts, w = stream()
    ran, stepped = (ForwardTD(tanh_network, w, 0.1, 0.9, 0.95, horizon=5) for _ in range(2))
    ran.run(X, R, gammas, trace_decays=lams, starts=starts)
    stepped.start(X[0])
    for t in range(T):
        stepped.start(X[t + 1]) if starts[t + 1] else stepped.update(R[t], X[t + 1], gammas[t], lams[t])
    np.testing.assert_array_equal(stepped.weights, ran.weights)
    assert stepped.steps == ran.steps == T - starts[1:].sum()


def test_the_td_error_is_that_of_the_values_in_the_targets():
    X, R, *_, w = stream()
    learner = ForwardTD(tanh_network, w, 0.1, 0.9, 0.95, horizon=3)
    learner.start(X[0])
    v = learner.predict(X[0])
    for t in range(10):
        v_next = learner.predict(X[t + 1])  # with the weights of before the update
        assert learner.update(R[t], X[t + 1]) == pytest.approx(R[t] + 0.95 * v_next - v, abs=1e-14)
        v = v_next
    assert learner.update(1.0, X[11], 0.0) == pytest.approx(1.0 - v, abs=1e-14)
    v = learner.predict(X[11])  # an episode that begins has the values of the weights after the end
    assert learner.update(1.0, None) == pytest.approx(1.0 - v, abs=1e-14)


def test_it_costs_two_calls_a_transition_and_keeps_less_than_k_of_them():
    calls = []

    def counted(w, x):
        calls.append(x)
        return linear(w, x)

    learner = ForwardTD(counted, np.zeros(N), 0.1, 0.9, 0.95, horizon=10)
    X = np.random.default_rng(0).normal(size=(200, N))
    learner.start(X[0])
    for t in range(199):
        before = len(calls)
        learner.update(1.0, X[t + 1])
        assert len(calls) - before == (1 if t < 9 else 2)
        assert len(learner._kept) == min(t + 1, 9)
    before = len(calls)
    learner.update(1.0, None)
    assert len(calls) - before == 10


# --- Bad input changes nothing --------------------------------------------------------------------

FAULTS = {
    "a value that is not finite": (
        lambda v, g: (math.nan, g),
        "value from value_and_grad must be a finite number, got nan",
    ),
    "a value that is an array": (lambda v, g: (g, g), "value from value_and_grad must be a finite number"),
    "a gradient of another shape": (lambda v, g: (v, g.ravel()), r"shape \(3, 6\), got float64 of shape \(18,\)"),
    "a gradient that is not finite": (lambda v, g: (v, g * 0.0 + np.inf), "gradient .* must be finite"),
    "a gradient of objects": (lambda v, g: (v, g.astype(object)), "got object of shape"),
    "no pair": (lambda v, g: v, r"must return \(value, gradient\), got float"),
}


class Faulty:
    """The network, with a fault at one of its calls."""

    def __init__(self, fault):
        self.fault, self.calls, self.at = fault, 0, math.inf

    def __call__(self, w, x):
        self.calls += 1
        answer = tanh_network(w, x)
        return self.fault(*answer) if self.calls > self.at else answer


def state(learner):
    return (
        learner.weights.tobytes(),
        learner.steps,
        learner._value,
        learner._standing,
        np.asarray(learner._here).tobytes(),
        [tuple(np.asarray(getattr(step, name)).tobytes() for name in step.__slots__) for step in learner._kept],
    )


CALLS = {
    "update": lambda learner, X, R, *rest: learner.update(R[8], X[9]),
    "end": lambda learner, X, R, *rest: learner.update(R[8], None),
    "end, and begin": lambda learner, X, R, *rest: learner.update(R[8], X[9], 0.0),
    "start": lambda learner, X, R, *rest: learner.start(X[0]),
    "predict": lambda learner, X, R, *rest: learner.predict(X[0]),
    "run": lambda learner, X, R, gammas, lams, starts: learner.run(
        X[8:20], R[8:19], gammas[8:19], trace_decays=lams[8:19], starts=starts[8:20]
    ),
}


@pytest.mark.parametrize("learner_class", [ForwardTD, DelayedLambdaReturn])
@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_function_changes_nothing(name, learner_class):
    fault, message = FAULTS[name]
    *given, w = stream()
    learner = learner_class(Faulty(fault), w, 1.0, 0.9, 0.95, horizon=4)
    learner.run(given[0][:9], given[1][:8])
    for call in CALLS.values():
        whole = copy.deepcopy(learner)
        before = whole._function.calls
        call(whole, *given)
        made = whole._function.calls - before
        assert made > 0
        for at in range(made):
            tried = copy.deepcopy(learner)
            tried._function.at = before + at
            with pytest.raises(ValueError, match=message):
                call(tried, *given)
            assert state(tried) == state(learner)
            tried._function.at = math.inf
            call(tried, *given)
            assert state(tried) == state(whole)


def test_weights_stay_finite():
    def steep(w, x):
        return 0.0, np.array([1e308])

    learner = ForwardTD(steep, [1.0], 1.0, 0.9, 0.95, horizon=2)
    learner.start(0)
    learner.update(100.0, 0)
    before = state(learner)
    for call in (lambda: learner.update(1.0, 0), lambda: learner.update(1.0, None), lambda: learner.start(0)):
        with pytest.raises(ValueError, match=r"would make weights that are not finite; .* use a smaller step_size"):
            call()
        assert state(learner) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value_and_grad": 3}, "value_and_grad must be a function of weights and x, got int"),
        ({"weights": []}, "weights must be a non-empty array of finite numbers"),
        ({"weights": 1.0}, "weights must be a non-empty array of finite numbers"),
        ({"weights": [1.0, math.nan]}, "weights must be .* not all finite"),
        ({"weights": [True]}, "weights must be a non-empty array of finite numbers, got bool"),
        ({"step_size": 0.0}, "step_size must be a finite number > 0, got 0.0"),
        ({"trace_decay": 1.1}, r"trace_decay must be a number in \[0, 1\], got 1.1"),
        ({"discount": True}, r"discount must be a number in \[0, 1\], got True"),
        ({"horizon": 0}, "horizon must be a whole number ≥ 1, or math.inf, got 0"),
        ({"horizon": 2.5}, "horizon must be a whole number ≥ 1, or math.inf, got 2.5"),
        ({"horizon": True}, "horizon must be a whole number ≥ 1, or math.inf, got True"),
        ({"tolerance": 1.0}, r"tolerance must be a number in \(0, 1\), got 1.0"),
    ],
)
def test_bad_parameters_are_refused(change, message):
    good = {"value_and_grad": linear, "weights": np.zeros(N), "step_size": 0.1, "trace_decay": 0.9, "discount": 0.95}
    assert ForwardTD(**good).horizon == 30
    with pytest.raises(ValueError, match=message):
        ForwardTD(**{**good, **change})


def test_bad_transitions_and_streams_are_refused():
    X, R, *_, w = stream()

    def schedule(t):
        return 0.1 if t < 20 else -1.0

    learner = ForwardTD(tanh_network, w, schedule, 0.9, 0.95, horizon=4)
    learner.run(X[:9], R[:8])
    before = state(learner)
    wrong = [
        (lambda: learner.update(math.inf, X[9]), "reward must be a finite number, got inf"),
        (lambda: learner.update(1.0, X[9], 1.5), "discount must be a number"),
        (lambda: learner.update(1.0, X[9], 0.5, -1.0), "trace_decay must be a number"),
        (lambda: learner.run(X[8:], R[8:]), r"step_size\(20\) must be a finite number > 0, got -1.0"),
        (lambda: learner.run(X[8:], R[7:]), "one fewer than the rows of X"),
        (lambda: learner.run(X[8:], R[8:], np.full(T - 8, 2.0)), "discounts must lie in"),
        (lambda: learner.run(["a", "b"], [1.0]), "X must be an array of numbers"),
    ]
    for call, message in wrong:
        with pytest.raises(ValueError, match=message):
            call()
        assert state(learner) == before


def test_the_function_cannot_change_the_weights():
    def rude(w, x):
        w[:] = 0.0
        return 0.0, w

    learner = ForwardTD(rude, np.ones(2), 0.1, 0.9, 0.95)
    with pytest.raises(ValueError, match="read-only"):
        learner.start(0)
    assert learner.weights.tolist() == [1.0, 1.0]


# --- Saved, copied or pickled equals never stopped ------------------------------------------------


@pytest.mark.parametrize("x", [1, 1.5, np.float32(0.1), np.int64(2), np.arange(3), np.ones((2, 2), np.float32)])
def test_a_saved_state_is_what_it_was(x, tmp_path):
    def function(w, x):
        return float(w[0] + np.sum(x)), np.ones(1)

    learner = ForwardTD(function, [0.0], 0.1, 0.9, 0.95, horizon=math.inf)
    learner.start(x)
    learner.update(1.0, x)
    learner.save(tmp_path / "a.npz")
    other = ForwardTD.load(tmp_path / "a.npz", function)
    assert other.horizon == math.inf
    for back_again in (other._here, next(iter(other._kept)).x):
        assert type(back_again) is type(x)
        assert np.asarray(back_again).dtype == np.asarray(x).dtype
        np.testing.assert_array_equal(back_again, x)
    assert other.update(1.0, None) == learner.update(1.0, None) != 1.0, "the value of the state counts"


def test_what_cannot_be_saved_or_loaded_is_told(tmp_path):
    learner = ForwardTD(lambda w, x: (float(w[0]), np.ones(1)), [0.0], 0.1, 0.9, 0.95)
    learner.start((1, 2))
    with pytest.raises(ValueError, match="states of type tuple cannot be saved"):
        learner.save(tmp_path / "a.npz")
    assert not (tmp_path / "a.npz").exists()
    learner.update(1.0, None)
    learner.save(tmp_path / "a.npz")
    with pytest.raises(ValueError, match="holds a ForwardTD, not a DelayedLambdaReturn"):
        DelayedLambdaReturn.load(tmp_path / "a.npz", linear)
    with pytest.raises(ValueError, match=r"saved with the constant step_size 0\.1"):
        ForwardTD.load(tmp_path / "a.npz", linear, step_size=halve)
    ForwardTD(linear, [0.0], halve, 0.9, 0.95).save(tmp_path / "b.npz")
    with pytest.raises(ValueError, match="saved with a step-size schedule"):
        ForwardTD.load(tmp_path / "b.npz", linear)
    kind, settings, arrays = files.read_learner(tmp_path / "a.npz")
    for name, value in [("weights", np.zeros(2)), ("reward", np.zeros(3)), ("older", np.array(1)), ("x0", np.zeros(1))]:
        files.write_learner(
            tmp_path / "c.npz", kind, settings, {**arrays, name: value, **({"x1": value} if name == "x0" else {})}
        )
        with pytest.raises(ValueError, match=r"c\.npz is damaged"):
            ForwardTD.load(tmp_path / "c.npz", linear)


# --- PyTorch --------------------------------------------------------------------------------------


def test_torch_is_asked_for_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ValueError, match=r"needs PyTorch: pip install 'trueonline\[torch\]'"):
        torch_value(None)


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed: its adapter is not tested")


def test_a_module_learns_as_the_network_by_hand(torch):
    X, R, gammas, lams, starts, _ = stream()
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(N, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, 1, bias=False))
    given = [each.detach().clone() for each in module.parameters()]
    function, weights = torch_value(module)
    assert weights.dtype == np.float64
    A, c, b = weights[: HIDDEN * N].reshape(HIDDEN, N), weights[HIDDEN * N : -HIDDEN], weights[-HIDDEN:]
    learner = ForwardTD(function, weights, 0.1, 0.9, 0.95, horizon=5)
    by_hand = ForwardTD(tanh_network, np.column_stack((A, c, b)), 0.1, 0.9, 0.95, horizon=5)
    values = [each.run(X, R, gammas, trace_decays=lams, starts=starts) for each in (learner, by_hand)]
    close(values[:1], values[1:], 1e-12)
    w = by_hand.weights
    close([learner.weights], [np.concatenate((w[:, :N].ravel(), w[:, N], w[:, N + 1]))], 1e-12)
    for now, then in zip(module.parameters(), given, strict=True):
        assert now.dtype == torch.float32
        assert torch.equal(now, then)
    torch.nn.utils.vector_to_parameters(torch.tensor(learner.weights), module.parameters())
    assert module(torch.tensor(X[3])).item() == pytest.approx(learner.predict(X[3]), abs=1e-14)


def test_frozen_parameters_and_buffers_are_constants(torch):
    module = torch.nn.Sequential(
        torch.nn.Embedding(3, 2), torch.nn.BatchNorm1d(1), torch.nn.Flatten(0), torch.nn.Linear(2, 1)
    )
    module[0].weight.requires_grad_(False)
    module.eval()
    function, weights = torch_value(module)
    assert weights.shape == (2 + 3,)  # γ and β of the normalisation, and the last layer
    value, gradient = function(weights, np.array([2])[:, None])
    e = 1e-6
    for i in range(5):
        slope = (
            function(weights + e * np.eye(5)[i], np.array([[2]]))[0]
            - function(weights - e * np.eye(5)[i], np.array([[2]]))[0]
        ) / (2 * e)
        assert gradient[i] == pytest.approx(slope, abs=1e-8)
    assert math.isfinite(value)


def test_what_is_no_value_function_is_refused(torch):
    with pytest.raises(ValueError, match=r"must be a torch\.nn\.Module, got int"):
        torch_value(3)
    with pytest.raises(ValueError, match="nothing to learn"):
        torch_value(torch.nn.Tanh())
    function, weights = torch_value(torch.nn.Linear(2, 3))
    with pytest.raises(ValueError, match=r"must give one number, the value of x, got \(3,\)"):
        function(weights, np.zeros(2))
    module = torch.nn.Linear(2, 1)
    function, weights = torch_value(module)
    module.forward = lambda x: torch.ones(1, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"depends on its parameters, got torch\.float64, detached from them"):
        function(weights, np.zeros(2))
    with pytest.raises(ValueError, match="complex parameters"):
        torch_value(torch.nn.Linear(2, 1, dtype=torch.complex64))


def test_a_value_may_be_an_array_of_one_number():
    learner = ForwardTD(lambda w, x: (np.array(w @ x), x), np.ones(2), 0.1, 0.9, 0.9)
    assert learner.predict(np.array([1.0, 2.0])) == 3.0


def test_load_says_how_to_load_it(tmp_path):
    ForwardTD(linear, np.zeros(2), 0.1, 0.9, 0.9).save(tmp_path / "learner.npz")
    with pytest.raises(ValueError, match=r"load it with `trueonline\.nonlinear\.ForwardTD\.load"):
        to.load(tmp_path / "learner.npz")
