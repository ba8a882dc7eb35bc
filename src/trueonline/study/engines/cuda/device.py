"""An NVIDIA GPU that runs batches: its memory, its streams and the launches of kernels, through CUDA's driver.

A batch is one copy to the device, a launch for each method, and one copy back. Two batches can be under way at a time.
All calls of the driver stand in this one file.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from threading import Lock
from typing import Any, NamedTuple

import numba_cuda  # noqa: F401  # compiles kernels: that it is missing is said now, not in the middle of a study
import numpy as np
from cuda.bindings import driver

from trueonline.study.engines.cuda import code
from trueonline.study.engines.cuda.batches import Batch, Launch
from trueonline.study.engines.cuda.engine import DeviceError, OutOfMemoryError

MAX_IN_REGISTERS = 8  # kernels for so many dense features, in all memories of a learner, are compiled for their number
STREAMS = 4  # launches of a batch that may run side by side
ALIGNMENT = 256
BLOCK = 128  # threads of a block, where shared memory does not ask for fewer
WARP = 32
# Learning steps in a batch, for each multiprocessor, if double precision were as fast as single precision: some tenths of a second.
STEPS = 4.5e7
MAX_SHARE = 0.2  # of the free memory: the most that a batch may take
LOCAL = "the engine local gives the same results without a GPU"


class Kernel(NamedTuple):
    """A kernel on the device, and how it is launched."""

    function: Any
    block: int
    shared: int  # bytes of shared memory, of a block
    space: int  # bytes of device memory for the vectors of a thread, where these lie there
    resident: int  # blocks that the device can run at a time
    registers: int  # of a thread


class Slot:
    """The memory of a batch under way, on the device and beside it."""

    def __init__(self) -> None:
        self.size = self.space_size = 0
        self.host: Any = None
        self.device: Any = None
        self.space: Any = None
        self.array = np.empty(0, np.uint8)
        apart, untimed = driver.CUstream_flags.CU_STREAM_NON_BLOCKING, driver.CUevent_flags.CU_EVENT_DISABLE_TIMING
        self.streams = [_checked(driver.cuStreamCreate(apart)) for _ in range(STREAMS)]
        self.ready, self.end, *self.learned = (_checked(driver.cuEventCreate(untimed)) for _ in range(STREAMS + 1))

    def reserve(self, size: int) -> None:
        """Have at least so many bytes, here and on the device."""
        if size <= self.size:
            return
        size = -(-size // 2**24) * 2**24  # not again for every batch
        self.free()
        self.device = _checked(driver.cuMemAlloc(size))
        self.host = _checked(driver.cuMemAllocHost(size))
        self.array = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(int(self.host)))
        self.size = size

    def reserve_space(self, size: int) -> None:
        """Have at least so many bytes for the vectors of learners."""
        if size > self.space_size:
            if self.space is not None:
                _checked(driver.cuMemFree(self.space))
                self.space, self.space_size = None, 0
            self.space = _checked(driver.cuMemAlloc(size))
            self.space_size = size

    def free(self) -> None:
        self.array, self.size = np.empty(0, np.uint8), 0
        if self.device is not None:
            _checked(driver.cuMemFree(self.device))
        if self.host is not None:
            _checked(driver.cuMemFreeHost(self.host))
        self.device = self.host = None


class Ticket(NamedTuple):
    """A batch under way."""

    slot: Slot
    shapes: Sequence[tuple[int, ...]]  # of the errors of each launch
    first: int  # where the errors begin


class Gpu:
    """A GPU.

    Parameters
    ----------
    number : int
        Its number, as CUDA counts: from 0, fast ones first unless CUDA_DEVICE_ORDER says otherwise.

    Raises
    ------
    ValueError
        If there is no such GPU, or no driver.
    """

    def __init__(self, number: int = 0) -> None:
        try:
            _checked(driver.cuInit(0))
            count = _checked(driver.cuDeviceGetCount())
        except (RuntimeError, OSError) as error:
            raise ValueError(f"the engine cuda needs an NVIDIA GPU and its driver ({error}); {LOCAL}") from None
        if not 0 <= number < count:
            raise ValueError(f"there is no GPU {number}: this machine has {count}, counted from 0; {LOCAL}")
        self._device = _checked(driver.cuDeviceGet(number))
        self._context = _checked(driver.cuDevicePrimaryCtxRetain(self._device))
        _checked(driver.cuCtxSetCurrent(self._context))
        attribute = driver.CUdevice_attribute
        self.capability = (
            self._attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            self._attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        )
        self._shared = self._attribute(attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
        self._processors = self._attribute(attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        single = self._attribute(attribute.CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO)
        self.most_steps = STEPS * self._processors / max(1, single)
        self._both = (Slot(), Slot())
        self._slots = list(self._both)  # that are free
        self._lock = Lock()
        self._kernels: dict[Any, Kernel] = {}

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Be the one who uses the GPU. Other threads wait.

        Yields
        ------
        None
            While nobody else uses the GPU. Afterwards batches that were not collected are given up.
        """
        with self._lock:
            _checked(driver.cuCtxSetCurrent(self._context))  # a driver's context is that of a thread
            try:
                yield
            finally:
                for stream in [stream for slot in self._both if slot not in self._slots for stream in slot.streams]:
                    with suppress(DeviceError):
                        _checked(driver.cuStreamSynchronize(stream))
                self._slots = list(self._both)

    def _attribute(self, which: Any) -> int:
        return int(_checked(driver.cuDeviceGetAttribute(which, self._device)))

    @property
    def name(self) -> str:
        """The name of the GPU, as its driver gives it."""
        return _checked(driver.cuDeviceGetName(128, self._device)).decode().strip("\0 ")

    @property
    def most_bytes(self) -> float:
        """How large a batch may be."""
        free, _ = _checked(driver.cuMemGetInfo())
        return MAX_SHARE * float(free)

    def submit(self, batch: Batch) -> Ticket:
        """Start a batch, without waiting for it.

        Parameters
        ----------
        batch : Batch
            The batch.

        Returns
        -------
        Ticket
            For `collect`. At most two batches can be under way.
        """
        slot = self._slots.pop(0)
        try:
            return self._submit(batch, slot)
        except BaseException:
            self._slots.insert(0, slot)
            raise

    def _submit(self, batch: Batch, slot: Slot) -> Ticket:
        kernels = [self.describe(batch, launch) for launch in batch.launches]
        inputs = batch.inputs
        places = np.cumsum([0, *(-(-each.nbytes // ALIGNMENT) * ALIGNMENT for each in inputs)])
        shapes = [(len(launch.rows), len(batch.alphas), len(batch.lams)) for launch in batch.launches]
        sizes = [8 * int(np.prod(shape)) for shape in shapes]
        errors = int(places[-1]) + np.cumsum([0, *sizes])
        slot.reserve(int(errors[-1]))
        grids = [_blocks(batch, launch, kernel) for launch, kernel in zip(batch.launches, kernels, strict=True)]
        room = max(kernel.space * kernel.block * grid for kernel, grid in zip(kernels, grids, strict=True))
        slot.reserve_space(STREAMS * room)
        for place, each in zip(places, inputs, strict=False):
            slot.array[place : place + each.nbytes] = np.ascontiguousarray(each).view(np.uint8).ravel()
        base, main = int(slot.device), slot.streams[0]
        _checked(driver.cuMemcpyHtoDAsync(slot.device, slot.host, int(places[-1]), main))
        first = int(errors[0])
        # NaN, which stays where a thread writes nothing.
        _checked(driver.cuMemsetD8Async(base + first, 0xFF, int(errors[-1]) - first, main))
        _checked(driver.cuEventRecord(slot.ready, main))
        pointers = [base + int(place) for place in places[:-1]]
        for number, (launch, kernel, grid) in enumerate(zip(batch.launches, kernels, grids, strict=True)):
            stream = slot.streams[number % STREAMS]
            _checked(driver.cuStreamWaitEvent(stream, slot.ready, 0))
            space = 0 if slot.space is None else int(slot.space) + number % STREAMS * room
            own = pointers[9 + number], pointers[9 + len(kernels) + number]
            known = [*pointers[:9], *own, *pointers[-2:], space, base + int(errors[number])]
            self._launch(kernel, grid, batch, launch, known, stream)
        for stream, learned in zip(slot.streams[1:], slot.learned, strict=True):
            _checked(driver.cuEventRecord(learned, stream))
            _checked(driver.cuStreamWaitEvent(main, learned, 0))
        _checked(driver.cuMemcpyDtoHAsync(int(slot.host) + first, base + first, int(errors[-1]) - first, main))
        _checked(driver.cuEventRecord(slot.end, main))
        return Ticket(slot, shapes, first)

    def _launch(self, kernel: Kernel, grid: int, batch: Batch, launch: Launch, pointers: list[int], stream: Any) -> None:
        runs, steps = len(launch.rows), batch.rewards.shape[1]
        sizes = (
            batch.n, batch.features[0].size, batch.roots[0].size, steps, batch.chances.shape[1],
            runs, len(batch.alphas), len(batch.lams), batch.after,
        )  # fmt: skip
        values = (*pointers, *sizes, batch.discount, float(launch.method.second or 0.0))
        kinds = (*[ctypes.c_void_p] * len(pointers), *[ctypes.c_int64] * len(sizes), ctypes.c_double, ctypes.c_double)
        _checked(
            driver.cuLaunchKernel(
                kernel.function, grid, 1, 1, kernel.block, 1, 1, kernel.shared, stream, (values, kinds), 0
            )
        )

    def collect(self, ticket: Ticket) -> list[np.ndarray]:
        """Wait for a batch.

        Parameters
        ----------
        ticket : Ticket
            The return value of `submit`.

        Returns
        -------
        list of numpy.ndarray
            The errors of each launch: run × α × λ.
        """
        _checked(driver.cuEventSynchronize(ticket.slot.end))
        place, found = ticket.first, []
        for shape in ticket.shapes:
            size = 8 * int(np.prod(shape))
            found.append(ticket.slot.array[place : place + size].view(np.float64).reshape(shape).copy())
            place += size
        self._slots.append(ticket.slot)
        return found

    def threads(self, kernel: Kernel) -> int:
        """How many threads of a kernel a multiprocessor runs at a time.

        Parameters
        ----------
        kernel : Kernel
            The return value of `describe`.

        Returns
        -------
        int
            The number of threads.
        """
        return kernel.resident // self._processors * kernel.block

    def describe(self, batch: Batch, launch: Launch) -> Kernel:
        """The kernel for a method and the shape of a batch, compiled if need be.

        Parameters
        ----------
        batch : Batch
            The batch.
        launch : Launch
            One of its launches.

        Returns
        -------
        Kernel
            The kernel, and what its threads use.
        """
        memories = launch.method.memories or 1
        numbers = _numbers(batch, memories)  # of a learner's vectors
        few = batch.n if not batch.tabular and batch.n * memories <= MAX_IN_REGISTERS else 0
        shared = not few and 8 * numbers * WARP <= self._shared
        key = (
            launch.method.update,
            launch.method.kind,
            batch.tabular,
            batch.diagonal,
            few,
            shared,
            0 if few else numbers,
        )
        if key not in self._kernels:
            variant = code.Variant(batch.tabular, batch.diagonal, few, shared)
            cubin = code.machine_code(launch.method.update, launch.method.kind, variant, self.capability)
            function = _loaded(cubin)
            block = BLOCK
            while shared and block > WARP and 4 * 8 * numbers * block > self._shared:  # room for four blocks, if possible
                block //= 2
            size = 8 * numbers * block if shared else 0
            space = 0 if shared or few else 8 * numbers
            if shared:
                attribute = driver.CUfunction_attribute
                _checked(
                    driver.cuFuncSetAttribute(function, attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, size)
                )
                _checked(
                    driver.cuFuncSetAttribute(function, attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100)
                )
            registers = _checked(
                driver.cuFuncGetAttribute(driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, function)
            )
            blocks = _checked(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, block, size))
            self._kernels[key] = Kernel(function, block, size, space, max(1, blocks) * self._processors, registers)
        return self._kernels[key]


def _numbers(batch: Batch, memories: int) -> int:
    """How many numbers the vectors of a learner have: w − w* only where the error is summed from scratch."""
    return (2 * memories + (0 if batch.tabular and batch.diagonal else 1)) * batch.n


def _blocks(batch: Batch, launch: Launch, kernel: Kernel) -> int:
    """As many blocks as the learners fill, or as can run at a time: then each block takes the place of several."""
    needed = len(launch.rows) * -(-batch.cells // kernel.block)
    return min(needed, kernel.resident)


def _loaded(cubin: bytes) -> Any:
    module = _checked(driver.cuModuleLoadData(cubin))
    return _checked(driver.cuModuleGetFunction(module, code.ENTRY.encode()))


@cache
def gpu(number: int) -> Gpu:
    """The GPU with this number, set up once."""
    return Gpu(number)


def _checked(answer: tuple) -> Any:
    """The result of a call of the driver, or its error in words."""
    status, *results = answer
    if status == driver.CUresult.CUDA_SUCCESS:
        return results[0] if len(results) == 1 else tuple(results) if results else None
    _, name = driver.cuGetErrorName(status)
    _, text = driver.cuGetErrorString(status)
    words = f"{(name or b'an unknown error').decode()}: {(text or b'').decode()}"
    if status == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        raise OutOfMemoryError(words)
    raise DeviceError(words)
