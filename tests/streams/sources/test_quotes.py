"""Quoted cells with line breaks: what is inside a cell never becomes a row, however the bytes arrive (RFC 4180)."""

import csv
import io

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.streams.streams import joined, together, wait_for
from trueonline.streams.sources import Pipe, columns_of, open_source
from trueonline.streams.sources.clock import Clock
from trueonline.streams.sources.records import MAX_RECORD_BYTES, RecordEnds
from trueonline.streams.sources.text import Text

NOTES = ["ok", "", "7,8,b", "a\n7,8,b", 'he said "no",\n9,9,"', '"', "\n", "# 5,5,x", "a\r\n\r\nb\n#", "été\n1;2\t3"]
NOTES += ["x" * 300]


def written(rows, separator=",", end="\n"):
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator, lineterminator=end).writerows([("t", "v", "n\nmore"), *rows])
    return text.getvalue().encode()


def read(pieces, **options):
    """The samples of a text that comes in pieces, and its reader."""
    reader, blocks = Text("it", ("v",), Clock("t"), **options), []
    for piece in [*pieces, None]:
        reader.finish() if piece is None else reader.feed(piece)
        while (block := reader.take()) is not None:
            blocks.append(block)
    times, values = together(blocks, 1)
    return list(zip(times.tolist(), values[:, 0].tolist(), strict=True)), reader


def cut(text, places):
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_rows_are_those_of_the_csv_module_however_the_bytes_arrive(data):
    notes = data.draw(st.lists(st.sampled_from(NOTES) | st.text('ab",\n#; ', max_size=12), max_size=60))
    rows = [(i, i / 8, note) for i, note in enumerate(notes)]
    text = written(rows, data.draw(st.sampled_from(",;\t")), data.draw(st.sampled_from(["\n", "\r\n"])))
    samples, reader = read(cut(text, sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=20)))))
    assert samples == [(t, v) for t, v, _ in rows]
    assert (reader.malformed, reader.unterminated, reader.remark()) == (0, 0, "")


@settings(max_examples=300, deadline=None)
@given(st.text('aé",\n', max_size=40), st.lists(st.integers(0, 80), max_size=6))
@example('"",\n"a"b\n,"\n""\n', [])
def test_records_end_where_the_csv_module_ends_them_also_in_wild_texts(wild, places):
    """The module ends a last record that lacks its quote or its line break; a record here waits for more."""
    text = wild.encode()
    lines = iter(wild.splitlines(keepends=True))
    expected, at = [], 0
    reader = csv.reader(line for line in lines)
    read_lines, sizes = 0, np.cumsum([len(line.encode()) for line in wild.splitlines(keepends=True)])
    for row in reader:
        read_lines, at = reader.line_num, int(sizes[reader.line_num - 1])
        expected.append((at, row))
    scan, ends, begin = RecordEnds(b","), [], 0
    for piece in cut(text, sorted(min(place, len(text)) for place in places)):
        ends += (scan.find(piece) + begin).tolist()
        begin += len(piece)
    whole = [end for end, _ in expected if not (end == len(text) and (scan.in_quotes or not text.endswith(b"\n")))]
    assert ends == whole
    assert read_lines == len(sizes)


@pytest.mark.parametrize(
    ("text", "malformed"),
    [
        (b't,v,n\n0,1,x\n# ,"\n1,2,x\n2,3,x\n4,5,x\n', 0),
        (b'# 1,"\nt,v,n\n# 5,"wide\n0,1,x\n1,2,#"\n2,3,"a\nb"\n3,4,#,"c\nd"\n4,5,x\n', 1),  # a cell too many
    ],
)
def test_quotes_in_comments_and_within_cells_mean_nothing(text, malformed):
    for at in range(len(text)):
        samples, reader = read(cut(text, [at]))
        assert samples == [(0.0, 1.0), (1.0, 2.0), (2.0, 3.0), (4.0, 5.0)]
        assert reader.malformed == malformed


@pytest.mark.parametrize("rotated", [False, True])
def test_a_followed_file_waits_for_the_end_of_a_row_also_over_a_checkpoint(tmp_path, rotated):
    path = tmp_path / "log.csv"
    path.write_bytes(b't,v,n\n0,1,x\n1,2,"a\n7,8,b')
    with open_source(path, ["v"], time="t", follow=True) as source:
        assert wait_for(source, 1)[0].tolist() == [0.0]
        assert len(source.read(0.05)) == 0
        position = source.position()  # in the middle of a row
    with open(path, "ab") as file:
        file.write(b'\n9,9,c"\n2,3,"d"\n')
    if rotated:
        path.rename(tmp_path / "log.csv.1")
        path.write_bytes(b't,v,n\n3,4,"\n5,5,e"\n')
    with open_source(path, ["v"], time="t", follow=True) as source:
        source.seek(position)
        times, values = wait_for(source, 3 if rotated else 2)
        assert list(zip(times, values[:, 0], strict=True)) == [(1.0, 2.0), (2.0, 3.0), (3.0, 4.0)][: len(times)]
        assert source.counters()["malformed"] == 0


# --- Quotes that are missing ----------------------------------------------------------------------


def test_a_lost_quote_gives_no_wrong_sample_and_is_told():
    lines = [f"{i},{i}.5,ok" for i in range(500)]
    lines[100], lines[200] = '100,1.5,"lost', '200,1.5,"ok"'
    source = Pipe(io.BytesIO("\n".join(["time,a,note", *lines, ""]).encode()), ["a"], time="time")
    times, values = joined(source)
    assert times.tolist() == [i for i in range(500) if not 100 <= i <= 200]
    np.testing.assert_array_equal(values[:, 0], times + 0.5)
    assert source.counters()["malformed"] == 1
    assert source.complaint().startswith('text follows a closed quote: 100,1.5,"lost 101,')
    assert source.remark().startswith(
        "row 101 of the pipe has 101 lines, because a quote opens there; is one missing? 100,"
    )


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("whole_lines", [False, True])
def test_a_quote_that_is_open_at_the_end_leaves_its_row(end, whole_lines):
    text = "time,a,note\n" + "".join(f"{i},1,\n" for i in range(50)) + '50,1,"lost\n51,1,x' + end
    source = Pipe(io.BytesIO(text.encode()), ["a"], time="time", whole_lines=whole_lines)
    assert joined(source)[0].tolist() == [*range(50)]
    assert source.counters() == {"malformed": 0, "unterminated": 1}
    assert source.position()["offset"] == text.index("50,1")
    assert source.remark() == (
        'row 51 of the pipe opens a quote that is not closed, so what follows is not read: 50,1,"lost 51,1,x'
    )


def test_a_quote_that_stays_open_is_told_before_the_end_of_a_long_file_and_takes_no_memory():
    reader, line = Text("log.csv", ("v",), Clock("t")), b"7,8,x\n" * 1000
    reader.feed(b't,v,n\n1,2,a\n2,3,"lost\n')
    assert len(reader.take()) == 1
    for _ in range(2 * MAX_RECORD_BYTES // len(line)):
        reader.feed(line)
        assert reader.take() is None
        assert len(reader._records.tail) <= MAX_RECORD_BYTES + len(line)
    assert reader.remark().startswith(
        'row 2 of log.csv opens a quote that is not closed, so what follows is not read: 2,3,"lost'
    )
    for piece in (b'"\n', b"4,5,6\n"):  # it is closed at last
        reader.feed(piece)
        block = reader.take()
    assert (block.times.tolist(), reader.malformed, reader.row) == ([4.0], 1, 3)


def test_a_first_line_may_have_line_breaks_in_quotes(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b'\xef\xbb\xbf"t","force\n(N)","a;\nb"\n1,2,"3\n4"\n')
    assert columns_of(path, time="t") == ("force\n(N)",)
    with open_source(path, ["force\n(N)"], time="t") as source:
        assert source.read().values.tolist() == [[2.0]]
    path.write_bytes(b'"t","force\n1,2\n')
    with pytest.raises(ValueError, match="must name the columns, but it opens a quote that is not closed"):
        open_source(path, ["force"], time="t")
