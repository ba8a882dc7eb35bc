"""Several files as one stream: held to the same samples in one file."""

import json

import numpy as np
import pytest

from tests.streams.streams import joined, some, text_of, written
from trueonline.streams.sources import Cleaner, SourceAddress, TimeStyle, columns_of, files_named, open_source, text
from trueonline.streams.sources.positions import skipping

NAMES = ("day1.csv", "day2.csv.gz", "day3.parquet", "day4.jsonl")


@pytest.fixture
def days(tmp_path):
    """Four files of some thousand rows each, in four forms, and what is in them."""
    times, values = some(20_000)
    parts = [
        written(tmp_path / name, times[at : at + 5000], values[at : at + 5000])
        for name, at in zip(NAMES, range(0, 20_000, 5000), strict=True)
    ]
    kept = tuple(np.concatenate(each) for each in zip(*parts, strict=True))
    return [str(tmp_path / name) for name in NAMES], kept


def test_several_files_are_one_stream(days):
    paths, (times, values) = days
    source = open_source(paths, ["a", "b"], time="time")
    got_times, got_values = joined(source)
    np.testing.assert_array_equal(got_times, times)
    np.testing.assert_array_equal(got_values, values)
    assert source.replayable
    assert source.counters()["malformed"] == 20  # five in each file
    assert "oops" in source.complaint()  # in the first file


def test_the_count_of_rows_goes_on(tmp_path):
    """The times are those of one file, to the last bit."""
    _, values = some(3000)
    lines = text_of(values[:, 0], values).splitlines(keepends=True)
    (tmp_path / "whole.csv").write_text("".join(lines))
    (tmp_path / "a.csv").write_text("".join(lines[:1001]) + "oops\n")
    (tmp_path / "b.csv").write_text(
        lines[0] + "oops\n" + "".join(lines[1001:]).rstrip("\n")
    )  # its last line is unterminated
    (tmp_path / "c.csv").write_text(lines[0] + lines[1])
    paths = [tmp_path / name for name in ("a.csv", "b.csv", "c.csv")]
    got, _ = joined(open_source(paths, ["a"], rate=3.0, whole_lines=True))
    one, _ = joined(open_source(tmp_path / "whole.csv", ["a"], rate=3.0))
    expected = [*one[:1000], *(np.arange(1002, 3002) / 3.0), 3002 / 3.0]  # two rows that cannot be read count
    np.testing.assert_array_equal(got, expected)


def test_a_position_names_its_file(days, tmp_path):
    paths, (times, _) = days
    with open_source(paths[1:3], ["a", "b"], time="time") as source:
        seen = sum(len(block) for block in source)
        position = source.position()
    with open_source(paths[2:], ["a", "b"], time="time") as source:  # an old file is gone, and a new one has come
        source.seek(position)
        rest = np.concatenate([block.times for block in source])
        assert source.counters()["malformed"] == 15
    np.testing.assert_array_equal(rest, times[-len(rest) :])
    assert len(rest) == len(times) // 4 == seen // 2
    for others, wrong, said in [
        (paths[:2], position, "in which reading stopped, is not among the files"),
        (paths, {**position, "of": 3}, "the position is damaged: of"),
        (paths, {**position, "of": {**position["of"], "rows": -1}}, "the position is damaged: rows"),
    ]:
        with open_source(others, ["a", "b"], time="time") as source:
            with pytest.raises(ValueError, match=said):
                source.seek(wrong)
            np.testing.assert_array_equal(next(source).times[:10], times[:10])
    with open_source(paths[0], ["a", "b"], time="time") as source:  # a stream of one file grows by another
        next(source)
        alone = source.position()
    with open_source(paths, ["a", "b"], time="time") as source:
        source.seek(alone)
        assert source.position()["of"] == {"file": paths[0], "rows": 0, "counted": {}, "times": None}


@pytest.fixture
def travels(tmp_path):
    """Files in three styles. The clock of the second one is put forward in its middle."""
    rows = {
        "a.csv": [f"2024-03-30 {10 + i // 60}:{i % 60:02}+05:30,{i}\n" for i in range(100)],
        "b.csv": [
            f"2024-03-31T0{1 if i < 50 else 3}:{i % 50:02}:00.5+0{1 if i < 50 else 2}:00,{i}\n" for i in range(100)
        ],
        "c.csv": [f"{1711900000 + i},{i}\n" for i in range(10)],
    }
    for name, lines in rows.items():
        (tmp_path / name).write_text("time,x\n" + "".join(lines))
    return str(tmp_path / "[abc].csv")


@pytest.mark.parametrize("pace", [None, 1e12])
def test_the_style_is_that_of_the_first_file_and_each_has_its_own_wall_clock(travels, pace):
    style = TimeStyle(precision="m", zone="+05:30", separator=" ")
    hours = {}
    with open_source(travels, ["x"], time="time", pace=pace) as source:
        assert source.style is None
        clean = Cleaner(["x"])
        for block in source:
            assert source.style == style
            kept = clean(block)
            hours[kept.offset / 3600.0] = hours.get(kept.offset / 3600.0, 0) + len(kept)
    assert hours == {5.5: 100, 1.0: 100, 0.0: 10}


@pytest.mark.parametrize("rows", [0, 30, 60, 100])
def test_a_resumed_chain_keeps_the_styles(travels, rows):
    with open_source(travels, ["x"], time="time") as source:
        next(source)
        between = source.position()
        block = next(source)
        style, whole = source.style, [*block.times, *next(source).times]
    position = json.loads(json.dumps(skipping(between, block, rows)))
    with open_source(travels, ["x"], time="time") as source:
        source.style = style
        source.seek(position)
        rest = list(source)
        assert source.style == style
    np.testing.assert_array_equal(np.concatenate([each.times for each in rest]), whole[rows:])
    assert [each.offset for each in rest if len(each)] == ([3600.0] if rows < 100 else []) + [0.0]


def test_a_resumed_chain_keeps_the_wall_clock_of_its_file(travels, monkeypatch):
    """The place is behind the change of the clock."""
    monkeypatch.setattr(text, "BLOCK_ROWS", 60)
    with open_source(travels, ["x"], time="time") as source:
        while next(source).offset != 3600.0:
            pass
        position, later = source.position(), next(source)
    with open_source(travels, ["x"], time="time") as source:
        source.seek(position)
        again = next(source)
    assert (again.offset, again.times.tolist()) == (later.offset, later.times.tolist())
    assert later.offset == 3600.0
    for wrong in (3, {"zone": 3}):
        with open_source(travels, ["x"], time="time") as source, pytest.raises(ValueError, match="damaged"):
            source.seek({**position, "of": {**position["of"], "times": wrong}})


def test_the_columns_are_those_of_the_first_file(travels, tmp_path):
    (tmp_path / "0.csv").write_text("")
    (tmp_path / "z.csv").write_text("time,y\n1,2\n")
    assert columns_of([tmp_path / "0.csv", travels, tmp_path / "z.csv"], time="time") == ("x",)
    with pytest.raises(ValueError, match="several sources must all be files, got arm"):
        columns_of([travels, "arm"])


def test_progress_is_that_over_all_files(tmp_path):
    for name in ("a.csv", "b.csv", "c.csv"):
        (tmp_path / name).write_text(text_of(*some(9000)))
    shares = []
    with open_source(tmp_path / "*.csv", ["a"], rate=1.0, pace=1e9) as source:
        while source.read() is not None:
            shares.append(source.progress())
    assert shares == sorted(shares)
    assert 0.05 < shares[0] < 0.34
    assert shares[-1] == 1.0
    assert len(set(shares)) > 5


def test_patterns_are_in_natural_order_and_names_in_the_order_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("log.10", "log.2", "log.1", "a[1].csv"):
        (tmp_path / name).write_text("x\n1\n")
    assert files_named(["log.*"]) == ["log.1", "log.2", "log.10"]
    assert files_named(["log.2", "log.1?", "a[1].csv"]) == ["log.2", "log.10", "a[1].csv"]
    for spec, several in (("log.*", True), (["log.1", "log.2"], True), ("a[1].csv", False)):  # there is such a file
        address = SourceAddress.of(spec)
        assert (address.several, address.is_live, address.has_own_times) == (several, False, False)
    assert SourceAddress.of(["a", "b", "c", "d", "e"]).shown == "a, b, c and 2 more"


@pytest.mark.parametrize(
    ("specs", "options", "said"),
    [
        (["log.1", "-"], {}, "several sources must all be files, got -; name it alone"),
        (["log.1", "mqtt://ann:secret@host/x"], {}, "must all be files, got mqtt://host/x; name it alone"),
        (["arm", "log.1"], {}, "must all be files, got arm"),
        (["log.1", "log.1"], {}, "log.1 is named more than once"),
        (["*.txt"], {}, r"no file fits \*.txt"),
        (["log.1", "none"], {}, "there is no file none"),
        (["log.1", "other"], {}, "other has no column x; it has y"),
        (["log.1", "t.pq"], {"follow": True}, "follow is for text files that grow, got t.pq"),
        (["log.1", "log.2"], {"mqtt_ca": "x"}, "are for MQTT"),
        ([], {}, "must be a path"),
    ],
)
def test_what_cannot_be_one_stream_is_refused(tmp_path, monkeypatch, specs, options, said):
    monkeypatch.chdir(tmp_path)
    for name, column in (("log.1", "x"), ("log.2", "x"), ("other", "y")):
        (tmp_path / name).write_text(f"{column}\n1\n")
    with pytest.raises(ValueError, match=said) as caught:
        open_source(specs, ["x"], rate=1.0, **options)
    assert "secret" not in str(caught.value)


def test_files_without_a_byte_are_left_out_and_the_last_file_is_followed(tmp_path):
    paths = [tmp_path / name for name in ("a.csv", "b.csv", "c.csv")]
    paths[0].write_text("time,x\n1,1\n")
    paths[1].touch()
    paths[2].write_text("time,x\n2,2\n3")
    with open_source(paths, ["x"], time="time", follow=True) as source:
        assert [source.read(0.05).times.tolist() for _ in range(2)] == [[1.0], [2.0]]
        with open(paths[2], "a", encoding="utf-8") as file:
            file.write(",3\n")
        assert source.read(5.0).times.tolist() == [3.0]
        assert len(source.read(0.02)) == 0
