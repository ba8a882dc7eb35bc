"""A real mosquitto broker, killed and started again in mid-stream, and the whole command that reads from it."""

import importlib.util
import json
import signal
import socket
import threading
import time

import numpy as np
import pytest

from tests.streams.mosquitto import PATIENCE, Broker, free_port, publisher, received, until, with_broker
from tests.streams.predict_calls import started
from trueonline.streams.sources import Mqtt, open_source

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


@pytest.mark.skipif(importlib.util.find_spec("paho") is None, reason="needs paho-mqtt")
def test_addresses_where_nothing_listens_and_malformed_ones():
    begun = time.monotonic()
    with pytest.raises(ValueError, match=r"cannot listen to .*: the connection is refused: nothing listens there; check"):
        Mqtt(f"mqtt://127.0.0.1:{free_port()}/arm", ["a"], patience=1000.0)
    assert time.monotonic() - begun < 500.0  # it did not wait for as long as it might have
    for place in ("host", "host/", "/topic", "host:99999/x", "host:x/y", "a:b:c/y", "a..b/y"):
        with pytest.raises(ValueError, match="the address must be mqtt://"):
            Mqtt(f"mqtt://{place}", ["a"])


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
    with pytest.raises(ValueError, match=r"cannot listen to mqtt://nowhere/x: there is no such host \(who knows\); ch"):
        Mqtt("mqtt://nowhere/x", ["a"], patience=1000.0)
    with pytest.raises(ValueError, match=r"it did not answer within 0\.3 s \(who knows\); check the address"):
        Mqtt("mqtt://nowhere/x", ["a"], patience=0.3)


@with_broker
def test_what_was_wrong_with_the_first_message_is_told(broker, publish):
    for bad, complaint in [
        ([[sample(1), {"grip": 2}]], "no key a, b; it has grip: {'grip': 2}"),
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
def test_predict_goes_on_when_the_broker_is_killed_and_ends_when_it_is_interrupted(broker, publish, tmp_path):
    out = tmp_path / "out.csv"
    options = ["--rate", "40", "--time", "time", "--target", "a", "--out", out, "--json"]

    def publish_until_rows_come(t):
        """Publish until the command listens."""
        before = rows()
        while rows() == before:
            publish({"time": t / 40, "a": 1})
            t += 1
            time.sleep(0.02)
        return t

    def rows():
        return len(out.read_text().splitlines()) if out.exists() else 0

    process = started(broker.url(), *options)
    publish_until_rows_come(-10_000)
    broker.kill()
    broker.start()
    until(publish.client.is_connected, "the publisher's return")
    sent = publish_until_rows_come(0)
    publish(*({"time": (sent + i) / 40, "a": i % 7} for i in range(500)))  # some are still on their way at the stop
    process.send_signal(signal.SIGINT)
    told, said = process.communicate()
    assert process.returncode == 0, said
    assert out.read_text().splitlines()[-1].startswith(f"{(sent + 499) / 40},")
    told = json.loads(told)
    assert told["samples"] == rows() - 1
    assert told["counters"]["gaps"] >= 1
    assert told["questions"][0]["name"] == "a@20samples"
