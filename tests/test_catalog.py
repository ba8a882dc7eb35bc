"""The catalogue: nothing that a method needs is missing (CONTRIBUTING.md has the steps)."""

import inspect
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tools import generated, new_method
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


@pytest.mark.parametrize("row", ROWS, ids=_name)
def test_a_method_has_no_gaps(row):
    left = new_method.gaps(row)
    assert not left, "fill these gaps:\n" + "\n".join(left)


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


def test_every_rule_file_has_a_row():
    files = {path.stem for path in (ROOT / "src" / "trueonline" / "methods").glob("*.py")} - {"__init__"}
    assert files == set(methods.__all__), "give a rule a row in catalog.py, as `rule` or `varying`"


# The contract is about what surrounds a rule. So one learner of each memory, with what its transitions have, stands for the others.
LEARNERS = [row for row in ROWS if row.rule and not hasattr(row.resolve("learner"), "step")]
CONTRACT = {(row.memory, row.resolve("learner").takes, row.group): row for row in reversed(LEARNERS)}


@pytest.mark.parametrize("row", ROWS, ids=_name)
def test_a_method_equals_its_definition_and_its_kind_keeps_the_contract(row):
    """What `verify` and `check_learner` say: a row without a place in either cannot pass."""
    kind = partial(row.resolve("learner"), **row.options, **row.settings)
    report = verify(kind, trials=1, steps=30)
    definition = row.resolve("definition")
    assert report.definition == definition.__name__
    assert report.exact, report
    if row in CONTRACT.values():
        assert len(check_learner(kind).kept) == 10


def test_what_is_written_from_the_catalogue_is_up_to_date():
    old = [str(path.relative_to(ROOT)) for path in generated.outdated()]
    assert not old, f"run `python -m tools.generated`: {old} differ from the catalogue"


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
