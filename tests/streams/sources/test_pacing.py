"""The simulated arm, and recordings at the pace of their times."""

import io
import json
import random
import threading

import numpy as np
import pytest

from tests.streams.streams import PATIENCE, Hands, some, text_of, together, wait_for, written
from trueonline.problems import arm
from trueonline.streams.sources import Arm, Paced, Pipe, open_source


def first_of(source, samples):
    """As many samples, and whatever else is in the last block."""
    blocks = []
    while sum(map(len, blocks)) < samples:
        blocks.append(source.read())
    return together(blocks, len(source.signals))


def test_the_arm_is_a_source():
    for spec, seed in (("arm", 0), ("arm://", 0), ("arm://7", 7)):
        with open_source(spec, ["force", "position"]) as source:
            assert source.replayable
            times, values = first_of(source, 5000)
            expected = arm.simulate(len(times), seed)
            np.testing.assert_array_equal(values, expected[:, [arm.NAMES.index("force"), arm.NAMES.index("position")]])
            np.testing.assert_array_equal(times, np.arange(len(times)) / 40)
            position = json.loads(json.dumps(source.position()))
            assert position == {"kind": "arm", "seed": seed, "row": len(times), "skip": 0}
            further = next(source)
            source.seek({**position, "row": 40, "skip": 60})
            assert source.position() == {**position, "row": 100}
            np.testing.assert_array_equal(next(source).values[:1000], values[100:1100])
            source.seek(position)
            while not len(again := source.read(0.0)):  # whose time may be over before it has got there
                assert source.position() == position
            np.testing.assert_array_equal(again.values, further.values)
        assert source.read() is None
    for spec in ("arm://x", "arm://-1", "arm://1.5", "ARM://1"):
        with pytest.raises(ValueError, match=r"the address must be arm or arm://SEED with a whole number, got"):
            open_source(spec, ["force"])
    with pytest.raises(ValueError, match="the simulated arm has no column a; it has position, velocity, force"):
        open_source("arm", ["a"])
    with pytest.raises(ValueError, match="the seed of the arm must be a whole number that is not negative, got True"):
        Arm(True, ["force"])
    with pytest.raises(ValueError, match=r"of the arm with seed 7, this one has 0; use arm://7"):
        open_source("arm", ["force"]).seek(position)


def due(times, pace, longest):
    """When each sample falls due, after the first one."""
    result, reached = [0.0], times[0]
    for t in times[1:]:
        ahead = (t - reached) / pace
        result.append(result[-1] + min(max(ahead, 0.0), longest))
        if not -longest <= ahead <= 0.0:
            reached = t
    return result


@pytest.mark.parametrize("pace", [0.5, 1.0, 20.0])
def test_samples_are_given_when_they_fall_due(tmp_path, monkeypatch, pace):
    rng = np.random.default_rng(5)
    times = np.cumsum(rng.exponential(0.25, 9000)) + 1.7e9
    times[rng.random(9000) < 0.05] -= 0.5  # some are late
    times[3000:] += 3600.0  # a gap
    times[6000:] -= 5000.0  # and the clock was set back
    times[4500] += 1e9
    path = tmp_path / "log.csv"
    path.write_text(text_of(times, rng.standard_normal((9000, 2))))
    hands = Hands(monkeypatch)
    got, when, start = [], [], hands.now
    with hands.drive(open_source(path, ["a"], time="time", pace=pace)) as source:
        for block in source:
            got += block.times.tolist()
            when += [hands.now - start] * len(block)
    np.testing.assert_array_equal(got, times)
    np.testing.assert_allclose(when, due(times.tolist(), pace, 5.0), rtol=0, atol=1e-6)
    assert when[-1] < 9000 * 0.3 / pace + 30.0


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log.jsonl", "log.parquet", "arm"])
def test_a_position_in_a_paced_source_is_where_the_reader_is(tmp_path, monkeypatch, name):
    options, total, signals = {"time": "time"}, 9990, ["a", "b"]
    if name == "arm":
        spec, options, signals = "arm://3", {}, ["force", "flexor"]
        times = np.arange(total) / 40
        values = arm.simulate(total, 3)[:, [arm.NAMES.index(signal) for signal in signals]]
    else:
        spec = tmp_path / name
        times, values = written(spec, *some(10_000))
    hands, rng = Hands(monkeypatch), random.Random(1)
    position, at, paced, counters = None, 0, True, None
    while at < total:
        with open_source(spec, signals, **options, pace=1.0 if paced else None) as source:
            if position is not None:
                source.seek(position)
                assert source.position() == position or name == "arm"  # which counts in rows only
            for _ in range(rng.randint(1, 6) if paced else 1):
                if paced:
                    hands.drive(source)
                    hands.now += rng.choice([0.0, 0.0, 1.0, 100.0])
                block = source.read()
                upto = min(at + len(block), total)
                np.testing.assert_array_equal(block.times[: upto - at], times[at:upto])
                np.testing.assert_array_equal(block.values[: upto - at], values[at:upto])
                at = upto
                if at == total:
                    break
            position, counters = json.loads(json.dumps(source.position())), source.counters()
        paced = rng.random() < 0.9
    assert counters["malformed"] == (0 if name == "arm" else 10)


def test_slow_samples_come_as_slowly_and_gaps_are_short(tmp_path, monkeypatch):
    path = tmp_path / "log.csv"
    times = [0, 300, 600, 900, 90_000, 90_300, 200_000, 200_300]
    path.write_text("time,a\n" + "".join(f"{t},1\n" for t in times))
    hands = Hands(monkeypatch)
    when, start = [], hands.now
    with hands.drive(open_source(path, ["a"], time="time", pace=1.0)) as source:
        for block in source:
            when += [hands.now - start] * len(block)
    # The first wait could be for a gap: nobody knows yet.
    np.testing.assert_allclose(np.diff(when), [5, 300, 300, 5, 300, 5, 300], atol=1e-6)


def test_what_cannot_be_paced_is_refused():
    with pytest.raises(ValueError, match="pace is for what can be replayed, got Pipe"):
        Paced(Pipe(io.BytesIO(b"a\n"), ["a"], rate=1))
    for options in ({"pace": -1}, {"longest": 0.0}):
        with pytest.raises(ValueError, match="must be a finite number > 0"):
            Paced(Arm(0, ["force"]), **options)


def test_a_paced_file_may_grow_and_closing_ends_the_wait(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("time,a\n0,0\n")
    with open_source(path, ["a"], time="time", follow=True, pace=1000.0) as source:
        assert source.read(PATIENCE).times.tolist() == [0.0]
        assert len(source.read(0.05)) == 0
        with open(path, "a", encoding="utf-8") as file:
            file.write("1,1\n2,2\n")
        assert wait_for(source, 2)[0].tolist() == [1.0, 2.0]
        position = source.position()
    with open_source(path, ["a"], time="time") as source:
        source.seek(position)
        assert source.read() is None
    source = open_source("arm", ["force"], pace=1e-6)
    assert len(source.read()) == 1
    answers = []
    reader = threading.Thread(target=lambda: answers.append(source.read()))
    reader.start()
    source.close()
    reader.join(PATIENCE)
    assert answers == [None]


@pytest.mark.parametrize(
    ("step", "rows", "pace"),
    [
        (0.025, 2000, 1.0),  # 50 s
        (0.025, 23_000, 1.0),  # 575 s
        (300.0, 4032, 13_000.0),  # two weeks in 90 s: 13,440 times as fast, in two digits
        (1.0, 250_000, 2800.0),  # more than is looked at
    ],
)
def test_a_long_recording_is_replayed_fast(tmp_path, step, rows, pace):
    path = tmp_path / "log.csv"
    times = 1.7e9 + step * np.arange(rows)
    times[rows // 3 :] += 1e6 * step  # a gap, which does not count
    path.write_text("time,a\n" + "".join(f"{t:.3f},1\n" for t in times))
    with open_source(path, ["a"], time="time", pace="fit") as source:
        assert source.pace == pytest.approx(pace, rel=0.05)
        assert source.read(PATIENCE).times[0] == times[0]  # it was read, and begins at its beginning again
        assert source.counters()["malformed"] == 0


def test_nobody_knows_how_long_the_arm_moves(tmp_path):
    with open_source("arm", ["force"], pace="fit") as source:
        assert source.pace == 1.0
    path = tmp_path / "log.csv"
    path.write_text("time,a\n" + "".join(f"{300 * t},1\n" for t in range(20)))
    with open_source(path, ["a"], time="time", follow=True, pace="fit") as source:
        assert source.pace == 12_000.0  # 40 samples a second
    path.write_text("time,a\n0,1\n")
    with open_source(path, ["a"], time="time", pace="fit") as source:
        assert source.pace == 1.0
