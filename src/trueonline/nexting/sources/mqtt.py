"""MQTT: samples as JSON, published to a topic of a broker."""

from __future__ import annotations

import re
import socket
import sys
import threading
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import numpy as np

from trueonline.inputs import count, positive
from trueonline.nexting.sources.cells import MalformedError
from trueonline.nexting.sources.json_rows import Objects, Row, parsed
from trueonline.nexting.sources.ring import QUEUE, Ring
from trueonline.nexting.sources.sample import Block, Clock, Source, named

LIMIT = 2**20  # bytes in a message
KEEP_ALIVE = 15  # seconds; after half as much again without a word, the broker is taken to be gone
DELAYS = (1, 8)  # seconds between attempts to connect: the first and the longest
ADDRESS = re.compile(
    r"mqtt://(?:(?P<user>[^:@/]*)(?::(?P<password>[^@/]*))?@)?"
    r"(?P<host>\[[^\]/]+\]|[^:/@]+)(?::(?P<port>\d{1,5}))?/(?P<topic>.+)"
)


class Mqtt(Source):
    """The messages of a broker on a topic.

    A message is a JSON object {"time": …, "a": …, "b": …}, or an array of such objects (see `json_rows`).

    The first connection must succeed. Later the source connects again whenever the broker has gone away, for ever. Messages
    published meanwhile are lost, and so are those that the broker drops. (mosquitto lets 1000 messages wait for a listener
    unless its `max_queued_messages` says otherwise.)

    The counters are messages or objects that are `malformed`, messages that are `huge` (over 1 MiB, dropped unread) or
    `retained` (the broker's copy of an old message for each new connection, dropped), `connections`, samples `received`, and
    samples that made way for others because the reader was too slow (`dropped_overflow`).

    Parameters
    ----------
    url : str
        The address `mqtt://[user[:password]@]host[:port]/topic`. The topic may have wildcards (+ and #).
    signals : sequence of str
        The keys to read.
    time : str, optional
        The key with the time. It is "time" if there is no `rate` either.
    rate : float, optional
        Samples per second, to make times from.
    time_unit : {"s", "ms", "us", "ns"}
        The unit of the times.
    queue : int
        How many samples may wait for the reader.
    patience : float
        How many seconds the first connection may take. If it is refused, or there is no such host, the error comes at once.
    """

    def __init__(
        self,
        url: str,
        signals: Sequence[str],
        *,
        time: str | None = None,
        rate: float | None = None,
        time_unit: str = "s",
        queue: int = QUEUE,
        patience: float = 10.0,
    ) -> None:
        address = ADDRESS.fullmatch(url)
        port = int((address and address["port"]) or 1883)
        if address is None or not 0 < port < 2**16 or not _can_be_host(address["host"]):
            raise ValueError(f"the address must be mqtt://[user[:password]@]host[:port]/topic, got {_shown(url)}")
        time = "time" if time is None and rate is None else time
        self.signals = named(signals, time)
        self._clock = Clock(time, rate, time_unit)
        self._objects = Objects(self.signals, self._clock)
        self._ring = Ring(len(self.signals), count("queue", queue))
        self._counts = {"malformed": 0, "huge": 0, "retained": 0, "connections": 0}
        self._samples = self._number = 0
        self._topic = address["topic"]
        self._ready = threading.Event()
        self._refused = self._failed = ""
        seconds = positive("patience", patience)
        self._client = self._connect(address, port)
        self._ready.wait(seconds)
        if not self._ready.is_set() or self._refused:
            self.close()
            why = self._refused or f"it did not answer within {seconds:g} s{self._failed}"
            raise ValueError(f"cannot listen to {_shown(url)}: {why}; check the address, and that the broker runs")

    @classmethod
    def from_address(cls, address: str, signals: Sequence[str], clock: dict[str, Any], queue: int) -> Mqtt:
        return cls(address, signals, **clock, queue=queue)

    def _connect(self, address: re.Match[str], port: int) -> Any:
        try:
            from paho.mqtt.client import Client
            from paho.mqtt.enums import CallbackAPIVersion
        except ImportError:
            raise ValueError("MQTT needs paho-mqtt 2 or later: pip install 'trueonline[mqtt]'") from None
        client = Client(CallbackAPIVersion.VERSION2)
        if address["user"] is not None:
            client.username_pw_set(unquote(address["user"]), unquote(address["password"] or ""))
        client.on_connect, client.on_subscribe, client.on_message = self._connected, self._subscribed, self._message
        client.on_connect_fail = self._not_connected
        client.reconnect_delay_set(*DELAYS)
        client.connect_async(address["host"].strip("[]"), port, KEEP_ALIVE)
        client.loop_start()
        return client

    # --- In the client's thread ---

    def _connected(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self._refuse(f"the broker says {reason}")
        else:
            client.subscribe(self._topic, qos=1)

    def _not_connected(self, client: Any, data: Any) -> None:
        """There is no connection. The reason is the exception that paho is handling, which it does not pass on."""
        error = sys.exc_info()[1]
        if isinstance(error, ConnectionRefusedError):
            self._refuse("the connection is refused: nothing listens there")
        elif isinstance(error, socket.gaierror) and error.errno != socket.EAI_AGAIN:
            self._refuse(f"there is no such host ({error.strerror})")
        elif isinstance(error, OSError):
            self._failed = f" ({error.strerror or error})"

    def _subscribed(self, client: Any, data: Any, number: int, reasons: Any, properties: Any) -> None:
        if any(reason.is_failure for reason in reasons):
            self._refuse(f"the broker does not let it subscribe to {self._topic}")
        else:
            self._counts["connections"] += 1
            self._ready.set()

    def _refuse(self, why: str) -> None:
        """Only the first connection can be refused. Later ones are tried again and again."""
        if not self._ready.is_set():
            self._refused = why
            self._ready.set()

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
        else:
            rows = self._rows(message.payload)
            if len(rows) == 1:
                self._ring.put_one(*rows[0])
            elif rows:
                self._ring.put(np.array([time for time, _ in rows]), np.array([values for _, values in rows]))

    def _rows(self, payload: bytes) -> list[Row]:
        """The samples of a message. A malformed one still counts for times that the rate gives."""
        rows = []
        try:
            found = parsed(payload)
        except MalformedError as error:
            self._counts["malformed"] += 1
            self._objects.complain(error, payload)
            self._number += 1
            return []
        for each in found if type(found) is list else [found]:
            number, self._number = self._number, self._number + 1
            try:
                time, values = self._objects.row(each)
                rows.append((self._clock.made(number) if self._clock.time is None else time, values))
            except MalformedError as error:
                self._counts["malformed"] += 1
                self._objects.complain(error, payload if each is found else each)
        return rows

    # --- In the reader's thread ---

    def read(self, timeout: float | None = None) -> Block | None:
        block = self._ring.take(timeout)
        self._samples += 0 if block is None else len(block)
        return block

    def position(self) -> dict[str, Any]:
        return {"kind": "mqtt", "samples": self._samples}

    def counters(self) -> dict[str, int]:
        return {**self._counts, "received": self._ring.received, "dropped_overflow": self._ring.dropped}

    def complaint(self) -> str | None:
        return self._objects.complaint()

    def close(self) -> None:
        self._ring.close()
        self._client.disconnect()
        self._client.loop_stop()


def _can_be_host(host: str) -> bool:
    """Whether Python can write the name of a host. If not, it would end the client's thread."""
    try:
        return bool(host.encode("idna"))
    except UnicodeError:
        return False


def _shown(url: str) -> str:
    """The address without its password."""
    return re.sub(r"(//[^:@/]*):[^@/]*@", r"\1:…@", str(url))
