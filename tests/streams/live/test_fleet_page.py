"""The list of the signals of a fleet, their charts, and what monitors ask for."""

import json
import signal
import urllib.request
from datetime import datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from websockets.exceptions import ConnectionClosed

from tests.processes import wait_for
from tests.streams.live.helpers import command, connect, get, heard, small_hub
from trueonline.streams.live import Board, Hubs, Server
from trueonline.streams.live.board import MAX_HUBS

ROWS = "return [...document.querySelectorAll('#list tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
NAMES = ["a & b", "<i>c</i>", "d/ü"]


@pytest.fixture
def fleet(tmp_path):
    """The address of a run over three signals, of which the last one jumps, and the process."""
    path, T = tmp_path / "long.csv", 1500
    x = np.array([10.0, 20.0, 30.0]) + np.sin(np.arange(T)[:, None] / [20.0, 30.0, 40.0])
    x[1490, 2] += 100.0
    begin = datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=-3)))
    times = [(begin + timedelta(minutes=t)).isoformat() for t in range(T) for _ in NAMES]
    pyarrow.csv.write_csv(pa.table({"time": times, "pump": NAMES * T, "flow": x.ravel()}), path)
    config = tmp_path / "config.toml"
    config.write_text('[signals."a*"]\nalert = 0.05\n')
    options = [
        "--time",
        "time",
        "--by",
        "pump",
        "--target",
        "flow",
        "--horizon",
        "10min",
        "--pace",
        "1e9",
        "--alert",
        "0.99",
        "--config",
        config,
    ]
    with command(path, *options, cwd=tmp_path) as process:

        def ended():
            with urllib.request.urlopen(f"{process.url}health") as answer:
                return json.load(answer)["state"] == "ended"

        wait_for(ended, "end of the stream")
        yield process.url, process


def test_the_list_has_the_worst_first_and_leads_to_charts(browser, fleet):
    address, process = fleet
    driver = browser.chrome
    for width, height in ((1200, 800), (390, 800)):
        driver.set_window_size(width, height)
        driver.get(address)
        wait_for(lambda: len(driver.execute_script(ROWS)) == 3, "list")
        names = [row[0] for row in driver.execute_script(ROWS)]
        assert names[0] == "d/ü"
        assert sorted(names) == sorted(NAMES)
        assert driver.execute_script("return document.querySelector('#state').textContent") == "the stream has ended"
        assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    rows = {row[0]: row for row in driver.execute_script(ROWS)}
    assert int(rows["d/ü"][5]) >= 1  # alerts
    assert rows["d/ü"][6].startswith("Tue 2 Jan 2024, 00:50: ")  # by the clock of the input
    assert driver.execute_script("return document.querySelector('#zone').textContent") == "times: UTC−3"
    assert int(rows["a & b"][5]) >= 1  # by a threshold of its own
    assert rows["<i>c</i>"][5] == "–"
    assert all("%" in row[4] for row in driver.execute_script(ROWS))  # 1500 samples are 150 horizons
    driver.switch_to.new_window("tab")
    driver.get(address)
    wait_for(lambda: len(driver.execute_script(ROWS)) == 3, "list")
    driver.execute_script(
        "document.querySelectorAll('#list a').forEach((a) => { if (a.textContent === 'd/ü') a.click(); })"
    )
    wait_for(lambda: driver.execute_script("return window.trueonline?.points('flow@10min') ?? 0") > 1000, "chart")
    assert driver.execute_script("return document.querySelector('#title').textContent") == "d/ü"
    wait_for(lambda: driver.execute_script("return trueonline.alerts('flow@10min').length"), "alert")
    process.send_signal(signal.SIGTERM)
    state = "return document.querySelector('#state').textContent"
    for _ in range(2):
        wait_for(lambda: driver.execute_script(state) == "trueonline was stopped", "orderly stop")
        driver.get_log("browser")  # it tries to connect again, and says so
        driver.close() if len(driver.window_handles) > 1 else None
        driver.switch_to.window(driver.window_handles[0])
    driver.set_window_size(1200, 800)


def test_monitors_get_figures(fleet):
    address, _ = fleet
    lines = urllib.request.urlopen(f"{address}metrics").read().decode().splitlines()
    assert "trueonline_samples_total 4500.0" in lines
    assert "trueonline_signals 3.0" in lines
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(values['trueonline_value{signal="<i>c</i>"}']) == pytest.approx(20.0 + np.sin(1499 / 30.0))
    assert all(float(value) is not None for value in values.values())
    for line in lines:
        if line.startswith("# TYPE"):
            assert any(each.startswith(line.split()[2]) for each in values) or "dropped" in line


def test_a_run_that_gives_no_sign_is_not_healthy(monkeypatch):
    board = Board()
    with Server(small_hub(), board=board) as served:
        assert get(served, "/health")[0] == 200
        monkeypatch.setattr("trueonline.streams.live.board.HEALTHY_SECONDS", -1.0)
        status, _, content = get(served, "/health")
        assert (status, json.loads(content)["healthy"]) == (503, False)


def test_charts_are_few_and_only_those_of_known_signals():
    hubs = Hubs(lambda name: small_hub(kept=16))
    assert hubs.note("first") is not None
    for k in range(3 * MAX_HUBS):
        hubs.note(str(k))
    assert len(hubs.of) == MAX_HUBS
    late = str(3 * MAX_HUBS - 1)
    assert late not in hubs.of
    with Server(hubs) as served:
        with connect(served, f"/feed?signal={late}") as client:
            heard(client, "hello")
            assert late in hubs.of
            assert len(hubs.of) == MAX_HUBS
        with connect(served) as client:
            assert heard(client, "hello")["title"] == "An arm"  # the list, which only waits for the end
        with connect(served, "/feed?signal=nobody") as client, pytest.raises(ConnectionClosed) as caught:
            client.recv()
        assert caught.value.rcvd.code == 1008
