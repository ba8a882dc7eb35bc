"""A cache of trajectories: several tasks learn from each, and it is sampled and checked once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock

import numpy as np

Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
MAX_BYTES = 64 * 2**20  # bytes: all runs of a process of the paper are one or two million


class Shared:
    """A cache of the trajectories that were used last, up to so many bytes. Threads that ask for the same one sample it once.

    Parameters
    ----------
    room : int
        The number of bytes. A trajectory that is larger is sampled each time.
    """

    def __init__(self, room: int) -> None:
        self._room, self._taken = room, 0
        self._lock = Lock()
        self._kept: OrderedDict[Hashable, _Place] = OrderedDict()

    def get(self, key: Hashable, sample: Callable[[], Parts]) -> Parts:
        """A trajectory, sampled if it is not in the cache.

        Parameters
        ----------
        key : hashable
            Everything that determines the trajectory.
        sample : callable
            Samples the trajectory.

        Returns
        -------
        tuple of numpy.ndarray
            Copies, so that nobody can change what others learn from.
        """
        with self._lock:
            place = self._kept.setdefault(key, _Place())
            self._kept.move_to_end(key)
        with place.lock:  # others that ask for the same wait here
            if place.parts is None:
                place.parts = sample()
                self._keep(key, place, sum(part.nbytes for part in place.parts))
            states, rewards, discounts, chances = place.parts
        return states.copy(), rewards.copy(), discounts.copy(), chances.copy()

    def _keep(self, key: Hashable, place: _Place, size: int) -> None:
        """Count the bytes of a sampled trajectory, and evict those that were not used for longest."""
        with self._lock:
            if self._kept.get(key) is place:
                place.size = size
                self._taken += size
            while self._taken > self._room:
                self._taken -= self._kept.popitem(last=False)[1].size


class _Place:
    def __init__(self) -> None:
        self.lock, self.size = Lock(), 0
        self.parts: Parts | None = None


SHARED = Shared(MAX_BYTES)
