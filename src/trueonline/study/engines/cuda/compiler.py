"""Sweeps compiled for CUDA: the only file that knows numba-cuda. It needs no GPU.

A grid of threads, one for each learner at a time, runs `sweep_body.learner`, the same that processors run. Rules and memories
compile as they are. There is no fused multiply-add and nothing is reassociated, so that a GPU finds the same bits as a processor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from types import FunctionType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from cuda.bindings import nvjitlink
from numba import cuda, types
from numba.cuda import dispatcher
from numba.cuda.cudadrv import nvvm

from trueonline.core.compiling.kernels import kernel
from trueonline.core.pointers import on_stack, since, strided
from trueonline.study.engines.cuda.variants import ENTRY, Variant
from trueonline.study.kernels.sweep_body import Diagonal, Given, Trajectory, Triangular, learner
from trueonline.study.kernels.sweep_kernel import LISTS, MEMORIES, OWN, lay_out, names_of

N_FEATURES = 0  # a placeholder: the number of features, where it is known when the kernel is compiled


@kernel
def diagonal(entries, n):
    return Diagonal(entries)


@kernel
def triangular(entries, n):
    return Triangular(entries, n, n)


rooted = diagonal  # a placeholder: the form of B


def sweep_grid(
    features, states, rewards, discounts, chances, roots, targets, firsts, cases, rows, parameters, alphas, lams, space, errors,
    n, width, root_size, steps, n_chances, runs, n_alphas, n_lams, after, discount, second,
):  # fmt: skip
    """The errors of many runs: errors[r, i, j] for α_i and λ_j. Run r is in row rows[r], and about problem cases[rows[r]].

    Neighbouring threads differ in α alone, so that they read the same trajectory and rebase at the same steps. The features of all
    states of a problem are `width` numbers.
    """
    size = N_FEATURES if N_FEATURES > 0 else n
    cells = n_alphas * n_lams
    blocks = (cells + cuda.blockDim.x - 1) // cuda.blockDim.x  # of each run
    own = on_stack(OWN)
    vectors = room(own, space)
    memory = lay_out(own, vectors, size, features)
    off = since(vectors, 2 * MEMORIES * size)
    for item in range(cuda.blockIdx.x, blocks * runs, cuda.gridDim.x):
        run, cell = item // blocks, item % blocks * cuda.blockDim.x + cuda.threadIdx.x
        if cell < cells:
            i, j, row = cell % n_alphas, cell // n_alphas, np.int64(rows[run])
            case = np.int64(cases[row])
            given = Given(
                since(features, case * width),
                rooted(since(roots, case * root_size), size),
                since(targets, case * n),
                since(firsts, case * n),
                discount,
                second,
                after,
                parameters,
                0,
            )
            trajectory = Trajectory(
                since(states, row * (steps + 1)),
                since(rewards, row * steps),
                since(discounts, row * steps),
                since(chances, row * 2 * n_chances),
                n_chances - 1,
                steps,
            )
            errors[(run * n_alphas + i) * n_lams + j] = learner(memory, own, off, given, trajectory, alphas[i], lams[j])


def room(own, space):
    """A placeholder for one of these."""


def room_few(own, space):
    """On the stack: in registers."""
    return since(own, LISTS)


def room_shared(own, space):
    """In shared memory, side by side with those of the other threads of a block."""
    return strided(cuda.shared.array(0, types.float64), np.int64(cuda.threadIdx.x), np.int64(cuda.blockDim.x))


def room_global(own, space):
    """In device memory, side by side with those of all other threads."""
    thread = np.int64(cuda.blockIdx.x) * cuda.blockDim.x + cuda.threadIdx.x
    return strided(space, thread, np.int64(cuda.gridDim.x) * cuda.blockDim.x)


class Compiled(NamedTuple):
    """A kernel as machine code, and what its threads use."""

    cubin: bytes
    registers: int
    spilled: int  # bytes


def compile_sweep(rule: Any, memory: str, variant: Variant, capability: tuple[int, int]) -> Compiled:
    """Compile the sweep of a rule for GPUs of this compute capability."""
    return link(to_ptx(rule, memory, variant, capability), capability)


def to_ptx(rule: Any, memory: str, variant: Variant, capability: tuple[int, int]) -> str:
    """The sweep of a rule over a kind of memory, as PTX. ValueError if the rule cannot be compiled for a GPU."""
    names: dict[str, Any] = {
        **names_of(rule, memory, variant.few),
        "N_FEATURES": variant.few,
        "rooted": diagonal if variant.diagonal else triangular,
    }
    template = room_few if variant.few else room_shared if variant.shared else room_global
    with _for_capability(capability):
        room = FunctionType(template.__code__, {**template.__globals__, **names}, template.__name__)
        names["room"] = cuda.jit(room, device=True)
        kernel = FunctionType(sweep_grid.__code__, {**sweep_grid.__globals__, **names}, ENTRY)
        try:
            text, _ = cuda.compile_ptx(kernel, types.void(*_signature(variant)), cc=capability)
        except Exception as error:  # Numba has many kinds
            raise ValueError(
                f"the rule {rule.py_func.__name__} cannot be compiled for a GPU: {_gist(str(error))}; the engine local can run "
                "every rule that Numba compiles"
            ) from error
    (mangled,) = re.findall(r"\.entry\s+([\w$]+)", text)
    return text.replace(mangled, ENTRY)


def _signature(variant: Variant) -> tuple[Any, ...]:
    numbers, small = types.CPointer(types.float64), types.CPointer(types.int32)
    features = small if variant.tabular else numbers
    pointers = (features, small, *[numbers] * 6, small, small, *[numbers] * 5)
    return (*pointers, *[types.int64] * 9, types.float64, types.float64)


def link(ptx: str, capability: tuple[int, int]) -> Compiled:
    """Turn PTX into machine code."""
    arch = f"sm_{capability[0]}{capability[1]}"
    handle = nvjitlink.create(3, [f"-arch={arch}", "-O3", "-Xptxas=-v"])
    try:
        content = ptx.encode() + b"\0"
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, content, len(content), ENTRY)
        nvjitlink.complete(handle)
        cubin = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, cubin)
        log = bytearray(nvjitlink.get_info_log_size(handle))
        nvjitlink.get_info_log(handle, log)
    except nvjitlink.nvJitLinkError as error:
        log = bytearray(nvjitlink.get_error_log_size(handle))
        nvjitlink.get_error_log(handle, log)
        raise RuntimeError(
            f"the kernel cannot be assembled for {arch}: {log.decode(errors='replace').strip()}"
        ) from error
    finally:
        nvjitlink.destroy(handle)
    said = log.decode(errors="replace")
    return Compiled(bytes(cubin), _number(r"Used (\d+) registers", said), _number(r"(\d+) bytes spill stores", said))


def _gist(message: str) -> str:
    """The first line of a message of Numba, with its file and line. The rest says how Numba got there."""
    lines = (line.strip().rstrip(":") for line in message.splitlines())
    first = next((line for line in lines if line and not line.startswith("Failed in ")), "no reason is known")
    where = re.search(r'File "([^"<]+)", line (\d+)', message)
    return f"{first} ({where[1]}, line {where[2]})" if where else first


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


_COMPILING = RLock()


@contextmanager
def _for_capability(capability: tuple[int, int]) -> Iterator[None]:
    """Compile for this compute capability, whether there is such a device or not, and without fused multiply-add.

    numba-cuda asks the current device for its capability when it compiles pieces of a kernel, and has no option for `fma`.
    """
    with _COMPILING:
        usual = dispatcher.get_current_device, nvvm.compile_ir
        dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
        nvvm.compile_ir = lambda code, **options: usual[1](code, **{**options, "fma": 0})
        try:
            yield
        finally:
            dispatcher.get_current_device, nvvm.compile_ir = usual
