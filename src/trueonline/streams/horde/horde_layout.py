"""The layout of the memory of a horde, outside of kernels (`HordeBuffers`, arrays) and inside (`HordeMemory`, pointers)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trueonline.core.compiling.kernels import kernel
from trueonline.core.forms import pointer

ACCUMULATE, REPLACE, TRUE_ONLINE = range(3)
TRACE_CODES = {"accumulate": ACCUMULATE, "replace": REPLACE, "true_online": TRUE_ONLINE}

OWED, V, V_OLD, B, D, SUM, DELTA = range(7)  # rows of `columns`, which has one column for each question
ALPHA, LAM, GAMMA, SCALE = range(4)  # rows of `numbers`, which has one column for each group
FIRST, LAST, METHOD, AGE, TURN = range(
    5
)  # rows of `places`, one column for each group. Its questions are FIRST to LAST − 1
TAKEN, LENGTH = range(2)  # entries of `counts`: rows that are taken, features that are active
DONE, BAD, FULL = range(3)  # outcomes of a step


class HordeBuffers(NamedTuple):
    """The memory outside of kernels: arrays. `HordeMemory` says what they mean. Entry points take them as a plain tuple."""

    u: np.ndarray
    z: np.ndarray
    since: np.ndarray
    owing: np.ndarray
    faded: np.ndarray
    columns: np.ndarray
    numbers: np.ndarray
    places: np.ndarray
    counts: np.ndarray
    rows: np.ndarray
    order: np.ndarray
    mark: np.ndarray
    at: np.ndarray
    at_x: np.ndarray
    room: np.ndarray
    room_x: np.ndarray


class HordeMemory(NamedTuple):
    """The memory inside a kernel: pointers, because Numba would count references to arrays in every piece."""

    n: Any  # features
    room: Any  # rows
    pages: Any
    questions: Any
    groups: Any
    most: Any  # active features
    u: Any  # row × column
    z: Any  # row × group
    since: Any  # row × group: the age in which the row was last settled
    owing: Any  # page × column: D
    faded: Any  # page × group: P
    c: Any
    v: Any
    v_old: Any
    b: Any
    d: Any
    sum: Any
    delta: Any
    alpha: Any
    lam: Any
    gamma: Any
    s: Any
    first: Any
    last: Any
    method: Any
    age: Any
    turn: Any
    counts: Any
    row: Any  # feature → row, or −1
    order: Any  # column → question
    mark: Any  # row × 2: x and x', while a step needs them
    at: Any  # the indices of the active features …
    at_x: Any  # … and their values
    given: Any  # room for a copy of the indices that a call gives …
    given_x: Any  # … and of their values
    here: Any  # room for the rows of the active features
    there: Any  # room for the rows of the next features …
    there_x: Any  # … and their values


@kernel
def attach(buffers):
    """Point into these arrays for the duration of one entry point. The caller keeps the arrays alive."""
    u, z, since, owing, faded, columns, numbers, places, counts, rows, order, mark, at, at_x, room, room_x = buffers
    m, g, most = u.shape[1], z.shape[1], at.size
    return HordeMemory(
        rows.size, u.shape[0], owing.shape[0], m, g, most, pointer(u, 0), pointer(z, 0), pointer(since, 0), pointer(owing, 0),
        pointer(faded, 0), pointer(columns, OWED * m), pointer(columns, V * m), pointer(columns, V_OLD * m),
        pointer(columns, B * m), pointer(columns, D * m), pointer(columns, SUM * m), pointer(columns, DELTA * m),
        pointer(numbers, ALPHA * g), pointer(numbers, LAM * g), pointer(numbers, GAMMA * g), pointer(numbers, SCALE * g),
        pointer(places, FIRST * g), pointer(places, LAST * g), pointer(places, METHOD * g), pointer(places, AGE * g),
        pointer(places, TURN * g), pointer(counts, 0), pointer(rows, 0), pointer(order, 0), pointer(mark, 0), pointer(at, 0),
        pointer(at_x, 0), pointer(room, 0), pointer(room_x, 0), pointer(room, most), pointer(room, 2 * most), pointer(room_x, most),
    )  # fmt: skip
