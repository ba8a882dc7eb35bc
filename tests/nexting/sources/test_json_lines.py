"""JSON lines."""

import numpy as np

from tests.nexting.streams import INF, NAN, joined
from trueonline.nexting.sources import open_source
from trueonline.nexting.sources.lines import LIMIT


def test_json_lines_that_say_strange_things(tmp_path):
    path = tmp_path / "log.jsonl"
    lines = [
        (b'{"time": 1, "a": NaN}', NAN),
        (b'{"time": 2, "a": Infinity}', INF),
        (b'{"time": 3, "a": -1e999}', -INF),
        (b'{"time": 4, "a": 1e-999}', 0.0),
        (b'{"time": NaN, "a": 1}', None),
        (b'{"time": Infinity, "a": 1}', None),
        (b'{"time": 1e999, "a": 1}', None),
        (b'{"time": 5, "a": 1, "a": 2, "b": {"a": 3}}', 2.0),  # as everywhere in Python, the last one counts
        (b'{"time": 6, "a": ' + b"[" * 5000 + b"]" * 5000 + b"}", None),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, None),
        (b'{"time": 7, "a": "\xff"}', None),
        (b'{"time": 8, "a": 1e1000000000}', INF),
        (b'{"time": 9, "a": ' + b"1" * 400 + b"}", None),
        (b'{"time": 10, "a": "1e100"}', 1e100),
        (b'{"time": 11, "a": 1}, {}', None),
        (b'{"time": 12, "a": 1, "b": "' + b"x" * LIMIT + b'"}', None),
    ]
    path.write_bytes(b"".join(line + b"\n" for line, _ in lines))
    source = open_source(path, ["a"], time="time")
    _, values = joined(source)
    np.testing.assert_array_equal(values[:, 0], [value for _, value in lines if value is not None])
    assert source.counters()["malformed"] == sum(value is None for _, value in lines)
