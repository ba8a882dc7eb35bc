"""The page of the random walk: its walks, its surface, and its figures."""

import numpy as np
import pytest
from selenium.webdriver.common.keys import Keys

import trueonline as to

LEARNERS = {"accumulate": to.AccumulateTD, "replace": to.ReplaceTD, "true_online": to.TrueOnlineTD}
TOLERANCE = 1e-12
ACTIVE = {
    (5, "one"): 1, (19, "one"): 1, (100, "one"): 1, (5, "overlapping"): 2, (19, "overlapping"): 4,
    (100, "overlapping"): 5,
}  # fmt: skip
SURFACE = """
const [states, kind, seed, runs] = arguments;
const { Walk, Surface } = trueonline.walk;
const methods = Object.keys(trueonline.methods.METHODS);
const surface = new Surface({ walk: new Walk(states, kind), methods, seed });
surface.advance(1, () => 0, runs);
const means = Object.fromEntries(methods.map((name) => [name, surface.lams.map((_, l) => surface.alphas.map((_, a) => {
  const mean = surface.mean(name, a, l);
  return Number.isFinite(mean) ? mean : null;
}))]));
return { means, alphas: surface.alphas, lams: surface.lams, runs: Array.from({ length: runs }, (_, r) => surface.episodesOf(r)) };
"""


def features(states, kind):
    """The indices of the active features of each state."""
    return [np.arange(s, s + ACTIVE[states, kind]) for s in range(states)]


def learn(learner, x, episode):
    """One episode in Python."""
    *_, last = states = episode["visited"]
    learner.start(x[states[0]])
    for state in states[1:]:
        learner.update(0.0, x[state])
    learner.update(float(episode["reward"]), None)
    assert last in (0, len(x) - 1)


def learner_on(states, kind, method, alpha, lam):
    return LEARNERS[method](states + ACTIVE[states, kind] - 1, alpha, lam, 1.0)


@pytest.mark.parametrize("states", [5, 19, 100])
def test_the_walk_is_that_of_the_package(browser, states):
    problem = to.problems.random_walk(states)
    browser.open("random_walk")
    values, start, episodes = browser.run(
        "const walk = new trueonline.walk.Walk(arguments[0], 'one'); const generator = trueonline.methods.random(3);"
        "return [walk.values, walk.start, Array.from({length: 300}, () => walk.episode(generator))]",
        states,
    )
    np.testing.assert_allclose(values, problem.values, rtol=0, atol=1e-13)
    right = [episode["reward"] == 1 for episode in episodes]
    for episode, to_the_right in zip(episodes, right, strict=True):
        visited = episode["visited"]
        assert visited[0] == start == states // 2
        assert set(np.abs(np.diff(visited))) <= {1}
        assert visited[-1] == (states - 1 if to_the_right else 0)
        assert episode["reward"] == (1 if to_the_right else 0 if states == 5 else -1)
    odds = (start + 1) / (states + 1)
    assert np.mean(right) == pytest.approx(odds, abs=5 * np.sqrt(odds * (1 - odds) / 300))


@pytest.mark.parametrize(("states", "kind"), ACTIVE)
def test_the_surface_has_the_errors_of_the_learners(browser, states, kind):
    runs = 1 if states == 100 else 3
    browser.open("random_walk")
    surface = browser.run(SURFACE, states, kind, 11, runs)
    x, values = features(states, kind), to.problems.random_walk(states).values
    rng = np.random.default_rng(8)
    for method in LEARNERS:
        for _ in range(8):
            a, el = int(rng.integers(len(surface["alphas"]))), int(rng.integers(len(surface["lams"])))
            errors = []
            for episodes in surface["runs"]:
                learner = learner_on(states, kind, method, surface["alphas"][a], surface["lams"][el])
                for episode in episodes:
                    learn(learner, x, episode)
                    weights = learner.weights
                    with np.errstate(all="ignore"):  # accumulating traces may diverge
                        errors.append(np.sqrt(np.mean((np.array([weights[i].sum() for i in x]) - values) ** 2)))
                    if not errors[-1] < 1e6:
                        break
            found = surface["means"][method][el][a]
            if (np.array(errors) < 1e6).all():
                assert found == pytest.approx(np.mean(errors), rel=0, abs=TOLERANCE * max(1.0, *errors))
            else:
                assert found is None


def test_each_run_of_the_surface_has_a_seed_of_its_own(browser):
    browser.open("random_walk")
    first, second = browser.run("""
        const { Walk, Surface } = trueonline.walk;
        return [11, 12].map((seed) => {
          const surface = new Surface({ walk: new Walk(5, "one"), methods: ["replace"], seed });
          return [surface.episodesOf(0), surface.episodesOf(1)];
        });
    """)
    assert first[0] != first[1]
    assert first[1] == second[0]


def test_what_the_page_says_of_the_surface_is_so(browser):
    browser.open("random_walk")
    for states, kind in ((5, "one"), (19, "one"), (5, "overlapping"), (19, "overlapping")):
        surface = browser.run(SURFACE, states, kind, 1, 50)
        means = {name: np.array(rows, float) for name, rows in surface["means"].items()}  # NaN where it ran away
        for name in ("accumulate", "replace"):
            np.testing.assert_allclose(means[name][0], means["true_online"][0], rtol=0, atol=1e-12)
        assert not (means["accumulate"][-1, 10:] <= 1).any()
        for name in ("replace", "true_online"):
            assert (means[name] <= 1).all()
        for rows in means.values():
            row = np.unravel_index(np.nanargmin(rows), rows.shape)[0]
            assert 0 < row < len(rows) - 1


def where(browser):
    return browser.text("#live .where")


def test_keys_lead_through_the_walk_and_back(browser):
    browser.open("random_walk", fragment="#states=5&seed=4")
    happened = "#live .happened"
    browser.wait("return document.querySelector('#live .where').textContent.startsWith('episode 3, ')")
    browser.press(Keys.HOME)
    browser.wait("return document.querySelector('#live .happened').textContent.startsWith('All guesses are zero')")
    browser.press(Keys.ARROW_RIGHT)
    browser.wait("return document.querySelector('#live .where').textContent === 'episode 1, step 1'")
    first = browser.text(happened)
    browser.press(Keys.ARROW_RIGHT)
    browser.wait("return document.querySelector('#live .where').textContent === 'episode 1, step 2'")
    browser.press(Keys.ARROW_LEFT)
    browser.wait("return document.querySelector('#live .where').textContent === 'episode 1, step 1'")
    assert browser.text(happened) == first
    browser.run("document.querySelector('#live .player button').focus()")
    browser.press("e", "e")
    browser.wait("return document.querySelector('#live .where').textContent.startsWith('episode 2, ')")
    assert " end, reward " in browser.text(happened)
    browser.press(Keys.HOME)
    browser.wait("return document.querySelector('#live .where').textContent === 'episode 1, step 0'")
    browser.press(Keys.ESCAPE)
    browser.run("document.activeElement.blur()")
    browser.press(Keys.SPACE)
    browser.wait("return /step [3-9]/.test(document.querySelector('#live .where').textContent)")


def test_a_cell_of_the_surface_is_watched_live(browser):
    browser.open("random_walk", motion=True)
    browser.run("document.querySelector('#surface').scrollIntoView()")
    browser.wait("return /run ([2-9]|\\\\d\\\\d+) of 100/.test(document.querySelector('#surface .where').textContent)")
    outputs = "return [...document.querySelectorAll('#live .slider output')].map((o) => o.textContent)"
    cell = "return document.querySelector('#surface .cell').textContent"
    browser.run("document.querySelectorAll('#surface .map')[1].focus()")
    browser.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_UP)
    browser.wait(f"{cell}.startsWith('α = 0.5, λ = 0.9. ')")
    browser.press(Keys.ENTER)
    assert browser.run(outputs)[:2] == ["0.5", "0.9"]
    assert "alpha=0.5&lambda=0.9" in browser.run("return location.hash")
    browser.wait("return /step [2-9]/.test(document.querySelector('#live .where').textContent)")  # it plays
    browser.run(
        "const map = document.querySelectorAll('#surface .map')[2]; const box = map.getBoundingClientRect();"
        "map.dispatchEvent(new MouseEvent('click', {clientX: box.right - 8, clientY: box.top + 8}))"
    )
    assert browser.run(outputs)[:2] == ["1", "1"]


def test_methods_can_be_hidden(browser):
    browser.open("random_walk", fragment="#accumulate=false")
    browser.wait("return document.querySelectorAll('#surface .map').length === 2")
    browser.run("document.querySelectorAll('#live .toggle input')[1].click()")
    browser.wait("return document.querySelectorAll('#surface .map').length === 1")
    assert "replace=false" in browser.run("return location.hash")
    assert browser.find("#surface h3")[0].text == "true online TD(λ)"
