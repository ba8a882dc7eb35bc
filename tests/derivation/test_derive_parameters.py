"""Forward views with parameters of their own."""

from functools import partial

import pytest

import trueonline as to
from tests.derivation.forward_views import capped, td_zero
from trueonline.derivation import ForwardViewError, derive

KINDS = ["active indices"]  # every form of features is compiled anew


def shrunk(k, alpha, rho, kappa):
    return alpha[k] * rho[k] * kappa


@pytest.fixture(scope="module")
def derived():
    return derive(
        capped, shrunk, parameters={"cap": to.Parameter(1.0, least=0.0, about="The largest ratio."), "kappa": 0.5}
    )


def test_the_method_takes_the_parameters_and_equals_its_forward_view_with_any_values(derived):
    assert dict(derived.equations())["c_t"] == "min(cap, ρ_t)·γ_t·λ_t"
    assert r"\min(\mathit{cap}, \rho_t)" in derived.latex()
    assert r"\alpha_t \kappa \rho_t" in derived.latex()
    assert derived.constants == set()
    assert derived.verify(kinds=KINDS, trials=1).exact
    other = partial(derived.learner, cap=0.3, kappa=0.9)
    assert to.verify(other, kinds=KINDS, trials=1).exact
    with_defaults = partial(derived.row.definition, cap=1.0)
    assert not to.verify(other, definition=with_defaults, kinds=KINDS, trials=1).exact


def test_a_learner_shows_and_saves_its_numbers(derived, tmp_path):
    learner = derived.learner(2, 0.2, 0.7, 0.9, cap=0.4)
    assert (learner.cap, learner.kappa) == (0.4, 0.5)
    assert "The largest ratio." in derived.learner.__doc__
    learner.save(tmp_path / "capped.npz")
    assert derived.learner.load(tmp_path / "capped.npz").cap == 0.4


def test_agents_and_sweeps_take_them():
    def share(k, h, R, V, gamma, part):
        return R[k + 1] + part * gamma[k + 1] * V(k, k + 1)

    found = derive(share, parameters={"part": to.Parameter(1.0, 0.0, 1.0)})
    agent = found.agent(2, 2, 0.5, 0.0, 1.0, part=0.5, initial_weights=[[0.0, 0.0], [4.0, 4.0]], seed=0)
    action = agent.start(0)
    agent.step(1.0, 1)
    assert agent.weights[0, action] == 0.5 * (1.0 + 0.5 * 4.0)
    assert to.verify(partial(found.agent, part=0.3), kinds=KINDS, trials=1).exact
    table = to.sweep(
        to.problems.random_mrp(5, 3, 0.1),
        {"share": found.learner},
        [0.1],
        [0.0],
        runs=1,
        steps=20,
        parameters={"part": [0.0, 1.0]},
    )
    assert table["part"].to_pylist() == [0.0, 1.0]
    assert len(set(table["error"].to_pylist())) == 2


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({}, r"there is no 'cap' to write a forward view with; .* give its value, as in parameters=\{'cap': 1.0\}"),
        ({"cap": 1.0, "capp": 1.0}, "there is a parameter 'capp', which neither the target nor the step-size asks for"),
        ({"cap": "much"}, "the default of cap must be a finite number, got 'much'"),
        ({"cap": 10**400}, "the default of cap must be a finite number, got 10+"),
        ({"cap": to.Parameter(2.0, "0")}, "the least cap must be a number, got '0'"),
        ({"cap": to.Parameter(2.0, 0.0, 1.0)}, "the default of cap must be a finite number from 0 to 1, got 2.0"),
        ({"cap": 1.0, "V": 1.0}, "a parameter may not be called 'V'"),
        ({"cap": 1.0, "run": 1.0}, "a parameter may not be called 'run'"),
        (["cap"], "parameters must be a mapping from names to defaults"),
    ],
    ids=str,
)
def test_what_is_no_parameter_is_refused_by_name(parameters, said):
    with pytest.raises(ValueError, match=said):
        derive(capped, parameters=parameters)


def test_a_parameter_without_effect_and_one_that_is_compared_are_refused():
    with pytest.raises(ForwardViewError, match="does not depend on the parameter 'idle'"):
        derive(lambda k, h, R, V, gamma, idle: td_zero(k, h, R, V, gamma) + 0 * idle, parameters={"idle": 1.0})
    with pytest.raises(ForwardViewError, match="may not depend on whether cap is 1"):
        derive(lambda k, h, R, cap: R[k + 1] * (2 if cap == 1 else 1), parameters={"cap": 1.0})


def test_the_command_takes_the_parameters_of_a_file(tmp_path):
    from click.testing import CliRunner

    from trueonline.cli import main

    file = tmp_path / "view.py"
    file.write_text(
        "parameters = {'part': 0.5}\ndef share(k, h, R, V, part):\n    return R[k + 1] + part * V(k, k + 1)\n"
    )
    said = CliRunner().invoke(main, ["derive", str(file), "--trials", "0"])
    assert said.exit_code == 0, said.output
    assert "U_t^{t+1} = R_{t+1} + part·V_t(S_{t+1})" in said.output
