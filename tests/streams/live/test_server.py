"""The server: files of the page, hosts, origins, tokens and ports."""

import socket

import pytest

from tests.streams.live.helpers import TOKEN, connect, get, heard, refused, small_hub
from trueonline.streams.live import Server


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
        return served.access.refusal(HTTPConnection(scope))

    served = Server(small_hub())
    try:
        assert "this machine alone" in asked("127.0.0.1")
        served.access.port = 80  # a port that few may bind
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
        near = [f"http://localhost:{served.port}", f"file://127.0.0.1:{served.port}"]
        for origin in ("http://evil.example", "null", *near, "http://[", "http://[x]", "http://[::1", "http://", ""):
            assert refused(served, origin=origin)
        with connect(served, origin=f"http://127.0.0.1:{served.port}") as client:
            assert heard(client, "hello")["title"] == "An arm"
        with connect(served) as client:  # not a browser
            assert heard(client, "hello")["kept"] == 4800


def test_a_token_is_needed_for_everything():
    with Server(small_hub(), token=TOKEN) as served:
        assert served.url.endswith(f"/?token={TOKEN}")
        wrong = ["", "wrong-token-of-24-chars", f"{TOKEN}x", "%ff"]
        for path in ("/", "/app.js", "/nothing", *(f"/?token={each}" for each in wrong)):
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
            assert heard(client, "hello")["kept"] == 4800


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
        for origin in ("null", "http://", "http://["):  # no host is not the same as the host of a request without one
            assert b" 403 " in first_line(served, f"/feed?token={TOKEN}", "Host:", f"Origin: {origin}")


def first_line(served, path, *headers):
    """The first line of the answer to a WebSocket's request with these headers."""
    upgrade = ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
    key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.sendall("\r\n".join([f"GET {path} HTTP/1.1", *headers, *upgrade, key, "", ""]).encode())
        return client.makefile("rb").readline()


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
