"""Messages between the server and the page: status, scores and requests."""

import json
import struct

import numpy as np
import pytest

from tests.streams.live.helpers import MALFORMED, small_hub
from trueonline.streams.live import messages


def test_status_becomes_json_and_scores():
    hub, nan = small_hub(), np.nan
    arrays = {
        "error": [1.5, nan, -2.0, 1e300],
        "recent_mean": [0.5, 1.0, 2.0, nan],
        "scored": np.array([7, 0, nan, 2**40]),
    }
    words = {"samples": np.int64(5), "rate": float("inf"), "dropped": {"late": 2}, "state": "learning", "pace": 1200.0}
    hub.report({**words, "questions": arrays})
    status = hub.status
    assert status.number == 1
    assert json.loads(status.words) == {"type": "status", **words, "rate": None, "offset": None}
    assert struct.unpack_from("<BxxxI", status.scores) == (2, 4)
    errors = np.frombuffer(status.scores, "<f4", 24, 8).reshape(6, 4)
    np.testing.assert_array_equal(errors[0], np.array([1.5, nan, -2.0, 3e38], np.float32))
    assert np.isnan(errors[1:5]).all()
    np.testing.assert_array_equal(errors[5], np.array([0.5, 1.0, 2.0, nan], np.float32))
    assert np.frombuffer(status.scores, "<u4", 4, 104).tolist() == [7, 0, 0, 2**32 - 1]
    assert len(status.scores) == 120
    alert = {
        "time": 3.0, "surprise": 0.9995, "question": "grip", "target": "force", "value": nan, "expected": 1,
        "usual_error": 2,
    }  # fmt: skip
    hub.report({"alerts": [alert], "experts": [[["value", 0.5]], None, None, None], "offset": 7200.0})
    assert json.loads(hub.status.alerts) == {"type": "alerts", "alerts": [{**alert, "value": None}]}
    hub.report({"state": "ended"})  # without the rest: it stays
    assert hub.status.scores == status.scores
    assert json.loads(hub.status.alerts)["alerts"][0]["time"] == 3.0
    assert hub.status.experts[0] == [["value", 0.5]]
    assert json.loads(hub.status.words)["offset"] == json.loads(hub.hello())["offset"] == 7200.0


@pytest.mark.parametrize("message", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_requests_are_refused(message):
    with pytest.raises(ValueError, match=r"message|subscribe|request"):
        messages.request(message, 4)


def test_requests():
    assert messages.request('{"subscribe": [3, 0]}', 4) == ("subscribe", (3, 0))
    assert messages.request('{"subscribe": []}', 4) == ("subscribe", ())
    assert messages.request('{"clock": 12.5}', 4) == ("clock", 12.5)
