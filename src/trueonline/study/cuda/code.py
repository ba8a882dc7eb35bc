"""Machine code for GPUs, kept on disk beside that for processors, so that it is compiled once."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from trueonline.core.kernel_cache import cache_folder, read, write
from trueonline.core.loops import key_of
from trueonline.study.cuda.variants import ENTRY, Variant

__all__ = ["ENTRY", "Variant", "machine_code"]


def machine_code(rule: Any, memory: str, variant: Variant, capability: tuple[int, int]) -> bytes:
    """The sweep of a rule for GPUs of this compute capability, from disk or compiled now."""
    folder, key = cache_folder(), key_of(rule)
    name = f"cuda.{rule.py_func.__name__}"
    about = repr((name, memory, tuple(variant), capability, key, _versions()))
    path = None if folder is None or key is None else folder / f"{name}-{hashlib.sha256(about.encode()).hexdigest()[:24]}"
    content = None if path is None else read(path)
    if content is None:
        from trueonline.study.cuda.compiler import compile_sweep

        content = compile_sweep(rule, memory, variant, capability).cubin
        if path is not None:
            write(path, content)
    return content


@cache
def _versions() -> tuple[str, ...]:
    return tuple(_version(name) for name in ("numba", "numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink"))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # such as where CUDA's toolkit is installed by other means
        return ""
