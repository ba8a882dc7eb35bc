"""Predictions and alerts, sent to a topic of an MQTT broker as they are made.

A sample is a message {"time": …, "predictions": {NAME: {"value": …, "low": …, "high": …}}, "surprise": …}. An alert is a message on
the topic TOPIC/alerts, as in the file of alerts. Times are as in the output. An unknown value is null. The broker acknowledges
each message (QoS 1), so that one may come twice after a connection was lost, but none is lost unnoticed.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from trueonline.streams.outputs.alerts import Alert
from trueonline.streams.outputs.fleet_alerts import FleetAlert
from trueonline.streams.outputs.output import with_none
from trueonline.streams.predictor import Answers
from trueonline.streams.sources import Labels, TimeStyle, shown_address
from trueonline.streams.sources.addresses import Address, check_topic
from trueonline.streams.sources.broker import Broker

QUEUE_MESSAGES = 10_000  # messages that may wait for the broker
STALL_SECONDS = 2.0  # seconds for a broker that is connected and takes nothing
# Seconds for messages that wait when the run ends, and how often so many, if samples can wait.
LAST_SECONDS, MAX_LAST_TURNS = 1.0, 10
CONNECT_SECONDS = 10.0  # seconds for the first connection


class Publisher:
    """Sends answers and alerts. Nothing here waits for a broker that is away: what does not fit into the queue is counted.

    Samples of a recording come faster than a broker takes messages. With `patient`, `publish` waits for room in the queue, as long
    as the broker is connected and takes messages. A live source must not wait.

    Parameters
    ----------
    url : str
        The address `mqtt[s]://[user[:password]@]host[:port]/topic`. The first connection must succeed.
    names : sequence of str
        The names of the questions.
    patient : bool
        Whether samples can wait, because their source can be read at any pace.
    labels : Labels, optional
        The names of the signals of a fleet. Messages then have the name under "signal".
    password_file : str or path, optional
        A file with the password.
    ca : str or path, optional
        A file with the certificates by which the broker's is checked.

    Attributes
    ----------
    lost : int
        The messages that could not be sent.
    """

    def __init__(
        self,
        url: str,
        names: Sequence[str],
        patient: bool,
        labels: Labels | None = None,
        password_file: str | os.PathLike | None = None,
        ca: str | os.PathLike | None = None,
    ) -> None:
        self._names, self._patient, self._shown = list(names), patient, shown_address(url)
        self._labels = labels
        self._broker = Broker(url, password_file, ca)
        self._topic = publishable(self._broker.address)
        self.lost = 0
        self._waiting = 0  # messages that the broker has not acknowledged
        self._stalled = False  # whether the broker took nothing for a while
        self._changed = threading.Condition()
        self._client = self._broker.client
        self._client.on_publish = self._acknowledged
        self._broker.open("publish to", CONNECT_SECONDS)

    def _acknowledged(self, *_: Any) -> None:
        """In the client's thread: the broker has a message."""
        with self._changed:
            self._waiting -= 1
            self._stalled = False
            if self._waiting in (0, QUEUE_MESSAGES // 2):
                self._changed.notify()

    def publish(self, answers: Answers, style: TimeStyle, alerts: Sequence[Alert | FleetAlert] = ()) -> None:
        """Send what is known at each sample, with times in this style, and alerts."""
        for message in self._messages(answers, style):
            self._send(self._topic, json.dumps(message, allow_nan=False))
        for alert in alerts:
            self._send(f"{self._topic}/alerts", alert.as_line().rstrip())

    def _messages(self, answers: Answers, style: TimeStyle) -> Iterator[dict[str, Any]]:
        unknown = np.full(answers.predictions.shape, np.nan)
        parts = [unknown if part is None else part for part in (answers.predictions, answers.low, answers.high)]
        rows = with_none(np.stack(parts, axis=-1))
        surprise = [None] * len(rows) if answers.surprise is None else with_none(answers.surprise)
        signals: Sequence[str | None] = [None] * len(rows)
        if self._labels is not None and answers.codes is not None:
            signals = self._labels.of(answers.codes)
        for time, row, surprised, name in zip(style.values(answers.times), rows, surprise, signals, strict=True):
            predictions = {
                question: {"value": value, "low": low, "high": high}
                for question, (value, low, high) in zip(self._names, row, strict=True)
            }
            signal = {} if name is None else {"signal": name}
            yield {"time": time, **signal, "predictions": predictions, "surprise": surprised}

    def _send(self, topic: str, message: str | bytes) -> None:
        with self._changed:
            if self._waiting >= QUEUE_MESSAGES and self._patient and not self._stalled and self._client.is_connected():
                self._stalled = not self._changed.wait_for(lambda: self._waiting <= QUEUE_MESSAGES // 2, STALL_SECONDS)
            if self._waiting >= QUEUE_MESSAGES:
                self.lost += 1
                return
            self._waiting += 1
        self._client.publish(topic, message, qos=1)

    def warnings(self) -> dict[str, str]:
        """Problems that the user should know of, by their kinds."""
        found = {}
        if self._broker.trouble:
            found["broker"] = f"the connection to {self._shown} is lost: {self._broker.trouble}; it is tried again"
        if self.lost:
            found["unpublished"] = (
                f"predictions could not be published: {self.lost:,} messages; the broker was away, or too slow"
            )
        return found

    def finish(self) -> None:
        """Send waiting messages for a second, and count the rest as lost. A recording continues while the broker takes some."""
        with self._changed:
            for _ in range(MAX_LAST_TURNS if self._patient else 1):
                before = self._waiting
                self._changed.wait_for(lambda: not self._waiting, LAST_SECONDS)
                if self._waiting in (0, before):
                    break
            self.lost, self._waiting = self.lost + self._waiting, 0
        self.close()

    def close(self) -> None:
        """Disconnect."""
        self._broker.close()


def publishable(address: Address) -> str:
    """The topic of an address. ValueError if nothing can be published there."""
    if any(sign in address.topic for sign in "+#"):
        raise ValueError(f"--publish needs one topic, without + and #, got {address.topic}")
    check_topic(f"{address.topic}/alerts")
    return address.topic


def check_no_circle(source: str, url: str) -> None:
    """ValueError if a source, an address of MQTT, would receive what is published."""
    from paho.mqtt.client import topic_matches_sub

    listens, sends = Address.parse(source), Address.parse(url)
    topics = (publishable(sends), f"{sends.topic}/alerts")
    if listens.host == sends.host and any(topic_matches_sub(listens.topic, topic) for topic in topics):
        raise ValueError(
            f"--publish {shown_address(url)} is on a topic that the source {shown_address(source)} listens to; name another topic"
        )
