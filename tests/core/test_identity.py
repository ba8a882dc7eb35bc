"""The identity of code: it changes when results would, and not from process to process."""

import subprocess
import sys
import textwrap
import threading
import types
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations

import numpy as np
import pytest

from trueonline.core.identity import UnknownIdentityError, identity
from trueonline.core.kernels import kernel


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
TABLE = "GAIN = {{'a': [1, (2, {0})]}}\ndef mine(x): return GAIN['a'][1][1] * x"
SETS = "GAIN = {{1, {0}}}\ndef mine(x): return max(GAIN) * x"
COMPILED = "GAIN = {0}\n@kernel\ndef mine(x): return GAIN * x"
PROPERTY = "class mine:\n    @property\n    def gain(self): return {0}"
STATIC = "class mine:\n    @staticmethod\n    def gain(): return {0}"
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


@pytest.mark.parametrize(
    "text", [value for name, value in list(globals().items()) if name.isupper() and isinstance(value, str)]
)
def test_a_changed_constant_changes_the_identity_wherever_it_stands(text):
    one, same, other = (made(text.format(number)) for number in (2, 2, 3))
    assert identity(one) == identity(same)
    assert identity(one) != identity(other)


@pytest.mark.parametrize("kept", ["x.GAIN", "x.sub.GAIN", "x.helper(1)"])
def test_what_code_uses_of_a_module_of_the_user_is_followed(kept):
    def using(gain, unused=0):
        sub = module(f"GAIN = {gain}")
        return made(
            f"def mine(): return {kept}",
            x=module(f"GAIN = {gain}\nUNUSED = {unused}\ndef helper(y): return GAIN * y", sub=sub),
        )

    assert identity(using(1)) == identity(using(1)) == identity(using(1, unused=5))
    assert identity(using(1)) != identity(using(2))


def test_a_module_that_is_imported_when_the_function_runs_is_followed(monkeypatch):
    found = []
    for gain in (1, 1, 2):
        monkeypatch.setitem(sys.modules, "helpers", module(f"GAIN = {gain}"))
        found.append(identity(made("def mine():\n    from helpers import GAIN\n    return GAIN")))
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def mine(a, b):\n    try:\n        a(); x = b()\n    except KeyError: x = 0\n    return x",
         "def mine(a, b):\n    try: a()\n    except KeyError: x = 0\n    else: x = b()\n    return x"),
        ("def mine(x): return mine.rate\nmine.rate = 1", "def mine(x): return mine.rate\nmine.rate = 2"),
        ("A = np.array([(1, 2.0)], [('a', 'i8'), ('b', 'f8')])\ndef mine(x): return A['a']",
         "A = np.array([(1, 2.0)], [('b', 'i8'), ('a', 'f8')])\ndef mine(x): return A['a']"),
        ("A = np.ma.array([1.0, 2.0], mask=[0, 1])\ndef mine(x): return A.sum()",
         "A = np.ma.array([1.0, 2.0], mask=[1, 0])\ndef mine(x): return A.sum()"),
        ("class K:\n    def __getstate__(self): return None\nk = K()\nk.rate = 1\ndef mine(): return k.rate",
         "class K:\n    def __getstate__(self): return None\nk = K()\nk.rate = 2\ndef mine(): return k.rate"),
        ("class C(dict): __getattr__ = dict.get\nc = C(rate=1)\ndef mine(): return c.rate",
         "class C(dict): __getattr__ = dict.get\nc = C(rate=2)\ndef mine(): return c.rate"),
    ],
    ids=["exceptions", "attributes", "structure", "mask", "getstate", "attributes of a dict"],
)  # fmt: skip
def test_other_code_or_state_has_another_identity(before, after):
    assert identity(made(before)) == identity(made(before)) != identity(made(after))


def test_a_module_that_is_handed_on_counts_as_a_whole():
    found = [
        identity(made("def helper(c): return c.GAIN\ndef mine(): return helper(conf)", conf=module(f"GAIN = {gain}")))
        for gain in (1, 1, 2)
    ]
    assert found[0] == found[1] != found[2]


def test_modules_that_refer_to_each_other_have_an_identity():
    one, other = module("GAIN = 1"), module("GAIN = 2")
    one.other, other.one = other, one
    assert identity(made("def mine(): return x.other.one.GAIN", x=one))


@pytest.mark.parametrize(
    "way",
    [
        "from sub import part; return part.GAIN",
        "from sub import part as p; return p.GAIN",
        "import sub.part; return sub.part.GAIN",
        "from sub.part import GAIN; return GAIN",
    ],
)
def test_imports_within_a_function_are_followed(way, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "__init__.py").write_text("")
    found = []
    for gain in (1, 2):
        (tmp_path / "sub" / "part.py").write_text(f"GAIN = {gain}  # {'x' * gain}\n")
        for name in ("sub", "sub.part"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        found.append(identity(made(f"def mine():\n    {way}")))
    assert found[0] != found[1]


def test_what_may_refer_to_anything_is_unknown():
    for text in ("def mine(): return globals()['x']", "def mine(): return eval('x')"):
        with pytest.raises(UnknownIdentityError, match="may refer to anything"):
            identity(made(text))


def test_what_is_unknown_can_be_left_out():
    lock, text = threading.Lock(), "GAIN = {0}\ndef mine(): return GAIN, lock"
    found = [identity(made(text.format(gain), lock=lock), unknown=(said := [])) for gain in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    assert "lock" in said[0]


def plain(x):
    return x


@dataclass
class Kept:
    function: object
    number: float = 1.0


def test_things_that_differ_have_different_identities():
    things = [
        *(
            None,
            True,
            1,
            1.0,
            -0.0,
            0.0,
            "1",
            b"1",
            (),
            [],
            {},
            (1,),
            [1],
            {1},
            frozenset({1}),
            {1: 2},
            {2: 1},
            float("nan"),
        ),
        *(np.float64(1.0), np.float32(1.0), np.ones(1), np.ones((1, 1)), np.ones(1, np.float32), np.zeros(1)),
        *(plain, partial(plain, 1), partial(plain, 2), lru_cache(plain), Kept(plain), Kept(plain, 2.0), Kept(max), Kept),
        *(np.sin, np.cos, max, min, len, np, threading, np.random.default_rng(1), np.random.default_rng(2)),
    ]
    identities = [identity(thing) for thing in things]
    same = [(things[i], things[j]) for i, j in combinations(range(len(things)), 2) if identities[i] == identities[j]]
    assert same == []


def test_things_that_refer_to_each_other_have_an_identity():
    text = "GAIN = {0}\ndef other(x): return mine(x - GAIN)\ndef mine(x): return other(x) if x > 0 else 0"
    assert identity(made(text.format(1))) == identity(made(text.format(1))) != identity(made(text.format(2)))
    ring = [1]
    ring.append(ring)
    assert identity(ring) == identity(ring)


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


def test_a_compiled_module_of_the_user_is_unknown():
    compiled = module("def run(): pass", __file__="/home/me/fast.cpython-311-x86_64-linux-gnu.so")
    with pytest.raises(UnknownIdentityError, match="the module helpers, which is not Python code"):
        identity(made("def mine(): return x.run()", x=compiled))


SCRIPT = """
import numpy as np
from trueonline.core.identity import identity
WORDS = {"a", "b", "c"}
GAIN = np.float64(0.5)
def helper(x): return GAIN * x if x in {"p", "q", "r", "s"} else len(WORDS)
class Mine:
    # a remark
    def __init__(self): self.gain = helper("p")
print(identity(Mine), identity(Mine, portable=True))
"""


def test_an_identity_is_the_same_in_another_process(tmp_path):
    """The order of sets of texts is another one there."""
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "moved.py").write_text(SCRIPT.replace("# a remark", "# another"))
    runs = []
    for path, seed in (("script.py", "1"), ("script.py", "2"), ("moved.py", "3")):
        space = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}
        command = [sys.executable, path]
        runs.append(subprocess.run(command, cwd=tmp_path, env=space, capture_output=True, text=True, check=False))
    assert all(run.returncode == 0 for run in runs), runs[0].stderr
    code, text = zip(*(run.stdout.split() for run in runs), strict=True)
    assert len(set(code)) == 1  # a remark is no code
    assert len(set(text[:2])) == 1


def test_portable_identities_follow_too():
    for text in (HELPER, SCALAR, COMPILED, CLOSED):
        one, same, other = (made(text.format(number)) for number in (2, 2, 3))
        assert identity(one, portable=True) == identity(same, portable=True) != identity(other, portable=True)
