"""Keeps the search index whole. Sphinx writes it last, and only adds pages that it writes anew.

A build that was interrupted leaves pages that the index lacks. Without this, the next builds would leave them out too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def left_out(app: Any, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """The pages that the stored index lacks. Sphinx reads them again, and so writes and indexes them."""
    try:
        text = Path(app.outdir, "searchindex.js").read_text("utf-8")
        indexed = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))["docnames"]
    except (FileNotFoundError, ValueError):  # none yet, or half of one
        indexed = []
    return sorted(env.found_docs - set(indexed))


def setup(app: Any) -> dict[str, bool]:
    app.connect("env-get-outdated", left_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
