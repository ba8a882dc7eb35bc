"""The specs and options that open_source refuses, and the extras that it names."""

import sys
from pathlib import Path

import numpy as np
import pytest

from trueonline.streams import sources
from trueonline.streams.sources import Block, Pipe, Source, SourceAddress, open_source
from trueonline.streams.sources.records import MAX_RECORD_BYTES


def test_what_a_text_file_refuses(tmp_path):
    path = tmp_path / "x.csv"
    for content, signals, options, message in [
        ("a,b\n1,2\n", ["c", "a", "d"], {}, r"x\.csv has no column c, d; it has a, b"),
        ("a;b\n1;2\n", ["c"], {}, r"has no column c; it has a, b"),
        ("1,2\n3,4\n", ["a"], {}, r"has no column a; it has 1, 2 \(the first line must name them\)"),
        ("a,b,a\n1,2,3\n", ["a"], {}, "has the column a more than once"),
        ("", ["a"], {}, r"x\.csv is empty; its first line must name the columns"),
        ("\n\n", ["a"], {}, "is empty"),
        ("a,b\n", ["a"], {"rate": None, "time": "t"}, "has no column t; it has a, b"),
        ("a,b\n", ["a"], {"rate": None}, "give the rate, in samples per second, or the column with the times"),
        ("a,b\n", ["a"], {"rate": -1}, "rate must be a finite number > 0, got -1"),
        ("a,b\n", ["a"], {"time_unit": "min"}, "time_unit must be one of s, ms, us, ns, got 'min'"),
        ("a,b\n", ["a"], {"time": "a"}, "a is the time of the samples, so it cannot be one of the signals a"),
        ("a,b\n", [], {}, "at least one name"),
        ("a,b\n", "a", {}, "must be a list of names"),
        ("x" * (MAX_RECORD_BYTES + 1), ["a"], {}, "must name the columns, but it is longer than 1 MiB"),
        ('"' + "x" * 200_000 + '"\n', ["a"], {}, "must name the columns, but it is not CSV"),
    ]:
        path.write_text(content)
        with pytest.raises(ValueError, match=message):
            open_source(path, signals, **{"rate": 1.0, **options})
    path.write_text("a,b\n1,2\n", encoding="utf-16")
    with pytest.raises(ValueError, match="is UTF-16; save it as UTF-8"):
        open_source(path, ["a"], rate=1)
    (tmp_path / "folder.pq").mkdir()
    for opened in (open_source, Pipe):
        for name in ("none.csv", "none.parquet"):
            with pytest.raises(ValueError, match=rf"there is no file .*{name}; check its name"):
                opened(tmp_path / name, ["a"], rate=1)
    for folder, opened in ((tmp_path, Pipe), (tmp_path / "folder.pq", Pipe), (tmp_path / "folder.pq", open_source)):
        with pytest.raises(ValueError, match="folder"):
            opened(folder, ["a"], rate=1)
    with pytest.raises(ValueError, match=r"there is no file"):
        open_source(tmp_path / "none.csv", ["a"], rate=1, follow=True)
    for spec, message in [("http://x/y", "addresses begin with mqtt://, .*, got http://x/y"), ("", "must be a path")]:
        with pytest.raises(ValueError, match=message):
            open_source(spec, ["a"], rate=1)
    for spec in ("-", "mqtt://x/y", "lsl://x", "x.parquet", "arm"):
        with pytest.raises(ValueError, match="follow is for text files that grow"):
            open_source(spec, ["a"], rate=1, follow=True)
    for spec in ("-", "mqtt://x/y", "lsl://x"):
        with pytest.raises(ValueError, match="pace is for files and the arm"):
            open_source(spec, ["a"], rate=1, pace=1.0)
    with pytest.raises(ValueError, match="pace must be a finite number > 0, got 0"):
        open_source("arm", ["force"], pace=0)


@pytest.mark.parametrize(
    ("module", "spec", "extra"),
    [
        ("paho.mqtt.client", "mqtt://localhost/x", "mqtt"),
        ("pylsl", "lsl://x", "lsl"),
        ("pyarrow.parquet", "x.pq", "streams"),
        ("pyarrow", "x.csv", "streams"),
    ],
)
def test_what_is_not_installed_is_named(monkeypatch, tmp_path, module, spec, extra):
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("a\n1\n", encoding="utf-8")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ValueError, match=rf"need.*pip install 'trueonline\[{extra}\]'"):
        open_source(spec, ["a"], rate=1)


class Steps(Source):
    """Two samples, for a new kind of address."""

    own_times = True

    def __init__(self, name, signals):
        self.name, self.signals, self._left = name, tuple(signals), 1

    @classmethod
    def from_address(cls, address, signals, clock, queue):
        assert clock == {"time": "t", "rate": None, "time_unit": "ms", "time_format": None}
        assert queue == 5
        return cls(address.removeprefix("steps://"), signals)

    def read(self, timeout=None):
        self._left -= 1
        return Block(np.array([1.0, 2.0]), np.ones((2, len(self.signals)))) if self._left == 0 else None

    def position(self):
        return {"kind": "steps"}

    def counters(self):
        return {"malformed": 0}

    def close(self):
        pass


def test_a_new_kind_of_address_is_a_class_and_an_entry(monkeypatch):
    monkeypatch.setitem(sources.SCHEMES, "steps", Steps)
    with open_source("steps://x", ["a"], time="t", time_unit="ms", queue=5) as source:
        assert (source.name, [len(block) for block in source]) == ("x", [2])
    for address, live, own_times in (("steps://x", True, True), ("arm://1", False, True), ("mqtt://x/y", True, False)):
        parsed = SourceAddress.of(address)
        assert (parsed.is_live, parsed.has_own_times) == (live, own_times)
    with pytest.raises(ValueError, match=r"begin with mqtt://, .* or steps://, got other://x"):
        open_source("other://x", ["a"])


@pytest.mark.parametrize("scheme", sources.SCHEMES)
def test_every_kind_of_address_is_in_the_docs_and_is_public(scheme):
    page = (Path(__file__).parents[3] / "docs" / "guides" / "streams.md").read_text()
    for where in (page, sources.__doc__, open_source.__doc__):
        assert f"`{scheme}://" in where
    assert sources.SCHEMES[scheme].__name__ in sources.__all__
