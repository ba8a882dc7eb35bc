"""Differential TD(λ) and Sarsa(λ): what they keep, refuse and save. `tests/test_catalog.py` has their definitions."""

import copy
from functools import partial

import numpy as np
import pytest

import trueonline as to
from trueonline.control import TrueOnlineDifferentialSarsa
from trueonline.problems import AverageReward, random_mrp

N = 6
BETA = {"second_step_size": 0.1}
SETTINGS = {"step_size": 0.1, "trace_decay": 0.8, **BETA}


def test_the_rate_is_kept_at_a_start_and_forgotten_at_a_reset():
    learner = to.TrueOnlineDifferentialTD(N, **SETTINGS)
    learner.run(np.eye(N), np.ones(N - 1))
    rate = learner.reward_rate
    learner.start(0)
    assert learner.reward_rate == rate != 0.0
    learner.reset()
    assert learner.reward_rate == 0.0


def test_what_it_does_not_have_is_refused():
    for kind, numbers in ((to.TrueOnlineDifferentialTD, (N,)), (TrueOnlineDifferentialSarsa, (N, 2))):
        for adaptation in ({"bound": 1.0}, {"meta_step_size": 0.01}):
            with pytest.raises(ValueError, match="step-size adaptation does not know of its reward rate"):
                kind(*numbers, **SETTINGS, **adaptation)
        with pytest.raises(TypeError, match="needs second_step_size"):
            kind(*numbers, 0.1, 0.8)
        with pytest.raises(TypeError, match="'reward_rate_step_size': use second_step_size"):
            kind(*numbers, 0.1, 0.8, reward_rate_step_size=0.1)
    with pytest.raises(TypeError, match="takes no second_step_size: it has neither second weights nor a reward rate"):
        to.control.TrueOnlineSarsa(N, 2, 0.1, 0.8, 1.0, **BETA)
    with pytest.raises(TypeError, match="takes no ratio"):
        to.TrueOnlineDifferentialTD(N, **SETTINGS).update(1.0, 0, ratio=1.0)


# --- Sarsa ------------------------------------------------------------------------------------------


def test_a_saved_agent_goes_on(tmp_path):
    def act(agent):
        for t in range(30):
            agent.step(float(t % 7), t * t % 5)

    schedule = {"second_step_size": lambda t: 0.1 / (1 + t)}
    agent = TrueOnlineDifferentialSarsa(5, 2, 0.1, 0.8, **schedule, seed=3)
    agent.start(0)
    act(agent)
    agent.save(tmp_path / "agent.npz")
    with pytest.raises(ValueError, match="load it with second_step_size=schedule"):
        to.load(tmp_path / "agent.npz")
    others = to.load(tmp_path / "agent.npz", **schedule), copy.deepcopy(agent)
    for each in (agent, *others):
        act(each)
    for other in others:
        np.testing.assert_array_equal(other.weights, agent.weights)
        assert other.reward_rate == agent.reward_rate != 0.0
    assert "second_step_size=0.1" in repr(TrueOnlineDifferentialSarsa(5, 2, 0.1, 0.8, **BETA))


# --- Sweeps, verify and derive ------------------------------------------------------------------------


def test_sweeps_know_which_methods_fit_which_problem():
    process = random_mrp(6, 2, 0.1, seed=2)
    assert to.study.applicable(AverageReward(process)) == ("true_online_differential",)
    assert "true_online_differential" not in to.study.applicable(process)
    with pytest.raises(ValueError, match=r"sweep it on trueonline\.problems\.AverageReward"):
        to.sweep(process, "true_online_differential", runs=1, steps=5)


def test_verify_compares_the_rate_too():
    class Forgetful(to.TrueOnlineDifferentialTD):
        """The weights are right, and the rate is not what it says."""

        @property
        def reward_rate(self):
            return 0.0

    assert not to.verify(partial(Forgetful, **BETA), trials=1, steps=10, kinds=["dense"]).exact


def test_the_derived_method_is_the_built_in_one():
    pytest.importorskip("sympy")
    from trueonline.derivation import views

    derived = to.derive(views.differential_lambda_return)
    equations = dict(derived.equations())
    assert equations["c_t"] == "γ_t·λ_t"
    assert equations["d_t"] == "R_{t+1} − R̄_t + γ_{t+1}·V_t(S_{t+1}) − V_{t−1}(S_t)"
    assert equations["R̄_{t+1}"] == "R̄_t + β_t·(R_{t+1} − R̄_t + γ_{t+1}·V_t(S_{t+1}) − V_t(S_t))"
    assert r"\bar{R}_{t+1} &= \bar{R}_t + \beta_t" in derived.latex()
    assert derived.checked.exact


def test_the_off_policy_method_can_be_derived():
    pytest.importorskip("sympy")
    from trueonline.derivation import views

    def off_policy(k, h, R, V, gamma, lam, rho, rbar):
        if k + 1 == h:
            return R[h] - rbar[k] + gamma[h] * V(k, h)
        later = rho[k + 1] * off_policy(k + 1, h, R, V, gamma, lam, rho, rbar) + (1 - rho[k + 1]) * V(k, k + 1)
        return R[k + 1] - rbar[k] + gamma[k + 1] * ((1 - lam[k + 1]) * V(k, k + 1) + lam[k + 1] * later)

    derived = to.derive(off_policy, views.ratio_step)
    assert dict(derived.equations())["R̄_{t+1}"].startswith("R̄_t + β_t·ρ_t·(R_{t+1} − R̄_t")
    assert derived.checked.exact
