"""Predictions sent to a real broker, which comes and goes."""

import time

import numpy as np
import pytest

from tests.streams import surprising
from tests.streams.mosquitto import Broker, listener, until, with_broker
from tests.streams.predict_calls import predict
from trueonline.streams.outputs import publishing
from trueonline.streams.outputs.publishing import Publisher
from trueonline.streams.predictor import Answers, Predictor
from trueonline.streams.sources import TimeStyle
from trueonline.streams.sources.addresses import divided_access

pytestmark = [
    with_broker,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # paho leaves some sockets to Python
]


@pytest.fixture
def broker(tmp_path):
    broker = Broker(tmp_path)
    yield broker
    broker.kill()


def answers(first, last, signals=1):
    times = np.arange(first, last, dtype=float)
    return Answers(times, times == 0, np.zeros((len(times), signals)), np.column_stack([times, -times]))


def test_every_sample_is_a_message_and_alerts_have_a_topic_of_their_own(broker, tmp_path, monkeypatch):
    monkeypatch.setattr(Predictor, "learn", surprising.surprised)
    monkeypatch.setattr(publishing, "QUEUE_MESSAGES", 1000)
    size = 5000  # more than fit into the queue, as fast as they can be read
    (tmp_path / "log.csv").write_text("x\n" + "".join(f"{10 if t % 1000 == 999 else t % 3}\n" for t in range(size)))
    # One in almost three hours: each is an incident of its own.
    options = [
        "--rate",
        0.1,
        "--target",
        "x",
        "--horizon",
        "10s,20s",
        "--json",
        "--alert",
        1,
        "--out",
        tmp_path / "out.csv",
    ]
    with listener(broker.port) as heard:
        told = predict(tmp_path / "log.csv", *options, "--publish", broker.url("a/b"))
        until(lambda: len(heard) >= size + 5, "the arrival of all messages")
    assert told["counters"]["not_published"] == 0
    assert told["warnings"] == []
    assert not any(retained for _, _, retained in heard)
    samples = [said for topic, said, _ in heard if topic == "a/b"]
    alerts = [said for topic, said, _ in heard if topic == "a/b/alerts"]
    rows = np.genfromtxt(tmp_path / "out.csv", delimiter=",", skip_header=1)[:, [0, 1, 4]]  # without the bands
    assert [
        [each["time"], *(each["predictions"][f"x@{h}"]["value"] for h in ("10s", "20s"))] for each in samples
    ] == rows.tolist()
    assert samples[7] == {
        "time": 70,
        "predictions": {
            name: {"value": value, "low": value - 1.0, "high": None}
            for name, value in zip(("x@10s", "x@20s"), rows[7, 1:].tolist(), strict=True)
        },
        "surprise": 0.1,
    }
    assert [each["time"] for each in alerts] == [10 * (999 + 1000 * i) for i in range(5)]
    told = {"surprise": 1.0, "question": "x@20s", "target": "x", "value": 10.0, "expected": 0.0, "error": 10.0}
    assert (told | {"usual_error": 1.5}).items() <= alerts[0].items()


def test_times_are_as_they_came_in(broker, tmp_path, monkeypatch):
    monkeypatch.setattr(Predictor, "learn", surprising.surprised)
    times = [f"2014-04-{13 + t // 24} {t % 24:02}:35:00+02:00" for t in range(60)]
    values = (10 if t in (10, 45) else t % 3 for t in range(60))
    (tmp_path / "log.csv").write_text("at,x\n" + "".join(f"{at},{x}\n" for at, x in zip(times, values, strict=True)))
    options = ["--time", "at", "--target", "x", "--discount", 0.9, "--alert", 1]
    with listener(broker.port) as heard:
        predict(tmp_path / "log.csv", *options, "--publish", broker.url("a"))
        until(lambda: len(heard) >= 62, "the arrival of all messages")
    assert [said["time"] for topic, said, _ in heard if topic == "a"] == times
    assert [said["time"] for topic, said, _ in heard if topic == "a/alerts"] == [times[10], times[45]]


def test_a_broker_that_is_stopped_and_started_again(broker, monkeypatch):
    """What fits into the queue comes later. What does not is counted. Nothing waits."""
    monkeypatch.setattr(publishing, "QUEUE_MESSAGES", 2000)
    publisher = Publisher(broker.url("p"), ["a", "b"], patient=True)
    publisher.publish(answers(0, 100), TimeStyle())
    until(lambda: not publisher._waiting, "the arrival of the first messages")
    broker.kill()
    until(lambda: not publisher._client.is_connected(), "the end of the connection")
    begun = time.monotonic()
    publisher.publish(answers(100, 100 + publishing.QUEUE_MESSAGES + 50), TimeStyle())
    assert time.monotonic() - begun < publishing.STALL_SECONDS
    assert publisher.lost == 50
    until(lambda: len(publisher.warnings()) == 2, "an attempt to connect again")
    assert (
        "is lost: the connection is refused: nothing listens there; it is tried again" in publisher.warnings()["broker"]
    )
    assert publisher.warnings()["unpublished"].startswith("predictions could not be published: 50 messages")
    broker.start()
    with listener(broker.port) as heard:
        until(lambda: len({said["time"] for _, said, _ in heard}) > 0, "the arrival of what waited")
        publisher.publish(answers(50_000, 50_100), TimeStyle())
        publisher.finish()
        until(lambda: heard[-1][1]["time"] == 50_099, "the arrival of the last message")
    assert publisher.lost == 50
    assert "is lost" not in str(publisher.warnings())


def test_what_is_left_at_the_end_is_counted(broker, monkeypatch):
    monkeypatch.setattr(publishing, "LAST_SECONDS", 0.1)
    publisher = Publisher(broker.url("p"), ["a", "b"], patient=False)
    broker.kill()
    publisher.publish(answers(0, 30), TimeStyle())
    publisher.finish()
    assert publisher.lost == 30


def test_a_broker_that_takes_nothing_is_waited_for_once(broker, monkeypatch):
    """It is stopped as by Ctrl-Z: connected, but silent."""
    import signal

    monkeypatch.setattr(publishing, "QUEUE_MESSAGES", 100)
    monkeypatch.setattr(publishing, "STALL_SECONDS", 0.2)
    publisher = Publisher(broker.url("p"), ["a", "b"], patient=True)
    broker.process.send_signal(signal.SIGSTOP)
    waits = []
    wait_for = publisher._changed.wait_for
    monkeypatch.setattr(
        publisher._changed, "wait_for", lambda *given: waits.append(given) or wait_for(*given), raising=False
    )
    publisher.publish(answers(0, 300), TimeStyle())
    assert publisher.lost == 200
    assert len(waits) == 1
    broker.process.send_signal(signal.SIGCONT)
    until(lambda: not publisher._waiting, "the arrival of what waited")
    publisher.publish(answers(300, 500), TimeStyle())  # it is waited for again
    assert publisher.lost == 200
    publisher.finish()


def test_shared_options_are_for_the_addresses_that_they_fit():
    bare, full, tls = "mqtt://ann@h/a", "mqtt://ann:x@h/a", "mqtts://h/b"
    both, none = {"password_file": "file", "ca": "ca"}, {"password_file": None, "ca": None}
    assert divided_access([full, tls], "file", "ca") == [none, both]
    assert divided_access([bare, full], "file", None)[0] == {"password_file": "file", "ca": None}
    assert divided_access([full, full], "file", "ca") == [both, none]  # the first says what is wrong


@pytest.mark.parametrize(
    ("source", "url", "said"),
    [
        ("log.csv", "mqtt://127.0.0.1/a/#", "--publish needs one topic, without + and #, got a/#"),
        ("log.csv", "http://x/y", "the address must be mqtt://"),
        ("log.csv", "mqtt://127.0.0.1:1/a", "cannot publish to mqtt://127.0.0.1:1/a: the connection is refused"),
        ("mqtt://h/a", "mqtt://h/a", "is on a topic that the source mqtt://h/a listens to; name another topic"),
        ("mqtt://h/#", "mqtt://ann:x@h:99/b", "is on a topic that the source mqtt://h/# listens to"),
        ("mqtt://h/a/+", "mqtt://h/a", "is on a topic that the source mqtt://h/a/+ listens to"),  # alerts are on a/alerts
    ],
)
def test_places_that_cannot_be_published_to(tmp_path, monkeypatch, source, url, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("x\n1\n")
    assert said in predict(source, "--rate", 1, "--target", "x", "--out", "out.csv", "--publish", url, fails=True)
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]
