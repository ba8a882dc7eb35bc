"""The socket that the server listens on, with a limit to its connections."""

from __future__ import annotations

import socket
from functools import cached_property
from typing import Any
from weakref import WeakSet

from trueonline.platforms import claim_port, limit_silence

MAX_CONNECTIONS = 128  # including those of pages
SEND_TIMEOUT = 60.0  # seconds after which a connection that accepts nothing is closed
SEND_BUFFER = 1 << 18  # bytes that the operating system buffers for a slow page


class Listener(socket.socket):
    """Accepts a connection while there are fewer than `MAX_CONNECTIONS`, and closes it at once otherwise."""

    def accept(self) -> tuple[socket.socket, Any]:
        accepted, address = socket.socket.accept(self)
        if sum(each.fileno() >= 0 for each in self._open) >= MAX_CONNECTIONS:
            accepted.close()
            raise ConnectionAbortedError  # asyncio treats it as a connection that ended before it was accepted
        self._open.add(accepted)
        return accepted, address

    @cached_property
    def _open(self) -> WeakSet[socket.socket]:
        return WeakSet()


def listen(address: str, port: int) -> socket.socket:
    """A socket that listens. Accepted connections inherit its options."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = Listener(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise ValueError(f"cannot serve at {address!r}, port {port}: {error}") from None
    try:
        claim_port(listener)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        limit_silence(listener, SEND_TIMEOUT)
        listener.bind(place)
        listener.listen(64)
    except OSError as error:
        listener.close()
        raise ValueError(f"cannot serve at {address}, port {port}: {error}; give another port, or 0 for any") from None
    return listener
