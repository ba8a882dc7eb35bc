"""The variants of a kernel for GPUs: everything that it is compiled for, beside the rule and its kind of memory."""

from __future__ import annotations

from typing import NamedTuple

ENTRY = "sweep_grid"  # the name of a kernel in its machine code


class Variant(NamedTuple):
    """The form of the features and of B, and where the vectors of a learner lie."""

    tabular: bool  # one active feature in each state
    diagonal: bool  # B is diagonal
    few: int  # the number of dense features if they are few, so that vectors are in registers; else 0
    shared: bool  # whether vectors lie in shared memory, if they are not in registers
