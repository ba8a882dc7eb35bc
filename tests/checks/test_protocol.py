"""Classes of a user's own: what they take of a transition is what the signature of their `update` names."""

import re
from pathlib import Path

import numpy as np
import pytest

import trueonline as to
from trueonline import study
from trueonline.inputs import protocol_of
from trueonline.inputs.protocol import PARTS

BAIRD = to.problems.baird()
GRID = {"step_sizes": [0.005], "trace_decays": [0.5], "runs": 2, "steps": 40}


class TDRC:
    """TDRC(λ) (Ghiassian et al. 2020), off-policy: gradient TD with second weights that are regularised."""

    def __init__(self, n_features, step_size, trace_decay, discount, initial_weights=None):
        self.alpha, self.trace_decay, self.discount = step_size, trace_decay, discount
        self.weights = np.zeros(n_features) if initial_weights is None else np.array(initial_weights)
        self.h = np.zeros(n_features)

    def start(self, x):
        self.x, self.e, self.decay = x, np.zeros(len(self.weights)), 0.0

    def update(self, reward, x_next, discount=None, trace_decay=None, ratio=1.0):
        gamma = self.discount if discount is None else discount
        lam = self.trace_decay if trace_decay is None else trace_decay
        x_next, gamma = (np.zeros(len(self.weights)), 0.0) if x_next is None else (x_next, gamma)
        delta = reward + gamma * self.weights @ x_next - self.weights @ self.x
        self.e = ratio * (self.decay * self.e + self.x)
        w = self.weights + self.alpha * (delta * self.e - gamma * (1.0 - lam) * (self.h @ self.e) * x_next)
        self.h = self.h + self.alpha * (delta * self.e - (self.h @ self.x) * self.x - self.h)
        self.weights, self.x, self.decay = w, x_next, gamma * lam


class WithoutRatio(TDRC):
    def update(self, reward, x_next, discount=None, trace_decay=None):
        super().update(reward, x_next, discount, trace_decay)


class Ignoring(WithoutRatio):
    ignores = ("ratio",)


class Deaf(TDRC):
    def update(self, reward, x_next, discount=None, trace_decay=None, ratio=1.0):
        super().update(reward, x_next, discount, trace_decay)


class Wrapper:
    """It passes everything on, and so takes whatever there is."""

    def __init__(self, *arguments, **named):
        self.inner = TDRC(*arguments, **named)
        self.start = self.inner.start

    @property
    def weights(self):
        return self.inner.weights

    def update(self, reward, x_next, **parts):
        self.inner.update(reward, x_next, **parts)


def by_numpy(run):
    """The error of TDRC on Baird's task, in plain NumPy."""
    states, rewards, discounts, ratios = BAIRD.trajectory(GRID["steps"], study.run_seed(0, run))
    phi, alpha, lam, w = BAIRD.features[states], 0.005, 0.5, BAIRD.initial_weights
    h, e, gamma, total = np.zeros(8), np.zeros(8), 0.0, 0.0
    for t, reward in enumerate(rewards):
        x, x_next = phi[t], phi[t + 1]
        delta = reward + discounts[t] * w @ x_next - w @ x
        e = ratios[t] * (gamma * lam * e + x)
        w = w + alpha * (delta * e - discounts[t] * (1.0 - lam) * (h @ e) * x_next)
        h = h + alpha * (delta * e - (h @ x) * x - h)
        gamma = discounts[t]
        total += BAIRD.error(w)
    return total / len(rewards)


def test_a_sweep_gives_a_class_of_ones_own_the_ratios_of_the_problem():
    methods = {"named": TDRC, "wrapped": Wrapper, "ignoring": Ignoring, "gtd": None}
    rows = to.sweep(BAIRD, methods, **GRID).to_pylist()
    table = {name: [row["error"] for row in rows if row["method"] == name] for name in methods}
    expected = [by_numpy(run) for run in range(2)]
    np.testing.assert_allclose(table["named"], expected, rtol=1e-9)
    np.testing.assert_allclose(table["wrapped"], expected, rtol=1e-9)
    assert not np.isclose(table["ignoring"], expected).any()


class Fourfold:
    """A problem whose trajectories have ratios, though it does not say so before."""

    def __init__(self):
        for name in ("features", "metric", "lms_weights", "discount", "initial_weights", "trajectory"):
            setattr(self, name, getattr(BAIRD, name))


@pytest.mark.parametrize("problem", [BAIRD, Fourfold()], ids=["said before", "seen later"])
def test_a_method_that_cannot_take_the_ratios_is_refused(problem):
    wanted = r'WithoutRatio.update takes no ratio, but the problem has one .*add the argument ratio=1.0; .*ignores = \("ratio",\)'
    with pytest.raises(ValueError, match=wanted):
        to.sweep(problem, {"mine": WithoutRatio}, **GRID)
    with pytest.raises(
        ValueError, match=r'the rule of accumulate takes no rho.*study.SweptMethod\(…, ignores=\("ratio",\)\)'
    ):
        to.sweep(problem, {"accumulate": None}, **GRID)
    table = to.sweep(problem, {"mine": Ignoring, "rule": study.SweptMethod("accumulate", ignores=("ratio",))}, **GRID)
    assert table.num_rows == 4
    on_policy = to.problems.baird().with_behaviour(BAIRD.target)
    assert to.sweep(on_policy, {"mine": WithoutRatio}, **GRID).num_rows == 2


def test_verify_gives_ratios_to_both():
    options = {"kinds": ["dense"], "trials": 2}
    assert to.verify(TDRC, definition=TDRC, **options).exact
    assert to.verify(Wrapper, definition=TDRC, **options).exact
    assert to.verify(TDRC, definition=Wrapper, **options).exact
    for wrong in (Deaf, Ignoring):
        assert not to.verify(wrong, definition=TDRC, **options).exact
    with pytest.raises(TypeError, match="takes no ratio, but the definition TDRC has one"):
        to.verify(WithoutRatio, definition=TDRC, **options)
    report = to.verify(TDRC, **options)
    assert not report.exact
    assert "TDRC takes ratio, and its definition does not" in str(report)
    plain = type(
        "Plain", (TDRC,), {"update": lambda self, reward, x, ratio=1.0: TDRC.update(self, reward, x, ratio=ratio)}
    )
    assert to.verify(plain, definition=plain, **options).exact
    with pytest.raises(TypeError, match="takes no discount, but the definition TDRC has one"):
        to.verify(plain, definition=TDRC, **options)


def updates(*names):
    """A class whose update has these arguments, some with a default."""
    scope = {}
    exec(f"def update(self, reward, x_next, {', '.join(names)}): pass", scope)
    return type("Mine", (TDRC,), {"update": scope["update"]})


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (updates("discount", "ratoi=1.0"), "Mine.update has the argument 'ratoi': call it ratio"),
        (updates("gamma=None"), "Mine.update has the argument 'gamma': call it discount"),
        (updates("discount", "lam"), "call it trace_decay"),
        (updates("rho=1.0"), "call it ratio"),
        (updates("discount", "temperature"), "Mine.update needs 'temperature', which no transition has"),
        (
            type("Mine", (TDRC,), {"takes": ("ratios",)}),
            r"Mine.takes must be a tuple of names among discount, .* got \('ratios',\)",
        ),
        (type("Mine", (TDRC,), {"ignores": "ratio"}), "Mine.ignores must be a tuple of names"),
    ],
)
def test_a_signature_that_would_never_be_given_something_is_refused(kind, message):
    with pytest.raises(TypeError, match=message):
        protocol_of(kind)
    with pytest.raises(ValueError, match=message):
        to.sweep(BAIRD, {"mine": kind}, **GRID)


@pytest.mark.parametrize("name", ["start", "update", "weights"])
def test_a_class_without_a_method_is_told_what_is_wanted(name):
    lacking = type("Lacking", (), {each: None for each in ("start", "update", "weights") if each != name})
    lacking.__init__ = lambda self, *arguments, **named: None
    with pytest.raises(TypeError, match=f"Lacking has no {name}: a learner must have {name}"):
        to.verify(lacking)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (
            lambda w: w.reshape(-1, 1),
            r"TDRC.weights must be 8 real numbers, with shape \(8,\), got float64 of shape \(8, 1\)",
        ),
        (lambda w: w[0], r"got float64 of shape \(\)"),
        (lambda w: w + 0j, "got complex128"),
        (lambda w: np.ma.masked_array(w, mask=w > 0.0), "masked"),
    ],
)
def test_a_sweep_takes_no_weights_that_would_be_broadcast_or_cut(weights, message):
    told = type("TDRC", (Wrapper,), {"weights": property(lambda self: weights(self.inner.weights))})
    with pytest.raises(TypeError, match=message):
        to.sweep(BAIRD, {"own": told}, **GRID)


def test_an_argument_with_a_default_that_no_transition_has_is_left_alone():
    assert protocol_of(updates("discount=None", "verbose=False")).named == {"discount"}
    assert protocol_of(to.TrueOnlineGTD).named == {"discount", "trace_decay", "ratio"}
    assert protocol_of(to.TrueOnlineTD).named == {"discount", "trace_decay"}


def test_the_contract_of_learners_covers_ratios():
    class Careless(to.TrueOnlineEmphaticTD):
        def update(self, reward, x_next, discount=None, trace_decay=None, ratio=None, interest=None):
            return super().update(reward, x_next, discount, trace_decay, max(ratio, 0.5), interest)

    with pytest.raises(AssertionError, match=r"bad input changes nothing.*ratio=-1.0"):
        to.check_learner(Careless)


def test_the_guide_lists_what_a_transition_has():
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "learners.md").read_text()
    listed = guide[guide.index("## A class of your own") : guide.index("`**kwargs` |")]
    assert re.findall(r"^\| `(\w+)` \|", listed, re.MULTILINE) == [*PARTS]
