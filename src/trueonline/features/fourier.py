"""The Fourier basis: cosines over the observations, scaled to [0, 1]."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trueonline.core.compiling.kernels import call, kernel, specialise
from trueonline.core.forms import pointer
from trueonline.features.scaling import FAST_TYPES, Scaling, as_given, beyond, finite, shown, unit
from trueonline.inputs import count, flag

MAX_FOURIER_FEATURES = 1_000_000
MAX_ORDER = 10_000


# --- In kernels -----------------------------------------------------------------------------------


def one(bounds, coefficients, clipped, x, features):
    """Write the features at observation x. A bad one is a ValueError without a message, before anything is counted."""
    here = pointer(x, 0)
    if x.size != clipped.size or not finite(here, x.size):
        raise ValueError
    waves(pointer(bounds, 0), coefficients, clipped, here, np.empty(x.size), features)


def many(bounds, coefficients, clipped, X, features):
    """Write the features at each row of X, which has been checked."""
    scaled = np.empty(clipped.size)
    for t in range(X.shape[0]):
        waves(pointer(bounds, 0), coefficients, clipped, pointer(X, t * X.shape[1]), scaled, features[t])


@kernel
def waves(bounds, coefficients, clipped, x, scaled, features):
    """cos(π cᵀu) for every c."""
    for i in range(clipped.size):
        clipped[i] += beyond(bounds, i, x[i])
        scaled[i] = unit(bounds, i, x[i])
    for j in range(features.size):
        phase = 0.0
        for i in range(clipped.size):
            phase += coefficients[j, i] * scaled[i]
        features[j] = math.cos(math.pi * phase)


_ONE, _MANY = specialise(one, "fourier"), specialise(many, "fourier")


# --- Seen from Python -----------------------------------------------------------------------------


class Fourier:
    """The Fourier basis: from an observation of d numbers to the features cos(π cᵀu).

    u is the observation, scaled to [0, 1] in each dimension. The basis is that of Konidaris, Osentoski and Thomas (2011,
    *Value function approximation in reinforcement learning using the Fourier basis*).

    Parameters
    ----------
    low, high : array_like
        The bounds of an observation, as numbers or as arrays of the observation's shape. A bound of magnitude 1e9 or more
        means that there is no bound.
    order : int
        The largest entry of a vector c.
    coupled : bool
        Whether a feature may depend on several dimensions. Coupled, c runs over all vectors of whole numbers from 0 to
        `order`, in row-major order: (order + 1)^d features. Not coupled, c is 0, then for each dimension in turn 1 …
        `order` in that dimension and 0 in the others: 1 + d·order features.
    scales : array_like, optional
        The size of ordinary values in dimensions without bounds, as one number or one for each dimension. The default is 1.
    kind : str
        Always "fourier". It is here so that `settings` can be passed back.

    Raises
    ------
    ValueError
        If an argument is out of range, or if there would be too many features.

    Notes
    -----
    The first feature is the constant 1. `step_size_scales` is 1/‖c‖ (1 for c = 0). The authors multiply the step-size of
    each feature by it. A learner has one step-size for all features. It does the same when its features are
    ``basis(x) * np.sqrt(basis.step_size_scales)``.

    Observations are treated as by `TileCoder`. Numbers beyond a bound are moved to the bound and counted in `clipped`.
    Dimensions without bounds are squashed by an arctan of x / scale (`features.scaling` has the formula of u).

    Examples
    --------
    >>> basis = Fourier(low=[0.0, 0.0], high=[1.0, 2.0], order=1)
    >>> basis.coefficients.tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> basis([0.0, 2.0])                       # u = (0, 1)
    array([ 1., -1.,  1., -1.])
    """

    def __init__(
        self, low: Any, high: Any, *, order: int = 3, coupled: bool = True, scales: Any = None, kind: str = "fourier"
    ) -> None:
        if kind != "fourier":
            raise ValueError(
                f"kind must be 'fourier' for a Fourier basis, got {kind!r}; features.restore takes every kind"
            )
        self._scaling = Scaling.of(low, high, scales)
        self._order = count("order", order, MAX_ORDER)
        self._coupled = flag("coupled", coupled)
        d = self._scaling.size
        total = (self._order + 1) ** d if coupled else 1 + d * self._order
        if total > MAX_FOURIER_FEATURES:
            advice = "give coupled=False or a lower order" if coupled else "give a lower order"
            raise ValueError(
                f"order={order} in {d} dimensions makes {total:.3g} features, more than {MAX_FOURIER_FEATURES:,}; {advice}"
            )
        self._coefficients = _coefficients(d, self._order, self._coupled)
        self._coefficients.flags.writeable = False
        self._clipped = np.zeros(d, np.int64)
        self._plan = (self._scaling.bounds(), self._coefficients.astype(np.float64), self._clipped)
        self._quick_types = FAST_TYPES if len(self._scaling.shape) == 1 else ()
        self._quick = partial(_ONE, *self._plan)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self._coefficients)

    @property
    def n_active(self) -> int:
        """The number of features that are active at a time: all of them."""
        return len(self._coefficients)

    @property
    def coefficients(self) -> np.ndarray:
        """The vectors c, one row for each feature. The array is read-only."""
        return self._coefficients

    @property
    def step_size_scales(self) -> np.ndarray:
        """1/‖c‖ for each feature, and 1 for c = 0."""
        norms = np.linalg.norm(self._coefficients, axis=1)
        return 1.0 / np.where(norms == 0.0, 1.0, norms)

    @property
    def clipped(self) -> np.ndarray:
        """For each dimension, how many numbers have been moved to a bound so far."""
        return self._clipped.copy()

    def __call__(self, x: ArrayLike) -> np.ndarray:
        """The features at an observation.

        Parameters
        ----------
        x : array_like
            An observation of the shape of `low`.

        Returns
        -------
        numpy.ndarray
            A new array of `n_features` numbers.

        Raises
        ------
        ValueError
            If `x` has another shape, or is not finite.
        """
        features = np.empty(self.n_features)
        if type(x) is np.ndarray and x.dtype in self._quick_types and x.flags.carray:
            try:
                self._quick(x, features)
                return features
            except (TypeError, ValueError):
                pass  # not compiled yet, or a bad observation: nothing was counted, and the checks below find out
        call(_ONE, *self._plan, as_given(x, self._scaling.observation(x)), features)
        return features

    def many(self, X: ArrayLike) -> np.ndarray:
        """The features at many observations, in one compiled call.

        Parameters
        ----------
        X : array_like
            One observation per row.

        Returns
        -------
        numpy.ndarray
            A 2-D array with a row of features for each observation.

        Raises
        ------
        ValueError
            If a row has the wrong shape, or is not finite.
        """
        rows = self._scaling.observations(X)
        features = np.empty((len(rows), self.n_features))
        call(_MANY, *self._plan, rows, features)
        return features

    def settings(self) -> dict[str, Any]:
        """The settings of this basis, as a dictionary that JSON can hold.

        Returns
        -------
        dict
            `Fourier(**settings)` is the same basis, with its counts at zero.
        """
        return {"kind": "fourier", **self._scaling.settings(), "order": self._order, "coupled": self._coupled}

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self.settings(), "clipped": self._clipped}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["settings"])  # type: ignore[misc]
        self._clipped[:] = state["clipped"]

    def __repr__(self) -> str:
        return shown(self)


def _coefficients(d: int, order: int, coupled: bool) -> np.ndarray:
    if coupled:
        return np.indices((order + 1,) * d).reshape(d, -1).T.astype(np.int64, order="C")
    alone = np.kron(np.eye(d, dtype=np.int64), np.arange(1, order + 1)[:, None])
    return np.concatenate([np.zeros((1, d), np.int64), alone])
