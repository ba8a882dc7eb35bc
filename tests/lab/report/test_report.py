"""The report: what the file holds, and what a browser makes of it when it is opened from disk."""

from __future__ import annotations

import base64
import json
import math
import os
import re
import sys
import time
from contextlib import suppress
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("altair", reason="the report needs Altair: install trueonline[report]")

from tests.browsers import headless_chromium  # noqa: E402
from trueonline.lab.report import Chart, Section, build  # noqa: E402
from trueonline.lab.report.library import library  # noqa: E402
from trueonline.lab.report.page import summary  # noqa: E402

COLOURS = {"accumulate": "#d55e00", "replace": "#0072b2", "true online": "#009e73"}
TRACE_DECAYS = (0.0, 0.5, 0.9, 0.975, 1.0)
STEP_SIZES = tuple(0.01 * 2**i for i in range(7))
EVIL = "<script>alert('1')</script> & \"more\" </script>"


def lines(**columns):
    """Tidy rows, one for each combination of the given values, with an error that a method's place shifts."""
    rows = [{}]
    for name, values in columns.items():
        rows = [row | {name: value} for row in rows for value in values]
    for i, row in enumerate(rows):
        row["error"] = 0.1 + 0.01 * (i % 17) + 0.2 * list(COLOURS).index(row["method"])
        row["low"], row["high"] = row["error"] - 0.15, row["error"] + 0.15
    return rows


def panels(**changes):
    table = lines(problem=["small", "large"], features=["tabular", "binary"], method=COLOURS, trace_decay=TRACE_DECAYS)
    table[3]["error"], table[4]["error"], table[9]["error"] = math.inf, math.nan, None
    given = {
        "data": pa.Table.from_pylist(table), "x": "trace_decay", "y": "error", "series": "method", "rows": "problem",
        "columns": "features", "low": "low", "high": "high", "x_title": "trace decay λ", "y_title": "RMS error",
        "colours": COLOURS, "dashes": {"replace": (4, 2)}, "title": "Best step-size",
    }  # fmt: skip
    return Chart(**given | changes)


def sliding(**changes):
    data = pa.Table.from_pylist(lines(method=COLOURS, trace_decay=TRACE_DECAYS, step_size=STEP_SIZES))
    given = {
        "data": data, "x": "step_size", "y": "error", "series": "method", "choose": "trace_decay", "log_x": True,
        "log_y": True, "x_title": "step-size α", "y_title": "RMS error", "colours": COLOURS, "title": "One λ at a time",
    }  # fmt: skip
    return Chart(**given | changes)


def menu():
    data = pa.Table.from_pylist(lines(game=["Asterix", "Seaquest"], method=COLOURS, step=range(50)))
    return Chart(data, "step", "error", "method", "step", "RMS error", choose="game", colours=COLOURS, title=EVIL)


def long():
    data = pa.Table.from_pylist(lines(method=COLOURS, step=range(2000)))
    return Chart(data, "step", "error", "method", "step", "RMS error", y_domain=(0.0, 0.5))


SECTIONS = [
    Section(
        "fig4", "Figure 4 <b>", f"e ← γλe + φ\n\nSecond. {EVIL}", [panels(), sliding()],
        [
            {"claim": "true online is best", "verdict": "holds", "numbers": {"gap": 0.123456, "tasks": "9 of 9"}},
            {"claim": "replace is as good", "verdict": "within noise", "numbers": {"difference": 0.01}},
            {"claim": f"never diverges {EVIL}", "verdict": "does not hold", "numbers": {}},
        ], 75.0, ["fig4/figure.pdf", "fig4/data file.csv"],
    ),
    Section(
        "games", "Games", "", [menu(), long()],
        [{"claim": "c", "verdict": "not run"}, {"claim": "d", "verdict": "holds"}], 0.2,
    ),
]  # fmt: skip
ABOUT = {"seeds": "0 … 49", "command": "trueonline reproduce <here>"}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    build(path, SECTIONS, ABOUT)
    return path


@pytest.fixture(scope="module")
def page(path):
    return path.read_text("utf-8")


def payloads(page):
    """The JSON of each chart; NaN and infinities are refused, as a browser refuses them."""

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    found = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    return [json.loads(text, parse_constant=refuse) for text in found]


# --- what the file holds


def test_the_file_is_whole_and_stands_alone(path, page):
    assert page.startswith("<!DOCTYPE html>")
    assert page.rstrip().endswith("</html>")
    assert os.listdir(path.parent) == ["report.html"]
    assert "default-src 'none'" in page

    class Loads(HTMLParser):
        found = ()

        def handle_starttag(self, tag, attrs):
            for name, value in attrs:
                loaded = name in ("src", "srcset", "data", "poster") or (name == "href" and tag != "a")
                self.found += ((tag, value),) if loaded else ()

    parser = Loads()
    parser.feed(page)
    assert parser.found == (("link", "data:,"),)
    style = re.search("<style>(.*?)</style>", page, re.DOTALL).group(1)
    assert "@import" not in style
    assert "url(" not in style


def test_the_library_is_there_once(page):
    assert page.count("window.vegaEmbed") == 1
    assert len(page) < 1_500_000


def test_claims_verdicts_numbers_and_links_are_there(page):
    text = unescape(page)
    for section in SECTIONS:
        assert f'<section id="{section.name}">' in page
        assert f'<a href="#{section.name}">' in page
        for verdict in section.verdicts:
            assert text.count(verdict["claim"]) >= 2  # in the table and in its section
    for mark in ("✓ holds", "✗ does not hold", "≈ within noise", "· not run"):
        assert page.count(mark) >= 2
    assert "2 of 5 claims hold, 1 within noise, 1 does not, 1 not run." in page
    assert "<tr><th>gap</th><td>0.1235</td></tr>" in page
    assert '<a href="fig4/data%20file.csv">' in page
    assert "Took 75 s." in page
    assert all(key in text and value in text for key, value in ABOUT.items())


def test_text_is_escaped(page):
    assert "<script>alert" not in page
    assert page.count("</script") == 2 + len(payloads(page))
    assert "Figure 4 &lt;b&gt;" in page


def test_specifications_are_sound_and_the_data_is_apart(page):
    charts = payloads(page)
    assert len(charts) == 4
    for chart in charts:
        assert set(chart["specs"]) == {"linear", "log"}
        for kind, spec in chart["specs"].items():
            layers = spec.get("spec", spec)["layer"]
            assert {layer["encoding"]["y"]["scale"]["type"] for layer in layers} == {kind}
            assert spec["data"] == {"name": "rows"}
            assert "datasets" not in spec
    assert set(charts[0]["specs"]["log"]["facet"]) == {"row", "column"}
    assert charts[1]["choices"] == ["0", "0.5", "0.9", "0.975", "1"]
    assert charts[2]["choices"] == ["Asterix", "Seaquest"]


def test_what_is_not_finite_breaks_the_line_and_is_counted(page):
    chart = payloads(page)[0]
    ys = chart["columns"]["y"]
    assert [ys[3], ys[4], ys[9]] == [None, None, None]
    assert sum(y is None for y in ys) == 3
    assert chart["notes"]["linear"] == "Not shown, of 60 points: 3 that are not finite."


def test_the_switch_opens_as_asked_and_the_legend_has_colours(page):
    figures = re.findall("<figure>.*?</figure>", page, re.DOTALL)
    assert [" checked>log" in figure for figure in figures] == [False, True, False, False]
    assert ['type="range"' in figure for figure in figures] == [False, True, False, False]
    assert ["<select" in figure for figure in figures] == [False, False, True, False]
    assert all(figure.count("<button") == 3 and colour in figure for figure in figures[:3] for colour in COLOURS.values())
    assert 'stroke-dasharray="4 2"' in figures[0]


def test_columns_come_back_from_what_the_page_gets(page):
    sent = payloads(page)[1]["columns"]
    back = {
        name: column if isinstance(column, list) else [column["values"][code] for code in column["codes"]]
        for name, column in sent.items()
    }
    data = sliding().data
    assert back["series"] == data["method"].to_pylist()
    assert back["x"] == data["step_size"].to_pylist()  # exact
    assert [TRACE_DECAYS[i] for i in back["choice"]] == data["trace_decay"].to_pylist()
    assert back["y"] == pytest.approx(data["error"].to_pylist(), rel=1e-5)


def test_without_positive_values_there_is_no_log_axis(tmp_path):
    data = pa.table({"x": [1, 2], "y": [-1.0, -2.0], "m": ["a", "a"]})
    build(tmp_path / "r.html", [Section("s", "S", "", [Chart(data, "x", "y", "m", "x", "y")], [], 1)], {})
    page = (tmp_path / "r.html").read_text("utf-8")
    assert list(payloads(page)[0]["specs"]) == ["linear"]
    assert 'class="log"' not in page
    assert "No claims were judged." in page


def test_the_same_report_is_the_same_file(tmp_path, page):
    build(tmp_path / "again.html", SECTIONS, ABOUT)
    assert (tmp_path / "again.html").read_text("utf-8") == page


def test_sentences():
    def section(*verdicts):
        return Section("s", "S", "", [], [{"claim": "c", "verdict": verdict} for verdict in verdicts], 1)

    assert summary([section("holds")]) == "1 of 1 claim holds."
    assert summary([section("does not hold", "holds", "does not hold")]) == "1 of 3 claims hold, 2 do not."
    few = {"claim": "c", "verdict": "within noise", "numbers": {"not decided": "2 runs"}}
    told = "1 of 3 claims hold, 2 within noise. 1 cannot be decided, because there were too few runs."
    assert summary([section("holds", "within noise"), Section("f", "F", "", [], [few], 1)]) == told


# --- what is refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": "errors"}, "y must name a column of the table, got 'errors'"),
        ({"high": None}, "give both or neither"),
        ({"y_domain": (2.0, 1.0)}, "the smaller first"),
    ],
)
def test_charts_that_cannot_be(changes, message):
    with pytest.raises(ValueError, match=message):
        panels(**changes)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"charts": [panels(x="problem")]}, "x must be a column of numbers, got 'small'"),
        ({"charts": [sliding(x="low", log_x=True, data=sliding().data.slice(0, 1))]}, "nothing to draw"),
    ],
)
def test_a_failed_report_leaves_the_old_one(tmp_path, section, message):
    (tmp_path / "r.html").write_text("old")
    with pytest.raises(ValueError, match=message):
        build(tmp_path / "r.html", [Section("s", "S", "", **section, verdicts=[], seconds=1)], {})
    assert (tmp_path / "r.html").read_text() == "old"
    assert os.listdir(tmp_path) == ["r.html"]


def test_other_refusals(tmp_path, monkeypatch):
    for file in ("/etc/passwd", "https://example.org/x", "javascript:alert(1)"):
        with pytest.raises(ValueError, match="relative to the page"):
            Section("s", "S", "", [], [], 1, [file])
    with pytest.raises(ValueError, match="different names"):
        build(tmp_path / "r.html", [SECTIONS[1], SECTIONS[1]], {})
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ValueError, match=r"pip install 'trueonline\[report\]'"):
        library.__wrapped__()


# --- the kept script


@pytest.fixture
def bundled(monkeypatch, tmp_path):
    """The scripts that were made, with a cache folder of this test. To make one takes no time here."""
    import vl_convert

    made = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(
        vl_convert, "javascript_bundle", lambda entry, vl_version: made.append(vl_version) or "let é = '</script>'"
    )
    return made


def kept(folder):
    return list((folder / "trueonline" / "report").glob("*"))


def test_the_script_is_made_once_and_kept(bundled, tmp_path):
    first, second = (library.__wrapped__() for _ in range(2))
    assert first == second == r"let é = '<\/script>'"
    assert len(bundled) == len(kept(tmp_path)) == 1


@pytest.mark.parametrize("damage", [lambda text: text.replace(b"let", b"var"), lambda text: text[:-1], lambda text: b""])
def test_a_kept_script_that_was_changed_is_made_again(bundled, tmp_path, damage):
    script = library.__wrapped__()
    (file,) = kept(tmp_path)
    file.write_bytes(damage(file.read_bytes()))
    assert library.__wrapped__() == script
    assert len(bundled) == 2
    assert library.__wrapped__() == script
    assert len(bundled) == 2


@pytest.mark.skipif(os.name == "nt", reason="there a folder has no mode")
def test_no_script_is_kept_where_others_may_write(bundled, tmp_path):
    library.__wrapped__()
    (tmp_path / "trueonline" / "report").chmod(0o777)
    library.__wrapped__()
    assert len(bundled) == 2
    (tmp_path / "trueonline" / "report").chmod(0o700)
    tmp_path.chmod(0o777)
    library.__wrapped__()
    assert len(bundled) == 3


def test_without_a_cache_folder_a_script_is_made(bundled, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert library.__wrapped__() == library.__wrapped__()
    assert len(bundled) == 2


def test_a_relative_cache_folder_is_ignored(bundled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / ".cache").mkdir(parents=True, mode=0o700)
    library.__wrapped__()
    assert not (tmp_path / "cache").exists()
    assert len(kept(tmp_path / "home" / ".cache")) == 1


def test_charts_are_explained_where_there_are_some(page, tmp_path):
    assert page.count("click a method") == 1
    build(tmp_path / "report.html", [replace(SECTIONS[0], charts=[])], ABOUT)
    assert "click a method" not in (tmp_path / "report.html").read_text("utf-8")


# --- what a browser makes of it


@pytest.fixture(scope="module")
def browser(path, tmp_path_factory):
    """A headless Chromium with the report open and its charts drawn."""
    with headless_chromium(tmp_path_factory.mktemp("chromium"), "performance") as chrome:
        chrome.get(path.as_uri())
        until(lambda: chrome.execute_script("return document.documentElement.dataset.drawn"))
        yield chrome
        assert chrome.get_log("browser") == []  # neither errors nor warnings, after all that the tests did


def until(true, seconds=300):
    """Wait for something, and return it."""
    from selenium.common.exceptions import StaleElementReferenceException

    end = time.monotonic() + seconds
    while True:
        with suppress(StaleElementReferenceException):  # the page drew itself anew while it was looked at
            if found := true():
                return found
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def figures(browser):
    """Each figure, with short ways to what the tests look at."""

    def handle(figure):
        def one(selector):
            return figure.find_element("css selector", selector)

        def set_to(selector, value, event):
            script = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event(arguments[2]))"
            browser.execute_script(script, one(selector), value, event)

        def lines():
            return [g.get_attribute("d") for g in figure.find_elements("css selector", ".mark-line path")]

        def axis():
            return [g.text for g in figure.find_elements("css selector", ".plot svg .role-axis-label text")]

        buttons = figure.find_elements("css selector", ".legend button")
        return SimpleNamespace(one=one, set_to=set_to, lines=lines, axis=axis, buttons=buttons)

    return [handle(figure) for figure in browser.find_elements("tag name", "figure")]


def test_charts_are_drawn(browser):
    assert browser.execute_script("return document.documentElement.dataset.drawn") == "4"
    grid, slide, games, curves = figures(browser)
    assert grid.one(".plot svg").size["width"] > 600
    assert len(slide.lines()) == len(games.lines()) == 3
    assert len(grid.lines()) == 4 * 3  # panels × methods
    assert curves.one(".plot canvas").size["width"] > 600  # many points: no SVG
    assert grid.one(".note").text == "Not shown, of 60 points: 3 that are not finite."


def test_nothing_is_asked_of_the_network(browser, path):
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert {ask["request"]["url"] for ask in sent if ask["documentURL"] == path.as_uri()} <= {path.as_uri(), "data:,"}
    assert not [ask for ask in sent if ask["request"]["url"].startswith(("http", "ws"))]
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_the_switch_changes_the_axis_and_back(browser):
    grid = figures(browser)[0]
    before, ticks = grid.lines(), grid.axis()
    grid.one(".log").click()
    until(lambda: len(grid.lines()) == len(before) and grid.lines() != before)
    assert grid.axis() != ticks
    grid.one(".log").click()
    until(lambda: grid.lines() == before)


def test_the_slider_chooses(browser):
    slide = figures(browser)[1]
    assert slide.one("output").text == "0.9"
    before = slide.lines()
    slide.set_to(".choice", "3", "input")
    until(lambda: slide.lines() != before)
    assert slide.one("output").text == "0.975"
    assert len(slide.lines()) == 3
    slide.one(".log").click()  # what was chosen outlives a change of the axis
    until(lambda: len(slide.lines()) == 3)
    assert slide.one("output").text == "0.975"


def test_the_menu_chooses(browser):
    games = figures(browser)[2]
    before = games.lines()
    games.set_to("select", "1", "input")
    until(lambda: games.lines() != before)


def test_the_legend_hides_and_shows(browser):
    games = figures(browser)[2]
    games.buttons[0].click()
    until(lambda: len(games.lines()) == 2)
    games.buttons[1].click()
    games.buttons[2].click()  # the last: all come back
    until(lambda: len(games.lines()) == 3)


def test_the_pointer_reads_values(browser):
    from selenium.webdriver.common.action_chains import ActionChains

    plot = figures(browser)[0].one(".plot svg")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", plot)
    ActionChains(browser).move_to_element_with_offset(plot, -120, -100).perform()
    tip = until(lambda: browser.find_element("class name", "tip").text)
    for word in ("method", "problem small", "features tabular", "trace decay λ", "RMS error", "low", "high"):
        assert word in tip
    assert "undefined" not in tip


def test_a_phone_scrolls_charts_but_not_the_page(browser):
    metrics = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        until(lambda: figures(browser)[2].one(".plot").size["width"] < 390 and figures(browser)[2].lines())
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        until(lambda: browser.execute_script("const b = arguments[0]; return b.scrollWidth == b.clientWidth",
                                             figures(browser)[2].one(".plot")))  # fmt: skip
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_picture_becomes_part_of_the_page(tmp_path):
    picture = b"\x89PNG\r\n\x1a\n not really"
    section = Section("fig9", "Figure 9", "A summary.", [], [], 0.1, picture=picture)
    build(tmp_path / "report.html", [section], {})
    page = (tmp_path / "report.html").read_text()
    assert f'src="data:image/png;base64,{base64.b64encode(picture).decode()}"' in page
