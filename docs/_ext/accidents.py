"""Reads the built pages, and stops the build at what Markdown does without a warning.

A line that begins with "1. " by chance becomes a list in the middle of a sentence. A misspelt option of a card becomes part of its
link. Asterisks that were escaped stay where a word should be bold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any
from urllib.parse import unquote

from sphinx.errors import ExtensionError

CUT = re.compile(r"<p>((?:(?!</?p\b).)*)</p>\s*<[ou]l\b", re.DOTALL)  # a paragraph directly before a list
LINK_ALONE = re.compile(r"\s*<a\b(?:(?!</a>).)*</a>\s*\Z", re.DOTALL)
TITLE = 3  # words. A paragraph of so few before a list is its title
ENDS = (".", ":", "!", "?", ")", "…")
CARD = re.compile(r'<div class="sd-card .*?(?=<div class="sd-col|</section>|\Z)', re.DOTALL)
BODY = re.compile(r'<article role="main".*?</article>', re.DOTALL)
LINK = re.compile(r'<a\b[^>]*?\bhref="([^"]*)"')
ID = re.compile(r'\bid="([^"]+)"')
OUTSIDE = re.compile(r"[a-z]+:|//")
CODE = re.compile(r"<(pre|code)\b.*?</\1>", re.DOTALL)
RAW = re.compile(r"\*\*\w[^*]{0,60}\*\*")


def accidents(pages: Mapping[str, str], files: set[str]) -> list[str]:
    """What is wrong on some pages, given as name → HTML. `files` are all files of the site."""
    ids = {name: {unescape(each) for each in ID.findall(html)} for name, html in pages.items()}
    found = []
    for name, html in pages.items():
        body = BODY.search(html)
        body_html = body[0] if body else html
        for cut in CUT.findall(body_html):
            text = _words(cut)
            if len(text.split()) > TITLE and not text.endswith(ENDS) and not LINK_ALONE.match(cut):
                found.append(f"{name}: a list begins in the middle of a sentence, after {text[-60:]!r}")
        found += [f"{name}: {raw} is not bold" for raw in RAW.findall(_words(CODE.sub("", body_html)))]
        for card in CARD.findall(body_html):
            if "<a " not in card:
                found.append(f"{name}: the card {_words(card)[:60]!r} has no link")
        for href in {unescape(each) for each in LINK.findall(body_html)}:
            path, _, anchor = href.partition("#")
            target = normpath(join(dirname(name), unquote(path.partition("?")[0]))) if path else name
            if OUTSIDE.match(href):
                continue
            if target not in files and f"{target}/index.html" not in files:
                found.append(f"{name}: the link {href!r} leads nowhere")
            elif anchor and target in ids and unquote(anchor) not in ids[target]:
                found.append(f"{name}: the link {href!r} names a place that its page does not have")
    return sorted(found)


def _words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def read_site(app: Any, error: Exception | None) -> None:
    """Raise ExtensionError if a page of the built site has an accident."""
    if error is not None or app.builder.format != "html":
        return
    site = Path(app.outdir)
    files = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    built = sorted({f"{name}.html" for name in app.env.found_docs} & files)
    built += [name for name in files if name.startswith("explorables/") and name.endswith(".html")]
    found = accidents({name: (site / name).read_text(encoding="utf-8") for name in built}, files)
    if found:
        raise ExtensionError("the built pages have accidents:\n" + "\n".join(found))


def setup(app: Any) -> dict[str, bool]:
    # After the pages that other extensions copy into the site
    app.connect("build-finished", read_site, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
