"""A rule of one's own is a full method: learner, agent, verify, sweep, files and pickles."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import trueonline as to
from trueonline.core.memory import decay, imprint, learn, recall
from trueonline.forward import AccumulateSum
from trueonline.learners.own import rule_of


@to.kernel
def own_td(memory, x, reward, x_next, alpha, gamma, lam, gamma_next):
    """Accumulate TD(λ), written again."""
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    decay(memory, gamma * lam)
    imprint(memory, x, 1.0, 0.0)
    learn(memory, alpha * delta)
    return v, delta, v_next


OWN = to.method(own_td, AccumulateSum, trace="accumulating")
SETTINGS = {"step_size": 0.1, "trace_decay": 0.8, "discount": 0.9}
rng = np.random.default_rng(4)
DENSE, REWARDS = rng.normal(size=(41, 6)), rng.normal(size=40)
SPARSE = np.array([rng.choice(6, 2, replace=False) for _ in range(41)])


def test_the_learner_is_that_of_the_package_bit_for_bit():
    own, ours = OWN.learner(6, **SETTINGS), to.AccumulateTD(6, **SETTINGS)
    np.testing.assert_array_equal(own.run(DENSE, REWARDS), ours.run(DENSE, REWARDS))
    np.testing.assert_array_equal(own.weights, ours.weights)
    for x in (DENSE[0], SPARSE[0]):
        assert own.update(1.0, x) == ours.update(1.0, x)


def test_it_equals_its_definition_and_keeps_the_contract():
    report = OWN.verify(kinds=["dense", "active indices"], trials=1, steps=20)  # every form is compiled here
    assert report.exact
    assert report.definition == "AccumulateSum"
    assert len(to.check_learner(OWN.learner).kept) == 10


def test_adaptation_needs_the_kind_of_trace():
    own, ours = (kind(6, **SETTINGS, bound=0.5) for kind in (OWN.learner, to.AccumulateTD))
    for each in (own, ours):
        each.start((SPARSE[0], np.ones(2)))
        for reward, x in zip(REWARDS, SPARSE[1:], strict=True):
            each.update(reward, (x, np.ones(2)))
    np.testing.assert_array_equal(own.weights, ours.weights)
    assert own.bounded == ours.bounded > 0
    with pytest.raises(ValueError, match=r"trace=.*trueonline\.method"):
        to.method(own_td, name="without").learner(6, **SETTINGS, bound=0.5)


def test_it_is_saved_loaded_and_pickled(tmp_path):
    learner = OWN.learner(6, **SETTINGS)
    learner.run(DENSE[:20], REWARDS[:19])
    learner.save(tmp_path / "own.npz")
    copies = [to.load(tmp_path / "own.npz"), OWN.learner.load(tmp_path / "own.npz"), pickle.loads(pickle.dumps(learner))]
    learner.run(DENSE[19:], REWARDS[19:])
    for copy in copies:
        assert type(copy) is OWN.learner
        copy.run(DENSE[19:], REWARDS[19:])
        np.testing.assert_array_equal(copy.weights, learner.weights)


def test_a_file_is_refused_by_another_rule_of_the_same_name(tmp_path):
    source = (
        "from trueonline.core.kernels import kernel\n\n\n@kernel\ndef own_td(memory, reward):\n    return 0.0, {}, 0.0\n"
    )
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
            agent.step(float(reward), x)
    np.testing.assert_array_equal(agents[0].weights, agents[1].weights)
    agents[0].save(tmp_path / "agent.npz")
    copies = [to.load(tmp_path / "agent.npz"), pickle.loads(pickle.dumps(agents[0]))]
    assert {agent.step(1.0, SPARSE[0]) for agent in (agents[0], *copies)} == {agents[1].step(1.0, SPARSE[0])}


def test_it_is_swept_as_a_row_a_class_and_a_kernel():
    problem = to.problems.random_mrp(5, 2, 0.1, seed=0)
    methods = {"accumulate": None, "row": OWN, "class": OWN.learner, "kernel": own_td}
    table = to.sweep(problem, methods, [0.1, 0.5], [0.0, 0.9], runs=2, steps=30)
    errors = {name: table.filter(np.array(table["method"].to_pylist()) == name)["error"].to_numpy() for name in methods}
    for name in methods:
        np.testing.assert_array_equal(errors[name], errors["accumulate"])


def test_a_rule_says_what_it_asks_for():
    @to.kernel
    def weighed(memory, x, reward, x_next, alpha, beta, gamma_next, rho, interest):
        v, _, v_next = recall(memory, x, x_next)
        decay(memory, 0.0)
        imprint(memory, x, rho * interest, 0.0)
        learn(memory, (alpha + beta) * (reward + gamma_next * v_next - v))
        return v, reward + gamma_next * v_next - v, v_next

    method = to.method(weighed)
    assert method.learner.takes == ("ratio", "interest")
    with pytest.raises(TypeError, match="Weighed needs second_step_size"):
        method.learner(2, **SETTINGS)
    learner = method.learner(2, **SETTINGS, second_step_size=0.4)
    learner.start(0)
    learner.update(1.0, None, ratio=0.5, interest=0.5)
    np.testing.assert_allclose(learner.weights, [0.125, 0.0])
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

    with pytest.raises(TypeError, match=r"strange asks for 'phase'.* must be among x, reward"):
        to.method(strange)
    with pytest.raises(ValueError, match="memory must be one of one, two, three, two traces, got 'four'"):
        to.method(own_td, memory="four")


@pytest.mark.slow
def test_the_file_that_derive_writes_is_a_method(tmp_path):
    (tmp_path / "view.py").write_text(
        "def target(k, h, R, V, gamma, lam):\n"
        "    n_step = lambda n: sum(gamma ** (i - 1) * R[k + i] for i in range(1, n + 1)) + gamma ** n * V(k + n - 1, k + n)\n"
        "    m = h - k\n"
        "    return (1 - lam) * sum(lam ** (n - 1) * n_step(n) for n in range(1, m)) + lam ** (m - 1) * n_step(m)\n"
    )
    command = [sys.executable, "-m", "trueonline", "derive", "view.py", "--out", "derived_rule.py", "--trials", "1"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "sweep.toml").write_text(
        'methods = ["true_online", "derived_rule.py:target"]\nstep_sizes = [0.2]\ntrace_decays = [0.5]\nruns = 2\nsteps = 20\n'
        '[[problems]]\nkind = "random_walk"\n'
    )
    from trueonline.study import run, sweep_file

    table = run(sweep_file.read(tmp_path / "sweep.toml"))
    errors = {
        name: [row["error"] for row in table.to_pylist() if row["method"] == name] for name in ("true_online", "target")
    }
    np.testing.assert_allclose(errors["target"], errors["true_online"], rtol=1e-10)
