"""Help with the step-size (`step_sizes`) as learners and agents have it: two settings, what it tells, what is saved of it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from trueonline import inputs
from trueonline.core import memory
from trueonline.core.adaptation import Form
from trueonline.core.memory import (
    ACCUMULATES,
    BOUND,
    BOUNDED,
    DISCOUNT,
    META,
    TRACE_DECAY,
    WEIGHED,
    Buffers,
)
from trueonline.inputs import Parameters


class Helped:
    """What learns over a memory, whose step-size may be helped.

    Two departures from the paper, both off by default (docs/step_sizes.md):

    - `bound`: α is lowered for a transition whose update would close more than this share of its error; 1 keeps it from
      overshooting.
    - `meta_step_size`: θ of TIDBD, by which every feature's step-size adapts to the errors seen where it was active. 0.01
      is usual. Where no bound is given with it, it is 1.
    """

    _form: ClassVar[Form] = Form()  # of the method
    _memories: ClassVar[int] = 1  # how many the method is over
    _parameters: Parameters
    _memory: Buffers
    _help: tuple[float | None, float | None] = (None, None)

    def _set_help(self, bound: float | None, meta_step_size: float | None) -> None:
        theta = None if meta_step_size is None else inputs.ratio("meta_step_size", meta_step_size)
        bound = 1.0 if bound is None and theta else bound
        self._help = None if bound is None else inputs.positive("bound", bound), theta

    @property
    def bound(self) -> float | None:
        return self._help[0]

    @property
    def meta_step_size(self) -> float | None:
        return self._help[1]

    @property
    def step_sizes(self) -> np.ndarray:
        """The step-size of each weight as it stands, before any bound: a fresh copy, in the shape of the weights."""
        rates = self._of_features()[0] if self._is_helped else np.ones(self._parameters.n_features)
        return self._parameters.alpha(self.steps) * np.where(rates == 0.0, 1.0, rates).reshape(self._shape)

    @property
    def bounded(self) -> int:
        """How many transitions have been learned from with a lower step-size, because of `bound`."""
        return int(self._memory.numbers[BOUNDED])

    @property
    def _is_helped(self) -> bool:
        return self._help != (None, None)

    @property
    def steps(self) -> int:
        raise NotImplementedError

    @property
    def _shape(self) -> tuple[int, ...]:
        """The shape of the weights."""
        return (self._parameters.n_features,)

    def _of_features(self) -> np.ndarray:
        return memory.of_features(self._memory, self._memories)

    def _allocate(self) -> None:
        """An empty memory, with all that is to be known of the settings."""
        initial = self._parameters.initial_weights
        self._memory = self._empty(initial)
        if self._is_helped and initial is not None:
            self._of_features()[1] = -initial  # H = w + past = 0

    def _empty(self, weights: np.ndarray | None = None) -> Buffers:
        made = memory.allocate(self._parameters.n_features, weights, self._memories, self._is_helped)
        self._tell(made.numbers)
        return made

    def _tell(self, head: np.ndarray) -> None:
        bound, theta = self._help
        head[[DISCOUNT, TRACE_DECAY]] = self._parameters.discount, self._parameters.trace_decay
        if self._is_helped:
            head[[BOUND, META]] = bound or np.inf, theta or 0.0
            head[[ACCUMULATES, WEIGHED]] = self._form

    def _dump_memory(self) -> dict[str, np.ndarray]:
        first, *others = [memory.dump(one) for one in memory.each(self._memory, self._memories)]
        parts = first | {f"{n}_{name}": part for n, other in enumerate(others, 2) for name, part in other.items()}
        if self._is_helped:
            kept = self._of_features()[:3]
            parts["rated"] = np.flatnonzero(kept.any(axis=0))
            parts["of_features"] = kept[:, parts["rated"]]
        return parts

    def _restore_memory(self, parts: dict[str, np.ndarray]) -> None:
        """Take over what `_dump_memory` gave; ValueError or KeyError where it does not fit."""
        found = self._empty()
        for number, one in enumerate(memory.each(found, self._memories), 1):
            prefix = f"{number}_" if number > 1 else ""
            memory.rebuild(one, {name.removeprefix(prefix): parts[name] for name in parts if name.startswith(prefix)})
        self._tell(found.numbers)
        if self._is_helped:
            places, kept = parts["rated"], parts["of_features"]
            if places.ndim != 1 or places.dtype.kind != "i" or kept.shape != (3, len(places)) or kept.dtype.kind != "f":
                raise ValueError("the step-sizes do not fit together")
            within = not places.size or (places.min() >= 0 and places.max() < self._parameters.n_features)
            if not within or not (np.isfinite(kept[[0, 2]]) & (kept[[0, 2]] >= 0.0)).all():  # past diverges as w does
                raise ValueError("the step-sizes are not numbers ≥ 0 of features that there are")
            memory.of_features(found, self._memories)[:3, places] = kept
        self._memory = found

    def _help_settings(self) -> dict[str, Any]:
        return {"bound": self.bound, "meta_step_size": self.meta_step_size}
