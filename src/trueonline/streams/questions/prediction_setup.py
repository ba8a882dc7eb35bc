"""The setup of predictions: all that determines them for given samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from trueonline.features import TileCoder
from trueonline.inputs import MAX_FEATURES, count, number, positive, unit
from trueonline.streams.horde.horde_layout import TRACE_CODES
from trueonline.streams.questions.time_scales import TimeScale, time_scales
from trueonline.streams.signals import spelling

AUTO = "auto"  # the mixture of experts
TILES = ("joint", "pairs", "single")


@dataclass(frozen=True)
class Setup:
    """The signals to predict, the signals to predict them from, and the method.

    Every target and every time scale give one question. A time scale is a horizon or a discount (`time_scales`).

    Parameters
    ----------
    signals : sequence of str
        The signals that features are made of: columns, or functions of columns such as "velocity(x)".
    targets : sequence of str
        The signals to predict.
    discounts : sequence of float or str
        Time scales as γ, or as the name of a signal whose value at each sample is γ.
    horizons : sequence of float or str
        Time scales in seconds, or in samples as "20 samples".
    max_gap : float, optional
        Seconds. A longer time between samples begins something new. None: ten samples and three of the longest horizon, if a
        horizon is in seconds, as measured.
    meaning : str, optional
        "mean": predictions are means over the horizon, in the unit of the signal. "return": they are discounted sums. None:
        means for horizons, returns for discounts.
    rate : float, optional
        The samples per second. Lags, and returns over horizons in seconds, need it.
    coverage : float
        The share of what comes true that the bands should contain.
    minimum, maximum : float, optional
        Bounds of the targets, which no forecast and no band crosses. For the method "auto".
    method : str
        "auto": a mixture of experts, with nothing to tune. "true_online", "accumulate" or "replace": one learner, with the
        parameters that follow.
    step_size : float
        The step-size, which is divided by the number of active features.
    trace_decay : float
        λ, in [0, 1].
    bins : int
        The number of tiles along each signal.
    tilings : int
        The number of tilings of each grid.
    features : int
        The most features. More tiles than that are hashed to this number.
    tiles : str
        "joint": one grid over all signals. "pairs": a grid for every two signals. "single": a grid for each signal.
    bounds : mapping from str to (low, high)
        Fixed bounds of signals. All other signals have running bounds.

    Raises
    ------
    ValueError
        If a part is missing or out of range.

    Examples
    --------
    >>> setup = Setup(signals=["force", "velocity(force)"], targets=["force"], horizons=[900.0, "20 samples"])
    >>> [(scale.label, scale.discount) for scale in setup.scales()]
    [('15min', None), ('20samples', 0.95)]
    """

    signals: Sequence[str]
    targets: Sequence[str]
    discounts: Sequence[float | str] = ()
    horizons: Sequence[float | str] = ()
    meaning: str | None = None
    rate: float | None = None
    max_gap: float | None = None
    coverage: float = 0.9
    minimum: float | None = None
    maximum: float | None = None
    method: str = AUTO
    step_size: float = 0.1
    trace_decay: float = 0.9
    bins: int = 10
    tilings: int = 8
    features: int = 200_000
    tiles: str = "joint"
    bounds: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("signals", "targets", "discounts", "horizons"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in ("signals", "targets"):
            if not getattr(self, name):
                raise ValueError(f"{name} must have at least one signal, got none")
        _check_once(self.signals)
        if not self.discounts and not self.horizons:
            raise ValueError("there must be at least one time scale: give a horizon in seconds, or a discount")
        for name, value in (("rate", self.rate), ("max_gap", self.max_gap)):
            positive(name, 1.0 if value is None else value)
        if self.method not in (AUTO, *TRACE_CODES):
            raise ValueError(f"unknown method {self.method!r}; known are {', '.join((AUTO, *TRACE_CODES))}")
        if self.meaning not in (None, "mean", "return"):
            raise ValueError(f"meaning must be 'mean' or 'return', got {self.meaning!r}")
        if not 0.0 < self.coverage < 1.0:
            raise ValueError(f"coverage must be above 0 and below 1, got {self.coverage!r}; 0.9 is 90 %")
        if self.tiles not in TILES:
            raise ValueError(f"tiles must be one of {', '.join(TILES)}, got {self.tiles!r}")
        for scale in self.scales():
            if self.method == AUTO and not scale.has_mean:
                raise ValueError(
                    f"the method 'auto' needs a discount below 1 that is a number, got {scale.label}; give a horizon, or the "
                    "method 'true_online'"
                )
        self._check_bounds()
        positive("step_size", self.step_size)
        unit("trace_decay", self.trace_decay)
        if not 2 <= count("features", self.features) <= MAX_FEATURES:
            raise ValueError(f"features must be from 2 to {MAX_FEATURES:,}, got {self.features}")

    def _check_bounds(self) -> None:
        """ValueError if the bounds of the targets make no sense."""
        bounds = [
            number(name, value) for name, value in (("min", self.minimum), ("max", self.maximum)) if value is not None
        ]
        if bounds and self.method != AUTO:
            raise ValueError(f"min and max are for the method 'auto', got {self.method!r}; leave them out")
        if len(bounds) == 2 and not bounds[0] < bounds[1]:
            raise ValueError(f"min must be below max, got {bounds[0]:g} and {bounds[1]:g}")

    def scales(self) -> list[TimeScale]:
        """List the time scales.

        Returns
        -------
        list of TimeScale
            The time scales, horizons first.

        Raises
        ------
        ValueError
            If two time scales are the same.
        """
        return time_scales(self.horizons, self.discounts, self.meaning, self.rate)

    def coder(self) -> TileCoder:
        """Make the tile coder.

        Returns
        -------
        TileCoder
            Features of signals that lie between 0 and 1, with a bias unit.
        """
        d = len(self.signals)
        size = {"joint": d, "pairs": 2, "single": 1}[self.tiles]
        groups = [*combinations(range(d), min(size, d))]
        tiles = len(groups) * self.tilings * self.bins ** min(size, d)
        hashed = self.features if tiles + 1 > self.features else None
        grids: dict[str, Any] = {"bins": self.bins, "tilings": self.tilings, "size": hashed, "groups": groups}
        return TileCoder(low=np.zeros(d), high=np.ones(d), bias=True, **grids)

    def as_json(self) -> dict[str, Any]:
        """Describe the setup in types that JSON has.

        Returns
        -------
        dict from str to object
            Every field by its name.
        """
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()} | {
            "bounds": {name: [float(v) for v in pair] for name, pair in self.bounds.items()}
        }


def _check_once(signals: Sequence[str]) -> None:
    """ValueError if a signal is given twice."""
    written = [spelling(name) for name in signals]
    twice = [name for name in written if written.count(name) > 1]
    if twice:
        raise ValueError(f"the signal {twice[0]} is given twice; give each signal once")
