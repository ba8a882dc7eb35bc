"""Shell commands in tutorials. A tutorial's first cell, which the page does not show, loads this as an IPython extension.

Cells then run in a temporary folder, so that a page leaves no files behind. `%%bash` is as IPython's own, but what the
commands print comes in one piece, with standard output and errors in their order.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def bash(line: str, cell: str) -> None:
    done = subprocess.run(["bash", "-c", cell], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout, end="")
    done.check_returncode()


def load_ipython_extension(shell: Any) -> None:
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):  # the kernel sets them, and so asks programs for what a terminal shows
        os.environ.pop(name, None)
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))  # `trueonline`
    shell.folder = tempfile.TemporaryDirectory()
    os.chdir(shell.folder.name)
    shell.register_magic_function(bash, magic_kind="cell")
