"""The fingerprint of a method, which changes when the method does."""

from __future__ import annotations

from typing import Any

from trueonline.core.identity import identity
from trueonline.core.kernel_cache import cache_name


def fingerprint(method: Any) -> tuple[str, str | None]:
    """The sources of all kernels, and the identity of a user's method. UnknownIdentityError if nobody can tell it."""
    return cache_name(), None if method is None else identity(method)
