"""The catalogue: nothing that a method needs is missing (CONTRIBUTING.md has the steps)."""

from pathlib import Path

import pytest

from trueonline import catalog

ROOT = Path(__file__).parent.parent
# These rows are ahead of the code. Delete a name when its code is there: the test then fails until it is deleted.
IN_PROGRESS = {"monte_carlo", "provisional_td", "provisional_q", "clearing_sarsa"}
ROWS = [
    pytest.param(row, marks=pytest.mark.xfail(strict=True)) if row.name in IN_PROGRESS else row
    for row in catalog.METHODS.values()
]


def _name(row):
    return row.name


@pytest.mark.parametrize("row", ROWS, ids=_name)
def test_a_method_has_its_learner_definition_rule_and_page(row):
    for part in ("learner", "definition", "forward_view"):
        assert callable(row.resolve(part)), part
    if row.group != "nonlinear":  # a method over functions has no kernel
        for part in ("rule", "varying"):
            assert callable(row.resolve(part)), part
    assert (ROOT / "docs" / "methods" / row.page).is_file()


def test_words_of_the_catalogue_are_known():
    for row in catalog.METHODS.values():
        assert row.group in catalog.GROUPS
        assert row.trace in catalog.TRACES
        assert row.memory in catalog.MEMORIES
        assert set(row.constants) <= {"gamma", "lam", "alpha"}


def test_every_rule_file_has_a_row():
    files = {path.stem for path in (ROOT / "src" / "trueonline" / "methods").glob("*.py")} - {"__init__"}
    rules = {part for row in catalog.METHODS.values() for part in (row.rule, row.varying) if part is not None}
    assert files <= {rule.partition(":")[0].removeprefix("methods.") for rule in rules}
