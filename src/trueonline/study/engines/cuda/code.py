"""Machine code for GPUs, kept on disk beside that for processors, so that it is compiled once."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from trueonline.core.compiling.identity import UnknownIdentityError, identity
from trueonline.core.compiling.kernel_cache import read, write
from trueonline.core.compiling.sources import package_code
from trueonline.optional import version_of
from trueonline.study.engines.cuda.variants import ENTRY, Variant

__all__ = ["ENTRY", "Variant", "machine_code"]


def machine_code(rule: Any, memory: str, variant: Variant, capability: tuple[int, int]) -> bytes:
    """The sweep of a rule for GPUs of this compute capability, from disk or compiled now."""
    name, code = f"cuda.{rule.py_func.__name__}", package_code("trueonline.study.engines.cuda.compiler")
    try:
        key: str | None = identity(rule)
    except UnknownIdentityError:
        key = None
    about = repr((name, memory, tuple(variant), capability, key, code, _versions()))
    file = f"{name}-{hashlib.sha256(about.encode()).hexdigest()[:24]}"
    content = None if key is None else read(file)
    if content is None:
        from trueonline.study.engines.cuda.compiler import compile_sweep

        content = compile_sweep(rule, memory, variant, capability).cubin
        if key is not None:
            write(file, content)
    return content


@cache
def _versions() -> tuple[str, ...]:
    return tuple(version_of(name) for name in ("numba", "numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink"))
