"""Serves the page and its feed, from a thread of its own.

`protection` decides who may see the page. Requests are short and checked: a malformed message ends its own connection and
nothing else. A page that floods the server, or lets too much wait, is disconnected (`flood`). Connections are few, and only
those of pages last. All others serve one request each and end soon, whatever they send. So nobody can use up the file
descriptors that the learner needs for its own files. Somebody who holds all allowed connections can keep new pages away, but
affects neither the connected pages nor the learner.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from trueonline.optional import optional
from trueonline.streams.live import messages
from trueonline.streams.live.board import Board, Hubs
from trueonline.streams.live.flood import limited_protocol
from trueonline.streams.live.hub import Hub
from trueonline.streams.live.listener import listen
from trueonline.streams.live.page_connection import PageConnection, has_left, peer
from trueonline.streams.live.protection import Access, Guard, check_token, is_local

FRAME_INTERVAL = 1 / 40  # seconds between two frames to a page, at least
MAX_PAGES = 64
REQUEST_TIMEOUT = 10.0  # seconds from the beginning of a connection to the end of its request, at most
PACKAGES = ("starlette", "uvicorn", "websockets")
TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".LICENSE": "text/plain",
}

log = logging.getLogger(__name__)


def check_packages() -> None:
    """Raise a MissingPackageError if a package is missing that the page needs."""
    for name in PACKAGES:
        optional(f"the live page needs {name}", name, extra="live")


class Server:
    """Serves the page of a hub at `url`, between `start` and `stop` or as a context. A server can be started once.

    Parameters
    ----------
    hub : Hub or Hubs
        The signals and predictions to show: of one stream, or of each signal of a fleet.
    host : str
        The address to serve at. Every address but this machine's own needs a token.
    port : int
        The port. 0 takes a free one.
    token : str, optional
        A secret of at least 16 letters, digits or any of "._~-".
    board : Board, optional
        What `/metrics`, `/health` and `/signals` tell.

    Raises
    ------
    ValueError
        If a package is missing, the token is weak or missing, or the port is taken.
    """

    def __init__(
        self,
        hub: Hub | Hubs,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        board: Board | None = None,
    ) -> None:
        check_packages()
        check_token(token)
        if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port < 2**16:
            raise ValueError(f"port must be a whole number from 0 (any free port) to 65,535, got {port!r}")
        address = "127.0.0.1" if host == "localhost" else host
        local = is_local(address)
        if not local and token is None:
            raise ValueError(f"other machines could see the page at {host}: give a token, or the host 127.0.0.1")
        self.hub = hub
        self._board = board or Board()
        self._socket = listen(address, port)
        self.port: int = self._socket.getsockname()[1]
        # An address that stands for all addresses of this machine cannot be opened in a browser.
        name = socket.gethostname() if address in ("0.0.0.0", "::") else f"[{address}]" if ":" in address else address
        self.access = Access(local, name, self.port, token)
        self.url = f"http://{name}:{self.port}/" + (f"?token={token}" if token else "")
        self._pages: set[PageConnection] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wanted = False  # whether a page waits for news
        self._thread: threading.Thread | None = None
        self._server: Any = None

    @property
    def pages(self) -> int:
        """The number of connected pages."""
        return len(self._pages)

    def start(self) -> None:
        """Start to serve. Return once the page can be opened."""
        import uvicorn

        if self._thread is not None or self._socket.fileno() < 0:
            raise RuntimeError("a server can be started once: create another")
        config = uvicorn.Config(
            self._app(),
            log_config=None,
            log_level="critical",  # its messages would contain the token
            access_log=False,
            lifespan="off",
            server_header=False,
            proxy_headers=False,  # a connection is known by its address
            http="h11",  # it limits the size of a request
            timeout_keep_alive=5,
            ws=limited_protocol(),
            ws_max_size=messages.MAX_MESSAGE,
            ws_per_message_deflate=False,  # it would cost memory and time, for a page on this machine
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
        """Stop serving. Pages are disconnected, and try to connect again until there is another server."""
        if self._thread is not None:
            self.hub.wake = lambda: None
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
            with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:  # the one that calls Listener.accept
                runner.run(self._serve(ready))
        finally:
            self._loop = None
            ready.set()

    async def _serve(self, ready: threading.Event) -> None:
        serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not (self._server.started or serving.done()):
            await asyncio.sleep(0.002)
        if not serving.done():
            self._loop = asyncio.get_running_loop()
            self.hub.wake = self._wake
            ready.set()
        tidying = asyncio.create_task(self._tidy())
        await serving
        tidying.cancel()
        for connection in list(self._server.server_state.connections):  # those that accept nothing, not even the end
            connection.transport.abort()
        await asyncio.sleep(0)

    async def _tidy(self) -> None:
        """End connections that do not belong to a page and have had their time."""
        loop = asyncio.get_running_loop()
        begun: WeakKeyDictionary[Any, float] = WeakKeyDictionary()
        while True:
            pages, now = {page.client for page in self._pages}, loop.time()
            for transport in [connection.transport for connection in self._server.server_state.connections]:
                if peer(transport.get_extra_info("peername")) in pages:
                    begun[transport] = now  # a page that leaves has the same time for its goodbye
                elif now > begun.setdefault(transport, now) + REQUEST_TIMEOUT:
                    transport.abort()
            await asyncio.sleep(REQUEST_TIMEOUT / 20)

    def _wake(self) -> None:
        """Announce news to the pages. The thread that learns calls this."""
        if self._wanted and (loop := self._loop) is not None:
            self._wanted = False
            with suppress(RuntimeError):  # the loop was closed just now
                loop.call_soon_threadsafe(self._woken)

    def _woken(self) -> None:
        for page in self._pages:
            page.news.set()

    # --- Pages and their feed ---------------------------------------------------------------------------

    def _app(self) -> Any:
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.requests import Request
        from starlette.responses import PlainTextResponse, Response
        from starlette.routing import Route, WebSocketRoute

        files = page_files()

        first = "index.html" if isinstance(self.hub, Hub) else "fleet.html"
        told = {"metrics": self._board.metrics, "health": self._board.health, "signals": self._board.signals}

        async def file(request: Request) -> Response:
            name = request.path_params.get("name", "index.html" if "signal" in request.query_params else first)
            if name in told:
                status, kind, content = told[name]()
                return Response(content, status, media_type=kind)
            if name not in files:
                return PlainTextResponse("There is no such page.\n", 404)
            kind, content = files[name]
            response = Response(content, media_type=kind)
            if self.access.token is not None and "token" in request.query_params:
                response.set_cookie(self.access.cookie, self.access.token, httponly=True, samesite="strict")
            return response

        routes = [Route("/", file), Route("/{name}", file), WebSocketRoute("/feed", self._feed)]
        app = Starlette(routes=routes, middleware=[Middleware(Guard, self.access)])
        app.router.redirect_slashes = False
        return app

    async def _feed(self, websocket: Any) -> None:
        await websocket.accept()
        if len(self._pages) >= MAX_PAGES:
            await websocket.close(1013, "too many pages")
            return
        hub = self.hub if isinstance(self.hub, Hub) else self.hub.get(websocket.query_params.get("signal", ""))
        if hub is None:
            await websocket.close(1008, "there is no such signal")
            return
        page = PageConnection(hub, websocket)
        self._pages.add(page)
        hub.pages += 1
        tasks = [asyncio.create_task(page.hear()), asyncio.create_task(self._tell(page))]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for error in (task.exception() for task in done):
                if error is not None and not has_left(error, websocket):
                    log.error("the feed of a page failed", exc_info=error)
        finally:
            self._pages.discard(page)
            hub.pages -= 1
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _tell(self, page: PageConnection) -> None:
        """Send news to a page as fast as the page accepts it, but not faster than it can draw."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        await page.greet()
        while True:
            page.news.clear()
            self._wanted = True  # before looking, so that later news is announced
            if not await page.send_news():
                await page.news.wait()
                now = loop.time()
                if due > now:
                    await asyncio.sleep(due - now)
                due = max(due, now) + FRAME_INTERVAL


@cache
def page_files() -> dict[str, tuple[str, bytes]]:
    """The type and content of each file of the page."""
    folder = Path(__file__).parent / "page"
    return {path.name: (TYPES[path.suffix], path.read_bytes()) for path in folder.iterdir() if path.suffix in TYPES}
