"""Sweeps as CUDA's machine code: every rule compiles to code that is inlined, never fuses, and stays in registers."""

import re
from functools import cache

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
pytest.importorskip("cuda.bindings.nvjitlink", reason="cuda-bindings is not installed")

from tests.study.own_rules import late_decay, two_rebases
from tests.study.small_cases import own_accumulate
from trueonline import catalog, derive
from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory.operations import shift, value
from trueonline.study import SweptMethod
from trueonline.study.engines.cuda.compiler import link, to_ptx
from trueonline.study.engines.cuda.variants import ENTRY, Variant

H200, A100, T4 = (9, 0), (8, 0), (7, 5)
TABLE = Variant(tabular=True, diagonal=True, few=0, shared=True)
# The paper's random MRPs have features of 10 and 100 states: tables, binary codes of 7 bits, and 5 random numbers. (Codes of 4
# bits need the fewest registers.)
DENSE = {few: Variant(tabular=False, diagonal=False, few=few, shared=False) for few in (5, 7)}
MANY = Variant(tabular=False, diagonal=False, few=0, shared=True)
PAPERS = ("accumulate", "replace", "true_online")


def lambda_return(k, h, R, V, gamma, lam):
    rest = lam[k + 1] * lambda_return(k + 1, h, R, V, gamma, lam) if k + 1 < h else 0
    share = 1 - lam[k + 1] if k + 1 < h else 1
    return R[k + 1] + gamma[k + 1] * (share * V(k, k + 1) + rest)


OWN = {
    "a function compiled by Numba": lambda: SweptMethod(own_accumulate),
    "late decay and a shift": lambda: SweptMethod(late_decay),
    "a derived method": lambda: SweptMethod(derive(lambda_return).method),
}
# Some methods differ in their second step-size alone, which is no part of the code.
RULES = {SweptMethod(name).update: name for name in catalog.names(swept=True)}.values()
VARIANTS = [
    *((name, each) for name in PAPERS for each in (TABLE, *DENSE.values())),
    *((name, each) for name in RULES if name not in PAPERS for each in (TABLE, MANY)),
    *((name, TABLE) for name in OWN),
    ("late decay and a shift", DENSE[5]),
    ("two rebases", TABLE),  # dense features take one imprint a step
    ("true_online_differential", TABLE._replace(diagonal=False)),  # the error of average reward leaves out a constant
    (
        "true_online",
        Variant(tabular=True, diagonal=True, few=0, shared=False),
    ),  # more features than shared memory has room for
    ("true_online", MANY._replace(diagonal=True)),
]


def method(name):
    return OWN[name]() if name in OWN else SweptMethod(two_rebases if name == "two rebases" else name)


@cache
def ptx_of(name, variant):
    rule = method(name)
    return to_ptx(rule.update, rule.kind, variant, H200)


def instructions(ptx):
    """The instructions, without their operands and predicates."""
    lines = (re.sub(r"^@!?%p\d+\s+", "", line.strip()) for line in ptx.splitlines())
    return [line.split()[0].rstrip(";") for line in lines if re.match(r"[a-z]", line)]


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        each if each[0] == "true_online" else pytest.param(*each, marks=pytest.mark.apart)
        for each in VARIANTS  # those of one rule every day
    ],
    ids=lambda value: str(tuple(value) if isinstance(value, tuple) else value),
)
def test_a_sweep_is_one_kernel_without_calls_fused_operations_or_spills(name, variant):
    ptx = ptx_of(name, variant)
    found = set(instructions(ptx))
    assert "mul.rn.f64" in found
    assert "add.rn.f64" in found
    assert not {each for each in found if each.startswith("call")}, "all pieces are inlined"
    # Without `.rn` the assembler may fuse a product and a sum itself.
    loose = {each for each in found if re.fullmatch(r"(fma|mad)\..*f(32|64)|(add|sub|mul)(\.ftz)?\.f(32|64)", each)}
    assert not loose, "sums and products are rounded one by one, as on a processor"
    assert not {each for each in found if re.search(r"approx|\.full\.", each)}
    assert not re.search(r"\.local\s", ptx), "vectors of few features are in registers"
    code = link(ptx, H200)
    print(f"{name} {tuple(variant)}: {code.registers} registers")
    assert code.spilled == 0
    assert 16 < code.registers <= 255
    assert code.cubin[:4] == b"\x7fELF"
    assert ENTRY.encode() in code.cubin


def test_spilled_bytes_are_seen():
    """A kernel that may use few registers has to spill, so the check above can fail."""
    cramped, places = re.subn(r"(\.entry[^)]*\))", r"\1 .maxnreg 32", ptx_of("true_online", DENSE[5]))
    assert places == 1
    assert link(cramped, H200).spilled > 0


@pytest.mark.parametrize("capability", [T4, pytest.param(A100, marks=pytest.mark.apart)], ids=["sm_75", "sm_80"])
def test_older_devices_get_code_of_their_own(capability):
    rule = SweptMethod("true_online")
    ptx = to_ptx(rule.update, rule.kind, TABLE, capability)
    assert f".target sm_{capability[0]}{capability[1]}" in ptx
    code = link(ptx, capability)
    assert code.spilled == 0
    assert 16 < code.registers <= 255


def test_an_assembler_that_refuses_says_why():
    with pytest.raises(RuntimeError, match=r"cannot be assembled for sm_90: .*"):
        link(".version 8.0\n.target sm_90\n.address_size 64\n.entry sweep_grid() { nonsense; }", H200)


def test_compiling_changes_nothing_for_others():
    """numba-cuda's own functions are in place again, also where a rule cannot be compiled."""
    from numba.cuda import dispatcher
    from numba.cuda.cudadrv import nvvm

    from trueonline.core.compiling.kernels import kernel

    @kernel
    def broken(memory, x):
        return x.nothing, 0.0, 0.0

    usual = dispatcher.get_current_device, nvvm.compile_ir
    with pytest.raises(Exception, match="nothing"):
        to_ptx(broken, "one", TABLE, H200)
    assert (dispatcher.get_current_device, nvvm.compile_ir) == usual


@kernel
def draws(memory, x, reward, alpha):
    v = value(memory, x)
    shift(memory, x, alpha * (reward - v) * np.random.rand())
    return v, v, v


@kernel
def sorts(memory, x, reward, alpha):
    v = value(memory, x)
    shift(memory, x, alpha * (reward - np.sort(np.zeros(3))[0]))
    return v, v, v


@pytest.mark.parametrize("rule", [draws, sorts])
def test_a_rule_that_cannot_be_compiled_is_named_in_one_line(rule):
    with pytest.raises(ValueError, match="cannot be compiled for a GPU") as caught:
        to_ptx(rule, "one", TABLE, H200)
    # The reason is Numba's, and depends on what Numba has loaded before.
    said = rf"the rule {rule.py_func.__name__} cannot be compiled for a GPU: .+; the engine local can run .*"
    assert re.fullmatch(said, str(caught.value))
