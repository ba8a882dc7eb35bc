"""The feed of a page: subscriptions, malformed messages, slow and silent connections."""

import http.client
import os
import socket
import struct
import threading
import time
from contextlib import ExitStack, suppress

import numpy as np
import pytest

from tests.processes import wait_for as until
from tests.streams.live.helpers import RATE, SIGNALS, TOKEN, connect, get, heard, publish, small_hub, unpack
from trueonline.streams.live import Server, flood, listener, messages, server
from trueonline.streams.predictor import Answers


def test_a_page_is_told_all_that_it_asks_for():
    hub = small_hub()
    signals, predictions = publish(hub, 100)
    hub.report({"state": "learning", "samples": 100})
    with Server(hub) as served, connect(served) as client:
        hello = heard(client, "hello")
        assert hello["signals"] == list(SIGNALS)
        assert hello["questions"][3] == {
            "name": "grip", "target": "force", "discount": "grip", "horizon": None, "meaning": "return",
        }  # fmt: skip
        told = heard(client, "subscribed")
        assert (told["number"], told["questions"], told["signals"]) == (1, [0, 2], [0, 1])
        assert heard(client, "status")["samples"] == 100
        frame = heard(client, bytes)
        assert (frame["anew"], frame["first"], frame["missed"], frame["subscription"]) == (True, 0, 0, 1)
        np.testing.assert_array_equal(
            frame["columns"][:4], np.vstack([signals.T[:2], predictions.T[[0, 2]]]).astype("f4")
        )
        assert frame["columns"].shape == (8, 100)
        before = time.time()
        more, _ = publish(hub, 5, first=100, starts=np.arange(5) == 2)
        after = time.time()
        frame = heard(client, bytes)
        assert (frame["anew"], frame["first"]) == (False, 100)
        np.testing.assert_array_equal(frame["times"], np.arange(100, 105) / RATE)
        np.testing.assert_array_equal(frame["columns"][0], more[:, 0].astype("f4"))
        assert frame["starts"].tolist() == [0, 0, 1, 0, 0]
        assert (before <= frame["received"]).all()
        assert (frame["received"] <= after).all()
        client.send('{"subscribe": [3]}')
        told = heard(client, "subscribed")
        assert (told["number"], told["questions"], told["signals"]) == (2, [3], [1, 2])
        frame = heard(client, bytes)
        assert (frame["anew"], frame["first"], frame["subscription"]) == (True, 0, 2)
        np.testing.assert_array_equal(frame["columns"][2, :100], predictions[:, 3].astype("f4"))
        client.send('{"subscribe": []}')
        assert heard(client, "subscribed")["signals"] == []
        assert heard(client, bytes)["columns"].shape == (0, 105)
        client.send('{"clock": 5}')
        assert heard(client, "clock")["yours"] == 5
        assert abs(heard_clock(client) - time.time()) < 3600
        hub.report({"state": "ended", "questions": {}})
        assert heard(client, "status")["state"] == "ended"


def heard_clock(client):
    client.send('{"clock": 6}')
    return heard(client, "clock")["mine"]


@pytest.mark.parametrize("message", ["no json", '{"subscribe": [99]}', b"\x00\x01", "x" * 10_000])
def test_a_malformed_message_ends_that_connection_only(message):
    from websockets.exceptions import ConnectionClosed

    hub = small_hub()
    with Server(hub) as served, connect(served) as other, connect(served) as client:
        heard(client, bytes)
        heard(other, bytes)
        client.send(message)
        with pytest.raises(ConnectionClosed) as caught:
            heard(client, "the end")
        assert caught.value.rcvd.code in (1008, 1009)
        until(lambda: served.pages == 1)
        publish(hub, 3)
        assert len(heard(other, bytes)["times"]) == 3


def test_there_is_a_limit_to_pages(monkeypatch):
    from websockets.exceptions import ConnectionClosed

    monkeypatch.setattr(server, "MAX_PAGES", 1)
    with Server(small_hub()) as served, connect(served) as first:
        heard(first, "hello")
        with connect(served) as second, pytest.raises(ConnectionClosed, match="too many pages"):
            second.recv(timeout=300)
        publish(served.hub, 1)
        assert len(heard(first, bytes)["times"]) in (0, 1)


def raw_client(served):
    """A WebSocket whose answers nobody reads."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", served.port))
    lines = (
        "GET /feed HTTP/1.1", f"Host: 127.0.0.1:{served.port}", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13", "", "",
    )  # fmt: skip
    client.sendall("\r\n".join(lines).encode())
    return client


def test_a_page_that_takes_nothing_slows_nobody_and_takes_no_memory():
    psutil = pytest.importorskip("psutil")
    hub = small_hub()
    block = [np.zeros(4096, bool), np.zeros((4096, 3)), np.zeros((4096, 4))]
    with Server(hub) as served, raw_client(served) as stuck, connect(served) as reader:
        until(lambda: served.pages == 2)
        sent = 0

        def flood(samples):
            nonlocal sent
            for _ in range(samples // 4096):
                hub.publish(Answers(np.arange(sent, sent + 4096) / RATE, *block))
                sent += 4096

        def follow():
            """Until the reader has the newest."""
            while True:
                frame = heard(reader, bytes)
                if frame["first"] + len(frame["times"]) == sent:
                    return

        flood(100 * 4096)
        follow()
        before = psutil.Process().memory_info().rss
        for _ in range(40):  # 8 M samples, of which 33 bytes each would go to a page that took them
            flood(50 * 4096)
            follow()
        assert hub.samples == sent
        assert psutil.Process().memory_info().rss - before < 60e6
        assert served.pages == 2
        # Now it reads: first what was under way, then it is told what it missed.
        total, missed = 0, 0
        for data in frames(stuck):
            total += len(data)
            if data[0] == messages.SAMPLES:
                frame = unpack(data)
                missed += frame["missed"]
                if frame["first"] + len(frame["times"]) == sent:
                    break
        assert missed > 4_000_000
        assert total < 20e6


def frames(client):
    """The messages that a server sends, from its bytes (RFC 6455, section 5.2; servers do not mask)."""
    stream = client.makefile("rb")
    while stream.readline() != b"\r\n":
        pass
    while head := stream.read(2):
        length = head[1]
        if length >= 126:
            length = int.from_bytes(stream.read(2 if length == 126 else 8), "big")
        data = stream.read(length)
        if head[0] & 15 in (1, 2):
            yield data
    stream.close()


def test_a_page_that_takes_nothing_for_long_is_forgotten(monkeypatch):
    if not hasattr(socket, "TCP_USER_TIMEOUT"):
        pytest.skip("this system does not end connections that take nothing")
    monkeypatch.setattr(listener, "SEND_TIMEOUT", 0.5)
    hub = small_hub()
    with Server(hub) as served, raw_client(served):
        until(lambda: served.pages == 1)

        def gone():
            hub.publish(Answers(np.arange(4096) / RATE, np.zeros(4096, bool), np.zeros((4096, 3)), np.zeros((4096, 4))))
            return served.pages == 0

        until(gone)


def frame(kind, data=b"", last=True):
    """A frame of a WebSocket's client, masked by zeros."""
    return bytes([kind | 0x80 * last, 0x80 | len(data), 0, 0, 0, 0]) + data


TEXT, MORE, PING = 1, 0, 9


@pytest.mark.parametrize(
    ("first", "chunk"),
    [(b"", frame(PING, b"x" * 125) * 2000), (frame(TEXT, last=False), frame(MORE, last=False) * 20_000)],
    ids=["pings", "a message without end"],
)
def test_a_page_that_floods_the_server_is_disconnected(monkeypatch, first, chunk):
    monkeypatch.setattr(flood, "MAX_BYTES_A_MINUTE", 200_000)
    hub = small_hub()
    with Server(hub) as served, connect(served) as other, raw_client(served) as flooding:
        until(lambda: served.pages == 2)
        flooding.sendall(first)
        with suppress(ConnectionError):
            for _ in range(100):
                flooding.sendall(chunk)  # and nothing is read
            pytest.fail("it took everything")
        until(lambda: served.pages == 1)
        publish(hub, 3)
        assert heard(other, bytes)["first"] == 0


def test_a_page_that_resets_in_the_middle_of_its_questions_writes_no_lines(caplog):
    with Server(small_hub()) as served:
        for wait in (0.01, 0.02, 0.03):
            with raw_client(served) as client:
                until(lambda: served.pages == 1)
                client.sendall(frame(TEXT, b'{"clock": 1}') * 10_000)
                time.sleep(wait)  # the server answers
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            until(lambda: served.pages == 0)
    assert caplog.messages == []


class Waiting:
    """A transport with so many bytes that wait."""

    def __init__(self):
        self.waiting, self.closing = 0, False

    def get_write_buffer_size(self):
        return self.waiting

    def is_closing(self):
        return self.closing

    def abort(self):
        self.closing = True

    def write(self, data):
        assert not self.closing
        self.waiting += len(data)


def test_what_waits_for_a_page_is_bounded():
    transport = Waiting()
    limited = flood.LimitedTransport(transport)
    for _ in range(1000):
        limited.write(bytes(10_000))
    assert limited.is_closing()
    assert flood.MAX_WAITING_BYTES < transport.waiting <= flood.MAX_WAITING_BYTES + 10_000


def plain_client(served, sent=b""):
    client = socket.create_connection(("127.0.0.1", served.port), timeout=300)
    client.sendall(sent)
    return client


def ended_by_server(client):
    """Whether the server has ended a connection. Reads what comes, but does not wait."""
    client.setblocking(False)
    try:
        while client.recv(65536):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


def test_connections_that_do_nothing_take_few_descriptors(monkeypatch):
    if not os.path.isdir("/dev/fd"):
        pytest.skip("this system does not list descriptors")
    monkeypatch.setattr(server, "REQUEST_TIMEOUT", 1000.0)  # none ends by itself
    hub = small_hub()
    with Server(hub, token=TOKEN) as served, connect(served, f"/feed?token={TOKEN}") as page, ExitStack() as stack:
        heard(page, bytes)
        before = len(os.listdir("/dev/fd"))
        most, idle = 0, []
        for _ in range(300):
            idle.append(stack.enter_context(plain_client(served)))
            most = max(most, len(os.listdir("/dev/fd")) - len(idle))  # this process is both sides
        until(lambda: sum(map(ended_by_server, idle)) == 300 - (listener.MAX_CONNECTIONS - 1))  # a page has one
        assert most <= before + listener.MAX_CONNECTIONS
        assert not any(map(ended_by_server, idle[: listener.MAX_CONNECTIONS - 1]))  # the newest had to go
        publish(hub, 3)
        assert len(heard(page, bytes)["times"]) == 3
        for client in idle:
            client.close()

        def served_again():
            try:
                return get(served, f"/?token={TOKEN}")[0] == 200
            except (ConnectionError, http.client.HTTPException):  # the others are not yet forgotten
                return False

        until(served_again)
        assert served.pages == 1


def test_only_pages_stay_connected(monkeypatch):
    monkeypatch.setattr(server, "REQUEST_TIMEOUT", 0.6)
    hub = small_hub()
    head = b"GET / HTTP/1.1\r\nHost: here\r\n"
    upgrade = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    key = b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    sent = {
        "nothing": b"",
        "half a line": b"GE",
        "no end": head,
        "answered": head + b"Connection: keep-alive\r\n\r\n",
        "a long body": b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 1000000\r\n\r\n",
        "no token": head.replace(b"GET /", b"GET /feed") + upgrade + key,
        "half an upgrade": head + upgrade,
        "no request": bytes(100),
    }
    with Server(hub, token=TOKEN) as served, connect(served, f"/feed?token={TOKEN}") as page, ExitStack() as stack:
        heard(page, bytes)
        clients = {name: stack.enter_context(plain_client(served, each)) for name, each in sent.items()}
        stop = threading.Event()
        slow = stack.enter_context(plain_client(served, head))

        def trickle():
            try:
                while not stop.wait(0.02):
                    slow.send(b"x")
            except ConnectionError:
                pass

        thread = threading.Thread(target=trickle)
        thread.start()
        try:
            until(lambda: not thread.is_alive())
            for client in clients.values():
                until(lambda client=client: ended_by_server(client))
        finally:
            stop.set()
            thread.join()
        time.sleep(0.6)  # a page stays, although it is older than that
        publish(hub, 3)
        assert len(heard(page, bytes)["times"]) == 3
        assert served.pages == 1
        until(lambda: len(served._server.server_state.connections) == 1)
        assert get(served, f"/?token={TOKEN}")[0] == 200


def test_stopping_ends_connections_even_of_those_that_take_nothing():
    hub = small_hub()
    served = Server(hub)
    served.start()
    with raw_client(served):
        until(lambda: served.pages == 1)
        for _ in range(300):
            hub.publish(Answers(np.arange(4096) / RATE, np.zeros(4096, bool), np.zeros((4096, 3)), np.zeros((4096, 4))))
            time.sleep(0.002)
        served.stop()
    assert not any(thread.name == "trueonline-live" for thread in threading.enumerate())
    publish(hub, 1)  # and the hub goes on
    assert hub.samples == 300 * 4096 + 1
