"""Compiled entry points: specialised by method, never compiling behind the caller's back, safe in threads."""

import inspect
import shutil
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import trueonline
from trueonline import catalog
from trueonline.core import kernels
from trueonline.core.kernels import call, kernel, kernel_sources, specialise


@kernel
def double(x):
    return 2.0 * x


@kernel
def triple(x):
    return 3.0 * x


method = double


def template(array):
    total = 0.0
    for i in range(array.size):
        total += method(array[i])
    return total


def test_a_template_is_compiled_with_each_method():
    entries = [specialise(template, each.py_func.__name__, cached=False, method=each) for each in (double, triple)]
    assert [call(entry, np.ones(4)) for entry in entries] == [8.0, 12.0]


def test_an_entry_point_never_compiles_by_itself():
    entry = specialise(template, "quiet", cached=False, method=double)
    with pytest.raises(TypeError):
        entry(np.ones(3))
    call(entry, np.ones(3))
    assert entry(np.ones(3)) == 6.0
    for other in (np.ones(3, np.float32), np.ones((3, 3)), np.ones(6)[::2], [1.0], None, "x"):
        with pytest.raises(TypeError):
            entry(other)


def test_threads_may_need_different_types_at_the_same_time():
    entry = specialise(template, "threads", cached=False, method=triple)
    given = [np.ones(5, dtype) for dtype in (np.float64, np.float32, np.int64, np.int32, np.uint8)] * 4
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda array: call(entry, array), given))
    assert found == [15.0] * len(given)
    assert len(entry.overloads) == 5


# --- The list of sources that the cache's name is made of -----------------------------------------


def reached(function, seen):
    """The functions of this package that a kernel is made of: those that it names, and those behind overloads."""
    function = getattr(function, "py_func", function)
    if not inspect.isfunction(function) or function in seen:
        return
    seen.add(function)
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        codes += [constant for constant in code.co_consts if inspect.iscode(constant)]
        for name in code.co_names:
            reached(function.__globals__.get(name), seen)


def test_every_source_of_a_kernel_is_part_of_the_name_of_the_cache():
    """A file that moves must not leave the list: the cache would then keep kernels of its old text."""
    package = Path(trueonline.__file__).parent
    functions = set()
    for path in package.rglob("*.py"):
        if "numba" not in path.read_text() and "core.kernels" not in path.read_text():
            continue
        module = import_module(".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"))
        for value in list(vars(module).values()):
            if hasattr(value, "py_func"):
                reached(value, functions)
    for row in catalog.METHODS.values():
        if row.rule is not None:
            reached(row.resolve("rule"), functions)
            reached(row.resolve("varying"), functions)
    ours = {
        Path(inspect.getsourcefile(function)) for function in functions if function.__module__.startswith("trueonline.")
    }
    assert len(ours) > 20
    assert ours <= set(kernel_sources())


def test_an_edit_of_a_kernel_gives_the_cache_another_name(tmp_path, monkeypatch):
    package = tmp_path / "trueonline"
    shutil.copytree(Path(trueonline.__file__).parent, package)
    monkeypatch.setattr(kernels, "__file__", str(package / "core" / "kernels.py"))
    names = []
    for edited in ("core/memory/upkeep.py", "methods/gtd.py", "features/tile_kernels.py", "report/page.py"):
        (package / edited).write_text((package / edited).read_text() + "\n# edited\n")
        kernels.cache_folder.cache_clear()
        names.append(kernels.cache_name())
    kernels.cache_folder.cache_clear()
    assert len(set(names[:3])) == 3
    assert names[3] == names[2], "no kernel was edited"
