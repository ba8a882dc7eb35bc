"""A rule of one's own is a full method: learner, agent, verify, sweep, files and pickles."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest

import trueonline as to
from tests.study import small_cases
from tests.study.small_cases import own_accumulate
from trueonline.core.memory import decay, imprint, learn, recall, value
from trueonline.forward import AccumulateSum
from trueonline.learners import own
from trueonline.learners.own import rule_of

OWN = to.method(own_accumulate, AccumulateSum, trace="accumulating")
SETTINGS = {"step_size": 0.1, "trace_decay": 0.8, "discount": 0.9}
STILL = {"step_size": 0.5, "trace_decay": 0.0, "discount": 1.0}
rng = np.random.default_rng(4)
REWARDS = rng.normal(size=40).tolist()
SPARSE = np.array([rng.choice(6, 2, replace=False) for _ in range(41)])


def learn_on(learner, first, last):
    """One `update` at a time, over active features alone: each kernel of an own rule is compiled here."""
    if first == 0:
        learner.start(SPARSE[0])
    for reward, x in zip(REWARDS[first:last], SPARSE[first + 1 : last + 1], strict=True):
        learner.update(reward, x)


def test_it_equals_its_definition():
    report = OWN.verify(kinds=["active indices"], trials=1, steps=20)
    assert report.exact
    assert report.definition == "AccumulateSum"


def test_adaptation_needs_the_kind_of_trace():
    assert OWN.learner(6, **SETTINGS, bound=0.5).bound == 0.5
    with pytest.raises(ValueError, match=r"trace=.*trueonline\.method"):
        to.method(own_accumulate, name="without").learner(6, **SETTINGS, bound=0.5)


def test_it_is_saved_loaded_and_pickled(tmp_path):
    """And it learns as the method of the package does, bit for bit."""
    learner, ours = OWN.learner(6, **SETTINGS), to.AccumulateTD(6, **SETTINGS)
    learn_on(learner, 0, 19)
    learner.save(tmp_path / "own.npz")
    copies = [to.load(tmp_path / "own.npz"), OWN.learner.load(tmp_path / "own.npz"), pickle.loads(pickle.dumps(learner))]
    learn_on(ours, 0, 40)
    for each in (learner, *copies):
        assert type(each) is OWN.learner
        learn_on(each, 19, 40)
        np.testing.assert_array_equal(each.weights, ours.weights)


def test_a_file_is_refused_by_another_rule_of_the_same_name(tmp_path):
    source = "from trueonline import kernel\n\n\n@kernel\ndef own_td(memory, reward):\n    return 0.0, {}, 0.0\n"
    first, second = (
        to.method(rule_of(text, "own_td"), source=text) for text in (source.format("1.0"), source.format("2.0"))
    )
    first.learner(6, **SETTINGS).save(tmp_path / "own.npz")
    with pytest.raises(ValueError, match="was saved with another rule: the rule of own_td has changed since"):
        second.learner.load(tmp_path / "own.npz")


def test_the_agent_is_that_of_the_package_bit_for_bit(tmp_path):
    agents = [kind(6, 2, **SETTINGS, seed=3) for kind in (OWN.agent, to.control.AccumulateSarsa)]
    for agent in agents:
        agent.start(SPARSE[0])
        for reward, x in zip(REWARDS, SPARSE[1:], strict=True):
            agent.step(reward, x)
    np.testing.assert_array_equal(agents[0].weights, agents[1].weights)
    agents[0].save(tmp_path / "agent.npz")
    copies = [to.load(tmp_path / "agent.npz"), pickle.loads(pickle.dumps(agents[0]))]
    assert {agent.step(1.0, SPARSE[0]) for agent in (agents[0], *copies)} == {agents[1].step(1.0, SPARSE[0])}


def test_it_is_swept_as_a_row_a_class_and_a_kernel():
    problem = to.problems.random_mrp(5, 2, 0.1, seed=0)
    methods = {"accumulate": None, "row": OWN, "class": OWN.learner, "kernel": own_accumulate}
    table = to.sweep(problem, methods, [0.1, 0.5], [0.0, 0.9], runs=2, steps=30)
    errors = {name: table.filter(np.array(table["method"].to_pylist()) == name)["error"].to_numpy() for name in methods}
    for name in methods:
        np.testing.assert_array_equal(errors[name], errors["accumulate"])


def test_a_rule_says_what_it_asks_for():
    @to.kernel
    def weighed(memory, x, reward, x_next, alpha, beta, gamma_next, rho, interest, carried):
        v, _, v_next = recall(memory, x, x_next)
        carried[0] += 1.0
        decay(memory, 0.0)
        imprint(memory, x, rho * interest, 0.0)
        learn(memory, (alpha + beta) * (reward + gamma_next * v_next - v))
        return v, reward + gamma_next * v_next - v, v_next

    method = to.method(weighed)
    assert method.learner.takes == ("ratio", "interest")
    with pytest.raises(TypeError, match="Weighed needs second_step_size"):
        method.learner(2, **SETTINGS)
    learner = method.learner(2, **SETTINGS, second_step_size=0.4)
    assert repr(learner).endswith("second_step_size=0.4)")
    learner.start(0)
    learner.update(1.0, None, ratio=0.5, interest=0.5)
    np.testing.assert_allclose(learner.weights, [0.125, 0.0])
    before = learner.carried
    learner.start(0)
    learner.update(1.0, None)
    assert before.tolist() == [1.0, 0.0, 0.0, 0.0] != learner.carried.tolist()
    with pytest.raises(ValueError, match="read-only"):
        learner.carried[0] = 7.0
    with pytest.raises(TypeError, match="takes no x_expected: it takes ratio and interest"):
        learner.update(1.0, 1, x_expected=0)
    with pytest.raises(TypeError, match="agents have one vector of weights"):
        method.agent(2, 2, **SETTINGS)


def test_what_is_not_a_rule_is_refused():
    with pytest.raises(TypeError, match=r"must be a compiled kernel.*trueonline\.kernel"):
        to.method(lambda memory: None)

    @to.kernel
    def strange(memory, x, phase):
        return 0.0, 0.0, 0.0

    with pytest.raises(
        TypeError, match=r"strange asks for 'phase'.* give its value .*parameters={'phase': 1\.0}; .* have x, reward"
    ):
        to.method(strange)
    with pytest.raises(TypeError, match="strange does not ask for 'fase': its parameters are phase"):
        to.method(strange, parameters={"phase": 1.0, "fase": 1.0})
    with pytest.raises(ValueError, match="may not be called 'weights'"):
        to.method(own_accumulate, parameters={"weights": 1.0})
    with pytest.raises(ValueError, match="memory must be one of one, two, three, two traces, got 'four'"):
        to.method(own_accumulate, memory="four")


# --- Parameters -----------------------------------------------------------------------------------


@to.kernel
def pulled_td(memory, x, reward, x_next, zeta, alpha, gamma, lam, gamma_next, pull):
    """TD(λ) whose errors count ζ times, and whose values are pulled towards zero."""
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    decay(memory, gamma * lam)
    imprint(memory, x, 1.0, -alpha * pull * v)
    learn(memory, alpha * zeta * delta)
    return v, delta, v_next


class Pulled(AccumulateSum):
    """The same by its equation, with w_t from one step to the next."""

    def __init__(self, n_features, step_size, trace_decay, discount, pull=0.25, zeta=1.0):
        self.pull, self.zeta = pull, zeta
        super().__init__(n_features, step_size, trace_decay, discount)

    def _weights_now(self):
        alpha, w = self.alphas[-1], self.weights_then[-1]
        return w + alpha * (self.zeta * self.deltas[-1] * self._trace() - self.pull * (w @ self.x[-1]) * self.x[-1])


PULLED = to.method(
    pulled_td, Pulled, parameters={"zeta": to.Parameter(1.0, 0.0, 2.0, "How much δ counts."), "pull": 0.25}
)


def test_parameters_are_arguments_that_are_saved_pickled_and_verified(tmp_path):
    learner = PULLED.learner(6, **SETTINGS, pull=0.5)
    assert (learner.pull, learner.zeta) == (0.5, 1.0)
    assert repr(learner).endswith("zeta=1.0, pull=0.5)")
    assert "zeta : float, optional\n    How much δ counts. 1 by default." in PULLED.learner.__doc__
    learn_on(learner, 0, 19)
    learner.save(tmp_path / "pulled.npz")
    copies = [to.load(tmp_path / "pulled.npz"), pickle.loads(pickle.dumps(learner)), copy.deepcopy(learner)]
    learn_on(learner, 19, 40)
    for each in copies:
        learn_on(each, 19, 40)
        np.testing.assert_array_equal(each.weights, learner.weights)
    for given in ({}, {"pull": 0.7, "zeta": 0.5}):
        assert to.verify(partial(PULLED.learner, **given), kinds=["active indices"], trials=1, steps=20).exact
    assert not to.verify(partial(PULLED.learner, pull=0.1), Pulled, kinds=["active indices"], trials=1, steps=20).exact
    agent = PULLED.agent(6, 2, **SETTINGS, seed=1, pull=0.5)
    agent.save(tmp_path / "agent.npz")
    assert to.load(tmp_path / "agent.npz").pull == 0.5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pul": 1.0}, "PulledTd takes no argument 'pul': use pull"),
        ({"zeta": 2.5}, "zeta must be a finite number from 0 to 2, got 2.5"),
        ({"pull": float("nan")}, "pull must be a finite number, got nan"),
        ({"pull": True}, "pull must be a finite number, got True"),
        ({"pull": 10**400}, "pull must be a finite number, got 1000"),
    ],
)
def test_bad_parameters_are_refused_by_name(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        PULLED.learner(6, **SETTINGS, **given)


def test_parameters_are_swept_like_step_sizes(tmp_path):
    """With the bits of learners that have these parameters; without one, a method has null in its column."""
    grid: dict = {"step_sizes": [0.1, 0.3], "trace_decays": [0.5], "runs": 2, "steps": 30}
    problem, methods = to.problems.random_walk(5), {"row": PULLED, "class": PULLED.learner, "true_online": None}
    table = to.sweep(problem, methods, **grid, parameters={"pull": [0.0, 0.5]})
    assert table.column_names == ["method", "step_size", "trace_decay", "pull", "run", "error"]
    rows = table.to_pylist()
    errors = {name: [row["error"] for row in rows if row["method"] == name] for name in methods}
    assert len(errors["row"]) == 2 * len(errors["true_online"])
    np.testing.assert_allclose(errors["row"], errors["class"], rtol=1e-12)
    assert {row["pull"] for row in rows if row["method"] == "true_online"} == {None}
    for pull in (0.0, 0.5):
        alone = to.sweep(problem, {"row": to.study.SweptMethod(PULLED, parameters={"pull": pull})}, **grid)
        same = [row["error"] for row in rows if (row["method"], row["pull"]) == ("row", pull)]
        assert alone["error"].to_pylist() == same
    assert "pull 0" in str(to.study.Summary(table))
    to.sweep(problem, methods, **grid, parameters={"pull": [0.0, 0.5]}, out=tmp_path)
    assert to.sweep(problem, methods, **grid, parameters={"pull": [0.0, 0.5]}, out=tmp_path).equals(table)
    for wrong, message in (
        (
            {"zetta": [1.0]},
            r"'zetta', which is a parameter of none of the methods row, class and true_online: row has zeta",
        ),
        ({"zeta": [1.0, 3.0]}, r"parameters\['zeta'\] must be a finite number from 0 to 2, got 3.0"),
    ):
        with pytest.raises(ValueError, match=message):
            to.sweep(problem, methods, **grid, parameters=wrong)


# --- What belongs to a rule, and input that a rule does not look at ---------------------------------


def scaled_by(scale):
    @to.kernel
    def scaled(memory, x, reward, x_next, alpha, gamma_next):
        v, _, v_next = recall(memory, x, x_next)
        delta = reward + gamma_next * v_next - v
        decay(memory, 0.0)
        imprint(memory, x, 1.0, 0.0)
        learn(memory, scale * alpha * delta)
        return v, delta, v_next

    return scaled


@to.kernel
def towards_rewards(memory, x, reward, alpha):
    """It never looks at the features of the state entered."""
    v = value(memory, x)
    decay(memory, 0.0)
    imprint(memory, x, 1.0, 0.0)
    learn(memory, alpha * (reward - v))
    return v, reward - v, 0.0


@pytest.mark.parametrize(("binary", "bad"), [(False, np.nan), (True, 0.5)])
def test_a_dense_row_that_the_rule_does_not_look_at_is_refused(binary, bad):
    learner = to.method(towards_rewards, binary=binary).learner(3, **STILL)
    X = np.eye(3)[[0, 1, 2, 0]].copy()
    X[1, 1] = bad
    with pytest.raises(ValueError, match=r"X\[1\] must be"):
        learner.run(X, [1.0, 1.0, 1.0])
    assert learner.steps == 0
    assert not learner.weights.any()


def test_what_a_rule_closes_over_belongs_to_it(tmp_path):
    whole, tenth = to.method(scaled_by(1.0)), to.method(scaled_by(0.1))
    learner = whole.learner(3, **STILL)
    learner.start(0)
    for same in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        assert type(same) is whole.learner
        same.update(1.0, 1)
        assert same.weights[0] == 0.5
    learner.save(tmp_path / "learner.npz")
    with pytest.raises(ValueError, match="the rule of scaled has changed since"):
        tenth.learner.load(tmp_path / "learner.npz")


def test_the_rule_for_schedules_belongs_to_a_method():
    rule = scaled_by(1.0)
    first, second = (to.method(rule, varying=scaled_by(scale)) for scale in (1.0, 0.1))
    assert first.digest != second.digest


def test_a_method_that_came_by_value_keeps_its_digest():
    method = to.method(scaled_by(0.3))
    learner = method.learner(3, **STILL)
    pickled = pickle.dumps(learner)
    del own._METHODS[method.digest]  # as in another process
    again = pickle.loads(pickled)
    assert type(again) is not method.learner
    assert again._kind() == learner._kind()


def test_a_rule_that_changed_since_it_was_pickled_is_refused(monkeypatch):
    pickled = pickle.dumps(OWN.learner(6, **SETTINGS))
    monkeypatch.delitem(own._METHODS, OWN.digest)
    monkeypatch.setattr(small_cases, "accumulate_td", towards_rewards)
    with pytest.raises(ValueError, match=r"was pickled with another rule: .*accumulate_td has changed since"):
        pickle.loads(pickled)


@pytest.mark.parametrize("wrong", [("discount",), "gamma", ("gamma", "lambda")])
def test_an_unknown_constant_is_refused(wrong):
    with pytest.raises(ValueError, match="constants must be a tuple of names among gamma, lam, alpha"):
        to.method(towards_rewards, constants=wrong)
