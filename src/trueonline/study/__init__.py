"""Sweeps as data: cases → tasks → engine → store → table. This package knows no problem by name."""

import sys

from trueonline.optional import late_names

try:
    import pyarrow as _pyarrow  # noqa: F401
except ImportError:
    raise ImportError("sweeps and studies need PyArrow: pip install 'trueonline[study]'", name="pyarrow") from None

# The public names, and the modules that define them, which are imported when they are asked for. So the process of a task imports
# what its task needs, and not Numba if it does not. Type checkers read `__init__.pyi`.
_HOME = {
    "METHODS": "study.sweeps",
    "OFF_POLICY": "study.sweeps",
    "STEP_SIZES": "study.sweeps",
    "TRACE_DECAYS": "study.sweeps",
    "Case": "study.cases",
    "SweptMethod": "study.kernels.swept_methods",
    "Problem": "study.cases",
    "Summary": "study.summary",
    "Task": "study.tasks",
    "Work": "study.storage.work",
    "applicable": "study.sweeps",
    "execute": "study.storage.execution",
    "execute_tasks": "study.storage.execution",
    "gather": "study.storage.execution",
    "gather_tasks": "study.storage.execution",
    "plot": "study.sweep_figure",
    "read_task": "study.storage.execution",
    "run": "study.storage.execution",
    "run_seed": "study.cases",
    "sweep": "study.sweeps",
}
__all__ = [*_HOME]  # noqa: PLE0604
__getattr__, __dir__ = late_names(__name__, _HOME)

if "IPython" in sys.modules:
    from trueonline.study.summary import show_in_notebooks

    show_in_notebooks()
