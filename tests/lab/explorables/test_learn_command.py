"""`trueonline learn`: what it opens, what it prints, and what it refuses."""

import os
import subprocess
import sys
import webbrowser

import pytest
from click.testing import CliRunner

from trueonline.cli import main
from trueonline.lab.explorables import INDEX, PAGES

OPENER = "#!/bin/sh\nprintf '%s' \"$1\" > {}\n"


def learn(*arguments):
    return CliRunner().invoke(main, ["learn", *arguments])


def test_it_opens_a_page_in_the_browser_of_the_user(tmp_path):
    opener, opened = tmp_path / "browser", tmp_path / "opened"
    opener.write_text(OPENER.format(opened))
    opener.chmod(0o755)
    line = [sys.executable, "-m", "trueonline", "learn", "traces"]
    done = subprocess.run(line, env=os.environ | {"BROWSER": str(opener)}, capture_output=True, text=True, check=False)
    expected = PAGES[0].path
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == str(expected)
    assert opened.read_text() == expected.as_uri()


def test_without_a_browser_it_prints_the_path_and_says_so(tmp_path):
    line = [sys.executable, "-m", "trueonline", "learn"]
    bare = {name: value for name, value in os.environ.items() if name not in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run(line, env=bare | {"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.strip() == str(INDEX)
    assert "No browser could be opened here. Open this file in a browser." in done.stderr


def test_a_browser_that_fails_is_no_browser(monkeypatch):
    def fail(address):
        raise webbrowser.Error("could not locate runnable browser")

    monkeypatch.setattr(webbrowser, "open", fail)
    said = learn("memory")
    assert said.exit_code == 1
    assert "No browser" in said.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_path_is_printed_and_nothing_is_opened(page, monkeypatch):
    monkeypatch.delattr(webbrowser, "open")
    said = learn(page.name, "--path")
    assert (said.exit_code, said.stdout) == (0, f"{page.path}\n")
    assert page.path.is_file()


def test_the_list_has_every_page_and_opens_none(monkeypatch):
    monkeypatch.delattr(webbrowser, "open")
    lines = learn("--list").stdout.splitlines()
    assert lines[0].endswith(f"all pages             {INDEX}")
    for line, page in zip(lines[1:], PAGES, strict=True):
        assert line.split()[0] == page.name
        assert line.endswith(str(page.path))


def test_the_help_names_every_page():
    text = learn("--help").stdout
    assert all(page.name in text for page in PAGES)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (
            ("trace",),
            1,
            "unknown page 'trace'; known are traces, forward_backward, random_walk, memory, off_policy, step_sizes",
        ),
        (("traces", "--list"), 2, "--list and PAGE cannot be combined: drop one."),
        (("--path", "--list"), 2, "--list and --path cannot be combined: drop one."),
    ],
)
def test_bad_arguments(arguments, status, message, monkeypatch):
    monkeypatch.delattr(webbrowser, "open")
    said = learn(*arguments)
    assert said.exit_code == status
    assert message in said.stderr
