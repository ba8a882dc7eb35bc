"""`trueonline predict` with the formats that users have: times out as they came in, JSON lines, Excel's CSV, all signals."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pyarrow.parquet as pq

from tests.streams.predict_calls import predict

BERLIN = timezone(timedelta(hours=2))


def stamps(rows, zone=BERLIN):
    return [(datetime(2024, 4, 30, 22, tzinfo=zone) + timedelta(minutes=5 * k)).isoformat() for k in range(rows)]


def log(path, rows=600, zone=BERLIN):
    lines = [f"{stamp},{np.sin(k / 30):.6f},{k % 5},x" for k, stamp in enumerate(stamps(rows, zone))]
    path.write_text("time,load,step,note\n" + "\n".join(lines) + "\n")
    return path


def first_column(path):
    return [line.partition(",")[0] for line in path.read_text().splitlines()[1:]]


def test_times_come_out_as_they_went_in_also_where_a_run_resumes(tmp_path):
    """The clock is put back in between: what follows is written with the first offset all the same."""
    path, out = tmp_path / "log.csv", tmp_path / "out.csv"
    text = log(path).read_text()
    command = [path, "--time", "time", "--rate", "5min", "--target", "load", "--horizon", "1h", "--out", out]
    command += [
        "--signals", "load,hour(time),weekday(time),lag(load, 15min)", "--checkpoint", tmp_path / "kept", "--json",
    ]  # fmt: skip
    told = predict(*command, "--samples", "250")
    assert (told["samples"], told["dropped"]) == (250, 0)
    later = stamps(600)[:250] + stamps(612, timezone(timedelta(hours=1)))[262:]
    for was, now in zip(stamps(600)[250:], later[250:], strict=False):
        text = text.replace(was, now)
    path.write_text(text)
    told = predict(*command)
    assert (told["resumed_at"], told["samples"], told["warnings"]) == (250, 600, [])
    written = first_column(out)
    assert written[:250] == stamps(250)
    assert all(stamp.endswith("+02:00") for stamp in written)
    assert [*map(datetime.fromisoformat, written)] == [*map(datetime.fromisoformat, later[:600])]
    predict(*command[:-3], "--out", tmp_path / "out.parquet")
    column = pq.read_table(tmp_path / "out.parquet")["time"]
    assert str(column.type) == "timestamp[us, tz=+02:00]"
    assert [each.isoformat() for each in column.to_pylist()] == written


def test_the_wall_clock_counts_for_hours(tmp_path):
    """The same wall clock in two zones gives the same predictions from the same hours."""
    found = []
    for zone in (UTC, BERLIN):
        path, out = log(tmp_path / "log.csv", 300, zone), tmp_path / "out.csv"
        command = [path, "--time", "time", "--rate", "5min", "--target", "load", "--discount", "0.9", "--out", out]
        predict(*command, "--signals", "hour(time)")
        found.append([line.partition(",")[2] for line in out.read_text().splitlines()])
        predict(*command, "--signals", "load", "--fresh")
        assert [line.partition(",")[2] for line in out.read_text().splitlines()] != found[-1]
    assert found[0] == found[1]


def test_excels_csv_from_germany(tmp_path):
    path, out = tmp_path / "Messung.csv", tmp_path / "out.csv"
    begin = datetime(2024, 12, 31, 23, 0)
    moments = [begin + timedelta(minutes=k) for k in range(200)]
    rows = "".join(f"{each:%d.%m.%Y %H:%M};{k % 9},5;{k}\r\n" for k, each in enumerate(moments))
    path.write_bytes(f'sep=;\r\nZeit;"Größe, links";Zähler\r\n{rows}'.encode("cp1252"))
    command = [
        path, "--time", "Zeit", "--time-format", "%d.%m.%Y %H:%M", "--target", '"Größe, links"', "--signals", "all",
    ]  # fmt: skip
    told = predict(*command, "--rate", "1min", "--horizon", "15min", "--out", out, "--json")
    assert (told["samples"], told["dropped"]) == (200, 0)
    assert told["warnings"] == [f"{path} is not UTF-8: it was read as Latin-1 (Windows-1252)"]
    assert first_column(out) == [each.isoformat() for each in moments]
    assert told["questions"][0]["target"] == "Größe, links"


def test_all_signals_are_those_that_one_would_name(tmp_path):
    path = log(tmp_path / "log.csv")
    command = [path, "--time", "time", "--target", "load", "--discount", "0.9", "--json", "--signals"]
    questions = [predict(*command, which)["questions"] for which in ("all", "load,step", "load")]
    assert questions[0] == questions[1] != questions[2]
    said = predict("-", *command[1:], "all", fails=True)
    assert "files and the arm" in said
    assert "--signals a,b" in said
