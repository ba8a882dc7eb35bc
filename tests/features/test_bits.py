"""Features of observations that are made of bits, and MinAtar, whose screens are."""

import numpy as np
import pytest
from gymnasium import spaces
from PIL import Image

import trueonline as to
from trueonline.control.gym import environments
from trueonline.features import Bits, from_space, restore


@pytest.mark.parametrize("space", [spaces.MultiBinary((2, 3)), spaces.Box(0, 1, (2, 3), bool)])
def test_each_bit_is_a_feature_and_one_is_always_active(space):
    maker = from_space(space)
    assert isinstance(maker, Bits)
    assert (maker.n_features, maker.n_active) == (7, 1)
    assert maker([[0, 1, 0], [0, 0, 1]]).tolist() == [1, 5, 6]
    assert [each.tolist() for each in maker.many(np.eye(6, dtype=bool)[[0, 4]])] == [[0, 6], [4, 6]]
    again = restore(from_space(space, n_active=3).settings())
    assert (again.n_active, again(np.zeros(6, bool)).tolist(), repr(again)) == (3, [6], "Bits(n=6, n_active=3)")


def test_what_is_not_made_of_bits_is_refused():
    for bad in ([0, 1], [0, 2, 0], [0.5, 0, 1]):
        with pytest.raises(ValueError, match="the observation must be 3 zeros and ones, got"):
            Bits(3)(bad)
    for space in (spaces.Discrete(2), spaces.Box(0.0, 1.0, (3,))):
        with pytest.raises(ValueError, match="is not made of bits"):
            from_space(space, "bits")


def test_minatar_is_found_trained_on_and_filmed(tmp_path):
    env = environments.make("MinAtar/Breakout-v1")
    maker = from_space(env.observation_space)
    agent = to.control.TrueOnlineSarsa(maker.n_features, 3, 0.01, 0.9, 0.99, to.control.EpsilonGreedy(0.1), seed=0)
    assert to.control.train(env, agent, maker, episodes=3, seed=0).steps > 10
    to.control.film("MinAtar/Breakout-v1", agent, maker, tmp_path / "film.gif", seed=0)
    with Image.open(tmp_path / "film.gif") as picture:
        assert picture.size == (240, 240), "each of 10 × 10 cells is a square"
        assert len(picture.convert("RGB").getcolors()) > 1
