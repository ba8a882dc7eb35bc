"""A real LSL outlet, killed and started again in mid-stream."""

import importlib.util
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.streams.mosquitto import PATIENCE, received
from trueonline.streams.sources import Lsl, open_source
from trueonline.streams.sources.lsl import _places

with_lsl = pytest.mark.skipif(importlib.util.find_spec("pylsl") is None, reason="needs pylsl")


# --- Lab Streaming Layer --------------------------------------------------------------------------

OUTLET = """
import sys, time
import pylsl
name, labels, first, form, source = sys.argv[1], sys.argv[2].split(","), int(sys.argv[3]), sys.argv[4], sys.argv[5]
total = int(sys.argv[6])
info = pylsl.StreamInfo(name, "test", len(labels), 1000.0 if total else 200.0, form, source)
channels = info.desc().append_child("channels")
for label in labels if labels[0] else []:
    channels.append_child("channel").append_child_value("label", label)
outlet = pylsl.StreamOutlet(info)
print("ready", flush=True)
if total:  # so many at 1 kHz, as soon as somebody listens
    while not outlet.have_consumers():
        time.sleep(0.01)
    start = pylsl.local_clock()
    for i in range(total):
        time.sleep(max(0.0, start + i / 1000 - pylsl.local_clock()))
        outlet.push_sample([i] * len(labels), start + i / 1000)
    print(pylsl.local_clock() - start, flush=True)
    time.sleep(1000)
i = first
while True:
    if form == "string":
        outlet.push_sample(["x"] * len(labels))
    else:
        outlet.push_sample([i + 1000000 * (label == "b") for label in labels])
    i += 1
    time.sleep(0.005)
"""


@pytest.fixture
def outlet(tmp_path, monkeypatch):
    """Start an outlet in a process of its own, on this machine only, unseen by other sessions. Kill it with `.kill()`."""
    config = tmp_path / "lsl.cfg"
    config.write_text(
        f"[multicast]\nResolveScope = machine\n[lab]\nSessionID = trueonline{os.getpid()}\n[log]\nlevel = -3\n"
    )
    monkeypatch.setenv("LSLAPICFG", str(config))  # liblsl reads it once: all tests here have the same session
    running = []

    def start(labels, first=0, form="double64", name="arm", source="", total=0):
        command = [sys.executable, "-c", OUTLET, name, labels, str(first), form, source, str(total)]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
        assert running[-1].stdout.readline() == b"ready\n"
        return running[-1]

    yield start
    for process in running:
        process.kill()
        with process:
            pass


@with_lsl
@pytest.mark.parametrize("source_id", ["", "serial-7"])
def test_an_outlet_may_be_killed_and_come_back_with_other_channels(outlet, source_id):
    first = outlet("a,b", source=source_id)
    with open_source("lsl://arm", ["b", "a"]) as source:
        assert not source.replayable
        times, values = received(source, 100)
        values = np.array(values)
        assert (np.diff(values[:, 1]) == 1.0).all()
        np.testing.assert_array_equal(values[:, 0], values[:, 1] + 1_000_000)
        assert (np.diff(times) > 0.0).all()
        assert abs(times[-1] - time.time()) < 60.0  # seconds since the epoch
        first.kill()
        first.wait()
        outlet("x,b,a", first=50_000, form="float32", source=source_id)
        later, end = [], time.monotonic() + PATIENCE
        while len(later) < 100:
            assert time.monotonic() < end, source.counters()
            block = source.read(0.2)
            times += block.times.tolist()
            later += [row for row in block.values.tolist() if row[1] >= 50_000]
        later = np.array(later)
        assert (np.diff(later[:, 1]) == 1.0).all()
        np.testing.assert_array_equal(later[:, 0], later[:, 1] + 1_000_000)
        assert (np.diff(times) > 0.0).all()
        counters = source.counters()
        assert (counters["connections"], counters["dropped_overflow"]) == (2, 0)
        assert source.position()["samples"] == len(times) <= counters["received"]
    assert source.read() is None


@with_lsl
def test_what_an_outlet_sent_before_the_stop_can_still_be_read(outlet):
    outlet("a", name="stopped", total=100_000)
    with open_source("lsl://stopped", ["a"]) as source:
        values = [row[0] for row in received(source, 10)[1]]
        time.sleep(0.2)
        assert source.finish(60.0)
        values += [value for block in source for value in block.values[:, 0].tolist()]
        assert values == list(range(len(values)))
        counters = source.counters()
        assert (counters["received"], counters["dropped_at_stop"]) == (len(values), 0)
        assert source.read() is None


def test_a_label_wins_over_a_number():
    assert _places("it", ["1", "", "a", "a"], ["1", "0", "2", "3"]) == [0, 0, 2, 3]
    assert _places("it", ["2", "1", "0"], ["0", "1", "2"]) == [2, 1, 0]
    assert _places("it", ["a", "1", "b"], ["2", "b", "1", "0"]) == [2, 2, 1, 0]
    assert _places("it", ["", "", ""], ["2", "0"]) == [2, 0]
    with pytest.raises(ValueError, match=r"it has no column 3; it has a, 1, b \(.*; their numbers, 0 to 2, will do too"):
        _places("it", ["a", "1", "b"], ["3"])
    with pytest.raises(ValueError, match="it has the column a more than once"):
        _places("it", ["a", "a"], ["a"])
    with pytest.raises(ValueError, match=r"it has no column 01; it has none"):
        _places("it", ["", ""], ["01"])


LOOK = """
from trueonline.streams.sources import Lsl
try:
    Lsl("nobody", ["a"], patience=0.01)
except ValueError as error:
    print(error)
"""


@with_lsl
def test_liblsl_says_nothing_at_its_start_unless_it_was_told_to(tmp_path):
    if os.path.exists("/etc/lsl_api/lsl_api.cfg"):
        pytest.skip("this machine has settings of its own")
    settings = tmp_path / "settings.cfg"
    settings.write_text("[log]\nlevel = 0\n[multicast]\nResolveScope = machine\n")
    surroundings = {name: value for name, value in os.environ.items() if name != "LSLAPICFG"}
    surroundings |= {"HOME": str(tmp_path)}
    for more, quiet in (({}, True), ({"LSLAPICFG": str(settings)}, False)):
        command = [sys.executable, "-c", LOOK]
        done = subprocess.run(command, cwd=tmp_path, env=surroundings | more, capture_output=True, text=True, check=True)
        assert "no LSL stream is named 'nobody'" in done.stdout
        assert (done.stderr == "") == quiet, done.stderr


@with_lsl
def test_streams_that_do_not_fit_are_refused(outlet):
    running = outlet("a,b")
    with pytest.raises(ValueError, match=r"LSL stream 'arm' has no column force; it has a, b"):
        Lsl("arm", ["a", "force"])
    with pytest.raises(ValueError, match="no LSL stream is named 'leg'; check the name"):
        Lsl("leg", ["a"], patience=0.1)
    outlet("a", form="string", name="words")
    with pytest.raises(ValueError, match="'words' must hold numbers, got text"):
        Lsl("words", ["a"])
    with Lsl("arm", ["a"]) as source:
        received(source, 5)
        running.kill()
        running.wait()
        outlet("c,d")
        with pytest.raises(ValueError, match="'arm' has no column a; it has c, d"):
            received(source, 10**9)
