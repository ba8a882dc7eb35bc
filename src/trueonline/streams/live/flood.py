"""Limits to what one connection of a page may send, and to what waits for it.

A page says little: which questions it shows, and a few times what its clock is. The server answers pings at once, whether or not
the page takes the answers. So a page that sends without end is disconnected, and so is one that lets too much wait.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Any

MAX_BYTES_A_MINUTE = 1 << 20  # bytes from a page in a minute
MAX_WAITING_BYTES = 4 << 20  # bytes that wait for a page before more is added. The largest frame has about two megabytes
MINUTE = 60.0  # seconds


class LimitedTransport:
    """A transport that ends when too much waits to be sent, and ignores what is written after its end.

    asyncio would complain on standard error about each such write.
    """

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    def write(self, data: bytes) -> None:
        if self._transport.get_write_buffer_size() > MAX_WAITING_BYTES:
            self._transport.abort()
        if not self._transport.is_closing():
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Limited(asyncio.Protocol):
    """The limits, for a class of WebSocket connections to inherit first."""

    transport: Any
    _since, _received = 0.0, 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(LimitedTransport(transport))  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        now = monotonic()
        if now > self._since + MINUTE:
            self._since, self._received = now, 0
        self._received += len(data)
        if self._received > MAX_BYTES_A_MINUTE:
            self.transport.abort()
        else:
            super().data_received(data)


def limited_protocol() -> Any:
    """Uvicorn's class of WebSocket connections, with the limits."""
    from uvicorn.protocols.websockets.auto import AutoWebSocketsProtocol

    return type("LimitedWebSocket", (Limited, AutoWebSocketsProtocol), {})  # type: ignore[arg-type]
