"""Leaves the gallery's styles and scripts out of the pages outside the gallery. They need none of them, and load faster."""

from __future__ import annotations

from typing import Any


def leave_out(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    if not page.startswith("gallery/"):
        for kind in ("css_files", "script_files"):
            kept = [file for file in context[kind] if not str(file.filename).startswith(("_static/sg_", "_static/sg-"))]
            context[kind][:] = kept


def setup(app: Any) -> dict[str, bool]:
    app.connect("html-page-context", leave_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
