"""The examples of a service: the commands in the unit file, the Dockerfile and the scripts run."""

import configparser
import json
import os
import shlex
import signal
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path

import numpy as np

from tests.processes import start, wait_for
from tests.streams.mosquitto import free_port

ROOT = Path(__file__).parents[2]
SERVICE = ROOT / "examples" / "service"


def samples(begin, end):
    """A sine, a sample a second, with one jump at 3500."""
    values = [20.0 + np.sin(t / 10.0) + 100.0 * (t == 3500) for t in range(begin, end)]
    return "".join(f"{t},{value:.3f}\n" for t, value in zip(range(begin, end), values, strict=True))


def configured(folder, **changes):
    """The configuration of the example, with the paths of a test."""
    notify = folder / "notify.sh"
    notify.write_text(f'#!/bin/sh\nprintf "%s\\n" "$TRUEONLINE_ALERT" >> {folder / "phone"}\n')
    notify.chmod(0o755)
    (folder / "log.csv").write_text("time,temperature\n" + samples(0, 3400))
    text = (SERVICE / "config.toml").read_text().replace("/var/log/temperature.csv", str(folder / "log.csv"))
    text = text.replace("/etc/trueonline/notify.sh", str(notify)).replace('"1h"', '"20s"')
    config = folder / "config.toml"
    config.write_text(text + 'checkpoint-every = "0.05"\n')
    return config


def test_the_command_of_the_unit_file_runs_resumes_and_rings(tmp_path):
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(SERVICE / "trueonline.service")
    program, *words = shlex.split(unit["Service"]["ExecStart"])
    assert Path(program).name == "trueonline"
    config = configured(tmp_path)
    command = [sys.executable, "-m", "trueonline", *words]
    command[command.index("/etc/trueonline/config.toml")] = str(config)
    checkpoint = tmp_path / "predictions.csv.checkpoint"
    for stop in (signal.SIGKILL, signal.SIGTERM):
        process = start(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        wait_for(lambda before=before: checkpoint.exists() and checkpoint.stat().st_mtime_ns > before, "checkpoint")
        if stop == signal.SIGTERM:
            with open(tmp_path / "log.csv", "a") as log:
                log.write(samples(3400, 4000))
            wait_for((tmp_path / "phone").exists, "alert")
        process.send_signal(stop)
        said = process.communicate()
    assert process.returncode == int(unit["Service"]["SuccessExitStatus"])
    assert said[0] == ""
    assert "temperature 12" in (tmp_path / "phone").read_text() or "temperature 11" in (tmp_path / "phone").read_text()
    assert json.loads((tmp_path / "alerts.jsonl").read_text().splitlines()[-1])["target"] == "temperature"
    times = [line.split(",")[0] for line in (tmp_path / "predictions.csv").read_text().splitlines()[1:]]
    assert times == [f"{t:.1f}" for t in range(len(times))]


def test_the_command_of_the_dockerfile_serves_and_is_healthy(tmp_path):
    lines = (SERVICE / "Dockerfile").read_text().splitlines()
    names = ("RUN", "CMD", "HEALTHCHECK")
    of = {name: [line.removeprefix(f"{name} ") for line in lines if line.startswith(f"{name} ")] for name in names}
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (run,) = of["RUN"]
    assert set(run.partition("[")[2].partition("]")[0].split(",")) <= set(extras)
    command, check = json.loads(of["CMD"][0]), json.loads(of["HEALTHCHECK"][0].removeprefix("CMD "))
    assert command[0] == "trueonline"
    configured(tmp_path)
    port = str(free_port())
    process = start(
        [sys.executable, "-m", *command, "--port", port],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        check = [sys.executable, *(word.replace("8040", port) for word in check[1:])]
        wait_for(lambda: subprocess.run(check, capture_output=True, check=False).returncode == 0, "health")
        token = command[command.index("--token") + 1]
        address = f"http://127.0.0.1:{port}/metrics?token={token}"
        wait_for(lambda: b"trueonline_samples_total 3400" in urllib.request.urlopen(address).read(), "samples")
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def test_the_script_logs_what_the_sensor_says(tmp_path):
    sys.path.insert(0, str(SERVICE))
    try:
        from log_temperature import log
    finally:
        sys.path.remove(str(SERVICE))
    (tmp_path / "sensor").write_text("48312\n")
    for _ in range(2):
        log(tmp_path / "log.csv", tmp_path / "sensor", seconds=0.0, samples=1)
    head, *rows = (tmp_path / "log.csv").read_text().splitlines()
    assert head == "time,temperature"
    assert [row.split(",")[1] for row in rows] == ["48.312"] * 2


def test_the_command_for_the_phone_sends_the_words(tmp_path):
    curl = tmp_path / "curl"
    curl.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    curl.chmod(0o755)
    settings = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TRUEONLINE_ALERT": "a jump; $(no)", "NTFY_TOPIC": "mine"}
    done = subprocess.run([SERVICE / "notify.sh"], env=settings, capture_output=True, text=True, check=True)
    assert "a jump; $(no)" in done.stdout.splitlines()
    assert done.stdout.splitlines()[-1] == "https://ntfy.sh/mine"
