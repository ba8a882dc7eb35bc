"""SciPy is imported when a kernel first calls BLAS, and not before.

When Numba loads its first kernel, it imports `scipy.linalg` only to learn whether there is BLAS. That takes a fifth of a second.
Here it looks whether SciPy is installed. Compiled code imports SciPy itself at its first call of BLAS.
"""

from __future__ import annotations

from importlib.util import find_spec

from numba.np import linalg


def ensure_blas() -> None:
    """ImportError if SciPy is not installed, which brings BLAS."""
    if find_spec("scipy") is None:
        raise ImportError("linear algebra in kernels needs SciPy: pip install scipy")


linalg.ensure_blas = ensure_blas
