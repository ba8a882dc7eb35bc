"""What holds for every explorable page: at any width, in light and dark, with keys, embedded, and without JavaScript."""

import html
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.lab.explorables import stills
from tests.lab.explorables.conftest import DESKTOP, PHONE
from trueonline.catalog import METHODS
from trueonline.lab.explorables import FOLDER, INDEX, PAGES

DOCS = Path(__file__).parents[3] / "docs"
NAMES = ("index", *(page.name for page in PAGES))
FILES = [path for path in FOLDER.rglob("*") if path.is_file()]
CODE = {
    f"{path.stem} {number}": html.unescape(code)
    for path in FILES
    for number, code in enumerate(re.findall(r"<pre><code>(.*?)</code></pre>", path.read_text(), re.S))
}
PRINTS = re.compile(r"^# ([-\d.]+ [-\d.]+|True)\b.*$|# (True)$", re.M)  # what a comment in the code says that it prints
LINK = re.compile(r'(?:href|src)="([^"#?:]+)"')


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [DESKTOP, 768, PHONE])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_page_fits_its_window_and_complains_of_nothing(browser, name, width, dark):
    browser.open(name, width=width, dark=dark)
    assert browser.overflow() <= 0
    assert browser.complaints() == []
    assert browser.find("h1")


@pytest.mark.parametrize("name", ["random_walk", "off_policy", "step_sizes"])
def test_a_page_opens_with_something_moving_unless_the_reader_wants_no_motion(browser, name):
    where = "document.querySelector('.where').textContent"
    browser.open(name, height=1400)
    still = browser.run(f"return {where}")
    assert not still.endswith("step 0")  # something has happened before the page opens
    browser.open(name, height=1400, motion=True)
    browser.wait(f"return {where} !== {still!r}")
    browser.wait("return document.querySelector('.player .primary').textContent.includes('Pause')")


def test_pages_link_to_all_pages_and_to_their_neighbours_in_the_order_for_newcomers(browser):
    files = [f"{page.name}.html" for page in PAGES]
    for place, file in enumerate(files):
        browser.open(PAGES[place].name)
        links = {
            where: [a.get_dom_attribute("href") for a in browser.find(f"{where}.site a")]
            for where in ("header", "footer")
        }
        assert links["header"] == ["index.html", *files]
        assert browser.find("[aria-current=page]")[0].get_dom_attribute("href") == file
        assert links["footer"] == [*files[max(place - 1, 0) : place], *files[place + 1 : place + 2], "index.html"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_charts_are_drawn_again_when_the_window_changes(browser, page):
    browser.open(page.name)
    browser.resize(PHONE)
    browser.wait("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    wide = "return [...document.querySelectorAll('.chart svg')].map((s) => Math.abs(s.viewBox.baseVal.width - s.clientWidth))"
    browser.wait(f"{wide}.every((d) => d <= 1)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_control_has_a_label_and_takes_the_focus(browser, page):
    browser.open(page.name)
    unnamed = browser.run("""
        const named = (e) => e.labels?.length || e.getAttribute("aria-label") || e.textContent.trim();
        const controls = [...document.querySelectorAll("input, button, select, [tabindex]")];
        return controls.filter((e) => !named(e)).map((e) => e.outerHTML)""")
    assert unnamed == []
    unlabelled = "return [...document.querySelectorAll('.chart svg')].filter((s) => !s.getAttribute('aria-label')).length"
    assert browser.run(unlabelled) == 0
    assert browser.run("return [...document.querySelectorAll('[tabindex]')].every((e) => e.tabIndex <= 0)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_an_embedded_page_has_no_frame_and_says_how_high_it_is(browser, page):
    browser.open("index")
    browser.run(
        "window.heights = []; window.addEventListener('message', (e) => window.heights.push(e.data.trueonlineHeight));"
        "const frame = document.createElement('iframe'); frame.style.width = '700px'; frame.src = arguments[0];"
        "document.body.append(frame)",
        f"{page.name}.html?embed",
    )
    browser.wait("return window.heights.length > 0 && window.heights.at(-1) > 800")
    browser.open(page.name, search="?embed", width=700)
    shown = "return [...document.querySelectorAll('header.site, footer.site, h1')].some((e) => e.offsetHeight > 0)"
    assert not browser.run(shown)
    browser.open(page.name, width=700)
    assert browser.run(shown)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_without_javascript_there_is_a_picture(browser, page):
    browser.open(page.name, scripts=False)
    assert f'<img src="stills/{page.still.name}"' in page.path.read_text()
    pictures = [image for image in browser.find("noscript img") if image.is_displayed()]
    assert [image.get_dom_attribute("src") for image in pictures] == [f"stills/{page.still.name}"]
    assert all(image.get_dom_attribute("alt") for image in pictures)
    assert all(image.size["width"] > 300 for image in pictures)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_picture_is_that_of_the_page_as_it_is_and_needs_nothing_else(browser, page):
    """The text alone: widths of letters differ from one machine to the next."""
    assert page.still.stat().st_size < 60_000
    assert "var(--" not in page.still.read_text()
    picture = ElementTree.parse(page.still).getroot()
    drawn = ElementTree.fromstring(stills.draw(browser, page.name))
    texts = [["".join(e.itertext()) for e in root.iter("{http://www.w3.org/2000/svg}text")] for root in (picture, drawn)]
    assert texts[0] == texts[1]


def test_every_file_is_reachable_from_the_index_and_every_link_leads_somewhere():
    seen, waiting = set(), [INDEX]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        assert path.is_file(), path
        seen.add(path)
        if path.suffix == ".html":
            waiting += [path.parent / link for link in LINK.findall(path.read_text())]
    assert seen == set(FILES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_to_notice_stands_directly_above_its_figure(page):
    text = page.path.read_text()
    above = re.findall(r'What to notice</h3>(?:(?!</div>).)*</div>\s*<div class="play"', text, re.S)
    assert len(above) == text.count("What to notice") > 0


def test_all_files_together_are_small():
    assert sum(path.stat().st_size for path in FILES) < 400_000


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_asks_nothing_of_the_network(path):
    text = path.read_text().replace("http://www.w3.org/2000/svg", "")
    assert "http:" not in text
    assert "https:" not in text
    assert not re.search(r"\b(import|fetch|XMLHttpRequest|WebSocket|eval)\s*\(", text)
    if path.name.endswith(("maths.js", "methods.js")):
        assert not re.search(r"\b(document|window)\b\s*[.\[]", text), "maths knows nothing of a page"


def test_the_index_has_a_card_for_each_page_in_order():
    text = INDEX.read_text()
    cards = re.findall(
        r'<a href="(\w+)\.html"><img src="stills/(\w+)\.svg".*?<h2>\d\. (.*?)</h2><p>(.*?)</p>', text, re.S
    )
    assert cards == [(page.name, page.name, page.title, page.sentence) for page in PAGES]
    for page in PAGES:
        assert f"<h1>{page.title}</h1>" in page.path.read_text()
        assert page.path.read_text().count("<!-- documentation -->") == 1  # the site puts a link here
        assert f"{{explorable}} {page.name}\n" in (DOCS / "explanation" / f"{page.name}.md").read_text()


def test_methods_look_as_in_the_catalogue(browser):
    browser.open("traces")
    known = browser.run("return trueonline.methods.METHODS")
    shapes = {"square": "s", "triangle": "^", "circle": "o"}
    for name, method in known.items():
        row = METHODS[name]
        colour = browser.run(
            "return getComputedStyle(document.documentElement).getPropertyValue(arguments[0])", method["colour"][4:-1]
        )
        assert colour.strip().upper() == row.look.colour
        assert method["dashes"] == " ".join(map(str, row.look.dashes))
        assert (method["title"], method["trace"], shapes[method["marker"]]) == (row.title, row.trace, row.look.marker)


@pytest.mark.apart
@pytest.mark.parametrize("code", CODE.values(), ids=CODE)
def test_python_on_a_page_runs_and_prints_what_it_says(code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    said = [first or second for first, second in PRINTS.findall(code)]
    assert capsys.readouterr().out.splitlines() == said
