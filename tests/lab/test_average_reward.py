"""The study of average reward, scaled down: its numbers come from exact solutions, and few runs decide nothing."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from trueonline.cli import main
from trueonline.lab.claims import HOLDS, NOISE
from trueonline.lab.experiments import average_reward
from trueonline.problems import AccessControl, AverageReward, random_mrp


@pytest.fixture(scope="module")
def studied(tmp_path_factory):
    out = tmp_path_factory.mktemp("average")
    small = {
        "STEPS": 400,
        "PIECE": 100,
        "LONG_RUN": 300,
        "SHORT_RUN": 50,
        "CONTROL_STEP_SIZES": (0.1,),
        "STEP_SIZES": (0.1, 0.3),
    }
    small |= {"CHECKPOINTS": np.array([10, 300]), "RUNS_OF_SWEEP": 1}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in small.items():
            patch.setattr(average_reward.spec, name, value)
        result = CliRunner().invoke(main, ["reproduce", "average-reward", "--runs", "2", "--out", str(out)])
    assert result.exit_code == 0, result.output
    return out, result


def test_it_leaves_its_files(studied):
    out, _ = studied
    for file in ("figure.png", "figure.pdf", "data.csv"):
        assert (out / "average-reward" / file).stat().st_size > 300, file
    rows = pq.read_table(out / "average-reward" / "data.parquet").to_pylist()
    assert {(row["task"], row["method"]) for row in rows} == {
        ("random processes", "true_online_differential"),
        ("random processes", "true_online"),
        ("access control", "true_online_differential_sarsa"),
        ("access control", "true_online_sarsa"),
    }
    assert len(rows) == 5 * 2 * (3 + 1) + 2 * 2


def test_the_equality_holds_and_two_runs_decide_nothing_else(studied):
    verdicts = json.loads((studied[0] / "verdicts.json").read_text())
    assert [each["verdict"] for each in verdicts] == [HOLDS, *[NOISE] * 8]


def test_the_error_of_a_discounting_method_is_that_of_the_differential_values():
    problem = AverageReward(random_mrp(6, 2, 0.1, seed=0))
    other = average_reward.random_processes.Discounted(problem)
    np.testing.assert_array_equal(other.metric, problem.metric)
    mine, theirs = problem.trajectory(30, 1), other.trajectory(30, 1)
    np.testing.assert_array_equal(mine.rewards, theirs.rewards)
    assert set(theirs.discounts) == {0.99}


def test_what_it_compares_with_is_exact():
    queue = AccessControl()
    rates = average_reward.queue_runs.exact_rates(queue)
    assert rates["accept all"] < rates["optimal, ε-greedy"] < rates["optimal"] == queue.optimal_reward_rate
