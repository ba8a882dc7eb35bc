"""What the tests of the live page share: a small hub, readings for it, and clients of the server."""

import http.client
import json
import re
import struct
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest

from tests.processes import start
from tests.processes import wait_for as until
from trueonline.problems import arm
from trueonline.streams.live import Hub, PageQuestion, messages
from trueonline.streams.predictor import Answers

for package in ("starlette", "uvicorn", "websockets"):
    pytest.importorskip(package, reason="the live page needs trueonline[live]")

TOKEN = "a-token-of-24-characters"
RATE = 40.0
SIGNALS = ("position", "force", "grip")  # grip is a discount: 0 where nothing is held
QUESTIONS = (
    PageQuestion("position, 0.5 s", "position", 0.95, 0.5, "mean"),
    PageQuestion("position, 2 s", "position", None, 2.0, "mean"),
    PageQuestion("force, 0.5 s", "force", 0.95, 0.5, "return"),
    PageQuestion("grip", "force", "grip", None, "return"),
)


def small_hub(kept=4800):
    return Hub(QUESTIONS, SIGNALS, "An arm", kept)


def readings(length, seed=3):
    """Signals and made-up predictions: what they are does not matter here."""
    sampled = arm.simulate(length, seed)
    signals = np.column_stack([sampled[:, 0], sampled[:, 2], 0.9 * (sampled[:, 2] > 0.2)])
    predictions = signals[:, [0, 0, 1, 1]] * [1.0, 1.0, 20.0, 5.0]
    return signals, predictions


def publish(hub, length, first=0, seed=3, times=None, starts=None):
    signals, predictions = readings(first + length, seed)
    times = np.arange(first, first + length) / RATE if times is None else times
    starts = np.zeros(length, bool) if starts is None else starts
    hub.publish(Answers(times, starts, signals[first:], predictions[first:]))
    return signals[first:], predictions[first:]


def unpack(data):
    """Samples from their bytes, as messages.py describes them."""
    kind, anew, c, n, subscription, missed, first = struct.unpack_from("<BBHIIId", data)
    assert kind == 1
    at, parts = 24, []
    for dtype, count in (("<f8", n), ("<f8", n), ("<f4", n * c), ("u1", n)):
        parts.append(np.frombuffer(data, dtype, count, at))
        at += parts[-1].nbytes
    assert at == len(data)
    return {
        "anew": bool(anew), "subscription": subscription, "missed": missed, "first": int(first), "times": parts[0],
        "received": parts[1], "columns": parts[2].reshape(c, n), "starts": parts[3],
    }  # fmt: skip


MALFORMED = [
    "", "no json", "[]", "{}", "1", "null", '{"subscribe": 1}', '{"subscribe": [1.0]}', '{"subscribe": [true]}',
    '{"subscribe": [4]}', '{"subscribe": [-1]}', '{"subscribe": [0, 0]}', '{"subscribe": ["0"]}', '{"clock": "1"}',
    '{"clock": NaN}', '{"clock": 1, "subscribe": []}', '{"other": 1}', '{"subscribe": [0,1,2,3,0,1,2,3,0,1,2,3,0]}',
    "[" * 3000, '{"clock": 1' + "0" * 4000 + "}", b'{"subscribe": [0]}', None,
]  # fmt: skip


def get(served, path="/", address="127.0.0.1", **headers):
    """Status, headers and body of a plain request."""
    connection = http.client.HTTPConnection(address, served.port, timeout=300)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def connect(served, path="/feed", **options):
    from websockets.sync.client import connect as open_socket

    return open_socket(f"ws://127.0.0.1:{served.port}{path}", max_size=None, compression=None, proxy=None, **options)


def refused(served, path="/feed", **options):
    """Whether a WebSocket is not even accepted."""
    from websockets.exceptions import InvalidStatus

    with pytest.raises(InvalidStatus) as caught, connect(served, path, **options):
        pass
    return caught.value.response.status_code == 403


def heard(client, wanted):
    """The next message that is wanted: the name of a text, or bytes."""
    while True:
        message = client.recv(timeout=300)
        if isinstance(message, bytes) and wanted is bytes and message[0] == messages.SAMPLES:
            return unpack(message)
        if isinstance(message, str) and json.loads(message)["type"] == wanted:
            return json.loads(message)


@contextmanager
def command(*arguments, **options):
    """`trueonline live`, and the address of its page."""
    arguments = [sys.executable, "-m", "trueonline", "live", *map(str, arguments), "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = start(arguments, **pipes, **options)
    try:
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + process.stderr.read()
        process.url = found[0]
        yield process
    finally:
        process.kill()
        process.communicate()


class Browser:
    """Short ways to what the tests look at."""

    def __init__(self, chrome):
        self.chrome = chrome

    def open(self, served):
        self.chrome.get(served.url)
        self.chrome.execute_script("localStorage.clear()")
        until(lambda: self.js("return window.trueonline?.connected"))

    def js(self, script, *arguments):
        return self.chrome.execute_script(script, *arguments)

    def of(self, expression):
        return self.js(f"return trueonline.{expression}")

    def series(self, name):
        return self.js("return trueonline.series(arguments[0])", name)

    def one(self, selector):
        return self.chrome.find_element("css selector", selector)

    def all(self, selector):
        return self.chrome.find_elements("css selector", selector)

    def key(self, key):
        from selenium.webdriver import ActionChains

        ActionChains(self.chrome).send_keys(key).perform()

    def box(self, name):
        """The checkbox of a question."""
        rows = [row for row in self.all("#list tr") if row.find_element("css selector", "label").text == name]
        return rows[0].find_element("css selector", "input")
