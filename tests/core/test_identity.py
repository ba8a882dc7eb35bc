"""The identity of code: it changes whenever results might, and not from process to process."""

import gc
import importlib
import os
import shutil
import subprocess
import sys
import textwrap
import threading
import types
from functools import lru_cache, partial
from itertools import combinations

import numpy as np
import pytest

from trueonline.core.compiling import identity as identity_module
from trueonline.core.compiling.identity import UnknownIdentityError, identities, identity, text_identity
from trueonline.core.compiling.kernels import kernel

pytestmark = pytest.mark.usefixtures("small_heap")


@pytest.fixture(autouse=True)
def _no_garbage(small_heap):
    """Functions that earlier tests have left would count until they are collected."""
    gc.collect()


def made(text, name="mine", **space):
    """What a text defines, as if typed at a prompt: there is no file to look into."""
    space = {"__name__": "__typed__", "np": np, "kernel": kernel, **space}
    exec(textwrap.dedent(text), space)
    return space[name]


def module(text, **names):
    """A module of the user."""
    made_here = types.ModuleType("helpers")
    vars(made_here).update(names)
    exec(textwrap.dedent(text), vars(made_here))
    return made_here


# --- Values that code refers to -------------------------------------------------------------------

HELPER = "def helper(x): return {0} * x\ndef mine(x): return helper(x)"
BASE = "class Base:\n    def gain(self): return {0}\nclass mine(Base): pass"
ATTRIBUTE = "class mine:\n    gain = {0}"
METHOD = "class mine:\n    def __call__(self, x): return {0} * x"
NESTED = "def mine(x):\n    def inner(y): return {0} * y\n    return inner(x)"
CLOSED = "def outer(gain):\n    def mine(x): return gain * x\n    return mine\nmine = outer({0})"
DEFAULT = "def mine(x, gain={0}): return gain * x"
KEYWORD = "def mine(x, *, gain={0}): return gain * x"
SCALAR = "GAIN = np.float64({0})\ndef mine(x): return GAIN * x"
ARRAY = "GAIN = np.array([1.0, {0}])\ndef mine(x): return GAIN @ x"
OBJECTS = "GAIN = np.array([None, {0}], object)\ndef mine(x): return GAIN[1] * x"
STRUCTURE = "A = np.array([(1, 2.0)], [('a', 'i8'), ('b{0}', 'f8')])\ndef mine(x): return A['a']"
MASK = "A = np.ma.array([1.0, 2.0], mask=[0, {0} - 2])\ndef mine(x): return A.sum()"
TABLE = "GAIN = {{'a': [1, (2, {0})]}}\ndef mine(x): return GAIN['a'][1][1] * x"
SETS = "GAIN = {{1, {0}}}\ndef mine(x): return max(GAIN) * x"
COMPILED = "GAIN = {0}\n@kernel\ndef mine(x): return GAIN * x"
PROPERTY = "class mine:\n    @property\n    def gain(self): return {0}"
STATIC = "class mine:\n    @staticmethod\n    def gain(): return {0}"
OF_FUNCTION = "def mine(x): return mine.rate\nmine.rate = {0}"
UNPICKLED = "class K:\n    def __getstate__(self): return None\nk = K()\nk.rate = {0}\ndef mine(): return k.rate"
OF_DICT = "class C(dict): __getattr__ = dict.get\nc = C(rate={0})\ndef mine(): return c.rate"
INSTANCE = (
    "class Kept:\n    def __init__(self, gain): self.gain = gain\nKEPT = Kept({0})\ndef mine(x): return KEPT.gain * x"
)
BOUND = (
    INSTANCE.replace("KEPT.gain * x", "run(x)")
    .replace("KEPT =", "    def get(self, x): return self.gain\nrun =")
    .replace("({0})", "({0}).get")
)
META = "class Meta(type):\n    def __call__(cls): return {0}\nclass mine(metaclass=Meta): pass"
COMPREHENSION = "def mine(x): return [{0} * y for y in x]"
GENERATOR = "RNG = np.random.default_rng({0})\ndef mine(x): return RNG.normal(x)"
CALLED = "RNG = np.random.default_rng({0}).normal\ndef mine(x): return RNG(x)"
ENUM = "import enum\nclass E(enum.Enum):\n    A = {0}\ndef mine(x, e=E.A): return e.value"
EACH_OTHER = "GAIN = {0}\ndef other(x): return mine(x - GAIN)\ndef mine(x): return other(x) if x > 0 else 0"
TEXTS = {name: value for name, value in globals().items() if name.isupper() and isinstance(value, str)}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_changed_constant_changes_the_identity_wherever_it_stands(text):
    made_of = [made(text.format(number)) for number in (2, 2, 3)]
    for told in ([digest for digest, _ in identities(*made_of)], [text_identity(each) for each in made_of]):
        assert told[0] == told[1] != told[2]


@pytest.mark.parametrize("used", ["x.GAIN", "x.sub.GAIN", "x.helper(1)", "getattr(x, 'GAIN')", "hand_on(x)"])
def test_what_code_uses_of_a_module_counts_even_if_it_was_set_when_the_program_ran(used):
    def using(gain, unused=0):
        x = module("def helper(y): return GAIN * y", sub=module(""))
        x.sub.__name__ = "helpers.sub"
        x.GAIN = x.sub.GAIN = gain
        x.UNUSED = unused
        return made(f"def hand_on(m): return m.GAIN\ndef mine(): return {used}", x=x)

    assert identity(using(1)) == identity(using(1)) == identity(using(1, unused=5))
    assert identity(using(1)) != identity(using(2))


def test_modules_that_refer_to_each_other_have_an_identity():
    one, other = module("GAIN = 1"), module("GAIN = 2")
    one.other, other.one = other, one
    assert identity(made("def mine(): return x.other.one.GAIN", x=one))
    ring = [1]
    ring.append(ring)
    assert identity(ring) == identity(ring)


def test_functions_count_that_are_alive_beside_a_function_and_that_it_does_not_name():
    one, same, other = (made(f"def hidden(): return {number}\ndef mine(): return 1") for number in (2, 2, 3))
    assert identity(one) == identity(same) != identity(other)


def test_functions_count_that_the_program_hides_from_the_collector(monkeypatch):
    monkeypatch.setattr(identity_module, "gc", gc)
    one, other = (made(f"def hidden(): return {number}\ndef mine(): return 1") for number in (2, 3))
    gc.freeze()
    assert identity(one) != identity(other)
    assert gc.get_freeze_count() > 0, "it is hidden as before"


def test_what_modules_of_the_user_name_counts_by_its_version(monkeypatch):
    """This module names pytest and `kernel`. The function and its namespace name neither."""
    usual, space = identity_module._file_owner, {"__name__": "__typed__"}
    exec("def mine(): return 1", space)

    def of_another_version(file):
        return "pytest-0.0" if (usual(file) or "").startswith("pytest-") else usual(file)

    def named(*modules):
        return f"the code of {sorted(modules)}"

    def named_without(*modules):
        return named(*{*modules} - {"trueonline.core.compiling.kernels"})

    before = identity(space["mine"])
    with monkeypatch.context() as patched:
        patched.setattr(identity_module, "_file_owner", of_another_version)
        assert identity(space["mine"]) != before
    with monkeypatch.context() as patched:
        patched.setattr(identity_module, "package_code", named_without)
        without = identity(space["mine"])
        patched.setattr(identity_module, "package_code", named)
        assert identity(space["mine"]) != without


def test_things_that_are_asked_for_at_once_have_the_identities_that_they_have_alone():
    one, other = (
        made("import json\ndef mine(): return json"),
        made("def helper(): return 1\ndef mine(): return lock", lock=threading.Lock()),
    )
    things, alone = (one, np.sin, other, one), []
    for thing in things:  # a comprehension would be one more function that is alive
        alone += identities(thing)
    assert identities(*things) == alone
    assert [len(unknown) for _, unknown in identities(*things)] == [0, 0, 1, 0]


def plain(x):
    return x


class Kept:
    def __init__(self, function, number=1.0):
        self.function, self.number = function, number


def test_things_that_differ_have_different_identities():
    things = [
        *(None, True, 1, 1.0, -0.0, 0.0, np.nan, "1", b"1", (), [], {}, (1,), [1], {1}, frozenset({1}), {1: 2}, {2: 1}),
        *(np.float64(1.0), np.float32(1.0), np.ones(1), np.ones((1, 1)), np.ones(1, np.float32), np.zeros(1)),
        *(plain, partial(plain, 1), partial(plain, 2), lru_cache(plain), Kept(plain), Kept(plain, 2.0), Kept(max), Kept),
        *(np.sin, np.cos, max, min, len, np, threading, np.random.default_rng(1), np.random.default_rng(2)),
    ]
    found = [digest for digest, _ in identities(*things)]
    same = [(things[i], things[j]) for i, j in combinations(range(len(things)), 2) if found[i] == found[j]]
    assert same == []


# --- Files of the user ----------------------------------------------------------------------------


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Write modules of a user, and import the first as another process would."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def forget():
        for name in [
            name for name, each in sys.modules.items() if str(tmp_path) in (getattr(each, "__file__", None) or "")
        ]:
            del sys.modules[name]
        importlib.invalidate_caches()
        gc.collect()  # functions of the modules before

    def load(under="", **texts):
        for name, text in texts.items():
            path = tmp_path / under / f"{name.replace('__in__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        forget()
        return importlib.import_module(next(iter(texts)).partition("__in__")[0])

    yield load
    forget()


SIGNATURE = """
    import numba
    @numba.njit("float64({0})")
    def mine(x): return x / 3
"""
LOCALS = """
    import numba
    @numba.njit(locals={{"y": numba.{0}}})
    def mine(x):
        y = x / 3
        return y
"""
OVERLOAD = """
    import numba
    from numba.extending import overload
    def part(x): raise NotImplementedError
    @overload(part)
    def _(x):
        return lambda x: {0} * x
    def _(): pass
    @numba.njit
    def mine(x): return part(x)
"""
SERVED = """
    def __getattr__(name): return {{"GAIN": {0}}}[name]
    def mine(x):
        import rules
        return rules.GAIN * x
"""
DECORATED = """
    def scaled(gain): return lambda function: function
    @scaled({0})
    def mine(x): return x
"""


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (SIGNATURE, ("float64", "float32")),
        (LOCALS, ("float64", "float32")),
        (OVERLOAD, (2, 3)),
        (SERVED, (2, 3)),
        (DECORATED, (2, 3)),
    ],
    ids=["signature", "locals", "overload", "module's __getattr__", "decorator"],
)
def test_an_edit_that_no_walk_through_code_would_see_changes_the_identity(text, values, load):
    found = [identity(load(rules=text.format(value)).mine) for value in (values[0], *values)]
    assert found[0] == found[1] != found[2]


def test_an_overload_that_was_edited_after_its_import_counts_as_it_runs(load, tmp_path):
    """What runs is what was imported. The next process will import the new text, and must not take these results for its own."""
    old = load(rules=OVERLOAD.format(2)).mine
    (tmp_path / "rules.py").write_text(textwrap.dedent(OVERLOAD.format(3)))
    while_old_code_runs = identity(old)
    del old
    assert identity(load(rules=OVERLOAD.format(3)).mine) != while_old_code_runs


@pytest.mark.parametrize(
    "way",
    [
        "from sub import part; return part.GAIN",
        "from sub import part as p; return p.GAIN",
        "import sub.part; return sub.part.GAIN",
        "from sub.part import GAIN; return GAIN",
    ],
)
def test_a_module_that_is_imported_when_the_function_runs_counts(way, load):
    """Nobody has imported it yet."""
    found = []
    for gain in (1, 1, 2):
        load(other="", sub__in____init__="", sub__in__part=f"GAIN = {gain}")
        found.append(identity(made(f"def mine():\n    {way}")))
    assert found[0] == found[1] != found[2]


def test_a_helper_in_a_folder_of_installed_packages_that_no_distribution_owns_is_the_users(load, tmp_path, monkeypatch):
    """Its file counts, not only that it has a name there."""
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    found = []
    for gain in (1, 1, 2):
        load("site-packages", dropped__in____init__="", dropped__in__inner=f"def helper(x): return {gain} * x")
        found.append(identity(made("from dropped import inner\ndef mine(x): return inner.helper(x)")))
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("local", [False, True])
def test_an_installed_distribution_counts_by_its_version_unless_it_is_from_a_folder_here(
    local, load, tmp_path, monkeypatch
):
    site = tmp_path / "site-packages"
    monkeypatch.syspath_prepend(site)
    found = []
    for version, gain in ((1, 1), (1, 2), (2, 2)):
        load("site-packages", dist_a=f"def helper(x): return {gain} * x")
        shutil.rmtree(site / "dist_a-1.dist-info", ignore_errors=True)
        about = site / f"dist_a-{version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: dist-a\nVersion: {version}\n")
        (about / "RECORD").write_text(f"dist_a.py,sha256=x,1\n{about.name}/METADATA,,\n")
        (about / "direct_url.json").write_text(
            f'{{"dir_info": {{}}, "url": "{tmp_path.as_uri()}{"" if local else "-gone"}"}}'
        )
        for cached in (identity_module._installed_files, identity_module._file_owner):
            cached.cache_clear()
        found.append(identity(made("from dist_a import helper\ndef mine(x): return helper(x)")))
    identity_module._installed_files.cache_clear()
    assert (found[0] == found[1]) is not local
    assert found[1] != found[2] or local


def test_a_comment_is_no_code(load):
    texts = ("def mine(x): return 2 * x", "# a remark\n\ndef mine(x): return 2 * x", "def mine(x): return 3 * x")
    found = [identity(load(rules=text).mine) for text in texts]
    assert found[0] == found[1] != found[2]


def test_saved_files_do_not_depend_on_other_modules_of_the_program(load):
    found = [
        text_identity(load(rules="def mine(x): return 2 * x\n# more", other=text).mine) for text in ("A = 1", "A = 2")
    ]
    assert found[0] == found[1]
    assert text_identity(load(rules="def mine(x): return 3 * x").mine) != found[0]


def test_parts_of_this_package_count_even_if_they_are_imported_late(monkeypatch):
    seen = []
    monkeypatch.setattr(identity_module, "package_code", lambda *modules: seen.extend(modules))
    identity(made("import trueonline as to\ndef mine(): return to.TrueOnlineTD(3, 0.1, 0.9, 1.0)"))
    assert {"trueonline.learners.linear", "trueonline.methods.true_online_td"} <= set(seen)


# --- What is unknown ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "def mine(): return globals()['x']",
        "def mine(): return eval('x')",
        "import importlib\ndef mine(): return importlib.import_module('x').x",
    ],
)
def test_what_may_refer_to_anything_is_unknown(text):
    with pytest.raises(UnknownIdentityError, match="may refer to anything"):
        identity(made(text))


def test_what_is_unknown_can_be_left_out():
    lock, text = threading.Lock(), "GAIN = {0}\ndef mine(): return GAIN, lock"
    found = [identities(made(text.format(gain), lock=lock))[0] for gain in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    assert all("lock" in unknown for _, (unknown,) in found)


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (lambda: open(__file__, encoding="utf-8"), "TextIOWrapper"),  # noqa: SIM115  (closed by the test)
        (threading.Lock, "lock"),
        (lambda: (x for x in range(3)), "generator"),
        (lambda: np.frompyfunc(plain, 1, 1), "ufunc"),
    ],
)
def test_of_what_nobody_can_tell_is_said_so(thing, message):
    held = thing()
    with pytest.raises(UnknownIdentityError, match=message):
        identity(made("def mine(): return held", held=held))
    if hasattr(held, "close"):
        held.close()


def test_a_compiled_module_of_the_user_is_unknown(monkeypatch):
    compiled = module("", __file__="/home/me/fast.so")
    monkeypatch.setitem(sys.modules, "helpers", compiled)
    with pytest.raises(UnknownIdentityError, match=r"the module fast\.so, which is not Python code"):
        identity(made("def mine(): return 1"))
    assert identity(np.sin)  # no code of the user takes part


# --- Another process ------------------------------------------------------------------------------

SCRIPT = """
import numpy as np
from trueonline.core.compiling.identity import identity, text_identity
WORDS = {"a", "b", "c"}
GAIN = np.float64(0.5)
def helper(x): return GAIN * x if x in {"p", "q", "r", "s"} else len(WORDS)
class Mine:
    # a remark
    def __init__(self): self.gain = helper("p")
print(identity(Mine), text_identity(Mine))
"""


def test_an_identity_is_the_same_in_another_process(tmp_path):
    """The order of sets of texts is another one there."""
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "moved.py").write_text(SCRIPT.replace("# a remark", "# another"))
    runs = []
    for path, seed in (("script.py", "1"), ("moved.py", "2")):
        space = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, path]
        runs.append(subprocess.run(command, cwd=tmp_path, env=space, capture_output=True, text=True, check=False))
    assert all(run.returncode == 0 for run in runs), runs[0].stderr
    assert runs[0].stdout == runs[1].stdout != ""
