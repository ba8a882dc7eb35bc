"""The fingerprint of a method, which changes when its results may."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trueonline.core.compiling.identity import identities
from trueonline.study.kernels.swept_methods import SweptMethod

Fingerprint = tuple[str, tuple[str, ...]]


def fingerprints(cases: Iterable[tuple[Mapping[str, Any], tuple[Any, ...]]]) -> list[dict[str, Fingerprint]]:
    """Of each case, given as its methods and other parts: the identity of each method with these parts, and what is unknown of it.

    A method is a `SweptMethod` or a class of learners.
    """
    wanted = [{name: (_about(method), *parts) for name, method in methods.items()} for methods, parts in cases]
    found = iter(identities(*(thing for each in wanted for thing in each.values())))
    return [{name: next(found) for name in each} for each in wanted]


def _about(method: Any) -> Any:
    if not isinstance(method, SweptMethod):
        return method
    own = (tuple(sorted(method.parameters.items())),) if method.parameters else ()
    return (method.update, method.memories, method.second, method.kind, *own)
