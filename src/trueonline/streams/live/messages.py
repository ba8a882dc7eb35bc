"""The messages between the server and the page, over the WebSocket `/feed`.

**From the server, text** (JSON):

    {"type": "hello", "title", "offset", "kept": samples, "signals": [name…], "questions": [{"name", "target", "discount",
     "horizon", "meaning"}…], "shown": [question…], "most": questions at a time}            the first message, once
    {"type": "subscribed", "number", "questions": [question…], "signals": [signal…], "clock": seconds}
                                                      the content of the samples that follow; questions and signals by number
    {"type": "status", "offset", …}                   the status given to `Hub.report`, without questions, experts and alerts
    {"type": "alerts", "alerts": [alert…]}            the newest alerts, the oldest first, when they have changed
    {"type": "experts", "experts": {question: [[words, share]…]}}     of the questions of the subscription, when they have changed
    {"type": "clock", "yours", "mine": seconds}       the answer to a clock

`offset` is how many seconds the clock of the input is east of UTC, null if times are numbers and have no zone.

**From the server, binary**, little-endian. The columns of a subscription are its signals, its predictions, the lower ends of
their bands, and the upper ends. NaN is what is unknown. Samples:

    byte 0    uint8     1
         1    uint8     1 if a new subscription begins: the page drops its samples
         2    uint16    c, the number of columns
         4    uint32    n, the number of samples
         8    uint32    the number of the subscription
        12    uint32    the number of samples missed before these, because the page was too slow
        16    float64   the number of the first sample
        24    float64   × n      times
              float64   × n      when each was received, in seconds since 1970 by the server's clock
              float32   × n × c  one column after the other
              uint8     × n      1 if a new stream begins

Scores of all questions, NaN for what is unknown. Errors are mean absolute errors, in the unit of the prediction:

    byte 0    uint8     2
         4    uint32    q, the number of questions
         8    float32   × q      error of the prediction
              float32   × q      error if the newest value stayed
              float32   × q      error if the mean so far stayed
              float32   × 3 × q  the same three over the recent past
              uint32    × q      the number of scored predictions

History, when there are more samples than a page is given one by one. A bucket stands for consecutive samples:

    byte 0    uint8     3
         1    uint8     1 if the page drops its buckets, which have become wider
         2    uint16    c, the number of columns
         4    uint32    n, the number of buckets
         8    uint32    the number of the subscription
        12    uint32    s, the number of signals
        16    float64   the number of samples in a bucket
        24    float64   the number of the first sample of the first bucket
        32    float64   × n      the time of the first sample
              float64   × n      the time of the last sample
              float32   × n × c  means, one column after the other
              float32   × n × s  lowest values of the signals
              float32   × n × s  highest values of the signals

**From the page, text** (JSON), at most `MAX_MESSAGE` bytes:

    {"subscribe": [question…]}      the questions to send, by number: at most `MAX_QUESTIONS`, each once
    {"clock": number}               asks for the server's clock
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

MAX_QUESTIONS = 12  # questions that a page can see at a time
MAX_MESSAGE = 4096  # bytes of a message from the page

SAMPLES, SCORES, HISTORY = 1, 2, 3
ERRORS = ("error", "hold", "mean", "recent_error", "recent_hold", "recent_mean")
_SAMPLES, _SCORES, _HISTORY = struct.Struct("<BBHIIId"), struct.Struct("<BxxxI"), struct.Struct("<BBHIIIdd")


def text(kind: str, content: Mapping[str, Any]) -> str:
    """A message of text."""
    return json.dumps({"type": kind, **plain(content)}, ensure_ascii=False, separators=(",", ":"))


def plain(value: Any) -> Any:
    """A value in JSON's types. NaN and infinity become null, because JSON does not have them."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, Sequence | np.ndarray):
        return [plain(each) for each in value]
    return str(value)


def samples(subscription: int, part: Any, begins: bool) -> bytes:
    """A message of samples, from a `Part` of the hub. `begins`: a new subscription begins."""
    sizes, missed = (len(part.columns), len(part.times)), min(part.missed, 2**32 - 1)
    head = _SAMPLES.pack(SAMPLES, begins, *sizes, subscription, missed, part.first)
    doubles = (part.times.astype("<f8").tobytes(), part.received.astype("<f8").tobytes())
    return b"".join([head, *doubles, part.columns.astype("<f4").tobytes(), part.starts.astype(np.uint8).tobytes()])


def history(subscription: int, part: Any, begins: bool) -> bytes:
    """A message of buckets, from a `Past` of the hub. `begins`: the page drops the buckets that it has."""
    n = len(part.begins)
    head = _HISTORY.pack(HISTORY, begins, len(part.means), n, subscription, len(part.lows), part.width, part.first)
    floats = (each.astype("<f4").tobytes() for each in (part.means, part.lows, part.highs))
    return b"".join([head, part.begins.astype("<f8").tobytes(), part.ends.astype("<f8").tobytes(), *floats])


def scores(questions: Mapping[str, Any], number: int) -> bytes:
    """A message of scores, from arrays for each of `ERRORS` and "scored". An array may be missing, and NaN is unknown."""
    columns = {name: np.asarray(values, float) for name, values in questions.items()}
    for name, values in columns.items():
        if values.shape != (number,):
            raise ValueError(f"status must have {number} questions, got {values.size} for {name!r}")
    unknown = np.full(number, np.nan)
    errors = [columns.get(name, unknown) for name in ERRORS]
    floats = (np.where(np.isfinite(each), np.clip(each, -3e38, 3e38), np.nan).astype("<f4") for each in errors)
    counts = np.clip(np.nan_to_num(columns.get("scored", unknown)), 0, 2**32 - 1).astype("<u4")
    return b"".join([_SCORES.pack(SCORES, number), *(part.tobytes() for part in (*floats, counts))])


def request(message: Any, questions: int) -> tuple[str, Any]:
    """The request of a page, checked: ("subscribe", numbers) or ("clock", a number)."""
    if not isinstance(message, str) or len(message) > MAX_MESSAGE:
        raise ValueError("a message must be a short text")
    try:
        content = json.loads(message)
    except (ValueError, RecursionError):
        raise ValueError("a message must be JSON") from None
    if not isinstance(content, dict) or len(content) != 1:
        raise ValueError("a message must be one request")
    kind, value = next(iter(content.items()))
    if kind == "clock" and _is(value, int | float) and abs(value) < 1e15:
        return kind, value
    if kind == "subscribe" and isinstance(value, list) and len(value) <= MAX_QUESTIONS:
        if all(_is(each, int) and 0 <= each < questions for each in value) and len(set(value)) == len(value):
            return kind, tuple(value)
        raise ValueError("subscribe must have numbers of questions, each once")
    raise ValueError("unknown request")


def _is(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
