"""The page in a real browser."""

import re
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

from tests.processes import wait_for as until
from tests.streams.live.helpers import QUESTIONS, RATE, SIGNALS, TOKEN, Browser, publish, readings, small_hub
from trueonline.streams.live import Hub, PageQuestion, Server
from trueonline.streams.predictor import Answers


def test_lines_move(browser, feed):
    with Server(feed) as served:
        browser.open(served)
        assert browser.of("shown()") == ["position, 0.5 s", "force, 0.5 s"]
        before = until(lambda: browser.of("points('force, 0.5 s')"))
        until(lambda: browser.of("points('force, 0.5 s')") > before + 20)
        until(lambda: browser.one("#state").text == "learning")
        assert browser.one("#title").text == "An arm"
        assert browser.chrome.title == "An arm – trueonline"
        until(lambda: browser.one("#samples").text not in ("–", "0"))
        assert browser.one("#rate").text == "40 Hz"
        assert browser.one("#dropped").text == "3"
        browser.one("#dropped").click()
        assert browser.one("#reasons").text == "late: 1\nnot a number: 2"
        assert len(browser.all(".chart canvas")) == 2
        delay = until(lambda: browser.of("delay()"))
        assert delay >= 0
        until(lambda: browser.one("#delay").text.endswith("ms"))
        words = "error 2: too early to compare: fewer than 100 horizons are scored"
        until(lambda: browser.one(".chart .score").text == words)
        assert browser.of("missed") == 0
        labels = browser.js("return document.querySelector('.chart .when').textContent")
        assert labels == "newest"
        assert not browser.one("#find").is_displayed()


def test_questions_can_be_hidden_and_shown(browser, feed):
    with Server(feed) as served:
        browser.open(served)
        until(lambda: browser.of("points('force, 0.5 s')"))
        browser.box("force, 0.5 s").click()
        browser.box("grip").click()
        assert browser.of("shown()") == ["position, 0.5 s", "grip"]
        until(lambda: browser.of("points('grip')") and browser.of("points('position, 0.5 s')"))
        assert browser.of("points('force, 0.5 s')") == 0
        assert [each.text for each in browser.all(".chart h2")] == ["position, 0.5 s", "grip"]
        for name in ("position, 0.5 s", "grip"):
            browser.box(name).click()
        assert browser.of("shown()") == []
        until(lambda: browser.one("#empty").text.startswith("Nothing is shown"))
        browser.box("position, 2 s").click()
        until(lambda: browser.of("points('position, 2 s')"))
        assert not browser.one("#empty").is_displayed()
        browser.chrome.refresh()  # it remembers
        until(lambda: browser.js("return window.trueonline?.connected") and browser.of("points('position, 2 s')"))
        assert browser.of("shown()") == ["position, 2 s"]


def test_pause_holds_and_resume_leaves_no_hole(browser, feed):
    name = "position, 0.5 s"
    with Server(feed) as served:
        browser.open(served)
        until(lambda: browser.of(f"points('{name}')") > 20)
        browser.one("#pause").click()
        assert browser.of("paused")
        until(lambda: browser.one("#state").text.startswith("paused"))
        held, received = browser.series(name), browser.of("samples")
        until(lambda: browser.of("samples") > received + 40)
        assert browser.series(name) == held
        browser.box("position, 2 s").click()  # what is shown only now ends where the others do
        until(lambda: browser.of("points('position, 2 s')"))
        assert browser.series("position, 2 s")["times"] == held["times"]
        assert browser.series(name) == held
        browser.key("p")
        assert not browser.of("paused")
        until(lambda: len(browser.series(name)["times"]) > len(held["times"]) + 40)
        times = np.array(browser.series(name)["times"])
        np.testing.assert_allclose(np.diff(times), 1 / RATE, atol=1e-6)
        assert times[0] == held["times"][0]


def test_zoom_by_mouse_and_keys(browser):
    from selenium.webdriver import ActionChains

    hub = small_hub()
    publish(hub, 4000)
    with Server(hub) as served:
        browser.open(served)
        until(lambda: browser.of("points('force, 0.5 s')"))
        low, high = browser.of("range()")
        assert high == 3999 / RATE
        assert high - low == pytest.approx(60)
        assert [each.text for each in browser.all("#windows button")] == ["10 s", "1 min", "all"]
        over = browser.one(".u-over")
        actions = ActionChains(browser.chrome)
        actions.move_to_element(over).click_and_hold().move_by_offset(over.size["width"] // 4, 0).release().perform()
        until(lambda: browser.of("range()") != [low, high])
        zoomed = browser.of("range()")
        assert zoomed[0] == pytest.approx(low + 30, abs=0.3)
        assert zoomed[1] == pytest.approx(low + 45, abs=0.3)

        def drawn():
            """What all charts show agrees, and the values under the cursor are told."""
            ends = [browser.series(each)["times"] for each in browser.of("shown()")]
            return all(times[0] > zoomed[0] - 0.1 and times[-1] < zoomed[1] + 0.1 for times in ends)

        until(drawn)
        assert all(re.fullmatch(r"1:\d\d\.\d{3}", each.text) for each in browser.all(".chart .when"))
        assert browser.one("#reset").is_displayed()
        ActionChains(browser.chrome).double_click(over).perform()
        until(lambda: browser.of("range()") == [low, high])
        browser.key("3")
        assert browser.of("range()") == [0.0, high]
        browser.key("1")
        assert browser.of("range()") == pytest.approx([high - 10, high])
        browser.key("-")
        assert browser.of("range()") == pytest.approx([high - 15, high + 5])
        browser.key("+")
        assert browser.of("range()") == pytest.approx([high - 10, high])
        browser.key("\ue012")  # to the left
        assert browser.of("range()") == pytest.approx([high - 12.5, high - 2.5])
        browser.one("#reset").click()
        assert browser.of("range()") == pytest.approx([high - 10, high])
        browser.key("?")
        assert browser.one("#help p").is_displayed()


@contextmanager
def screen(browser, width):
    """A screen of that many pixels, which is a phone's where they are few."""
    metrics = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 800}
    browser.chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        yield
    finally:
        browser.chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("begin", [0.0, 1.7e9 + 0.3])
def test_marks_of_time_say_when_they_are(browser, width, begin):
    name, zone = "force, 0.5 s", timezone(timedelta(hours=2))
    hub = Hub(QUESTIONS, SIGNALS, offset=7200.0)
    publish(hub, 4813, times=begin + np.arange(4813) / RATE)

    def expected(time, first):
        if not begin:
            return f"{time // 60:.0f}:{time % 60:02.0f}"
        return datetime.fromtimestamp(time, zone).strftime("%H:%M:%S\n15 Nov 2023" if first else "%H:%M:%S")

    with Server(hub) as served, screen(browser, width):
        browser.open(served)
        until(lambda: browser.of(f"points('{name}')"))
        for key, seconds in (("1", 10), ("2", 60), ("4", 4812 / RATE)):
            browser.key(key)
            low, high = browser.of("range()")
            assert high - low == pytest.approx(seconds)
            until(lambda low=low, high=high: low <= browser.of(f"marks('{name}')")[0][0] < (low + high) / 2)
            marks = browser.of(f"marks('{name}')")
            times = np.array([time for time, _ in marks])
            steps = np.unique(np.diff(times).round(6))
            assert len(steps) == 1
            assert steps[0] in (1, 2, 5, 10, 15, 30)
            assert len(marks) >= 2
            for k, (time_, words) in enumerate(marks):
                assert words == expected(time_, k == 0)
                assert time_ == round(time_)


def test_a_clock_that_is_set_back_leaves_what_came_after(browser):
    name = "position, 0.5 s"
    signals, predictions = readings(2000)
    begins = {0: 100.0, 400: 95.0, 1500: 50.0}  # the time at some samples, after which it goes on
    starts = np.isin(np.arange(2000), list(begins))
    times = np.concatenate([begins[k] + np.arange(n) / RATE for k, n in zip(begins, (400, 1100, 500), strict=True)])
    small = signals[:, 0].astype(np.float32).astype(float)
    hub = small_hub()

    def more(first, end):
        part = slice(first, end)
        hub.publish(Answers(times[part], starts[part], signals[part], predictions[part]))

    def drawn(first, end):
        series = browser.series(name)
        same = [series["times"], series["signal"]] == [times[first:end].tolist(), small[first:end].tolist()]
        return same and browser.of("range()")[1] == times[end - 1]

    more(0, 500)
    with Server(hub) as served:
        browser.open(served)
        until(lambda: drawn(400, 500))  # set back within what was there already
        more(500, 1400)
        until(lambda: drawn(400, 1400))
        browser.key("1")
        browser.key("+")
        looked_at = browser.of("range()")
        assert times[400] < looked_at[0] < looked_at[1] < times[1399]
        more(1400, 1500)
        until(lambda: browser.of("samples") == 1500)
        assert browser.of("range()") == looked_at
        more(1500, 1520)  # now that is gone
        until(lambda: drawn(1500, 1520))
        assert not browser.one("#reset").is_displayed()
        browser.key("p")
        more(1520, 1800)
        until(lambda: browser.of("samples") == 1800)
        assert drawn(1500, 1520)
        browser.key("p")
        until(lambda: drawn(1500, 1800))


@pytest.mark.parametrize("width", [1280, 390])
def test_an_alert_leads_to_its_chart_at_its_moment(browser, width):
    hub = small_hub()
    publish(hub, 4000)
    alert = {"time": 5.0, "question": "force, 0.5 s", "target": "force", "surprise": 1.0, "value": 2.0, "expected": 1.0}
    hub.report({"alerts": [alert | {"error": 1.0, "usual_error": 0.1, "reason": "a jump"}]})
    with Server(hub) as served, screen(browser, width):
        browser.open(served)
        until(lambda: browser.of("points('force, 0.5 s')") and browser.all(".told"))
        browser.js("arguments[0].scrollIntoView({block: 'start'})", browser.one(".told"))
        browser.js("arguments[0].click()", browser.one(".told"))
        begin, end = browser.of("range()")
        assert (begin + end) / 2 == pytest.approx(5.0)
        assert end - begin == pytest.approx(400 / RATE)  # as many samples as one can tell apart
        box = "return document.querySelectorAll(arguments[0])[arguments[1]].getBoundingClientRect().toJSON()"
        chart, controls = browser.js(box, ".chart", 1), browser.js(box, ".controls", 0)
        assert (controls["bottom"] if width == 390 else 0) <= chart["top"] < chart["bottom"] <= 844


@pytest.mark.parametrize("width", [1280, 390])
def test_the_state_and_a_note_can_be_read(browser, width):
    hub = small_hub()
    note = "samples come 40 a second by their times, and the rate was said to be 1: " + "a_long_name_" * 20
    with Server(hub) as served, screen(browser, width):
        browser.open(served)
        until(lambda: browser.one("#empty").text == "Waiting for samples …")
        assert browser.one("#state").text == "waiting for samples"
        publish(hub, 100)
        until(lambda: browser.of("points('force, 0.5 s')"))
        assert not browser.one("#empty").is_displayed()
        assert not browser.one("#note").is_displayed()
        hub.report({"state": "learning", "note": note})
        until(lambda: browser.one("#note").text == note)
        box = browser.one("#note").rect
        assert 0 <= box["x"] < box["x"] + box["width"] <= width
        assert browser.js("return document.documentElement.scrollWidth") == width
        assert browser.js("return document.getElementById('note').scrollWidth") <= box["width"]
        hub.report({"state": "ended", "note": ""})
        until(lambda: not browser.one("#note").is_displayed())
        until(lambda: browser.one("#state").text == "the stream has ended")


def test_it_is_told_when_there_will_be_scores(browser):
    hub = small_hub()
    publish(hub, 100)
    hub.report({"state": "learning", "questions": {}})
    with Server(hub) as served:
        browser.open(served)
        browser.box("grip").click()
        told = ["error: known after about 2.3 s"] * 2 + [""]  # 4.6 · 0.5 s; of a discount that is a signal, who knows
        until(lambda: [each.text for each in browser.all(".chart .score")] == told)
        titles = [each.get_attribute("title") for each in browser.all("#list td:nth-child(2)")]
        assert titles == [f"known after about {time} s" for time in (2.3, 9.2, 2.3)] + [""]
        known = {"error": [2.0, np.nan, np.nan, np.nan], "recent_error": [3.0, np.nan, np.nan, np.nan]}
        hub.report({"state": "learning", "questions": known})
        early = "error 2: too early to compare: fewer than 100 horizons are scored"
        until(lambda: browser.one(".chart .score").text == early)
        assert browser.one(".chart .lately").text == ""
        assert browser.one("#list td:nth-child(2)").get_attribute("title") == "error 2\nlately: error 3"
        hub.report({"state": "ended"})
        until(lambda: [each.text for each in browser.all(".chart .score")] == [early, "", ""])


def test_what_came_is_that_of_the_definition(browser):
    n = 1190
    starts = np.zeros(n, bool)
    starts[[0, 300, 700]] = True
    hub = small_hub()
    times = np.arange(n) / RATE + np.cumsum(starts)  # a second is lost before each beginning
    signals, predictions = publish(hub, n, times=times, starts=starts)
    signals, predictions = signals.astype(np.float32).astype(float), predictions.astype(np.float32).astype(float)
    with Server(hub) as served:
        browser.open(served)
        for name in ("position, 2 s", "grip"):
            browser.box(name).click()
        browser.key("3")  # all of it
        for number, question in enumerate(QUESTIONS):
            until(lambda name=question.name: browser.of(f"points('{name}')") == n)
            target = signals[:, SIGNALS.index(question.target)]
            is_signal = isinstance(question.discount, str)
            if question.discount is None:
                gammas = np.exp(-np.diff(times, prepend=0.0) / question.horizon)
            else:
                gammas = signals[:, 2] if is_signal else np.full(n, question.discount)
            expected = [None] * n
            for t in range(n):  # G_t = Σ_k (∏ γ) x_{t+k+1}, as long as the stream goes on, and M_t with (1 − γ)·x
                total, weight, k = 0.0, 1.0, t + 1
                while k < n and not starts[k] and weight > 0.0:
                    total += weight * target[k] * (1.0 - gammas[k] if question.meaning == "mean" else 1.0)
                    weight *= gammas[k]
                    k += 1
                if weight <= 0.01:
                    expected[t] = total
            series = browser.series(question.name)
            at = [k for k, value in enumerate(series["signal"]) if value is not None]  # without the rows that make gaps
            assert len(series["times"]) == n + 2
            assert [series["times"][k] for k in at] == times.tolist()
            np.testing.assert_allclose([series["prediction"][k] for k in at], predictions[:, number])
            realised = [series["realised"][k] for k in at]
            assert [value is None for value in realised] == [value is None for value in expected]
            some = [k for k, value in enumerate(expected) if value is not None]
            assert 100 < len(some) < n
            close = {"rtol": 1e-9, "atol": 1e-9}
            np.testing.assert_allclose([realised[k] for k in some], [expected[k] for k in some], **close)
            assert not any(
                series[line][k] is not None for k in set(range(n + 2)) - set(at) for line in ("realised", "prediction")
            )


def test_what_came_so_far_is_the_mean_over_what_came(browser):
    hub = small_hub()
    signals, _ = publish(hub, 400)
    with Server(hub) as served:
        browser.open(served)
        until(lambda: browser.of("points('position, 0.5 s')") == 400)
        so_far = browser.series("position, 0.5 s")["soFar"]
        t = 380  # 19 samples came after it
        weights = 0.95 ** np.arange(19)
        assert so_far[t] == pytest.approx((weights * signals[t + 1 :, 0]).sum() / weights.sum(), rel=1e-6)
        assert so_far[t - 100] is None  # that is known
        assert so_far[-1] is None  # and of that nothing


def test_a_phone_shows_all_of_it(browser, feed):
    with Server(feed) as served, screen(browser, 390):
        browser.open(served)
        for name in ("grip", "position, 2 s"):
            browser.js("arguments[0].click()", browser.box(name))
        until(lambda: all(browser.of(f"points('{each.name}')") for each in QUESTIONS))
        browser.one("#help summary").click()
        assert browser.js("return document.documentElement.scrollWidth") == 390
        wide = "return [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > 391).length"
        assert browser.js(wide) == 0
        browser.one("#pause").click()
        assert browser.of("paused")
        over = browser.one(".u-over")
        browser.js("arguments[0].scrollIntoView({block: 'center'})", over)
        low, high = browser.of("range()")
        box = browser.js("return arguments[0].getBoundingClientRect().toJSON()", over)
        for kind, share in (("touchStart", 0.5), ("touchMove", 0.6), ("touchMove", 0.75), ("touchEnd", None)):
            places = [{"x": box["left"] + share * box["width"], "y": box["top"] + 40}] if share else []
            browser.chrome.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})
        until(lambda: browser.of("range()") != [low, high])
        part = (np.array(browser.of("range()")) - low) / (high - low)
        np.testing.assert_allclose(part, [0.5, 0.75], atol=0.02)


def test_a_dark_page_is_dark(browser, feed):
    background = "return getComputedStyle(document.body).backgroundColor"
    try:
        with Server(feed) as served:
            found = []
            for scheme in ("light", "dark"):
                features = [{"name": "prefers-color-scheme", "value": scheme}]
                browser.chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
                browser.open(served)
                found.append(browser.js(background))
        assert found == ["rgb(255, 255, 255)", "rgb(21, 25, 29)"]
    finally:
        browser.chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_the_page_comes_back_when_the_server_does(chromium, feed):
    browser = Browser(chromium)
    served = Server(feed)
    served.start()
    try:
        browser.open(served)
        until(lambda: browser.of("points('force, 0.5 s')"))
        browser.box("force, 0.5 s").click()
    finally:
        served.stop()
    until(lambda: browser.one("#state").text == "trueonline was stopped")
    other = small_hub()  # another stream, which begins again
    publish(other, 50)
    with Server(other, port=served.port):
        until(lambda: browser.of("connected") and browser.of("points('position, 0.5 s')") == 50)
        assert browser.of("shown()") == ["position, 0.5 s"]
        publish(other, 10, first=50)
        until(lambda: browser.of("points('position, 0.5 s')") == 60)
    chromium.get("about:blank")
    complaints = [entry["message"] for entry in chromium.get_log("browser")]
    assert all("WebSocket" in message for message in complaints)  # that there was no server, and nothing else


def test_thousands_of_questions_can_be_searched(browser):
    many = [PageQuestion(f"sensor {k % 50}, horizon {k // 50}", f"s{k % 50}", 0.9, 0.25, "mean") for k in range(6000)]
    hub = Hub(many, [f"s{k}" for k in range(50)])
    hub.publish(Answers(np.arange(100) / RATE, np.zeros(100, bool), np.ones((100, 50)), np.ones((100, 6000))))
    hub.report({"state": "learning", "questions": {"error": np.full(6000, 2.0), "scored": np.arange(6000)}})
    with Server(hub) as served:
        browser.open(served)
        until(lambda: browser.of("points('sensor 0, horizon 0')") == 100)
        assert len(browser.all("#list tr")) == 200
        assert browser.one("#more").text == "and 5,800 more: find them by name"
        browser.key("/")
        browser.key("49, zon 119")
        until(lambda: len(browser.all("#list tr")) == 1)
        assert browser.one("#list tr").text.split("\n")[-1].endswith("2 – 5,999")
        browser.box("sensor 49, horizon 119").click()
        until(lambda: browser.of("points('sensor 49, horizon 119')") == 100)
        find = browser.one("#find")
        find.clear()
        find.send_keys("sensor 49,")
        until(lambda: len(browser.all("#list tr")) == 120)
        for box in browser.all("#list input")[:7]:
            box.click()
        assert len(browser.of("shown()")) == 12
        assert not browser.all("#list input")[20].is_enabled()  # twelve are enough


def test_a_token_does_not_stay_in_the_address(browser, feed):
    with Server(feed, token=TOKEN) as served:
        browser.open(served)
        until(lambda: browser.of("points('force, 0.5 s')"))
        assert TOKEN not in browser.chrome.current_url
        assert TOKEN not in browser.js("return document.cookie")
        browser.chrome.refresh()
        until(lambda: browser.js("return window.trueonline?.connected"))


def test_a_zoomed_stretch_is_kept_when_the_samples_go(browser):
    hub = small_hub(kept=1200)
    publish(hub, 1200)
    with Server(hub) as served:
        browser.open(served)
        until(lambda: browser.of("points('force, 0.5 s')") > 0)
        for key in "--":
            browser.key(key)
        browser.key("\ue012")
        before = browser.of("range()")
        publish(hub, 1100, first=1200)
        until(lambda: browser.of("paused"))
        assert browser.of("range()") == before
        assert browser.of("points('force, 0.5 s')") > 0
        browser.key("0")
        browser.key("p")
        until(lambda: browser.of("range()")[1] == 2299 / RATE)
