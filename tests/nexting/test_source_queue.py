"""The queue between the thread of a live source and its reader."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueonline.nexting.sources.ring import Ring


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
            for _ in range(n % 3):  # and alone
                ring.put_one(float(sent), [10.0 * sent])
                dropped += len(kept) == size
                kept, sent = [*kept, sent][-size:], sent + 1
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
