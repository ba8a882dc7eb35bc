"""Weighted importance sampling: the usage of each feature sets its step-size (Mahmood and Sutton 2015)."""

from __future__ import annotations

import numpy as np

from trueonline.inputs import read_only


class WithUsage:
    """The usage of features."""

    @property
    def initial_step_size(self) -> float | None:
        """The step-size of each feature at first; None for the first of `step_size`."""
        return self._initial_step_size  # type: ignore[attr-defined]

    @property
    def usage(self) -> np.ndarray:
        """A dense, read-only copy of the usage of each feature. `step_sizes` are its inverses."""
        return read_only(self._used())  # type: ignore[attr-defined]
