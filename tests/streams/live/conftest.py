"""A headless Chromium, and a hub that is fed, for the tests of the live page."""

import threading
import time

import numpy as np
import pytest

from tests.browsers import headless_chromium
from tests.streams.live.helpers import RATE, Browser, readings, small_hub
from trueonline.streams.predictor import Answers


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    """A headless Chromium."""
    with headless_chromium(tmp_path_factory.mktemp("chromium")) as chrome:
        yield chrome


@pytest.fixture
def browser(chromium):
    """The same, with a new page, and no complaints in the end."""
    chromium.get("about:blank")
    chromium.get_log("browser")
    yield Browser(chromium)
    chromium.get("about:blank")
    assert chromium.get_log("browser") == []


@pytest.fixture
def feed():
    """A hub to which samples of the arm come, 40 a second, until the test is over."""
    hub = small_hub()
    stop = threading.Event()
    signals, predictions = readings(20_000)

    def work():
        begin, k = time.monotonic(), 0
        while not stop.wait(max(begin + k / RATE - time.monotonic(), 0.0)):
            row = slice(k % 20_000, k % 20_000 + 1)
            hub.publish(Answers(np.array([1.7e9 + k / RATE]), np.array([k == 0]), signals[row], predictions[row]))
            if k % 20 == 0:
                asked = {"error": [2.0] * 4, "hold": [4.0] * 4, "mean": [8.0] * 4, "scored": [k] * 4}
                words = {"samples": k, "rate": 40.0, "dropped": {"late": 1, "not a number": 2}, "uptime": k / RATE}
                hub.report({**words, "state": "learning", "clipped": 0, "note": "", "questions": asked})
            k += 1

    thread = threading.Thread(target=work)
    thread.start()
    yield hub
    stop.set()
    thread.join()
