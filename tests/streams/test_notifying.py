"""Alerts go to commands and web addresses, again and again if that fails, and nobody waits for them."""

import contextlib
import json
import os
import signal
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import StreamRequestHandler, ThreadingTCPServer

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from tests.processes import wait_for
from tests.streams.predict_calls import predict
from trueonline.streams.outputs import notifying
from trueonline.streams.outputs.notifying import QUEUE_ALERTS, TRIES, Notifier, to_command, to_webhook

LINE = b'{"time": 1.0, "surprise": 1.0}\n'


@contextmanager
def server(*answers):
    """A web server that gives these answers in turn, and then 200. None: it waits until the test is over."""
    got, left, over = [], list(answers), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.headers["Content-Type"], json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            answer = left.pop(0) if left else 200
            if answer is None:
                over.wait()
                answer = 200
            self.send_response(answer)
            self.end_headers()

        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{http.server_port}/hook?secret=1", got
    finally:
        over.set()
        http.shutdown()
        http.server_close()


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(Notifier.__init__, "__defaults__", (0.01,))


@pytest.fixture
def log(tmp_path):
    """A signal with one jump."""
    x = np.sin(np.arange(600) / 10.0)
    x[500] += 50.0
    path = tmp_path / "log.csv"
    pyarrow.csv.write_csv(pa.table({"time": np.arange(600.0), "x": x}), path)
    return path


def test_what_fails_is_sent_again(impatient):
    with server(500, 404) as (url, got):
        notifier = to_webhook(url)
        notifier.tell("a jump", LINE)
        notifier.tell("another", LINE)
        wait_for(lambda: len(got) == 4, "second alert")
        notifier.finish(10.0)
        assert [each["text"] for _, each in got] == ["a jump"] * 3 + ["another"]
        assert got[0] == ("application/json", {"time": 1.0, "surprise": 1.0, "text": "a jump"})
        assert (notifier.lost, notifier.warnings()) == (0, {})
        notifier.close()


def test_after_some_tries_an_alert_is_lost_and_counted(impatient):
    with server(*[500] * TRIES) as (url, got):
        notifier = to_webhook(url)
        notifier.tell("lost", LINE)
        wait_for(lambda: notifier.lost, "loss")
        assert len(got) == TRIES
        assert any("secret" not in each and "500" in each for each in notifier.warnings().values())
        notifier.tell("sent", LINE)
        wait_for(lambda: len(got) > TRIES, "next alert")
        notifier.finish(10.0)
        assert notifier.lost == 1
        notifier.close()


def test_nobody_waits_for_a_server_that_does_not_answer(log):
    with server(None) as (url, got):
        summary = predict(log, "--time", "time", "--target", "x", "--alert", "0.9", "--alert-webhook", url, "--json")
        assert summary["samples"] == 600
        assert len(got) == 1
        assert any("could not be sent to 127.0.0.1" in each for each in summary["warnings"])


def test_the_oldest_of_too_many_makes_way():
    go, sent = threading.Event(), []

    def send(words, content):
        go.wait()
        sent.append(words)

    notifier = Notifier(send, "nowhere")
    for k in range(QUEUE_ALERTS + 11):
        notifier.tell(str(k), LINE)
        if k == 0:
            wait_for(lambda: notifier._busy, "first alert on its way")
    go.set()
    notifier.finish(60.0)
    assert notifier.lost == 10
    assert sent == ["0", *map(str, range(11, QUEUE_ALERTS + 11))]
    notifier.close()


def test_a_command_gets_the_alert_and_no_shell_reads_it(log, tmp_path, impatient):
    out, script = tmp_path / "said", tmp_path / "say.py"
    script.write_text(
        "import os, sys\n"
        f"path = {str(out)!r}\n"
        "sys.exit(3) if not os.path.exists(path + '.once') and not open(path + '.once', 'w').close() else None\n"
        f"open(path, 'a').write(os.environ[{notifying.TEXT!r}] + '\\n' + sys.stdin.read())\n"
    )
    notifier = to_command(f"{sys.executable} {script}")
    notifier.tell("$(touch /tmp/no); a jump", LINE)
    wait_for(lambda: out.exists() and out.read_text().count("\n") == 2, "alert")  # at the second try
    words, line = out.read_text().splitlines()
    assert words == "$(touch /tmp/no); a jump"
    assert json.loads(line)["surprise"] == 1.0
    notifier.close()


def test_a_command_may_leave_another_behind(tmp_path, impatient, monkeypatch):
    monkeypatch.setattr(notifying, "SEND_SECONDS", 3.0)
    out = tmp_path / "said"
    notifier = to_command(f"sh -c 'sleep 60 & echo $! >> {out}'")
    notifier.tell("a jump", LINE)
    notifier.finish(60.0)
    children = out.read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    assert (len(children), notifier.lost, notifier.warnings()) == (1, 0, {})
    notifier.close()


@pytest.mark.parametrize("name", ["\0pump", "\ud800pump"])
def test_names_that_no_command_can_be_given_are_told_without_their_odd_characters(name, tmp_path, impatient):
    out = tmp_path / "said"
    notifier = to_command(f"sh -c 'echo $TRUEONLINE_ALERT > {out}'")
    notifier.tell(f"{name}: a jump", LINE)
    notifier.finish(60.0)
    assert out.read_text() == "\ufffdpump: a jump\n"
    notifier.close()


@contextmanager
def rude_server(answer):
    """What answers everything with these bytes."""

    class Handler(StreamRequestHandler):
        def handle(self):
            self.request.recv(10_000)
            self.wfile.write(answer)

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as rude:
        threading.Thread(target=rude.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{rude.server_address[1]}/hook"
        rude.shutdown()


MOVED = b"HTTP/1.1 %d Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"220 mail.example ESMTP\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 1000,
        *(MOVED % n for n in (301, 303, 307)),
    ],
    ids=["mail", "nothing", "headers", "301", "303", "307"],
)
def test_no_answer_ends_the_thread_or_passes_for_success(answer, impatient):
    """A redirection would be followed without the alert."""
    with rude_server(answer) as url:
        notifier = to_webhook(url)
        notifier.tell("lost", LINE)
        wait_for(lambda: notifier.lost, "loss")
        assert notifier._thread.is_alive()
        assert len(notifier.warnings()) == 2
        notifier.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--alert-webhook", "ftp://x/y"], "must be http://"),
        (["--alert-webhook", "http://x:port/y"], "must be http://"),
        (["--alert-webhook", "http://x:99999/y"], "must be http://"),
        (["--alert-webhook", "http://[x/y"], "must be http://"),
        (["--alert-webhook", "http://x/a b"], "must be http://"),
        (["--alert-webhook", "http://ann:secret@x/y"], "must be http://"),
        (["--alert-command", "no-such-command-anywhere"], "names no command"),
        (["--alert-command", "'"], "cannot be read"),
    ],
)
def test_bad_destinations_are_refused(log, options, message):
    assert message in predict(log, "--time", "time", "--target", "x", *options, fails=True)


# --- Files of options -----------------------------------------------------------------------------


def test_a_file_of_options_says_the_same_as_the_command_line(log, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text(f'source = "{log}"\ntime = "time"\ntarget = ["x"]\nhorizon = "5s"\nout = "{tmp_path / "a.csv"}"\n')
    predict("--config", config)
    predict(log, "--time", "time", "--target", "x", "--horizon", "5s", "--out", tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    predict("--config", config, "--horizon", "7s", "--out", tmp_path / "c.csv")
    assert (tmp_path / "c.csv").read_text().startswith("time,x@7s,")


def test_signals_have_settings_of_their_own(tmp_path):
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=500), 2)
    x[800:802] += 1000.0  # a jump of both
    table = pa.table({"time": np.repeat(np.arange(500.0), 2), "name": ["a", "b"] * 500, "x": x})
    log = tmp_path / "long.csv"
    pyarrow.csv.write_csv(table, log)
    config = tmp_path / "config.toml"
    config.write_text('[signals.b]\ncoverage = 0.5\nalert = 0.5\n[signals."*"]\nalert = 1.0\n')
    options = [log, "--time", "time", "--target", "x", "--by", "name", "--config", config]
    summary = predict(*options, "--alerts", tmp_path / "alerts", "--json")
    inside = {question["signal"]: question["band"] for question in summary["questions"]}
    assert inside["a"]["coverage"] == 0.9
    assert inside["b"]["coverage"] == 0.5
    assert inside["b"]["inside"] < 0.7 < inside["a"]["inside"]
    alerts = [json.loads(line) for line in (tmp_path / "alerts").read_text().splitlines()]
    assert {alert["signal"] for alert in alerts} == {"b"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("horizn = '1h'", "config.toml has the unknown key horizn; did you mean horizon?"),
        ("[", "is not TOML"),
        ("horizon = {a = 1}", "horizon in config.toml must be text or a number, got {'a': 1}"),
        ("coverage = '0.9'", "coverage in config.toml must be a number, got '0.9'"),
        ("coverage = nan", "coverage in config.toml must be a number, got nan"),
        ("alert = 2", "alert in config.toml: 2.0 is not in the range"),
        ("samples = 3.5", "samples in config.toml must be a whole number, got 3.5"),
        ("quiet = 1", "quiet in config.toml must be true or false, got 1"),
        ("out = 3", "out in config.toml must be text, got 3"),
        ("missing = 'drop'", "missing in config.toml: 'drop' is not one of"),
        ("signal = {a = {alert = 0.5}}", "unknown key signal; did you mean signals?"),
        ("[signals.a]\nallert = 1", '[signals."a"] in config.toml has the unknown key allert; did you mean alert?'),
        ("[signals.a]\nalert = '0.9'", "alert of [signals.\"a\"] in config.toml must be a number, got '0.9'"),
        ("[signals.a]\ncoverage = 1.0", 'coverage of [signals."a"] in config.toml: 1.0 is not in the range'),
        ("[signals.a]\nmax-gap = 'long'", 'max-gap of [signals."a"] in config.toml: a time must be'),
        ("[signals]\na = 1", '[signals."a"] in config.toml must be a section'),
        ("[signals.a]\nalert = 0.5", "give --by"),
    ],
)
def test_bad_files_of_options_are_refused(log, tmp_path, text, message):
    (tmp_path / "config.toml").write_text(text)
    with contextlib.chdir(tmp_path):
        assert message in predict(log, "--time", "time", "--target", "x", "--config", "config.toml", fails=True)


def test_quiet_prints_nothing_but_warnings(log, tmp_path):
    assert predict(log, "--time", "time", "--target", "x", "--out", tmp_path / "out.csv", "--quiet") == ""
    columns = pyarrow.csv.read_csv(tmp_path / "out.csv").column_names
    assert columns == ["time", "x@20samples", "x@20samples.low", "x@20samples.high", "surprise", "x"]
