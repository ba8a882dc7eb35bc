"""Tables and bars in a terminal, and as plain text elsewhere."""

import io
import sys
from types import SimpleNamespace

import pytest

from trueonline import terminal


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self):
        return True


def test_a_table_that_goes_to_a_file_is_plain_and_whole(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    names = ["[red]" + "x" * 200, "y"]
    terminal.print_table(
        ("name", "number", "figure"), [(names[0], 12345, 0.5), (), (names[1], None, float("inf"))], "A title"
    )
    title, heads, rule, first, line, second = capsys.readouterr().out.splitlines()
    assert title == "A title"
    assert heads.split() == ["name", "number", "figure"]
    assert set(rule) == set(line) == {"─"}
    assert first.split() == [names[0], "12,345", "0.5"]
    assert second.split() == ["y", "–", "inf"]
    assert len({len(row) for row in (heads, rule, first, line, second)}) == 1, "all lines are as wide"


def test_a_narrow_terminal_wraps_cells_and_loses_nothing(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    terminal.print_table(("name", "text"), [("abc", "0123456789" * 5)])
    _, *lines = screen.getvalue().splitlines()  # the heads are bold
    assert max(map(len, lines)) == 30
    assert "".join(letter for line in lines for letter in line if letter.isdigit()) == "0123456789" * 5


def test_bars_show_nothing_where_there_is_no_terminal(capsys):
    with terminal.rounds_bar("Verifying", 3) as advance:
        for _ in range(3):
            advance()
    with terminal.EpisodesBar(2) as bar:
        bar(1, 0.5, 10)
    captured = capsys.readouterr()
    assert (captured.out.strip(), captured.err.strip()) == ("", "")


@pytest.mark.parametrize(("resumed_at", "rate"), [(None, " 200 samples/s"), (300, " 50 samples/s")])
def test_the_rate_of_a_stream_counts_from_where_the_run_began(monkeypatch, resumed_at, rate):
    screen, clock = Screen(), iter([0.0, 2.0])
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(terminal, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    source = SimpleNamespace(progress=lambda: 1.0)
    with terminal.StreamBar() as bar:
        bar(SimpleNamespace(samples=400, resumed_at=resumed_at, source=source, dropped=dict, ended=True))
    assert f"400 samples {rate}  left 0:00:00" in screen.getvalue()
