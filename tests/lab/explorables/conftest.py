"""The explorable pages in a headless Chromium, opened from their files."""

import pytest

from tests.browsers import headless_chromium
from trueonline.lab.explorables import FOLDER

DESKTOP, PHONE = 1280, 360


class Browser:
    """A browser that opens explorable pages, and remembers what they complained of."""

    def __init__(self, chrome):
        self.chrome = chrome

    def open(self, name, *, width=DESKTOP, height=900, search="", fragment="", dark=False, scripts=True, motion=False):
        """Open a page at a width in pixels, as a fresh document. Without `motion` no figure plays by itself."""
        cdp = self.chrome.execute_cdp_cmd
        self.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        wanted = {"name": "prefers-reduced-motion", "value": "no-preference" if motion else "reduce"}
        cdp("Emulation.setEmulatedMedia", {"features": [scheme, wanted]})
        cdp("Emulation.setScriptExecutionDisabled", {"value": not scripts})
        self.chrome.get("about:blank")  # otherwise another fragment would not load the page again
        self.chrome.get(f"{(FOLDER / f'{name}.html').as_uri()}{search}{fragment}")

    def resize(self, width, height=900):
        """Give the window a size in pixels, also one that is narrower than Chromium's windows can be."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def wait(self, script):
        """Wait until JavaScript returns something true."""
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(self.chrome, 60).until(lambda chrome: chrome.execute_script(script))

    def run(self, script, *values):
        """Run JavaScript in the page; `return` gives a value back."""
        return self.chrome.execute_script(script, *values)

    def find(self, selector):
        """All elements that a CSS selector finds."""
        return self.chrome.find_elements("css selector", selector)

    def press(self, *keys):
        """Press keys, given as letters or by selenium's names such as "ARROW_RIGHT", whatever has the focus."""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        ActionChains(self.chrome).send_keys(*(getattr(Keys, key, key) for key in keys)).perform()

    def text(self, selector):
        """The text of the first element that a CSS selector finds, shown or not."""
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def overflow(self):
        """How many pixels the page is wider than its window."""
        return self.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def complaints(self):
        """What the page has written to the console since the last call."""
        return self.chrome.get_log("browser")


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """A headless Chromium."""
    with headless_chromium(tmp_path_factory.mktemp("chromium")) as chrome:
        yield chrome


@pytest.fixture
def browser(chromium):
    """A browser that has complained of nothing, neither before the test nor after it."""
    chromium.get("about:blank")
    chromium.get_log("browser")
    one = Browser(chromium)
    yield one
    assert one.complaints() == []
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
