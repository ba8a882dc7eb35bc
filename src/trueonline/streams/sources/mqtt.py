"""MQTT: samples as JSON, published to a topic of a broker."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from trueonline.inputs import positive
from trueonline.streams.sources.broker import Broker
from trueonline.streams.sources.cells import MalformedError
from trueonline.streams.sources.clock import Clock
from trueonline.streams.sources.json_rows import Objects, Row, parsed
from trueonline.streams.sources.labels import Labels
from trueonline.streams.sources.live_source import LiveSource
from trueonline.streams.sources.ring import QUEUE_SAMPLES
from trueonline.streams.sources.sequence import SEQUENCE_KEY, Sequences

MAX_MESSAGE_BYTES = 2**20  # bytes in a message
TOPIC = "topic"  # as the column of names: the names are in the topic


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
    labels : Labels, optional
        The codes of the last of the signals, which names the signal of a sample. If its column is "topic", the name is the part of
        the topic that the wildcards stand for.
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
        labels: Labels | None = None,
        queue: int = QUEUE_SAMPLES,
        patience: float = 10.0,
        password_file: str | os.PathLike | None = None,
        ca: str | os.PathLike | None = None,
    ) -> None:
        time = "time" if time is None and rate is None else time
        super().__init__(signals, time, queue)
        self._clock: Clock = Clock(time, rate, time_unit, time_format, labels=labels)
        self._objects = Objects(self.signals, self._clock)
        self._sequences = Sequences()
        self._counts |= {"huge": 0, "retained": 0}
        self._number = 0
        seconds = positive("patience", patience)
        self._broker = Broker(url, password_file, ca, self._subscribe)
        self._topic, self._client = self._broker.address.topic, self._broker.client
        self._client.on_subscribe, self._client.on_message = self._subscribed, self._message
        self._broker.open("listen to", seconds)

    # --- In the client's thread ---

    def _subscribe(self, client: Any) -> None:
        if self._deadline is None:
            client.subscribe(self._topic, qos=1)

    def _subscribed(self, client: Any, data: Any, number: int, reasons: Any, properties: Any) -> None:
        if any(reason.is_failure for reason in reasons):
            self._broker.refuse(f"the broker does not let it subscribe to {self._topic}")
        else:
            self._broker.ready()

    def _message(self, client: Any, data: Any, message: Any) -> None:
        try:
            self._take(message)
        except Exception as error:  # it would end the client's thread silently
            self._ring.fail(error)

    def _take(self, message: Any) -> None:
        if message.retain:
            self._counts["retained"] += 1
        elif len(message.payload) > MAX_MESSAGE_BYTES:
            self._counts["huge"] += 1
            self._objects.complain(f"a message of {len(message.payload):,} bytes is longer than 1 MiB", message.payload)
            self._sequences.note(_topic_of(message), None)
        else:
            rows = self._rows(message.payload, _topic_of(message))
            if rows:
                self._ring.put([time for time, _ in rows], [values for _, values in rows])

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
            self._sequences.note(topic, each.get(SEQUENCE_KEY) if type(each) is dict else None)
            if self._clock.labels is not None and self._clock.labels.column == TOPIC and type(each) is dict:
                each[TOPIC] = matched(self._topic, topic)
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

    @property
    def trouble(self) -> str:  # type: ignore[override]
        """Why a lost connection cannot be restored at the moment."""
        return self._broker.trouble

    def counters(self) -> dict[str, int]:
        return super().counters() | {"connections": self._broker.connections, "not_received": self._sequences.missing}

    def complaint(self) -> str | None:
        return self._objects.complaint()

    def close(self) -> None:
        self._ring.close()
        self._broker.close()


def matched(pattern: str, topic: str) -> str:
    """The levels of a topic that the wildcards of a pattern stand for.

    >>> matched("plant/+/pump/#", "plant/north/pump/2/flow")
    'north/2/flow'
    """
    levels, wild = topic.split("/"), pattern.split("/")
    rest = levels[len(wild) - 1 :] if wild[-1] == "#" else []
    return "/".join([level for level, each in zip(levels, wild, strict=False) if each == "+"] + rest) or topic


def _topic_of(message: Any) -> str:
    try:
        return message.topic
    except UnicodeDecodeError:  # brokers need not check it
        return ""
