"""Tiles: every index against the formula in the docstring, computed the slow way, and observations that do not fit."""

import math
from itertools import count, islice, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.features.formulas import INF, drawn, scaled
from trueonline.features import Fourier, TileCoder
from trueonline.features.tile_kernels import MAX_KEYS, mixed

# --- The definitions ------------------------------------------------------------------------------


def numbered(u, bins, tilings, groups=None):
    """The numbers of the tiles in which u lies."""
    found, first = [], 0
    for group in groups or [range(len(u))]:
        multipliers = islice((m for m in count(1, 2) if math.gcd(m, tilings) == 1), len(group))
        multipliers = dict(zip(group, multipliers, strict=True))
        tiles = math.prod(bins[i] for i in group)
        for k in range(tilings):
            number = 0
            for i in group:
                steps = tilings * (bins[i] - 1) + 1
                step = min(math.floor(steps * u[i]), steps - 1)
                cell = (step + k * multipliers[i] % tilings) // tilings
                assert 0 <= cell < bins[i]
                number = number * bins[i] + cell
            found.append(first + k * tiles + number)
        first += tilings * tiles
    return found


def splitmix64(number):
    mask = 2**64 - 1
    z = (number + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
    return z ^ z >> 31


def hashed(number, room):
    """The index of a tile: the upper half of splitmix64, as a fraction of the room."""
    return (splitmix64(number) >> 32) * room >> 32


def without_repeats(indices):
    return list(dict.fromkeys(indices))


# --- Tiles: which are active ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(18))
def test_active_tiles_are_those_of_the_formula(seed):
    rng = np.random.default_rng(seed)
    d, tilings = int(rng.integers(1, 5)), int(rng.integers(1, 12))
    low, high, bins, scales = drawn(rng, d)
    groups = None if seed % 2 else [(d - 1,), tuple(rng.permutation(d).tolist())][: 1 + (d > 1)]
    bias = bool(seed % 3 == 0)
    coder = TileCoder(low, high, bins=bins, tilings=tilings, bias=bias, groups=groups, scales=scales)
    X = rng.normal(size=(50, d)) * 20
    expected = []
    for x in X.tolist():
        u = [scaled(*each) for each in zip(x, low.tolist(), high.tolist(), scales.tolist(), strict=True)]
        expected.append(numbered(u, bins, tilings, groups) + [coder.n_features - 1] * bias)
    found = [coder(x) for x in X]
    assert all(each.dtype == np.int64 and each.flags.c_contiguous for each in found)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(coder.many(X), expected)
    assert coder.n_active == len(expected[0])
    assert coder.n_features == bias + tilings * sum(math.prod(bins[i] for i in g) for g in groups or [range(d)])


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 20), st.data())
def test_borders_belong_to_the_cell_that_the_formula_gives(tilings, bins, data):
    """Low, high, every border of every tiling, and their neighbours in double precision."""
    low = data.draw(st.floats(-100, 100))
    high = low + data.draw(st.floats(0.01, 100))
    coder = TileCoder([low], [high], bins=bins, tilings=tilings)
    steps = tilings * (bins - 1) + 1
    border = low + (high - low) * data.draw(st.integers(0, steps)) / steps
    for x in (low, high, border, math.nextafter(border, INF), math.nextafter(border, -INF)):
        assert coder(np.array([x])).tolist() == numbered([scaled(x, low, high)], [bins], tilings)


@pytest.mark.parametrize(("bins", "tilings", "d"), [(1, 1, 1), (4, 1, 1), (3, 5, 1), (1, 4, 2), (3, 4, 2), (2, 6, 3)])
def test_every_tile_can_be_reached_and_none_is_outside(bins, tilings, d):
    coder = TileCoder([0.0] * d, [1.0] * d, bins=bins, tilings=tilings)
    steps = tilings * (bins - 1) + 1
    middles = (np.arange(steps) + 0.5) / steps
    seen = np.unique(coder.many(np.array(list(product(middles, repeat=d)))))
    assert seen.tolist() == list(range(coder.n_features)) == list(range(tilings * bins**d))


# --- Tiles: hashing -------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "bias"), [(1, False), (2, True), (7, False), (50, True), (2000, False), (10**6, True)])
def test_hashing_is_that_of_the_formula_and_collisions_are_counted(size, bias):
    rng = np.random.default_rng(size)
    bins, tilings, d = [4, 3, 5], 6, 3
    coder = TileCoder([0.0] * d, [1.0] * d, bins=bins, tilings=tilings, size=size, bias=bias)
    batch = TileCoder([0.0] * d, [1.0] * d, bins=bins, tilings=tilings, size=size, bias=bias)
    assert (coder.n_features, coder.n_active) == (size, tilings + bias)
    seen, taken, collisions, repeats = set(), set(), 0, 0
    X = rng.random((400, d))
    for x in X:
        indices = []
        for number in numbered(x.tolist(), bins, tilings):
            indices.append(hashed(number, size - bias))
            collisions += number not in seen and indices[-1] in taken
            seen.add(number)
            taken.add(indices[-1])
        expected = without_repeats(indices) + [size - 1] * bias
        repeats += len(expected) < coder.n_active
        assert coder(x).tolist() == expected
        assert len(set(expected)) == len(expected)
        assert max(expected) < size
        assert coder.collisions == collisions
    assert (collisions > 0) == (repeats > 0) == (size < 10**6)
    rows = batch.many(X)
    assert isinstance(rows, list if repeats else np.ndarray)
    assert [row.tolist() for row in rows] == [coder(x).tolist() for x in X]
    assert batch.collisions == coder.collisions == collisions  # seen again is not counted again


def test_the_hash_is_splitmix64():
    assert mixed(0) == splitmix64(0) == 0xE220A8397B1DCDAF  # the generator's first number from seed 0
    numbers = [int(each) for each in np.random.default_rng(0).integers(0, 2**62, 1000)]
    assert [int(mixed(each)) for each in numbers] == [splitmix64(each) for each in numbers]


def test_the_papers_count_of_features():
    """Ten bins for each of five signals, eight tilings, a bias (section 5.2), and the same hashed."""
    whole = TileCoder([0.0] * 5, [1.0] * 5, bins=10, tilings=8, bias=True)
    assert (whole.n_features, whole.n_active) == (800_001, 9)
    coder = TileCoder([0.0] * 5, [1.0] * 5, bins=10, tilings=8, bias=True, size=200_000)
    assert (coder.n_features, coder.n_active) == (200_000, 9)


def test_more_tiles_than_bits_are_counted_nearly():
    coder = TileCoder([0.0] * 6, [1.0] * 6, bins=32, tilings=8, size=1000)
    assert MAX_KEYS < 8 * 32**6
    X = np.random.default_rng(0).random((2000, 6))
    coder.many(X)
    seen = {number for x in X.tolist() for number in numbered(x, [32] * 6, 8)}
    exact = len(seen) - len({hashed(number, 1000) for number in seen})
    assert 0.99 * exact <= coder.collisions <= exact


# --- What is clipped, squashed or refused ---------------------------------------------------------


@pytest.mark.parametrize("maker", [TileCoder, Fourier])
def test_clipped_numbers_are_moved_to_the_bound_and_counted(maker):
    make = maker([0.0, -INF, -1.0], [1.0, 2.0, 1e30])
    at_bounds = maker([0.0, -INF, -1.0], [1.0, 2.0, 1e30])
    given = [[-0.5, 3.0, -9.0], [1.5, -1e8, 1e8], [0.0, 2.0, -1.0], [1.0, 0.0, 0.0]]
    moved = [[0.0, 2.0, -1.0], [1.0, -1e8, 1e8], [0.0, 2.0, -1.0], [1.0, 0.0, 0.0]]
    for x, y in zip(given, moved, strict=True):
        np.testing.assert_array_equal(make(np.array(x)), at_bounds(np.array(y)))
    assert make.clipped.tolist() == [2, 1, 1]
    assert at_bounds.clipped.tolist() == [0, 0, 0]
    make.many(given)
    assert make.clipped.tolist() == [4, 2, 2]
    make.clipped[:] = 9
    assert make.clipped.tolist() == [4, 2, 2]


@pytest.mark.parametrize("maker", [TileCoder, Fourier])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.array([5.0, np.nan]), "must be finite, got nan at position 1"),
        (np.array([-np.inf, 5.0]), "must be finite, got -inf at position 0"),
        (np.array([5.0, np.inf], np.float32), "must be finite, got inf at position 1"),
        ([5.0, np.nan], "must be finite, got nan at position 1"),
        (np.zeros(3), r"must have shape \(2,\), got shape \(3,\)"),
        (np.zeros((1, 2)), r"must have shape \(2,\), got shape \(1, 2\)"),
        (5.0, r"must have shape \(2,\), got shape \(\)"),
        ([True, False], "must be numbers, got dtype bool"),
        (["0", "1"], "must be numbers, got dtype <U1"),
        (None, "must be numbers, got dtype object"),
        ([[1.0], [1.0, 2.0]], "must be an array of numbers"),
    ],
)
def test_bad_observations_are_refused_and_nothing_is_counted(maker, bad, message):
    make = maker([0.0, 0.0], [1.0, 1.0])
    with pytest.raises(ValueError, match=f"the observation {message}"):
        make(bad)
    with pytest.raises(ValueError, match="X"):
        make.many([bad, bad])
    assert make.clipped.tolist() == [0, 0]


@pytest.mark.parametrize("maker", [TileCoder, Fourier])
def test_a_bad_row_is_named(maker):
    make = maker([0.0, 0.0], [1.0, 1.0])
    with pytest.raises(ValueError, match=r"X\[2\] must be finite, got nan at position 1"):
        make.many([[0.0, 0.0], [9.0, 0.0], [0.0, np.nan]])
    with pytest.raises(ValueError, match=r"each row of X must have shape \(2,\), got X of shape \(3,\)"):
        make.many(np.zeros(3))
    assert make.clipped.tolist() == [0, 0]


@pytest.mark.parametrize("maker", [TileCoder, Fourier])
def test_every_type_of_number_gives_the_same(maker):
    make = maker([0.0, -INF], [4.0, INF])
    x = np.array([1.0, 2.0])
    frozen, apart = x.copy(), np.array([1.0, 7.0, 2.0, 7.0])[::2]
    frozen.flags.writeable = False
    others = [x.astype(kind) for kind in ("f4", "f2", "i8", "u1", ">f8", "g")]
    for other in (*others, [1, 2], (1.0, 2), frozen, apart):
        np.testing.assert_array_equal(make(other), make(x))
        np.testing.assert_array_equal(make.many([other])[0], make(x))


def test_results_are_fresh():
    coder, basis = TileCoder([0.0], [1.0]), Fourier([0.0], [1.0])
    for make in (coder, basis):
        before = make(np.array([0.3]))
        kept = before.copy()
        make(np.array([0.9]))
        np.testing.assert_array_equal(before, kept)
        before[:] = 0
        np.testing.assert_array_equal(make(np.array([0.3])), kept)


@pytest.mark.parametrize("bounds", [(-INF, INF), (-3.0, INF), (-INF, 3.0), (-3e38, 3e38), ("-inf", "inf")])
@pytest.mark.parametrize("scale", [0.01, 1.0, 50.0])
def test_squashing_is_monotone_and_stays_inside(bounds, scale):
    """A fine grid: its step number is F·u, which grows with x."""
    low, high = (float(each) for each in bounds)
    coder = TileCoder([bounds[0]], [bounds[1]], bins=100_000, tilings=1, scales=scale)
    size = np.concatenate([np.logspace(-3, 6, 300), np.logspace(6, 300, 30)])
    x = np.concatenate([-size[::-1], [0.0], size])
    x = x[((x >= low) | (low < -1e9)) & ((x <= high) | (high > 1e9))]
    steps = coder.many(x[:, None])[:, 0]
    assert (np.diff(steps) >= 0).all()
    assert steps[0] >= 0
    assert steps[-1] <= 99_999
    assert len(np.unique(steps)) > 100
    assert coder.clipped.tolist() == [0]


def test_half_of_a_side_lies_within_its_scale():
    for low, high, x, u in ((-INF, INF, 2.0, 0.75), (1.0, INF, 3.0, 0.5), (-INF, 1.0, -1.0, 0.5), (-INF, INF, 0.0, 0.5)):
        assert Fourier([low], [high], order=1, scales=2.0)([x])[1] == pytest.approx(math.cos(math.pi * u), abs=1e-15)


def test_far_bounds_are_none():
    most = float(np.finfo(np.float32).max)
    coder = TileCoder([-most, -1e9, 0.0], [most, 5.0, 1e9])
    assert coder.settings()["low"] == ["-inf", "-inf", 0.0]
    assert coder.settings()["high"] == ["inf", 5.0, "inf"]


def test_observations_have_the_shape_of_the_bounds():
    flat = TileCoder(np.zeros(6), np.arange(1.0, 7.0), bins=2)
    shaped = TileCoder(np.zeros((2, 3)), np.arange(1.0, 7.0).reshape(2, 3), bins=2)
    x = np.random.default_rng(0).random(6) * 7
    assert shaped(x.reshape(2, 3)).tolist() == flat(x).tolist()
    assert shaped.many([x.reshape(2, 3)]).tolist() == [flat(x).tolist()]
    assert shaped.clipped.tolist() == flat.clipped.tolist()
    with pytest.raises(ValueError, match=r"must have shape \(2, 3\), got shape \(6,\)"):
        shaped(x)
    number = TileCoder(0.0, 1.0)
    assert number(0.3).tolist() == TileCoder([0.0], [1.0])([0.3]).tolist()
    assert number.many([0.3, 0.4]).shape == (2, 8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"low": [0.0, 1.0]}, r"low must be below high, got low = 1.0 and high = 1.0 at position 1"),
        ({"low": [0.0, np.nan]}, r"low\[1\] must be a number, inf or -inf, got nan"),
        ({"low": [0.0, True]}, r"low\[1\] must be a number"),
        ({"low": [0.0, -(10**400)]}, r"low\[1\] must be a number"),
        ({"high": ["wide", 1.0]}, r"high\[0\] must be a number, inf or -inf, got 'wide'"),
        ({"low": [0.0, 0.0, 0.0]}, r"low and high must have one shape, got \(3,\) and \(2,\)"),
        ({"low": [], "high": []}, "at least one number"),
        ({"low": [2e9, 0.0], "high": [3e9, 1.0]}, "rescale the observations"),
        ({"scales": 0.0}, "scales must be a finite number > 0, got 0.0"),
        ({"scales": [1.0, -1.0]}, r"scales\[1\] must be a finite number > 0"),
        ({"scales": [1.0, 1.0, 1.0]}, "scales must be one number or have the shape"),
        ({"bins": 0}, "bins must be a whole number from 1"),
        ({"bins": [4, 2.5]}, r"bins\[1\] must be a whole number from 1"),
        ({"bins": [4, 4, 4]}, "bins must be one number or 2, one for each dimension, got 3"),
        ({"tilings": 0}, "tilings must be a whole number from 1"),
        ({"tilings": True}, "tilings must be a whole number from 1"),
        ({"bias": 1}, "bias must be True or False, got 1"),
        ({"size": 0}, "size must be a whole number from 1"),
        ({"size": 1, "bias": True}, "size must leave an index beside the bias"),
        ({"groups": []}, "at least one group"),
        ({"groups": [()]}, "a group must be different dimensions"),
        ({"groups": [(0, 0)]}, r"different dimensions from 0 to 1, got \(0, 0\)"),
        ({"groups": [(2,)]}, r"from 0 to 1, got \(2,\)"),
        ({"groups": [(0, 1), (1, 0)]}, "groups must differ"),
        ({"groups": [0, 1]}, "groups must be a list of groups"),
        ({"bins": 100_000}, r"make 80,000,000,000 tiles.*a size to hash them to"),
        ({"bins": 2**30, "size": 10, "tilings": 2**16}, "fewer bins"),
        ({"kind": "fourier"}, "kind must be 'tiles'"),
    ],
)
def test_bad_settings_of_tiles_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        TileCoder(**{"low": [0.0, 0.0], "high": [1.0, 1.0], **arguments})
