"""The page of the traces: its maths at 1,000 random settings, and its figures."""

import numpy as np
import pytest

import trueonline as to

LEARNERS = {"accumulate": to.AccumulateTD, "replace": to.ReplaceTD, "true_online": to.TrueOnlineTD}
SETTINGS = 1_000
TOLERANCE = 1e-12


def test_the_curves_are_the_traces_of_the_learners(browser):
    """Relative to the largest trace."""
    rng = np.random.default_rng(3)
    cases = [
        [(rng.random(30) < rng.uniform()).tolist(), {"alpha": rng.uniform(0.01, 1), "fade": rng.uniform()}]
        for _ in range(SETTINGS)
    ]
    browser.open("traces")
    found = browser.run("return arguments[0].map(([visits, s]) => trueonline.traces.visitTraces(visits, s))", cases)
    for (visits, s), curves in zip(cases, found, strict=True):
        for name, kind in LEARNERS.items():
            learner = kind(1, s["alpha"], s["fade"], 1.0)
            x = np.array([*visits, 0], float)[:, None]
            learner.start(x[0])
            expected = []
            for x_next in x[1:]:
                learner.update(0.0, x_next)
                expected.append(learner.trace[0])
            assert np.abs(np.subtract(curves[name], expected)).max() <= TOLERANCE * max(1.0, *expected)


def test_the_moves_go_the_part_of_the_way_that_the_trace_says(browser):
    """Without fading, n visits and one outcome move a guess of 0 to α·e, and every dutch move is α of the rest."""
    rng = np.random.default_rng(8)
    cases = [[name, int(rng.integers(1, 13)), rng.uniform(0.01, 1)] for name in LEARNERS for _ in range(100)]
    browser.open("traces")
    found = browser.run("return arguments[0].map((one) => trueonline.traces.moves(...one))", cases)
    for (name, visits, alpha), places in zip(cases, found, strict=True):
        learner = LEARNERS[name](1, alpha, 1.0, 1.0)
        learner.start([1.0])
        for t in range(visits):
            learner.update(float(t == visits - 1), [1.0] if t < visits - 1 else None)
        assert places[0] == 0
        assert places[-1] == pytest.approx(learner.weights[0], rel=TOLERANCE)
        assert len(places) == (2 if name == "replace" else visits + 1)


def test_the_one_state_example_is_that_of_the_learners(browser):
    """Values relative to the largest so far: with accumulating traces they diverge."""
    rng = np.random.default_rng(4)
    cases = [
        {"alpha": rng.uniform(0, 1), "lam": rng.uniform(), "ending": rng.uniform(0.05, 1), "seed": i, "steps": 40}
        for i in range(SETTINGS)
    ]
    browser.open("traces")
    runs = browser.run("return arguments[0].map((s) => trueonline.traces.oneState(s))", cases)
    here = np.ones(1)
    for one, found in zip(cases, runs, strict=True):
        for name, kind in LEARNERS.items():
            learner = kind(1, one["alpha"], one["lam"], 1.0)
            values, traces = [], []
            for t, end in enumerate(found["ends"]):
                if t == 0 or found["ends"][t - 1]:
                    learner.start(here)
                learner.update(1.0 if end else 0.0, None if end else here)
                values.append(learner.weights[0])
                traces.append(learner.trace[0])
            values, traces = np.array(values), np.array(traces)
            size = np.maximum.accumulate(np.maximum(1.0, np.abs(values)))
            assert (np.abs(found["runs"][name]["values"] - values) <= TOLERANCE * size).all()
            assert (np.abs(found["runs"][name]["traces"] - traces) <= TOLERANCE * traces).all()


def test_episodes_end_as_often_as_they_should(browser):
    browser.open("traces")
    ends = browser.run(
        "return trueonline.traces.oneState({alpha: 0.1, lam: 1, ending: 0.25, seed: 9, steps: 20000}).ends"
    )
    assert np.mean(ends) == pytest.approx(to.problems.ONE_STATE_TERMINATION, abs=5 * np.sqrt(0.25 * 0.75 / 20_000))


def test_growth_is_that_of_the_closed_forms(browser):
    """For λ = 1: E(1 − αT)², (1 − α)² and E(1 − α)^{2T}, where T is geometric."""
    rng = np.random.default_rng(5)
    cases = [{"alpha": rng.uniform(0, 1), "lam": 1.0, "ending": rng.uniform(0.05, 1)} for _ in range(SETTINGS)]
    browser.open("traces")
    found = browser.run(
        "return arguments[0].map((s) => ['accumulate', 'replace', 'true_online'].map((m) =>"
        " [trueonline.traces.growth(m, s).meanSquare, trueonline.traces.growth(m, s).overshoot, trueonline.traces.limit(m, s)]))",
        cases,
    )
    for one, (accumulate, replace, dutch) in zip(cases, found, strict=True):
        a, p = one["alpha"], one["ending"]
        assert accumulate[0] == pytest.approx(1 - 2 * a / p + a**2 * (2 - p) / p**2, rel=1e-10, abs=1e-12)
        assert accumulate[1] == pytest.approx((1 - p) ** np.floor(1 / a), rel=1e-9)
        assert accumulate[2] == pytest.approx(2 * p / (2 - p), rel=1e-10)
        assert replace == pytest.approx([(1 - a) ** 2, 0.0, 2.0])
        assert dutch[:2] == pytest.approx([p * (1 - a) ** 2 / (1 - (1 - p) * (1 - a) ** 2), 0.0])


def test_growth_is_what_happens_on_average(browser):
    """With λ < 1, against the mean over 40,000 episodes in Python."""
    alpha, lam, ending = 0.3, 0.8, 0.2
    browser.open("traces")
    lengths = np.random.default_rng(6).geometric(ending, 40_000)
    for name, fade in (("accumulate", lam), ("true_online", (1 - alpha) * lam)):
        errors = (1 - alpha * (1 - fade**lengths) / (1 - fade)) ** 2
        mean = browser.run(f"return trueonline.traces.growth('{name}', {{alpha: 0.3, lam: 0.8, ending: 0.2}}).meanSquare")
        assert mean == pytest.approx(errors.mean(), abs=5 * errors.std() / np.sqrt(len(errors)))


def verdicts(browser):
    return browser.run(
        "return [...document.querySelectorAll('#one-state tbody tr:nth-child(3) td')].map((c) => c.textContent)"
    )


def test_the_page_says_when_accumulating_traces_diverge(browser):
    browser.open("traces", fragment="#step_size=0.3&lambda=1&length=4")
    assert verdicts(browser) == ["▲ grows", "shrinks", "shrinks"]
    assert "α > 0.286" in browser.text("#one-state tbody tr:nth-child(4)")
    browser.open("traces", fragment="#step_size=0.28&lambda=1&length=4")
    assert verdicts(browser) == ["shrinks", "shrinks", "shrinks"]


def test_squares_are_chosen_and_changed_by_keys(browser):
    browser.open("traces", fragment="#seen=every&n=3")
    pressed = "return [...document.querySelectorAll('.visit')].map((c) => c.getAttribute('aria-pressed') === 'true')"
    before = browser.run(pressed)
    assert [t for t, seen in enumerate(before) if seen] == list(range(0, 30, 3))
    browser.run("document.querySelector('.visit[tabindex=\"0\"]').focus()")
    browser.press("HOME", "ARROW_RIGHT", "ARROW_RIGHT", "SPACE")
    after = browser.run(pressed)
    assert [t for t in range(30) if before[t] != after[t]] == [2]
    assert "Step 2, the feature is seen" in browser.text(".sums")
    assert browser.run("return document.activeElement.getAttribute('aria-label')") == "step 2"
    assert "seen=own" in browser.run("return location.hash")


def test_the_moves_say_who_goes_too_far(browser):
    browser.open("traces", fragment="#moves=5&fraction=0.3")
    said = browser.run("return document.querySelector('.hops').getAttribute('aria-label')")
    assert said == " ".join(
        f"The {trace} trace goes {part} of the way."
        for trace, part in (("accumulating", 1.5), ("replacing", 0.3), ("dutch", 0.832))
    )
    assert "accumulating: 1.5 of the way, too far ▲" in browser.text(".hops")


def test_a_dragged_slider_does_not_flood_the_address(browser):
    """Safari throws at more than 100 changes in 30 seconds. The last one is written in the end."""
    browser.open("traces")
    changes = browser.run("""
        const write = history.replaceState.bind(history);
        window.changes = 0;
        history.replaceState = (...values) => { window.changes += 1; write(...values); };
        const input = document.querySelector("#visits input[type=range]");
        for (let i = 0; i < 200; i++) { input.value = (i % 90) / 100 + 0.05; input.dispatchEvent(new Event("input")); }
        return window.changes""")
    assert changes < 60
    browser.wait("return location.hash.includes('alpha=0.24&')")


def test_the_example_is_stepped_by_keys_and_played(browser):
    browser.open("traces", fragment="#step=10")
    where = "#one-state .where"
    assert browser.text(where).startswith("step 10,")
    browser.press("ARROW_RIGHT", "ARROW_RIGHT", "ARROW_LEFT")
    assert browser.text(where).startswith("step 11,")
    browser.press("HOME")
    assert browser.text(where).startswith("step 0,")
    browser.press("SPACE")
    assert browser.text("#one-state button.primary") == "❚❚ Pause"
    browser.wait("return !document.querySelector('#one-state .where').textContent.startsWith('step 0,')")
    browser.press("SPACE")
    assert browser.text("#one-state button.primary") == "▶ Play"
