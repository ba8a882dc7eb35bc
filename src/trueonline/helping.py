"""Help with the step-size (`step_sizes`) as learners and agents have it: two settings, what it tells, what is saved of it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from trueonline import inputs, memory
from trueonline.inputs import Parameters
from trueonline.memory import (
    ACCUMULATES,
    BOUND,
    BOUNDED,
    DISCOUNT,
    META,
    TRACE_DECAY,
    WEIGHED,
    WITHIN,
    Buffers,
)
from trueonline.step_sizes import Form


class Helped:
    """What learns over a memory, whose step-size may be helped.

    Two departures from the paper, both off by default (docs/step_sizes.md):

    - `bound`: α is lowered for a transition whose update would close more than this share of its error; 1 keeps it from
      overshooting.
    - `meta_step_size`: θ of TIDBD, by which every feature's step-size adapts to the errors seen where it was active. 0.01
      is usual, whatever the units are. Where no bound is given with it, it is 1.
    """

    _form: ClassVar[Form] = Form(within=True)  # of the method's trace
    _memories: ClassVar[int] = 1  # how many the method is over
    _parameters: Parameters
    _memory: Buffers
    _help: tuple[float | None, float | None] = (None, None)

    def _set_help(self, bound: float | None, meta_step_size: float | None) -> None:
        self._help = (
            None if bound is None else inputs.positive("bound", bound),
            None if meta_step_size is None else inputs.ratio("meta_step_size", meta_step_size),
        )

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
        parameters, (bound, theta) = self._parameters, self._help
        self._memory = memory.allocate(parameters.n_features, parameters.initial_weights, self._memories, self._is_helped)
        head = self._memory.numbers
        head[[DISCOUNT, TRACE_DECAY]] = parameters.discount, parameters.trace_decay
        if self._is_helped:
            head[[BOUND, META]] = bound or (1.0 if theta else np.inf), theta or 0.0
            head[[WITHIN, ACCUMULATES, WEIGHED]] = self._form
            if parameters.initial_weights is not None:
                self._of_features()[1] = -parameters.initial_weights  # H = w + past = 0

    def _dump_memory(self) -> dict[str, np.ndarray]:
        first, *others = [memory.dump(one) for one in memory.each(self._memory, self._memories)]
        parts = first | {f"{n}_{name}": part for n, other in enumerate(others, 2) for name, part in other.items()}
        return parts | ({"of_features": self._of_features()[:3].copy()} if self._is_helped else {})

    def _restore_memory(self, parts: dict[str, np.ndarray]) -> None:
        """Take over what `_dump_memory` gave; ValueError or KeyError where it does not fit."""
        n = self._parameters.n_features
        prefixes = ["", *(f"{number}_" for number in range(2, self._memories + 1))]
        groups = [
            {name.removeprefix(prefix): part for name, part in parts.items() if name.startswith(prefix)}
            for prefix in prefixes
        ]
        rebuilt = [memory.rebuild(n, group) for group in groups]
        joined = len(rebuilt) > 1 or self._is_helped
        found = memory.joined(rebuilt, self._is_helped) if joined else rebuilt[0]
        if self._is_helped:
            saved = parts["of_features"]
            if saved.shape != (3, n) or saved.dtype != np.float64:
                raise ValueError("the step-sizes do not fit the features")
            memory.of_features(found, self._memories)[:3] = saved
        self._memory = found

    def _help_settings(self) -> dict[str, Any]:
        return {"bound": self.bound, "meta_step_size": self.meta_step_size}
