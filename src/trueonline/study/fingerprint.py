"""The fingerprint of a method, which changes when its results may."""

from __future__ import annotations

from typing import Any

from trueonline.core.identity import identity
from trueonline.study.swept_methods import Method


def fingerprint(method: Any, *parts: Any) -> tuple[str, tuple[str, ...]]:
    """The identity of a `Method` or a class of learners with other parts of a sweep, and what nobody can tell anything about."""
    about = (method.update, method.memories, method.second, method.kind) if isinstance(method, Method) else method
    unknown: list[str] = []
    return identity((about, *parts), unknown=unknown), tuple(unknown)
