"""Arrays for the memory of a horde: allocating them, and making room for more features and more questions."""

from __future__ import annotations

import numpy as np

from trueonline.core.compiling.kernels import call
from trueonline.streams.horde.entry_points import SETTLE
from trueonline.streams.horde.horde_layout import (
    AGE,
    ALPHA,
    DELTA,
    FIRST,
    LAM,
    LAST,
    METHOD,
    SCALE,
    TAKEN,
    TURN,
    HordeBuffers,
)

FIRST_BYTES = 2**28  # bytes of weights to begin with: the operating system commits a page only when it is written
MIN_PAGES = 64  # pages at least, and one more page for every so many rows


def pages(room: int) -> int:
    """The number of pages for so many rows."""
    return MIN_PAGES + room // MIN_PAGES


def allocate(n: int) -> HordeBuffers:
    """A memory of n features that has no questions yet."""
    return HordeBuffers(
        u=np.zeros((0, 0)),
        z=np.zeros((0, 0)),
        since=np.zeros((0, 0), np.int64),
        owing=np.zeros((pages(0), 0)),
        faded=np.zeros((pages(0), 0)),
        columns=np.zeros((DELTA + 1, 0)),
        numbers=np.zeros((SCALE + 1, 0)),
        places=np.zeros((TURN + 1, 0), np.int64),
        counts=np.zeros(2, np.int64),
        rows=np.full(n, -1, np.int32),
        order=np.zeros(0, np.int64),
        mark=np.zeros((0, 2)),
        at=np.zeros(0, np.int64),
        at_x=np.zeros(0),
        room=np.zeros((3, 0), np.int64),
        room_x=np.zeros((2, 0)),
    )


def add_rows(old: HordeBuffers) -> HordeBuffers:
    """Make room for more features. All debts are paid first, because the number of pages changes."""
    call(SETTLE, tuple(old))
    least = FIRST_BYTES // max(old.u.itemsize * old.u.shape[1], 1)
    room = min(max(2 * len(old.u), least, 1), len(old.rows))
    owing, faded = (np.zeros((pages(room), array.shape[1])) for array in (old.owing, old.faded))
    faded[old.places[AGE] % len(faded), np.arange(faded.shape[1])] = 1.0
    parts = {name: with_rows(getattr(old, name), room) for name in ("u", "z", "since", "mark")}
    return old._replace(**parts, owing=owing, faded=faded)


def with_rows(array: np.ndarray, rows: int) -> np.ndarray:
    """A copy with so many rows; the new ones are zero."""
    new = np.zeros((rows, *array.shape[1:]), array.dtype)
    new[: len(array)] = array
    return new


def hold(old: HordeBuffers, size: int) -> HordeBuffers:
    """Make room for that many active features."""
    at, at_x = np.zeros(size, np.int64), np.zeros(size)
    at[: len(old.at)], at_x[: len(old.at)] = old.at, old.at_x
    return old._replace(at=at, at_x=at_x, room=np.zeros((3, size), np.int64), room_x=np.zeros((2, size)))


def add_questions(old: HordeBuffers, members: np.ndarray, groups: list[tuple[int, float, float]]) -> HordeBuffers:
    """Make room for more questions, whose weights are zero.

    `members` has the group of each question, the old questions first. `groups` has the method, α and λ of each group.
    """
    order = np.argsort(members, kind="stable")
    column, before = np.argsort(order)[: len(old.order)], np.argsort(old.order)  # of the old questions
    fresh = len(groups) - old.z.shape[1]
    taken = slice(old.counts[TAKEN])  # to write other rows would commit them

    def wider(array: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        new = np.zeros((len(array), len(order)))
        new[rows, column] = array[rows, before]
        return new

    def more(array: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        new = np.zeros((len(array), len(groups)), array.dtype)
        new[rows, : array.shape[1]] = array[rows]
        return new

    numbers, places, faded = more(old.numbers), more(old.places), more(old.faded)
    if groups:
        places[METHOD], numbers[ALPHA], numbers[LAM] = zip(*groups, strict=True)
    places[LAST] = np.cumsum(np.bincount(members, minlength=len(groups)))
    places[FIRST, 1:] = places[LAST, :-1]
    faded[0, len(groups) - fresh :] = 1.0
    return old._replace(
        u=wider(old.u, taken),
        z=more(old.z, taken),
        since=more(old.since, taken),
        owing=wider(old.owing),
        faded=faded,
        columns=wider(old.columns),
        numbers=numbers,
        places=places,
        order=order,
    )
