"""Vega, Vega-Lite and vega-embed as one script. It takes seconds to make, so it is kept in the user's cache folder.

A browser runs the script. So the folder is used only if this user owns it and nobody else may write to it, and a file only if its
seal fits. Without such a folder the script is made again for each program.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from trueonline.files import UNSEALED, is_sealed, seal, write_whole
from trueonline.platforms import is_guarded, is_own

ENTRY = "window.vegaEmbed = vegaEmbed;"
SEAL = b"\n// "  # before the seal, at the end of a kept script


@cache
def library() -> str:
    """The script, once for all charts of a page.

    Raises
    ------
    ValueError
        If Altair or vl-convert is not installed.
    """
    try:
        import altair
        import vl_convert
    except ImportError as error:
        raise ValueError(f"the report needs Altair and vl-convert ({error}): pip install 'trueonline[report]'") from None
    vega_lite = ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    place = _place(repr((vega_lite, version("vl-convert-python"), ENTRY)))
    kept = None if place is None else _read(place)
    if kept is not None:
        return kept
    script = vl_convert.javascript_bundle(ENTRY, vl_version=vega_lite).replace("</script", r"<\/script")
    if place is not None:
        with suppress(OSError):  # such as a full disk
            write_whole(place, lambda file: file.write(seal(script.encode() + SEAL + UNSEALED)))
    return script


def _place(about: str) -> Path | None:
    """The file for a script that these words describe. None if there is no safe folder."""
    with suppress(OSError, RuntimeError):  # nothing can be written, or there is no home
        base = Path(os.environ.get("XDG_CACHE_HOME", ""))  # the XDG specification: a relative path is ignored
        own = (base if base.is_absolute() else Path.home() / ".cache") / "trueonline"
        folder = own / "report"
        if is_guarded(own.parent) and is_own(own, close=True) and is_own(folder):
            return folder / f"vega-{hashlib.sha256(about.encode()).hexdigest()[:24]}.js"
    return None


def _read(place: Path) -> str | None:
    """A kept script. None if there is none, or if it is not as it was written."""
    try:
        content = place.read_bytes()
    except OSError:
        return None
    return content.rpartition(SEAL)[0].decode() if is_sealed(content) else None
