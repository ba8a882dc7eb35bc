"""One file knows numba-cuda, so that a change of its internals is mended in one place."""

import ast
from pathlib import Path

import trueonline

PACKAGE = Path(trueonline.__file__).parent


def imported(path):
    """The modules that a file imports, anywhere in it, with the names that it takes from them."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{each.name}" for each in node.names)


def test_only_the_compiler_imports_numba_cuda():
    who = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "cuda" in path.read_text("utf-8") and any(f"{name}.".startswith("numba.cuda.") for name in imported(path))
    }
    assert who == {"study/engines/cuda/compiler.py"}
