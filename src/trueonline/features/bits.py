"""Observations that are made of bits, such as the screens of MinAtar: each bit is a feature."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trueonline.features.scaling import shown
from trueonline.inputs import MAX_FEATURES, as_array, count

USUAL_SHARE = 0.05  # of the bits is on: 0.01 to 0.08 in the games of MinAtar


class Bits:
    """One feature for each bit of an observation, and one that is always active.

    Parameters
    ----------
    n : int
        The number of bits. The shape of an observation does not matter.
    n_active : int, optional
        The number of bits that are usually on, by which `trueonline train` divides the step-size. A twentieth of `n` by default.
    kind : str
        Always "bits". It is here so that `settings` can be passed back.

    Examples
    --------
    >>> Bits(4)([False, True, True, False])
    array([1, 2, 4])
    """

    def __init__(self, n: int, n_active: int | None = None, *, kind: str = "bits") -> None:
        if kind != "bits":
            raise ValueError(f"kind must be 'bits' for Bits, got {kind!r}; features.restore takes every kind")
        self._n = count("n", n, MAX_FEATURES - 1)
        self.n_features = self._n + 1
        self.n_active = (
            math.ceil(USUAL_SHARE * self._n) if n_active is None else count("n_active", n_active, self.n_features)
        )

    def __call__(self, x: Any) -> np.ndarray:
        """The indices of the bits that are on, and of the feature that is always active.

        Parameters
        ----------
        x : array_like of bool, or of zeros and ones
            The observation.

        Returns
        -------
        numpy.ndarray
            The indices in ascending order.

        Raises
        ------
        ValueError
            If `x` does not have `n` bits.
        """
        bits = as_array("x", x).ravel()
        if bits.size != self._n or not (bits.dtype == bool or ((bits == 0) | (bits == 1)).all()):
            raise ValueError(
                f"the observation must be {self._n:,} zeros and ones, got {bits.dtype} of size {bits.size:,}"
            )
        return np.append(np.flatnonzero(bits), self._n)

    def many(self, X: Any) -> list[np.ndarray]:
        """The features of many observations.

        Parameters
        ----------
        X : sequence of array_like
            The observations.

        Returns
        -------
        list of numpy.ndarray
            The indices of each, as `run` takes them.
        """
        return [self(x) for x in X]

    def settings(self) -> dict[str, Any]:
        """The settings, as a dictionary that JSON can hold.

        Returns
        -------
        dict
            `Bits(**settings)` makes the same features.
        """
        return {"kind": "bits", "n": self._n, "n_active": self.n_active}

    def __repr__(self) -> str:
        return shown(self)
