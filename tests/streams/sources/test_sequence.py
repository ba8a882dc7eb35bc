"""Sequence numbers: what is missing, and what begins a new sequence."""

import pytest

from trueonline.streams.sources import sequence
from trueonline.streams.sources.sequence import MAX_LATE, MAX_LEAP, Sequences


@pytest.mark.parametrize(
    ("numbers", "missing"),
    [
        ([], 0),
        ([5, 6, 7], 0),
        ([5, 7, 10], 3),
        ([5, 6, 6, 5, 7], 0),  # duplicates
        ([5, 7, 6, 8], 1),  # one that is late was counted before
        ([5000, 5001, 0, 1, 3], 1),  # the publisher began again
        ([5000, 5001 - MAX_LATE, 5001], 0),
        ([0, MAX_LEAP + 1], MAX_LEAP),
        ([0, MAX_LEAP + 2, MAX_LEAP + 3], 0),  # another sequence
        ([-3, -2, 0], 1),
        ([1, None, 3], 0),  # came, but could not be read
        ([1, None, 2, 3], 0),  # was not part of the sequence
        ([None, "x", 1.0, True, 5, 7], 1),
        ([10**400, 10**400 + 2], 1),
    ],
)
def test_numbers_that_are_missing(numbers, missing):
    sequences = Sequences()
    for number in numbers:
        sequences.note("a", number)
    assert sequences.missing == missing


def test_each_topic_has_its_own_numbers_and_there_is_a_limit_to_topics(monkeypatch):
    sequences = Sequences()
    for number in range(5):
        for topic in ("a", "b"):
            sequences.note(topic, number + 100 * (topic == "b"))
    assert sequences.missing == 0
    monkeypatch.setattr(sequence, "MAX_TOPICS", 3)
    for topic in "cdefgh":
        sequences.note(topic, 1)
    assert len(sequences._next) <= 3
