"""The package as a whole."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest

import trueonline


def test_everything_public_is_there():
    for name in trueonline.__all__:
        assert getattr(trueonline, name) is not None
        assert name in dir(trueonline)


def test_type_checkers_see_what_is_public():
    """The names in `_HOME`, and those imported under TYPE_CHECKING, which nothing else would miss."""
    seen = re.findall(
        r"^    from trueonline\S* import \w+ as (\w+)$",
        Path(trueonline.__file__).read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    missing = set(trueonline.__all__) - {"__version__", *seen}
    assert not missing, f"import {missing} in trueonline/__init__.py under TYPE_CHECKING, each as itself"
    assert {"__version__", *seen} <= set(trueonline.__all__), "what is imported there has a line in _HOME too"


def test_an_unknown_name_gets_the_known_ones():
    with pytest.raises(AttributeError, match="has no 'TrueOnline'; it has AccumulateTD"):
        _ = trueonline.TrueOnline


def test_the_installed_version_is_that_of_the_source():
    assert version("trueonline") == trueonline.__version__
