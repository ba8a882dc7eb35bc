"""Compiled kernels on disk: where they lie, what is loaded, and what happens when that cannot be."""

import inspect
import os
import shutil
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import trueonline
from trueonline import catalog
from trueonline.core import kernel_cache
from trueonline.core.identity import identity
from trueonline.core.kernel_cache import cache_folder, cache_name, kernel_sources
from trueonline.core.kernels import call, kernel, specialise

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
        if find_spec("numba_cuda") is None and path.parent.name == "cuda":  # there is none for macOS
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
    monkeypatch.setattr(kernel_cache, "__file__", str(package / "core" / "kernel_cache.py"))
    names = []
    for edited in ("core/memory/upkeep.py", "methods/gtd.py", "features/tile_kernels.py", "report/page.py"):
        (package / edited).write_text((package / edited).read_text() + "\n# edited\n")
        names.append(kernel_cache.cache_name.__wrapped__())
    assert len(set(names[:3])) == 3
    assert names[3] == names[2], "no kernel was edited"


# --- The folder -----------------------------------------------------------------------------------


@pytest.fixture
def places(monkeypatch, tmp_path):
    """Folders of a test: `NUMBA_CACHE_DIR`, the user's cache, a home, and the temporary one."""
    names = {"NUMBA_CACHE_DIR": "numba", "XDG_CACHE_HOME": "cache", "HOME": "home"}
    for variable, name in names.items():
        monkeypatch.setenv(variable, str(tmp_path / name))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    cache_folder.cache_clear()
    yield tmp_path
    cache_folder.cache_clear()


def test_a_relative_cache_folder_of_the_user_is_ignored(places, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.chdir(places)
    assert cache_folder.__wrapped__() == places / "home" / ".cache" / "trueonline" / cache_name()
    assert not (places / "cache").exists()


def test_the_first_folder_that_can_be_written_is_taken(places):
    assert cache_folder.__wrapped__() == places / "numba" / "trueonline" / cache_name()
    shutil.rmtree(places / "numba")
    (places / "numba").touch()
    assert cache_folder.__wrapped__() == places / "cache" / "trueonline" / cache_name()
    shutil.rmtree(places / "cache")
    (places / "cache").touch()
    assert cache_folder.__wrapped__() == places / "home" / ".cache" / "trueonline" / cache_name()
    shutil.rmtree(places / "home")
    (places / "home").touch()
    assert cache_folder.__wrapped__() == places / "tmp" / f"trueonline-{os.getuid()}" / cache_name()


def test_a_folder_is_for_this_user_alone(places):
    before = os.umask(0)
    try:
        folder = cache_folder.__wrapped__()
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)  # others could have put kernels there
    assert cache_folder.__wrapped__() == places / "cache" / "trueonline" / cache_name()


def test_a_folder_above_that_is_open_to_others_is_closed(places):
    (places / "numba").mkdir()
    (places / "numba" / "trueonline").mkdir()
    (places / "numba" / "trueonline").chmod(0o777)
    assert cache_folder.__wrapped__() == places / "numba" / "trueonline" / cache_name()
    assert (places / "numba" / "trueonline").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("planted", ["above", "itself", "link"])
def test_a_folder_that_another_user_planted_is_not_used(planted, places, monkeypatch):
    """What lies there would be run."""
    for name in ("numba", "cache", "home"):
        (places / name).touch()
    above = places / "tmp" / f"trueonline-{os.getuid()}"
    if planted == "link":
        (places / "theirs").mkdir()
        above.symlink_to(places / "theirs")
    else:
        (above / cache_name()).mkdir(parents=True)
        foreign = above if planted == "above" else above / cache_name()
        look = Path.lstat

        def lstat(path):
            seen = list(look(path))
            seen[4] += path == foreign  # the owner
            return os.stat_result(seen)

        monkeypatch.setattr(Path, "lstat", lstat)
    folder = cache_folder.__wrapped__()
    assert above not in (folder, *folder.parents)
    assert folder.parent == places / "tmp"
    assert folder.stat().st_mode & 0o777 == 0o700


# --- Files ----------------------------------------------------------------------------------------


def double(x):
    return x + x


def fresh():
    """The kernel, as another process would have it."""
    return specialise(double, "in_a_test")


def test_code_is_kept_for_each_type(places):
    assert call(fresh(), 2.0) == 4.0
    assert call(fresh(), 2) == 4
    files = sorted(cache_folder().iterdir())
    assert len(files) == 2
    written = [path.stat().st_mtime_ns for path in files]
    assert call(fresh(), 2.0) == 4.0
    assert [path.stat().st_mtime_ns for path in sorted(cache_folder().iterdir())] == written


def test_damaged_code_is_removed_and_compiled_again(places):
    call(fresh(), 2.0)
    (path,) = cache_folder().iterdir()
    whole = path.read_bytes()
    for broken in (b"", whole[:20], whole[:-1], whole[:100] + bytes([whole[100] ^ 1]) + whole[101:], b"x" * len(whole)):
        path.write_bytes(broken)
        assert call(fresh(), 2.0) == 4.0
        kept = path.read_bytes()
        assert kept != broken
        path.write_bytes(whole)
    assert call(fresh(), 2.0) == 4.0
    assert path.read_bytes() == whole


def test_a_cache_that_cannot_be_written_is_done_without_and_one_warning_says_so(places, monkeypatch):
    kernel_cache._warn_once.cache_clear()

    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert call(fresh(), 2.0) == 4.0
        assert call(fresh(), np.float32(2.0)) == 4.0
    (warning,) = seen
    assert "No space left on device" in str(warning.message)
    assert "NUMBA_CACHE_DIR" in str(warning.message)
    kernel_cache._warn_once.cache_clear()


def test_every_byte_of_a_kernel_may_be_another_one(places):
    call(fresh(), 2.0)
    (path,) = cache_folder().iterdir()
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    for at in rng.choice(len(whole), 300, replace=False):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << rng.integers(8))]) + whole[at + 1 :])
        assert kernel_cache.read(path) is None
        assert not path.exists()


def test_a_folder_in_which_others_may_rename_is_not_used(places):
    (places / "numba").mkdir()
    (places / "numba").chmod(0o777)
    assert cache_folder.__wrapped__() == places / "cache" / "trueonline" / cache_name()
    (places / "numba").chmod(0o1777)  # as the folder for temporary files
    assert cache_folder.__wrapped__() == places / "numba" / "trueonline" / cache_name()


def test_without_any_folder_nothing_is_kept(places, monkeypatch):
    kernel_cache._warn_once.cache_clear()

    def nowhere(*arguments, **options):
        raise FileNotFoundError("no usable temporary directory")

    for name in ("numba", "cache", "home"):
        (places / name).touch()
    monkeypatch.setattr("tempfile.gettempdir", nowhere)
    monkeypatch.setattr("tempfile.mkdtemp", nowhere)
    with pytest.warns(RuntimeWarning, match="none can be written"):
        assert call(fresh(), 2.0) == 4.0
    kernel_cache._warn_once.cache_clear()


RATE = 1.0


def scaled(x):
    raise NotImplementedError("a place for a kernel")


def entry(x):
    return scaled(x)


def test_a_constant_that_changed_after_compiling_is_refused(places, monkeypatch):
    """Compiled code keeps the old value, and must not be kept, or taken, for that of the new one."""

    @kernel
    def scaled(x):
        return RATE * x

    assert call(specialise(entry, "a", lambda: identity(scaled), scaled=scaled), 2.0) == 2.0
    monkeypatch.setattr(sys.modules[__name__], "RATE", 0.5)
    with pytest.raises(ValueError, match=r"scaled was compiled when something that it refers to.* had another value"):
        call(specialise(entry, "b", lambda: identity(scaled), scaled=scaled), 2)
    monkeypatch.setattr(sys.modules[__name__], "RATE", 1.0)
    assert call(specialise(entry, "c", lambda: identity(scaled), scaled=scaled), 2) == 2


def test_a_rule_that_claims_to_be_of_this_package_is_not_taken_for_one():
    from functools import wraps

    from trueonline.core.loops import is_ours
    from trueonline.methods.true_online_td import true_online_td

    @kernel
    @wraps(true_online_td.py_func)
    def mine(memory, reward):
        return 0.0, 0.0, 0.0

    assert is_ours(true_online_td)
    assert not is_ours(mine)
