"""The protocol of learners and agents: what a class takes of a transition. `verify`, `check_learner` and sweeps share it.

The signature of `update` says it (of agents: the signature of `step`). The first two arguments are the reward and the features
of the state entered. All others go by name, and `PARTS` are the names. An `update` with `**kwargs` takes whatever the problem
or the definition has.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np

from trueonline.inputs.arguments import MIN_SIMILARITY, OTHER_NAMES

PARTS = {  # of a transition, each with what it is and its usual default
    "discount": ("γ of the state entered", "None"),
    "trace_decay": ("λ of the state entered", "None"),
    "ratio": ("the importance ratio of the action", "1.0"),
    "probability": ("the probability of the action under the target policy", "None"),
    "interest": ("the interest in the state left", "1.0"),
    "x_expected": ("the mean features of the state entered", "None"),
}
SAME = {"rho": "ratio", "ρ": "ratio", "importance_ratio": "ratio", "ratios": "ratio"}
LEARNER = {"start": "start(x)", "update": "update(reward, x_next, …)", "weights": "weights"}
AGENT = {
    "start": "start(x)",
    "step": "step(reward, x_next, …)",
    "truncate": "truncate(reward, x_next)",
    "end": "end(reward)",
}


@dataclass(frozen=True)
class Protocol:
    """What a class takes of a transition, beside the reward and the features.

    Attributes
    ----------
    name : str
        The name of the class and its method, such as "TDRC.update".
    named : frozenset of str
        The parts that the signature names.
    required : frozenset of str
        Those without a default.
    anything : bool
        Whether the signature has `**kwargs`.
    ignored : frozenset of str
        The parts that the class says it ignores, in its attribute `ignores`.
    """

    name: str
    named: frozenset[str]
    required: frozenset[str]
    anything: bool
    ignored: frozenset[str]

    def check(self, provided: Collection[str], source: str) -> None:
        """TypeError if the class cannot take a part that `source` provides, and does not say that it ignores the part."""
        for part, (what, default) in PARTS.items():
            if part in provided and not (self.anything or part in self.named | self.ignored):
                raise TypeError(
                    f"{self.name} takes no {part}, but {source} has one ({what}): add the argument {part}={default}; or, to learn "
                    f'without it, give the class the attribute ignores = ("{part}",)'
                )

    def takes(self, provided: Collection[str]) -> frozenset[str]:
        """The parts that `update` is given if there is each of them, and if `**kwargs` stands for those that are `provided`."""
        return (self.named | (frozenset(provided) if self.anything else frozenset())) - self.ignored


def protocol_of(kind: Any) -> Protocol:
    """The protocol of a class, an instance or a `functools.partial`. TypeError for arguments that nobody would give."""
    kind = kind.func if isinstance(kind, partial) else kind
    made = kind if isinstance(kind, type) else type(kind)
    method = "step" if hasattr(kind, "step") else "update"
    name = f"{made.__name__}.{method}"
    ignored = frozenset(_parts(f"{made.__name__}.ignores", getattr(kind, "ignores", ())))
    try:
        parameters = list(inspect.signature(getattr(kind, method)).parameters.values())
    except (TypeError, ValueError, AttributeError):  # compiled, or missing
        return Protocol(name, frozenset(), frozenset(), True, ignored)
    first = 3 if isinstance(kind, type) and not isinstance(inspect.getattr_static(kind, method), staticmethod) else 2
    anything = any(each.kind is each.VAR_KEYWORD for each in parameters)
    by_name = [each for place, each in enumerate(parameters) if place >= first or each.kind is each.KEYWORD_ONLY]
    more = [each for each in by_name if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
    for each in more:
        _check_name(name, each)
    named = {each.name for each in more if each.name in PARTS}
    required = {each.name for each in more if each.default is each.empty}
    declared = _declared(kind, made, method)
    if declared is not None:  # one `update` serves many methods, and refuses what this one does not take
        usual = {"discount", "trace_decay"}
        named = (usual if anything else named & usual) | set(_parts(f"{made.__name__}.takes", declared))
    return Protocol(name, frozenset(named), frozenset(required & named), anything and declared is None, ignored)


def _declared(kind: Any, made: type, method: str) -> Any:
    """The attribute `takes`, unless a subclass has a newer `update`."""
    for each in (kind, *made.__mro__):
        own = getattr(each, "__dict__", {})
        if "takes" in own:
            return own["takes"]
        if method in own:
            return None
    return getattr(kind, "takes", None)


def _check_name(name: str, parameter: inspect.Parameter) -> None:
    """TypeError for an argument of `update` that would never be given."""
    given = parameter.name
    if given in PARTS:
        return
    known = [part for part in (*OTHER_NAMES.get(given, ()), SAME.get(given)) if part in PARTS]
    for meant in known or get_close_matches(given, PARTS, 1, MIN_SIMILARITY):
        raise TypeError(f"{name} has the argument {given!r}: call it {meant}")
    if parameter.default is parameter.empty:
        raise TypeError(f"{name} needs {given!r}, which no transition has; transitions have {', '.join(PARTS)}")


def _parts(name: str, given: Collection[str]) -> Collection[str]:
    """Names of parts. TypeError for anything else."""
    unknown = [part for part in given if part not in PARTS] if not isinstance(given, str) else [given]
    if unknown:
        raise TypeError(f"{name} must be a tuple of names among {', '.join(PARTS)}, got {given!r}")
    return given


def check_methods(learner: Any) -> None:
    """TypeError if a learner or an agent lacks a method that the package calls."""
    acts = hasattr(learner, "step")
    for name, call in (AGENT if acts else LEARNER).items():
        if not hasattr(learner, name):
            what = "an agent" if acts else "a learner"
            raise TypeError(f"{type(learner).__name__} has no {name}: {what} must have {call}")


def weights_of(learner: Any, n: int) -> np.ndarray:
    """The weights of a learner of any class. TypeError unless they are n real numbers, one after another."""
    weights = np.asanyarray(learner.weights)
    if weights.shape != (n,) or weights.dtype.kind not in "fiu" or np.ma.isMaskedArray(weights):
        raise TypeError(
            f"{type(learner).__name__}.weights must be {n} real numbers, with shape ({n},), got {weights.dtype} of shape "
            f"{weights.shape}{', masked' * np.ma.isMaskedArray(weights)}"
        )
    return weights
