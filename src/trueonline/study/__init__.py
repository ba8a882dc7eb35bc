"""Sweeps as data: cases → tasks → engine → store → table. This package knows no problem by name."""

import sys
from importlib import import_module
from typing import Any

try:
    import pyarrow as _pyarrow  # noqa: F401
except ImportError:
    raise ImportError("sweeps and studies need PyArrow: pip install 'trueonline[study]'", name="pyarrow") from None

# The public names, and the modules that define them, which are imported when they are asked for. So the process of a task imports
# what its task needs, and not Numba if it does not. Type checkers read `__init__.pyi`.
_HOME = {
    "METHODS": "sweeps",
    "OFF_POLICY": "sweeps",
    "STEP_SIZES": "sweeps",
    "TRACE_DECAYS": "sweeps",
    "Case": "cases",
    "SweptMethod": "kernels.swept_methods",
    "Problem": "cases",
    "Summary": "summary",
    "Task": "tasks",
    "Work": "storage.work",
    "applicable": "sweeps",
    "execute": "storage.execution",
    "execute_tasks": "storage.execution",
    "plot": "sweep_figure",
    "gather": "storage.execution",
    "gather_tasks": "storage.execution",
    "read_task": "storage.execution",
    "run": "storage.execution",
    "run_seed": "cases",
    "sweep": "sweeps",
}
__all__ = [*_HOME]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"trueonline.study has no {name!r}; it has {', '.join(_HOME)}")
    found = getattr(import_module(f"trueonline.study.{_HOME[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)


if "IPython" in sys.modules:
    from trueonline.study.summary import show_in_notebooks

    show_in_notebooks()
