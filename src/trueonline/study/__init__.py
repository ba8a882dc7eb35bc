"""Sweeps as data: cases → tasks → engine → store → table. This package knows no problem by name."""

try:
    import pyarrow as _pyarrow  # noqa: F401
except ImportError:
    raise ImportError("sweeps and studies need PyArrow: pip install 'trueonline[study]'", name="pyarrow") from None

from trueonline.study.cases import Case, Problem, run_seed
from trueonline.study.execution import execute, execute_tasks, gather, gather_tasks, read_task, run
from trueonline.study.summary import Summary, show_in_notebooks
from trueonline.study.sweeps import METHODS, OFF_POLICY, STEP_SIZES, TRACE_DECAYS, applicable, sweep
from trueonline.study.swept_methods import Method
from trueonline.study.tasks import Task
from trueonline.study.work import Work

__all__ = [
    "METHODS",
    "OFF_POLICY",
    "STEP_SIZES",
    "TRACE_DECAYS",
    "Case",
    "Method",
    "Problem",
    "Summary",
    "Task",
    "Work",
    "applicable",
    "execute",
    "execute_tasks",
    "gather",
    "gather_tasks",
    "read_task",
    "run",
    "run_seed",
    "sweep",
]

show_in_notebooks()
