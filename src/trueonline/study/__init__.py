"""Sweeps as data: cases → tasks → engine → store → table. Knows no problem by name."""

from trueonline.study.sweeps import METHODS, STEP_SIZES, TRACE_DECAYS, applicable, execute, gather, run, sweep
from trueonline.study.tasks import Case, Problem, Task, run_seed

__all__ = [
    "METHODS",
    "STEP_SIZES",
    "TRACE_DECAYS",
    "Case",
    "Problem",
    "Task",
    "applicable",
    "execute",
    "gather",
    "run",
    "run_seed",
    "sweep",
]
