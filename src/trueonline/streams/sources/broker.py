"""A connection to an MQTT broker. If the first attempt fails, an error says why. A lost connection is restored, for ever."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

from trueonline.optional import optional
from trueonline.streams.sources.addresses import Address, credentials, shown_address, tls_context

KEEP_ALIVE_SECONDS = 15  # seconds; after half as much again without a word, the broker is taken to be gone
RECONNECT_DELAYS = (1, 8)  # seconds between attempts to connect: the first and the longest
CHECK_ADDRESS = "check the address, and that the broker runs"
CHECK_USER = "check the user and the password"
UNWELCOME_CODES = (134, 135)  # MQTT's codes for a bad user or password, and for one without authorisation


class Broker:
    """A client of a broker. `client` is paho's, to which the owner adds callbacks before `open`.

    Parameters
    ----------
    url : str
        The address of a topic.
    password_file : str or path, optional
        A file with the password.
    ca : str or path, optional
        A file with the certificates by which the broker's is checked.
    welcomed : callable, optional
        Called with the client after each connection. It calls `ready` or `refuse` sooner or later. Without it, a connection
        is ready at once.
    """

    def __init__(
        self,
        url: str,
        password_file: str | os.PathLike | None = None,
        ca: str | os.PathLike | None = None,
        welcomed: Callable[[Any], None] | None = None,
    ) -> None:
        self.address, self._shown = Address.parse(url), shown_address(url)
        user, tls = credentials(self.address, password_file), tls_context(self.address, ca)
        self.trouble = ""  # why a lost connection cannot be restored at the moment
        self.connections = 0
        self._welcomed = welcomed
        self._decided = threading.Event()
        self._refused, self._failed, self._hint = "", "", CHECK_ADDRESS
        self._about_tls = "if it wants TLS, give mqtts://" if tls is None else "is there TLS at that port?"
        self.client = _client(user, tls)
        self.client.on_connect, self.client.on_connect_fail = self._connected, self._not_connected
        self.client.on_disconnect = self._disconnected

    def open(self, purpose: str, seconds: float) -> None:
        """Connect. ValueError if that is refused, or takes longer than so many seconds. `purpose` is for the message."""
        self.client.connect_async(self.address.host, self.address.port, KEEP_ALIVE_SECONDS)
        self.client.loop_start()
        self._decided.wait(seconds)
        if not self._decided.is_set() or self._refused:
            why = self._refused or f"it did not answer within {seconds:g} s{self._failed}"
            self.close()
            raise ValueError(f"cannot {purpose} {self._shown}: {why}; {self._hint}")

    def close(self) -> None:
        """Disconnect."""
        self.client.disconnect()
        self.client.loop_stop()

    # --- In the client's thread ---

    def ready(self) -> None:
        """All is well."""
        self.connections += 1
        self.trouble = ""
        self._decided.set()

    def refuse(self, why: str, hint: str = CHECK_ADDRESS) -> None:
        """Only the first connection can be refused. Later ones are tried again and again."""
        if not self._decided.is_set():
            self._refused, self._hint = why, hint
            self._decided.set()
        else:
            self.trouble = why

    def _connected(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self.refuse(f"the broker says {reason}", CHECK_USER if reason.value in UNWELCOME_CODES else CHECK_ADDRESS)
        elif self._welcomed is None:
            self.ready()
        else:
            self._welcomed(client)

    def _not_connected(self, client: Any, data: Any) -> None:
        """There is no connection. The reason is the exception that paho is handling, which it does not pass on."""
        error = sys.exc_info()[1]
        distrust = getattr(error, "verify_message", None)  # of ssl.SSLCertVerificationError
        if isinstance(error, ConnectionRefusedError):
            self.refuse("the connection is refused: nothing listens there")
        elif isinstance(error, socket.gaierror) and error.errno != socket.EAI_AGAIN:
            self.refuse(f"there is no such host ({error.strerror})")
        elif distrust is not None:
            hint = "check the name of the host, or name the certificate of the broker's authority with --mqtt-ca"
            self.refuse(f"the broker's certificate is not trusted ({distrust})", hint)
        elif isinstance(error, ConnectionError):
            self._disconnected()
        elif isinstance(error, OSError):
            self._failed = f" ({error.strerror or error})"

    def _disconnected(self, *_: Any) -> None:
        self._failed = f" (the broker closes the connection: {self._about_tls})"


def _client(user: tuple[str, bytes] | None, tls: Any) -> Any:
    paho = optional("MQTT needs paho-mqtt 2 or later", "paho.mqtt.client", "paho.mqtt.enums", extra="mqtt")
    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    if user is not None:
        client.username_pw_set(user[0], user[1])  # paho takes bytes too
    if tls is not None:
        client.tls_set_context(tls)
    client.reconnect_delay_set(*RECONNECT_DELAYS)
    return client
