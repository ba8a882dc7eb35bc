"""MQTT with users and TLS: a real broker with passwords and a certificate of its own."""

import json
import threading
import time

import pytest
from click.testing import CliRunner

from tests.streams.mosquitto import Guarded, listener, publisher, until, with_broker
from tests.streams.predict_calls import predict
from trueonline.cli import main
from trueonline.streams.sources import Mqtt, open_source
from trueonline.streams.sources.addresses import PASSWORD, USER

pytestmark = [
    with_broker,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # paho leaves some sockets to Python
]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    broker = Guarded(tmp_path_factory.mktemp("broker"))
    yield broker
    broker.kill()


@pytest.fixture
def publish(guarded):
    with publisher(guarded.open_port) as send:
        yield send


@pytest.fixture(autouse=True)
def _no_surroundings(monkeypatch):
    for name in (USER, PASSWORD):
        monkeypatch.delenv(name, raising=False)


def test_users_who_are_let_in_and_those_who_are_not(guarded, tmp_path, monkeypatch):
    file = tmp_path / "password"
    file.write_text("s3cret/@\n")
    with Mqtt(guarded.url(user="ann:s3cret%2F%40@"), ["a"]) as source:
        assert source.counters()["connections"] == 1
    open_source(guarded.url(user="ann@"), ["a"], mqtt_password_file=file).close()
    for user in ("", "ann:wrong@", "ann@"):
        refusal = (
            rf"cannot listen to mqtt://127\.0\.0\.1:{guarded.port}/arm: the broker says .*uthori.*; check the user and"
        )
        with pytest.raises(ValueError, match=refusal) as caught:
            Mqtt(guarded.url(user=user), ["a"])
        assert "wrong" not in str(caught.value)
        assert "ann:" not in str(caught.value)
    monkeypatch.setenv(USER, "bob")
    monkeypatch.setenv(PASSWORD, "pass2word")
    Mqtt(guarded.url(), ["a"]).close()
    monkeypatch.setenv(PASSWORD, "wrong")
    with pytest.raises(ValueError, match="check the user and the password"):
        Mqtt(guarded.url(), ["a"])


def test_samples_come_over_tls_if_the_certificate_is_trusted(guarded, publish, monkeypatch):
    user = "ann:s3cret%2F%40@"
    with open_source(guarded.tls_url(user), ["a"], mqtt_ca=guarded.ca) as source:
        publish(*({"time": t, "a": t} for t in range(2000)))
        values = []
        while len(values) < 2000:
            values += source.read(0.2).values[:, 0].tolist()
        assert values == list(range(2000))
    refusal = r"the broker's certificate is not trusted \(.+\); check the name of the host, or name .* with --mqtt-ca"
    with pytest.raises(ValueError, match=refusal) as caught:
        open_source(guarded.tls_url(user), ["a"])
    assert "s3cret" not in str(caught.value)
    with pytest.raises(ValueError, match=r"not trusted \(Hostname mismatch.*; check the name of the host"):
        Mqtt(guarded.tls_url(user, "localhost"), ["a"], ca=guarded.ca)
    with pytest.raises(ValueError, match=r"the broker says .*; check the user and the password"):
        Mqtt(guarded.tls_url("ann:wrong@"), ["a"], ca=guarded.ca)
    monkeypatch.setenv("SSL_CERT_FILE", str(guarded.ca))  # as if the authority were one of the system's
    Mqtt(guarded.tls_url(user), ["a"]).close()


def test_tls_where_there_is_none_and_none_where_there_is_tls(guarded):
    for scheme, port, hint in (
        ("mqtt", guarded.tls_port, "if it wants TLS, give mqtts://"),
        ("mqtts", guarded.port, r"is there TLS at that port\?"),
    ):
        with pytest.raises(ValueError, match=rf"did not answer within 0\.5 s \(the broker closes the connection: {hint}"):
            Mqtt(f"{scheme}://127.0.0.1:{port}/arm", ["a"], patience=0.5)


def test_no_file_and_no_word_of_a_run_has_the_password_and_another_user_can_resume_it(guarded, publish, tmp_path):
    def predicted(url, samples, **environment):
        options = ["--target", "a", "--rate", "40", "--time", "time", "--out", str(tmp_path / "out.csv"), "--json"]
        options += ["--checkpoint", str(tmp_path / "kept"), "--every", "0.01"]
        over = threading.Event()

        def feed():
            while not over.wait(0.005):
                publish({"time": time.time(), "a": 1.0})

        feeding = threading.Thread(target=feed)
        feeding.start()
        try:
            result = CliRunner(env=environment).invoke(main, ["predict", url, *options, "--samples", str(samples)])
        finally:
            over.set()
            feeding.join()
        assert result.exit_code == 0, result.output
        for written in (result.output.encode(), *(path.read_bytes() for path in tmp_path.iterdir())):
            assert all(secret not in written for secret in (b"s3cret", b"ann:", b"pass2word"))
        return result

    first = predicted(guarded.url(user="ann:s3cret%2F%40@"), 20)
    assert json.loads(first.stdout)["samples"] == 20
    again = predicted(guarded.url(), 30, **{USER: "bob", PASSWORD: "pass2word"})
    assert "Resuming from sample 20" in again.stderr
    assert json.loads(again.stdout)["samples"] == 30


def test_predictions_are_published_with_users_and_tls(guarded, tmp_path):
    (tmp_path / "log.csv").write_text("x\n" + "1\n" * 50)
    (tmp_path / "password").write_text("s3cret/@\n")
    options = [tmp_path / "log.csv", "--rate", 10, "--target", "x", "--json", "--mqtt-ca", guarded.ca, "--publish"]
    with listener(guarded.open_port) as heard:
        password = ["--mqtt-password-file", tmp_path / "password"]
        assert predict(*options, guarded.tls_url("ann@"), *password)["counters"]["not_published"] == 0
        until(lambda: len(heard) == 50, "the arrival of the messages")
    said = predict(*options, guarded.tls_url("ann:wrong@"), fails=True)
    assert f"cannot publish to mqtts://127.0.0.1:{guarded.tls_port}/arm: the broker says" in said
    assert "wrong" not in said
