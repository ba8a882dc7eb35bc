"""MQTT: samples as JSON, published to a topic of a broker."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from trueonline.inputs import positive
from trueonline.nexting.sources.addresses import Address, credentials, shown_address, tls_context
from trueonline.nexting.sources.cells import MalformedError
from trueonline.nexting.sources.clock import Clock
from trueonline.nexting.sources.json_rows import Objects, Row, parsed
from trueonline.nexting.sources.live_source import LiveSource
from trueonline.nexting.sources.ring import QUEUE
from trueonline.nexting.sources.sequence import KEY, Sequences

LIMIT = 2**20  # bytes in a message
KEEP_ALIVE = 15  # seconds; after half as much again without a word, the broker is taken to be gone
DELAYS = (1, 8)  # seconds between attempts to connect: the first and the longest
CHECK = "check the address, and that the broker runs"
CHECK_USER = "check the user and the password"
UNWELCOME = (134, 135)  # MQTT's codes for a bad user or password, and for one without authorisation


class Mqtt(LiveSource):
    """The messages of a broker on a topic.

    A message is a JSON object {"time": …, "a": …, "b": …}, or an array of such objects (see `json_rows`).

    The first connection must succeed. Later the source connects again whenever the broker has gone away, for ever. Messages
    published meanwhile are lost, and so are those that the broker drops. (mosquitto lets 1000 messages wait for a listener
    unless its `max_queued_messages` says otherwise.) They are counted if objects have a whole number under "seq" that grows by
    one from sample to sample.

    The counters are those of `LiveSource`, messages that are `huge` (over 1 MiB, dropped unread) or `retained` (the broker's
    copy of an old message for each new connection, dropped), and samples that were `not_received`, by their numbers.

    Parameters
    ----------
    url : str
        The address `mqtt://[user[:password]@]host[:port]/topic`, or `mqtts://…` with TLS. The topic may have wildcards (+ and
        #). The user may also be in the environment variable TRUEONLINE_MQTT_USER, and the password in
        TRUEONLINE_MQTT_PASSWORD. Neither is ever shown.
    signals : sequence of str
        The keys to read.
    time : str, optional
        The key with the time. It is "time" if there is no `rate` either.
    rate : float, optional
        Samples per second, to make times from.
    time_unit : {"s", "ms", "us", "ns"}
        The unit of the times.
    time_format : str, optional
        The form of times that are text, as `datetime.strptime` knows it.
    queue : int
        How many samples may wait for the reader.
    patience : float
        How many seconds the first connection may take. If it is refused, or there is no such host, the error comes at once.
    password_file : str or path, optional
        A file with the password.
    ca : str or path, optional
        A file with the certificates, in PEM, by which the broker's certificate is checked. The default is the system's.
    """

    kind = "mqtt"

    def __init__(
        self,
        url: str,
        signals: Sequence[str],
        *,
        time: str | None = None,
        rate: float | None = None,
        time_unit: str = "s",
        time_format: str | None = None,
        queue: int = QUEUE,
        patience: float = 10.0,
        password_file: str | os.PathLike | None = None,
        ca: str | os.PathLike | None = None,
    ) -> None:
        address = Address.parse(url)
        user, tls = credentials(address, password_file), tls_context(address, ca)
        time = "time" if time is None and rate is None else time
        super().__init__(signals, time, queue)
        self._clock: Clock = Clock(time, rate, time_unit, time_format)
        self._objects = Objects(self.signals, self._clock)
        self._sequences = Sequences()
        self._counts |= {"huge": 0, "retained": 0}
        self._number = 0
        self._topic = address.topic
        self._ready = threading.Event()
        self._refused, self._failed, self._hint = "", "", CHECK
        self._about_tls = "if it wants TLS, give mqtts://" if tls is None else "is there TLS at that port?"
        seconds = positive("patience", patience)
        self._client = self._connect(address, user, tls)
        self._ready.wait(seconds)
        if not self._ready.is_set() or self._refused:
            why = self._refused or f"it did not answer within {seconds:g} s{self._failed}"
            self.close()
            raise ValueError(f"cannot listen to {shown_address(url)}: {why}; {self._hint}")

    @classmethod
    def from_address(cls, address: str, signals: Sequence[str], clock: dict[str, Any], queue: int) -> Mqtt:
        return cls(address, signals, **clock, queue=queue)

    def _connect(self, address: Address, user: tuple[str, bytes] | None, tls: Any) -> Any:
        try:
            from paho.mqtt.client import Client
            from paho.mqtt.enums import CallbackAPIVersion
        except ImportError:
            raise ValueError("MQTT needs paho-mqtt 2 or later: pip install 'trueonline[mqtt]'") from None
        client = Client(CallbackAPIVersion.VERSION2)
        if user is not None:
            client.username_pw_set(user[0], user[1])  # type: ignore[arg-type]  # paho takes bytes too
        if tls is not None:
            client.tls_set_context(tls)
        client.on_connect, client.on_subscribe, client.on_message = self._connected, self._subscribed, self._message
        client.on_connect_fail, client.on_disconnect = self._not_connected, self._disconnected
        client.reconnect_delay_set(*DELAYS)
        client.connect_async(address.host, address.port, KEEP_ALIVE)
        client.loop_start()
        return client

    # --- In the client's thread ---

    def _connected(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self._refuse(f"the broker says {reason}", CHECK_USER if reason.value in UNWELCOME else CHECK)
        elif self._deadline is None:
            client.subscribe(self._topic, qos=1)

    def _not_connected(self, client: Any, data: Any) -> None:
        """There is no connection. The reason is the exception that paho is handling, which it does not pass on."""
        error = sys.exc_info()[1]
        distrust = getattr(error, "verify_message", None)  # of ssl.SSLCertVerificationError
        if isinstance(error, ConnectionRefusedError):
            self._refuse("the connection is refused: nothing listens there")
        elif isinstance(error, socket.gaierror) and error.errno != socket.EAI_AGAIN:
            self._refuse(f"there is no such host ({error.strerror})")
        elif distrust is not None:
            hint = "check the name of the host, or name the certificate of the broker's authority with --mqtt-ca"
            self._refuse(f"the broker's certificate is not trusted ({distrust})", hint)
        elif isinstance(error, ConnectionError):
            self._disconnected()
        elif isinstance(error, OSError):
            self._failed = f" ({error.strerror or error})"

    def _disconnected(self, *_: Any) -> None:
        self._failed = f" (the broker closes the connection: {self._about_tls})"

    def _subscribed(self, client: Any, data: Any, number: int, reasons: Any, properties: Any) -> None:
        if any(reason.is_failure for reason in reasons):
            self._refuse(f"the broker does not let it subscribe to {self._topic}")
        else:
            self._counts["connections"] += 1
            self.trouble = ""
            self._ready.set()

    def _refuse(self, why: str, hint: str = CHECK) -> None:
        """Only the first connection can be refused. Later ones are tried again and again."""
        if not self._ready.is_set():
            self._refused, self._hint = why, hint
            self._ready.set()
        else:
            self.trouble = why

    def _message(self, client: Any, data: Any, message: Any) -> None:
        try:
            self._take(message)
        except Exception as error:  # it would end the client's thread silently
            self._ring.fail(error)

    def _take(self, message: Any) -> None:
        if message.retain:
            self._counts["retained"] += 1
        elif len(message.payload) > LIMIT:
            self._counts["huge"] += 1
            self._objects.complain(f"a message of {len(message.payload):,} bytes is longer than 1 MiB", message.payload)
            self._sequences.note(_topic_of(message), None)
        else:
            rows = self._rows(message.payload, _topic_of(message))
            if len(rows) == 1:
                self._ring.put_one(*rows[0])
            elif rows:
                self._ring.put(np.array([time for time, _ in rows]), np.array([values for _, values in rows]))

    def _rows(self, payload: bytes, topic: str) -> list[Row]:
        """The samples of a message. A malformed one still counts for times that the rate gives."""
        rows = []
        try:
            found = parsed(payload)
        except MalformedError as error:
            self._counts["malformed"] += 1
            self._objects.complain(error, payload)
            self._number += 1
            self._sequences.note(topic, None)
            return []
        for each in found if type(found) is list else [found]:
            number, self._number = self._number, self._number + 1
            self._sequences.note(topic, each.get(KEY) if type(each) is dict else None)
            try:
                time, values = self._objects.row(each)
                rows.append((self._clock.made(number) if self._clock.time is None else time, values))
            except MalformedError as error:
                self._counts["malformed"] += 1
                self._objects.complain(error, payload if each is found else each)
        return rows

    # --- In the reader's thread ---

    def _want_no_more(self, seconds: float) -> None:
        """The broker still sends what it has queued."""
        self._client.unsubscribe(self._topic)

    def counters(self) -> dict[str, int]:
        return super().counters() | {"not_received": self._sequences.missing}

    def complaint(self) -> str | None:
        return self._objects.complaint()

    def close(self) -> None:
        self._ring.close()
        self._client.disconnect()
        self._client.loop_stop()


def _topic_of(message: Any) -> str:
    try:
        return message.topic
    except UnicodeDecodeError:  # brokers need not check it
        return ""
