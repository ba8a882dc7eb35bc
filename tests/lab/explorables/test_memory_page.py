"""The page of the memory: its maths and its layout at 1,000 random settings, and its figures."""

import numpy as np
import pytest
from selenium.webdriver.common.keys import Keys

import trueonline as to
from trueonline.core.memory import layout

SETTINGS = 1000
METHODS = {"accumulate": to.AccumulateTD, "replace": to.ReplaceTD, "true_online": to.TrueOnlineTD}
LEARN = """
const { OwedMemory, EagerMemory, Learner } = trueonline.memory;
return arguments[0].map(({ method, n, alpha, gamma, lam, indices, values, rewards, discounts, paid }) => {
  const x = indices.map((row, t) => ({ indices: row, values: values === null ? null : values[t] }));
  const run = (memory) => {
    const learner = new Learner(method, memory, { alpha, gamma, lam });
    learner.start(x[0]);
    const deltas = rewards.map((reward, t) => {
      if (memory.rebase && paid.includes(t)) memory.rebase();
      return learner.step(reward, x[t + 1], discounts[t]);
    });
    const all = (read) => Array.from({ length: n }, (_, i) => memory[read](i));
    return { memory, deltas, weights: all("weight"), trace: all("trace") };
  };
  const { memory, deltas, weights, trace } = run(new OwedMemory(n));
  const listed = (array) => Array.from(array.slice(1, memory.count + 1));
  const { s, c, count, room, rebases } = memory;
  return {
    deltas, weights, trace, eager: run(new EagerMemory(n)).weights, head: { s, c, count, room }, rebases,
    u: Array.from(memory.u), y: listed(memory.y), z: listed(memory.z), owner: listed(memory.owner),
  };
});
"""


def random_setting(rng):
    """A stream of sparse features with some ends of episodes, and steps before which the page is told to rebase."""
    method = rng.choice(list(METHODS), p=[0.2, 0.2, 0.6])
    n = int(rng.integers(2, 200))
    active = int(rng.integers(1, min(n - 1, 6) + 1))
    steps = int(rng.choice([10, 60, 200], p=[0.3, 0.5, 0.2]))
    indices = [rng.choice(n, size=active, replace=False).tolist() for _ in range(steps + 1)]
    binary = method == "replace" or rng.random() < 0.5
    values = None if binary else rng.normal(size=(steps + 1, active)).round(3).tolist()
    gamma = float(rng.choice([rng.random(), 1.0]))
    return {
        "method": str(method),
        "n": n,
        "alpha": float(rng.uniform(0.0, 0.6)) / active,
        "gamma": gamma,
        "lam": float(rng.choice([0.0, rng.random(), rng.uniform(0.9, 1.0), 1.0])),
        "indices": indices,
        "values": values,
        "rewards": rng.normal(size=steps).tolist(),
        "discounts": np.where(rng.random(steps) < 0.05, 0.0, gamma).tolist(),
        "paid": np.flatnonzero(rng.random(steps) < 0.1).tolist() if rng.random() < 0.5 else [],
    }


def learned_in_python(setting):
    """A learner after the stream of a setting, and its errors δ."""
    learner = METHODS[setting["method"]](setting["n"], setting["alpha"], setting["lam"], discount=setting["gamma"])
    rows = [np.array(row) for row in setting["indices"]]
    if setting["values"] is not None:
        rows = [(row, np.array(values)) for row, values in zip(rows, setting["values"], strict=True)]
    learner.start(rows[0])
    pairs = zip(setting["rewards"], rows[1:], setting["discounts"], strict=True)
    return learner, [learner.update(reward, x, discount=discount) for reward, x, discount in pairs]


def close(ours, theirs, size):
    """Whether two vectors agree to 1e-12, relative to the largest weight or to 1."""
    return np.abs(np.asarray(ours) - np.asarray(theirs)).max(initial=0.0) <= 1e-12 * max(1.0, size)


def test_weights_traces_and_layout_are_those_of_the_learners(browser):
    """The error allowed is 1e-12 of the largest weight, or of 1.

    The page shows u, y, z, s, c and the list. They are those of the Python memory wherever nobody asked for a rebase.
    """
    rng = np.random.default_rng(7)
    settings = [random_setting(rng) for _ in range(SETTINGS)]
    browser.open("memory")
    answers = browser.run(LEARN, settings)
    shortened = 0
    for setting, answer in zip(settings, answers, strict=True):
        learner, deltas = learned_in_python(setting)
        size = np.abs(learner.weights).max()
        assert close(answer["weights"], learner.weights, size), setting
        assert close(answer["eager"], learner.weights, size), setting
        assert close(answer["trace"], learner.trace, np.abs(learner.trace).max()), setting
        assert close(answer["deltas"], deltas, np.abs(deltas).max()), setting
        if setting["paid"]:
            continue
        parts, head = learner._dump(), answer["head"]
        count, c = int(parts["head"][layout.COUNT]), parts["head"][layout.C]
        assert (head["count"], head["room"]) == (count, parts["head"][layout.ROOM])
        assert answer["owner"] == parts["owner"].tolist()
        assert close(head["s"], parts["head"][layout.S], 1.0)
        assert close(head["c"], c, abs(c))
        for name in ("u", "y", "z"):
            assert close(answer[name], parts[name], max(size, np.abs(parts[name]).max(initial=0.0))), (name, setting)
        shortened += count < len({i for row in setting["indices"][:-1] for i in row})  # faded entries have left the list
    assert sum(answer["rebases"] > 2 for answer in answers) > SETTINGS / 2
    assert shortened > sum(not setting["paid"] for setting in settings) / 10


def ledger(browser):
    """What the figure of eight features says: the operation, s, c, and how far the weights are apart."""
    s, c = (browser.text(f"#ledger .door div:nth-child({i}) output") for i in (1, 2))
    said = browser.text("#ledger .saying").split(".")[0]
    return said, float(s.replace("−", "-")), float(c.replace("−", "-")), browser.text("#ledger .agree b")


def number(text):
    """A number as `format` writes it."""
    mantissa, _, power = text.replace("−", "-").partition("·10")
    return float(mantissa) * 10.0 ** int(power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")) or 0)


def test_keys_lead_through_the_operations_of_a_step_and_back(browser):
    browser.open("memory")
    first = ledger(browser)
    assert first[1:3] == (1.0, 0.0)
    seen = []
    for _ in range(8):
        browser.press(Keys.ARROW_RIGHT)
        seen.append(ledger(browser))
    assert [one[0] for one in seen] == ["Recall", "Decay", "Imprint", "Learn"] * 2
    assert seen[1][1] == 0.45
    assert all(number(one[3]) < 1e-14 for one in seen)
    for expected in [*seen[-2::-1], first]:
        browser.press(Keys.ARROW_LEFT)
        assert ledger(browser) == expected


def test_a_rebase_comes_when_the_scale_is_small_and_when_asked_for(browser):
    browser.open("memory")
    browser.run("document.querySelector('#ledger .player button').focus()")
    worn = 1.0
    while (now := ledger(browser))[0] != "Rebase":
        worn = now[1]
        browser.press(Keys.ARROW_RIGHT)
    assert worn < 0.01
    assert now[1:3] == (1.0, 0.0)
    browser.press("s", "s")  # the rest of this step, and the next one
    assert ledger(browser)[1] != 1.0
    before = weights(browser)
    browser.press("r")
    assert ledger(browser)[:3] == ("Rebase", 1.0, 0.0)
    assert weights(browser) == before


def weights(browser):
    return browser.run(
        "return [...document.querySelectorAll('#ledger .owed tbody tr')].map((r) => r.lastChild.textContent)"
    )


@pytest.mark.parametrize(("power", "active"), [(8, 8), (16, 3), (20, 16)])
def test_a_step_costs_the_active_features(browser, power, active):
    browser.open("memory", fragment=f"#features={power}&active={active}&decay=0.95")
    browser.wait("return document.querySelector('#grid tbody tr')")
    rows = "return [...document.querySelectorAll('#grid tbody tr')].map((r) => r.children[1].textContent.replaceAll(',', ''))"
    everything, traced, owed, paid = (float(cell) for cell in browser.run(rows))
    assert (everything, owed, paid) == (2**power + 3 * active, 3 * active, 0)
    assert 3 * active < traced <= everything
    assert number(browser.text("#grid .agree b")) < 1e-14


def test_settings_are_kept_in_the_address(browser):
    browser.open("memory", fragment="#features=12&active=5&decay=0.5")
    texts = "return [...document.querySelectorAll('#grid output')].map((o) => o.textContent)"
    assert browser.run(texts)[:3] == ["4,096", "5", "0.5"]
    browser.run("document.querySelectorAll('#grid input')[1].focus()")
    browser.press(Keys.ARROW_RIGHT)
    assert "active=6" in browser.run("return location.hash")


def test_both_memories_are_measured(browser):
    browser.open("memory")
    browser.run("document.querySelector('#race button').click()")
    browser.wait("return document.querySelector('#race .agree').textContent.includes('times faster')")
    assert browser.run("return document.querySelectorAll('#race .chart circle').length") == 7
