"""The weights and the trace of one question, as dense vectors."""

from __future__ import annotations

import numpy as np

from trueonline.streams.horde.horde_layout import LAST, OWED, SCALE, HordeBuffers


def weights(memory: HordeBuffers, question: int) -> np.ndarray:
    """A dense copy of the weights of one question."""
    column, group, seen, rows = _find(memory, question)
    page = memory.since[rows, group] % len(memory.owing)
    owed = memory.owing[page, column] + memory.faded[page, group] * memory.columns[OWED, column]
    w = np.zeros(len(memory.rows))
    w[seen] = memory.u[rows, column] + owed * memory.z[rows, group]
    return w


def trace(memory: HordeBuffers, question: int) -> np.ndarray:
    """A dense copy of the trace of a question's group."""
    _, group, seen, rows = _find(memory, question)
    page = memory.since[rows, group] % len(memory.owing)
    e = np.zeros(len(memory.rows))
    e[seen] = memory.numbers[SCALE, group] * memory.faded[page, group] * memory.z[rows, group]
    return e


def _find(memory: HordeBuffers, question: int) -> tuple[int, int, np.ndarray, np.ndarray]:
    """The column and the group of a question, the features that have been seen, and their rows."""
    column = int(np.flatnonzero(memory.order == question)[0])
    seen = np.flatnonzero(memory.rows >= 0)
    return column, int(np.searchsorted(memory.places[LAST], column, side="right")), seen, memory.rows[seen]
