"""Gzipped files, whole, broken off and damaged."""

import gzip
import random
import zlib

import numpy as np
import pytest

from tests.streams.streams import joined, some, text_of
from trueonline.streams.sources import open_source
from trueonline.streams.sources.gzip_file import Gunzipped


@pytest.mark.parametrize("members", [1, 3])
def test_of_a_compressed_file_that_breaks_off_nothing_is_lost(tmp_path, members):
    text = text_of(*some(2000)).encode()
    parts = [text[i * len(text) // members : (i + 1) * len(text) // members] for i in range(members)]
    whole = (b"\0" * 7).join(map(gzip.compress, parts)) + b"\0" * 5
    path, rng = tmp_path / "log.csv.gz", random.Random(members)
    for size in [1, 10, 11, 100, *(rng.randrange(len(whole)) for _ in range(6)), len(whole) - 13, len(whole)]:
        path.write_bytes(whole[:size])
        out, rest = b"", whole[:size]  # all that zlib makes of it, a byte at a time
        while rest:
            one = zlib.decompressobj(31)
            for i in range(len(rest)):
                out += one.decompress(rest[i : i + 1])
                if one.eof:
                    break
            ended, rest = one.eof, rest[i + 1 :].lstrip(b"\0") if one.eof else b""
        file = Gunzipped(path)
        chunks = [file.read(1000)]
        while chunks[-1]:
            assert len(chunks[-1]) == 1000 or not file.read(1)
            chunks.append(file.read(1000))
        assert b"".join(chunks) == out
        assert file.cut != ended
        for at in (len(out) // 2, 0, len(out) // 3, len(out) + 5):
            file.seek(at)
            assert file.read(77) == out[at : at + 77]
        file.close()
        assert file.closed
        if b"\n" not in out:
            continue
        source = open_source(path, ["a", "b"], time="time")
        got_times, got_values = joined(source)
        lines = out[: out.rindex(b"\n")].split(b"\n")[1:] if file.cut else out.split(b"\n")[1:]
        rows = [line.split(b",") for line in lines if line.count(b",") == 2 and not line.endswith(b",")]
        np.testing.assert_array_equal(np.column_stack([got_times, got_values]), np.array(rows, float).reshape(-1, 3))
        assert source.counters()["truncated"] == file.cut


def test_what_is_not_gzip_is_damage_after_all_that_was_good(tmp_path):
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(b"time,a\n1,2\n") + b"garbage")
    with open_source(path, ["a"], time="time") as source:
        assert source.read().times.tolist() == [1.0]
        with pytest.raises(ValueError, match=r"log\.csv\.gz is damaged, after 11 bytes: .*incorrect header"):
            source.read()
    whole = gzip.compress(text_of(*some(20_000)).encode())
    path.write_bytes(whole[:1000] + bytes(range(256)) + whole[1256:])
    with pytest.raises(ValueError, match=r"log\.csv\.gz is damaged"):
        joined(open_source(path, ["a"], time="time"))
