"""Fleets: every signal is predicted as if it were alone, new ones may come, and bad ones harm nobody."""

import json
import os
import signal
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.processes import wait_for
from tests.streams.mosquitto import Broker, publisher, with_broker
from tests.streams.predict_calls import predict, started
from trueonline.files import packed, unpacked
from trueonline.streams.fleet import in_shard
from trueonline.streams.running import stream_run
from trueonline.streams.sources import Labels

NAMES = ["north, 1", "süd", "east"]
OPTIONS = ["--time", "time", "--target", "flow", "--horizon", "10min"]


def rows(samples=400, seed=0):
    """A long table: three signals in turn, of which the last begins later and one is sampled twice as often."""
    rng, found = np.random.default_rng(seed), []
    for t in range(samples):
        for k, name in enumerate(NAMES):
            for half in range(1 + (k == 1)):
                if k < 2 or t >= samples // 2:
                    value = 10.0 * k + np.sin(t / 20.0) + 0.1 * rng.normal() + 50.0 * (k == 0 and t == 300)
                    found.append((60.0 * t + 30.0 * half, name, round(value, 4)))
    return found


def written(path, table, by="pump"):
    times, names, values = zip(*table, strict=True)
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(pa.table({"time": times, by: names, "flow": values}), path)
    elif path.suffix == ".parquet":
        pq.write_table(pa.table({"time": times, by: names, "flow": values}), path)
    else:
        lines = [json.dumps({"time": t, by: name, "flow": value}) for t, name, value in table]
        path.write_text("\n".join(lines) + "\n")
    return path


def columns(path, name=None, by="pump"):
    """The rows of an output, perhaps those of one signal, without the column of names."""
    table = pyarrow.csv.read_csv(path)
    if name is not None:
        table = table.filter(pa.compute.equal(table[by], name)).drop_columns([by])
    return table.to_pydict()


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The predictions of each signal in a run of its own."""
    folder, found = tmp_path_factory.mktemp("alone"), {}
    for k, name in enumerate(NAMES):
        source = written(folder / f"{k}.csv", [row for row in rows() if row[1] == name])
        predict(source, *OPTIONS, "--out", folder / f"{k}.out.csv")
        found[name] = columns(folder / f"{k}.out.csv")
    return found


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_each_signal_is_predicted_as_if_it_were_alone(kind, alone, tmp_path):
    source, out = written(tmp_path / f"long.{kind}", rows()), tmp_path / "out.csv"
    summary = predict(source, *OPTIONS, "--by", "pump", "--out", out, "--json")
    together = pyarrow.csv.read_csv(out)
    assert together["pump"].to_pylist() == [name for _, name, _ in rows()]  # in the order of the samples
    assert together["time"].to_pylist() == [t for t, _, _ in rows()]
    for name in NAMES:
        assert columns(out, name) == alone[name]
    assert list(together.column_names)[-2:] == ["flow", "pump"]
    skills = [question["skill"] for question in summary["questions"]]
    assert skills == sorted(skills)
    assert {question["signal"] for question in summary["questions"]} == set(NAMES)


def test_each_file_of_a_folder_is_a_signal(alone, tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    for k, name in enumerate(NAMES):
        written(folder / f"pump-{k}.csv", [row for row in rows() if row[1] == name])
    out = tmp_path / "out.csv"
    predict(folder, *OPTIONS, "--by", "file", "--out", out)
    for k, name in enumerate(NAMES):
        assert columns(out, f"pump-{k}", "file") == alone[name]
    assert "would be one of the files" in predict(
        folder, *OPTIONS, "--by", "file", "--out", folder / "out.csv", fails=True
    )


def test_a_folder_that_grows_resumes_within_a_block_and_with_new_files(alone, tmp_path):
    folder, out, table = tmp_path / "logs", tmp_path / "out.csv", rows()
    folder.mkdir()
    options = [*OPTIONS, "--by", "file", "--follow", "--out", out, "--samples"]
    for part, samples in ((table[:700], 555), (table, len(table))):
        for k, name in enumerate(NAMES):
            if own := [row for row in part if row[1] == name]:
                written(folder / f"pump-{k}.csv", own)
        predict(folder, *options, samples, "--checkpoint", tmp_path / "kept")
        assert len(columns(out)["time"]) == samples
    for k, name in enumerate(NAMES):
        assert columns(out, f"pump-{k}", "file") == alone[name]


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_killed_at_random_moments_it_resumes_as_if_nothing_had_happened(kind, tmp_path):
    source, out = written(tmp_path / "long.csv", rows(1000)), tmp_path / f"out.{kind}"
    alerts = ["--alert", "0.99", "--alerts"]
    whole = predict(
        source, *OPTIONS, "--by", "pump", "--out", tmp_path / f"whole.{kind}", "--json", *alerts, tmp_path / "whole"
    )
    command = [source, *OPTIONS, "--by", "pump", "--out", out, "--every", "0.05", "--json", *alerts, tmp_path / "alerts"]
    checkpoint = tmp_path / f"out.{kind}.checkpoint"
    for pause in (0.0, 0.2, 0.1):
        process = started(*command, "--pace", "12000")  # so that there is something to kill
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        wait_for(lambda before=before: checkpoint.exists() and checkpoint.stat().st_mtime_ns > before, "checkpoint")
        time.sleep(pause)
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
    told = predict(*command)
    assert 0 < told["resumed_at"] < len(rows(1000))
    for name in ("samples", "dropped", "questions", "counters"):
        assert told[name] == whole[name]
    assert (tmp_path / "alerts").read_bytes() == (tmp_path / "whole").read_bytes()
    assert b'"signal": "north, 1"' in (tmp_path / "whole").read_bytes()
    if kind == "parquet":
        assert pq.read_table(out).equals(pq.read_table(tmp_path / "whole.parquet"))
    else:
        assert out.read_bytes() == (tmp_path / f"whole.{kind}").read_bytes()


def test_a_bad_signal_leaves_and_the_others_stay(alone, tmp_path):
    table = rows()
    at = next(i for i, row in enumerate(table) if i > 500 and row[1] == "süd")
    table[at] = (*table[at][:2], None)
    source, out = written(tmp_path / "long.csv", table), tmp_path / "out.csv"
    summary = predict(source, *OPTIONS, "--by", "pump", "--out", out, "--json", "--missing", "error")
    assert columns(out, "north, 1") == alone["north, 1"]
    assert columns(out, "east") == alone["east"]
    left = columns(out, "süd")
    assert len(left["time"]) < len(alone["süd"]["time"])
    assert any("süd left the fleet" in warning for warning in summary["warnings"])


def test_the_parts_of_a_fleet_are_the_whole(tmp_path):
    source = written(tmp_path / "long.csv", rows(100))
    predict(source, *OPTIONS, "--by", "pump", "--out", tmp_path / "whole.csv")
    found = {}
    for part in (1, 2):
        predict(source, *OPTIONS, "--by", "pump", "--shard", f"{part}/2", "--out", tmp_path / f"{part}.csv")
        found |= dict.fromkeys(set(columns(tmp_path / f"{part}.csv")["pump"]), part)
        for name in [name for name in found if found[name] == part]:
            assert in_shard(name, (part, 2))
            assert columns(tmp_path / f"{part}.csv", name) == columns(tmp_path / "whole.csv", name)
    assert set(found) == set(NAMES)


def test_a_cluster_learns_all_parts_and_a_lost_worker_loses_nothing(tmp_path):
    distributed = pytest.importorskip("distributed")
    source = written(tmp_path / "long.csv", [*rows(1500), (1e6, "", 1.0)])
    fleet = [source, *OPTIONS, "--by", "pump", "--json", "--alert", "0.99"]
    whole = predict(*fleet, "--out", tmp_path / "whole.csv", "--alerts", tmp_path / "whole.jsonl")
    shared = tmp_path / "shared"
    shared.mkdir()
    command = [*fleet, "--out", shared / "out.csv", "--alerts", shared / "a.jsonl", "--shard", "3", "--every", "0.05"]
    here = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **here) as cluster:
        process = started(*command, "--engine", f"dask:{cluster.scheduler_address}")
        wait_for(lambda: list(shared.glob("*.checkpoint")), "checkpoint")
        for worker in cluster.workers.values():
            os.kill(worker.pid, signal.SIGKILL)
        told = json.loads(process.communicate()[0])
    assert told["resumed_at"] > 0
    kinds = (".out.{}-of-3.csv.predictions", "out.{}-of-3.csv", "a.{}-of-3.jsonl")
    taken = {part for part in (1, 2, 3) if any(in_shard(name, (part, 3)) for name in NAMES)}
    assert {path.name for path in shared.iterdir()} == {kind.format(part) for kind in kinds for part in taken}
    for name in NAMES:
        (part,) = (part for part in taken if in_shard(name, (part, 3)))
        assert columns(shared / f"out.{part}-of-3.csv", name) == columns(tmp_path / "whole.csv", name)
    assert {line for path in shared.glob("a.*") for line in path.read_bytes().splitlines()} == {
        *(tmp_path / "whole.jsonl").read_bytes().splitlines()
    }
    for key in ("samples", "dropped", "questions", "counters", "ended"):
        assert told[key] == whole[key], key


def test_rows_without_a_name_are_malformed(tmp_path):
    table = [*rows(50), (9000.0, "", 1.0), (9060.0, "x" * 300, 1.0)]
    for kind in ("csv", "jsonl"):
        source = written(tmp_path / f"long.{kind}", table)
        summary = predict(source, *OPTIONS, "--by", "pump", "--json")
        assert summary["counters"]["malformed"] == 2
        assert summary["samples"] == len(table) - 2


@pytest.mark.parametrize("name", ['"\\ud800"', '"a\\rb"', '"a\\nb"', '["a"]', '{"a": 1}', "null"])
def test_a_name_that_is_none_is_malformed_and_ends_nothing(name, tmp_path):
    log = tmp_path / "log.jsonl"
    lines = [f'{{"time": {60 * t}, "pump": "a", "flow": {t % 5}}}' for t in range(20)]
    log.write_text("\n".join([*lines[:10], lines[10].replace('"a"', name), *lines[10:]]) + "\n")
    summary = predict(log, *OPTIONS, "--by", "pump", "--json")
    assert summary["counters"]["malformed"] == 1
    assert summary["samples"] == 20


def test_names_that_come_before_a_run_is_resumed_stay_those_of_their_samples():
    """A broker sends while a checkpoint is read."""
    labels = Labels("pump")
    waiting = np.array([labels.code("new"), labels.code("south")])
    labels.restore(["north", "south"])
    assert labels.of(waiting) == ["new", "south"]
    assert labels.of(np.array([labels.code(name) for name in ("north", "south", "east")])) == ["north", "south", "east"]
    assert labels.names == ["new", "south", "north", "east"]


def test_a_column_of_which_every_row_is_a_signal_is_warned_of(tmp_path, monkeypatch):
    monkeypatch.setattr(stream_run, "MANY_SIGNALS", 20)
    for each, warned in ((1, True), (4, False)):
        log = written(tmp_path / "log.csv", [(60.0 * t, f"{t // each}", 1.0) for t in range(30 * each)])
        warnings = predict(log, *OPTIONS, "--by", "pump", "--json")["warnings"]
        assert any("is pump the right column for --by?" in warning for warning in warnings) == warned


def test_what_does_not_fit_is_refused(tmp_path):
    source = written(tmp_path / "long.csv", rows(10))
    for options, message in (
        (["--rate", "1", "--target", "flow", "--by", "pump"], "--by needs --time"),
        ([*OPTIONS, "--shard", "1/2"], "--shard is for fleets"),
        ([*OPTIONS, "--by", "pump", "--shard", "3/2"], "must be I/N"),
        ([*OPTIONS, "--by", "valve"], "has no column valve"),
        ([*OPTIONS, "--by", "time"], "time is the time"),
        ([*OPTIONS, "--by", "pump", "--shard", "2"], "--shard 2 is for --engine dask"),
        ([*OPTIONS, "--engine", "dask", "--shard", "2"], "--shard is for fleets"),
        ([*OPTIONS, "--by", "pump", "--engine", "dask"], "give --shard N"),
        ([*OPTIONS, "--by", "pump", "--engine", "dask", "--shard", "2", "--follow"], "is for recordings"),
        ([*OPTIONS, "--by", "pump", "--engine", "dask", "--shard", "2", "--pace", "1"], "cannot be combined"),
        ([*OPTIONS, "--by", "pump", "--engine", "spark", "--shard", "2"], "unknown engine 'spark'"),
        ([*OPTIONS, "--by", "valve", "--engine", "dask", "--shard", "2"], "has no column valve"),
    ):
        assert message in predict(source, *options, fails=True)
    assert "no column of names" in predict("arm", "--time", "t", "--target", "force", "--by", "pump", fails=True)


def test_packed_arrays_come_back_and_damaged_ones_are_refused():
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([True, False]), "c": np.zeros((0, 4), np.float32)}
    found = unpacked(packed(arrays))
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
    whole = packed(arrays)
    for wrong in (whole[:-1], whole[:20], np.append(whole, whole[:1]), np.roll(whole, 3), whole[:0]):
        with pytest.raises(ValueError, match="packed"):
            unpacked(wrong)


@with_broker
def test_each_topic_is_a_signal(tmp_path):
    broker, out = Broker(tmp_path), tmp_path / "out.csv"
    try:
        with publisher(broker.port) as publish:
            options = ["--time", "time", "--target", "flow", "--by", "topic", "--samples", "60", "--json"]
            process = started(broker.url("plant/+/flow"), *options, "--out", out)
            while process.poll() is None:
                for k, name in enumerate(("a", "b", "c")):
                    publish({"time": time.time(), "flow": k}, topic=f"plant/{name}/flow")
                time.sleep(0.02)
        summary = json.loads(process.communicate()[0])
        assert {question["signal"] for question in summary["questions"]} == {"a", "b", "c"}
        for k, name in enumerate(("a", "b", "c")):
            assert set(columns(out, name, "topic")["flow"]) == {k}
    finally:
        broker.kill()


def test_a_fleet_may_stop_after_some_samples_and_resume(tmp_path):
    log = written(tmp_path / "log.csv", rows())
    predict(log, *OPTIONS, "--by", "pump", "--out", tmp_path / "whole.csv")
    for samples in ("2", "500", None):
        limit = () if samples is None else ("--samples", samples)
        predict(
            log, *OPTIONS, "--by", "pump", "--out", tmp_path / "parts.csv", "--checkpoint", tmp_path / "c.npz", *limit
        )
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
