"""Messages between the server and the page: status, scores and requests."""

import json
import struct

import numpy as np
import pytest

from tests.nexting.live.helpers import MALFORMED, small_hub
from trueonline.nexting.live import messages


def test_status_becomes_json_and_scores():
    hub = small_hub()
    asked = [{"error": 1.5, "mean_return": np.float64(-2.0), "scored": np.int64(7)}, None]
    asked += [{"error": None, "mean_return": None, "scored": 0}, {"error": 1e300, "mean_return": np.nan, "scored": 2**40}]
    hub.report(
        {"samples": np.int64(5), "rate": float("inf"), "dropped": {"late": 2}, "state": "learning", "questions": asked}
    )
    number, words, scores = hub.status
    assert number == 1
    expected = {"type": "status", "samples": 5, "rate": None, "dropped": {"late": 2}, "state": "learning"}
    assert json.loads(words) == expected
    assert struct.unpack_from("<BxxxI", scores) == (2, 4)
    np.testing.assert_array_equal(np.frombuffer(scores, "<f4", 4, 8), np.array([1.5, np.nan, np.nan, 3e38], np.float32))
    np.testing.assert_array_equal(np.frombuffer(scores, "<f4", 4, 24), np.array([-2, np.nan, np.nan, np.nan], np.float32))
    assert np.frombuffer(scores, "<u4", 4, 40).tolist() == [7, 0, 0, 2**32 - 1]
    hub.report({"state": "ended"})  # without questions: their scores stay
    assert hub.status[2] == scores
    nan = np.nan
    arrays = {"error": [1.5, nan, nan, 1e300], "mean_return": [-2.0, nan, nan, nan], "scored": np.array([7, 0, 0, 2**40])}
    hub.report({"questions": arrays})
    assert hub.status[2] == scores


@pytest.mark.parametrize("message", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_requests_are_refused(message):
    with pytest.raises(ValueError, match=r"message|subscribe|request"):
        messages.request(message, 4)


def test_requests():
    assert messages.request('{"subscribe": [3, 0]}', 4) == ("subscribe", (3, 0))
    assert messages.request('{"subscribe": []}', 4) == ("subscribe", ())
    assert messages.request('{"clock": 12.5}', 4) == ("clock", 12.5)
