"""The style of times: what came in is what goes out, whatever the source."""

import io
import random
from datetime import datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.streams.streams import joined
from trueonline.streams.sources import Cleaner, Paced, Pipe, TimeStyle, open_source


def written(source):
    """The times of a source in its style, and its offset."""
    with source:
        assert source.style is None
        blocks = list(source)
    assert {block.offset for block in blocks} == {source.style.offset}
    return [text for block in blocks for text in source.style.texts(block.times)]


@pytest.mark.parametrize("rows", [5, 5000])  # lines are read one by one, or by pyarrow
@pytest.mark.parametrize("seed", range(6))
def test_iso_times_come_out_as_python_writes_them(seed, rows):
    draw = random.Random(seed)
    zone = draw.choice([None, timezone(timedelta(minutes=draw.randint(-14 * 60, 14 * 60)))])
    precision, separator = draw.choice(["minutes", "seconds", "milliseconds", "microseconds"]), draw.choice("T ")
    moments = [datetime(1990, 1, 1, tzinfo=zone) + draw.random() * timedelta(days=30_000) for _ in range(rows)]
    step = {"minutes": 60e6, "seconds": 1e6, "milliseconds": 1e3, "microseconds": 1}[precision]
    moments = [each - (each - datetime(1990, 1, 1, tzinfo=zone)) % timedelta(microseconds=step) for each in moments]
    texts = [each.isoformat(separator, precision) for each in moments]
    table = "time,x\nnone,0\n" + "".join(f"{text},1\n" for text in texts)
    assert written(Pipe(io.BytesIO(table.encode()), ["x"], time="time")) == texts
    table = "".join(f'{{"time": "{text}", "x": 1}}\n' for text in texts)
    assert written(Pipe(io.BytesIO(table.encode()), ["x"], time="time")) == texts


@pytest.mark.parametrize(
    ("came", "goes"),
    [
        (["2024-05-01", "2024-05-02"], ["2024-05-01", "2024-05-02"]),
        (["2024-05-01 12:00", "2024-05-01 12:00:30"], ["2024-05-01 12:00", "2024-05-01 12:00:30.000000"]),
        (["2024-05-01T12:00:00z", "2024-05-01T14:00:01+02:00"], ["2024-05-01T12:00:00Z", "2024-05-01T12:00:01Z"]),
        (["20240501T120000+0530", "20240501T120001+0530"], ["2024-05-01T12:00:00+05:30", "2024-05-01T12:00:01+05:30"]),
        (["2024-10-27T02:59:00+02:00", "2024-10-27T02:00:00+01:00"], ["2024-10-27T02:59:00+02:00", "2024-10-27T03:00:00+02:00"]),
    ],
)  # fmt: skip
def test_the_first_row_tells_the_style_and_instants_stay(came, goes):
    table = "time,x\n" + "".join(f"{text},1\n" for text in came)
    assert written(Pipe(io.BytesIO(table.encode()), ["x"], time="time")) == goes


def test_numbers_stay_numbers_in_their_unit():
    stamps = [1714564800000 + 25 * k for k in range(4000)]
    table = "time,x\n" + "".join(f"{stamp},1\n" for stamp in stamps)
    assert written(Pipe(io.BytesIO(table.encode()), ["x"], time="time", time_unit="ms")) == list(map(str, stamps))
    assert written(Pipe(io.BytesIO(b"time;x\n0,5;1\n1,5;1\n"), ["x"], time="time")) == ["0.5", "1.5"]
    source = Pipe(io.BytesIO(b"x\n1\n2\n"), ["x"], rate=4.0, time_unit="ms")
    assert source.style == TimeStyle()
    assert source.style.texts(joined(source)[0]) == ["0.0", "0.25"]


def test_a_form_of_ones_own_is_read_and_written_as_iso(tmp_path):
    forms = {
        "%d.%m.%Y %H:%M": ["1.5.2024 9:05", "31.12.2024 23:59"],
        "%m/%d/%Y %I:%M %p": ["5/1/2024 9:05 AM", "12/31/2024 11:59 PM"],
        "%d.%m.%Y %H:%M:%S%z": ["01.05.2024 09:05:00+0000", "31.12.2024 23:59:00+0000"],
        "%y-%b-%d %H:%M": ["24-May-01 09:05", "24-Dec-31 23:59"],
        "%Y%m%d%H%M": ["202405010905", "202412312359"],
    }
    for form, texts in forms.items():
        for copies in (1, 60):
            table = "when;x\n" + "".join(f"{text};1,5\n" for text in texts * copies) + "soon;2\n"
            source = Pipe(io.BytesIO(table.encode()), ["x"], time="when", time_format=form)
            zone = "+00:00" if "%z" in form else ""
            assert written(source) == [f"2024-05-01T09:05:00{zone}", f"2024-12-31T23:59:00{zone}"] * copies
            assert source.counters()["malformed"] == 1
            assert f"'soon' is not a time in the form {form}" in source.complaint()
    for copies in (1, 60):
        table = "when;x\n" + "01.05.2024 09:05:00,25 +0200;1\n" * copies
        source = Pipe(io.BytesIO(table.encode()), ["x"], time="when", time_format="%d.%m.%Y %H:%M:%S,%f %z")
        assert written(source) == ["2024-05-01T09:05:00.250000+02:00"] * copies
    pq.write_table(pa.table({"t": [20240501, 20241231], "x": [1, 2]}), tmp_path / "log.parquet")
    source = open_source(tmp_path / "log.parquet", ["x"], time="t", time_format="%Y%m%d")
    assert written(source) == ["2024-05-01T00:00:00", "2024-12-31T00:00:00"]


def test_parquet_times_keep_their_zone(tmp_path):
    stamps = [datetime(2024, 5, 1, 10), datetime(2024, 5, 1, 10, 0, 0, 500)]
    for zone, goes in (
        ("Europe/Berlin", "2024-05-01T12:00:00+02:00"),
        ("UTC", "2024-05-01T10:00:00+00:00"),
        (None, "2024-05-01T10:00:00"),
    ):
        column = pa.array(stamps, pa.timestamp("ns")).cast(pa.timestamp("ns", zone))
        pq.write_table(pa.table({"t": column, "x": [1.0, 2.0]}), tmp_path / "log.parquet")
        assert written(open_source(tmp_path / "log.parquet", ["x"], time="t"))[0] == goes


def test_blocks_carry_the_offset_to_whoever_learns(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("t,x\n" + "".join(f"2024-05-01T12:00:0{k}+02:00,{k}\n" for k in range(9)))
    with Paced(open_source(path, ["x"], time="t"), 1e9) as source:
        first = source.read()
        assert first.offset == first.part(1).offset == Cleaner(["x"])(first).offset == 7200.0
        place = {**source.source.position(), "skip": 0}
        assert source.style == TimeStyle(precision="s", zone="+02:00")
        source.style = TimeStyle(precision="s", zone="+01:00")  # as a resumed run does
        source.seek(place)
        assert source.style.zone == "+01:00"


def test_a_style_is_kept_as_json_and_damage_is_noticed():
    style = TimeStyle(precision="ms", zone="-05:30", separator=" ")
    assert TimeStyle.from_json(style.as_json()) == style
    for damage in ({"zone": "X"}, {"zone": 3}, {"unit": "h"}, {"precision": "h"}, {"separator": "_"}):
        with pytest.raises(ValueError, match="damaged"):
            TimeStyle.from_json({**style.as_json(), **damage})


def test_times_of_many_digits_are_as_near_as_seconds_can_be():
    times = np.array([1714564800.1234567])
    assert TimeStyle("ns").texts(times) == [str(int(times[0] * 1e9))]
    assert TimeStyle("us").texts(times) == ["1714564800123457"]
