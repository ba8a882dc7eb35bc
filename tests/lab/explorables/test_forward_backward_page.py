"""The page of the two views: its maths at 1,000 random settings, and its figures."""

from itertools import pairwise

import numpy as np

import trueonline as to

LEARNERS = {"accumulate": to.AccumulateTD, "replace": to.ReplaceTD, "true_online": to.TrueOnlineTD}
SETTINGS = 1_000
TOLERANCE = 1e-12  # relative to the largest weight so far, or to 1
COMPARE = """
const { compare, features } = trueonline.forwardBackward;
return arguments[0].map((one) => {
    const { states, rewards, rows, learners } = compare(one);
    const steps = (l) => l.steps.map((s) => [s.delta, ...[s.weights, s.trace, s.first, s.second].map((v) => Array.from(v))]);
    return { states, rewards, table: features(one.kind), forward: rows.map((row) => Array.from(row.weights)),
        learners: Object.fromEntries(Object.entries(learners).map(([name, l]) => [name, {...l, steps: steps(l)}])) };
});
"""


def run(kind, one, found):
    """The learner of the package on the walk that the page has made."""
    table = np.array(found["table"], float)
    learner = kind(table.shape[1], one["alpha"], one["lam"], one["gamma"])
    learner.start(table[found["states"][0]])
    for reward, state in zip(found["rewards"], found["states"][1:], strict=True):
        before = learner.weights
        delta = learner.update(float(reward), table[state] if 0 <= state < len(table) else None)
        yield delta, learner.weights, learner.trace, learner.weights - before


def test_everything_on_the_page_equals_the_package(browser):
    rng = np.random.default_rng(7)
    kinds = ["tabular", "overlapping", "random"]
    cases = [
        {"kind": kinds[i % 3], "seed": i, **dict(zip(("alpha", "gamma", "lam"), rng.random(3).tolist(), strict=True))}
        for i in range(SETTINGS)
    ]
    browser.open("forward_backward")
    parted = 0
    for one, found in zip(cases, browser.run(COMPARE, cases), strict=True):
        forward = np.array([w for _, w, _, _ in run(to.OnlineLambdaReturn, one, found)])
        atol = TOLERANCE * largest(forward)
        assert (np.abs(found["forward"] - forward) <= atol[:, None]).all()
        assert set(found["learners"]) == set(LEARNERS) - ({"replace"} if one["kind"] == "random" else set())
        for name, seen in found["learners"].items():
            delta, w, e, first, second = map(np.array, zip(*seen["steps"], strict=True))
            deltas, weights, traces, changes = map(np.array, zip(*run(LEARNERS[name], one, found), strict=True))
            close = TOLERANCE * largest(weights)
            assert (np.abs(delta - deltas) <= 10 * close).all()
            assert (np.abs(w - weights) <= close[:, None]).all()
            assert (np.abs(e - traces) <= TOLERANCE * largest(traces)[:, None]).all()
            assert (np.abs(first + second - changes) <= 10 * close[:, None]).all()
            apart = np.abs(weights - forward).max(axis=1)
            assert (np.abs(seen["apart"] - apart) <= close + atol).all()
            until = len(apart) if seen["parted"] is None else seen["parted"] - 1
            assert (apart[:until] <= 3 * atol[:until]).all()
            parted += seen["parted"] is not None
            assert name != "true_online" or seen["parted"] is None
    assert parted > SETTINGS, "accumulate and replace TD(λ) mostly differ from the forward view"


def largest(rows):
    """The largest number so far, or 1."""
    return np.maximum.accumulate(np.maximum(1.0, np.abs(rows).max(axis=1)))


def test_walks_begin_in_the_middle_and_end_beyond_a_side(browser):
    browser.open("forward_backward")
    for seed in range(50):
        walk = browser.run("return trueonline.forwardBackward.walk(arguments[0])", seed)
        states = walk["states"]
        assert states[0] == 2
        assert states[-1] in (-1, 5)
        assert all(0 <= s < 5 for s in states[:-1])
        assert walk["rewards"] == [max(b - a, 0) for a, b in pairwise(states)]
        assert 9 <= len(walk["rewards"]) <= 12


def test_keys_step_through_time_in_both_directions(browser):
    browser.open("forward_backward", fragment="#t=0")
    assert browser.text(".where") == "at the start"
    counts = "return [...document.querySelectorAll('.counts b')].map((b) => Number(b.textContent))"
    cells = "return document.querySelectorAll('.triangle [role=gridcell]').length"
    for t in range(1, 6):
        browser.press("ARROW_RIGHT")
        assert browser.run(counts) == [t * (t + 1) // 2, t]
        assert browser.run(cells) == t * (t + 1) // 2
    browser.press("ARROW_LEFT")
    assert browser.run(counts) == [10, 4]
    assert "t=4" in browser.run("return location.hash")
    browser.press("HOME")
    assert browser.run(counts) == [0, 0]


def test_a_cell_of_the_triangle_is_chosen_by_keys_and_by_a_click(browser):
    browser.open("forward_backward", fragment="#t=5")
    browser.run("document.querySelector('.triangle').focus()")
    browser.press("ARROW_LEFT", "ARROW_LEFT", "ARROW_LEFT", "ARROW_LEFT", "ARROW_UP")
    assert browser.text(".inspector h3").startswith("The update of time 0, in C, with all that is known at time 4")
    assert browser.text(".where").startswith("step 5"), "in the triangle arrows do not move time"
    browser.find(".triangle [role=gridcell][aria-label^='k 2, h 3']")[0].click()
    assert "with all that is known at time 3" in browser.text(".inspector h3")


def test_the_page_shows_that_only_true_online_agrees(browser):
    browser.open("forward_backward")
    rows = browser.run(
        "return [...document.querySelectorAll('[role=region] tbody tr')].map((r) => [...r.querySelectorAll('td')].map((c) =>"
        " [c.textContent, !!c.querySelector('mark')]))"
    )
    assert len(rows) == 5
    for _, forward, true_online, difference, replace, accumulate in rows:
        assert forward[0] == true_online[0]
        assert not true_online[1]
        assert abs(float(difference[0].replace("−", "-"))) < 20
        assert replace[1]
        assert accumulate[1]
    assert "Accumulate TD(λ) differs from step 4 on" in browser.text(".headline")


def test_without_a_trace_all_methods_agree(browser):
    browser.open("forward_backward", fragment="#lambda=0&t=9")
    assert browser.find("[role=region] mark") == []
    assert "Replace TD(λ) agrees so far" in browser.text(".headline")
    browser.open("forward_backward", fragment="#features=random")
    assert "Replacing traces need features that are 0 or 1" in browser.text(".headline")


def test_both_terms_are_needed_for_the_equality(browser):
    """With both the method is true online TD(λ), without both it is accumulate TD(λ), and either alone loses the equality."""
    rng = np.random.default_rng(12)
    cases = [
        {"kind": str(rng.choice(["tabular", "overlapping"])), "seed": seed, "alpha": rng.uniform(0.1, 0.5),
         "gamma": rng.uniform(0.5, 1), "lam": rng.uniform(0.5, 1)}
        for seed in range(50)
    ]  # fmt: skip
    browser.open("forward_backward")
    found = browser.run(
        """const { apart, compare } = trueonline.forwardBackward;
        return arguments[0].map((s) => {
            const { learners } = compare(s);
            const all = [[true, true], [false, false], [true, false], [false, true]].map((terms) => apart(s, ...terms));
            const last = (steps) => Array.from(steps.at(-1).weights);
            return [last(all[0]), last(learners.true_online.steps), last(all[1]), last(learners.accumulate.steps),
                all.map((steps) => Math.max(...steps.map((step) => step.apart)))];
        })""",
        cases,
    )
    for exact, true_online, without, accumulate, apart in found:
        np.testing.assert_allclose(exact, true_online, rtol=0, atol=1e-12)
        np.testing.assert_allclose(without, accumulate, rtol=0, atol=1e-12 * max(1.0, *map(abs, accumulate)))
        assert apart[0] < 1e-12
        assert min(apart[2:]) > 1e-6
