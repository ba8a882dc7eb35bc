"""The README: its table of methods says what the catalogue says, and its links lead somewhere."""

import re
from pathlib import Path

import pytest

from trueonline import __all__ as top_level
from trueonline import catalog, control, nonlinear

ROOT = Path(__file__).parent.parent
PAGES = sorted(page.name for page in ROOT.glob("*.md"))  # Sphinx checks the links of docs/
BETWEEN = re.compile(r"(?<=<!-- methods -->\n\n).*?(?=\n<!-- /methods -->)", re.DOTALL)


def table():
    """The README's table of methods, made from the catalogue: a line for each group, with each class once."""
    lines = ["| for | classes, with their pages |", "|---|---|"]
    for group in catalog.GROUPS:
        rows = [row for row in catalog.METHODS.values() if row.group == group]
        links = {public_name(row): f"[`{public_name(row)}`](docs/methods/{row.page})" for row in rows}
        lines.append(f"| {group} | {', '.join(links.values())} |")
    return "\n".join(lines) + "\n"


def public_name(row):
    """The class as a user reaches it through `trueonline`."""
    wanted = row.learner.partition(":")[2].replace("_", "").lower()
    places = (("", top_level), ("control.", control.__all__), ("nonlinear.", nonlinear.__all__))
    (name,) = (prefix + name for prefix, names in places for name in names if name.lower() == wanted)
    return name


def test_the_table_of_methods_is_that_of_the_catalogue():
    (written,) = BETWEEN.findall((ROOT / "README.md").read_text())
    assert written == table(), f"put this between the two comments:\n{table()}"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_that_exist(page):
    folder = (ROOT / page).parent
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", (ROOT / page).read_text())
    missing = [target for target in targets if "://" not in target and not (folder / target).exists()]
    assert not missing
