"""Random streams, and the agents of this package and their oracles taken through them."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.oracles import control as naive
from tests.oracles import swift
from trueonline import forward
from trueonline.control import AccumulateSarsa, ReplaceSarsa, SwiftSarsa, TrueOnlineSarsa, TrueOnlineWatkinsQ, WatkinsQ

TOLERANCE = 1e-10
AGENTS = [AccumulateSarsa, ReplaceSarsa, TrueOnlineSarsa, WatkinsQ, TrueOnlineWatkinsQ]
SARSAS = [AccumulateSarsa, ReplaceSarsa, TrueOnlineSarsa]
WATKINS = [WatkinsQ, TrueOnlineWatkinsQ]
SARSA_OF = {WatkinsQ: AccumulateSarsa, TrueOnlineWatkinsQ: TrueOnlineSarsa}
every_agent = pytest.mark.parametrize("agent_class", AGENTS)
every_watkins = pytest.mark.parametrize("agent_class", WATKINS)


SWIFT = {"bound": 0.3, "decay": 0.99, "meta_step_size": 0.01}


class Method(NamedTuple):
    """An agent class with its definition and its oracles, `varying` for a schedule where it differs."""

    agent: Any
    definition: Any
    oracle: Any
    varying: Any = None
    forward: Any = None
    binary: bool = False
    options: Mapping[str, Any] = {}

    def oracle_for(self, schedule: bool) -> Any:
        return self.varying or self.oracle if schedule else self.oracle


METHODS = {
    "accumulate": Method(AccumulateSarsa, forward.AccumulateSarsaSum, naive.AccumulateSarsa),
    "replace": Method(ReplaceSarsa, forward.ReplaceSarsaSum, naive.ReplaceSarsa, binary=True),
    "clearing": Method(
        ReplaceSarsa, forward.ClearingSarsaSum, naive.ClearingSarsa, binary=True, options={"clear_others": True}
    ),
    "true online": Method(
        TrueOnlineSarsa,
        forward.OnlineSarsaReturn,
        naive.TrueOnlineSarsa,
        naive.TrueOnlineSarsaVarying,
        naive.ForwardSarsa,
    ),
    "watkins": Method(WatkinsQ, forward.WatkinsQSum, naive.WatkinsQ),
    "true online watkins": Method(
        TrueOnlineWatkinsQ,
        forward.OnlineWatkinsReturn,
        naive.TrueOnlineWatkinsQ,
        naive.TrueOnlineWatkinsQVarying,
        naive.ForwardWatkins,
    ),
    "swift": Method(
        SwiftSarsa,
        partial(forward.SwiftSarsaEquations, **SWIFT),
        type("SwiftOracle", (swift.SwiftSarsa,), {"settings": SWIFT}),
        options=SWIFT,
    ),
}
# SwiftSarsa takes no schedules.
EXACT = [(name, schedule) for name in METHODS for schedule in (False, True) if (name, schedule) != ("swift", True)]


# --- Streams, and agents taken through them -------------------------------------------------------


class Event(NamedTuple):
    """What an agent is told: "start", "step", "cut" or "end"; γ = 0 may stand in any step."""

    what: str
    x: np.ndarray | None
    reward: float = 0.0
    gamma: float = 1.0
    lam: float = 1.0


class Stream(NamedTuple):
    n: int
    actions: int
    events: list[Event]
    step_size: Any
    gamma: float  # the agent's own
    lam: float
    initial: np.ndarray
    seed: int

    def alpha(self, t: int) -> float:
        return self.step_size(t) if callable(self.step_size) else self.step_size

    def agent(self, agent_class, policy, **options) -> Any:
        numbers = (self.n, self.actions, self.step_size, self.lam, self.gamma)
        return agent_class(*numbers, policy, seed=self.seed, initial_weights=self.initial, **options)

    def oracle(self, oracle_class, policy) -> naive.Oracle:
        rng = np.random.default_rng(self.seed)
        return oracle_class(self.n, self.actions, self.alpha, policy, rng, self.initial)


def features(rng: np.random.Generator, n: int, values: str) -> np.ndarray:
    x = np.zeros(n)
    if values == "states":
        x[rng.integers(n)] = 1.0
        return x
    active = rng.random(n) < rng.choice([0.1, 0.4, 1.0], p=[0.5, 0.4, 0.1])
    x[active] = 1.0 if values == "binary" else rng.normal(size=active.sum())
    return x


def draw(seed: int, values: str, *, schedule: bool = False, steps: int = 80, longest: int = 1000) -> Stream:
    """A random stream of several episodes; features linger, γ and λ differ from state to state in half of them."""
    rng = np.random.default_rng([20160801, seed])
    n, actions = int(rng.integers(1, 10)), int(rng.integers(1, 5))
    gamma, lam = (float(rng.choice([1.0, 0.95, 0.5, rng.random()])) for _ in range(2))
    own = rng.random() < 0.5
    linger = rng.choice([0.0, 0.6])
    x = features(rng, n, values)
    events, since = [Event("start", x)], 0
    largest = x @ x
    for _ in range(steps):
        x = x if rng.random() < linger else features(rng, n, values)
        largest = max(largest, x @ x)
        given = (gamma, lam)
        if own:
            given = (
                float(rng.choice([1.0, rng.random()])),
                float(rng.choice([1.0, 0.0, rng.random()], p=[0.4, 0.1, 0.5])),
            )
        if rng.random() < 0.05:
            given = (0.0, given[1])
        since += 1
        what = rng.choice(["step", "cut", "end"], p=[0.92, 0.04, 0.04]) if since < longest else "cut"
        events.append(Event(str(what), None if what == "end" else x, float(rng.normal()), *given))
        if what != "step":
            since = 0
            x = features(rng, n, values)
            largest = max(largest, x @ x)
            events.append(Event("start", x))
    shares = rng.uniform(0.02, 0.6, size=steps) / (largest or 1.0)
    step_size = (lambda t: float(shares[t])) if schedule else float(shares[0])
    initial = rng.choice([0.0, 1.0]) * rng.normal(size=(n, actions))
    return Stream(n, actions, events, step_size, gamma, lam, initial, seed)


def spelt(x: np.ndarray, form: str, rng: np.random.Generator) -> Any:
    """The same features in another form."""
    if form == "dense":
        return x
    if form == "indices":
        indices = rng.permutation(np.flatnonzero(x))
        return indices if len(indices) < len(x) or len(x) == 1 else (indices, np.ones(len(x)))  # all would be refused
    if form == "states":
        return int(x.argmax())
    indices = rng.permutation(np.union1d(np.flatnonzero(x), rng.integers(len(x))))
    return indices, x[indices]  # pairs


def mixed(rng: np.random.Generator) -> Callable[[np.ndarray], Any]:
    """Features in every form, now and then in the next one: dense, then pairs, then indices, and dense again.

    A step is compiled for the form of the features left and that of those entered: going round, not to and fro, there are
    six such pairs instead of nine, and every form is left and entered from another all the same.
    """
    kind = 0

    def spell(x: np.ndarray) -> Any:
        nonlocal kind
        binary = np.isin(x, (0.0, 1.0)).all() and not (len(x) > 1 and x.all())  # indices of all features are refused
        if rng.random() < 0.5 and (kind != 1 or binary):
            kind = (kind + 1) % 3
        elif kind == 2 and not binary:
            kind = 0
        if kind == 0:
            ways = [lambda: x, lambda: list(x), lambda: np.repeat(x, 2)[::2]]  # the last is not contiguous
            ways += [lambda: x.astype("f4")] if binary else []
        elif kind == 1:
            ways = [lambda: spelt(x, "pairs", rng), lambda: (list(range(len(x))), list(x))]
        else:
            ways = [lambda: np.flatnonzero(x), lambda: np.flatnonzero(x)[::-1].astype(np.int32)]
            ways += [lambda: int(x.argmax()), x.argmax] if x.sum() == x.max() == 1.0 else []
        return ways[rng.integers(len(ways))]()

    return spell


FORMS = {
    "dense": "real",
    "indices": "binary",
    "pairs": "real",
    "states": "states",
    "mixed": "real",
    "mixed binary": "binary",
}


def values_for(form: str, binary: bool) -> str:
    return "binary" if binary and FORMS[form] == "real" else FORMS[form]


def wavering(values: np.ndarray, rng: np.random.Generator, t: int) -> int:
    """Greedy two thirds of the time. Close values count as equal, so that rounding decides nothing."""
    if rng.random() < 2 / 3:
        return int(np.flatnonzero(values >= values.max() - 1e-8 * max(1.0, abs(values.max())))[0])
    return int(rng.integers(len(values)))


def tell(agent: Any, event: Event, x: Any, gamma: float | None, lam: float | None) -> int | None:
    if event.what == "start":
        return agent.start(x)
    if event.what == "step":
        return agent.step(event.reward, x, gamma, lam)
    if event.what == "cut":
        return agent.truncate(event.reward, x, gamma)
    return agent.end(event.reward)


class Seen(NamedTuple):
    action: int | None
    weights: np.ndarray
    trace: np.ndarray


def follow(agent: Any, stream: Stream, form: str = "dense") -> Iterator[Seen]:
    """Take an agent of the package through a stream; what is as usual is left to it."""
    rng = np.random.default_rng(stream.seed)
    spell = mixed(rng) if form.startswith("mixed") else lambda x: spelt(x, form, rng)
    for event in stream.events:
        x = None if event.x is None else spell(event.x)
        gamma = None if event.gamma == stream.gamma else event.gamma
        lam = None if event.lam == stream.lam else event.lam
        action = tell(agent, event, x, gamma, lam)
        yield Seen(action, agent.weights, getattr(agent, "trace", agent.weights))


def expected(oracle: naive.Oracle, stream: Stream) -> Iterator[Seen]:
    shape = (stream.n, stream.actions)
    for event in stream.events:
        action = tell(oracle, event, event.x, event.gamma, event.lam)
        yield Seen(action, oracle.w.reshape(shape), oracle.trace.reshape(shape))


def off(actual: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """max_t ‖actual_t − wanted_t‖∞ / the largest wanted so far."""
    a, b = np.array(actual).reshape(len(actual), -1), np.array(wanted).reshape(len(wanted), -1)
    assert np.isfinite(b).all(), "the oracle itself diverged: nothing is tested"
    largest = np.maximum.accumulate(np.abs(b).max(axis=1))
    return float(np.max(np.abs(a - b).max(axis=1) / np.where(largest > 0.0, largest, 1.0)))


def assert_alike(actual: Iterator[Seen], wanted: Iterator[Seen], *, trace: bool = True, tolerance=TOLERANCE) -> None:
    found, right = list(actual), list(wanted)
    assert [seen.action for seen in found] == [seen.action for seen in right]
    assert off([seen.weights for seen in found], [seen.weights for seen in right]) <= tolerance
    if trace:
        assert off([seen.trace for seen in found], [seen.trace for seen in right]) <= tolerance
    assert np.abs(right[-1].weights - right[0].weights).max() > 1e-3, "nothing was learned: nothing is tested"


def slipped(slip: str) -> Any:
    return type("Slipped", (naive.TrueOnlineWatkinsQ,), {"slip": slip})


def assert_same(one, other) -> None:
    assert (one.steps, one.action) == (other.steps, other.action)
    np.testing.assert_equal(one.rng.bit_generator.state, other.rng.bit_generator.state)
    parts, others = one._dump_memory(), other._dump_memory()
    assert parts.keys() == others.keys()
    for name, part in parts.items():
        np.testing.assert_array_equal(part, others[name])
