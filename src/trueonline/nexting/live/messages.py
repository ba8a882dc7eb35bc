"""The messages between the server and the page, over the WebSocket `/feed`.

**From the server, text** (JSON):

    {"type": "hello", "title", "rate", "kept": seconds, "signals": [name…], "questions": [{"name", "target", "discount",
     "horizon", "unit"}…], "shown": [question…], "most": questions at a time}            the first message, once
    {"type": "subscribed", "number", "questions": [question…], "signals": [signal…], "clock": seconds}
                                                      the content of the samples that follow; questions and signals by number
    {"type": "status", …}                             the status given to `Hub.report`, without the questions
    {"type": "clock", "yours", "mine": seconds}       the answer to a clock

**From the server, binary**, little-endian. Samples:

    byte 0    uint8     1
         1    uint8     1 if a new subscription begins: the page drops its samples
         2    uint16    c, the number of columns
         4    uint32    n, the number of samples
         8    uint32    the number of the subscription
        12    uint32    the number of samples missed before these, because the page was too slow
        16    float64   the number of the first sample
        24    float64   × n      times
              float64   × n      when each was received, in seconds since 1970 by the server's clock
              float32   × n × c  one column after the other: the signals of the subscription, then its predictions
              uint8     × n      1 if a new stream begins

Scores of all questions, NaN for a question without a score:

    byte 0    uint8     2
         4    uint32    q, the number of questions
         8    float32   × q      mean absolute error of the prediction
              float32   × q      mean of the return
              uint32    × q      the number of scored predictions

**From the page, text** (JSON), at most `LONGEST` bytes:

    {"subscribe": [question…]}      the questions to send, by number: at most `MOST`, each once
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

MOST = 12  # questions that a page can see at a time
LONGEST = 4096  # bytes of a message from the page

SAMPLES, SCORES = 1, 2
_SAMPLES, _SCORES = struct.Struct("<BBHIIId"), struct.Struct("<BxxxI")


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


def samples(
    subscription: int,
    first: int,
    missed: int,
    begins: bool,
    times: np.ndarray,
    received: np.ndarray,
    columns: np.ndarray,
    starts: np.ndarray,
) -> bytes:
    """A message of samples. `columns` has a row for each column of the message, and `begins` a new subscription."""
    head = _SAMPLES.pack(SAMPLES, begins, len(columns), len(times), subscription, min(missed, 2**32 - 1), first)
    parts = (times.astype("<f8"), received.astype("<f8"), columns.astype("<f4"), starts.astype(np.uint8))
    return b"".join([head, *(part.tobytes() for part in parts)])


def scores(questions: Sequence[Mapping[str, Any] | None] | Mapping[str, Any], number: int) -> bytes:
    """A message of scores.

    `questions` is one mapping for each question, with "error", "mean_return" and "scored", or None for a missing number. Or it
    is one mapping of arrays, with NaN for a missing number.
    """
    names = ("error", "mean_return", "scored")
    if isinstance(questions, Mapping):
        columns = [np.asarray(questions[name], float) for name in names]
    else:
        mappings = [question or {} for question in questions]
        columns = [np.array([_none_is_nan(each.get(name)) for each in mappings], float) for name in names]
    if any(column.shape != (number,) for column in columns):
        raise ValueError(f"status must have {number} questions, got {', '.join(str(len(each)) for each in columns)}")
    error, mean, scored = columns
    floats = (np.where(np.isfinite(each), np.clip(each, -3e38, 3e38), np.nan).astype("<f4") for each in (error, mean))
    counts = np.clip(np.nan_to_num(scored), 0, 2**32 - 1).astype("<u4")
    return b"".join([_SCORES.pack(SCORES, number), *(part.tobytes() for part in (*floats, counts))])


def _none_is_nan(value: Any) -> Any:
    return math.nan if value is None else value


def request(message: Any, questions: int) -> tuple[str, Any]:
    """The request of a page, checked: ("subscribe", numbers) or ("clock", a number)."""
    if not isinstance(message, str) or len(message) > LONGEST:
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
    if kind == "subscribe" and isinstance(value, list) and len(value) <= MOST:
        if all(_is(each, int) and 0 <= each < questions for each in value) and len(set(value)) == len(value):
            return kind, tuple(value)
        raise ValueError("subscribe must have numbers of questions, each once")
    raise ValueError("unknown request")


def _is(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
