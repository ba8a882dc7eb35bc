"""A real mosquitto broker, killed and started again in mid-stream, and the whole command that reads from it."""

import importlib.util
import json
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from tests.nexting.mosquitto import PATIENCE, Broker, free_port, publisher, received, until, with_broker
from tests.processes import start
from trueonline.nexting.sources import Cleaner, Mqtt, open_source

# --- MQTT -----------------------------------------------------------------------------------------


@pytest.fixture
def broker(tmp_path):
    it = Broker(tmp_path)
    yield it
    it.kill()


@pytest.fixture
def publish(broker):
    """Publish at least once, as JSON unless it is bytes, and wait until the broker has it. Connects when needed."""
    with publisher(broker.port) as send:
        yield send


NOTHING = dict.fromkeys(("huge", "retained", "dropped_overflow", "dropped_at_stop", "not_received"), 0)


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
def test_times_have_the_style_of_the_first_message_that_can_be_read(broker, publish):
    with open_source(broker.url(), ["a"]) as source:
        publish(b"oops", {"time": "2024-05-01 12:00:00+02:00", "a": 1})
        block = source.read(PATIENCE)
        assert block.offset == 7200.0
        assert source.style.texts(block.times) == ["2024-05-01 12:00:00+02:00"]


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
        assert counters == {**NOTHING, "huge": 2, "retained": 1, "connections": 1, "received": 4}


@with_broker
def test_times_made_from_the_rate_go_on_where_a_message_cannot_be_read(broker, publish):
    with open_source(broker.url(), ["a"], rate=4.0) as source:
        publish({"a": 0}, b"oops", [{"a": 2}, 5, {"a": 4}], {"b": 5}, [], {"a": 6})
        assert received(source, 4) == ([0.0, 0.5, 1.0, 1.5], [[0.0], [2.0], [4.0], [6.0]])
        assert source.counters()["malformed"] == 3


@with_broker
def test_the_broker_may_be_killed_and_come_back(broker, publish):
    with open_source(broker.url(), ["b", "a"]) as source:
        publish(*(sample(t) for t in range(50)))
        assert received(source, 50)[0] == list(range(50))
        for restart in (1, 2):
            assert source.trouble == ""
            broker.kill()
            assert len(source.read(0.2)) == 0
            if restart == 2:
                until(lambda: source.trouble, "an attempt to connect again")
                assert source.trouble == "the connection is refused: nothing listens there"
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
def test_what_was_sent_before_the_stop_can_still_be_read(broker, publish):
    sent = 3000
    with open_source(broker.url(), ["a"]) as source:
        publish(*(sample(t) for t in range(sent)))  # most of them are still on their way
        assert source.finish(60.0)
        times = [time for block in source for time in block.times.tolist()]
        assert times == list(range(sent))
        assert source.counters()["dropped_at_stop"] == 0
        assert source.read() is None
    with open_source(broker.url(), ["a"]) as source:
        publish(*(sample(t) for t in range(100)))
        until(lambda: source.counters()["received"] == 100, "the arrival of all samples")
        assert source.counters()["dropped_at_stop"] == 0
        source.finish(0.0)
        assert source.read() is None
        assert source.counters()["dropped_at_stop"] == 100


@with_broker
def test_samples_that_never_came_are_counted_by_their_numbers(tmp_path):
    broker = Broker(tmp_path, queued=10)
    arrived, go_on = threading.Event(), threading.Event()
    sent = 2000
    try:
        with publisher(broker.port) as send, Mqtt(broker.url("arm/#"), ["a"]) as source:
            take = source._take

            def stall(message):
                arrived.set()
                assert go_on.wait(PATIENCE)
                take(message)

            source._take = stall
            send(sample(0, seq=70), topic="arm/left")
            assert arrived.wait(PATIENCE)
            send(*(sample(t, seq=70 + t) for t in range(1, sent)), topic="arm/left")  # the broker drops most of them
            go_on.set()
            while source._sequences._next.get("arm/left", 0) < 70 + sent:  # until the broker has room for one of these
                send([sample(sent, seq=70 + sent)], topic="arm/left")
                sent += 1
                time.sleep(0.02)
            send(sample(9, seq=1), sample(9, seq=3), topic="arm/right")  # a sequence of its own
            until(lambda: source._sequences._next.get("arm/right") == 4, "the last one")
            counters = source.counters()
            assert counters["not_received"] > 1
            assert counters["received"] + counters["not_received"] == sent + 3
    finally:
        broker.kill()


PUBLISHER = """
import json, sys, threading, time
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

port, quality, n, faults = map(int, sys.argv[1:])
client = Client(CallbackAPIVersion.VERSION2)
client.max_inflight_messages_set(1000)
client.connect("127.0.0.1", port)
client.loop_start()
while not client.is_connected():
    time.sleep(0.01)
messages = 0


def send(what):
    global messages, last
    messages += 1
    last = client.publish("arm", what if isinstance(what, str) else json.dumps(what), qos=quality)


def fault(i, where):
    return faults and i % 2000 == where


def sample(i):
    return {"time": i / 1000, "number": None if fault(i, 99) else i}


stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
i, start = 0, time.monotonic()
while i < n and not (stop.is_set() and i % 100 == 0):
    time.sleep(max(0.0, start + i / 1000 - time.monotonic()))
    if i % 2000 >= 1800:  # a tenth comes in arrays
        send([sample(i + k) for k in range(20)])
        i += 20
    elif fault(i, 33):  # in the wrong order
        send(sample(i + 1))
        send(sample(i))
        i += 2
    elif fault(i, 71):
        send("{")
        i += 1
    else:
        send(sample(i))
        if fault(i, 17):
            send(sample(i))
        i += 1
seconds = time.monotonic() - start
last.wait_for_publish(30)
client.disconnect()
client.loop_stop()
print(json.dumps({"numbers": i, "messages": messages, "seconds": seconds}))
"""


@pytest.fixture
def sender(broker):
    """Numbers at 1 kHz from a process of its own, perhaps with a fault of each kind every 2 s."""
    running = []

    def start(quality, numbers, faults):
        command = [sys.executable, "-c", PUBLISHER, *(str(int(x)) for x in (broker.port, quality, numbers, faults))]
        running.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        with process:
            pass


@with_broker
@pytest.mark.parametrize("seconds", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_at_1_khz_every_sample_is_kept_once_or_accounted_for(broker, sender, seconds):
    n, faults = 1000 * seconds, 1000 * seconds // 2000
    with open_source(broker.url(), ["number"]) as source:
        cleaner, kept = Cleaner(source.signals, max_gap=0.5, missing="skip"), []
        running, end = sender(1, n, True), time.monotonic() + n / 1000 + PATIENCE
        while cleaner.counters()["samples"] < n and time.monotonic() < end:  # one more of some, one fewer of others
            kept += cleaner(source.read(0.2)).values[:, 0].tolist()
        report = json.loads(running.communicate(timeout=PATIENCE)[0])
        assert len(source.read(0.2)) == 0
        counters, counted = source.counters(), cleaner.counters()
    assert report["numbers"] == n
    assert report["seconds"] >= n / 1000 - 0.1  # it was not in a hurry
    dropped = {"late": 33, "malformed": 71, "missing": 99}
    assert kept == [i for i in range(n) if i % 2000 not in dropped.values()]
    assert counters.pop("malformed") == faults
    assert counters == {**NOTHING, "connections": 1, "received": n}
    expected = {"samples": n, "held": 0, "gaps": 0, "clock_set_back": 0, "dropped_time": 0}
    assert counted == {**expected, **dict.fromkeys(("dropped_duplicate", "dropped_late", "dropped_missing"), faults)}
    assert len(kept) + cleaner.dropped == counted["samples"]


@with_broker
def test_of_a_feed_at_1_khz_whose_broker_is_killed_all_is_there_before_and_after(broker, sender):
    with open_source(broker.url(), ["number"]) as source:
        cleaner, times, starts = Cleaner(source.signals, max_gap=0.5), [], []

        def read_until(condition):
            end = time.monotonic() + PATIENCE
            while not condition():
                assert time.monotonic() < end, f"nothing more after {len(times)}; {source.counters()}"
                clean = cleaner(source.read(0.2))
                times.extend(clean.times.tolist())
                starts.extend(clean.starts.tolist())

        running = sender(0, 10**9, False)
        read_until(lambda: len(times) > 500)
        broker.kill()
        broker.start()
        read_until(lambda: source.counters()["connections"] == 2)
        before = len(times)
        read_until(lambda: len(times) > before + 500)
        running.stdin.close()
        running.stdin = None
        n = json.loads(running.communicate(timeout=PATIENCE)[0])["numbers"]
        read_until(lambda: times[-1] == (n - 1) / 1000)
        assert sum(starts) == 2
        again = starts.index(True, 1)  # the first that came through the new broker
        numbers = [round(1000.0 * t) for t in times]
        assert numbers == [*range(again), *range(numbers[again], n)]
        lost = numbers[again] - again
        assert lost > 500  # what was sent while there was no broker
        assert len(numbers) + lost == n
        assert cleaner.dropped == 0
        received = source.counters()
        assert received["received"] == len(numbers)
        assert received["malformed"] == received["dropped_overflow"] == 0


@pytest.mark.skipif(importlib.util.find_spec("paho") is None, reason="needs paho-mqtt")
def test_addresses_where_nothing_listens_and_malformed_ones():
    begun = time.monotonic()
    with pytest.raises(
        ValueError, match=r"cannot listen to .*: the connection is refused: nothing listens there; check the"
    ):
        Mqtt(f"mqtt://127.0.0.1:{free_port()}/arm", ["a"], patience=1000.0)
    assert time.monotonic() - begun < 500.0  # it did not wait for as long as it might have
    for url in (
        "mqtt://host",
        "mqtt://host/",
        "mqtt:///topic",
        "mqtt://host:99999/x",
        "mqtt://host:x/y",
        "mqtt://a:b:c/y",
        "mqtt://a..b/y",
    ):
        with pytest.raises(ValueError, match="the address must be mqtt://"):
            Mqtt(url, ["a"])


@pytest.mark.skipif(importlib.util.find_spec("paho") is None, reason="needs paho-mqtt")
def test_a_broker_that_is_slow_is_waited_for_and_one_that_says_nothing_is_not_for_ever():
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"mqtt://127.0.0.1:{server.getsockname()[1]}/arm"
        with pytest.raises(ValueError, match=r"it did not answer within 0\.3 s; check the address"):
            Mqtt(url, ["a"], patience=0.3)
        server.accept()[0].close()

        def answer():
            peer = server.accept()[0]
            with peer:
                peer.recv(1000)  # CONNECT
                time.sleep(0.5)
                peer.sendall(bytes([0x20, 2, 0, 0]))  # CONNACK
                asked = peer.recv(1000)  # SUBSCRIBE: its number is in bytes 2 and 3
                peer.sendall(bytes([0x90, 3, asked[2], asked[3], 1]))
                peer.recv(1000)

        broker = threading.Thread(target=answer)
        broker.start()
        with Mqtt(url, ["a"], patience=PATIENCE) as source:
            assert source.counters()["connections"] == 1
        broker.join(PATIENCE)


@pytest.mark.skipif(importlib.util.find_spec("paho") is None, reason="needs paho-mqtt")
def test_a_host_that_is_not_there_is_told_at_once_and_one_that_nobody_can_ask_about_is_waited_for(monkeypatch):
    numbers = iter([socket.EAI_NONAME, *[socket.EAI_AGAIN] * 1000])

    def unknown(*_, **__):
        raise socket.gaierror(next(numbers), "who knows")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(
        ValueError, match=r"cannot listen to mqtt://nowhere/x: there is no such host \(who knows\); check"
    ):
        Mqtt("mqtt://nowhere/x", ["a"], patience=1000.0)
    with pytest.raises(ValueError, match=r"it did not answer within 0\.3 s \(who knows\); check the address"):
        Mqtt("mqtt://nowhere/x", ["a"], patience=0.3)


@with_broker
def test_what_was_wrong_with_the_first_message_is_told(broker, publish):
    for bad, complaint in [
        ([{"time": 1, "grip": 2}], 'no key a, b; it has time, grip: {"time": 1, "grip": 2}'),
        ([[sample(1), {"grip": 2}]], "no key a, b; it has grip: {'grip': 2}"),
        ([b"oops"], "it is not JSON (Expecting value: line 1 column 1 (char 0)): oops"),
        ([{"time": 1, "a": 2}, {"time": 2, "a": 3, "c": 4}], "no key b so far; it has time, a"),
        ([b"x" * (2**20 + 1)], "a message of 1,048,577 bytes is longer than 1 MiB: " + "x" * 99 + "…"),
    ]:
        with open_source(broker.url(), ["a", "b"]) as source:
            assert source.complaint() is None
            publish(*bad, {"time": 9, "a": 9})
            while received(source, 1)[0][-1] != 9:
                pass
            assert source.complaint() == complaint


# --- The whole command ----------------------------------------------------------------------------


@with_broker
def test_predict_goes_on_when_the_broker_and_then_the_command_are_killed(broker, publish, tmp_path):
    out, checkpoint = tmp_path / "out.csv", tmp_path / "out.csv.checkpoint"
    command = [
        sys.executable,
        "-m",
        "trueonline",
        "predict",
        broker.url(),
        "--rate",
        "40",
        "--time",
        "time",
        "--target",
        "a",
    ]
    command += ["--out", str(out), "--every", "0.1", "--json"]

    def rows():
        return len(out.read_text().splitlines()) - 1 if out.exists() else -1

    def started():
        return start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def has(t):
        """Whether the last row is of that sample."""
        return out.read_text().splitlines()[-1].startswith(f"{t / 40},")

    process, t = started(), -10_000
    while rows() < 1:  # until the command listens
        publish({"time": t / 40, "a": 1})
        t += 1
        time.sleep(0.02)
    for t in range(100):
        publish({"time": t / 40, "a": t % 7}, b"{not json")
    until(lambda: has(99), "the last row")
    broker.kill()
    broker.start()
    until(publish.client.is_connected, "the publisher's return")
    t, before = 100, rows()
    while rows() == before:  # until the command listens again
        publish({"time": t / 40, "a": t % 7})
        t += 1
        time.sleep(0.02)
    written = checkpoint.stat().st_mtime_ns
    until(lambda: checkpoint.stat().st_mtime_ns > written, "a checkpoint")
    process.kill()
    process.communicate()
    before = rows()
    process = started()
    assert "Resuming from sample" in process.stderr.readline()
    sent = t + 1000  # after a gap
    while rows() == before:
        publish({"time": sent / 40, "a": 1})
        sent += 1
        time.sleep(0.02)
    publish(*({"time": (sent + i) / 40, "a": i % 7} for i in range(500)))  # some are still on their way at the stop
    process.send_signal(signal.SIGINT)
    told, said = process.communicate()
    assert process.returncode == 0, said
    assert has(sent + 499)
    told = json.loads(told)
    assert told["samples"] + told["lost"] == rows()
    assert told["counters"]["malformed"] == 100
    assert told["counters"]["gaps"] >= 1
    assert told["questions"][0]["name"] == "a@20samples"
