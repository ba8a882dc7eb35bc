"""What a release says of itself agrees: version, date, metadata, workflows. `make dist` tries the release itself."""

import re
import sys
from pathlib import Path

import pytest
import yaml

import trueonline
from tools.dist import NEEDED
from tools.environments import find_python, project, supported

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_changelog_and_citation_have_the_version_and_one_date():
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    released = next(heading for heading in headings if heading != "Unreleased")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == trueonline.__version__
    assert f"version = {{{trueonline.__version__}}}" in (ROOT / "docs" / "project" / "citing.md").read_text("utf-8")
    assert released == f"{trueonline.__version__} ({citation['date-released'].isoformat()})"


def test_the_format_of_saved_files_is_the_one_that_the_policy_tells():
    from trueonline.files import VERSION

    minor = trueonline.__version__.rpartition(".")[0]
    policy = (ROOT / "docs" / "project" / "versions.md").read_text("utf-8")
    assert f"| {minor} | {VERSION} | {VERSION} |" in policy


def test_every_python_of_the_metadata_is_tested():
    (tests,) = [path for path in WORKFLOWS if path.stem == "tests"]
    jobs = yaml.safe_load(tests.read_text("utf-8"))["jobs"]
    assert jobs["linux"]["strategy"]["matrix"]["python"] == supported()
    assert project()["requires-python"] == f">={supported()[0]}"


def test_all_extras_but_the_large_ones_are_in_all():
    extras = project()["optional-dependencies"]
    (everything,) = extras["all"]
    assert set(re.findall(r"\w+", everything)) - {"trueonline"} == set(extras) - {"all", "torch", "cuda12", "cuda13"}


def test_the_page_on_installing_has_a_row_for_every_extra():
    rows = re.findall(r"^\| (`.*?`) \|", (ROOT / "docs" / "start" / "installing.md").read_text("utf-8"), re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"\w+", row)]
    assert sorted(listed) == sorted(set(project()["optional-dependencies"]) - {"all"})


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_sound(path):
    workflow = yaml.safe_load(path.read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}  # a job that needs more says so
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    for name, job in workflow["jobs"].items():
        assert job["steps"], name
        assert set(job.get("needs", "").split()) <= set(workflow["jobs"])
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            assert re.fullmatch(r"[\w-]+/[\w-]+@(release/)?v\d+", step.get("uses", "a/b@v1"))
            made = re.findall(r"\bmake ([\w-]+)", step.get("run", ""))
            assert set(made) <= set(targets)
            paths = re.findall(r"\btests/[\w./]+", step.get("run", ""))
            assert all((ROOT / name).exists() for name in paths), paths


def test_only_the_step_that_publishes_may_publish():
    (publish,) = [path for path in WORKFLOWS if path.stem == "publish"]
    jobs = yaml.safe_load(publish.read_text("utf-8"))["jobs"]
    assert [name for name, job in jobs.items() if "permissions" in job] == ["publish"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["environment"] == "release"


def test_what_a_wheel_needs_is_here():
    assert all((ROOT / "src" / "trueonline" / name).is_file() for name in NEEDED)


def test_interpreters_are_found_by_what_they_answer():
    running = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert find_python(running) == sys.executable
    assert find_python("2.0") is None
