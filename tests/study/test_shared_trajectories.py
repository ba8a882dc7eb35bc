"""Trajectories that tasks share: sampled once, never another's, never more than there is room for."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import wraps

import numpy as np
import pytest

import trueonline as to
from tests.study.small_cases import MRP, SEEN, Ring, small
from trueonline import study
from trueonline.study import cases as cases_module
from trueonline.study.kernels.shared_trajectories import Shared


@pytest.fixture(autouse=True)
def _empty(monkeypatch):
    """What other tests have left is not there."""
    monkeypatch.setattr(cases_module, "SHARED", Shared(2**20))


@pytest.fixture
def sampled(monkeypatch):
    """The runs that are sampled, by the seed of the run."""
    seeds, sample = [], to.problems.FiniteMRP.trajectory

    @wraps(sample)
    def trajectory(problem, steps, seed=0):
        seeds.append(seed)
        return sample(problem, steps, seed)

    monkeypatch.setattr(to.problems.FiniteMRP, "trajectory", trajectory)
    return seeds


def parts(number, length=4):
    return (np.full(length, number), *(np.full(length, float(number)) for _ in range(3)))


def same(one, other):
    return all(np.array_equal(part, wanted) for part, wanted in zip(one, other, strict=True))


# --- Of cases -------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 3])
def test_all_methods_and_features_of_a_process_learn_from_runs_that_are_sampled_once(sampled, threads):
    cases = [small(problem, labels={"seen": name}) for name, problem in SEEN.items() if "episodic" not in name]
    assert sum(len(case.tasks()) for case in cases) > 8
    study.run(cases, threads=threads)
    assert sorted(sampled) == [study.run_seed(3, 0), study.run_seed(3, 1)]


class Elsewhere(to.problems.FiniteMRP):
    """Begins in another state."""

    def trajectory(self, steps, seed=0):
        run = super().trajectory(steps + 5, seed)
        return to.problems.Trajectory(run.states[5:], run.rewards[5:], run.discounts[5:])


def elsewhere(process):
    return Elsewhere(process.transitions, process.rewards, process.reward_std, process.features, process.discount)


def test_a_process_of_the_user_within_a_problem_of_this_package_samples_its_own_runs():
    ours, users = (small(to.problems.AverageReward(process)) for process in (MRP, elsewhere(MRP)))
    first = ours.trajectory(0)
    assert same(users.trajectory(0)[:2], elsewhere(MRP).trajectory(20, study.run_seed(3, 0))[:2])
    assert not same(users.trajectory(0), first)
    assert {task.name for task in ours.tasks()}.isdisjoint(task.name for task in users.tasks())


def test_a_class_whose_sampling_was_replaced_samples_in_the_new_way(monkeypatch):
    first, sample = small().trajectory(0), to.problems.FiniteMRP.trajectory
    monkeypatch.setattr(to.problems.FiniteMRP, "trajectory", lambda mrp, steps, seed: sample(mrp, steps, [4, *seed]))
    assert not same(small().trajectory(0), first)


def test_a_problem_whose_noise_was_changed_samples_new_rewards():
    problem = to.problems.random_mdp(10, 3, 2, 0.1, distance=0.7, seed=1)
    first = small(problem, methods={"gtd": None}).trajectory(0)
    problem.reward_std = 1.0
    states, rewards, *_ = small(problem, methods={"gtd": None}).trajectory(0)
    assert np.array_equal(states, first[0])
    assert not np.array_equal(rewards, first[1])


@pytest.mark.parametrize(
    "other",
    [
        small(seed=4),
        small(steps=21),
        small(to.problems.random_mrp(10, 3, 0.1, seed=2)),
        small(to.problems.random_mrp(10, 3, 0.2, seed=1)),
        small(to.problems.random_mrp(10, 3, 0.1, seed=1, discount=0.98)),
        small(to.problems.AverageReward(MRP)),
        small(to.problems.FiniteMRP(MRP.transitions, MRP.rewards, 0.1, start=3)),
    ],
    ids=lambda case: None,
)
def test_a_run_of_another_process_or_seed_or_length_is_another(other):
    case = small()
    for _ in range(2):
        for each in (case, other):
            wanted = each.problem.trajectory(each.steps, study.run_seed(each.seed, 0))
            assert same(each.trajectory(0)[:3], wanted)
    assert not same(case.trajectory(0)[1:3], other.trajectory(0)[1:3])
    assert not same(case.trajectory(0)[1:2], case.trajectory(1)[1:2])


def test_nobody_can_change_what_others_learn_from():
    case = small()
    first = case.trajectory(0)
    kept = [part.copy() for part in first]
    for part in (*first, *case.trajectory(0)):
        part[:] = 7
    assert same(case.trajectory(0), kept)


def test_a_problem_of_the_user_is_asked_each_time(sampled):
    class Mine(to.problems.FiniteMRP):
        pass

    case = small(Mine(MRP.transitions, MRP.rewards))
    for _ in range(3):
        case.trajectory(0)
    assert len(sampled) == 3


def test_a_trajectory_that_the_user_has_put_in_place_of_ours_is_used():
    problem, ring = MRP.with_features(np.eye(10)), Ring()
    assert not same(small(problem).trajectory(0)[:1], ring.trajectory(20, study.run_seed(3, 0))[:1])
    before = [task.name for task in small(problem).tasks()]
    problem.trajectory = lambda steps, seed: (ring.trajectory(steps, seed)[0] % 10, *ring.trajectory(steps, seed)[1:])
    assert same(small(problem).trajectory(0)[1:3], ring.trajectory(20, study.run_seed(3, 0))[1:])
    assert set(before).isdisjoint(task.name for task in small(problem).tasks())


# --- The store of trajectories --------------------------------------------------------------------


def test_what_was_used_last_stays_and_the_rest_makes_room():
    shared, made = Shared(room=3 * 4 * 4 * 8), []

    def get(number):
        return shared.get(number, lambda: made.append(number) or parts(number))

    # 4 takes the place of 2, which was used least recently; then 2 that of 1
    for number in (1, 2, 3, 1, 4, 1, 3, 4, 2, 1):
        assert same(get(number), parts(number))
    assert made == [1, 2, 3, 4, 2, 1]


def test_what_is_larger_than_the_room_is_not_kept_and_later_things_are():
    shared, made = Shared(room=1000), []

    def get(number, length):
        return shared.get(number, lambda: made.append(number) or parts(number, length))

    for number, length in [(1, 100), (1, 100), (2, 4), (2, 4)]:
        assert same(get(number, length), parts(number, length))
    assert made == [1, 1, 2]


def test_a_mistake_is_raised_and_the_next_who_asks_samples_again():
    shared = Shared(room=1000)
    with pytest.raises(ZeroDivisionError):
        shared.get(1, lambda: 1 // 0)
    assert same(shared.get(1, lambda: parts(1)), parts(1))


def test_threads_that_ask_at_once_wait_for_one_sample_and_others_do_not_wait():
    shared, made, begun, go = Shared(room=10_000), [], threading.Event(), threading.Event()

    def slow():
        made.append("slow")
        begun.set()
        go.wait()
        return parts(1)

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(shared.get, 1, slow)
        begun.wait()
        second = pool.submit(shared.get, 1, slow)
        assert same(shared.get(2, lambda: parts(2)), parts(2))  # while 1 is being sampled
        go.set()
        assert same(first.result(), second.result())
    assert made == ["slow"]
