"""The package as a whole."""

from importlib.metadata import version

import pytest

import trueonline


def test_everything_public_is_there():
    for name in trueonline.__all__:
        assert getattr(trueonline, name) is not None
        assert name in dir(trueonline)


def test_an_unknown_name_gets_the_known_ones():
    with pytest.raises(AttributeError, match="has no 'TrueOnline'; it has AccumulateTD"):
        _ = trueonline.TrueOnline


def test_the_installed_version_is_that_of_the_source():
    assert version("trueonline") == trueonline.__version__
