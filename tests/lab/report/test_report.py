"""The report: what the file holds, and what a browser makes of it when it is opened from disk."""

import json
import os
import re
from html import unescape
from html.parser import HTMLParser

import pytest

pytest.importorskip("pyarrow")

from tests.browsers import headless_chromium
from trueonline.lab.claims import FAILS, HOLDS, NOISE, Claim, summary
from trueonline.lab.experiment import Reading
from trueonline.lab.report import Opening, Section, build, svg
from trueonline.look import figure, look

EVIL = "<script>alert('1')</script> & \"more\" </script>"


def drawing(title):
    """A picture as the experiments draw them, with a clipped line and an image."""
    import io

    file = io.BytesIO()
    with look():
        drawn, ((axes, image),) = figure(1, 2, width=7.0, height=3.0)
        axes.plot([0, 1], [0, 1], color="#0072B2")
        axes.set(xlim=(0.0, 0.5), title=title)
        image.imshow([[0.0, 1.0]])
        image.text(0, 0, "cell", color=svg.ON_CELLS["dark"])
        drawn.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue().decode()


SECTIONS = [
    Section(
        "fig4", "Figure 4 <b>", f"e ← γλe + φ\n\nSecond. {EVIL}",
        [
            Claim("true online is best", HOLDS, {"gap": 0.123456, "tasks": "9 of 9", "interval": [0.5, -1e-12]}),
            Claim("replace is as good", HOLDS, {"difference": 0.01}, samples=2),
            Claim(f"never diverges {EVIL}", FAILS),
        ],
        125.0, {"figure": drawing("one"), "unit-length": drawing("two")}, {"broken": f"ValueError: {EVIL}"},
        ("The best:", ["method", "error"], [["true online", 0.25], ["replace", 2]]), ["fig4/figure.pdf", "fig4/data file.csv"],
        Reading(f"Which is best? {EVIL}", "*True* online is.", "Run `it`.", "By chance.", main=2),
    ),
    Section("games", "Games", "", [], 0.2, table=("Each row:", ["n"], [[n] for n in range(30)])),
]  # fmt: skip
OPENING = Opening(summary([*SECTIONS[0].claims]), [drawing("first")], "How it began.", {"MRP": f"a process {EVIL}"})
ABOUT = {"seeds": "0 … 49", "command": "trueonline reproduce <here>"}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    build(path, SECTIONS, ABOUT, OPENING)
    return path


@pytest.fixture(scope="module")
def page(path):
    return path.read_text("utf-8")


def test_the_file_is_complete_and_the_same_again_and_loads_nothing(path, page, tmp_path):
    build(tmp_path / "again.html", SECTIONS, ABOUT, OPENING)
    assert (tmp_path / "again.html").read_text("utf-8") == page
    assert page.startswith("<!DOCTYPE html>")
    assert page.rstrip().endswith("</html>")
    assert os.listdir(path.parent) == ["report.html"]
    assert "default-src 'none'" in page
    assert "<script" not in page

    class Loads(HTMLParser):
        found = ()

        def handle_starttag(self, tag, attrs):
            for name, value in attrs:
                loaded = name in ("src", "srcset", "data", "poster") or (name.endswith("href") and tag != "a")
                self.found += (value,) if loaded and not value.startswith(("data:", "#")) else ()

    parser = Loads()
    parser.feed(page)
    assert parser.found == ()
    style = re.search("<style>(.*?)</style>", page, re.DOTALL).group(1)
    assert not re.search(r"@import|url\(", style)


def test_claims_verdicts_numbers_links_and_tables_are_there_and_text_is_escaped(page):
    text = unescape(page)
    for section in SECTIONS:
        assert f'<section id="{section.name}">' in page
        assert f'<a href="#{section.name}">' in page
        for claim in section.claims:
            assert text.count(claim.claim) >= 2  # in the table and in its section
    for mark in ("✓ holds", "✗ does not hold", "≈ within noise"):
        assert page.count(mark) == (3 if "not" in mark else 2)  # what does not hold is said at the beginning, too
    assert "3 claims: 1 holds, 1 does not hold, 1 within noise. 1 of them cannot be decided by so few runs" in page
    assert "<tr><th>gap</th><td>0.1235</td></tr>" in page
    assert "<td>0.5, −1·10⁻¹²</td>" in page
    assert '<a href="fig4/data%20file.csv">' in page
    assert "Took 2 minutes." in page
    assert "✗ 1 does not hold" in page
    assert '<span class="measured">difference: 0.01<' in page
    assert all(key in text and value in text for key, value in ABOUT.items())
    assert '<tr><th>method</th><th class="number">error</th></tr>' in page
    assert '<tr><td>true online</td><td class="number">0.25</td></tr>' in page
    assert "<summary>Each row (30 rows)</summary>" in page
    assert "<script" not in page
    assert "Figure 4 &lt;b&gt;" in page
    assert "The picture broken could not be drawn: ValueError: &lt;script&gt;" in page


def test_what_does_not_hold_is_explained_before_the_sections(page):
    first, sections = page.index('id="does-not-hold"'), page.index('<section id="fig4"')
    assert first < page.index("By chance.") < sections < page.index('<section id="claims"')
    assert "<p><em>True</em> online is.</p>" in page
    assert "<code>it</code>" in page
    assert "Case by case, 1 claim: 1 does not hold." in page  # all but the main claims


def test_pictures_keep_their_ids_apart_and_all_references_have_a_target(page):
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(set(ids)) == len(ids)
    wanted = {*re.findall(r"url\(#([^)]*)\)", page), *re.findall(r'xlink:href="#([^"]*)"', page)}
    assert wanted
    assert wanted <= set(ids)


def test_every_colour_of_a_picture_is_defined_for_both_schemes(page):
    used = set(re.findall(r"var\((--[0-9a-f]{6})\)", page))
    light, dark = (set(re.findall(r"(--[0-9a-f]{6}):", line)) for line in page.split("<style>\n")[1].splitlines()[:2])
    assert used == light == dark
    assert "--0072b2" in used
    assert svg.ON_CELLS["dark"] in page  # and stays as it is


def test_sentences():
    assert summary([]) == "No claims were judged."
    assert summary([Claim("c", HOLDS)]) == "1 claim: 1 holds."
    assert summary([Claim("c", verdict) for verdict in (FAILS, HOLDS, FAILS)]) == "3 claims: 1 holds, 2 do not hold."
    assert summary([Claim("c", NOISE, {"not decided": "words"})]) == "1 claim: 1 within noise."


# --- What a browser makes of it -------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A headless Chromium."""
    with headless_chromium(tmp_path_factory.mktemp("chromium"), "performance") as chrome:
        yield chrome


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_the_page_fits_and_its_colours_follow_the_scheme(browser, path, width, scheme):
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(path.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    paper, ink = browser.execute_script(
        "const s = getComputedStyle(document.body); const t = document.querySelector('svg text');"
        "return [s.backgroundColor, getComputedStyle(t).fill].map((c) => Number(c.match(/\\d+/)[0]))"
    )
    assert (paper - ink > 100) is (scheme == "light")
    assert abs(paper - ink) > 100
    boxes = browser.find_elements("css selector", ".picture")
    assert all(box.size["width"] <= width and box.size["height"] > 100 for box in boxes)
    assert browser.get_log("browser") == []


def test_nothing_is_asked_of_the_network(browser, path):
    browser.get(path.as_uri())
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert not [url for url in sent if url.startswith(("http", "ws"))]
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
