"""Who may see the page: hosts, origins and tokens, and the headers that protect the page.

- The server listens on this machine only, unless there is a token. Every request then needs the token: as `?token=…` in the
  address, and afterwards in a cookie that scripts cannot read and other sites cannot use.
- A page of another site could make the browser address this server under a name of its own (DNS rebinding), or open the
  WebSocket. So on this machine only its own names are accepted as the Host, and the Origin of a WebSocket must be the Host.
- The page may load nothing from elsewhere, and run only its own scripts (Content-Security-Policy).
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

TOKEN = re.compile(r"[A-Za-z0-9._~-]{16,200}")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Connection": "close",  # an idle connection would take one of the few places
}


@dataclass
class Access:
    """Decides about requests. `local` says that only this machine may connect, and `name` is the host in the address."""

    local: bool
    name: str
    port: int
    token: str | None

    @property
    def cookie(self) -> str:
        """The name of the cookie with the token. All ports of a host share their cookies."""
        return f"trueonline-{self.port}"

    def refusal(self, connection: Any) -> str | None:
        """Why a request is refused, or None if it is allowed. `connection` is Starlette's."""
        host = without_80(connection.headers.get("host", ""))
        names = ("127.0.0.1", "localhost", "[::1]", self.name)
        if self.local and host not in {without_80(f"{name}:{self.port}") for name in names}:
            return f"This page is for this machine alone, at {self.name}:{self.port}.\n"
        if connection.scope["type"] == "websocket" and (origin := connection.headers.get("origin")) is not None:
            place = place_of(origin)
            if not place or without_80(place) != host:
                return "Other sites cannot look at this page's data.\n"
        if self.token is not None:
            token = connection.query_params.get("token") or connection.cookies.get(self.cookie) or ""
            if not hmac.compare_digest(token.encode(), self.token.encode()):
                return "Open the page with the whole address that trueonline showed, with its token.\n"
        return None


class Guard:
    """Refuses requests that are not allowed, and adds the protecting headers to every response."""

    def __init__(self, app: Any, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.datastructures import MutableHeaders
        from starlette.requests import HTTPConnection
        from starlette.responses import PlainTextResponse

        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        refusal = self.access.refusal(HTTPConnection(scope))
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


def check_token(token: Any) -> None:
    """ValueError unless the token is None, or long enough and safe in an address."""
    if token is not None and not (isinstance(token, str) and TOKEN.fullmatch(token)):
        raise ValueError('token must have at least 16 characters, all of them letters, digits or any of "._~-"')


def is_local(address: str) -> bool:
    """Whether an address is this machine's own."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False  # a name, which may lead anywhere


def place_of(origin: str) -> str:
    """The host and port of an Origin, or "" if it is not the origin of a web page."""
    try:
        parts = urlsplit(origin)
    except ValueError:  # brackets without an IPv6 address between them
        return ""
    return parts.netloc if parts.scheme in ("http", "https") else ""


def without_80(place: str) -> str:
    """A host and its port, without port 80, which browsers leave out."""
    return place.lower().removesuffix(":80")
