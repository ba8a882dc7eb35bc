"""Addresses of brokers: their parts, who connects, and what may be shown."""

import pytest

from trueonline.streams.running.stream_checkpoint import Checkpoint
from trueonline.streams.sources import Mqtt, SourceAddress, open_source, shown_address, without_credentials
from trueonline.streams.sources.addresses import PASSWORD, USER, Address, credentials, tls_context

SECRET = "s3cret"


@pytest.fixture(autouse=True)
def _no_surroundings(monkeypatch):
    for name in (USER, PASSWORD):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("spec", "plain"),
    [
        ("mqtt://host/topic", "mqtt://host/topic"),
        ("mqtt://ann:s3cret@host:1884/a/b", "mqtt://host:1884/a/b"),
        ("MQTTS://ann@[::1]/a", "MQTTS://[::1]/a"),
        ("mqtt://ann:s3:cr%40et@host/a@b", "mqtt://host/a@b"),
        ("mqtt://:s3cret@host/a", "mqtt://host/a"),
        # Malformed: nothing before the last @ is kept.
        ("mqtt://ann:s3cret@host", "mqtt://host"),
        ("mqtt://ann:s3/cr@et@host/a", "mqtt://host/a"),
        ("mqtt:/ann:s3cret@host/a", "mqtt:/host/a"),
        ("mqtts:ann:s3cret@host/a", "mqtts:host/a"),
        ("mqtt//ann:s3cret@host/a", "mqtt//host/a"),
        ("mqtt+ssl://ann:s3cret@host/a", "mqtt+ssl://host/a"),
        # No users there.
        ("lsl://EEG@home", "lsl://EEG@home"),
        ("arm://7", "arm://7"),
        ("logs/x:y@z.csv", "logs/x:y@z.csv"),
        ("mqtt/x:y@z.csv", "mqtt/x:y@z.csv"),
        ("-", "-"),
    ],
)
def test_what_is_stored_and_shown_has_no_user_and_no_password(spec, plain):
    assert without_credentials(spec) == plain
    assert without_credentials(plain) == plain
    assert shown_address(spec) == ("mqtt://host/…@b" if spec.endswith("a@b") else plain)


def test_half_a_password_with_a_bare_slash_is_not_shown():
    for spec in ("mqtt://ann:12/s3cret@host/a", "mqtt://a/nn:s3cret@host/a"):  # a port and a topic, if taken at its word
        assert SECRET not in shown_address(spec)
        assert shown_address(spec).endswith("…@host/a")


BAD = [
    "mqtt://ann:s3cret@host", "mqtt://ann:s3cret@host:0/x", "mqtt://ann:s3cret@host:99999/x", "mqtt://ann:s3/cret@host/x",
    "mqtt://ann:s3@cret@host/x", "mqtt:/ann:s3cret@host/x", "mqtt:ann:s3cret@host/x", "mqtt//ann:s3cret@host/x",
    "mqtt;//ann:s3cret@host", "MQTTS///ann:s3cret@host", "mqtts://ann:s3cret@a..b/x",
    "ws://ann:s3cret@host/x", "mqtt://ann:s3cret@host/a/#/b", "mqtt://ann:12/s3cret@host/#/b",
    "mqtt://ann:s3cret@host/" + "x" * 70_000,
]  # fmt: skip


@pytest.mark.parametrize("spec", BAD)
def test_no_refusal_shows_a_password(spec, tmp_path, monkeypatch):
    from click.testing import CliRunner

    from trueonline.cli import main

    monkeypatch.chdir(tmp_path)
    for options in ({}, {"follow": True}, {"pace": 1.0}, {"mqtt_ca": "nowhere"}):
        with pytest.raises(ValueError, match=r"address|topic|follow|pace|MQTT|mqtt") as caught:
            open_source(spec, ["a"], **options)
        assert all(part not in str(caught.value) for part in ("s3", "cret"))
    result = CliRunner().invoke(main, ["predict", spec, "--target", "a", "--rate", "40", "--out", "x.csv"])
    assert result.exit_code == 1
    assert all(part not in result.output for part in ("s3", "cret", "Traceback"))


@pytest.mark.parametrize(
    "topic", ["a/#/b", "#/a", "a#", "a/b#", "a/+b", "+a/b", "a/##", "a/#/", "a\0b", "x" * 65_536, "\udcff"]
)
def test_a_topic_that_no_broker_takes_is_refused_before_connecting(topic):
    with pytest.raises(ValueError, match=r"the topic .*(is not valid: \+ must be a whole level|at most 65,535 bytes)"):
        Mqtt(f"mqtt://192.0.2.1/{topic}", ["a"], patience=1000.0)


@pytest.mark.parametrize("topic", ["#", "+", "a/+/b/#", "+/+", "/", "a//b", "$SYS/#", "ä b"])
def test_topics_that_are_good(topic):
    assert Address.parse(f"mqtts://host/{topic}").topic == topic
    assert Address.parse(f"mqtts://host/{topic}").port == 8883


def test_where_the_user_and_the_password_come_from(tmp_path, monkeypatch):
    def found(url, file=None):
        return credentials(Address.parse(url), file)

    file = tmp_path / "password"
    file.write_bytes(b" from a file\r\n")
    assert found("mqtt://host/a") is None
    assert found("mqtt://ann@host/a") == ("ann", b"")
    assert found("mqtt://ann:s%2F%FF@host/a") == ("ann", b"s/\xff")
    assert found("mqtt://ann@host/a", file) == ("ann", b" from a file")
    with pytest.raises(ValueError, match="an MQTT password needs a user: give mqtt://USER@host/topic, or set TRUE"):
        found("mqtt://host/a", file)
    with pytest.raises(ValueError, match="in the address and in --mqtt-password-file; give it once"):
        found("mqtt://ann:s@host/a", file)
    monkeypatch.setenv(PASSWORD, "from around")
    with pytest.raises(ValueError, match="needs a user"):
        found("mqtt://host/a")
    monkeypatch.setenv(USER, "bob")
    assert found("mqtt://host/a") == ("bob", b"from around")
    assert found("mqtt://host/a", file) == ("bob", b" from a file")
    assert found("mqtt://ann@host/a") == ("ann", b"from around")
    assert found("mqtt://ann:s@host/a") == ("ann", b"s")
    monkeypatch.setenv(PASSWORD, SECRET * 20_000)
    with pytest.raises(ValueError, match="at most 65,535 bytes each") as caught:
        found("mqtt://host/a")
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(Address.parse(f"mqtt://ann:{SECRET}@host/a"))


def test_files_that_cannot_be_used(tmp_path):
    empty = tmp_path / "empty"
    empty.write_text("\n")
    user, tls = Address.parse("mqtt://ann@host/a"), Address.parse("mqtts://host/a")
    for path, message in (
        (tmp_path / "none", "cannot be read: No such file or directory; name a file that has the password"),
        (tmp_path, "cannot be read: Is a directory"),
        (empty, "is empty; name a file that has the password"),
    ):
        with pytest.raises(ValueError, match=f"--mqtt-password-file {path} {message}"):
            credentials(user, path)
    for path, message in (
        (tmp_path / "none", "No such file or directory; name a file with the certificate"),
        (empty, "it has no certificate in PEM; name"),
    ):
        with pytest.raises(ValueError, match=f"--mqtt-ca {path} cannot be used: {message}"):
            tls_context(tls, path)
    with pytest.raises(ValueError, match="--mqtt-ca is for TLS: give an address mqtts://"):
        tls_context(user, empty)
    for spec in ("log.csv", "-", "lsl://x"):
        with pytest.raises(ValueError, match=f"--mqtt-password-file and --mqtt-ca are for MQTT, got {spec}; leave"):
            open_source(spec, ["a"], rate=1.0, mqtt_ca=empty)


def test_a_checkpoint_with_another_password_or_user_is_of_the_same_run(tmp_path):
    source = {"source": "mqtt://ann:s3cret@host/a", "time": "t"}
    old = Checkpoint({"setup": {"bins": 1}, "source": source, "ended": True}, {})
    assert old.resumes(tmp_path, {"bins": 1}, {"source": without_credentials("mqtt://bob:other@host/a"), "time": "t"})
    assert not old.resumes(tmp_path, {"bins": 1}, {"source": "mqtt://host/b", "time": "t"})
    with pytest.raises(ValueError, match="source was 'mqtt://host/a' and is 'mqtt://host/b'") as caught:
        old.resumes(tmp_path, {"bins": 2}, {"source": "mqtt://host/b", "time": "t"})
    assert SECRET not in str(caught.value)


def test_the_title_of_the_page_has_no_password(monkeypatch):
    from click.testing import CliRunner

    from trueonline.cli import main
    from trueonline.streams.running import predict_command

    titles = []

    def page(title, *_):
        titles.append(title)
        raise ValueError("enough")

    monkeypatch.setattr(predict_command, "Page", page)
    result = CliRunner().invoke(main, ["live", "mqtt://ann:s3cret@host:1884/a/b", "--target", "a", "--rate", "40"])
    assert "enough" in result.output
    assert titles == ["mqtt://host:1884/a/b"]


@pytest.mark.parametrize(
    ("names", "title"),
    [
        ("/var/log/pump.csv", "pump.csv"),
        ("logs/", "logs"),
        (["logs/a.csv", "logs/b.csv"], "a.csv and b.csv"),
        ("mqtt://ann:secret@host/plant/flow", "mqtt://host/plant/flow"),
        ("-", "-"),
    ],
)
def test_the_title_of_a_source_has_no_folder_and_no_password(names, title):
    assert SourceAddress.of(names).title == title
