"""The setup of predictions: all that determines them for given samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from trueonline.features import TileCoder
from trueonline.inputs import MAX_FEATURES, count, positive, unit
from trueonline.nexting.questions import discount_of
from trueonline.nexting.shared_traces.horde_layout import METHODS
from trueonline.nexting.signals import number_text, spelling

TILES = ("joint", "pairs", "single")


@dataclass(frozen=True)
class Setup:
    """The signals to predict, the signals to predict them from, and the method.

    Every target and every time scale give one question. A time scale is a horizon or a discount.

    Parameters
    ----------
    signals : sequence of str
        The signals that features are made of: columns, or functions of columns such as "velocity(x)".
    targets : sequence of str
        The signals to predict.
    discounts : sequence of float or str
        Time scales as γ, or as the name of a signal whose value at each sample is γ.
    horizons : sequence of float
        Time scales in seconds. They need `rate`.
    rate : float, optional
        The samples per second.
    method : str
        "true_online", "accumulate" or "replace".
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
    >>> setup = Setup(signals=["force", "velocity(force)"], targets=["force"], horizons=[0.5, 2.0], rate=40.0)
    >>> setup.scales()
    {'0.5s': 0.95, '2s': 0.9875}
    """

    signals: Sequence[str]
    targets: Sequence[str]
    discounts: Sequence[float | str] = ()
    horizons: Sequence[float] = ()
    rate: float | None = None
    method: str = "true_online"
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
        if not self.discounts and not self.horizons:
            raise ValueError("there must be at least one time scale: give a horizon in seconds, or a discount")
        if self.rate is not None:
            positive("rate", self.rate)
        elif self.horizons:
            raise ValueError("horizons in seconds need the rate, in samples per second: give rate")
        if self.method not in METHODS:
            raise ValueError(f"unknown method {self.method!r}; known are {', '.join(METHODS)}")
        if self.tiles not in TILES:
            raise ValueError(f"tiles must be one of {', '.join(TILES)}, got {self.tiles!r}")
        for discount in self.discounts:
            if not isinstance(discount, str):
                unit("discount", discount)
        positive("step_size", self.step_size)
        unit("trace_decay", self.trace_decay)
        if not 2 <= count("features", self.features) <= MAX_FEATURES:
            raise ValueError(f"features must be from 2 to {MAX_FEATURES:,}, got {self.features}")

    def scales(self) -> dict[str, float | str]:
        """List the time scales.

        Returns
        -------
        dict from str to float or str
            The label of each time scale in the names of questions, and its γ.

        Raises
        ------
        ValueError
            If two time scales are the same.
        """
        scales: dict[str, float | str] = {}
        for horizon in self.horizons:
            assert self.rate is not None
            scales[f"{number_text(horizon)}s"] = discount_of(horizon, self.rate)
        for discount in self.discounts:
            if isinstance(discount, str):
                scales[spelling(discount)] = spelling(discount)
            else:
                scales[number_text(discount)] = discount
        if len(set(scales.values())) < len(self.horizons) + len(self.discounts):
            raise ValueError("two of the time scales are the same; give each once")
        return scales

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
