"""The package as a whole."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest

import trueonline
from trueonline.core import kernels

ROOT = Path(__file__).parent.parent


def test_everything_public_is_there():
    for name in trueonline.__all__:
        assert getattr(trueonline, name) is not None
        assert name in dir(trueonline)


def test_type_checkers_see_what_is_public():
    """The names in `_HOME`, and those imported under TYPE_CHECKING, which nothing else would miss."""
    seen = re.findall(
        r"^    from trueonline\S* import \w+ as (\w+)$", Path(trueonline.__file__).read_text(), re.MULTILINE
    )
    assert {"__version__", *seen} == set(trueonline.__all__)


def test_an_unknown_name_gets_the_known_ones():
    with pytest.raises(AttributeError, match="has no 'TrueOnline'; it has AccumulateTD"):
        _ = trueonline.TrueOnline


def test_the_version_is_one():
    assert version("trueonline") == trueonline.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## {re.escape(trueonline.__version__)}\b", changelog, re.MULTILINE)


def test_kernels_are_cached_by_the_hash_of_all_their_sources(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    folder = kernels.cache_folder.__wrapped__()
    assert Path(folder).parent == tmp_path / "trueonline"
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + (b"#" if path.name == "replace_td.py" else b""))
    assert kernels.cache_folder.__wrapped__() != folder


def test_an_unwritable_cache_folder_falls_back(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert kernels.cache_folder.__wrapped__().startswith(str(tmp_path / "cache" / "trueonline"))
