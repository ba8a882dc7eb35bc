"""The still pictures of the pages, drawn by the pages' own code: `python -m tests.lab.explorables.stills [NAME]...`

Chromium draws a picture of 800 × 450 pixels in light colours (`stills.js`).
"""

import sys
import tempfile
from pathlib import Path

from tests.browsers import headless_chromium
from tests.lab.explorables.conftest import Browser
from trueonline.files import write_whole
from trueonline.lab.explorables import PAGES

SCRIPT = Path(__file__).with_suffix(".js")


def draw(browser, name):
    """The picture of a page, as text."""
    browser.open(name, search="?embed")
    return browser.run(f"{SCRIPT.read_text()}\nreturn still(arguments[0]);", name)


if __name__ == "__main__":
    with headless_chromium(tempfile.mkdtemp()) as chrome:
        for page in PAGES:
            if not sys.argv[1:] or page.name in sys.argv[1:]:
                text = draw(Browser(chrome), page.name)
                write_whole(page.still, lambda file, text=text: file.write(text.encode()))
                print(page.still, len(text.encode()), "bytes")
