"""What `make dist` refuses: `tools.dist` compares what was built with what is there."""

import subprocess
import tarfile
import zipfile

import pytest

from tools import dist


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A small checkout whose package has what every wheel must have."""
    package = tmp_path / "src" / "trueonline"
    for name in (*dist.NEEDED, "__init__.py", "__pycache__/__init__.cpython-311.pyc"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(name)
    monkeypatch.setattr(dist, "ROOT", tmp_path)
    for command in (["init", "-q"], ["add", "src"], ["rm", "-q", "--cached", "-r", "src/trueonline/__pycache__"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def built(checkout, lacks=(), holds=()):
    """An sdist and a wheel of the checkout, with less or more than they should have."""
    names = [path.relative_to(checkout / "src") for path in (checkout / "src").rglob("*") if path.is_file()]
    names = [name.as_posix() for name in names if "__pycache__" not in name.parts]
    sdist, wheel = checkout / "t-1.tar.gz", checkout / "t-1.whl"
    with tarfile.open(sdist, "w:gz") as archive:
        for name in names:
            archive.add(checkout / "src" / name, f"t-1/src/{name}")
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in ({*names} - {*lacks}) | {*holds, "t-1.dist-info/METADATA"}:
            archive.writestr(name, name)
    return sdist, wheel


def test_what_is_whole_passes(checkout):
    dist.check(*built(checkout))


@pytest.mark.parametrize("name", ["__init__.py", dist.NEEDED[0]])
def test_a_wheel_that_lacks_a_file_is_refused(checkout, name):
    with pytest.raises(SystemExit, match=rf"the wheel lacks trueonline/{name}"):
        dist.check(*built(checkout, lacks=[f"trueonline/{name}"]))


def test_a_file_that_is_missing_everywhere_is_missed(checkout):
    name = dist.NEEDED[-1]
    (checkout / "src" / "trueonline" / name).unlink()
    with pytest.raises(SystemExit, match=rf"the wheel lacks trueonline/{name}"):
        dist.check(*built(checkout))


def test_a_wheel_with_more_than_the_package_is_refused(checkout):
    with pytest.raises(SystemExit, match=r"the wheel should not hold tests/test_x\.py"):
        dist.check(*built(checkout, holds=["tests/test_x.py"]))


def test_an_sdist_that_differs_from_the_checkout_is_refused(checkout):
    (checkout / "README.md").write_text("new")
    subprocess.run(["git", "add", "README.md"], cwd=checkout, check=True)
    with pytest.raises(SystemExit, match=r"the sdist lacks README\.md"):
        dist.check(*built(checkout))


@pytest.mark.parametrize("versions", ["9.9", "abc", "../x", "3.11 9.9"])
def test_an_interpreter_that_is_not_here_is_refused_before_anything_is_built(checkout, monkeypatch, versions):
    monkeypatch.setattr("sys.argv", ["dist", f"--pythons={versions}"])
    monkeypatch.setattr(dist, "build", lambda folder: pytest.fail("it was built"))
    with pytest.raises(SystemExit, match="Install what is missing"):
        dist.main()
