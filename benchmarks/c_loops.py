"""`loops.c`, compiled when the benchmarks run and wrapped with ctypes. Without a C compiler its rows are left out."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

PLAIN = ("-O3", "-march=native")
# The freedom that the library's dense loops have, and no more: sums in any order, but NaN and infinity stay visible.
REASSOCIATING = (*PLAIN, "-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-ffp-contract=fast")
MISSING = "There is no C compiler `cc` on this machine, so the rows that compare with C were left out."
LINE = 8  # numbers in a cache line

_POINTER = ctypes.c_void_p
_COUNT = ctypes.c_int64
_NUMBER = ctypes.c_double


def available() -> bool:
    return shutil.which("cc") is not None


@cache
def _library(flags: tuple[str, ...]) -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:  # once loaded, a shared object no longer needs its file
        built = Path(folder) / "loops.so"
        source = Path(__file__).with_name("loops.c")
        subprocess.run(["cc", *flags, "-shared", "-fPIC", "-o", built, source, "-lm"], check=True)
        return ctypes.CDLL(str(built))


def _address(array: np.ndarray) -> int:
    return array.ctypes.data


class _Memory(ctypes.Structure):
    _fields_ = (
        *((name, _POINTER) for name in ("u", "z", "y", "slot", "owner")),
        ("c", _NUMBER),
        ("count", _COUNT),
        ("room", _COUNT),
    )


class Lazy:
    """True online TD(λ) with the memory of `trueonline.core.memory`: one learner, with the library's interface for `run`."""

    def __init__(self, n: int, step_size: float, trace_decay: float, discount: float) -> None:
        self._parameters = (step_size, discount, trace_decay)
        # Laid out as in the library, in two blocks: so both get the same alignment and the same (huge) pages.
        stride = (n // LINE + 2) * LINE
        block = np.zeros(3 * stride + 2 * LINE)
        first = LINE + -(_address(block) // block.itemsize) % LINE
        self._u, self._z, self._y = (block[first + k * stride :][: n + 1] for k in range(3))
        self._places = np.zeros(2 * n + 1, np.int32)
        eight, four = block.itemsize, self._places.itemsize
        self._memory = _Memory(
            _address(self._u),
            _address(self._z) - eight,  # so that z_1 is at the beginning of a cache line
            _address(self._y) - eight,
            _address(self._places),
            _address(self._places) + n * four,
            0.0,
            0,
            64,
        )
        self._loop = _library(PLAIN).lazy_true_online
        self._loop.argtypes = (_POINTER, _POINTER, _COUNT, _POINTER, _COUNT, _NUMBER, _NUMBER, _NUMBER, _POINTER)
        self._loop.restype = None

    def run(self, X: np.ndarray, rewards: np.ndarray) -> np.ndarray:
        values = np.empty(len(rewards))
        self._loop(
            ctypes.byref(self._memory),
            _address(X),
            X.shape[1],
            _address(rewards),
            len(rewards),
            *self._parameters,
            _address(values),
        )
        return values


class _Swift(ctypes.Structure):
    _fields_ = (
        *((name, _POINTER) for name in ("w", "z", "z_delta", "delta_w", "p", "z_bar", "h", "h_old", "h_temp", "beta")),
        ("list", _POINTER),
        ("count", _COUNT),
        ("v_old", _NUMBER),
        ("v_delta", _NUMBER),
    )


class Swift:
    """SwiftTD with plain vectors and a list of the features with trace, which drops a trace below epsilon."""

    def __init__(
        self,
        n: int,
        step_size: float,
        trace_decay: float,
        discount: float,
        *,
        bound: float,
        decay: float,
        meta_step_size: float,
        min_step_size: float,
        epsilon: float,
    ) -> None:
        self._parameters = (discount, trace_decay, bound, decay, meta_step_size, min_step_size, epsilon)
        self._vectors = [np.zeros(n) for _ in range(9)] + [np.full(n, np.log(step_size)), np.zeros(n, np.int64)]
        self._state = _Swift(*map(_address, self._vectors), 0, 0.0, 0.0)
        self._loop = _library(PLAIN).eager_swift
        self._loop.argtypes = (_POINTER, _POINTER, _COUNT, _POINTER, _COUNT, *(_NUMBER,) * 7, _POINTER)
        self._loop.restype = None

    @property
    def traced(self) -> int:
        """The number of features on the list."""
        return self._state.count

    def run(self, X: np.ndarray, rewards: np.ndarray) -> np.ndarray:
        """Enter each row with its reward; return wᵀφ of each row as it was before the step."""
        values = np.empty(len(X))
        self._loop(
            ctypes.byref(self._state),
            *(_address(X), X.shape[1], _address(rewards), len(X)),
            *self._parameters,
            _address(values),
        )
        return values


class Eager:
    """A method with weights and trace as plain vectors. X has integers (active features) or floats (dense ones)."""

    def __init__(
        self, loop: str, n: int, step_size: float, trace_decay: float, discount: float, flags: tuple[str, ...]
    ) -> None:
        self._parameters = (step_size, discount, trace_decay)
        self._w, self._e = np.zeros(n), np.zeros(n)
        self._sparse = loop == "eager_true_online"
        self._loop = getattr(_library(flags), loop)
        width = (_COUNT,) if self._sparse else ()
        self._loop.argtypes = (
            *(_COUNT, _POINTER, _POINTER, _POINTER, *width),
            *(_POINTER, _COUNT, _NUMBER, _NUMBER, _NUMBER, _POINTER),
        )
        self._loop.restype = None

    def run(self, X: np.ndarray, rewards: np.ndarray) -> np.ndarray:
        values = np.empty(len(rewards))
        width = (X.shape[1],) if self._sparse else ()
        self._loop(
            len(self._w),
            _address(self._w),
            _address(self._e),
            _address(X),
            *width,
            _address(rewards),
            len(rewards),
            *self._parameters,
            _address(values),
        )
        return values
