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
    """The README's table of methods, made from the catalogue."""
    lines = ["| method | class | page |", "|---|---|---|"]
    for row in catalog.METHODS.values():
        page = f"[{row.page}](docs/methods/{row.page})"
        lines.append(f"| {row.title} (`{row.name}`) | `{public_name(row)}` | {page} |")
    return "\n".join(lines) + "\n"


def public_name(row):
    """The class as a user reaches it through `trueonline`, with the options that make it this method."""
    wanted = row.learner.partition(":")[2].replace("_", "").lower()
    places = (("", top_level), ("control.", control.__all__), ("nonlinear.", nonlinear.__all__))
    (name,) = (prefix + name for prefix, names in places for name in names if name.lower() == wanted)
    options = "".join(f", {key}={value}" for key, value in row.options.items())
    return f"{name}(…{options})" if options else name


def test_the_table_of_methods_is_that_of_the_catalogue():
    (written,) = BETWEEN.findall((ROOT / "README.md").read_text())
    assert written == table(), f"put this between the two comments:\n{table()}"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_that_exist(page):
    folder = (ROOT / page).parent
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", (ROOT / page).read_text())
    missing = [target for target in targets if "://" not in target and not (folder / target).exists()]
    assert not missing
