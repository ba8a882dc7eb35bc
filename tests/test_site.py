"""The documentation site: what its own extensions add to Sphinx."""

import json
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / "docs" / "_ext")]  # as docs/conf.py does
search = import_module("whole_search")

WHOLE = f"Search.setIndex({json.dumps({'docnames': ['index', 'guides/a', 'gone']})})"


@pytest.mark.parametrize(
    ("index", "again"),
    [(WHOLE, ["guides/b"]), (WHOLE[:40], ["guides/a", "guides/b", "index"]), (None, ["guides/a", "guides/b", "index"])],
    ids=["whole", "half", "none"],
)
def test_pages_that_the_search_index_lacks_are_read_again(tmp_path, index, again):
    if index is not None:
        (tmp_path / "searchindex.js").write_text(index)
    pages = SimpleNamespace(found_docs={"index", "guides/a", "guides/b"})
    assert search.left_out(SimpleNamespace(outdir=tmp_path), pages, set(), set(), set()) == again
