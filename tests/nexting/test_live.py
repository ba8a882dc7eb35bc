"""The live page: what the hub keeps, what the server allows, and what a real browser makes of it."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from datetime import datetime

import numpy as np
import pytest

from trueonline.nexting import arm
from trueonline.nexting.live import Hub, Shown, messages, server

pytest.importorskip("starlette", reason="the live page needs trueonline[live]")
pytest.importorskip("uvicorn", reason="the live page needs trueonline[live]")
pytest.importorskip("websockets", reason="the live page needs trueonline[live]")

from trueonline.nexting.live import Server

TOKEN = "a-token-of-24-characters"
RATE = 40.0
SIGNALS = ("position", "force", "grip")  # grip is a discount: 0 where nothing is held
QUESTIONS = (
    Shown("position, 0.5 s", "position", 0.95, 0.5, "°"),
    Shown("position, 2 s", "position", 0.9875, 2.0, "°"),
    Shown("force, 0.5 s", "force", 0.95, 0.5),
    Shown("grip", "force", "grip", None),
)


def until(true, seconds=300):
    """Wait for something, and return it."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
    return found


def small_hub(history=120.0):
    return Hub(QUESTIONS, SIGNALS, RATE, "An arm", history)


def readings(length, seed=3):
    """Signals and made-up predictions: what they are does not matter here."""
    sampled = arm.simulate(length, seed)
    signals = np.column_stack([sampled[:, 0], sampled[:, 2], 0.9 * (sampled[:, 2] > 0.2)])
    predictions = signals[:, [0, 0, 1, 1]] * [20.0, 80.0, 20.0, 5.0]
    return signals, predictions


def publish(hub, length, first=0, seed=3, times=None, starts=None):
    signals, predictions = readings(first + length, seed)
    times = np.arange(first, first + length) / RATE if times is None else times
    hub.publish(times, np.zeros(length, bool) if starts is None else starts, signals[first:], predictions[first:])
    return signals[first:], predictions[first:]


# --- The hub ------------------------------------------------------------------------------------------


def test_the_hub_keeps_the_newest_samples():
    hub = small_hub(history=50.0)
    signals, predictions = readings(5000)
    rng = np.random.default_rng(0)
    begin = 0
    while begin < 5000:  # pieces of all sizes, some larger than the ring
        end = min(begin + int(rng.choice([0, 1, 7, 500, 3000])), 5000)
        starts = np.arange(begin, end) % 10 == 0
        hub.publish(np.arange(begin, end) / RATE, starts, signals[begin:end], predictions[begin:end], received=float(end))
        begin = end
        part = hub.read(None, (2, 0), (3, 1, 0), 10**6)
        kept = slice(max(end - hub.size, 0), end)
        assert (part.first, part.missed, part.end) == (kept.start, 0, end)
        np.testing.assert_array_equal(part.times, np.arange(kept.start, end) / RATE)
        np.testing.assert_array_equal(part.starts, np.arange(kept.start, end) % 10 == 0)
        np.testing.assert_array_equal(part.columns[:2], signals[kept][:, [2, 0]].T.astype(np.float32))
        np.testing.assert_array_equal(part.columns[2:], predictions[kept][:, [3, 1, 0]].T.astype(np.float32))
        assert not end or part.received[-1] == end
    assert hub.size == 2000
    assert hub.samples == 5000


def test_reading_goes_on_where_it_stopped_and_tells_what_was_missed():
    hub = small_hub(history=50.0)
    publish(hub, 1500)
    part = hub.read(0, (0,), (), 1000)
    assert (part.first, part.end, part.missed) == (0, 1000, 0)
    part = hub.read(part.end, (0,), (), 1000)
    assert (part.first, part.end, part.missed) == (1000, 1500, 0)
    publish(hub, 4000, first=1500)
    part = hub.read(part.end, (0,), (), 1000)
    assert (part.first, part.end, part.missed) == (3500, 4500, 2000)  # 5500 − 2000 = 3500


class Interrupted:
    """An array during whose reading something else happens."""

    def __init__(self, array, happens):
        self.array, self.happens = array, happens

    def __getitem__(self, places):
        found = self.array[places]
        happens, self.happens = self.happens, lambda: None
        happens()
        return found

    def __setitem__(self, places, values):
        self.array[places] = values


@pytest.mark.parametrize("name", ["_signals", "_predictions", "_times", "_received", "_starts"])
def test_what_is_overwritten_while_it_is_read_is_not_shown(name):
    hub = small_hub(history=50.0)
    publish(hub, 3000)
    setattr(hub, name, Interrupted(getattr(hub, name), lambda: publish(hub, 300, first=3000)))
    part = hub.read(1000, (0,), (0,), 10**6)  # 1000 … 2999 are there, but then 3000 … 3299 come
    assert (part.first, part.end, part.missed) == (1300, 3000, 300)
    signals, predictions = readings(3000)
    np.testing.assert_array_equal(part.times, np.arange(1300, 3000) / RATE)
    np.testing.assert_array_equal(part.columns, np.vstack([signals[1300:, 0], predictions[1300:, 0]]).astype("f4"))


def test_a_reader_sees_whole_samples_while_another_thread_writes():
    hub = small_hub(history=50.0)
    stop = threading.Event()

    def write():
        number = 0
        while not stop.is_set():
            block = np.arange(number, number + 70.0)
            hub.publish(block, block < 0, np.repeat(block[:, None], 3, 1), np.repeat(block[:, None], 4, 1))
            number = (number + 70) % 7_000_000  # whole in 32 bits
            time.sleep(1e-5)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen = 0
        while seen < 200:
            part = hub.read(None, (0, 2), (1, 3), 10**6)
            if len(part.times):
                assert (part.columns == part.times).all()
                assert (np.diff(part.times) % 7_000_000 == 1).all()
                seen += 1
    finally:
        stop.set()
        writer.join()
    assert hub.samples > 0


def test_memory_is_bounded_with_thousands_of_questions():
    many = [Shown(f"q{k}", f"s{k % 50}", 0.9, 1.0) for k in range(6000)]
    hub = Hub(many, [f"s{k}" for k in range(50)], RATE)
    total = sum(value.nbytes for value in vars(hub).values() if isinstance(value, np.ndarray))
    assert 16e6 < total <= 33e6
    assert hub.size > 1000
    hub.publish([1.0], [True], np.ones((1, 50)), np.arange(6000.0)[None])
    assert hub.read(None, (49,), (5999,), 10).columns.tolist() == [[1.0], [5999.0]]


def test_too_large_numbers_and_nan_are_no_error():
    hub = small_hub()
    hub.publish([0.0], [False], [[1e300, np.nan, 0.0]], [[np.inf, 0.0, 0.0, 1e-300]])
    assert not np.isfinite(hub.read(None, (0, 1), (0,), 1).columns).any()


def test_first_shown_is_one_question_a_target():
    assert small_hub().first_shown() == (0, 2)
    many = [Shown(f"{s}{k}", s, 0.9, 1.0) for s in "abcdef" for k in range(2)]
    assert Hub(many, list("abcdef"), 1.0).first_shown() == (0, 2, 4, 6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"questions": ()}, "at least one"),
        ({"questions": (*QUESTIONS, QUESTIONS[0])}, "two questions have the name 'position, 0.5 s'"),
        ({"signals": ("position", "force", "grip", "force")}, "two signals"),
        ({"signals": ("position", "force")}, "about 'grip'"),
        ({"questions": (Shown("a", "elsewhere", 0.5, 1.0),)}, "about 'elsewhere'"),
        ({"questions": (Shown("a", "force", 1.5, 1.0),)}, "discount"),
        ({"rate": 0.0}, "rate"),
        ({"history": float("nan")}, "history"),
    ],
)
def test_a_hub_is_made_of_sound_parts(change, message):
    with pytest.raises(ValueError, match=message):
        Hub(**{"questions": QUESTIONS, "signals": SIGNALS, "rate": RATE, **change})


def test_misshapen_samples_and_status_change_nothing():
    hub = small_hub()
    good = ([0.0, 1.0], [False, False], np.ones((2, 3)), np.ones((2, 4)))
    for k, bad in enumerate(([0.0], [True], np.ones((2, 4)), np.ones((1, 4)))):
        with pytest.raises(ValueError, match="shapes"):
            hub.publish(*good[:k], bad, *good[k + 1 :])
    with pytest.raises(ValueError, match="4 questions, got 1"):
        hub.report({"questions": [None]})
    assert (hub.samples, hub.status[0]) == (0, 0)


# --- Messages -----------------------------------------------------------------------------------------


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


def test_status_becomes_json_and_scores():
    hub = small_hub()
    asked = [{"error": 1.5, "mean_return": np.float64(-2.0), "scored": np.int64(7)}, None]
    asked += [{"error": None, "mean_return": None, "scored": 0}, {"error": 1e300, "mean_return": np.nan, "scored": 2**40}]
    hub.report(
        {"samples": np.int64(5), "rate": float("inf"), "dropped": {"late": 2}, "state": "learning", "questions": asked}
    )
    number, words, scores = hub.status
    assert number == 1
    expected = {"type": "status", "samples": 5, "rate": None, "dropped": {"late": 2}, "state": "learning"}
    assert json.loads(words) == expected
    assert struct.unpack_from("<BxxxI", scores) == (2, 4)
    np.testing.assert_array_equal(np.frombuffer(scores, "<f4", 4, 8), np.array([1.5, np.nan, np.nan, 3e38], np.float32))
    np.testing.assert_array_equal(np.frombuffer(scores, "<f4", 4, 24), np.array([-2, np.nan, np.nan, np.nan], np.float32))
    assert np.frombuffer(scores, "<u4", 4, 40).tolist() == [7, 0, 0, 2**32 - 1]
    hub.report({"state": "ended"})  # without questions: their scores stay
    assert hub.status[2] == scores
    nan = np.nan
    arrays = {"error": [1.5, nan, nan, 1e300], "mean_return": [-2.0, nan, nan, nan], "scored": np.array([7, 0, 0, 2**40])}
    hub.report({"questions": arrays})
    assert hub.status[2] == scores


MALFORMED = [
    "", "no json", "[]", "{}", "1", "null", '{"subscribe": 1}', '{"subscribe": [1.0]}', '{"subscribe": [true]}',
    '{"subscribe": [4]}', '{"subscribe": [-1]}', '{"subscribe": [0, 0]}', '{"subscribe": ["0"]}', '{"clock": "1"}',
    '{"clock": NaN}', '{"clock": 1, "subscribe": []}', '{"other": 1}', '{"subscribe": [0,1,2,3,0,1,2,3,0,1,2,3,0]}',
    "[" * 3000, '{"clock": 1' + "0" * 4000 + "}", b'{"subscribe": [0]}', None,
]  # fmt: skip


@pytest.mark.parametrize("message", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_requests_are_refused(message):
    with pytest.raises(ValueError, match=r"message|subscribe|request"):
        messages.request(message, 4)


def test_requests():
    assert messages.request('{"subscribe": [3, 0]}', 4) == ("subscribe", (3, 0))
    assert messages.request('{"subscribe": []}', 4) == ("subscribe", ())
    assert messages.request('{"clock": 12.5}', 4) == ("clock", 12.5)


# --- The server ---------------------------------------------------------------------------------------


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


def test_the_files_of_the_page_are_served_with_strict_headers():
    with Server(small_hub()) as served:
        assert served.url == f"http://127.0.0.1:{served.port}/"
        for path, kind in (("/", "text/html"), ("/app.js", "text/javascript"), ("/uPlot.min.css", "text/css")):
            status, headers, body = get(served, path)
            assert (status, headers.get_content_type()) == (200, kind)
            assert len(body) > 100
            policy = headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "script-src 'self';" in policy
            assert "unsafe" not in policy
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert "Server" not in headers
            assert "Set-Cookie" not in headers
        _, _, page = get(served)
        assert b"//" not in page.replace(b"<!doctype", b"")  # nothing from elsewhere
        for path in ("/page", "/page/", "/../server.py", "/%2e%2e/server.py", "/server.py", "/nothing", "/feed", "//"):
            assert get(served, path)[0] == 404


def test_only_names_of_this_machine_are_accepted_as_host():
    with Server(small_hub()) as served:
        for name in ("127.0.0.1", "localhost", "[::1]", "LOCALHOST"):
            assert get(served, Host=f"{name}:{served.port}")[0] == 200
        for name in ("evil.example", f"evil.example:{served.port}", "127.0.0.1", f"127.0.0.1:{served.port + 1}", ""):
            status, headers, _ = get(served, Host=name)
            assert status == 403
            assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(("address", "name"), [("127.0.0.2", "127.0.0.2"), ("::1", "[::1]")])
def test_the_address_that_was_asked_for_is_a_name(address, name):
    try:
        served = Server(small_hub(), host=address)
    except ValueError as error:
        pytest.skip(f"not on this machine: {error}")
    with served:
        assert served.url == f"http://{name}:{served.port}/"
        assert get(served, address=address)[0] == 200  # under the name that a browser would give
        assert get(served, address=address, Host=f"{name}:{served.port}")[0] == 200
        assert get(served, address=address, Host=f"localhost:{served.port}")[0] == 200
        assert get(served, address=address, Host=f"127.0.0.3:{served.port}")[0] == 403
        from websockets.sync.client import connect as open_socket

        place = f"{name}:{served.port}"
        with open_socket(f"ws://{place}/feed", origin=f"http://{place}", compression=None, proxy=None) as client:
            assert heard(client, "hello")["title"] == "An arm"


def test_browsers_leave_out_port_80():
    from starlette.requests import HTTPConnection

    def asked(host, origin=None):
        headers = [(b"host", host.encode())] + ([(b"origin", origin.encode())] if origin else [])
        scope = {"type": "websocket", "path": "/feed", "query_string": b"", "headers": headers}
        return served.refusal(HTTPConnection(scope))

    served = Server(small_hub())
    try:
        assert "this machine alone" in asked("127.0.0.1")
        served.port = 80  # a port that few may bind
        for name in ("127.0.0.1", "localhost", "[::1]"):
            for given in (name, f"{name}:80"):
                assert asked(given) is None
                assert asked(given, f"http://{name}") is None
                assert asked(given, f"http://{name}:80") is None
                assert "Other sites" in asked(given, f"http://{name}:8000")
                assert "Other sites" in asked(given, "http://evil.example")
        for name in ("evil.example", "127.0.0.1:8000", "evil.example:80", ":80", ""):
            assert "this machine alone" in asked(name)
    finally:
        served.stop()


def test_other_sites_cannot_open_the_feed():
    with Server(small_hub()) as served:
        for origin in (
            "http://evil.example",
            "null",
            f"http://localhost:{served.port}",
            f"file://127.0.0.1:{served.port}",
        ):
            assert refused(served, origin=origin)
        with connect(served, origin=f"http://127.0.0.1:{served.port}") as client:
            assert heard(client, "hello")["title"] == "An arm"
        with connect(served) as client:  # not a browser
            assert heard(client, "hello")["rate"] == RATE


def test_a_token_is_needed_for_everything():
    with Server(small_hub(), token=TOKEN) as served:
        assert served.url.endswith(f"/?token={TOKEN}")
        for path in (
            "/",
            "/app.js",
            "/?token=",
            "/?token=wrong-token-of-24-chars",
            "/nothing",
            f"/?token={TOKEN}x",
            "/?token=%ff",
        ):
            assert get(served, path)[0] == 403
        assert refused(served)
        assert refused(served, "/feed?token=wrong")
        status, headers, _ = get(served, f"/?token={TOKEN}")
        cookie = headers["Set-Cookie"]
        assert status == 200
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        kept = cookie.split(";")[0]
        assert get(served, "/app.js", Cookie=kept)[0] == 200
        assert get(served, f"/style.css?token={TOKEN}")[0] == 200
        assert get(served, "/", Cookie=kept[:-1] + "~")[0] == 403
        with connect(served, additional_headers={"Cookie": kept}) as client:
            assert heard(client, "hello")["most"] == 12
        with connect(served, f"/feed?token={TOKEN}") as client:
            assert heard(client, "hello")["kept"] == 120.0


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "somewhere.example"])
def test_others_are_let_in_only_with_a_token(host):
    with pytest.raises(ValueError, match="give a token"):
        Server(small_hub(), host=host)


@pytest.mark.parametrize(
    "token", ["", "short", "with a space in the token", "ümlaut-ümlaut-ümlaut", 1234567890123456789, True]
)
def test_weak_tokens_are_refused(token):
    with pytest.raises(ValueError, match="token must have at least 16"):
        Server(small_hub(), token=token)


def test_with_a_token_it_can_be_bound_to_all_addresses():
    with Server(small_hub(), host="0.0.0.0", token=TOKEN) as served:
        assert get(served)[0] == 403
        assert get(served, f"/?token={TOKEN}", Host="bench.example")[0] == 200
        assert refused(served, f"/feed?token={TOKEN}", origin="http://evil.example")


def test_a_taken_port_is_an_error():
    with Server(small_hub()) as served, pytest.raises(ValueError, match=f"port {served.port}.*another port"):
        Server(small_hub(), port=served.port)
    for port in (-1, 70000, 1.0, True, "80"):
        with pytest.raises(ValueError, match="port must be"):
            Server(small_hub(), port=port)
    Server(small_hub(), port=served.port).stop()  # it is free again; and what never started can be stopped


def test_a_server_starts_once():
    served = Server(small_hub(), host="localhost")
    served.start()
    with pytest.raises(RuntimeError, match="once"):
        served.start()
    served.stop()
    with pytest.raises(RuntimeError, match="once"):
        served.start()
    served.stop()


def test_a_page_is_told_all_that_it_asks_for():
    hub = small_hub()
    signals, predictions = publish(hub, 100)
    hub.report({"state": "learning", "samples": 100})
    with Server(hub) as served, connect(served) as client:
        hello = heard(client, "hello")
        assert hello["signals"] == list(SIGNALS)
        assert hello["questions"][3] == {
            "name": "grip",
            "target": "force",
            "discount": "grip",
            "horizon": None,
            "unit": "",
        }
        told = heard(client, "subscribed")
        assert (told["number"], told["questions"], told["signals"]) == (1, [0, 2], [0, 1])
        assert heard(client, "status")["samples"] == 100
        frame = heard(client, bytes)
        assert (frame["anew"], frame["first"], frame["missed"], frame["subscription"]) == (True, 0, 0, 1)
        np.testing.assert_array_equal(frame["columns"], np.vstack([signals.T[:2], predictions.T[[0, 2]]]).astype("f4"))
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
        hub.report({"state": "ended", "questions": [None] * 4})
        assert heard(client, "status")["state"] == "ended"


def heard_clock(client):
    client.send('{"clock": 6}')
    return heard(client, "clock")["mine"]


def test_six_thousand_questions_are_introduced():
    many = [Shown(f"question {k}", f"s{k % 3}", 0.9, 1.0) for k in range(6000)]
    hub = Hub(many, ("s0", "s1", "s2"), RATE)
    hub.publish([0.0], [False], np.zeros((1, 3)), np.arange(6000.0)[None])
    hub.report({"questions": [{"error": k, "mean_return": 0.0, "scored": 1} for k in range(6000)]})
    with Server(hub) as served, connect(served) as client:
        hello = heard(client, "hello")
        assert [question["name"] for question in hello["questions"]] == [each.name for each in many]
        assert hello["kept"] < 120
        client.send('{"subscribe": [5999]}')
        while (frame := heard(client, bytes))["subscription"] < 2:
            pass
        assert frame["columns"].tolist() == [[0.0], [5999.0]]


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

    monkeypatch.setattr(server, "MOST_PAGES", 1)
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
                hub.publish(np.arange(sent, sent + 4096) / RATE, *block)
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
    monkeypatch.setattr(server, "GIVE_UP", 0.5)
    hub = small_hub()
    with Server(hub) as served, raw_client(served):
        until(lambda: served.pages == 1)

        def gone():
            hub.publish(np.arange(4096) / RATE, np.zeros(4096, bool), np.zeros((4096, 3)), np.zeros((4096, 4)))
            return served.pages == 0

        until(gone)


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
    monkeypatch.setattr(server, "REQUEST", 1000.0)  # none ends by itself
    hub = small_hub()
    with Server(hub, token=TOKEN) as served, connect(served, f"/feed?token={TOKEN}") as page, ExitStack() as stack:
        heard(page, bytes)
        before = len(os.listdir("/dev/fd"))
        most, idle = 0, []
        for _ in range(300):
            idle.append(stack.enter_context(plain_client(served)))
            most = max(most, len(os.listdir("/dev/fd")) - len(idle))  # this process is both sides
        until(lambda: sum(map(ended_by_server, idle)) == 300 - (server.MOST_CONNECTIONS - 1))  # a page has one
        assert most <= before + server.MOST_CONNECTIONS
        assert not any(map(ended_by_server, idle[: server.MOST_CONNECTIONS - 1]))  # the newest had to go
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
    monkeypatch.setattr(server, "REQUEST", 0.6)
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
        time.sleep(1.5)  # a page stays, although it is older than that
        publish(hub, 3)
        assert len(heard(page, bytes)["times"]) == 3
        assert served.pages == 1
        until(lambda: len(served._server.server_state.connections) == 1)
        assert get(served, f"/?token={TOKEN}")[0] == 200


def test_a_page_that_vanishes_is_forgotten():
    hub = small_hub()
    with Server(hub) as served:
        client = raw_client(served)
        until(lambda: served.pages == 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset: no goodbye
        client.close()

        def gone():
            publish(hub, 1)
            return served.pages == 0

        until(gone)


def test_stopping_ends_connections_even_of_those_that_take_nothing():
    hub = small_hub()
    served = Server(hub)
    served.start()
    with raw_client(served):
        until(lambda: served.pages == 1)
        for _ in range(300):
            hub.publish(np.arange(4096) / RATE, np.zeros(4096, bool), np.zeros((4096, 3)), np.zeros((4096, 4)))
            time.sleep(0.002)
        served.stop()
    assert not any(thread.name == "trueonline-live" for thread in threading.enumerate())
    publish(hub, 1)  # and the hub goes on
    assert hub.samples == 300 * 4096 + 1


# --- What a browser makes of it -----------------------------------------------------------------------

ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--window-size=1280,900",
)  # fmt: skip


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    """A headless Chromium."""
    found, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (found and driver):
        pytest.skip("no chromium and chromedriver here: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver", reason="the browser tests need selenium")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = found
    for argument in (*ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield chrome
    finally:
        chrome.quit()


@pytest.fixture
def browser(chromium):
    """The same, with a new page, and no complaints in the end."""
    chromium.get("about:blank")
    chromium.get_log("browser")
    yield Browser(chromium)
    chromium.get("about:blank")
    assert chromium.get_log("browser") == []


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
            hub.publish([1.7e9 + k / RATE], [k == 0], signals[row], predictions[row])
            if k % 20 == 0:
                asked = [{"error": 40.0, "mean_return": 8000.0, "scored": k}] * 4
                words = {"samples": k, "rate": 40.0, "dropped": {"late": 1, "not a number": 2}, "uptime": k / RATE}
                hub.report({**words, "state": "learning", "clipped": 0, "note": "", "questions": asked})
            k += 1

    thread = threading.Thread(target=work)
    thread.start()
    yield hub
    stop.set()
    thread.join()


def test_lines_move(browser, feed):
    with Server(feed) as served:
        browser.open(served)
        assert browser.of("shown()") == ["position, 0.5 s", "force, 0.5 s"]
        before = until(lambda: browser.of("points('force, 0.5 s')"))
        until(lambda: browser.of("points('force, 0.5 s')") > before + 20)
        until(lambda: browser.one("#state").text == "learning")
        assert browser.one("#title").text == "An arm"
        assert browser.chrome.title == "An arm – trueonline"
        until(lambda: browser.one("#samples").text not in ("–", "0"))
        assert browser.one("#rate").text == "40 Hz"
        assert browser.one("#dropped").text == "3"
        browser.one("#dropped").click()
        assert browser.one("#reasons").text == "late: 1\nnot a number: 2"
        assert len(browser.all(".chart canvas")) == 2
        delay = until(lambda: browser.of("delay()"))
        assert delay >= 0
        until(lambda: browser.one("#delay").text.endswith("ms"))
        until(lambda: browser.one(".chart .score").text == "error 2 ° (0.5 %)")  # 40·(1 − γ)
        assert browser.of("missed") == 0
        labels = browser.js("return document.querySelector('.chart .when').textContent")
        assert labels == "newest"
        assert not browser.one("#find").is_displayed()


def test_questions_can_be_hidden_and_shown(browser, feed):
    with Server(feed) as served:
        browser.open(served)
        until(lambda: browser.of("points('force, 0.5 s')"))
        browser.box("force, 0.5 s").click()
        browser.box("grip").click()
        assert browser.of("shown()") == ["position, 0.5 s", "grip"]
        until(lambda: browser.of("points('grip')") and browser.of("points('position, 0.5 s')"))
        assert browser.of("points('force, 0.5 s')") == 0
        assert [each.text for each in browser.all(".chart h2")] == ["position, 0.5 s", "grip"]
        for name in ("position, 0.5 s", "grip"):
            browser.box(name).click()
        assert browser.of("shown()") == []
        until(lambda: browser.one("#empty").text.startswith("Nothing is shown"))
        browser.box("position, 2 s").click()
        until(lambda: browser.of("points('position, 2 s')"))
        assert not browser.one("#empty").is_displayed()
        browser.chrome.refresh()  # it remembers
        until(lambda: browser.js("return window.trueonline?.connected") and browser.of("points('position, 2 s')"))
        assert browser.of("shown()") == ["position, 2 s"]


def test_pause_holds_and_resume_leaves_no_hole(browser, feed):
    name = "position, 0.5 s"
    with Server(feed) as served:
        browser.open(served)
        until(lambda: browser.of(f"points('{name}')") > 20)
        browser.one("#pause").click()
        assert browser.of("paused")
        until(lambda: browser.one("#state").text.startswith("paused"))
        held, received = browser.series(name), browser.of("samples")
        until(lambda: browser.of("samples") > received + 40)
        assert browser.series(name) == held
        browser.box("position, 2 s").click()  # what is shown only now ends where the others do
        until(lambda: browser.of("points('position, 2 s')"))
        assert browser.series("position, 2 s")["times"] == held["times"]
        assert browser.series(name) == held
        browser.key("p")
        assert not browser.of("paused")
        until(lambda: len(browser.series(name)["times"]) > len(held["times"]) + 40)
        times = np.array(browser.series(name)["times"])
        np.testing.assert_allclose(np.diff(times), 1 / RATE, atol=1e-6)
        assert times[0] == held["times"][0]


def test_zoom_by_mouse_and_keys(browser):
    from selenium.webdriver import ActionChains

    hub = small_hub()
    publish(hub, 4000)
    with Server(hub) as served:
        browser.open(served)
        until(lambda: browser.of("points('force, 0.5 s')"))
        low, high = browser.of("range()")
        assert high == 3999 / RATE
        assert high - low == pytest.approx(30)
        assert [each.text for each in browser.all("#windows button")] == ["10 s", "30 s", "2 min"]
        over = browser.one(".u-over")
        actions = ActionChains(browser.chrome)
        actions.move_to_element(over).click_and_hold().move_by_offset(over.size["width"] // 4, 0).release().perform()
        until(lambda: browser.of("range()") != [low, high])
        zoomed = browser.of("range()")
        assert zoomed[0] == pytest.approx(low + 15, abs=0.3)
        assert zoomed[1] == pytest.approx(low + 22.5, abs=0.3)

        def drawn():
            """What all charts show agrees, and the values under the cursor are told."""
            ends = [browser.series(each)["times"] for each in browser.of("shown()")]
            return all(times[0] > zoomed[0] - 0.1 and times[-1] < zoomed[1] + 0.1 for times in ends)

        until(drawn)
        assert all(each.text.endswith(" s") for each in browser.all(".chart .when"))
        assert browser.one("#reset").is_displayed()
        ActionChains(browser.chrome).double_click(over).perform()
        until(lambda: browser.of("range()") == [low, high])
        browser.key("3")
        assert browser.of("range()") == pytest.approx([high - 120, high])
        browser.key("1")
        assert browser.of("range()") == pytest.approx([high - 10, high])
        browser.key("-")
        assert browser.of("range()") == pytest.approx([high - 15, high + 5])
        browser.key("+")
        assert browser.of("range()") == pytest.approx([high - 10, high])
        browser.key("\ue012")  # to the left
        assert browser.of("range()") == pytest.approx([high - 12.5, high - 2.5])
        browser.one("#reset").click()
        assert browser.of("range()") == pytest.approx([high - 10, high])
        browser.key("?")
        assert browser.one("#help p").is_displayed()


def test_times_of_a_recording_are_seconds_and_those_of_a_clock_are_not(browser):
    hub = small_hub()
    publish(hub, 2000)
    with Server(hub) as served:
        browser.open(served)
        written = until(lambda: browser.js("return window.trueonline && document.querySelector('.when')?.textContent"))
        assert written == "newest"
        from selenium.webdriver import ActionChains

        ActionChains(browser.chrome).move_to_element(browser.one(".u-over")).perform()
        until(lambda: browser.one(".when").text.endswith(" s"))
    hub = small_hub()
    publish(hub, 2000, times=1.7e9 + np.arange(2000) / RATE)
    with Server(hub) as served:
        browser.open(served)
        until(lambda: browser.of("points('force, 0.5 s')"))
        ActionChains(browser.chrome).move_to_element(browser.one(".u-over")).perform()
        until(lambda: browser.one(".when").text.count(":") == 2)


@contextmanager
def screen(browser, width):
    """A screen of that many pixels, which is a phone's where they are few."""
    metrics = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 800}
    browser.chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        yield
    finally:
        browser.chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("begin", [0.0, 1.7e9 + 0.3])
def test_marks_of_time_say_when_they_are(browser, width, begin):
    name, form = "force, 0.5 s", "%H:%M:%S"
    hub = small_hub()
    publish(hub, 4813, times=begin + np.arange(4813) / RATE)
    with Server(hub) as served, screen(browser, width):
        browser.open(served)
        until(lambda: browser.of(f"points('{name}')"))
        for key, seconds in (("1", 10), ("2", 30), ("3", 120)):
            browser.key(key)
            low, high = browser.of("range()")
            assert high - low == pytest.approx(seconds)
            until(lambda low=low, high=high: low <= browser.of(f"marks('{name}')")[0][0] < (low + high) / 2)
            marks = browser.of(f"marks('{name}')")
            times = np.array([time for time, _ in marks])
            steps = np.unique(np.diff(times).round(6))
            assert len(steps) == 1
            assert steps[0] in (1, 2, 5, 10, 15, 30)
            assert len([words for _, words in marks if words]) >= 2
            for time_, words in marks[:-1]:  # at the right there may be no room
                assert words == (datetime.fromtimestamp(time_).strftime(form) if begin else f"{time_:.0f} s")
                assert time_ == round(time_)


def test_a_clock_that_is_set_back_leaves_what_came_after(browser):
    name = "position, 0.5 s"
    signals, predictions = readings(2000)
    begins = {0: 100.0, 400: 95.0, 1500: 50.0}  # the time at some samples, after which it goes on
    starts = np.isin(np.arange(2000), list(begins))
    times = np.concatenate([begins[k] + np.arange(n) / RATE for k, n in zip(begins, (400, 1100, 500), strict=True)])
    small = signals[:, 0].astype(np.float32).astype(float)
    hub = small_hub()

    def more(first, end):
        part = slice(first, end)
        hub.publish(times[part], starts[part], signals[part], predictions[part])

    def drawn(first, end):
        series = browser.series(name)
        same = [series["times"], series["signal"]] == [times[first:end].tolist(), small[first:end].tolist()]
        return same and browser.of("range()")[1] == times[end - 1]

    more(0, 500)
    with Server(hub) as served:
        browser.open(served)
        until(lambda: drawn(400, 500))  # set back within what was there already
        more(500, 1400)
        until(lambda: drawn(400, 1400))
        browser.key("1")
        browser.key("+")
        looked_at = browser.of("range()")
        assert times[400] < looked_at[0] < looked_at[1] < times[1399]
        more(1400, 1500)
        until(lambda: browser.of("samples") == 1500)
        assert browser.of("range()") == looked_at
        more(1500, 1520)  # now that is gone
        until(lambda: drawn(1500, 1520))
        assert not browser.one("#reset").is_displayed()
        browser.key("p")
        more(1520, 1800)
        until(lambda: browser.of("samples") == 1800)
        assert drawn(1500, 1520)
        browser.key("p")
        until(lambda: drawn(1500, 1800))


@pytest.mark.parametrize("width", [1280, 390])
def test_a_note_can_be_read(browser, width):
    hub = small_hub()
    publish(hub, 100)
    note = "samples come 40 a second by their times, and the rate was said to be 1: " + "a_long_name_" * 20
    with Server(hub) as served, screen(browser, width):
        browser.open(served)
        until(lambda: browser.of("points('force, 0.5 s')"))
        assert not browser.one("#note").is_displayed()
        hub.report({"state": "learning", "note": note})
        until(lambda: browser.one("#note").text == note)
        box = browser.one("#note").rect
        assert 0 <= box["x"] < box["x"] + box["width"] <= width
        assert browser.js("return document.documentElement.scrollWidth") == width
        assert browser.js("return document.getElementById('note').scrollWidth") <= box["width"]
        hub.report({"state": "learning", "note": ""})
        until(lambda: not browser.one("#note").is_displayed())


def test_it_is_told_when_there_will_be_scores(browser):
    hub = small_hub()
    publish(hub, 100)
    nothing = {"error": None, "mean_return": None, "scored": 0}
    hub.report({"state": "learning", "questions": [nothing] * 4})
    with Server(hub) as served:
        browser.open(served)
        browser.box("grip").click()
        told = ["error: known after about 7 s"] * 2 + [""]  # 14 · 0.5 s; of a discount that is a signal, who knows
        until(lambda: [each.text for each in browser.all(".chart .score")] == told)
        titles = [each.get_attribute("title") for each in browser.all("#list td:nth-child(2)")]
        assert titles == [f"known after about {time} s" for time in (7, 28, 7)] + [""]
        hub.report({"state": "learning", "questions": [{"error": 40.0, "mean_return": 0.0, "scored": 1}] + [nothing] * 3})
        until(lambda: browser.one(".chart .score").text == "error 2 °")
        assert browser.one("#list td:nth-child(2)").get_attribute("title") == ""
        hub.report({"state": "ended"})
        until(lambda: [each.text for each in browser.all(".chart .score")] == ["error 2 °", "", ""])


def test_realised_returns_are_those_of_the_definition(browser):
    n = 1190
    starts = np.zeros(n, bool)
    starts[[0, 300, 700]] = True
    hub = small_hub()
    times = np.arange(n) / RATE + np.cumsum(starts)  # a second is lost before each beginning
    signals, predictions = publish(hub, n, times=times, starts=starts)
    signals, predictions = signals.astype(np.float32).astype(float), predictions.astype(np.float32).astype(float)
    with Server(hub) as served:
        browser.open(served)
        for name in ("position, 2 s", "grip"):
            browser.box(name).click()
        browser.key("3")  # the last two minutes: all of it
        for number, question in enumerate(QUESTIONS):
            until(lambda name=question.name: browser.of(f"points('{name}')") == n)
            target = signals[:, SIGNALS.index(question.target)]
            is_signal = isinstance(question.discount, str)
            gammas = signals[:, 2] if is_signal else np.full(n, question.discount)
            scale = 1.0 if is_signal else 1.0 - question.discount
            expected = [None] * n
            for t in range(n):  # G_t = Σ_k (∏ γ) C_{t+k+1}, as long as the stream goes on
                total, weight, k = 0.0, 1.0, t + 1
                while k < n and not starts[k] and weight > 0.0:
                    total += weight * target[k]
                    weight *= gammas[k]
                    k += 1
                if weight <= 0.01:
                    expected[t] = total * scale
            series = browser.series(question.name)
            at = [k for k, value in enumerate(series["signal"]) if value is not None]  # without the rows that make gaps
            assert len(series["times"]) == n + 2
            assert [series["times"][k] for k in at] == times.tolist()
            np.testing.assert_allclose([series["prediction"][k] for k in at], predictions[:, number] * scale)
            realised = [series["realised"][k] for k in at]
            assert [value is None for value in realised] == [value is None for value in expected]
            some = [k for k, value in enumerate(expected) if value is not None]
            assert 100 < len(some) < n
            close = {"rtol": 1e-9, "atol": 1e-9}
            np.testing.assert_allclose([realised[k] for k in some], [expected[k] for k in some], **close)
            assert not any(
                series[line][k] is not None for k in set(range(n + 2)) - set(at) for line in ("realised", "prediction")
            )


def test_what_came_so_far_is_the_mean_over_what_came(browser):
    hub = small_hub()
    signals, _ = publish(hub, 400)
    with Server(hub) as served:
        browser.open(served)
        until(lambda: browser.of("points('position, 0.5 s')") == 400)
        so_far = browser.series("position, 0.5 s")["soFar"]
        t = 380  # 19 samples came after it
        weights = 0.95 ** np.arange(19)
        assert so_far[t] == pytest.approx((weights * signals[t + 1 :, 0]).sum() / weights.sum(), rel=1e-6)
        assert so_far[t - 100] is None  # that is known
        assert so_far[-1] is None  # and of that nothing


def test_a_phone_shows_all_of_it(browser, feed):
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        with Server(feed) as served:
            browser.open(served)
            for name in ("grip", "position, 2 s"):
                browser.js("arguments[0].click()", browser.box(name))
            until(lambda: all(browser.of(f"points('{each.name}')") for each in QUESTIONS))
            browser.one("#help summary").click()
            assert browser.js("return document.documentElement.scrollWidth") == 390
            wide = "return [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > 391).length"
            assert browser.js(wide) == 0
            browser.one("#pause").click()
            assert browser.of("paused")
            over = browser.one(".u-over")
            browser.js("arguments[0].scrollIntoView({block: 'center'})", over)
            low, high = browser.of("range()")
            box = browser.js("return arguments[0].getBoundingClientRect().toJSON()", over)
            for kind, share in (("touchStart", 0.5), ("touchMove", 0.6), ("touchMove", 0.75), ("touchEnd", None)):
                places = [{"x": box["left"] + share * box["width"], "y": box["top"] + 40}] if share else []
                browser.chrome.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})
            until(lambda: browser.of("range()") != [low, high])
            part = (np.array(browser.of("range()")) - low) / (high - low)
            np.testing.assert_allclose(part, [0.5, 0.75], atol=0.02)
    finally:
        browser.chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_dark_page_is_dark(browser, feed):
    background = "return getComputedStyle(document.body).backgroundColor"
    try:
        with Server(feed) as served:
            found = []
            for scheme in ("light", "dark"):
                features = [{"name": "prefers-color-scheme", "value": scheme}]
                browser.chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
                browser.open(served)
                found.append(browser.js(background))
        assert found == ["rgb(255, 255, 255)", "rgb(21, 25, 29)"]
    finally:
        browser.chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_empty_states(browser):
    hub = small_hub()
    with Server(hub) as served:
        browser.open(served)
        until(lambda: browser.one("#empty").text == "Waiting for samples …")
        assert browser.one("#state").text == "waiting for samples"
        publish(hub, 100)
        until(lambda: not browser.one("#empty").is_displayed())
        hub.report({"state": "ended", "note": "all of it was read"})
        until(lambda: browser.one("#state").text == "the stream has ended")
        until(lambda: browser.one("#note").text == "all of it was read")


def test_the_page_comes_back_when_the_server_does(chromium, feed):
    browser = Browser(chromium)
    served = Server(feed)
    served.start()
    try:
        browser.open(served)
        until(lambda: browser.of("points('force, 0.5 s')"))
        browser.box("force, 0.5 s").click()
    finally:
        served.stop()
    until(lambda: browser.one("#state").text == "connection lost – trying again")
    other = small_hub()  # another stream, which begins again
    publish(other, 50)
    with Server(other, port=served.port):
        until(lambda: browser.of("connected") and browser.of("points('position, 0.5 s')") == 50)
        assert browser.of("shown()") == ["position, 0.5 s"]
        publish(other, 10, first=50)
        until(lambda: browser.of("points('position, 0.5 s')") == 60)
    chromium.get("about:blank")
    complaints = [entry["message"] for entry in chromium.get_log("browser")]
    assert all("WebSocket" in message for message in complaints)  # that there was no server, and nothing else


def test_thousands_of_questions_can_be_searched(browser):
    many = [Shown(f"sensor {k % 50}, horizon {k // 50}", f"s{k % 50}", 0.9, 0.25) for k in range(6000)]
    hub = Hub(many, [f"s{k}" for k in range(50)], RATE)
    hub.publish(np.arange(100) / RATE, np.zeros(100, bool), np.ones((100, 50)), np.full((100, 6000), 10.0))
    hub.report(
        {"state": "learning", "questions": [{"error": 2.0, "mean_return": 10.0, "scored": k} for k in range(6000)]}
    )
    with Server(hub) as served:
        browser.open(served)
        until(lambda: browser.of("points('sensor 0, horizon 0')") == 100)
        assert len(browser.all("#list tr")) == 200
        assert browser.one("#more").text == "and 5,800 more: find them by name"
        browser.key("/")
        browser.key("49, zon 119")
        until(lambda: len(browser.all("#list tr")) == 1)
        assert browser.one("#list tr").text.split("\n")[-1].endswith("0.2 1 5,999")
        browser.box("sensor 49, horizon 119").click()
        until(lambda: browser.of("points('sensor 49, horizon 119')") == 100)
        find = browser.one("#find")
        find.clear()
        find.send_keys("sensor 49,")
        until(lambda: len(browser.all("#list tr")) == 120)
        for box in browser.all("#list input")[:7]:
            box.click()
        assert len(browser.of("shown()")) == 12
        assert not browser.all("#list input")[20].is_enabled()  # twelve are enough


def test_a_token_does_not_stay_in_the_address(browser, feed):
    with Server(feed, token=TOKEN) as served:
        browser.open(served)
        until(lambda: browser.of("points('force, 0.5 s')"))
        assert TOKEN not in browser.chrome.current_url
        assert TOKEN not in browser.js("return document.cookie")
        browser.chrome.refresh()
        until(lambda: browser.js("return window.trueonline?.connected"))


def test_a_zoomed_stretch_is_kept_when_the_samples_go(browser):
    hub = small_hub(history=30.0)
    publish(hub, 1200)
    with Server(hub) as served:
        browser.open(served)
        until(lambda: browser.of("points('force, 0.5 s')") > 0)
        for key in "--":
            browser.key(key)
        browser.key("\ue012")
        before = browser.of("range()")
        publish(hub, 1100, first=1200)
        until(lambda: browser.of("paused"))
        assert browser.of("range()") == before
        assert browser.of("points('force, 0.5 s')") > 0
        browser.key("0")
        browser.key("p")
        until(lambda: browser.of("range()")[1] == 2299 / RATE)


# --- The command --------------------------------------------------------------------------------------


@contextmanager
def command(*arguments, **options):
    """`trueonline live`, and the address of its page."""
    started = [sys.executable, "-m", "trueonline", "live", *map(str, arguments), "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(started, **pipes, **options)
    try:
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + process.stderr.read()
        process.url = found[0]
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process, browser):
    browser.chrome.get("about:blank")  # or it would complain that the server is gone
    process.send_signal(signal.SIGINT)
    told, said = process.communicate()
    assert process.returncode == 0, said
    return told


def test_the_command_shows_the_arm_as_it_moves(browser):
    targets = ["--target", "position,force", "--signals", ",".join(arm.NAMES), "--horizon", "0.2s"]
    with command("arm", *targets, "--pace", "4") as process:
        browser.open(process)
        shown = browser.of("shown()")
        assert shown == ["position@0.2s", "force@0.2s"]
        before = until(lambda: browser.of("points('force@0.2s')"))
        until(lambda: browser.of("points('force@0.2s')") > before)
        until(lambda: "%" in browser.one("#charts").text)  # an error is shown
        series = browser.series("position@0.2s")
        assert set(series["signal"]) <= set(arm.simulate(20_000)[:, 0].astype(np.float32).tolist())
        told = ended(process, browser)
    assert "position@0.2s" in told
    assert "0 dropped" in told


def test_the_page_stays_when_a_recording_has_ended(browser, tmp_path):
    (tmp_path / "log.csv").write_text("x\n" + "".join(f"{t % 9}\n" for t in range(300)))
    with command(tmp_path / "log.csv", "--rate", 100, "--target", "x", "--horizon", "0.1s", "--pace", 100) as process:
        browser.open(process)
        until(lambda: "ended" in browser.one("header").text)
        assert browser.of("samples") == 300
        assert "300 samples" in ended(process, browser)


def test_the_command_wants_a_token_beyond_this_machine():
    from click.testing import CliRunner

    from trueonline.cli import main

    result = CliRunner().invoke(main, ["live", "arm", "--target", "force", "--host", "0.0.0.0", "--port", "0"])
    assert result.exit_code == 1
    assert "token" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_port_that_is_taken_costs_no_predictions(tmp_path):
    from click.testing import CliRunner

    from trueonline.cli import main

    out = tmp_path / "kept.csv"
    out.write_text("time,x@1s\n0.0,1.0\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(main, ["live", "arm", "--target", "force", "--port", port, "--out", str(out)])
    assert result.exit_code == 1
    assert port in result.stderr
    assert out.read_text() == "time,x@1s\n0.0,1.0\n"


def test_samples_from_a_pipe_reach_the_page_at_once(browser):
    with command("-", "--rate", 40, "--time", "time", "--target", "x", stdin=subprocess.PIPE) as process:
        browser.open(process)
        for t in range(3):
            stamp = time.time()
            process.stdin.write(json.dumps({"time": stamp, "x": t}) + "\n")
            process.stdin.flush()
            until(lambda stamp=stamp: browser.of("series('x@1s')")["times"][-1:] == [stamp])
        assert "3 samples" in ended(process, browser)
