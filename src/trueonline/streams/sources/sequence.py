"""Sequence numbers in messages: how many samples were sent and never received."""

from __future__ import annotations

SEQUENCE_KEY = "seq"  # of an object: a whole number that grows by one from sample to sample
MAX_LATE = 1000  # a number that is smaller by at most this much is late or a duplicate
MAX_LEAP = 10**6  # one that is larger by more than this begins a new sequence
MAX_TOPICS = 10_000  # topics whose numbers are remembered


class Sequences:
    """Counts the numbers that are missing in the sequence of each topic.

    MQTT keeps the order of the messages on a topic. A number that is much smaller or much larger than the one before it
    begins a new sequence, as after a restart of the publisher.
    """

    def __init__(self) -> None:
        self._next: dict[str, int] = {}
        self.missing = 0

    def note(self, topic: str, number: object) -> None:
        """A sample came with this number. One that is not a whole number cannot be read, and counts as the next one."""
        expected = self._next.get(topic)
        if type(number) is not int:
            if expected is not None:
                self._next[topic] = expected + 1
            return
        ahead = 0 if expected is None else number - expected
        if -MAX_LATE <= ahead < 0:
            return
        if 0 < ahead <= MAX_LEAP:
            self.missing += ahead
        if expected is None and len(self._next) >= MAX_TOPICS:
            self._next.clear()
        self._next[topic] = number + 1
