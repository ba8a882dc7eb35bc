"""`verify` and `check_learner`: they pass what is right and catch what is wrong, a user's own learner included."""

from functools import partial

import numpy as np
import pytest

import trueonline as to
from trueonline.checks.verification import KINDS, draw


def test_only_true_online_equals_the_forward_view():
    report = to.verify(to.TrueOnlineTD, definition=to.OnlineLambdaReturn, trials=1)
    assert report.exact
    assert "NOT EXACT" not in str(report)
    report = to.verify(to.AccumulateTD, definition=to.OnlineLambdaReturn, trials=1)
    assert not report.exact
    assert report.max_error == report.forward_error > 0.01
    assert "NOT EXACT" in str(report)
    more = to.verify(to.AccumulateTD, definition=to.OnlineLambdaReturn, trials=3)
    assert all(row.error >= one.error for row, one in zip(more.rows, report.rows, strict=True)), "the worst counts"


def test_the_same_seed_gives_the_same_report():
    first, again, other = (to.verify(to.TrueOnlineTD, trials=1, steps=10, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_binary_methods_get_binary_streams_only():
    streams = [row.stream for row in to.verify(to.ReplaceTD, trials=1, steps=5).rows]
    assert streams == [kind.name for kind in KINDS if kind.binary]


def test_the_streams_are_as_nasty_as_they_say():
    trials = [draw(kind, [0, number, i], 50) for number, kind in enumerate(KINDS) for i in range(20)]
    endings = {ending for trial in trials for ending in trial.endings}
    assert endings == {"", "terminal", "cut"}
    decays = np.concatenate([trial.trace_decays for trial in trials])
    assert {0.0, 1.0} < set(decays)
    assert len(np.unique(decays)) > 1000
    discounts = np.concatenate([trial.discounts for trial in trials])
    assert {0.0, 1.0} < set(discounts)
    assert np.mean(discounts * decays > 0.1) > 0.5, "with γ = 0 all methods are the same"
    assert any(callable(trial.step_size) for trial in trials)
    assert any(not callable(trial.step_size) and trial.step_size > 1.5 for trial in trials)


def dense(x, n: int) -> np.ndarray:
    if not isinstance(x, tuple) and np.asarray(x).dtype.kind == "f":
        return np.array(x)
    indices, values = x if isinstance(x, tuple) else (x, 1.0)
    result = np.zeros(n)
    result[indices] = values
    return result


class Own:
    """True online TD(λ) as a user may write it: Algorithm 4 in NumPy, with one mistake or none."""

    mistake = ""

    def __init__(self, n_features, step_size, trace_decay, discount):
        self.weights = np.zeros(n_features)
        self.step_size = step_size if callable(step_size) else lambda t: step_size
        self.trace_decay, self.discount = trace_decay, discount
        self.steps = 0
        self.last = None
        self.start(np.zeros(n_features))

    def start(self, x):
        if self.mistake == "truncation as termination" and self.last is not None:
            w, e, undone = self.last
            self.weights = w + undone * e
        if self.mistake != "trace kept across a cut" or self.steps == 0:
            self.e, self.v_old, self.gamma, self.lam = np.zeros(len(self.weights)), 0.0, 0.0, 0.0
        self.x, self.last = dense(x, len(self.weights)), None

    def update(self, reward, x_next, discount=None, trace_decay=None):
        x, w, n = self.x, self.weights, len(self.weights)
        x_next = np.zeros(n) if x_next is None else dense(x_next, n)
        gamma_next = self.discount if discount is None else discount
        lam_next = self.trace_decay if trace_decay is None else trace_decay
        alpha = self.step_size(self.steps)
        if self.mistake == "bounded step-size":
            alpha = min(alpha, 0.3 / max(x @ x, 0.3))
        decay = self.gamma * self.lam
        if self.mistake == "γ of the state entered":
            decay = gamma_next * self.lam
        elif self.mistake == "λ of the state entered":
            decay = self.gamma * lam_next
        elif self.mistake == "right for γ = 0 only":
            decay = 0.0
        v, v_next = w @ x, w @ x_next
        dutch = 0.0 if self.mistake == "accumulating trace" else alpha * decay * (self.e @ x)
        self.e = decay * self.e + (alpha - dutch) * x
        if self.mistake == "negative traces dropped":
            self.e = np.maximum(self.e, 0.0)
        elif self.mistake == "small traces dropped":
            self.e = np.where(np.abs(self.e) < 1e-4, 0.0, self.e)
        v_old = v if self.mistake == "no δ-correction" else self.v_old
        self.weights = w + (reward + gamma_next * v_next - v_old) * self.e - alpha * (v - v_old) * x
        self.last = self.weights, self.e, -gamma_next * v_next
        self.x, self.v_old, self.gamma, self.lam = x_next, v_next, gamma_next, lam_next
        self.steps += 1


MISTAKES = [
    "γ of the state entered",
    "λ of the state entered",
    "truncation as termination",
    "trace kept across a cut",
    "negative traces dropped",
    "small traces dropped",
    "bounded step-size",
    "right for γ = 0 only",
    "accumulating trace",
    "no δ-correction",
]


def test_a_users_own_learner_is_held_to_the_online_lambda_return():
    report = to.verify(Own)
    assert report.exact
    assert report.max_error < 1e-11
    assert report.definition == "OnlineLambdaReturn"


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_learner_is_caught(mistake):
    report = to.verify(type("Planted", (Own,), {"mistake": mistake}), trials=2)
    assert not report.exact
    assert report.max_error > 1e-6


def test_streams_can_be_chosen_by_name():
    report = to.verify(Own, kinds=["dense", "states of a table"], trials=1)
    assert [row.stream for row in report.rows] == ["dense", "states of a table"]
    with pytest.raises(ValueError, match="unknown kind of stream 'tables'; known are 'dense', 'dense, binary',"):
        to.verify(Own, kinds=["tables"])


def test_a_learner_that_cannot_take_a_form_of_features_is_told_which():
    class DenseOnly(Own):
        def start(self, x):
            super().start(np.asarray(x, float) * np.ones(len(self.weights)))

    wanted = r"DenseOnly cannot learn from a stream of the kind 'active indices'.*kinds=\['dense'\]"
    with pytest.raises(TypeError, match=wanted):
        to.verify(DenseOnly, trials=1)
    assert to.verify(DenseOnly, kinds=["dense", "dense, binary"], trials=1).exact


def test_a_difference_is_named_with_its_trial_step_and_both_values():
    report = to.verify(type("Planted", (Own,), {"mistake": MISTAKES[0]}), trials=2, seed=3, kinds=["dense"])
    first = report.rows[0].first
    trial = draw(KINDS[0], [3, 0, first.trial], 50)
    learners = [type("Planted", (Own,), {"mistake": MISTAKES[0]}), Own]
    made = [make(8, trial.step_size, trial.trace_decays.max(), trial.discounts.max()) for make in learners]
    found = []
    for learner in made:
        learner.start(trial.x[0])
        for t in range(first.step + 1):
            x_next = None if trial.endings[t] == "terminal" else trial.x[t + 1]
            learner.update(trial.rewards[t], x_next, trial.discounts[t], trial.trace_decays[t])
            if t < first.step and trial.endings[t]:
                learner.start(trial.x[t + 1])
        found.append(learner.weights[int(first.entry.removeprefix("weights[").removesuffix("]"))])
    assert found[0] == first.value != first.expected
    assert first.expected == pytest.approx(found[1], rel=1e-12)
    assert f"seed 3, trial {first.trial}, after transition {first.step}: {first.entry} is" in str(report)
    assert to.verify(Own, trials=1, kinds=["dense"]).rows[0].first is None


def test_a_method_without_a_forward_view_has_no_distance_from_it():
    report = to.verify(partial(to.SwiftTD, meta_step_size=0.01), trials=1, steps=10, kinds=["dense"])
    assert report.exact
    assert report.forward_error is None
    assert to.verify(Own, definition=Own, trials=1, steps=10, kinds=["dense"]).forward_error is None


@pytest.mark.parametrize("check", [to.verify, to.check_learner])
def test_an_instance_is_not_a_class(check):
    with pytest.raises(TypeError, match="learner_class must be a class, got 'true_online'; give the class"):
        check("true_online")
    with pytest.raises(TypeError, match=r"learner_class must be a class, got an instance: .*; give type\(learner\)"):
        check(Own(2, 0.1, 0.9, 0.9))


def test_a_learner_may_name_its_own_definition():
    twice = type("Twice", (Own,), {"definition": Own})
    report = to.verify(twice, trials=1)
    assert report.definition == "Own"
    assert report.max_error == 0.0


def test_a_learner_that_turns_nan_is_not_exact():
    class Gone(Own):
        def update(self, reward, x_next, **transition):
            self.weights = self.weights * np.nan

    assert to.verify(Gone, trials=1).max_error == np.inf


@pytest.mark.parametrize("learner_class", [to.OnlineLambdaReturn, to.OfflineLambdaReturn])
def test_a_definition_keeps_the_contract(learner_class):
    assert len(to.check_learner(learner_class).kept) == 10


def proxy(**replaced):
    """A TrueOnlineTD with some methods replaced: each gets the real learner and the arguments."""

    class Broken:
        def __init__(self, **parameters):
            object.__setattr__(self, "real", to.TrueOnlineTD(**parameters))

        def __getattr__(self, name):
            if name in ("__deepcopy__", "__getstate__", "__setstate__", "__reduce_ex__"):
                raise AttributeError(name)
            if name in replaced:
                return lambda *arguments, **named: replaced[name](self.real, *arguments, **named)
            return getattr(self.real, name)

    Broken.__module__, Broken.__qualname__ = __name__, "Broken"
    return Broken


def scribble(real, reward, x, discount=None):
    delta = real.update(reward, x, discount)
    if isinstance(x, np.ndarray) and x.dtype.kind == "f":
        x *= 2.0
    return delta


def careless(real, reward, x, discount=None):
    return real.update(reward if isinstance(reward, float) and np.isfinite(reward) else 0.0, x, discount)


def forgetful(real, X, rewards, discounts=None, resume=False):
    return real.run(X, rewards, discounts)


@pytest.mark.parametrize(
    ("replaced", "clause"),
    [
        ({"update": scribble}, "inputs unmodified"),
        ({"update": careless}, r"bad input changes nothing: .*accepted what it should refuse: learner.update\(nan, x\)"),
        ({"run": forgetful}, "pieces equal the whole"),
        ({"reset": lambda real: None}, "reset equals new"),
        (
            {"run": lambda real, X, rewards, *more, **named: real.run(X, 2.0 * rewards, *more, **named)},
            "run equals updates",
        ),
    ],
)
def test_a_broken_contract_is_told_by_clause(replaced, clause):
    with pytest.raises(AssertionError, match=clause):
        to.check_learner(proxy(**replaced))


class Bare:
    """A class of one's own that has what it needs to learn, and no more."""

    def __init__(self, n_features, step_size, trace_decay, discount):
        self.real = to.TrueOnlineTD(n_features, step_size, trace_decay, discount)

    def start(self, x):
        self.real.start(x)

    def update(self, reward, x_next, discount=None):
        return self.real.update(reward, x_next, discount)

    @property
    def weights(self):
        return self.real.weights


class BareAndCareless(Bare):
    def update(self, reward, x_next, discount=None):
        return careless(self.real, reward, x_next, discount)


def test_a_class_is_checked_by_the_methods_that_it_has():
    contract = to.check_learner(Bare)
    assert contract.missing == ("predict", "run", "reset", "save")
    assert len(contract.kept) == 6
    assert str(contract).endswith("not all was checked, as it has no predict, run, reset or save")
    with pytest.raises(AssertionError, match="bad input changes nothing"):
        to.check_learner(BareAndCareless)
