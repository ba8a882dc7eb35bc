"""The common part of learners and agents: a rule of the catalogue over memories, step-size adaptation, and the saving of both."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import wraps
from typing import Any, ClassVar

import numpy as np

from trueonline import inputs
from trueonline.catalog import Method
from trueonline.core import memory
from trueonline.core.adaptation import LEAST, MOST, form_of
from trueonline.core.family import number_of
from trueonline.core.memory import KINDS, Buffers, layout
from trueonline.core.memory.two_traces import list_alike
from trueonline.core.thread_guard import guarded
from trueonline.core.transition import asked
from trueonline.inputs import Parametrised, Schedule
from trueonline.learners.docstrings import of_parameters
from trueonline.words import listed

USUAL_BOUND = 0.1  # where step-sizes adapt and no bound is given: that of SwiftTD
PUBLIC_NAMES = {"gamma": "discount", "lam": "trace_decay"}  # the names of constants in the public API


def idle(method: Method) -> tuple[str, ...]:
    """The arguments of the constructor that a method has no use for."""
    usage = KINDS[method.memory].usage
    second = () if "beta" in asked(method.resolve("rule")) else ("second_step_size",)
    adaptation = () if method.adapts and not usage else ("bound", "meta_step_size")
    return (*second, *adaptation, *(() if usage else ("initial_step_size",)))


def take_parameters(cls: Any) -> None:
    """Give a class the parameters of its rule: arguments of its constructor, attributes, and a part of its docstring."""
    if "method" not in vars(cls) or not cls.method.parameters:
        return
    parameters, init = cls.method.parameters, cls.__init__
    cls.own_parameters = tuple(sorted(parameters))
    cls._shared_parameters = cls._shared_parameters + of_parameters(parameters)

    @wraps(init)
    def with_parameters(self: Any, *arguments: Any, **named: Any) -> None:
        self._rule_parameters = {
            name: each.checked(name, named.pop(name, each.default)) for name, each in parameters.items()
        }
        init(self, *arguments, **named)

    signature, kind = inspect.signature(init), inspect.Parameter.KEYWORD_ONLY
    own = [inspect.Parameter(name, kind, default=each.default, annotation=float) for name, each in parameters.items()]
    usual = [*signature.parameters.values()]
    last = [usual.pop()] if usual[-1].kind is inspect.Parameter.VAR_KEYWORD else []
    with_parameters.__signature__ = signature.replace(parameters=[*usual, *own, *last])  # type: ignore[attr-defined]
    cls.__init__ = with_parameters
    for name, each in parameters.items():
        setattr(cls, name, _shown(name, each.about or "A parameter of the rule."))


def _shown(name: str, about: str) -> property:
    def shown(learner: OverMemory) -> float:
        return learner._rule_parameters[name]

    return property(shown, doc=about)


class OverMemory(Parametrised):
    """A method of the catalogue over its memories. Subclasses say which method, in `method`."""

    method: ClassVar[Method]
    _more_settings: ClassVar[tuple[str, ...]] = (
        "_second_step_size",
        "_initial_step_size",
        "_adaptation",
        "_rule_parameters",
    )
    idle_arguments: ClassVar[tuple[str, ...]] = ()  # of the constructor, for other methods only
    _memory: Buffers
    _adaptation: tuple[float | None, float | None] = (None, None)
    _second_step_size: float | Schedule = 0.0
    _initial_step_size: float | None = None
    own_parameters: ClassVar[
        tuple[str, ...]
    ] = ()  # the names of the rule's parameters, in the order in which kernels find them
    _rule_parameters: Mapping[str, float] = {}

    def _set_step_sizes(
        self,
        second_step_size: float | Schedule | None,
        bound: float | None,
        meta_step_size: float | None,
        initial_step_size: float | None = None,
    ) -> None:
        """Check and keep the settings of step-sizes, except α."""
        name, kind = type(self).__name__, KINDS[self.method.memory]
        if initial_step_size is not None:
            if not kind.usage:
                raise TypeError(
                    f"{name} takes no initial_step_size: its step-sizes do not come from the usage of features"
                )
            self._initial_step_size = inputs.positive("initial_step_size", initial_step_size)
        if "beta" not in asked(self.method.resolve("rule")):
            if second_step_size is not None:
                raise TypeError(f"{name} takes no second_step_size: it has neither second weights nor a reward rate")
        elif second_step_size is None:
            raise TypeError(
                f"{name} needs second_step_size, the step-size of its second weights or reward rate, such as 0.1"
            )
        elif callable(second_step_size):
            self._second_step_size = second_step_size
        else:
            self._second_step_size = inputs.ratio("second_step_size", second_step_size)
        theta = None if meta_step_size is None else inputs.ratio("meta_step_size", meta_step_size)
        bound = USUAL_BOUND if bound is None and theta else bound
        self._adaptation = None if bound is None else inputs.positive("bound", bound), theta
        if self._adaptation == (None, None):
            return
        row = self.method
        refusals = {
            "its step-sizes come from the usage of features": kind.usage,
            "give each feature its own step_size instead": row.per_feature,
            "step-size adaptation does not know of its reward rate": not row.adapts,
            "step-size adaptation has to know its kind of trace; "
            'give trace="accumulating", "dutch" or "replacing" to trueonline.method': row.trace == "none",
        }
        for why, applies in refusals.items():
            if applies:
                raise (TypeError if kind.usage else ValueError)(f"{name} takes neither bound nor meta_step_size: {why}")

    def _rule(self) -> Any:
        """The rule for these step-sizes."""
        varying = self._is_adapted or callable(self._parameters.step_size)
        return self.method.resolve("varying" if varying else "rule")

    @property
    def bound(self) -> float | None:
        """The largest share of an error that an update may close; None without a bound."""
        return self._adaptation[0]

    @property
    def meta_step_size(self) -> float | None:
        """θ, by which the step-sizes of features adapt; None if they do not."""
        return self._adaptation[1]

    @property
    def steps(self) -> int:
        """The number of transitions learned from: the t of a step-size schedule."""
        return int(self._memory.numbers[layout.STEPS])

    @property
    @guarded
    def step_sizes(self) -> np.ndarray:
        """The step-size of each weight now, before any bound: a read-only copy, in the shape of the weights."""
        sizes = np.array(self._parameters.alpha(self.steps))
        if KINDS[self.method.memory].usage:
            used = self._used()
            sizes = np.divide(1.0, used, out=np.zeros(len(used)), where=used != 0.0).reshape(self._shape)
        elif not self.method.per_feature:
            logarithms = (
                memory.weights(memory.meta(self._memory)) if self._is_adapted else np.zeros(self._parameters.n_features)
            )
            sizes = sizes * np.exp(np.clip(logarithms, LEAST, MOST)).reshape(self._shape)
        return inputs.read_only(sizes)

    @property
    def bounded(self) -> int:
        """The number of transitions whose step-size `bound` has lowered."""
        return int(memory.tuning(self._memory)[layout.BOUNDED]) if self._is_adapted else 0

    @property
    def _is_adapted(self) -> bool:
        """Whether features have step-sizes of their own, or a bound."""
        return self.method.per_feature or self._adaptation != (None, None)

    @property
    def _shape(self) -> tuple[int, ...]:
        """The shape of the weights."""
        return (self._parameters.n_features,)

    def _used(self) -> np.ndarray:
        """The usage of each feature: what is settled, and what is provisional (`core.memory.usage`)."""
        return memory.weights(memory.each(self._memory)[-1]) + memory.trace(memory.each(self._memory)[-1])

    def _allocate(self) -> None:
        """An empty memory, with the initial weights."""
        initial = self._parameters.initial_weights
        self._memory = self._empty(initial)
        if self._is_adapted and initial is not None:
            memory.of_features(self._memory)[:, layout.PAST] = -initial  # H = w + past = 0

    def _empty(self, weights: np.ndarray | None = None) -> Buffers:
        n = self._parameters.n_features
        what = listed(f"{name}={m:,}" for name, m in zip(("n_features", "n_actions"), self._shape, strict=False))
        learned, memories = self.method.memory == "meta-gradient", KINDS[self.method.memory].memories
        with inputs.room_for(what, n * (32.0 * memories + 64.0 * self._is_adapted + 64.0 * learned)):
            buffers = memory.allocate(n, weights, memories, self._is_adapted, learned)
        method = self.method
        cuts = method.cuts and method.greedy  # the best action was not taken
        which = number_of(self._rule(), method.memory) or 0
        buffers.numbers[layout.PARAMETERS : layout.PARAMETERS + len(self.own_parameters)] = [
            self._rule_parameters[name] for name in self.own_parameters
        ]
        buffers.numbers[layout.FIXED] = n, method.binary, KINDS[method.memory].holding, which, method.greedy, cuts
        self._tune(buffers)
        if KINDS[self.method.memory].usage:
            alpha = self._parameters.alpha(0) if self._initial_step_size is None else self._initial_step_size
            memory.set_weights(memory.each(buffers)[-1], 1.0 / alpha)
        return buffers

    def _tune(self, buffers: Buffers) -> None:
        """Write the settings of step-size adaptation."""
        if self._is_adapted:
            bound, theta = self._adaptation
            tuning = memory.tuning(buffers)
            tuning[[layout.BOUND, layout.META]] = bound or np.inf, theta or 0.0
            tuning[[layout.ACCUMULATES, layout.WEIGHED]] = form_of(self.method.trace, asked(self.method.resolve("rule")))
        if self.method.per_feature and not callable(self._parameters.step_size):
            memory.of_features(buffers)[:, layout.RATE] = self._parameters.step_size

    def _refuse_others(self, discounts: Any, trace_decays: Any) -> None:
        """ValueError for other values of a constant of the method."""
        for name, values in (("gamma", discounts), ("lam", trace_decays)):
            if values is None or name not in self.method.constants:
                continue
            own = getattr(self, PUBLIC_NAMES[name])
            allowed = (own, 0.0) if name == "gamma" else (own,)  # γ = 0 ends an episode
            if not np.isin(np.asarray(values), allowed).all():
                raise ValueError(
                    f"{PUBLIC_NAMES[name]} is a constant of this forward view, {own:g}; write {name}[j] in it to let it vary"
                )

    # --- Saving ---

    def _dump_memory(self) -> dict[str, np.ndarray]:
        parts = {"place": self._memory.numbers[: layout.SAVED_PLACE].copy()}
        for number, one in enumerate(memory.each(self._memory), 1):
            prefix = f"{number}_" if number > 1 else ""
            parts |= {f"{prefix}{name}": part for name, part in memory.dump(one).items()}
        if self._is_adapted:
            parts["tuning"] = memory.tuning(self._memory).copy()
        if self.meta_step_size:
            kept = memory.of_features(self._memory)[:, [layout.PAST, layout.USUAL]]
            parts["rated"] = np.flatnonzero(kept.any(axis=1))
            parts["of_features"] = kept[parts["rated"]]
            parts |= {f"meta_{name}": part for name, part in memory.dump(memory.meta(self._memory)).items()}
        return parts

    def _restore_memory(self, parts: dict[str, np.ndarray]) -> None:
        """Take over the state that `_dump_memory` returned. ValueError if it does not fit."""
        n = self._parameters.n_features
        inputs.saved_array(parts, "u", (n,), np.float64)  # before anything is allocated
        restored = self._empty()
        restored.numbers[: layout.SAVED_PLACE] = memory.checked_place(parts, n)
        for number, one in enumerate(memory.each(restored), 1):
            prefix = f"{number}_" if number > 1 else ""
            memory.rebuild(one, {name.removeprefix(prefix): parts[name] for name in parts if name.startswith(prefix)})
        holding = memory.each(restored)[: KINDS[self.method.memory].holding]
        inputs.check_saved({"layout": len({float(one.numbers[layout.DENSE]) for one in holding}) == 1})
        if not holding[0].numbers[layout.DENSE]:
            list_alike(holding)
        if self._is_adapted:
            self._restore_adaptation(restored, parts)
        self._memory = restored

    def _restore_adaptation(self, restored: Buffers, parts: dict[str, np.ndarray]) -> None:
        """Take over the step-sizes of the features. ValueError if they do not fit."""
        tuning = inputs.saved_array(parts, "tuning", (layout.TUNING,), np.float64)
        inputs.saved_count("number of bounded steps", tuning[layout.BOUNDED])
        memory.tuning(restored)[:] = tuning
        self._tune(restored)
        inputs.check_saved({"tuning": 0.0 <= tuning[layout.LARGEST] < np.inf})
        if not self.meta_step_size:
            return
        if "meta_head" not in parts:
            raise ValueError(
                "it was saved by a version with another step-size adaptation, and cannot resume; read its weights there"
            )
        listed = np.asarray(parts.get("rated")).shape
        rated = inputs.saved_array(parts, "rated", listed[:1], np.int64)
        kept = inputs.saved_array(parts, "of_features", (*listed, 2), np.float64)
        usual = kept[:, 1]  # the first, `past`, diverges as w does
        fits = {"rated": (rated >= 0) & (rated < self._parameters.n_features)}
        inputs.check_saved({**fits, "of_features": np.isfinite(usual) & (usual >= 0.0)})
        memory.of_features(restored)[rated[:, None], [layout.PAST, layout.USUAL]] = kept
        meta = {name.removeprefix("meta_"): part for name, part in parts.items() if name.startswith("meta_")}
        memory.rebuild(memory.meta(restored), meta)

    def _step_size_settings(self) -> dict[str, Any]:
        """The arguments of `_set_step_sizes`, as JSON takes them; None for an argument that is code."""
        second = {}
        if "beta" in asked(self.method.resolve("rule")):
            second = {"second_step_size": None if callable(self._second_step_size) else self._second_step_size}
        if KINDS[self.method.memory].usage:
            return {"initial_step_size": self._initial_step_size, **second, **self._rule_parameters}
        return {"bound": self.bound, "meta_step_size": self.meta_step_size, **second, **self._rule_parameters}
