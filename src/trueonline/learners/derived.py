"""Learners and agents over methods that were derived, from plain data: what is left of a derivation when SymPy is gone."""

from __future__ import annotations

import hashlib
import linecache
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from trueonline.control.agent import Agent
from trueonline.control.policies import Policy
from trueonline.control.transitions import Entries, entries, greedy, sarsa
from trueonline.core.kernels import kernel
from trueonline.core.loops import NO_HELP
from trueonline.inputs import Schedule
from trueonline.learners.loading import load_one_of
from trueonline.learners.off_policy import OffPolicyLearner
from trueonline.learners.on_policy import MemoryLearner

PUBLIC = {"gamma": "discount", "lam": "trace_decay"}  # what a learner calls them


@dataclass(frozen=True)
class Plan:
    """All that a derived class is made of, as plain data: so that its instances can be pickled where it is not."""

    name: str
    source: str
    about: str
    constants: tuple[str, ...]
    base: str

    @property
    def title(self) -> str:
        return "".join(part[:1].upper() + part[1:] for part in self.name.split("_")) or "Derived"

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.source.encode()).hexdigest()[:16]


@cache
def method(source: str, name: str) -> Any:
    """The kernel in the text that `Derivation.source` gives."""
    path = f"<derived {name} {hashlib.sha256(source.encode()).hexdigest()[:8]}>"
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)  # for tracebacks and `inspect`
    names: dict[str, Any] = {"__name__": "trueonline.learners.derived"}
    exec(compile(source, path, "exec"), names)
    return names[name]


@kernel
def sarsa_noting(q: Any, action: Any) -> Any:
    """Bootstrap from the action that will be taken; tell whether it ties for the best."""
    return action, greedy(q, action)[1]


class Derived:
    """What derived learners and agents share: a plan, and files and pickles of their own."""

    plan: ClassVar[Plan]

    @classmethod
    def _kind(cls) -> str:
        return f"derived {cls.plan.name} {cls.plan.base} {cls.plan.digest}"

    def __reduce__(self) -> tuple[Callable, tuple]:
        return _rebuilt, (self.plan, self.__getstate__())


class DerivedLearner(Derived, MemoryLearner):
    """A learner whose method was derived."""

    @classmethod
    def load(cls, path: str | os.PathLike, *, step_size: Schedule | None = None) -> Any:
        """The learner that `save` wrote, which goes on bit for bit. A schedule is code: hand it in again."""
        return load_one_of({cls._kind(): cls}, path, step_size, None)


class DerivedAgent(Derived, Agent):
    """An agent whose rule was derived."""

    _entries_of_rule: ClassVar[Entries]

    def _compiled(self, helped: bool) -> Entries:
        if helped:
            raise ValueError(NO_HELP)
        return self._entries_of_rule

    @classmethod
    def load(cls, path: str | os.PathLike, *, step_size: Schedule | None = None, policy: Policy | None = None) -> Any:
        """The agent that `save` wrote, which goes on bit for bit. Schedules and policies of your own: hand them in again."""
        return load_one_of({cls._kind(): cls}, path, step_size, policy)


class Held:
    """Learners and agents whose forward view has constants: no other values of them are taken."""

    plan: ClassVar[Plan]

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        if "alpha" in self.plan.constants and callable(self.step_size):  # type: ignore[attr-defined]
            raise ValueError(
                "step_size is a constant of this forward view, got a schedule; write alpha[j] in it to let it vary"
            )

    def update(
        self,
        reward: float,
        x_next: Any,
        discount: float | None = None,
        trace_decay: float | None = None,
        *ratio: Any,
        **more: Any,
    ) -> float:
        self._refuse_others(discount, trace_decay)
        return super().update(reward, x_next, discount, trace_decay, *ratio, **more)  # type: ignore[misc]

    def _run(self, X: Any, rewards: Any, discounts: Any, trace_decays: Any, *more: Any) -> np.ndarray:
        self._refuse_others(discounts, trace_decays)
        return super()._run(X, rewards, discounts, trace_decays, *more)  # type: ignore[misc]

    def _learn(self, reward: float, x_next: Any, discount: float | None, trace_decay: float | None) -> Any:
        self._refuse_others(discount, trace_decay)
        return super()._learn(reward, x_next, discount, trace_decay)  # type: ignore[misc]

    def _refuse_others(self, discounts: Any, trace_decays: Any) -> None:
        for name, given in (("gamma", discounts), ("lam", trace_decays)):
            if given is None or name not in self.plan.constants:
                continue
            own = getattr(self, PUBLIC[name])
            allowed = (own, 0.0) if name == "gamma" else (own,)  # γ = 0 ends an episode
            if not np.isin(np.asarray(given), allowed).all():
                raise ValueError(
                    f"{PUBLIC[name]} is a constant of this forward view, {own:g}; write {name}[j] in it to let it vary"
                )


@cache
def class_of(plan: Plan) -> Any:
    rule = method(plan.source, _function(plan.source))
    made: dict[str, Any] = {"__doc__": plan.about, "__module__": __name__, "plan": plan}
    bases: list[type] = [Held] if plan.constants else []
    if plan.base in ("learner", "off-policy"):
        bases += [DerivedLearner, OffPolicyLearner] if plan.base == "off-policy" else [DerivedLearner]
        made |= {"_methods": (rule, rule), "kernel": rule, "constants": plan.constants}
    else:
        target = greedy if plan.base == "greedy" else sarsa_noting if "GREEDY" in plan.source else sarsa
        bases += [DerivedAgent]
        made |= {"_entries_of_rule": entries(rule, target, CUTS=False)}
    return type(plan.title, tuple(bases), made)


def _function(source: str) -> str:
    """The name of the kernel in a method file."""
    return source.split("\ndef ", 1)[1].split("(", 1)[0]


def _rebuilt(plan: Plan, state: dict[str, Any]) -> Any:
    """A pickled learner or agent. (A pickle is code anyway; files of `save` hold none.)"""
    made = class_of(plan)
    copy = made.__new__(made)
    copy.__setstate__(state)
    return copy
