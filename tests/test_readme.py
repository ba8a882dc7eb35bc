"""The links of the README and of the pages beside it lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted(page.name for page in ROOT.glob("*.md"))  # Sphinx checks the links of docs/


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_that_exist(page):
    folder = (ROOT / page).parent
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", (ROOT / page).read_text())
    missing = [target for target in targets if "://" not in target and not (folder / target).exists()]
    assert not missing
