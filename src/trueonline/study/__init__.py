"""Sweeps as data: cases → tasks → engine → store → table. This package knows no problem by name."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    import pyarrow as _pyarrow  # noqa: F401
except ImportError:
    raise ImportError("sweeps and studies need PyArrow: pip install 'trueonline[study]'", name="pyarrow") from None

# The public names, and the modules that define them, which are imported when they are asked for. So the process of a task imports
# what its task needs, and not Numba if it does not.
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
    "gather": "storage.execution",
    "gather_tasks": "storage.execution",
    "read_task": "storage.execution",
    "run": "storage.execution",
    "run_seed": "cases",
    "sweep": "sweeps",
}
__all__ = [*_HOME]  # noqa: PLE0604

if TYPE_CHECKING:
    from trueonline.study.cases import Case as Case
    from trueonline.study.cases import Problem as Problem
    from trueonline.study.cases import run_seed as run_seed
    from trueonline.study.kernels.swept_methods import SweptMethod as SweptMethod
    from trueonline.study.storage.execution import execute as execute
    from trueonline.study.storage.execution import execute_tasks as execute_tasks
    from trueonline.study.storage.execution import gather as gather
    from trueonline.study.storage.execution import gather_tasks as gather_tasks
    from trueonline.study.storage.execution import read_task as read_task
    from trueonline.study.storage.execution import run as run
    from trueonline.study.storage.work import Work as Work
    from trueonline.study.summary import Summary as Summary
    from trueonline.study.sweeps import METHODS as METHODS
    from trueonline.study.sweeps import OFF_POLICY as OFF_POLICY
    from trueonline.study.sweeps import STEP_SIZES as STEP_SIZES
    from trueonline.study.sweeps import TRACE_DECAYS as TRACE_DECAYS
    from trueonline.study.sweeps import applicable as applicable
    from trueonline.study.sweeps import sweep as sweep
    from trueonline.study.tasks import Task as Task


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
