"""`gpu_by_hand.cu`, compiled when the benchmark runs and wrapped with ctypes: the same sweep by hand in CUDA C++."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import DTypeLike

from benchmarks.gpu_problems import ALPHAS, LAMS, Errors, Group, Measured

MISSING = "There is no CUDA compiler `nvcc` on this machine, so the rows that compare with CUDA C++ were left out."
METHODS = ("accumulate", "replace", "true_online")  # in the order of `enum Method`
SOURCE = Path(__file__).with_name("gpu_by_hand.cu")
SHARED = ("-std=c++20", "-O3", "-shared")
ON_CPU = ("g++", "-x", "c++", *SHARED, "-fPIC", "-pthread")
ON_GPU = ("nvcc", *SHARED, "-arch=native", "-Xcompiler", "-fPIC")


class _Job(ctypes.Structure):
    """`struct Job`, field by field."""

    _fields_ = (
        *(
            (name, ctypes.c_int32)
            for name in ("method", "tabular", "states", "features", "problems", "runs", "steps", "alphas", "lams")
        ),
        ("discount", ctypes.c_double),
        *(
            (name, ctypes.c_void_p)
            for name in ("table", "trajectories", "rewards", "root", "target", "alpha", "lam", "errors")
        ),
    )


def available() -> bool:
    return shutil.which("nvcc") is not None


@cache
def _library(command: tuple[str, ...]) -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:  # once loaded, a shared object no longer needs its file
        built = Path(folder) / "gpu_by_hand.so"
        subprocess.run([*command, "-o", built, SOURCE], check=True)
        return ctypes.CDLL(str(built))


def measure(groups: Sequence[Group], rounds: int = 3) -> Measured:
    """Sweep all methods of all groups on the GPU, between arrays in pinned memory.

    Parameters
    ----------
    groups : sequence of Group
        The groups.
    rounds : int
        How often it is timed, after one round of warm-up. CUDA events measure the time.

    Returns
    -------
    Measured
        Errors and seconds. Memory on the device is allocated before the clock starts.

    Raises
    ------
    RuntimeError
        If there is no `nvcc`, or no GPU that can do it.
    """
    if not available():
        raise RuntimeError("gpu_by_hand.cu needs nvcc: install the CUDA toolkit, and put its folder bin on PATH")
    begin = perf_counter()
    library = _library(ON_GPU)
    preparing = perf_counter() - begin
    library.sweep_on_gpu.restype = ctypes.c_char_p
    library.sweep_on_gpu.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    kernels, transfers = np.empty(rounds, np.float32), np.empty(rounds, np.float32)
    with ExitStack() as stack:
        pinned: dict[int, np.ndarray] = {}

        def place(array: np.ndarray) -> np.ndarray:
            """A copy in pinned memory. An array that several groups share is copied once."""
            if id(array) not in pinned:
                pinned[id(array)] = stack.enter_context(_pinned(library, array.shape, array.dtype))
                pinned[id(array)][...] = array
            return pinned[id(array)]

        states = {id(group.states): group.states.astype(np.uint8) for group in groups}
        alphas, lams = place(ALPHAS), place(LAMS)
        names, jobs, errors = [], [], []
        # The longest jobs first: short ones fill the gaps at the end.
        for group in sorted(groups, key=lambda group: (group.steps, group.tabular), reverse=True):
            arrays = [place(array) for array in _arrays(group, states[id(group.states)])]
            for method in group.methods:
                found = stack.enter_context(_pinned(library, _shape(group), np.float64))
                names.append((*group.name, method))
                jobs.append(_job(group, method, *arrays, alphas, lams, found))
                errors.append(found)
        table = (_Job * len(jobs))(*jobs)
        complaint = library.sweep_on_gpu(table, len(jobs), rounds, kernels.ctypes.data, transfers.ctypes.data)
        if complaint is not None:
            raise RuntimeError(f"the sweep by hand failed: {complaint.decode()}")
        copies = dict(zip(names, (found.copy() for found in errors), strict=True))
    return Measured(copies, preparing, (kernels / 1e3).tolist(), (transfers / 1e3).tolist())


def on_cpu(groups: Sequence[Group], lanes: int = 1) -> Errors:
    """The errors by the same source, compiled as C++ for the CPU, for tests. Each lane of a warp is a thread."""
    inputs = [_arrays(group, group.states.astype(np.uint8)) for group in groups]
    sweep = _library(ON_CPU if lanes == 1 else (*ON_CPU, f"-DWARP={lanes}")).sweep_on_cpu
    sweep.restype, sweep.argtypes = ctypes.c_char_p, (ctypes.c_void_p,)
    errors = {}
    for group, arrays in zip(groups, inputs, strict=True):
        for method in group.methods:
            found = np.full(_shape(group), np.nan)
            complaint = sweep(ctypes.byref(_job(group, method, *arrays, ALPHAS, LAMS, found)))
            if complaint is not None:
                raise RuntimeError(f"the sweep by hand failed: {complaint.decode()}")
            errors[(*group.name, method)] = found
    return errors


def _shape(group: Group) -> tuple[int, ...]:
    return (*group.rewards.shape[:2], len(ALPHAS), len(LAMS))


def _arrays(group: Group, states: np.ndarray) -> list[np.ndarray]:
    """The arrays that a job takes. Its states are bytes, and its discount is a constant."""
    most = np.iinfo(np.int16).max  # an epoch may be a single step
    if group.features.shape[1] > 256 or group.rewards.shape[2] > most or np.ptp(group.discounts) != 0.0:
        raise ValueError(f"the sweep by hand is for at most 256 states, at most {most:,} steps and a constant discount")
    return [group.features, states, group.rewards, group.root, group.target]


def _job(group: Group, method: str, *arrays: np.ndarray) -> _Job:
    problems, states, features = group.features.shape
    _, runs, steps = group.rewards.shape
    sizes = (METHODS.index(method), group.tabular, states, features, problems, runs, steps, len(ALPHAS), len(LAMS))
    table, *addresses = (array.ctypes.data for array in arrays)
    return _Job(*sizes, group.discounts.flat[0], None if group.tabular else table, *addresses)


@contextmanager
def _pinned(library: ctypes.CDLL, shape: tuple[int, ...], dtype: DTypeLike) -> Iterator[np.ndarray]:
    """An array in memory of the host that the device reads and writes at full speed."""
    library.pinned_memory.restype, library.pinned_memory.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
    library.release_memory.restype, library.release_memory.argtypes = None, (ctypes.c_void_p,)
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    address = library.pinned_memory(size)
    if not address:
        raise RuntimeError(f"there is no pinned memory for {size:,} bytes: is there an NVIDIA GPU with its driver?")
    try:
        yield np.frombuffer(memoryview((ctypes.c_char * size).from_address(address)), dtype).reshape(shape)
    finally:
        library.release_memory(address)
