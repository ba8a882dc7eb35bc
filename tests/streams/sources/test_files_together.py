"""Files that grow at the same time, each the stream of a signal: held to each file by itself."""

import json

import numpy as np
import pytest

from trueonline.streams.sources import Labels, open_source
from trueonline.streams.sources import files_together as module


@pytest.fixture(autouse=True)
def look_always(monkeypatch):
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)


def append(path, begin, end, head=True):
    with open(path, "a") as file:
        file.write(("time,x\n" if head else "") + "".join(f"{t},{t / 8}\n" for t in range(begin, end)))


def opened(place, labels):
    return open_source(place, ["x"], time="time", labels=labels, follow=True)


def read(source, labels, into):
    """Take all that is there, by the names of signals."""
    while len(block := source.read(0.0)):
        for time, (_, code) in zip(block.times, block.values, strict=True):
            into.setdefault(labels.names[int(code)], []).append(time)
    return into


def test_files_grow_and_new_ones_come(tmp_path):
    labels = Labels("file")
    append(tmp_path / "a.csv", 0, 10)
    append(tmp_path / "b.csv", 0, 20)
    with opened(tmp_path, labels) as source:
        assert source.signals == ("x", "file")
        found = read(source, labels, {})
        append(tmp_path / "a.csv", 10, 15, head=False)
        append(tmp_path / "c.csv", 5, 8)
        for _ in range(2):  # it sees the new file once nothing else is left
            read(source, labels, found)
        assert found == {"a": [*range(15)], "b": [*range(20)], "c": [5, 6, 7]}
    assert source.read(0.0) is None


def test_what_cannot_be_read_is_left_out(tmp_path):
    labels = Labels("file")
    append(tmp_path / "a.csv", 0, 5)
    (tmp_path / "bad.csv").write_text("time,y\n1,2\n")
    with opened(tmp_path, labels) as source:
        assert read(source, labels, {}) == {"a": [*range(5)]}
        assert "bad.csv has no column x" in source.remark()
        assert source.counters()["malformed"] == 0
    with opened(str(tmp_path / "b*.csv"), labels) as source, pytest.raises(ValueError, match="no column x"):
        source.read(0.0)


@pytest.mark.parametrize("rows", [0, 3, 10])
def test_it_resumes_within_a_block(tmp_path, rows):
    labels = Labels("file")
    append(tmp_path / "a.csv", 0, 10)
    append(tmp_path / "b.csv", 0, 10)
    append(tmp_path / "gone.csv", 0, 1)
    with opened(tmp_path, labels) as source:
        before, block = source.position(), source.read(0.0)
        position = json.loads(json.dumps(source.position_within(before, block, rows)))
    name = labels.names[int(block.values[0, -1])]
    for other in {"a", "b"} - {name}:
        append(tmp_path / f"{other}.csv", 10, 12, head=False)
    (tmp_path / "gone.csv").unlink()
    with opened(tmp_path, labels) as source:
        source.seek(position)
        assert f"{tmp_path / 'gone.csv'}, which is gone" in source.lost
        expected = {"a": [*range(12)], "b": [*range(12)]} | {name: [*range(rows, 10)]}
        assert read(source, labels, {}) == {key: times for key, times in expected.items() if times}
        with pytest.raises(ValueError, match="of must have a position"):
            source.seek({"kind": "files", "of": None})
        np.testing.assert_equal(source.position()["of"][str(tmp_path / "a.csv")]["row"], 10 if name == "a" else 12)
