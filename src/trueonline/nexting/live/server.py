"""Serves the page and its feed, from a thread of its own.

What protects it:

- It listens on this machine alone, unless there is a token, which every request then needs: as `?token=…` in the address, and
  afterwards in a cookie that no script can read and no other site can use.
- A page of another site could make the browser ask for us under a name of its own (DNS rebinding) or open our WebSocket. So on
  this machine only its own names are accepted as the Host, and the Origin of a WebSocket must be the Host.
- The page may load nothing from elsewhere and run no script but ours (Content-Security-Policy).
- What pages send is short and checked. A malformed message ends that connection and nothing else.
- Connections are few, and only those of pages last: all others serve one request each and end soon, whatever they send. So
  nobody can use up the descriptors, which the learner needs for its own files. Who holds all connections that are allowed can
  keep new pages away, but neither those that are there nor the learner are touched.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import re
import socket
import threading
from contextlib import suppress
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from time import time
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary, WeakSet

from trueonline.nexting.live import messages
from trueonline.nexting.live.hub import Hub

PACE = 1 / 40  # seconds between two frames to a page, at least
FRAME = 8192  # samples in a frame, at most
MOST_PAGES = 64
MOST_CONNECTIONS = 128  # those of pages among them
REQUEST = 10.0  # seconds from the beginning of a connection to the end of its request, at most
GIVE_UP = 60.0  # seconds after which a connection that takes nothing is closed
SEND_BUFFER = 1 << 18  # bytes that the system keeps for a page that is slow

TOKEN = re.compile(r"[A-Za-z0-9._~-]{16,200}")
TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".LICENSE": "text/plain",
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Connection": "close",  # a connection that waits for another request would be one that does nothing
}

log = logging.getLogger(__name__)


class Server:
    """Shows a hub at `url`, between `start` and `stop` or as a context. It can be started once.

    Port 0 is any that is free. `host` may be another address than this machine's own only with a `token` of at least 16
    letters, digits or any of "._~-".
    """

    def __init__(self, hub: Hub, host: str = "127.0.0.1", port: int = 0, token: str | None = None) -> None:
        _needs()
        if token is not None and not (isinstance(token, str) and TOKEN.fullmatch(token)):
            raise ValueError('token must have at least 16 characters, all of them letters, digits or any of "._~-"')
        if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port < 2**16:
            raise ValueError(f"port must be a whole number from 0 (any that is free) to 65,535, got {port!r}")
        address = "127.0.0.1" if host == "localhost" else host
        local = _is_local(address)
        if not local and token is None:
            raise ValueError(f"others could look at the page at {host}: give a token, or the host 127.0.0.1")
        self.hub = hub
        self._socket = _bound(address, port)
        self.port: int = self._socket.getsockname()[1]
        self._local, self._token = local, token
        # An address that stands for all of this machine's is no address to go to.
        shown = socket.gethostname() if address in ("0.0.0.0", "::") else f"[{address}]" if ":" in address else address
        self._name = shown
        self.url = f"http://{shown}:{self.port}/" + (f"?token={token}" if token else "")
        self._pages: set[_Page] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wanted = False  # whether some page waits for what is new
        self._thread: threading.Thread | None = None
        self._server: Any = None

    @property
    def pages(self) -> int:
        """How many pages are connected."""
        return len(self._pages)

    def start(self) -> None:
        """Begin to serve, and return when it does."""
        import uvicorn

        if self._thread is not None or self._socket.fileno() < 0:
            raise RuntimeError("a server can be started once: make another")
        config = uvicorn.Config(
            self._app(),
            log_config=None,
            log_level="critical",  # its messages would have the token in them
            access_log=False,
            lifespan="off",
            server_header=False,
            proxy_headers=False,  # by its address a connection is known
            http="h11",  # which has a limit to what it keeps of a request
            timeout_keep_alive=5,
            ws_max_size=messages.LONGEST,
            ws_per_message_deflate=False,  # would take memory and time for a page on this machine
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="trueonline-live", daemon=True)
        self._thread.start()
        ready.wait()
        if self._loop is None:
            raise RuntimeError("the server did not start")

    def stop(self) -> None:
        """Serve no longer. Pages are told, and try to connect again until there is another server."""
        if self._thread is not None:
            self.hub.forget(self._wake)
            self._server.should_exit = True
            self._thread.join()
        self._socket.close()

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- The thread -------------------------------------------------------------------------------

    def _run(self, ready: threading.Event) -> None:
        try:
            asyncio.run(self._serve(ready))
        finally:
            self._loop = None
            ready.set()

    async def _serve(self, ready: threading.Event) -> None:
        serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not (self._server.started or serving.done()):
            await asyncio.sleep(0.002)
        if not serving.done():
            self._loop = asyncio.get_running_loop()
            self.hub.listen(self._wake)
            ready.set()
        tidying = asyncio.create_task(self._tidy())
        await serving
        tidying.cancel()
        for connection in list(self._server.server_state.connections):  # those that take nothing, not even the end
            connection.transport.abort()
        await asyncio.sleep(0)

    async def _tidy(self) -> None:
        """End the connections that are no pages' and had their time."""
        loop = asyncio.get_running_loop()
        begun: WeakKeyDictionary[Any, float] = WeakKeyDictionary()
        while True:
            pages, now = {page.client for page in self._pages}, loop.time()
            for transport in [connection.transport for connection in self._server.server_state.connections]:
                if _peer(transport.get_extra_info("peername")) in pages:
                    begun[transport] = now  # a page that leaves has as long to say goodbye
                elif now > begun.setdefault(transport, now) + REQUEST:
                    transport.abort()
            await asyncio.sleep(REQUEST / 20)

    def _wake(self) -> None:
        """Called by the thread that learns."""
        if self._wanted and (loop := self._loop) is not None:
            self._wanted = False
            with suppress(RuntimeError):  # it was closed just now
                loop.call_soon_threadsafe(self._woken)

    def _woken(self) -> None:
        for page in self._pages:
            page.news.set()

    # --- What is served ---------------------------------------------------------------------------

    def _app(self) -> Any:
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.requests import Request
        from starlette.responses import PlainTextResponse, Response
        from starlette.routing import Route, WebSocketRoute

        files = _files()

        async def file(request: Request) -> Response:
            name = request.path_params.get("name", "index.html")
            if name not in files:
                return PlainTextResponse("There is no such page.\n", 404)
            kind, content = files[name]
            response = Response(content, media_type=kind)
            if self._token is not None and "token" in request.query_params:
                response.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
            return response

        routes = [Route("/", file), Route("/{name}", file), WebSocketRoute("/feed", self._feed)]
        app = Starlette(routes=routes, middleware=[Middleware(_Guard, self)])
        app.router.redirect_slashes = False
        return app

    @property
    def _cookie(self) -> str:
        return f"trueonline-{self.port}"  # cookies are shared by all ports of a host

    def refusal(self, connection: Any) -> str | None:
        """Why a request is refused, if it is. `connection` is Starlette's."""
        host = _without_80(connection.headers.get("host", ""))
        names = ("127.0.0.1", "localhost", "[::1]", self._name)
        if self._local and host not in {_without_80(f"{name}:{self.port}") for name in names}:
            return f"This page is for this machine alone, at {self._name}:{self.port}.\n"
        if connection.scope["type"] == "websocket" and (origin := connection.headers.get("origin")) is not None:
            parts = urlsplit(origin)
            if parts.scheme not in ("http", "https") or _without_80(parts.netloc) != host:
                return "Other sites cannot look at this page's data.\n"
        if self._token is not None:
            given = connection.query_params.get("token") or connection.cookies.get(self._cookie) or ""
            if not hmac.compare_digest(given.encode(), self._token.encode()):
                return "Open the page with the whole address that trueonline showed, with its token.\n"
        return None

    async def _feed(self, websocket: Any) -> None:
        await websocket.accept()
        if len(self._pages) >= MOST_PAGES:
            await websocket.close(1013, "too many pages")
            return
        page = _Page(self.hub, websocket)
        self._pages.add(page)
        tasks = [asyncio.create_task(page.hear()), asyncio.create_task(self._tell(page))]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for error in (task.exception() for task in done):
                if error is not None and not _is_gone(error, websocket):
                    log.error("the feed of a page failed", exc_info=error)
        finally:
            self._pages.discard(page)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _tell(self, page: _Page) -> None:
        """Send a page what is new, as fast as it takes it, but not faster than it can draw."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        await page.greet()
        while True:
            page.news.clear()
            self._wanted = True  # before looking, so that what comes after is announced
            if not await page.send_news():
                await page.news.wait()
                now = loop.time()
                if due > now:
                    await asyncio.sleep(due - now)
                due = max(due, now) + PACE


class _Page:
    """One connection: what it wants, and how far it was told."""

    def __init__(self, hub: Hub, websocket: Any) -> None:
        self.hub, self.websocket = hub, websocket
        self.client = _peer(websocket.scope["client"])
        self.news = asyncio.Event()
        self.wanted = (1, hub.first_shown())  # the number of the subscription, and its questions
        self._told = 0  # the subscription that was begun
        self._signals: tuple[int, ...] = ()
        self._next: int | None = None  # the next sample
        self._status = 0

    async def hear(self) -> None:
        """Do what the page asks for, until it is gone."""
        while (message := await self.websocket.receive())["type"] == "websocket.receive":
            try:
                kind, value = messages.request(message.get("text"), len(self.hub.questions))
            except ValueError as error:
                await self.websocket.close(1008, str(error))
                return
            if kind == "subscribe":
                self.wanted = self.wanted[0] + 1, value
                self.news.set()
            else:
                await self.websocket.send_text(messages.text("clock", {"yours": value, "mine": time()}))

    async def greet(self) -> None:
        await self.websocket.send_text(self.hub.hello())

    async def send_news(self) -> bool:
        """Send what is new, at most a frame; return whether there is more."""
        number, questions = self.wanted
        anew = number != self._told
        if anew:
            self._told, self._next, self._signals = number, None, self.hub.needed(questions)
            content = {"number": number, "questions": questions, "signals": self._signals, "clock": time()}
            await self.websocket.send_text(messages.text("subscribed", content))
        if self.hub.status[0] != self._status:
            self._status, words, scores = self.hub.status
            await self.websocket.send_text(words)
            if scores is not None:
                await self.websocket.send_bytes(scores)
        part = self.hub.read(self._next, self._signals, questions, FRAME)
        if anew or len(part.times) or part.missed:
            data = (part.times, part.received, part.columns, part.starts)
            await self.websocket.send_bytes(messages.samples(number, part.first, part.missed, anew, *data))
        self._next = part.end
        return len(part.times) == FRAME


class _Guard:
    """Refuses what is not allowed, and gives every answer the headers that protect the page."""

    def __init__(self, app: Any, server: Server) -> None:
        self.app, self.server = app, server

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.datastructures import MutableHeaders
        from starlette.requests import HTTPConnection
        from starlette.responses import PlainTextResponse

        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        refusal = self.server.refusal(HTTPConnection(scope))
        if scope["type"] == "websocket":
            if refusal is None:
                await self.app(scope, receive, send)
            else:
                await receive()
                await send({"type": "websocket.close", "code": 1008})
            return

        async def protected(message: Any) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        app = self.app if refusal is None else PlainTextResponse(refusal, 403)
        await app(scope, receive, protected)


# --- Parts ----------------------------------------------------------------------------------------


def _needs() -> None:
    for name in ("starlette", "uvicorn", "websockets"):
        if find_spec(name) is None:
            raise ValueError(f"the live page needs {name}: pip install 'trueonline[live]'")


def _is_local(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False  # a name: who knows where it leads


def _without_80(place: str) -> str:
    """A host and its port, without the port where it is the one that browsers leave out."""
    return place.lower().removesuffix(":80")


def _peer(address: Any) -> tuple[Any, ...] | None:
    """Address and port of the other side. Those of IPv6 have two more parts, which not everybody tells."""
    return tuple(address[:2]) if address else None


def _is_gone(error: BaseException, websocket: Any) -> bool:
    """Whether an error only says that the page has left, or was sent away."""
    from starlette.websockets import WebSocketDisconnect, WebSocketState

    ended = WebSocketState.DISCONNECTED in (websocket.client_state, websocket.application_state)
    return ended or isinstance(error, WebSocketDisconnect | OSError)


class _Listener(socket.socket):
    """Accepts a connection only while there are fewer than `MOST_CONNECTIONS`, and closes it at once otherwise."""

    def accept(self) -> tuple[socket.socket, Any]:
        accepted, address = socket.socket.accept(self)
        if sum(each.fileno() >= 0 for each in self._open) >= MOST_CONNECTIONS:
            accepted.close()
            raise ConnectionAbortedError  # which asyncio takes for one that ended before it was accepted
        self._open.add(accepted)
        return accepted, address

    @cached_property
    def _open(self) -> WeakSet[socket.socket]:
        return WeakSet()


def _bound(address: str, port: int) -> socket.socket:
    """A socket that listens. The options go over to the connections that it accepts."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = _Listener(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise ValueError(f"cannot serve at {address!r}, port {port}: {error}") from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * GIVE_UP))
        made.bind(place)
        made.listen(64)
    except OSError as error:
        made.close()
        raise ValueError(f"cannot serve at {address}, port {port}: {error}; give another port, or 0 for any") from None
    return made


@cache
def _files() -> dict[str, tuple[str, bytes]]:
    """The files of the page: their types and contents."""
    folder = Path(__file__).parent / "page"
    return {path.name: (TYPES[path.suffix], path.read_bytes()) for path in folder.iterdir() if path.suffix in TYPES}
