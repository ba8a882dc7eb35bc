"""What the server and the page say to each other over the WebSocket `/feed`.

**From the server, text** (JSON):

    {"type": "hello", "title", "rate", "kept": seconds, "signals": [name…], "questions": [{"name", "target", "discount",
     "horizon", "unit"}…], "shown": [question…], "most": questions at a time}            first of all, once
    {"type": "subscribed", "number", "questions": [question…], "signals": [signal…], "clock": seconds}
                                                      what the samples that follow are of; questions and signals by number
    {"type": "status", …}                             what `Hub.report` was given, but for the questions
    {"type": "clock", "yours", "mine": seconds}       the answer to a clock

**From the server, binary**, little-endian. Samples:

    byte 0    uint8     1
         1    uint8     1 if they begin anew: what the page has is to be forgotten
         2    uint16    c, how many columns
         4    uint32    n, how many samples
         8    uint32    the number of the subscription
        12    uint32    how many samples before these were missed, because the page was too slow
        16    float64   the number of the first sample
        24    float64   × n      times
              float64   × n      when each was received, in seconds since 1970 by the server's clock
              float32   × n × c  one column after the other: the signals of the subscription, then its predictions
              uint8     × n      1 where the stream begins anew

and scores of all questions, NaN where there is none yet:

    byte 0    uint8     2
         4    uint32    q, how many questions
         8    float32   × q      mean absolute error of the prediction
              float32   × q      mean of the return
              uint32    × q      how many predictions were scored

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
    return json.dumps({"type": kind, **plain(content)}, ensure_ascii=False, separators=(",", ":"))


def plain(value: Any) -> Any:
    """The same in JSON's types. JSON has no NaN and no infinity: they become null."""
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
    anew: bool,
    times: np.ndarray,
    received: np.ndarray,
    columns: np.ndarray,
    starts: np.ndarray,
) -> bytes:
    """`columns` has a row for each column of the message."""
    head = _SAMPLES.pack(SAMPLES, anew, len(columns), len(times), subscription, min(missed, 2**32 - 1), first)
    parts = (times.astype("<f8"), received.astype("<f8"), columns.astype("<f4"), starts.astype(np.uint8))
    return b"".join([head, *(part.tobytes() for part in parts)])


def scores(questions: Sequence[Mapping[str, Any] | None] | Mapping[str, Any], number: int) -> bytes:
    """From one mapping a question, with "error", "mean_return" and "scored", each of which may be None; or from one mapping
    of arrays, in which NaN says none."""
    names = ("error", "mean_return", "scored")
    if isinstance(questions, Mapping):
        columns = [np.asarray(questions[name], float) for name in names]
    else:
        given = [question or {} for question in questions]
        columns = [np.array([_none_is_nan(each.get(name)) for each in given], float) for name in names]
    if any(column.shape != (number,) for column in columns):
        raise ValueError(f"status must have {number} questions, got {', '.join(str(len(each)) for each in columns)}")
    error, mean, scored = columns
    floats = (np.where(np.isfinite(each), np.clip(each, -3e38, 3e38), np.nan).astype("<f4") for each in (error, mean))
    counts = np.clip(np.nan_to_num(scored), 0, 2**32 - 1).astype("<u4")
    return b"".join([_SCORES.pack(SCORES, number), *(part.tobytes() for part in (*floats, counts))])


def _none_is_nan(value: Any) -> Any:
    return math.nan if value is None else value


def request(message: Any, questions: int) -> tuple[str, Any]:
    """What a page asks for, checked: ("subscribe", numbers) or ("clock", a number)."""
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
