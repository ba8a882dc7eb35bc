"""Live sources with the real things: a mosquitto broker and an LSL outlet, killed and started again in mid-stream."""

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from trueonline.nexting.sources import Cleaner, Lsl, Mqtt, open_source

PATIENCE = 30.0  # seconds after which something that should have happened is taken never to happen

MOSQUITTO = shutil.which("mosquitto", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"]))

with_broker = pytest.mark.skipif(
    MOSQUITTO is None or importlib.util.find_spec("paho") is None, reason="needs mosquitto and paho-mqtt"
)
with_lsl = pytest.mark.skipif(importlib.util.find_spec("pylsl") is None, reason="needs pylsl")


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(0.02)


# --- MQTT -----------------------------------------------------------------------------------------


class Broker:
    """A mosquitto of our own on a free port of this machine."""

    def __init__(self, folder, *settings):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.config = folder / "mosquitto.conf"
        lines = [f"listener {self.port} 127.0.0.1", *(settings or ["allow_anonymous true"])]
        lines += ["user root", "max_queued_messages 100000"]  # of 1000, mosquitto would drop some itself in a hurry
        self.config.write_text("\n".join(lines) + "\n")
        self.start()

    def start(self):
        self.process = subprocess.Popen([MOSQUITTO, "-c", str(self.config)], stderr=subprocess.DEVNULL)
        until(self.answers, "the start of the broker")

    def answers(self):
        with socket.socket() as trial:
            return trial.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self):
        self.process.kill()
        self.process.wait()

    def url(self, topic="arm", user=""):
        return f"mqtt://{user}127.0.0.1:{self.port}/{topic}"


@pytest.fixture
def broker(tmp_path):
    it = Broker(tmp_path)
    yield it
    it.kill()


@pytest.fixture
def publish(broker):
    """Publish at least once, as JSON unless it is bytes, and wait until the broker has it. Connects when needed."""
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    client = Client(CallbackAPIVersion.VERSION2)
    client.max_inflight_messages_set(1000)
    client.connect("127.0.0.1", broker.port)
    client.loop_start()

    def send(*messages, topic="arm", retain=False):
        until(client.is_connected, "the publisher's connection")
        payloads = [message if isinstance(message, bytes) else json.dumps(message) for message in messages]
        for sent in [client.publish(topic, payload, qos=1, retain=retain) for payload in payloads]:
            sent.wait_for_publish(PATIENCE)
            assert sent.is_published()

    send.client = client
    yield send
    client.disconnect()
    client.loop_stop()


def received(source, samples):
    times, values, end = [], [], time.monotonic() + PATIENCE
    while len(times) < samples:
        assert time.monotonic() < end, f"{len(times)} of {samples} samples came; {source.counters()}"
        block = source.read(0.2)
        assert block is not None
        times += block.times.tolist()
        values += block.values.tolist()
    return times, values


def sample(t, **more):
    return {"time": t, "b": 10.0 * t, "a": t, **more}


@with_broker
def test_samples_come_in_order_alone_and_in_arrays(broker, publish):
    with open_source(broker.url("arm/#"), ["a", "b"]) as source:
        assert not source.replayable
        for t in range(0, 100, 4):
            publish(sample(t), topic="arm/left")
            publish([sample(t + 1), sample(t + 2, c="text", a=None)], topic="arm")
            publish({"time": f"1970-01-01T00:00:{t + 3:02}Z" if t < 57 else t + 3, "a": str(t + 3)}, topic="arm/left/x")
        times, values = received(source, 100)
        assert times == list(range(100))
        expected = np.array([[np.nan if t % 4 == 2 else t, np.nan if t % 4 == 3 else 10 * t] for t in range(100)])
        np.testing.assert_array_equal(values, expected)
        assert source.position() == {"kind": "mqtt", "samples": 100}
        publish(sample(1), topic="leg")
        assert len(source.read(0.1)) == 0
        with pytest.raises(ValueError, match="Mqtt cannot be replayed"):
            source.seek(source.position())
    assert source.read() is None


@with_broker
def test_malformed_huge_and_retained_messages_are_counted(broker, publish):
    publish(sample(-1), retain=True)
    bad = [b"", b"oops", b"{", b"\xff\xfe", b"[" * 100_000, b"7", b'"text"', b"null", b'{"time": 1}', b'{"a": 1}']
    bad += [b'{"time": null, "a": 1}', b'{"time": 1e999, "a": 1}', b'{"time": 1, "a": true}', b'{"time": 1, "a": {}}']
    bad += [b'{"time": "soon", "a": 1}', b'{"time": 1, "a": "one"}', b'{"time": 1, "a": ' + b"9" * 5000 + b"}"]
    mixed = [sample(1), 5, {"time": 2}, sample(2), None]  # two that are good and three that are not
    with open_source(broker.url(), ["a", "b"]) as source:
        publish(*bad)
        publish(b"[]", mixed, b" " * (2**20 + 1), json.dumps([sample(3), "x" * 5_000_000]).encode())
        publish(b'{"time": 4, "a": NaN, "b": Infinity}', sample(5))
        times, values = received(source, 4)
        assert times == [1.0, 2.0, 4.0, 5.0]
        np.testing.assert_array_equal(values, [[1.0, 10.0], [2.0, 20.0], [np.nan, np.inf], [5.0, 50.0]])
        counters = source.counters()
        assert counters.pop("malformed") == len(bad) + 3
        expected = {"huge": 2, "retained": 1, "connections": 1, "received": 4, "dropped_overflow": 0}
        assert counters == expected


@with_broker
def test_the_broker_may_be_killed_and_come_back(broker, publish):
    with open_source(broker.url(), ["b", "a"]) as source:
        publish(*(sample(t) for t in range(50)))
        assert received(source, 50)[0] == list(range(50))
        for restart in (1, 2):
            broker.kill()
            assert len(source.read(0.2)) == 0
            broker.start()
            until(lambda: source.counters()["connections"] == restart + 1, "the source's connection")  # noqa: B023
            first = 100 * restart
            publish(*(sample(t) for t in range(first, first + 50)))
            times, values = received(source, 50)
            assert times == list(range(first, first + 50))
            assert values == [[10.0 * t, t] for t in times]
        assert source.counters()["received"] == 150


@with_broker
def test_a_slow_reader_loses_the_oldest_samples_and_every_one_is_accounted_for(broker, publish):
    sent, queue = 3000, 500
    with open_source(broker.url(), ["a"], queue=queue) as source:
        publish(*(sample(t) for t in range(sent)))
        until(lambda: source.counters()["received"] == sent, "the arrival of all samples")
        assert received(source, queue)[0] == list(range(sent - queue, sent))
        assert source.counters()["dropped_overflow"] == sent - queue
    with open_source(broker.url(), ["a"], rate=100.0, queue=queue) as source:
        publish(*({"a": t} for t in range(600)))
        until(lambda: source.counters()["received"] == 600, "the arrival of all samples")
        times, values = received(source, queue)
        assert times == [t / 100 for t in range(100, 600)]  # time went on while samples were lost
        assert values == [[t] for t in range(100, 600)]


@with_broker
def test_a_feed_at_1_khz_is_cleaned_without_a_loss(broker, publish):
    n = 3000
    with open_source(broker.url(), ["a", "b"]) as source:
        cleaner, kept = Cleaner(source.signals, max_gap=0.5), 0
        client, start, end = publish.client, time.monotonic(), time.monotonic() + PATIENCE + n / 1000
        for t in range(n):
            client.publish("arm", json.dumps(sample(t / 1000)), qos=1)
            if t % 10 == 0:
                time.sleep(max(0.0, start + t / 1000 - time.monotonic()))
                kept += len(cleaner(source.read(0.0)))
        while kept < n and time.monotonic() < end:
            kept += len(cleaner(source.read(0.2)))
        counters = cleaner.counters()
        assert (kept, counters["samples"], counters["gaps"]) == (n, n, 0)
        assert source.counters()["dropped_overflow"] == 0


@with_broker
def test_users_and_addresses_that_are_not_let_in(tmp_path):
    passwords = tmp_path / "passwords"
    passwords.write_text("ann:s3cret/@\n")
    subprocess.run([shutil.which("mosquitto_passwd") or "mosquitto_passwd", "-U", str(passwords)], check=True)
    broker = Broker(tmp_path, "allow_anonymous false", f"password_file {passwords}")
    try:
        with Mqtt(broker.url(user="ann:s3cret%2F%40@"), ["a"]) as source:
            assert source.counters()["connections"] == 1
        for user in ("", "ann:wrong@"):
            with pytest.raises(ValueError, match=r"cannot listen to mqtt://.*: the broker says .*uthori") as caught:
                Mqtt(broker.url(user=user), ["a"])
            assert "wrong" not in str(caught.value)
    finally:
        broker.kill()
    with pytest.raises(ValueError, match=r"it did not answer within 0\.2 s; check the address"):
        Mqtt(broker.url(), ["a"], patience=0.2)
    for url in (
        "mqtt://host",
        "mqtt://host/",
        "mqtt:///topic",
        "mqtt://host:99999/x",
        "mqtt://host:x/y",
        "mqtt://a:b:c/y",
    ):
        with pytest.raises(ValueError, match="the address must be mqtt://"):
            Mqtt(url, ["a"])


# --- Lab Streaming Layer --------------------------------------------------------------------------

OUTLET = """
import sys, time
import pylsl
name, labels, first, form, source = sys.argv[1], sys.argv[2].split(","), int(sys.argv[3]), sys.argv[4], sys.argv[5]
info = pylsl.StreamInfo(name, "test", len(labels), 200.0, form, source)
channels = info.desc().append_child("channels")
for label in labels if labels[0] else []:
    channels.append_child("channel").append_child_value("label", label)
outlet = pylsl.StreamOutlet(info)
print("ready", flush=True)
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

    def start(labels, first=0, form="double64", name="arm", source=""):
        command = [sys.executable, "-c", OUTLET, name, labels, str(first), form, source]
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
def test_streams_that_do_not_fit_are_refused(outlet):
    running = outlet("a,b")
    with pytest.raises(ValueError, match=r"LSL stream 'arm' has no column force; it has a, b"):
        Lsl("arm", ["a", "force"])
    with pytest.raises(ValueError, match="no LSL stream is named 'leg'; check the name"):
        Lsl("leg", ["a"], patience=0.1)
    outlet("a", form="string", name="words")
    with pytest.raises(ValueError, match="'words' must hold numbers, got text"):
        Lsl("words", ["a"])
    outlet(",,", name="plain")
    with Lsl("plain", ["2", "0"]) as source:
        _, values = received(source, 5)
        assert all(row[0] == row[1] for row in values)
    with Lsl("arm", ["a"]) as source:
        received(source, 5)
        running.kill()
        running.wait()
        outlet("c,d")
        with pytest.raises(ValueError, match="'arm' has no column a; it has c, d"):
            received(source, 10**9)
