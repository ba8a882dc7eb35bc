"""`verify` and `check_learner`: they pass what is right and catch what is wrong, a user's own learner included."""

import numpy as np
import pytest

import trueonline as to
from trueonline.checks.verification import KINDS, draw

LEARNERS = [to.AccumulateTD, to.ReplaceTD, to.TrueOnlineTD]


@pytest.mark.parametrize("learner_class", LEARNERS)
def test_every_method_is_exact(learner_class):
    report = to.verify(learner_class, seed=11, trials=3)
    assert report.exact
    assert report.max_error <= 1e-12
    assert "exact" in str(report)


def test_only_true_online_equals_the_forward_view():
    assert to.verify(to.TrueOnlineTD, definition=to.OnlineLambdaReturn, trials=2).exact
    for other in (to.AccumulateTD, to.ReplaceTD):
        report = to.verify(other, definition=to.OnlineLambdaReturn, trials=2)
        assert not report.exact
        assert report.max_error == report.forward_error > 0.01
        assert "NOT EXACT" in str(report)


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
    assert any((trial.discounts == 0.0).any() for trial in trials)
    assert any(callable(trial.step_size) for trial in trials)
    assert any(not callable(trial.step_size) and trial.step_size > 1.5 for trial in trials)


class Own:
    """True online TD(λ) as a user may write it: Algorithm 4 in NumPy, for dense features or anything like them."""

    wrong = None

    def __init__(self, n_features, step_size, trace_decay, discount):
        self.alpha = step_size if callable(step_size) else lambda t: step_size
        self.weights, self.t, self.n = np.zeros(n_features), 0, n_features

    def phi(self, x):
        result = np.zeros(self.n)
        if isinstance(x, tuple):
            result[x[0]] = x[1]
        elif isinstance(x, int) or np.asarray(x).dtype.kind == "i":
            result[x] = 1.0
        else:
            result[:] = x
        return result

    def start(self, x):
        self.x, self.v_old, self.gamma, self.lam = self.phi(x), 0.0, 0.0, 0.0
        if self.wrong != "trace kept":
            self.e = np.zeros(self.n)
        else:
            self.e, self.gamma, self.lam = getattr(self, "e", np.zeros(self.n)), 1.0, 1.0

    def update(self, reward, x_next, discount, trace_decay):
        discount, phi = (0.0, np.zeros(self.n)) if x_next is None else (discount, self.phi(x_next))
        alpha, x, w = self.alpha(self.t), self.x, self.weights
        decay = self.gamma * self.lam if self.wrong != "γ of the next state" else discount * self.lam
        v, v_next = w @ x, w @ phi
        dutch = decay * (self.e @ x) if self.wrong != "accumulating" else 0.0
        self.e = decay * self.e + alpha * (1.0 - dutch) * x
        self.weights = w + (reward + discount * v_next - self.v_old) * self.e - alpha * (v - self.v_old) * x
        self.x, self.v_old, self.gamma, self.lam, self.t = phi, v_next, discount, trace_decay, self.t + 1


def test_a_users_own_learner_is_held_to_the_online_lambda_return():
    report = to.verify(Own)
    assert report.exact
    assert report.definition == "OnlineLambdaReturn"


@pytest.mark.parametrize("wrong", ["γ of the next state", "accumulating", "trace kept"])
def test_a_wrong_learner_is_caught(wrong):
    mistaken = type("Mistaken", (Own,), {"wrong": wrong})
    assert to.verify(mistaken, trials=2).max_error > 1e-3


def test_streams_can_be_chosen_by_name():
    report = to.verify(Own, kinds=["dense", "states of a table"], trials=1)
    assert [row.stream for row in report.rows] == ["dense", "states of a table"]
    with pytest.raises(ValueError, match="unknown kind of stream 'tables'; known are dense,"):
        to.verify(Own, kinds=["tables"])


def test_a_learner_that_cannot_take_a_form_of_features_is_told_which():
    class DenseOnly(Own):
        def phi(self, x):
            return np.asarray(x, float) * np.ones(self.n)

    with pytest.raises(ValueError) as caught:  # noqa: PT011
        to.verify(DenseOnly, trials=1)
    assert any("on a stream of the kind 'active indices'" in note for note in caught.value.__notes__)
    assert to.verify(DenseOnly, kinds=["dense", "dense, binary"], trials=1).exact


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
        def update(self, *transition):
            self.weights = self.weights * np.nan

    assert to.verify(Gone, trials=1).max_error == np.inf


@pytest.mark.parametrize("learner_class", [*LEARNERS, to.OnlineLambdaReturn, to.OfflineLambdaReturn])
def test_every_learner_keeps_the_contract(learner_class):
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
                return lambda *arguments: replaced[name](self.real, *arguments)
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


def forgetful(real, X, rewards, discounts=None):
    real.start(X[0])
    return real.run(X, rewards, discounts)


@pytest.mark.parametrize(
    ("replaced", "clause"),
    [
        ({"update": scribble}, "inputs unmodified"),
        ({"update": careless}, "bad input changes nothing"),
        ({"run": forgetful}, "pieces equal the whole"),
        ({"reset": lambda real: None}, "reset equals new"),
        ({"run": lambda real, X, rewards, discounts=None: real.run(X, 2.0 * rewards, discounts)}, "run equals updates"),
    ],
)
def test_a_broken_contract_is_told_by_clause(replaced, clause):
    with pytest.raises(AssertionError, match=clause):
        to.check_learner(proxy(**replaced))


def test_bad_input_that_was_accepted_is_shown():
    with pytest.raises(AssertionError, match=r"accepted what it should refuse: learner.update\(nan, x\)"):
        to.check_learner(proxy(update=careless))
