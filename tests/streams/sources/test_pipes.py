"""Standard input and named pipes."""

import io
import json
import os
import subprocess
import sys
import threading

import pytest

from tests.streams.streams import PATIENCE, joined, together
from trueonline.streams.sources import Pipe, open_source
from trueonline.streams.sources.records import MAX_RECORD_BYTES

READER = """
import json, sys
from trueonline.streams.sources import open_source
with open_source("-", ["a", "b"], time="time") as source:
    for block in source:
        print(json.dumps([block.times.tolist(), [[str(x) for x in row] for row in block.values]]), flush=True)
    print(json.dumps(source.counters()))
"""


def test_standard_input_is_read_as_it_comes():
    reader = subprocess.Popen([sys.executable, "-c", READER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with reader:
        reader.stdin.write(b"b,time,a\n2,0.5,1\n")
        reader.stdin.flush()
        assert json.loads(reader.stdout.readline()) == [[0.5], [["1.0", "2.0"]]]  # before anything else was written
        for piece in (b"4,1.5,3\n", b"oops\n" + b"5" * (MAX_RECORD_BYTES + 9) + b"\n,2.5", b",6", b"\n1"):
            reader.stdin.write(piece)
            reader.stdin.flush()
        reader.stdin.close()
        *blocks, last = [json.loads(line) for line in reader.stdout]
        assert reader.wait(PATIENCE) == 0
    assert [t for times, _ in blocks for t in times] == [1.5, 2.5]
    assert [row for _, values in blocks for row in values] == [["3.0", "4.0"], ["6.0", "nan"]]
    assert last == {"malformed": 3, "unterminated": 1}


@pytest.mark.parametrize(("whole_lines", "expected"), [(True, [10.0, 20.0]), (False, [10.0, 20.0, 3.0])])
def test_a_named_pipe_whose_writer_is_gone_ends(tmp_path, whole_lines, expected):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_text("time,a\n1,10\n2,20\n3,3"))
    writer.start()
    with open_source(path, ["a"], time="time", whole_lines=whole_lines) as source:
        assert not source.replayable
        _, values = together(list(source), 1)
        assert values[:, 0].tolist() == expected  # 3 was perhaps to be 30: only whole lines are safe
        assert source.counters() == {"malformed": 0, "unterminated": 1}
        assert source.position()["samples"] == len(expected)
        with pytest.raises(ValueError, match="Pipe cannot be replayed"):
            source.seek(source.position())
    writer.join()


def test_a_pipe_gives_what_has_come_when_it_may_not_wait():
    end, begin = os.pipe()
    with open(end, "rb") as stream, open(begin, "wb", buffering=0) as pipe, Pipe(stream, ["a"], rate=1) as source:
        assert len(source.read(0.0)) == 0
        pipe.write(b"a\n1\n2\n")
        assert source.read(0.0).values[:, 0].tolist() == [1.0, 2.0]
        pipe.write(b"oops\n" * 1000)
        assert len(source.read(0.0)) == 0
        assert source.counters()["malformed"] == 1000


def test_a_pipe_without_a_header_ends_without_samples():
    assert joined(Pipe(io.BytesIO(b""), ["a"], rate=1))[0].size == 0
    with pytest.raises(ValueError, match="the pipe has no column a; it has b"):
        Pipe(io.BytesIO(b"b\n1\n"), ["a"], rate=1).read()
