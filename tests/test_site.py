"""The documentation site: what its own extensions add to Sphinx."""

import json
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / "docs" / "_ext")]  # as docs/conf.py does
search = import_module("whole_search")
light = import_module("light_pages")
accidents = import_module("accidents").accidents

pytestmark = pytest.mark.apart

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


@pytest.mark.parametrize(("page", "kept"), [("gallery/index", 2), ("gallery/control/plot_film", 2), ("index", 1)])
def test_the_styles_of_the_gallery_stay_in_the_gallery(page, kept):
    def files(*names):
        return [SimpleNamespace(filename=f"_static/{name}") for name in names]

    context = {"css_files": files("site.css", "sg_gallery.css"), "script_files": files("site.js", "sg-tags.js")}
    light.leave_out(None, page, "page.html", context, None)
    assert [len(context[kind]) for kind in ("css_files", "script_files")] == [kept, kept]
    assert [context[kind][0].filename for kind in context] == ["_static/site.css", "_static/site.js"]


@pytest.mark.parametrize(
    ("html", "said"),
    [
        ("<p>There is a reward of</p>\n<ol><li>How likely is it?</li></ol>", "after 'There is a reward of'"),
        (
            '<div class="sd-card x"><div class="sd-card-title">Times</div><p>not met.</p></div>',
            "card 'Times not met.' has no link",
        ),
        ('<a class="x" href="b.html :link-type: doc">b</a>', "leads nowhere"),
        ('<a href="../start/a.html#gone">a</a>', "names a place"),
        ("<p>**Required** Signals, <code>a**b**c</code></p>", "**Required** is not bold"),
        (
            '<p>Three steps:</p><ol><li>a</li></ol><div class="sd-card x"><a href="../start/a.html#here">a</a></div><i id="here">',
            None,
        ),
    ],
    ids=["list", "card", "file", "place", "asterisks", "none"],
)
def test_accidents_of_markdown_are_found_on_built_pages(html, said):
    found = accidents({"start/a.html": html}, {"start/a.html"})
    assert found == [] if said is None else (len(found) == 1 and said in found[0])
