"""Machine code for GPUs on disk: compiled once for each rule, variant and device, and again where the file is damaged."""

import sys
import threading
from types import ModuleType, SimpleNamespace

import pytest

from tests.study.own_rules import late_decay
from trueonline.core.compiling.kernel_cache import cache_folder
from trueonline.core.compiling.kernels import kernel
from trueonline.methods import gtd, true_online_td
from trueonline.study.engines.cuda import code
from trueonline.study.engines.cuda.variants import Variant

TABLE = Variant(tabular=True, diagonal=True, few=0, shared=True)
UNKNOWN = threading.Lock()  # nobody could tell whether it would give the same results


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    cache_folder.cache_clear()
    yield cache_folder
    cache_folder.cache_clear()


@pytest.fixture
def compiled(monkeypatch):
    """What was compiled, by a compiler that returns its arguments as text."""
    calls = []

    def compile_sweep(*about):
        calls.append(about)
        return SimpleNamespace(cubin=repr(about[1:]).encode())

    module = ModuleType("trueonline.study.engines.cuda.compiler")
    module.compile_sweep = compile_sweep
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return calls


def test_code_is_compiled_once(folder, compiled):
    first = code.machine_code(true_online_td, "one", TABLE, (9, 0))
    assert code.machine_code(true_online_td, "one", TABLE, (9, 0)) == first
    assert len(compiled) == 1
    (path,) = folder().iterdir()
    assert path.name.startswith("cuda.true_online_td-")


def test_other_code_has_another_file(folder, compiled):
    others = [
        (true_online_td, "one", TABLE, (9, 0)),
        (true_online_td, "one", TABLE, (8, 0)),
        (true_online_td, "one", TABLE._replace(tabular=False), (9, 0)),
        (true_online_td, "one", TABLE._replace(diagonal=False), (9, 0)),
        (true_online_td, "one", TABLE._replace(shared=False), (9, 0)),
        (true_online_td, "one", TABLE._replace(few=4), (9, 0)),
        (gtd, "two", TABLE, (9, 0)),
        (late_decay, "one", TABLE, (9, 0)),
    ]
    for _ in range(2):
        for about in others:
            assert code.machine_code(*about) == repr(about[1:]).encode()
    assert compiled == others
    assert len(list(folder().iterdir())) == len(others)


@pytest.mark.parametrize("package", ["numba", "numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink"])
def test_another_version_of_a_compiler_compiles_again(package, folder, compiled, monkeypatch):
    code.machine_code(true_online_td, "one", TABLE, (9, 0))
    usual = code.version_of
    monkeypatch.setattr(code, "version_of", lambda name: "0.0" if name == package else usual(name))
    code._versions.cache_clear()
    code.machine_code(true_online_td, "one", TABLE, (9, 0))
    code._versions.cache_clear()
    assert len(compiled) == 2


def test_two_rules_of_one_name_are_told_apart(folder, compiled):
    def rule_that_adds(number):
        @kernel
        def mine(memory, reward):
            return 0.0, reward + number, 0.0

        return mine

    for number in (1.0, 2.0, 1.0):
        code.machine_code(rule_that_adds(number), "one", TABLE, (9, 0))
    assert len(compiled) == 2


def test_a_rule_that_nobody_could_tell_from_another_is_not_kept(folder, compiled):
    unknown = UNKNOWN

    @kernel
    def mine(memory, reward):
        return 0.0, reward if unknown is None else 0.0, 0.0

    for _ in range(2):
        code.machine_code(mine, "one", TABLE, (9, 0))
    assert len(compiled) == 2
    assert not list(folder().iterdir())


@pytest.mark.parametrize(
    "damage", [lambda content: content[:-1], lambda content: b"", lambda content: content[:-1] + b"?"]
)
def test_a_damaged_file_is_compiled_again(damage, folder, compiled):
    first = code.machine_code(true_online_td, "one", TABLE, (9, 0))
    (path,) = folder().iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert code.machine_code(true_online_td, "one", TABLE, (9, 0)) == first
    assert len(compiled) == 2
    assert code.machine_code(true_online_td, "one", TABLE, (9, 0)) == first
    assert len(compiled) == 2
