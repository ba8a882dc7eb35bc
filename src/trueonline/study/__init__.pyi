"""Sweeps as data: the names that `trueonline.study` imports late, for type checkers."""

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
from trueonline.study.sweep_figure import plot as plot
from trueonline.study.sweeps import METHODS as METHODS
from trueonline.study.sweeps import OFF_POLICY as OFF_POLICY
from trueonline.study.sweeps import STEP_SIZES as STEP_SIZES
from trueonline.study.sweeps import TRACE_DECAYS as TRACE_DECAYS
from trueonline.study.sweeps import applicable as applicable
from trueonline.study.sweeps import sweep as sweep
from trueonline.study.tasks import Task as Task
