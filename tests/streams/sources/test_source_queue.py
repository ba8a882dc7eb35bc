"""The queue between the thread of a live source and its reader, and what is left in it when a run stops."""

import io
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueonline.streams import sources
from trueonline.streams.predictor import Setup
from trueonline.streams.running import predict_command, stream_run
from trueonline.streams.sources.live_source import LiveSource
from trueonline.streams.sources.ring import Ring


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 12), st.lists(st.tuples(st.booleans(), st.integers(0, 20)), max_size=30))
def test_a_full_queue_drops_the_oldest_and_counts_them(size, actions):
    ring, kept, sent, dropped, got = Ring(1, size), [], 0, 0, []
    for put, n in actions:
        if put:
            new = list(range(sent, sent + n))
            ring.put(np.array(new, float), np.array(new, float).reshape(n, 1) * 10)
            sent, kept = sent + n, kept + new
            dropped += max(len(kept) - size, 0)
            kept = kept[-size:]
        else:
            block = ring.take(0.0)
            assert block.times.tolist() == kept
            assert block.values[:, 0].tolist() == [10.0 * t for t in kept]
            got, kept = got + kept, []
    assert (ring.received, ring.dropped) == (sent, dropped)
    assert len(got) + len(kept) + dropped == sent


def test_what_went_wrong_in_the_thread_is_told_to_the_reader_after_what_arrived():
    ring = Ring(1, 4)
    ring.put(np.array([1.0]), np.array([[2.0]]))
    ring.fail(ValueError("gone"))
    assert len(ring.take(None)) == 1
    with pytest.raises(ValueError, match="gone"):
        ring.take(None)
    ring.close()
    assert ring.take(None) is None


class Fed(LiveSource):
    """Samples that tests put into the queue. Some come only when no more are wanted."""

    kind, own_times = "fed", True

    @classmethod
    def from_address(cls, address, signals, clock, queue):
        source = cls(signals, None, 100)
        source.put(0, int(address.removeprefix("fed://")))
        return source

    def put(self, first, end):
        times = np.arange(first, end)
        self._ring.put(times / 40, times[:, None] % 7.0)

    def _want_no_more(self, seconds):
        self.put(self._ring.received, self._ring.received + 20)

    def close(self):
        self._ring.close()


@pytest.fixture
def fed(monkeypatch):
    """A run over so many samples, which is stopped before it begins."""
    monkeypatch.setitem(sources.SCHEMES, "fed", Fed)

    def run(samples):
        setup = Setup(signals=["a"], targets=["a"], horizons=[0.5], rate=40.0)
        run = predict_command.prepare(predict_command.Options(f"fed://{samples}"), setup, io.StringIO(), print)
        stop = threading.Event()
        stop.set()
        return predict_command.predict(run, stop, [], None, forget=True)

    return run


def test_a_run_that_is_stopped_learns_from_what_was_sent_before(fed):
    summary = fed(50)
    assert (summary["samples"], summary["dropped"], summary["ended"]) == (70, 0, False)
    assert summary["warnings"] == []


def test_the_size_of_a_queue_that_was_full_is_told(fed):
    summary = fed(130)
    assert (summary["samples"], summary["counters"]["dropped_overflow"], summary["dropped"]) == (100, 50, 50)
    assert "the queue of 100 samples was full: samples come faster than they are learned from" in summary["warnings"][0]


def test_a_lost_connection_is_a_warning(fed, monkeypatch):
    monkeypatch.setattr(Fed, "trouble", "the broker says Not authorized")
    [warning] = fed(5)["warnings"]
    assert warning == "the connection to the source is lost: the broker says Not authorized; it is tried again"


def test_what_is_left_when_the_second_is_over_is_counted(fed, monkeypatch):
    monkeypatch.setattr(stream_run, "STOP_SECONDS", 0.0)
    summary = fed(50)
    assert (summary["samples"], summary["counters"]["dropped_at_stop"], summary["dropped"]) == (0, 70, 70)
    lines = predict_command.as_text(summary, None).splitlines()
    assert lines[1:] == ["Counted: 70 dropped at stop."]  # without samples there is nothing to put into a table
