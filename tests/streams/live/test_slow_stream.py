"""The page of a stream with a sample every five minutes, in a real browser: dates, band, alerts, skill and experts."""

from dataclasses import asdict
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

from tests.processes import wait_for as until
from trueonline.streams.live import Hub, PageQuestion, Server
from trueonline.streams.outputs.alerts import Alert
from trueonline.streams.predictor import Answers


def test_a_slow_stream_has_dates_a_band_alerts_skill_and_experts(browser):
    from selenium.webdriver import ActionChains

    n, begin = 4032, datetime(2014, 3, 3, tzinfo=timezone(timedelta(hours=1))).timestamp()
    times = begin + 300.0 * np.arange(n)
    signal = 60.0 + 20.0 * np.sin(np.arange(n) * 2 * np.pi / 288)
    prediction = signal[:, None] + 1.0
    band = [prediction - 8.0, prediction + 8.0]
    band[0][:100] = np.nan  # unknown at first
    hub = Hub([PageQuestion("value@1h", "value", None, 3600.0, "mean")], ["value"], "log.csv", offset=3600.0)
    hub.publish(Answers(times, np.arange(n) == 0, signal[:, None], prediction, *band))
    about = (3.3, 0.9995, "value@1h", "value", "a jump", 71.2, 83.4, -12.2, 1.2)
    alert = Alert(times[-100], "begun", times[-100], times[-100], *about)
    questions = {
        "error": [3.1], "hold": [4.03], "mean": [9.2], "recent_error": [5.0], "recent_hold": [4.0],
        "recent_mean": [8.0],
    }  # fmt: skip
    experts = [
        [["value, λ = 0", 0.2], ["hour of the day and value, λ = 0.9", 0.41], *[[f"other {k}", 0.01] for k in range(9)]]
    ]
    hub.report(
        {"state": "learning", "pace": 1200.0, "questions": questions, "experts": experts} | {"alerts": [asdict(alert)]}
    )
    with Server(hub) as served:
        browser.open(served)
        until(lambda: browser.of("points('value@1h')"))
        until(lambda: browser.one("#pace").text == "replayed 1,200 times as fast as recorded")
        assert [each.text for each in browser.all("#windows button")] == ["1 day", "1 week", "30 days", "all"]
        better = "error 3.1: 23 % better than the newest value (4.03), 66 % better than the mean so far (9.2)"
        assert [browser.one(".chart .score").text, browser.one(".chart .lately").text] == [
            better,
            "lately: error 5, 25 % worse",
        ]
        assert browser.one(".chart .horizon").text == "mean over the coming 1 h"
        assert browser.one("#rate").text == "every 5 min"
        assert browser.one("#list tr").text.split("\n")[-1].endswith("3.1 23 % 0")
        told = [each.text.split("\n") for each in browser.all(".experts li")]
        assert told[:2] == [["41 %", "hour of the day and value, λ = 0.9"], ["20 %", "value, λ = 0"]]
        assert told[-1] == ["39 %", "all others"]  # the small ones too
        assert len(told) == 3
        bars = [each.rect["width"] for each in browser.all(".experts .bar")]
        assert bars[0] / bars[1] == pytest.approx(0.41 / 0.2, rel=0.05)
        browser.key("1")
        until(lambda: browser.of("points('value@1h')") < 300)
        marks = [words for _, words in browser.of("marks('value@1h')")]  # the last day: it ends at 23:55
        assert marks[:2] == ["00:00\n16 Mar 2014", "03:00"]
        browser.key("4")
        until(lambda: browser.of("points('value@1h')") == n)
        marks = browser.of("marks('value@1h')")
        assert [words for _, words in marks][:3] == ["3 Mar\n2014", "5 Mar", "7 Mar"]
        assert [time for time, _ in marks][:3] == [begin, begin + 2 * 86400, begin + 4 * 86400]
        lines = browser.series("value@1h")
        assert lines["low"][:100] == [None] * 100
        np.testing.assert_allclose(lines["low"][100:], band[0][100:, 0], rtol=1e-6)
        np.testing.assert_allclose(lines["high"], band[1][:, 0], rtol=1e-6)

        browser.key("1")
        until(lambda: browser.of("points('value@1h')") < 300)
        colours = """const u = trueonline.uplot('value@1h'), { canvas } = u.ctx, [time, values] = arguments;
            const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
            copy.drawImage(canvas, 0, 0);
            const at = (value) => [u.valToPos(time, 'x', true), u.valToPos(value, 'y', true)].map(Math.round);
            return values.map((value) => [...copy.getImageData(...at(value), 1, 1).data]);"""
        at = n - 50  # between prediction and its upper end, below that on the other side, and beyond the band
        inside, below, beyond = browser.js(colours, times[at], [prediction[at, 0] + d for d in (5.0, -5.0, 11.0)])
        assert inside == below
        assert inside != beyond

        assert browser.of("alerts('value@1h')")[0]["value"] == 71.2
        assert browser.one("#alert-list").text.split("\n") == [
            "Sun 16 Mar 2014, 15:40",
            "value@1h",
            "71.2, expected 83.4: a jump, 10.2 times the usual error",
        ]
        foot = browser.js("return trueonline.uplot('value@1h').scales.y.min") + 0.3
        assert browser.js(colours, times[-100], [foot])[0][0] > 150  # a red triangle on the time axis
        over = browser.one(".u-over")
        x = browser.js("return trueonline.uplot('value@1h').valToPos(arguments[0], 'x')", times[-100])
        ActionChains(browser.chrome).move_to_element_with_offset(over, x - over.size["width"] / 2, 0).perform()
        tip = "Sun 16 Mar 2014, 15:40\nvalue@1h: 71.2, expected 83.4: a jump, 10.2 times the usual error"
        until(lambda: browser.one(".tip").text == tip)


def test_words_and_marks_are_those_of_the_numbers(browser):
    cases = [(17135.25, 8421.4, 8700.0, 645.0), (512.0, 966.7, -455.0, 2679.0), (0.5271, 3.0, -2.0, 1.0)]
    cases += [(71.25, 83.425, 4000.0, 1.0), (3.0, 4.0, None, 1.0), (3.0, 4.0, 1.0, 0.0), (None, 4.0, 1.0, 0.5)]
    alerts = [Alert(12.5, "begun", 12.5, 12.5, 3.3, 0.9995, "x@1h", "x", "", *case) for case in cases]
    hub = Hub([PageQuestion("x@1h", "x", None, 3600.0, "mean")], ["x"])
    script = (
        "const [alerts, done] = arguments; import('./words.js').then((w) => done([alerts.map(w.alertWords), STEPS]));"
    )
    steps = ["w.axisMarks([0, 0.25, 0.5], 0.25)", "w.axisMarks([-10, 0, 10], 10)", "w.axisMarks([0.1, 0.2], 0.1)"]
    steps += ["w.axisMarks([0, 1e-4, 2e-4], 1e-4)", "w.axisMarks([1e6, 2.5e6], 1.5e6)"]
    with Server(hub) as served:
        browser.open(served)
        asked = script.replace("STEPS", f"[{', '.join(steps)}]")
        words, marks = browser.chrome.execute_async_script(asked, [asdict(alert) for alert in alerts])
    assert marks == [
        ["0.00", "0.25", "0.50"], ["−10", "0", "10"], ["0.1", "0.2"], ["0", "1.0e−4", "2.0e−4"], ["1.0e6", "2.5e6"],
    ]  # fmt: skip
    for alert, told in zip(alerts, words, strict=True):  # the same words as on the terminal
        numbers, colon, how = told.partition(":")
        assert alert.in_words() == f"12.5 s  surprise 0.9995  x {numbers} (x@1h){colon}{how}"


def test_a_short_stream_begins_at_the_left(browser):
    begin = datetime(2014, 3, 3, tzinfo=timezone(timedelta(hours=1))).timestamp()
    hub = Hub([PageQuestion("x@1h", "x", None, 3600.0, "mean")], ["x"], offset=3600.0)
    ones = np.ones((300, 1))

    def more(first, end):
        times = begin + 300.0 * np.arange(first, end)
        hub.publish(Answers(times, np.arange(first, end) == 0, ones[first:end], ones[first:end]))

    more(0, 100)
    with Server(hub) as served:
        browser.open(served)
        browser.key("1")  # a day, of which there is not so much
        until(lambda: browser.of("points('x@1h')") == 100)
        assert browser.of("range()") == [begin, begin + 99 * 300]
        more(100, 300)
        until(lambda: browser.of("range()") == [begin + 299 * 300 - 86400, begin + 299 * 300])
