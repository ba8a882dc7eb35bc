"""Queues of samples that wait until what they are about comes true. Questions with the same discount wait in one queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trueonline.inputs import Resumable, saved_array, unit

# Columns of the rings, which have one row for each queue: the oldest slot, the samples that wait, those of the older half.
HEAD, WAITING, OLDER = range(3)
PIECE = 64  # samples of a block for which room is made at a time


def queues_of(
    discounts: Sequence[float | str],
) -> tuple[tuple[float | str, ...], np.ndarray, np.ndarray, np.ndarray]:
    """The queues in which samples wait: one for each different discount, with the questions that have it side by side.

    The result has four parts: the different discounts, the question at each place, how many questions each queue has, and the first
    place of each queue, with the number of all places behind them.
    """
    keys = list(dict.fromkeys(discounts))
    member = np.array([keys.index(discount) for discount in discounts], np.int64)
    sizes = np.bincount(member, minlength=len(keys))
    firsts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    checked = tuple(d if isinstance(d, str) else unit("discount", d) for d in keys)
    return checked, np.argsort(member, kind="stable"), sizes, firsts


class Queued(Resumable):
    """A base for classes with such queues. Their rings have as much room as is needed, up to a limit.

    A class calls `_set_up`, puts the arrays that this returns into its state, calls `_make_room` before samples come, and gives
    kernels `_plan`. This table of whole numbers has a row for each queue: the first question, how many there are, the room, the
    first slot, the first number of these slots, the limit of the room, and what the class adds.
    """

    def _set_up(
        self,
        discounts: Sequence[float | str],
        most: np.ndarray,
        shapes: Mapping[str, tuple[int, bool]],
        *more: Sequence[bool],
    ) -> dict[str, np.ndarray]:
        """Empty arrays of waiting samples. `shapes` says how many numbers of a kind there are, and whether for each question."""
        _, _, self._sizes, self._firsts = queues_of(discounts)
        self._most, self._shapes, self._more = most, shapes, more
        self._plan_for(np.minimum(most, 2))
        return {name: np.zeros(self._lengths(name, self._rooms).sum()) for name in shapes}

    def _plan_for(self, rooms: np.ndarray) -> None:
        self._rooms = rooms
        slots, places = (np.cumsum(each) - each for each in (rooms, rooms * self._sizes))
        columns = [self._firsts[:-1], self._sizes, rooms, slots, places, self._most, *self._more]
        self._plan = np.column_stack(columns).astype(np.int64)

    def _lengths(self, name: str, rooms: np.ndarray) -> np.ndarray:
        parts, of_questions = self._shapes[name]
        return parts * rooms * (self._sizes if of_questions else 1)

    def _moved(self, rooms: np.ndarray) -> dict[str, np.ndarray]:
        """Copies of the arrays of waiting samples, with other room, the oldest first."""
        rings, moved = self._state["rings"], {}
        for name, (parts, of_questions) in self._shapes.items():
            before, after = (np.cumsum(self._lengths(name, each)) for each in (self._rooms, rooms))
            new = [np.zeros(length) for length in np.diff(after, prepend=0)]
            for g, old in enumerate(np.split(self._state[name], before[:-1])):
                order = (rings[g, HEAD] + np.arange(rings[g, WAITING])) % self._rooms[g]
                wide = self._sizes[g] if of_questions else 1
                moving = old.reshape(parts, self._rooms[g], wide)[:, order]
                new[g].reshape(parts, rooms[g], wide)[:, : len(order)] = moving
            moved[name] = np.concatenate(new)
        return moved

    def _make_room(self, samples: int) -> int:
        """Make room for samples that come. Return how many may come now."""
        waiting, coming = self._state["rings"][:, WAITING], min(samples, PIECE)
        if (self._rooms < np.minimum(self._most, waiting + coming)).any():
            wanted = np.maximum(waiting + coming, self._rooms + self._rooms // 4)
            rooms = np.minimum(self._most, np.maximum(wanted, self._rooms))
            self._state |= self._moved(rooms)
            self._state["rings"][:, HEAD] = 0
            self._plan_for(rooms)
        left = np.where(self._rooms < self._most, self._rooms - waiting, samples)
        return int(min(samples, left.min(initial=samples)))

    def state(self) -> dict[str, np.ndarray]:
        """Copy everything that `restore` needs to resume bit for bit: of the rings, only the samples that wait."""
        state = super().state() | self._moved(self._state["rings"][:, WAITING])
        state["rings"][:, HEAD] = 0
        return state

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Resume from a state. ValueError if it does not fit. Nothing has changed then."""
        before, rooms = dict(self._state), self._rooms
        try:
            if isinstance(state, Mapping):
                rings = saved_array(state, "rings", before["rings"].shape, np.int64)
                self._plan_for(np.clip(rings[:, WAITING], 0, self._most))
                self._state |= {name: np.zeros(self._lengths(name, self._rooms).sum()) for name in self._shapes}
            super().restore(state)
        except ValueError as error:
            self._state = before
            self._plan_for(rooms)
            about = f"the state cannot be that of this {type(self).__name__}: "
            raise ValueError(about + str(error).removeprefix(about)) from None

    def _rings_possible(self, rings: np.ndarray) -> bool:
        """Whether saved rings can be."""
        return bool(
            (rings >= 0).all()
            and (rings[:, HEAD] == 0).all()
            and (rings[:, WAITING] == self._rooms).all()
            and (rings[:, OLDER] <= rings[:, WAITING]).all()
        )
