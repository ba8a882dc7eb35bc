"""Makers of features: tables, settings and copies, what learners take, and features that fit a space."""

import copy
import json
import pickle
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

import trueonline as to
from tests.features.formulas import INF
from trueonline.features import Fourier, Table, TileCoder, from_space, restore

# --- Tables ---------------------------------------------------------------------------------------


def test_a_table_has_a_feature_for_each_state():
    table = Table(5, start=-2)
    assert [int(table(x)[0]) for x in range(-2, 3)] == [0, 1, 2, 3, 4]
    assert (table.n_features, table.n_active) == (5, 1)
    assert table(np.int32(0)).dtype == np.int64
    assert table(np.array(1)).tolist() == [3]
    assert table.many([-2, 2, 0]).tolist() == [[0], [4], [2]]


def test_a_table_of_several_numbers_is_row_major():
    sizes, start = (3, 1, 4), (0, 5, -1)
    table = Table(sizes, start)
    states = [tuple(i + s for i, s in zip(at, start, strict=True)) for at in product(*map(range, sizes))]
    assert [int(table(state)[0]) for state in states] == list(range(12))
    assert table.many(states)[:, 0].tolist() == list(range(12))
    assert table(np.array(states[7])).tolist() == [7]


@pytest.mark.parametrize("bad", [5, -1, 1.0, True, None, "1", [1], np.array([1]), np.array(1.0)])
def test_states_outside_a_table_are_refused(bad):
    with pytest.raises(ValueError, match="the observation must be a whole number from 0 to 4"):
        Table(5)(bad)


@pytest.mark.parametrize("bad", [(3, 0), (0, 2), (0,), (0, 0, 0), 0, (0.0, 0)])
def test_tuples_outside_a_table_are_refused(bad):
    with pytest.raises(ValueError, match="the observation must be"):
        Table((3, 2))(bad)


def test_bad_rows_and_settings_of_tables_are_refused():
    with pytest.raises(ValueError, match="X must hold whole numbers from 1 to 3, got 4 in row 1"):
        Table(3, start=1).many([1, 4])
    with pytest.raises(ValueError, match="from 0 to 1 in column 1, got -1 in row 0"):
        Table((3, 2)).many([[2, -1]])
    with pytest.raises(ValueError, match="X must be whole numbers, got float64"):
        Table(3).many([0.0, 1.0])
    for arguments, message in (
        (((), 0), "must make 1 to"),
        ((0,), "n must be a whole number"),
        (((2, 0.5),), r"n\[1\] must be a whole number"),
        (((2**20, 2**20),), "must make 1 to"),
        ((3, 0.5), "start must be one whole number"),
        (((3, 2), (0, 0, 0)), "start must be one whole number"),
    ):
        with pytest.raises(ValueError, match=message):
            Table(*arguments)


# --- Settings and copies --------------------------------------------------------------------------

MAKERS = [
    TileCoder([0.0, -1.2], [1.0, 0.6]),
    TileCoder([-INF, 0.1, -5.0], [INF, 1e12, 0.3], bins=[2, 3, 4], tilings=5, bias=True, scales=[0.3, 2.0, 1.0]),
    TileCoder(np.zeros(3), np.ones(3), groups=[(0,), (2, 1)], size=30, bias=True),
    TileCoder(np.zeros((3, 1), np.float32), np.full((3, 1), 0.1, np.float32)),
    TileCoder(0.0, 1.0, bins=3),
    Fourier([0.0, -INF], [1.0, 1.0], order=2, scales=3.0),
    Fourier([0.0, -INF, 0.0], [1.0, 1.0, 1.0], coupled=False),
]
TABLES = [Table(6, start=1), Table((3, 2), start=(1, 0)), Table([4])]


@pytest.mark.parametrize("maker", [*MAKERS, *TABLES], ids=repr)
def test_settings_make_the_same_maker(maker):
    written = json.dumps(maker.settings(), allow_nan=False)
    again = restore(json.loads(written))
    other = type(maker)(**json.loads(written))
    assert type(again) is type(maker)
    for x in (
        np.random.default_rng(0).normal(size=(40, *np.shape(maker.settings().get("low")))) if maker in MAKERS else ()
    ):
        np.testing.assert_array_equal(again(x), maker(x))
        np.testing.assert_array_equal(other(x), maker(x))
    assert again.settings() == other.settings() == maker.settings()
    assert (again.n_features, again.n_active, repr(again)) == (maker.n_features, maker.n_active, repr(maker))


@pytest.mark.parametrize("maker", MAKERS, ids=repr)
def test_copies_go_on_counting(maker):
    shape = np.shape(maker.settings()["low"])
    X = np.random.default_rng(1).normal(size=(40, *shape))
    for duplicate in (copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))):
        original = restore(maker.settings())
        original.many(X[:20])
        other = duplicate(original)
        np.testing.assert_array_equal(other.clipped, original.clipped)
        original.many(X)
        assert (other.clipped <= original.clipped).all()
        other.many(X)
        np.testing.assert_array_equal(other.clipped, original.clipped)
        assert getattr(other, "collisions", 0) == getattr(original, "collisions", 0)


@pytest.mark.parametrize("bad", [None, {}, {"kind": "squares"}, {"kind": "table"}, {"kind": "tiles", "wide": 3}, "table"])
def test_bad_settings_are_refused(bad):
    with pytest.raises(ValueError, match="settings"):
        restore(bad)


# --- From spaces ----------------------------------------------------------------------------------


def environment(gymnasium, name):
    """The newest version of an environment."""
    versions = [each for each in gymnasium.registry if each.rpartition("-v")[0] == name]
    return gymnasium.make(max(versions, key=lambda each: int(each.rpartition("-v")[2])))


@pytest.mark.parametrize(
    ("name", "kind", "maker", "n_features", "n_active"),
    [
        ("MountainCar", "auto", TileCoder, 8 * 8**2, 8),
        ("Acrobot", "tiles", TileCoder, 8 * 5**6, 8),
        ("MountainCar", "fourier", Fourier, 4**2, 4**2),
        ("Taxi", "auto", Table, 500, 1),
        ("FrozenLake", "table", Table, 16, 1),
        ("Blackjack", "auto", Table, 32 * 11 * 2, 1),
    ],
)
def test_environments_get_features(name, kind, maker, n_features, n_active):
    env = environment(pytest.importorskip("gymnasium"), name)
    make = from_space(env.observation_space, kind)
    assert type(make) is maker
    assert (make.n_features, make.n_active) == (n_features, n_active)
    again = restore(json.loads(json.dumps(make.settings())))
    learner = to.TrueOnlineTD(make.n_features, step_size=0.01, trace_decay=0.9, discount=1.0)
    observation, _ = env.reset(seed=1)
    env.action_space.seed(1)
    learner.start(make(observation))
    for _ in range(30):
        observation, reward, ended, cut, _ = env.step(env.action_space.sample())
        x = make(observation)
        assert len(x) == n_active
        np.testing.assert_array_equal(x, again(observation))
        np.testing.assert_array_equal(make.many([observation])[0], x)
        learner.update(float(reward), None if ended else x)
        if ended or cut:
            observation, _ = env.reset()
            learner.start(make(observation))
    env.close()
    assert learner.steps == 30


def test_spaces_of_states_become_tables():
    spaces = pytest.importorskip("gymnasium").spaces
    assert from_space(spaces.Discrete(4, start=-1))(-1).tolist() == [0]
    several = from_space(spaces.MultiDiscrete([3, 4], start=[1, 0]))
    assert several(np.array([2, 3])).tolist() == [7]
    mixed = from_space(spaces.Tuple([spaces.Discrete(3), spaces.Discrete(2, start=5)]))
    assert mixed((2, 6)).tolist() == [5]
    for space, make in ((spaces.MultiDiscrete([3, 4], start=[1, 0]), several),):
        space.seed(0)
        assert all(0 <= int(make(space.sample())[0]) < make.n_features for _ in range(50))


def test_boxes_get_as_many_tiles_as_fit():
    spaces = pytest.importorskip("gymnasium").spaces
    expected = {1: 64, 2: 512, 3: 4096, 4: 32_768, 5: 8 * 7**5, 6: 8 * 5**6, 7: 8 * (7 * 8 + 21 * 64), 29: 8 * 29 * 8}
    for d, tiles in expected.items():
        coder = from_space(spaces.Box(-1.0, 1.0, (d,)))
        assert coder.n_features == tiles <= 200_000
        assert coder.many(np.zeros((2, d))).shape == (2, coder.n_active)
    assert from_space(spaces.Box(-1.0, 1.0, (28,))).n_active == 8 * (28 + 378)
    assert from_space(spaces.Box(0.0, 1.0, (2, 3)))(np.full((2, 3), 0.5)).shape == (8,)
    assert from_space(spaces.Box(0.0, 1.0, (7,)), "fourier").n_features == 1 + 7 * 3
    given = from_space(spaces.Box(0.0, 1.0, (2,)), bins=3, tilings=4, bias=True)
    assert (given.n_features, given.n_active) == (4 * 9 + 1, 5)
    assert from_space(spaces.Box(0.0, 1.0, (7,)), groups=[(0, 6)]).n_features == 8 * 64


def test_other_spaces_are_refused():
    spaces = pytest.importorskip("gymnasium").spaces
    two = spaces.Discrete(2)
    others = [
        spaces.Dict({"a": two}),
        spaces.Text(3),
        spaces.Tuple([two, spaces.Box(0.0, 1.0, (2,))]),
        spaces.Tuple([two, spaces.MultiDiscrete([2, 2])]),
        spaces.OneOf([two, two]),
        spaces.Sequence(two),
        None,
        "Box",
    ]
    for space in others:
        with pytest.raises(ValueError, match="supported are Discrete, MultiDiscrete, Tuple of Discrete, MultiBinary"):
            from_space(space)
    with pytest.raises(ValueError, match=r"210 numbers.*Atari.*your own function"):
        from_space(spaces.Box(0, 255, (10, 7, 3), np.uint8))


def test_kinds_and_options_that_do_not_fit_are_refused():
    spaces = pytest.importorskip("gymnasium").spaces
    with pytest.raises(ValueError, match="kind must be one of auto, table, tiles, fourier, bits, got 'rbf'"):
        from_space(spaces.Discrete(3), "rbf")
    with pytest.raises(ValueError, match="gets a table, without options"):
        from_space(spaces.Discrete(3), "tiles")
    with pytest.raises(ValueError, match="gets a table, without options"):
        from_space(spaces.Discrete(3), bins=3)
    with pytest.raises(ValueError, match="holds numbers, not states"):
        from_space(spaces.Box(0.0, 1.0, (2,)), "table")


@pytest.mark.parametrize("size", [None, 100])
def test_places_that_are_not_those_of_the_coder_are_refused(size):
    coder = TileCoder([0, 0], [1, 1], bins=4, tilings=4, size=size)
    coder([2.0, 0.5])
    state = coder.__getstate__()
    copy = TileCoder(0, 1)
    copy.__setstate__(state)
    assert copy.clipped.tolist() == [1, 0]
    assert copy.collisions == coder.collisions
    places = state["places"]
    crafted = [places[:-1], places[:1], places.astype(float), np.full_like(places, -1), np.full_like(places, 2**40)]
    for place, value in [*((place, 2**40) for place in (*range(7), *range(8, 13), 18, 25, 30)), (7, -1), (16, -1)]:
        crafted.append(places.copy())  # 7 and 16 are counts
        crafted[-1][place] = value
    for bad in crafted:
        with pytest.raises(ValueError, match="its places does not fit"):
            TileCoder(0, 1).__setstate__({**state, "places": bad})


def test_the_space_of_several_environments_side_by_side_is_refused():
    low = np.array([-4.8, -np.inf])
    with pytest.raises(ValueError, match="of 3 environments side by side: give the single_observation_space"):
        from_space(SimpleNamespace(low=np.tile(low, (3, 1)), high=np.tile(-low, (3, 1)), shape=(3, 2)))
