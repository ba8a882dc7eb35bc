"""What the notebooks of this site have in common. A hidden first cell runs this file: %run ../_ext/notebook.py

Pictures have the look of the package. Files go to a temporary folder. A cell that begins with `%%bash` is run by the shell, as in
any notebook, but a command that fails stops the build, and its output is printed as one piece, without colours and progress bars.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from IPython.core.magic import register_cell_magic
from matplotlib_inline.backend_inline import set_matplotlib_formats

from trueonline.look import RC

FOLDER = tempfile.TemporaryDirectory()  # removed when the kernel ends
os.chdir(FOLDER.name)
os.environ |= {"COLUMNS": "88", "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
for _name in ("FORCE_COLOR", "CLICOLOR_FORCE"):  # the kernel sets them
    os.environ.pop(_name, None)
set_matplotlib_formats("svg")
plt.rcParams.update(RC | {"svg.fonttype": "none"})  # letters, not outlines: a quarter less to load


@register_cell_magic
def bash(line: str, cell: str) -> None:
    """Run a cell by the shell, and print its output."""
    done = subprocess.run(["bash", "-c", cell], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    print(done.stdout, end="")
    done.check_returncode()
