"""Backgrounds for the tests of Atari."""

import pytest


@pytest.fixture(scope="module")
def background():
    """Good enough for tests that compare two ways of doing the same."""
    from trueonline.control import atari

    return atari.learn_background("asterix", decisions=60)


@pytest.fixture(scope="module")
def published_background():
    from tests.control.atari.consoles import shared
    from trueonline.control import atari

    return atari.read_background(shared("asterix.bg"))
