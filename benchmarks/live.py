"""From the source to the page: how old a sample is when a browser has drawn its prediction."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.report import Seconds, Section, Settings, Table, Target

RATE = 40
LIMIT = 0.05  # seconds
SIGNALS = "position,velocity,force,flexor,extensor"

# Called in the page: note, at each frame that shows something newer, how long ago that was sent.
WATCH = """
const [name, seconds, done] = arguments, found = [], end = Date.now() + 1000 * seconds;
let newest = 0;
const look = () => {
  const times = window.trueonline.series(name).times, time = times[times.length - 1];
  if (time > newest) { newest = time; found.push(Date.now() / 1000 - time); }
  if (Date.now() < end) requestAnimationFrame(look); else done(found);
};
look();
"""


def measure(settings: Settings) -> Section:
    section = Section(
        "Live: from the source to the page",
        f"The simulated arm at {RATE} Hz, each sample stamped when it is sent, through `trueonline live` (two questions over five "
        "signals) into headless Chromium on the same machine. The age of a sample is taken in the page when a frame has been "
        "drawn that shows its prediction: learning, the wire and drawing (without a GPU) are in it.",
    )
    if shutil.which("chromedriver") is None:
        section.notes.append("Chromium and its driver are not installed: nothing was measured.")
        return section
    seconds = 5 if settings.quick else 30
    rows = []
    for name, feed in (("pipe", through_a_pipe), ("MQTT", through_mqtt)):
        if name == "MQTT" and mosquitto() is None:
            section.notes.append("mosquitto is not installed: MQTT was not measured.")
            continue
        ages = ages_of(feed, seconds)
        rows.append((name, len(ages), Seconds(median(ages)), Seconds(quantiles(ages, n=20)[-1]), Seconds(max(ages))))
        section.targets.append(
            Target(f"median age on the page, {name}", "< 50 ms", Seconds(median(ages)), median(ages) < LIMIT)
        )
    section.tables.append(Table(("source", "frames", "median", "95 %", "largest"), rows))
    return section


def ages_of(feed: Callable[[], Any], seconds: int) -> list[float]:
    with feed() as url, browser() as page:
        page.get(url)
        page.set_script_timeout(seconds + 60)
        while not page.execute_script("return window.trueonline?.points('force@0.8s') > 10"):
            time.sleep(0.1)
        return page.execute_async_script(WATCH, "force@0.8s", seconds)


def samples() -> Iterator[str]:
    """The arm's readings, as they fall due."""
    from trueonline.problems import arm

    begun = time.monotonic()
    for number, sample in zip(count(), arm.samples(0), strict=False):
        time.sleep(max(0.0, begun + number / RATE - time.monotonic()))
        yield json.dumps({"time": time.time(), **sample._asdict()})


@contextmanager
def sending(send: Callable[[str], Any]) -> Iterator[None]:
    """Send samples in a thread."""
    stop = threading.Event()

    def go() -> None:
        for text in samples():
            if stop.is_set():
                return
            send(text)

    thread = threading.Thread(target=go)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def live(source: str) -> Iterator[tuple[str, Any]]:
    """`trueonline live`, and the address of its page."""
    command = [sys.executable, "-m", "trueonline", "live", source, "--time", "time", "--rate", str(RATE), "--port", "0"]
    command += ["--target", "position,force", "--signals", SIGNALS, "--horizon", "0.8s"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stderr is not None
        found = re.search(r"http://\S+", process.stderr.readline())
        assert found, process.communicate()
        yield found[0], process.stdin
    finally:
        process.kill()
        process.communicate()


@contextmanager
def through_a_pipe() -> Iterator[str]:
    with live("-") as (url, pipe):

        def send(text: str) -> None:
            pipe.write(text + "\n")
            pipe.flush()

        with sending(send):
            yield url


def mosquitto() -> str | None:
    return shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")


@contextmanager
def through_mqtt() -> Iterator[str]:
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "conf").write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
        broker = subprocess.Popen([str(mosquitto()), "-c", str(folder / "conf")], stderr=subprocess.DEVNULL)
        stack.callback(broker.wait)
        stack.callback(broker.kill)
        client = Client(CallbackAPIVersion.VERSION2)
        while True:
            try:
                client.connect("127.0.0.1", port)
                break
            except OSError:
                time.sleep(0.05)
        client.loop_start()
        stack.callback(client.loop_stop)
        url, _ = stack.enter_context(live(f"mqtt://127.0.0.1:{port}/arm"))
        stack.enter_context(sending(lambda text: client.publish("arm", text)))
        yield url


@contextmanager
def browser() -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    for flag in ("headless", "no-sandbox", "disable-gpu", "no-first-run", "disable-background-networking"):
        options.add_argument(f"--{flag}")
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()
