"""Pieces of kernels become machine code together with the kernels that call them, not on their own.

Numba optimises every function that it compiles, makes machine code of it, and links a copy of the optimised function into each
caller. Python never calls a piece, so the machine code of a piece would never run. Without it, kernels compile in about five sixths
of the time. Pieces are still optimised on their own: without that, compiling is faster yet, but some kernels are slower.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary, RuntimeLinker
from numba.core.compiler import Compiler


def calls_by_address(library: Any) -> bool:
    """Whether there are functions in the code that call each other. They find each other by addresses, which Numba sets."""
    return any(each.name.startswith(RuntimeLinker.PREFIX) for each in library._final_module.global_variables)


class PieceLibrary(JITCodeLibrary):
    """The code of a piece, as its callers link it."""

    def _finalize_final_module(self) -> None:
        if calls_by_address(self):  # these are addresses of machine code
            super()._finalize_final_module()
            return
        self._finalize_dynamic_globals()
        # A piece that prints reads texts from its environment, which its callers find by the name of a variable.
        environments = (each for each in self._final_module.global_variables if each.name.startswith("_ZN08NumbaEnv"))
        self._codegen._add_module(llvm.parse_assembly("\n".join(str(each) for each in environments)))
        self._codegen._engine.finalize_object()
        self._finalized = True


class PieceCompiler(Compiler):
    """Numba's compiler, with a `PieceLibrary` for what it compiles."""

    def define_pipelines(self) -> Any:
        """Numba's own steps."""
        self.state.library = PieceLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()
