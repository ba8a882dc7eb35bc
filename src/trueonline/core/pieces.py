"""Pieces of kernels become machine code together with the kernels that call them, not on their own.

Numba optimises every function that it compiles, and makes machine code of it. It also links a copy of the function into each
caller, and optimises that copy again. Python never calls a piece, so the machine code of a piece would never run. Without it,
kernels compile in about three quarters of the time.
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

    # Whether the compiler may reorder sums. Such pieces are optimised here, so that the order is the same in all callers.
    reordered = False

    def _optimize_final_module(self) -> None:
        if self.reordered or calls_by_address(self):
            super()._optimize_final_module()

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
        library = PieceLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        library.reordered = bool(self.state.flags.fastmath)
        self.state.library = library
        return super().define_pipelines()
