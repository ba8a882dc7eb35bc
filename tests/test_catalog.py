"""The catalogue: nothing that a method needs is missing (CONTRIBUTING.md has the steps)."""

import inspect
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from trueonline import catalog, check_learner, methods, verify
from trueonline.core.transition import asked
from trueonline.streams.horde.horde_layout import TRACE_CODES

ROOT = Path(__file__).parent.parent
ROWS = list(catalog.METHODS.values())


def _name(row):
    return row.name


@pytest.mark.parametrize("row", ROWS, ids=_name)
def test_a_method_has_its_learner_definition_rule_and_page(row):
    for part in ("learner", "definition", "forward_view"):
        assert callable(row.resolve(part)), part
    if row.group != "nonlinear":  # a method over functions has no kernel
        for part in ("rule", "varying"):
            assert callable(row.resolve(part)), part
    assert (ROOT / "docs" / "methods" / row.page).is_file(), f"write docs/methods/{row.page}"


def test_words_of_the_catalogue_are_known():
    for row in catalog.METHODS.values():
        assert row.group in catalog.GROUPS
        assert row.trace in catalog.TRACES
        assert row.memory in catalog.MEMORIES
        assert set(row.constants) <= {"gamma", "lam", "alpha"}


def test_what_a_row_names_and_nobody_wrote_is_named():
    row = replace(ROWS[0], name="mine", definition="forward:MySum")
    with pytest.raises(
        ValueError, match=r"the definition of mine is 'forward:MySum', but trueonline\.forward has no MySum"
    ):
        row.resolve("definition")


def test_every_rule_file_has_a_row_and_is_listed():
    files = {path.stem for path in (ROOT / "src" / "trueonline" / "methods").glob("*.py")} - {"__init__"}
    rules = {part for row in catalog.METHODS.values() for part in (row.rule, row.varying) if part is not None}
    without = files - {rule.partition(":")[0].removeprefix("methods.") for rule in rules}
    assert not without, f"give {without} a row in catalog.py, as `rule` or `varying`"
    assert files == set(methods.__all__), "methods/__init__.py lists every rule"


@pytest.mark.parametrize("row", ROWS, ids=_name)
def test_a_method_equals_its_definition_and_keeps_the_contract(row):
    """What `verify` and `check_learner` say of every row: a row without a place in either cannot pass."""
    kind = partial(row.resolve("learner"), **row.options, **row.settings)
    report = verify(kind, trials=1, steps=30)
    definition = row.resolve("definition")
    assert report.definition == definition.__name__
    assert report.exact, report
    if row.rule and not hasattr(row.resolve("learner"), "step"):
        assert len(check_learner(kind).kept) == 10


@pytest.mark.parametrize("guide", ["learners.md", "step_sizes.md"])
def test_a_guide_names_every_linear_learner(guide):
    text = (ROOT / "docs" / "guides" / guide).read_text(encoding="utf-8")
    learners = {row.resolve("learner") for row in ROWS if row.rule}
    missing = {each.__name__ for each in learners if not hasattr(each, "step")} - set(re.findall(r"`(\w+)`", text))
    assert not missing, f"add {missing} to docs/guides/{guide}"


def test_the_guide_to_gpus_names_the_methods_that_run_there():
    text = (ROOT / "docs" / "guides" / "gpu.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"the methods with a kernel for sweeps: (.*?),\n- rules", text, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", listed)) == set(catalog.names(swept=True))


def test_the_example_of_an_off_policy_sweep_says_which_methods_are_the_default():
    text = (ROOT / "examples" / "off_policy_sweep.toml").read_text(encoding="utf-8")
    (listed,) = re.findall(r"The default methods are (.*?), and each with true_online_ before it", text)
    each = re.split(r", | and ", listed)
    assert {*each, *(f"true_online_{name}" for name in each)} == set(catalog.names("off-policy", swept=True))


@pytest.mark.parametrize("row", [row for row in ROWS if row.rule], ids=_name)
def test_a_rule_receives_nothing_that_it_does_not_use(row):
    for part in ("rule", "varying"):
        rule = row.resolve(part)
        body = inspect.getsource(rule.py_func).partition("):")[2]
        unused = [name for name in asked(rule) if not re.search(rf"\b{name}\b", body)]
        assert not unused
        assert ".head[" not in body


def test_hordes_know_the_methods_that_the_catalogue_says():
    assert [row.name for row in ROWS if row.horde] == list(TRACE_CODES)
