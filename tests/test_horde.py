"""A horde answers as separate learners do, at every step."""

import numpy as np
import pytest

import trueonline as to
from trueonline.nexting.horde import Horde
from trueonline.nexting.questions import Question, discount_of, horizon_of

N, T = 30, 120
LEARNERS = {"accumulate": to.AccumulateTD, "replace": to.ReplaceTD, "true_online": to.TrueOnlineTD}


def asked(rng, count, *, named=False):
    """Questions of all methods, some of which share a trace, in no order."""
    discounts = [0.0, 0.5, 0.9, 0.97, 1.0, *(["contact"] if named else [])]
    return [
        Question(
            f"q{i}",
            discount=discounts[rng.integers(len(discounts))],
            trace_decay=float(rng.choice([0.0, 0.5, 0.9, 1.0])),
            step_size=float(rng.choice([0.02, 0.1])),
            method=str(rng.choice(list(LEARNERS))),
        )
        for i in range(count)
    ]


def stream(rng, binary=True):
    if binary:
        X = [rng.choice(N, size=rng.integers(0, 5), replace=False) for _ in range(T + 1)]
    else:
        X = [(i := rng.choice(N, size=4, replace=False), rng.normal(size=4) / 2.0) for _ in range(T + 1)]
        assert i is not None
    contact = rng.choice([0.0, 0.5, 0.95], size=T)
    starts = np.zeros(T + 1, bool)
    starts[rng.integers(1, T, size=3)] = True
    return X, contact, starts


def alone(question, X, cumulants, contact, starts):
    """The answers and weights of a learner of its own."""
    gamma = 0.9 if isinstance(question.discount, str) else question.discount
    learner = LEARNERS[question.method](N, question.step_size, question.trace_decay, gamma)
    discounts = contact if isinstance(question.discount, str) else None
    return learner.run(X, cumulants, discounts, starts=starts), learner.weights, learner.trace


@pytest.mark.parametrize("seed", range(6))
def test_a_horde_equals_separate_learners(seed):
    rng = np.random.default_rng(seed)
    questions = asked(rng, 14, named=True)
    X, contact, starts = stream(rng)
    C = rng.normal(size=(T, len(questions)))
    horde = Horde(N, questions)
    assert 1 < horde.groups <= len(questions)
    values = horde.run(X, C, {"contact": contact}, starts=starts)
    for q, question in enumerate(questions):
        expected, weights, trace = alone(question, X, C[:, q], contact, starts)
        scale = max(1.0, np.abs(weights).max())
        np.testing.assert_allclose(values[:, q], expected, rtol=0.0, atol=1e-10 * scale)
        np.testing.assert_allclose(horde.weights(question.name), weights, rtol=0.0, atol=1e-10 * scale)
        np.testing.assert_allclose(horde.trace(question.name), trace, rtol=1e-9, atol=1e-12)


def test_real_valued_features():
    rng = np.random.default_rng(9)
    questions = [question for question in asked(rng, 12) if question.method != "replace"]
    X, contact, starts = stream(rng, binary=False)
    C = rng.normal(size=(T, len(questions)))
    values = Horde(N, questions).run(X, C, starts=starts)
    for q, question in enumerate(questions):
        expected, weights, _ = alone(question, X, C[:, q], contact, starts)
        np.testing.assert_allclose(values[:, q], expected, rtol=0.0, atol=1e-10 * max(1.0, np.abs(weights).max()))


def test_updates_equal_a_run_and_pieces_the_whole():
    rng = np.random.default_rng(1)
    questions = asked(rng, 8, named=True)
    X, contact, _ = stream(rng)
    C = rng.normal(size=(T, 8))
    whole, single, pieces = (Horde(N, questions) for _ in range(3))
    whole.run(X, C, {"contact": contact})
    single.start(X[0])
    for t in range(T):
        single.update(C[t], X[t + 1], {"contact": contact[t]})
    pieces.run(X[:51], C[:50], {"contact": contact[:50]})
    pieces.run(X[50:], C[50:], {"contact": contact[50:]})
    for question in questions:
        np.testing.assert_array_equal(single.weights(question.name), whole.weights(question.name))
        np.testing.assert_array_equal(pieces.weights(question.name), whole.weights(question.name))
    np.testing.assert_array_equal(single.predict(X[-1]), whole.predict(X[-1]))
    assert single.steps == whole.steps == pieces.steps == T


def test_a_question_added_later_disturbs_none_and_is_one_whose_signal_was_zero():
    rng = np.random.default_rng(2)
    questions = asked(rng, 10)
    X, _, _ = stream(rng)
    C = rng.normal(size=(T, 10))
    C[:60, 7:] = 0.0
    from_the_start = Horde(N, questions)
    from_the_start.run(X, C)
    grown = Horde(N, questions[:7])
    grown.run(X[:61], C[:60, :7])
    before = {question.name: grown.weights(question.name) for question in questions[:7]}
    grown.add(questions[7:])
    for question in questions[:7]:
        np.testing.assert_array_equal(grown.weights(question.name), before[question.name])
    grown.run(X[60:], C[60:])
    for question in questions:
        shared = any(question.shares == other.shares for other in questions[:7])
        if question in questions[:7] or shared:
            np.testing.assert_allclose(
                grown.weights(question.name), from_the_start.weights(question.name), rtol=1e-9, atol=1e-12
            )


def test_saved_equals_continued(tmp_path):
    rng = np.random.default_rng(3)
    questions = asked(rng, 9, named=True)
    X, contact, _ = stream(rng)
    C = rng.normal(size=(T, 9))
    horde = Horde(N, questions)
    horde.run(X[:61], C[:60], {"contact": contact[:60]})
    horde.save(tmp_path / "h.npz")
    other = Horde.load(tmp_path / "h.npz")
    for each in (horde, other):
        each.run(X[60:], C[60:], {"contact": contact[60:]})
    np.testing.assert_array_equal(horde.predict(X[5]), other.predict(X[5]))
    for question in questions:
        np.testing.assert_array_equal(horde.weights(question.name), other.weights(question.name))
    assert other.questions == horde.questions
    to.TrueOnlineTD(3, 0.1, 0.9, 0.9).save(tmp_path / "td.npz")
    with pytest.raises(ValueError, match="holds a TrueOnlineTD, not a horde"):
        Horde.load(tmp_path / "td.npz")


def test_memory_is_that_of_the_features_met():
    horde = Horde(2_000_000, [Question(f"q{i}", discount=0.9) for i in range(100)])
    horde.run(np.arange(40).reshape(20, 2) * 50_000, np.ones((19, 100)))
    assert horde._u.nbytes < 1_000_000


def test_a_long_run_stays_exact():
    rng = np.random.default_rng(4)
    question = Question("q", discount=0.99, trace_decay=0.95, step_size=0.05)
    X = np.array([rng.choice(2000, size=6, replace=False) for _ in range(5001)])
    C = rng.normal(size=(5000, 1))
    horde = Horde(2000, [question])
    values = horde.run(X, C)
    learner = to.TrueOnlineTD(2000, 0.05, 0.95, 0.99)
    np.testing.assert_allclose(values[:, 0], learner.run(X, C[:, 0]), rtol=0.0, atol=1e-10)


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda h: h.update([1.0], [0]), "cumulants must be 2 finite numbers"),
        (lambda h: h.update([1.0, np.nan], [0]), "cumulants must be 2 finite numbers"),
        (lambda h: h.update([1.0, 2.0], [N], {"contact": 0.5}), "indices go from 0"),
        (lambda h: h.update([1.0, 2.0], [1, 1], {"contact": 0.5}), "more than once"),
        (lambda h: h.update([1.0, 2.0], [1], {"contact": 2.0}), r"numbers in \[0, 1\]"),
        (lambda h: h.update([1.0, 2.0], [1], {}), "must give 'contact'"),
        (lambda h: h.add([Question("a", discount=0.5)]), "two questions have the name 'a'"),
        (lambda h: h.add(["what?"]), "of the class Question"),
        (lambda h: h.run([[0], [1]], np.ones((3, 2))), "cumulants must be 1 rows"),
        (lambda h: h.weights("c"), "there is no question 'c'"),
        (lambda h: h.update([1.0, 2.0], (np.array([1]), np.array([0.5])), {"contact": 0.5}), "binary"),
    ],
)
def test_bad_input_changes_nothing(attempt, message):
    horde = Horde(N, [Question("a", discount=0.9, method="replace"), Question("b", discount="contact")])
    horde.start([0])
    horde.update([1.0, 2.0], [1], {"contact": 0.5})
    before = horde.weights("a"), horde.weights("b"), horde.predict([0, 1])
    with pytest.raises(ValueError, match=message):
        attempt(horde)
    for now, then in zip((horde.weights("a"), horde.weights("b"), horde.predict([0, 1])), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_update_before_start():
    with pytest.raises(RuntimeError, match="call start"):
        Horde(N, [Question("a", discount=0.9)]).update([1.0], [0])


def test_questions_are_checked():
    for wrong in ({"discount": 1.5}, {"discount": 0.9, "method": "best"}, {"discount": 0.9, "step_size": 0.0}):
        with pytest.raises(ValueError, match=r"must|unknown"):
            Question("a", **wrong)
    with pytest.raises(ValueError, match="must have a name"):
        Question("", discount=0.9)
    with pytest.raises(ValueError, match="at least one sample"):
        discount_of(0.01, 40.0)
    assert horizon_of(discount_of(5.0, 100.0), 100.0) == 5.0
