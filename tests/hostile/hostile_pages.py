"""Clients of the live page that flood, stall and lie, all at once, against a real `trueonline live`."""

from __future__ import annotations

import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil

from tests.hostile import FINE, PromiseError
from tests.processes import start
from tests.streams.live.helpers import MALFORMED, TOKEN, connect, get, heard

PROMISE = (
    "Pages that flood, stall and lie are refused or ended: the server answers a good page, and its memory stays small."
)
TRIALS = 20
SECONDS = 5.0  # of attack
GROWTH = 25  # MB that the server may take for it
LINES = 20  # that the server may print
COMMAND = "from trueonline.cli import main; main()"

Attack = Callable[[int, random.Random, Callable[[], bool]], Any]


def trial(rng: random.Random, folder: Path, shared: Path) -> str:
    said = folder / "said.txt"
    arguments = ["live", "arm", "--target", "force", "--horizon", "0.5s", "--token", TOKEN, "--port", "0"]
    with open(said, "wb") as file:
        process = start([sys.executable, "-c", COMMAND, *arguments], stdout=file, stderr=file)
    try:
        port = port_of(process, said)
        good_page(port)
        with connect(SimpleNamespace(port=port), f"/feed?token={TOKEN}") as watcher:
            before = steady_memory(process)
            attack(rng, port)
            watcher.send('{"subscribe": [0]}')
            heard(watcher, bytes)  # a page that was there before is still served
        good_page(port)
        grown = memory(process) - before
        process.send_signal(signal.SIGINT)
        code = process.wait(60)
    finally:
        process.kill()
        process.wait()
    text = said.read_text(errors="replace")
    if grown > GROWTH:
        raise PromiseError(f"the server took {grown:.0f} MB for hostile pages")
    if code or "Traceback" in text or text.count("\n") > LINES + 20:
        raise PromiseError(f"the server ended with status {code} and {text.count(chr(10))} lines: {text[:1000]}")
    return FINE


def memory(process: subprocess.Popen) -> int:
    """The memory of the server now, in MB."""
    return psutil.Process(process.pid).memory_info().rss // 2**20


def steady_memory(process: subprocess.Popen) -> int:
    """The same, once it has all that it needs to learn."""
    seen: list[int] = []
    while len(seen) < 8 or seen[-1] > seen[-8]:
        time.sleep(0.25)
        seen.append(memory(process))
    return seen[-1]


def port_of(process: subprocess.Popen, said: Path) -> int:
    while process.poll() is None:
        if found := re.search(r"http://127\.0\.0\.1:(\d+)/", said.read_text(encoding="utf-8")):
            return int(found[1])
        time.sleep(0.05)
    raise PromiseError(f"the server did not start: {said.read_text(encoding='utf-8')}")


def good_page(port: int) -> None:
    """Open the page and get samples. Somebody who holds all connections may delay that, for as long as a request may take."""
    end = time.monotonic() + 40.0
    while True:
        try:
            status, _, _ = get(SimpleNamespace(port=port), f"/?token={TOKEN}")
            with connect(SimpleNamespace(port=port), f"/feed?token={TOKEN}") as page:
                heard(page, "hello")
                page.send('{"subscribe": [0]}')
                heard(page, bytes)
            if status == 200:
                return
        except Exception as error:
            if time.monotonic() > end:
                raise PromiseError(f"a good page was not served: {error!r}") from error
        time.sleep(0.2)


def attack(rng: random.Random, port: int) -> None:
    """Some attacks side by side, each again and again until the time is over."""
    end, wrong = time.monotonic() + SECONDS, []

    def repeat(one: Attack, own: random.Random) -> None:
        while time.monotonic() < end:
            try:
                one(port, own, lambda: time.monotonic() < end)
            except OSError:
                time.sleep(0.02)  # the server has ended the connection
            except Exception as error:
                wrong.append(error)
                return

    chosen = rng.sample(ATTACKS, rng.randint(1, 4))
    threads = [threading.Thread(target=repeat, args=(one, random.Random(rng.random()))) for one in chosen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]


# --- Attacks --------------------------------------------------------------------------------------


def opened(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=2.0)


def request(port: int, path: str = f"/feed?token={TOKEN}", **headers: str) -> bytes:
    """A request for the feed; underscores in the names of headers are dashes."""
    told = {"Host": f"127.0.0.1:{port}", "Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13"}
    told |= {"Sec_WebSocket_Key": "x3JJHMbDL1EzLkh9GBhXDw==", **headers}
    lines = [f"GET {path} HTTP/1.1", *(f"{name.replace('_', '-')}: {value}" for name, value in told.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def upgraded(port: int) -> socket.socket:
    """A socket that speaks WebSocket."""
    connection = opened(port)
    connection.sendall(request(port))
    connection.recv(4096)
    return connection


def frame(kind: int, payload: bytes) -> bytes:
    """A masked frame, with a mask of zeros."""
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + struct.pack(">H", size)
    return bytes([0x80 | kind]) + length + bytes(4) + payload


def flood_with_pings(port: int, rng: random.Random, going: Callable[[], bool]) -> None:
    with upgraded(port) as connection:
        pings = frame(9, rng.randbytes(125)) * 100
        while going():
            connection.sendall(pings)


def flood_and_reset(port: int, rng: random.Random, going: Callable[[], bool]) -> None:
    with upgraded(port) as connection:
        for _ in range(rng.randrange(1, 200)):
            connection.sendall(frame(rng.choice([1, 9]), b'{"subscribe": [0]}' * 3))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def flood_with_questions(port: int, rng: random.Random, going: Callable[[], bool]) -> None:
    with upgraded(port) as connection:
        while going():
            connection.sendall(frame(1, b'{"clock": 1}') * 50 + frame(1, b'{"subscribe": [0]}'))


def send_garbage_frames(port: int, rng: random.Random, going: Callable[[], bool]) -> None:
    with upgraded(port) as connection:
        lying = bytes([0x82, 0xFF]) + struct.pack(">Q", 2**62) + bytes(4)  # a message of 4 EB
        malformed = [m.encode() if isinstance(m, str) else m for m in MALFORMED if m is not None]
        connection.sendall(rng.choice([rng.randbytes(500), lying, *(frame(1, each) for each in malformed)]))
        connection.recv(100)


def send_garbage_requests(port: int, rng: random.Random, going: Callable[[], bool]) -> None:
    with opened(port) as connection:
        long = b"GET /" + b"a" * 10**5 + b" HTTP/1.1\r\n"
        headers = b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(10**4))
        connection.sendall(
            rng.choice([rng.randbytes(1000), long, headers, b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n"])
        )
        connection.recv(100)


def never_finish(port: int, rng: random.Random, going: Callable[[], bool]) -> None:
    sockets = [opened(port) for _ in range(20)]
    try:
        while going():
            for connection in sockets:
                connection.sendall(b"X" if rng.random() < 0.5 else b"G")
            time.sleep(0.1)
    finally:
        for connection in sockets:
            connection.close()


def subscribe_and_never_read(port: int, rng: random.Random, going: Callable[[], bool]) -> None:
    with upgraded(port) as connection:
        connection.sendall(frame(1, b'{"subscribe": [0]}'))
        while going():
            time.sleep(0.1)


def lie(port: int, rng: random.Random, going: Callable[[], bool]) -> None:
    """Another host, another origin or another token is refused, and never an error of the server."""
    told = rng.choice(
        [
            request(port, Host="evil.example"),
            request(port, Origin=rng.choice(["http://evil.example", "null", "http://[", "file://", "\xff"])),
            request(port, "/feed?token=" + rng.choice(["", "wrong", TOKEN[:-1], "%ff"])),
            request(port, "/feed"),
            request(port, "/", Upgrade="", Connection="close"),
        ]
    )
    with opened(port) as connection:
        connection.sendall(told)
        with suppress(TimeoutError):
            answer = connection.recv(100)
            if answer and not answer.startswith((b"HTTP/1.1 403", b"HTTP/1.1 400")):
                raise PromiseError(f"{told!r} was answered with {answer!r}")


ATTACKS: list[Attack] = [
    flood_with_pings, flood_with_pings, flood_and_reset, flood_with_questions, send_garbage_frames, send_garbage_requests,
    never_finish, subscribe_and_never_read, lie,
]  # fmt: skip
