"""An agent that was saved, copied or pickled learns on as if it had never stopped."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import trueonline as to
from tests.control.agent_streams import METHODS, Stream, assert_same, draw, spelt, tell
from tests.saved_files import rewrite
from trueonline import files
from trueonline.control import EpsilonGreedy, Greedy, Softmax, TrueOnlineSarsa, TrueOnlineWatkinsQ, Uniform, WatkinsQ


def halve(t):
    return 0.3 / (1.0 + 0.05 * t)


def fade(t):
    return 1.0 / (1.0 + 0.1 * t)


def own_policy(values, rng, t):
    return int(rng.permutation(len(values))[t % len(values)])


def through_file(agent, tmp_path):
    agent.save(tmp_path / "agent.npz")
    schedule = {"step_size": agent.step_size} if callable(agent.step_size) else {}
    code = agent.policy is own_policy or callable(getattr(agent.policy, "epsilon", None))
    return to.load(tmp_path / "agent.npz", **schedule, **({"policy": agent.policy} if code else {}))


every_way = pytest.mark.parametrize(
    "through", [through_file, lambda agent, _: pickle.loads(pickle.dumps(agent)), lambda agent, _: copy.deepcopy(agent)]
)
POLICIES = {
    "default": None,
    "ε-greedy": EpsilonGreedy(0.4, tolerance=1e-3),
    "softmax": Softmax(0.3),
    "uniform": Uniform(),
    "greedy": Greedy(0.01),
    "own": own_policy,
    "schedule": EpsilonGreedy(fade),
}


def assert_goes_on(agent, stream: Stream, form: str, through, tmp_path, at=(0, 1, 7, 30)) -> None:
    """From each of these times on a copy does as the agent does, bit for bit."""
    others: list[Any] = []
    rng = np.random.default_rng(2)
    ends = [number for number, event in enumerate(stream.events) if event.what != "step"][:4]
    for number, event in enumerate(stream.events):
        x = None if event.x is None else spelt(event.x, form, rng)
        chosen = [tell(each, event, x, event.gamma, event.lam) for each in (agent, *others)]
        assert len(set(chosen)) == 1
        for other in others:
            np.testing.assert_array_equal(other.weights, agent.weights)
            np.testing.assert_array_equal(other.trace, agent.trace)
        if number in at or number in ends:
            others = [*others[-1:], through(agent, tmp_path)]
            assert repr(others[-1]) == repr(agent)
            assert type(others[-1]) is type(agent)
            assert_same(others[-1], agent)
    for other in others:
        assert_same(other, agent)
        other.reset()
        np.testing.assert_array_equal(other.weights, stream.initial)


# One class saves all agents. The second has an option.
CASES = [
    ("true online", "dense", False),
    ("true online", "pairs", True),
    ("clearing", "indices", True),
    ("swift", "indices", False),
]


@every_way
@pytest.mark.parametrize(("name", "form", "schedule"), CASES)
def test_an_agent_goes_on_bit_for_bit(name, schedule, form, through, tmp_path):
    method = METHODS[name]
    stream = draw(14, "binary")
    initial = np.linspace(-1.0, 1.0, stream.initial.size).reshape(stream.initial.shape)
    stream = stream._replace(step_size=halve if schedule else 0.1, initial=initial)
    agent = stream.agent(method.agent, EpsilonGreedy(0.4), **method.options)
    assert_goes_on(agent, stream, form, through, tmp_path)


@every_way
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_goes_on(policy, through, tmp_path):
    stream = draw(14, "binary", steps=40)
    agent = stream.agent(TrueOnlineWatkinsQ, POLICIES[policy])
    assert_goes_on(agent, stream, "indices", through, tmp_path)


@every_way
@pytest.mark.parametrize("bits", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_every_kind_of_random_state_goes_on(bits, through, tmp_path):
    stream = draw(14, "binary", steps=60)._replace(seed=np.random.Generator(getattr(np.random, bits)(6)))
    agent = stream.agent(TrueOnlineSarsa, EpsilonGreedy(0.5))
    agent.rng.integers(3, dtype=np.int32)  # leaves half of a 64-bit number over, which must be kept too
    assert_goes_on(agent, stream._replace(seed=6), "indices", through, tmp_path)
    assert type(agent.rng.bit_generator).__name__ == bits


@every_way
def test_new_ended_and_diverged_agents_survive(through, tmp_path):
    agent = WatkinsQ(4, 2, 0.5, 0.9, 0.9, seed=3)
    assert through(agent, tmp_path).steps == 0
    agent.start(1)
    agent.end(1.0)
    other = through(agent, tmp_path)
    with pytest.raises(RuntimeError, match="no episode has begun"):
        other.step(1.0, 2)
    np.testing.assert_array_equal(other.weights, agent.weights)
    assert other.start(2) == agent.start(2)
    huge = WatkinsQ(1, 2, 1e300, 1.0, 1.0, lambda q, rng, t: 0, initial_weights=[[1e300, 0]])
    huge.start(0)
    huge.step(-1e300, 0)
    huge.step(0.0, 0)
    assert huge.diverged
    huge.policy = Uniform()
    assert through(huge, tmp_path).diverged


def test_a_policy_that_is_code_must_be_handed_back(tmp_path):
    path = tmp_path / "a.npz"
    for policy in (own_policy, EpsilonGreedy(fade), Softmax(fade), type("Mine", (Greedy,), {})()):
        TrueOnlineSarsa(3, 2, 0.1, 0.9, 0.9, policy).save(path)
        with pytest.raises(ValueError, match=r"saved with a policy of your own.*which is code: load it with policy="):
            to.load(path)
        assert to.load(path, policy=policy).policy is policy
        with pytest.raises(ValueError, match="policy must be callable"):
            to.load(path, policy=3)
    TrueOnlineSarsa(3, 2, 0.1, 0.9, 0.9, Softmax(0.5)).save(path)
    with pytest.raises(ValueError, match=r"saved with the .*policy .*Softmax.*: load it without policy"):
        to.load(path, policy=own_policy)
    assert to.load(path).policy == Softmax(0.5)
    TrueOnlineSarsa(3, 2, halve, 0.9, 0.9).save(path)
    with pytest.raises(ValueError, match=r"saved with a step-size schedule, which is code: load it with step_size="):
        to.load(path)
    assert to.load(path, step_size=halve).step_size is halve


def test_a_learner_has_no_policy(tmp_path):
    path = tmp_path / "m.npz"
    to.TrueOnlineTD(3, 0.1, 0.9, 0.9).save(path)
    with pytest.raises(ValueError, match="holds a TrueOnlineTD, which has no policy: load it without policy"):
        to.load(path, policy=Greedy())


@pytest.fixture
def saved(tmp_path):
    agent = TrueOnlineSarsa(5, 3, 0.1, 0.9, 0.9, seed=1)
    agent.start(1)
    agent.step(1.0, 2)
    path = tmp_path / "a.npz"
    agent.save(path)
    return path


def edit(path, change=None, **arrays) -> None:
    kind, settings, _ = files.read_learner(path)
    about = {"class": kind, "settings": settings}
    if change is not None:
        change(about)
    rewrite(path, kind=about.get("class"), settings=about.get("settings"), **arrays)


def setting(name, value):
    return lambda about: about["settings"].update({name: value})


def random_state(**values):
    return lambda about: about["settings"]["rng"].update(values)


@pytest.mark.parametrize(
    "change",
    [
        setting("rng", None),
        setting("rng", {}),
        random_state(bit_generator="Nope"),
        random_state(bit_generator="Generator"),
        random_state(bit_generator="MT19937"),
        random_state(state="x"),
        setting("action", 3),
        setting("action", -1),
        setting("action", 1.0),
        setting("action", True),
        setting("policy", "x"),
        setting("policy", {"kind": "Nope"}),
        setting("policy", {"kind": ["Greedy"]}),
        setting("policy", {"kind": "EpsilonGreedy", "epsilon": 2}),
        setting("policy", {"kind": "EpsilonGreedy", "epsilon": 0.1, "more": 1}),
        setting("n_actions", 0),
        setting("n_actions", 4),
        setting("n_features", 4),
        setting("clear_others", True),
        lambda about: about["settings"].pop("rng"),
        lambda about: about["settings"].pop("action"),
        lambda about: about["settings"].pop("n_actions"),
        lambda about: about.update({"class": "TrueOnlineTD"}),
        random_state(bit_generator="BitGenerator"),
        random_state(state={"state": -1, "inc": 3}),
        random_state(state={"state": 2**200, "inc": 3}),
        random_state(uinteger=2**40),
    ],
)
def test_damaged_settings_are_refused(saved, change):
    edit(saved, change)
    with pytest.raises(ValueError, match=r"damaged|not a saved learner|holds a"):
        to.load(saved)


@pytest.mark.parametrize(
    "arrays",
    [
        {"here": None},
        {"here": np.array([99])},
        {"here": np.zeros(3)},
        {"owner": np.array([99])},
        {"initial_weights": np.zeros(15)},
    ],
)
def test_damaged_parts_are_refused(saved, arrays):
    edit(saved, **arrays)
    with pytest.raises(ValueError, match="is damaged"):
        to.load(saved)


def test_a_class_that_is_unknown_is_refused(saved):
    edit(saved, lambda about: about.update({"class": "Agent"}))
    with pytest.raises(ValueError, match=r"holds a Agent, which is none of .*TrueOnlineWatkinsQ"):
        to.load(saved)
