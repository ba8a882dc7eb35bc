"""The experts of a mixture: naive forecasts, and small learners that correct them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from trueonline.inputs import count, positive, unit

BASES = {  # naive forecasts of the mean over the horizon: the value stays as it is now, or as it usually was
    "hold": "newest value",
    "mean": "mean so far",
    "fast": "mean of a quarter of the horizon",
    "slow": "mean of a horizon",
    "median": "median so far",  # medians have less error than means where values are skewed, as counts with bursts
    "recent": "median of about a hundred values",
}
LEARNED_BASES = ("hold", "mean", "slow")  # those that learners correct
# Step-sizes with values of λ: slow and sure, and fast; traces of about thirty samples. Shorter traces made the mixture no better.
PACES = ((0.1, 0.97), (0.5, 0.97))
WEEKLY = ("hour and weekend", "hour and weekday")  # seldom seen features, too seldom to correct the newest value


@dataclass(frozen=True)
class FeatureSet:
    """Binary features that some experts learn from.

    Parameters
    ----------
    name : str
        The content of the features, in words, such as "hour of the day and value".
    n_features : int
        How many features there are.
    n_active : int
        How many of them are active at a time.

    Raises
    ------
    ValueError
        If the name is empty, or a number is not positive.
    """

    name: str
    n_features: int
    n_active: int

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"a feature set must have a name, got {self.name!r}")
        if count("n_active", self.n_active) > count("n_features", self.n_features) or self.n_active < 1:
            raise ValueError(f"n_active must be from 1 to n_features = {self.n_features}, got {self.n_active}")


@dataclass(frozen=True)
class Expert:
    """A forecast that takes part in a mixture: a base as it is, or a base corrected by true online TD(λ).

    Parameters
    ----------
    base : str
        The name of the naive forecast.
    features : str, optional
        The name of the feature set that the correction is learned from. None: the base as it is.
    step_size : float
        The share of the error that one update corrects. It is divided by the number of active features.
    trace_decay : float
        λ, in [0, 1].

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> Expert("hold", "hour of the day", step_size=0.3, trace_decay=0.9).words()
    'hour of the day, λ = 0.9, α = 0.3, on the newest value'
    """

    base: str
    features: str | None = None
    step_size: float = 0.1
    trace_decay: float = 0.9

    def __post_init__(self) -> None:
        positive("step_size", self.step_size)
        unit("trace_decay", self.trace_decay)

    def words(self) -> str:
        """Describe the expert.

        Returns
        -------
        str
            A short description for people.
        """
        base = BASES.get(self.base, self.base)
        if self.features is None:
            return f"{base} stays"
        return f"{self.features}, λ = {self.trace_decay:g}, α = {self.step_size:g}, on the {base}"


@cache
def all_experts(
    feature_sets: tuple[FeatureSet, ...], paces: tuple[tuple[float, float], ...] = PACES
) -> tuple[Expert, ...]:
    """The naive forecasts, and a learner for every feature set, pace and base, except the newest value by the week.

    Parameters
    ----------
    feature_sets : tuple of FeatureSet
        The features to learn from.
    paces : tuple of (float, float)
        Step-sizes, each with a λ.

    Returns
    -------
    tuple of Expert
        The experts, the naive ones first.
    """
    naive = [Expert(base) for base in BASES]
    learners = [
        Expert(base, features.name, step_size, trace_decay)
        for features in feature_sets
        for step_size, trace_decay in paces
        for base in LEARNED_BASES
        if base != "hold" or features.name not in WEEKLY
    ]
    return (*naive, *learners)
