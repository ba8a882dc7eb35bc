"""Checks of what comes from a file, before anything is done with it. Kernels index by some of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

MAX_COUNT = 2**53  # counts beyond this are no longer whole numbers in double precision


def saved_array(parts: Mapping[str, Any], name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array of a saved state. ValueError unless it is there, with this shape and this type."""
    array = parts.get(name)
    if not isinstance(array, np.ndarray):
        raise ValueError(f"its {name} does not fit: it is missing")
    if array.shape != shape or array.dtype != np.dtype(dtype):
        wanted = f"{np.dtype(dtype)} of shape {shape}"
        raise ValueError(f"its {name} does not fit: it must be {wanted}, got {array.dtype} of shape {array.shape}")
    return np.ascontiguousarray(array) if array.ndim else array


def saved_count(name: str, value: Any, most: int = MAX_COUNT) -> int:
    """A whole number from 0 to `most` that a file holds, as an integer, a float or an array of one. ValueError otherwise."""
    value = value.item() if isinstance(value, np.ndarray | np.generic) and value.size == 1 else value
    if isinstance(value, bool) or not isinstance(value, int | float) or not (0 <= value <= most and value == int(value)):
        raise ValueError(f"its {name} must be a whole number from 0 to {most:,}, got {value!r:.80}")
    return int(value)


def check_saved(fits: Mapping[str, Any]) -> None:
    """ValueError that names the first part that does not fit. `fits` says of each part whether it does."""
    wrong = [name for name, fit in fits.items() if not np.all(fit)]
    if wrong:
        raise ValueError(f"its {wrong[0]} does not fit: it holds numbers that are impossible there")


def saved_parts(state: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """A state whose names are PART/NAME, part by part."""
    parts: dict[str, dict[str, Any]] = {}
    for name, array in state.items():
        part, _, inner = name.partition("/")
        parts.setdefault(part, {})[inner] = array
    return parts


class HasState(Protocol):
    """An object whose `state` is arrays by name, and that resumes from them by `restore`."""

    def state(self) -> dict[str, np.ndarray]: ...

    def restore(self, state: Mapping[str, np.ndarray]) -> None: ...


class Resumable:
    """A base for classes with a state. It gives them `state` and `restore`.

    A class puts its numbers into `self._state`, a dictionary of arrays, and objects with a state of their own into `self._parts`.
    It may say in `_possible` which numbers can be. An array of texts, such as names, must be the same in every state.

    A state has the arrays of all parts under PART/NAME. The own arrays of a class with parts are under own/NAME.
    """

    _state: dict[str, np.ndarray]
    _parts: Mapping[str, HasState] = MappingProxyType({})

    def _possible(self, saved: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        """Whether the numbers of each saved array are possible, by the array's name. Shapes and types have been checked."""
        return {}

    def state(self) -> dict[str, np.ndarray]:
        """Copy everything that `restore` needs to resume bit for bit.

        Returns
        -------
        dict from str to array
            The arrays by name.
        """
        own = {name: array.copy() for name, array in self._state.items()}
        if not self._parts:
            return own
        states = {**{name: part.state() for name, part in self._parts.items()}, "own": own}
        return {f"{part}/{name}": array for part, state in states.items() for name, array in state.items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Resume from a state.

        Parameters
        ----------
        state : mapping from str to array
            The state of an object of the same class and settings.

        Raises
        ------
        ValueError
            If the state does not fit. An object with parts is of no use then. In any other object nothing has changed.
        """
        kind = type(self).__name__
        if not isinstance(state, Mapping):
            raise ValueError(f"the state of a {kind} must be a mapping from names to arrays, got {state!r:.80}")
        states = saved_parts(state) if self._parts else {"own": {**state}}
        for name, part in self._parts.items():
            part.restore(states.get(name, {}))
        try:
            own = {name: _like(array, states.get("own", {}), name) for name, array in self._state.items()}
            check_saved(self._possible(own))
        except ValueError as error:
            raise ValueError(f"the state cannot be that of this {kind}: {error}") from None
        for name, array in self._state.items():
            array[...] = own[name]  # in place, because compiled functions may be bound to this array


def _like(array: np.ndarray, saved: Mapping[str, Any], name: str) -> np.ndarray:
    """A saved array with the shape and the type of another, and with the same texts."""
    if array.dtype.kind != "U" or name not in saved:
        return saved_array(saved, name, array.shape, array.dtype)
    texts = np.asarray(saved[name]).tolist()
    if texts != array.tolist():
        raise ValueError(f"its {name} are {texts!r:.200}, not {', '.join(array.tolist())}")
    return array
