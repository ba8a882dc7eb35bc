"""A directive that shows an interactive page of the package inside a page of the site.

    ```{explorable} traces
    ```

Without JavaScript the still picture is shown. The pages are copied from the package. Each copy gets a link to its page of the
documentation, which the package does not have.
"""

from __future__ import annotations

from pathlib import Path
from shutil import copytree
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from trueonline.lab import explorables

MARK = "<!-- documentation -->"
FRAME = """
<div class="explorable">
<iframe src="{root}explorables/{name}.html?embed" title="{title}"></iframe>
<noscript><img src="{root}explorables/stills/{name}.svg" alt="{title}: a still picture of what the page shows"></noscript>
<p><a href="{root}explorables/{name}.html">Open this page on its own</a></p>
</div>
"""


class Explorable(SphinxDirective):
    """The page of the given name, in a frame."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        (name,) = self.arguments
        root = "../" * self.env.docname.count("/")
        titles = {page.name: page.title for page in explorables.PAGES}
        if name not in titles:
            raise self.error(f"there is no explorable page {name!r}; name one of {', '.join(titles)}")
        html = FRAME.format(root=root, name=name, title=titles[name])
        return [nodes.raw("", html, format="html")]


def copy_pages(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        folder = Path(app.outdir) / "explorables"
        copytree(explorables.FOLDER, folder, dirs_exist_ok=True)
        for name in ("index", *(page.name for page in explorables.PAGES)):
            page = folder / f"{name}.html"
            link = f'<a href="../explanation/{name}.html">Documentation</a>'
            page.write_text(page.read_text(encoding="utf-8").replace(MARK, link), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("explorable", Explorable)
    app.connect("build-finished", copy_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
