"""Compiled kernels on disk: where they lie, what is loaded, and what happens when that cannot be."""

import inspect
import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest

import trueonline
from trueonline.core.compiling import kernel_cache
from trueonline.core.compiling.kernel_cache import cache_folder
from trueonline.core.compiling.kernels import call, kept_with, kernel, specialise

# --- What names a kernel: its meaning -------------------------------------------------------------

NAMED = """
import json, os, sys
from pathlib import Path
import numba, numpy as np

sys.dont_write_bytecode = True  # a file may be edited twice in a second
package = Path(sys.argv[1])
sys.path.insert(0, str(package.parent))

def tell():
    from trueonline.core.compiling import kernels
    from trueonline.core.loops import compiled
    from trueonline.core.memory import allocate
    from trueonline.methods.accumulate_td import accumulate_td
    from trueonline.methods.gtd import gtd
    assert Path(kernels.__file__).is_relative_to(package)
    buffers, found = (allocate(4), allocate(4, memories=2)), []
    for rule, memory, at in ((accumulate_td, "one", buffers[0]), (gtd, "two", buffers[1])):
        entry = compiled(rule, memory).step
        kinds = tuple(numba.typeof(each) for each in (*at, np.zeros(1, np.int64), np.ones(1), 1.0, 1.0, 1.0))
        found.append(hash(kernels._meaning(kernels.compose(entry.template, kinds, kernels._Knowledge), True)))
    print(json.dumps(found), flush=True)

for file, old, new in json.loads(sys.argv[2]):
    text = (package / file).read_text()
    assert old in text
    (package / file).write_text(text.replace(old, new, 1))
    child = os.fork()  # it has Numba, and nothing of the package
    if child == 0:
        tell()
        os._exit(0)
    os.waitpid(child, 0)
    (package / file).write_text(text)
"""


def meanings(package, edits):
    """The meanings of two kernels of a copy of this package, after each edit of a file of it."""
    shutil.copytree(Path(trueonline.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": ""}
    command = [sys.executable, "-c", NAMED, str(package), json.dumps(edits)]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [tuple(json.loads(line)) for line in found.stdout.splitlines()]


def test_a_kernel_is_named_by_what_it_reaches_and_by_nothing_else(tmp_path):
    learn = ("memory.head[C] += b * (", "memory.head[C] += 1.0 * b * (")
    edits = {  # which of the two kernels an edit changes
        ("methods/gtd.py", "c > 0.0", "c >= 0.0"): (False, True),
        ("methods/gtd.py", "    share = gamma_next", "    # a comment\n\n    share = gamma_next"): (False, False),
        ("methods/accumulate_td.py", "    v, _, v_next", '    """A docstring."""\n    v, _, v_next'): (False, False),
        ("methods/accumulate_td.py", "lam, gamma_next):", "lam: float, gamma_next) -> tuple:"): (False, False),
        ("core/memory/operations.py", *learn): (True, True),
        ("core/memory/upkeep.py", "DROP = 1e-20", "DROP = 1e-19"): (True, True),
        ("core/memory/upkeep.py", "<= DROP * norm", "< DROP * norm"): (True, True),
        ("core/memory/dense.py", "trace_x += z * x.values[i]", "trace_x += z * x.values[i] * 2.0"): (False, False),
        ("core/forms.py", "return builder.gep(first, [arguments[1]])", "return builder.gep(first, [arguments[0]])"): (
            True,
            True,
        ),
    }
    (accumulate, gtd), *found = meanings(tmp_path / "trueonline", [("methods/gtd.py", "", ""), *edits])
    assert {edit: (now[0] != accumulate, now[1] != gtd) for edit, now in zip(edits, found, strict=True)} == edits


COUNTED = """
import numba
from numba.core import event

class Count(event.Listener):
    ends = 0
    def on_start(self, event): pass
    def on_end(self, event): self.ends += 1

count = Count()
event.register("numba:compile", count)
weights, compiled = learned(), count.ends
numba.njit(lambda x: x)(1)
print(compiled, count.ends, weights)
"""


def learned():
    learner = trueonline.AccumulateTD(n_features=3, step_size=0.1, trace_decay=0.9, discount=0.9)
    learner.start([1])
    learner.update(1.0, [2])
    return learner.weights


def test_another_process_finds_the_kernels_and_compiles_nothing():
    weights = learned()
    command = [sys.executable, "-c", f"import trueonline\n\n{inspect.getsource(learned)}\n{COUNTED}"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == f"0 1 {weights}\n", "none of the package, and that of a function that is new"


BITS = """
import numpy as np, trueonline
rng = np.random.default_rng(0)
learner = trueonline.TrueOnlineTD(37, 0.001, 0.9, 0.99, meta_step_size=0.1)
learner.run(rng.normal(size=(1001, 37)), rng.normal(size=1000))
print(learner.weights.tobytes().hex())
"""


def test_the_process_that_compiles_computes_the_same_bits_as_those_that_load(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", BITS]
    first, second = (subprocess.run(command, env=environment, capture_output=True, check=True).stdout for _ in range(2))
    assert first == second != b""


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
    assert cache_folder.__wrapped__() == places / "home" / ".cache" / "trueonline"
    assert not (places / "cache").exists()


def test_the_first_folder_that_can_be_written_is_taken(places):
    assert cache_folder.__wrapped__() == places / "numba" / "trueonline"
    shutil.rmtree(places / "numba")
    (places / "numba").touch()
    assert cache_folder.__wrapped__() == places / "cache" / "trueonline"
    shutil.rmtree(places / "cache")
    (places / "cache").touch()
    assert cache_folder.__wrapped__() == places / "home" / ".cache" / "trueonline"
    shutil.rmtree(places / "home")
    (places / "home").touch()
    assert cache_folder.__wrapped__() == places / "tmp" / f"trueonline-{os.getuid()}"


def test_a_folder_is_for_this_user_alone(places):
    before = os.umask(0)
    try:
        folder = cache_folder.__wrapped__()
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)  # others could have put kernels there
    assert cache_folder.__wrapped__() == places / "cache" / "trueonline"


# Others plant a folder at the first place. What lies there would be run.


def another_owner(path):
    os.chown(path, os.geteuid() + 4321, -1)


def open_to_others(path):
    path.chmod(0o777)


def sticky_of_another_owner(path):
    path.chmod(0o1777)
    another_owner(path)


def link(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


@pytest.mark.parametrize("where", ["numba/trueonline", "numba", ""], ids=["itself", "above", "far above"])
@pytest.mark.parametrize("attack", [another_owner, open_to_others, sticky_of_another_owner])
def test_a_folder_that_others_can_change_is_not_used(attack, where, places, monkeypatch):
    if attack is not open_to_others and os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    first = places / "first"
    (first / "numba" / "trueonline").mkdir(parents=True)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(first / "numba"))
    assert cache_folder.__wrapped__() == first / "numba" / "trueonline"
    attack(first / where)
    assert cache_folder.__wrapped__() == places / "cache" / "trueonline"


def test_a_sticky_folder_of_root_is_safe(places):
    if os.geteuid() != 0:
        pytest.skip("only root can make one")
    (places / "numba").mkdir()
    (places / "numba").chmod(0o1777)  # as the folder for temporary files
    assert cache_folder.__wrapped__() == places / "numba" / "trueonline"


def test_a_link_in_the_place_of_the_folder_is_not_followed(places):
    link(cache_folder.__wrapped__())
    assert cache_folder.__wrapped__() == places / "cache" / "trueonline"


def test_a_link_above_the_folder_is_as_safe_as_the_folder_that_it_leads_to(places):
    folder = cache_folder.__wrapped__()
    link(folder.parent)
    assert cache_folder.__wrapped__() == folder
    open_to_others(places / "elsewhere")
    assert cache_folder.__wrapped__() == places / "cache" / "trueonline"


@pytest.mark.parametrize("attack", [another_owner, open_to_others, link])
def test_a_file_that_others_can_change_is_not_read(attack, places):
    if attack is another_owner and os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    kernel_cache.write("code", b"words")
    assert kernel_cache.read("code") == b"words"
    attack(cache_folder() / "code")
    assert kernel_cache.read("code") is None
    kernel_cache.write("code", b"others")  # a file is replaced, and a link is not followed
    assert kernel_cache.read("code") == b"others"


def test_a_folder_that_is_opened_to_others_later_is_not_read_or_written(places):
    kernel_cache._warn_once.cache_clear()
    kernel_cache.write("code", b"words")
    open_to_others(cache_folder())
    assert kernel_cache.read("code") is None
    with pytest.warns(RuntimeWarning, match="somebody else could change it"):
        kernel_cache.write("more", b"words")
    assert [path.name for path in cache_folder().iterdir()] == ["code"]
    kernel_cache._warn_once.cache_clear()


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


def test_damaged_code_is_compiled_again(places):
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

    def full(folder, name, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kernel_cache, "write_own", full)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert call(fresh(), 2.0) == 4.0
        assert call(fresh(), np.float32(2.0)) == 4.0
    (warning,) = seen
    assert "No space left on device" in str(warning.message)
    assert "NUMBA_CACHE_DIR" in str(warning.message)
    kernel_cache._warn_once.cache_clear()


def test_without_any_folder_nothing_is_kept(places, monkeypatch):
    kernel_cache._warn_once.cache_clear()

    def nowhere(*arguments, **options):
        raise FileNotFoundError("no usable temporary directory")

    for name in ("numba", "cache", "home"):
        (places / name).touch()
    monkeypatch.setattr("tempfile.gettempdir", nowhere)
    with pytest.warns(RuntimeWarning, match="there is none that can be written"):
        assert call(fresh(), 2.0) == 4.0
    kernel_cache._warn_once.cache_clear()


RATE, RATES = 1.0, np.ones(1)


def scaled(x):
    raise NotImplementedError("a place for a kernel")


def entry(x):
    return scaled(x)


def test_a_constant_that_changed_after_compiling_makes_another_kernel(places, monkeypatch):
    """Compiled code keeps the old value, and must not be taken for that of the new one, in this process or from disk."""

    @kernel
    def scaled(x):
        return RATE * RATES[0] * x

    for rate, in_place in ((1.0, 1.0), (0.5, 1.0), (0.5, 0.25), (1.0, 1.0)):
        monkeypatch.setattr(sys.modules[__name__], "RATE", rate)
        RATES[0] = in_place
        made = kept_with(scaled)
        if "rate" not in made:
            made["rate"] = specialise(entry, "rate", scaled=scaled)
        assert call(made["rate"], 2.0) == 2.0 * rate * in_place
    assert len(list(cache_folder().iterdir())) == 3


def test_a_function_that_numba_compiled_keeps_its_constants_and_is_refused_if_they_change(monkeypatch):
    @numba.njit
    def helper(x):
        return RATE * x

    @kernel
    def scaled(x):
        return helper(x)

    made = kept_with(scaled)
    made["rate"] = specialise(entry, "helper", scaled=scaled)
    assert call(made["rate"], 2.0) == 2.0
    monkeypatch.setattr(sys.modules[__name__], "RATE", 0.5)
    with pytest.raises(ValueError, match="helper was compiled when RATE had another value"):
        kept_with(scaled)


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
