"""Vega, Vega-Lite and vega-embed as one script. It takes seconds to make, so it is kept in the user's cache folder.

A browser runs the script. So a folder and its file are used only if nobody else can change them, and a file only if its seal fits.
Without such a folder the script is made again for each program.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from trueonline.files import UNSEALED, is_sealed, seal
from trueonline.platforms import make_own, read_own, write_own

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
    folder, about = _folder(), repr((vega_lite, version("vl-convert-python"), ENTRY))
    name = f"vega-{hashlib.sha256(about.encode()).hexdigest()[:24]}.js"
    with suppress(OSError):
        content = b"" if folder is None else read_own(folder, name)
        if is_sealed(content):
            return content.rpartition(SEAL)[0].decode()
    script = vl_convert.javascript_bundle(ENTRY, vl_version=vega_lite).replace("</script", r"<\/script")
    with suppress(OSError):  # such as a full disk
        if folder is not None:
            write_own(folder, name, seal(script.encode() + SEAL + UNSEALED))
    return script


def _folder() -> Path | None:
    """The folder for scripts. None if there is no safe one."""
    with suppress(OSError, RuntimeError):  # nothing can be written, or there is no home
        base = Path(os.environ.get("XDG_CACHE_HOME", ""))  # the XDG specification: a relative path is ignored
        folder = (base if base.is_absolute() else Path.home() / ".cache") / "trueonline" / "report"
        make_own(folder)
        return folder
    return None
