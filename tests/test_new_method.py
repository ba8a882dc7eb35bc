"""`python -m tools.new_method`, in a copy of the checkout, as somebody uses it who adds a method."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NEW = (
    "src/trueonline/methods/my_td.py",
    "src/trueonline/forward/my_td.py",
    "docs/methods/my_td.md",
    "tests/methods/test_my_td.py",
)


@pytest.fixture
def copied(tmp_path):
    """What the tool and the tests of the catalogue read."""
    skipped = shutil.ignore_patterns(
        "__pycache__", "_build", "data", "results", "generated", "*.ipynb", "hostile", "oracles"
    )
    for folder in ("src", "tools", "docs/methods", "docs/guides", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=skipped)
    for file in ("README.md", "pyproject.toml", "conftest.py"):
        shutil.copy(ROOT / file, tmp_path)
    return tmp_path


def run(folder, *arguments):
    found = {**os.environ, "PYTHONPATH": f"{folder / 'src'}{os.pathsep}{folder}"}
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=folder, env=found, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.apart  # it is for developers of the package, and runs pytest in a copy of the checkout
def test_a_new_method_has_five_parts_and_each_gap_is_named(copied):
    code, said = run(copied, "tools.new_method", "my_td")
    assert code == 0, said
    for file in (*NEW, "src/trueonline/catalog.py"):
        assert re.search(rf"^{file}:[0-9]+: (GAP|<!--)", said, re.MULTILINE), file
    assert "MyTD" in (copied / "README.md").read_text(encoding="utf-8")
    tests = ("pytest", "-q", "-p", "no:cacheprovider", "tests/test_catalog.py", NEW[-1], "-k", "my_td or up_to_date")
    code, said = run(copied, *tests)
    assert code == 1, said
    assert re.findall(r"^FAILED (.*?) -", said, re.MULTILINE) == [
        "tests/test_catalog.py::test_a_method_has_no_gaps[my_td]"
    ]
    assert run(copied, "tools.new_method", "my_td")[1].strip().endswith("choose another name")
    assert run(copied, "tools.new_method", "MyTD")[1].strip().endswith("got 'MyTD'")
    for file in (*NEW, "src/trueonline/catalog.py"):  # somebody fills the gaps
        path = copied / file
        text = re.sub(r"<!--.*?-->|([A-Z]{3,} ){2,}[A-Z]{3,}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        path.write_text(text.replace("GAP: ", ""), encoding="utf-8")
    assert run(copied, "tools.generated")[0] == 0
    code, said = run(copied, *tests)
    assert code == 0, said
