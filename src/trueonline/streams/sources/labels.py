"""Names of signals in a column: the readers of sources make numbers of them, so that a block stays an array of numbers."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from trueonline.streams.sources.cells import MalformedError, is_missing

MAX_CHARACTERS = 200  # in a name


class Labels:
    """The names that were read from a column, in the order of their first appearance. A name's place is its code.

    Parameters
    ----------
    column : str
        The column, or the key, that names the signal of a sample.

    Examples
    --------
    >>> labels = Labels("pump")
    >>> [labels.code(name) for name in ("north", "south", "north")], labels.names
    ([0.0, 1.0, 0.0], ['north', 'south'])
    """

    def __init__(self, column: str) -> None:
        self.column = column
        self.names: list[str] = []
        self._codes: dict[str, float] = {}
        self._lock = threading.Lock()

    def code(self, name: Any) -> float:
        """The code of a name. MalformedError if it is none."""
        text = "" if name is None else str(name).strip()
        code = self._codes.get(text)
        if code is not None:
            return code
        if is_missing(text) or isinstance(name, dict | list):
            raise MalformedError(f"{self.column} names no signal")
        if len(text) > MAX_CHARACTERS:
            raise MalformedError(f"{self.column} has a name of more than {MAX_CHARACTERS} characters")
        if len(text.splitlines()) > 1 or any("\ud800" <= each <= "\udfff" for each in text):
            raise MalformedError(f"{self.column} has a name that is not one line of Unicode text")
        with self._lock:  # the thread that receives samples, and the one that restores
            if text not in self._codes:
                self.names.append(text)
                self._codes[text] = float(len(self.names) - 1)
        return self._codes[text]

    def codes(self, names: Sequence[Any]) -> tuple[np.ndarray, dict[int, str]]:
        """The codes of many names, NaN for what is none, and why, by their places."""
        out, wrong = np.full(len(names), math.nan), {}
        for place, name in enumerate(names):
            try:
                out[place] = self.code(name)
            except MalformedError as error:
                wrong[place] = str(error)
        return out, wrong

    def of(self, codes: np.ndarray) -> list[str]:
        """The names of codes."""
        return [self.names[int(code)] for code in codes]

    def restore(self, names: Sequence[str]) -> None:
        """Take the names of an earlier run. Names that are there keep their codes, which samples that wait have."""
        for name in names:
            self.code(name)
