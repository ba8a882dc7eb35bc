"""A headless Chromium for tests of pages."""

import shutil
from contextlib import contextmanager

import pytest

ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--window-size=1280,900",
)  # fmt: skip


@contextmanager
def headless_chromium(profile, *logs):
    """A browser with a log of its complaints, and with other logs of Chromium. The test is skipped where there is none."""
    found, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (found and driver):
        pytest.skip("no chromium and chromedriver here: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver", reason="the browser tests need selenium")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = found
    for argument in (*ARGUMENTS, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", dict.fromkeys(("browser", *logs), "ALL"))
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield chrome
    finally:
        chrome.quit()
