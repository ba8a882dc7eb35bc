"""A horde answers as separate learners do, at every step."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import trueonline as to
from tests.saved_files import rewrite
from trueonline import files
from trueonline.streams.horde import buffers
from trueonline.streams.horde import horde_layout as layout
from trueonline.streams.horde.horde import Horde
from trueonline.streams.questions.questions import Question, discount_of, horizon_of

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


@pytest.mark.parametrize(("seed", "binary"), [*((seed, True) for seed in range(4)), (9, False)])
def test_a_horde_equals_separate_learners(seed, binary):
    rng = np.random.default_rng(seed)
    questions = [question for question in asked(rng, 14, named=True) if binary or question.method != "replace"]
    X, contact, starts = stream(rng, binary)
    C = rng.normal(size=(T, len(questions)))
    horde = Horde(N, questions)
    assert 1 < horde.groups <= len(questions)
    *values, last = horde.run(X, C, {"contact": contact}, starts=starts, last=True)
    values = np.array(values)
    np.testing.assert_allclose(last, horde.predict(X[-1]), rtol=1e-12, atol=1e-13)
    assert len(np.unique(horde._memory.since)) > 3
    for x in range(N):  # whenever it was last active
        w = [horde.weights(question.name)[x] for question in questions]
        np.testing.assert_allclose(horde.predict([x]), w, rtol=1e-13, atol=1e-15)
    for q, question in enumerate(questions):
        expected, weights, trace = alone(question, X, C[:, q], contact, starts)
        scale = max(1.0, np.abs(weights).max())
        np.testing.assert_allclose(values[:, q], expected, rtol=0.0, atol=1e-12 * scale)
        np.testing.assert_allclose(horde.weights(question.name), weights, rtol=0.0, atol=1e-12 * scale)
        np.testing.assert_allclose(horde.trace(question.name), trace, rtol=1e-9, atol=1e-12)


def test_updates_equal_a_run_and_pieces_the_whole():
    rng = np.random.default_rng(1)
    questions = asked(rng, 8, named=True)
    X, contact, _ = stream(rng)
    C = rng.normal(size=(T, 8))
    whole, single, pieces, once, twice = (Horde(N, questions) for _ in range(5))
    whole.run(X, C, {"contact": contact})
    single.start(X[0])
    for t in range(T):
        single.update(C[t], X[t + 1], {"contact": contact[t]})
    pieces.run(X[:51], C[:50], {"contact": contact[:50]})
    pieces.run(X[50:], C[50:], {"contact": contact[50:]}, resume=True)
    for horde in (once, twice):  # a stream that happens to begin where the last one stopped does not continue it
        horde.run(X[:51], C[:50], {"contact": contact[:50]})
    once.run(X[50:], C[50:], {"contact": contact[50:]})
    twice.start(X[50])
    twice.run(X[50:], C[50:], {"contact": contact[50:]}, resume=True)
    for question in questions:
        np.testing.assert_array_equal(once.weights(question.name), twice.weights(question.name))
        np.testing.assert_array_equal(single.weights(question.name), whole.weights(question.name))
        np.testing.assert_array_equal(pieces.weights(question.name), whole.weights(question.name))
    np.testing.assert_array_equal(single.predict(X[-1]), whole.predict(X[-1]))
    assert single.steps == whole.steps == pieces.steps == T


@pytest.mark.parametrize("seed", range(4))
def test_a_question_added_later_disturbs_none_and_starts_as_promised(seed):
    """With a trace that is there, as if its signal had been zero. Otherwise as a learner that starts now."""
    rng = np.random.default_rng(seed)
    questions = asked(rng, 13, named=True)
    questions.append(replace(questions[0], name="shares the trace of the first"))
    X, contact, _ = stream(rng)
    C = rng.normal(size=(T, 14))
    old, now = 8, 60
    earlier = {question.shares for question in questions[:old]}
    silent = C.copy()
    silent[:now, old:] = 0.0
    from_the_start = Horde(N, questions)
    from_the_start.run(X, silent, {"contact": contact})
    grown = Horde(N, questions[:old])
    grown.run(X[: now + 1], C[:now, :old], {"contact": contact[:now]})
    before, answers = [grown.weights(question.name) for question in questions[:old]], grown.predict(X[now])
    grown.add(questions[old:])
    for question, weights in zip(questions[:old], before, strict=True):
        np.testing.assert_array_equal(grown.weights(question.name), weights)
    np.testing.assert_array_equal(grown.predict(X[now]), [*answers, *[0.0] * (14 - old)])
    grown.run(X[now:], C[now:], {"contact": contact[now:]}, resume=True)
    for q, question in enumerate(questions):
        if question.shares in earlier:
            expected = from_the_start.weights(question.name)
        else:
            _, expected, _ = alone(question, X[now:], C[now:, q], contact[now:], np.zeros(T - now + 1, bool))
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(grown.weights(question.name), expected, rtol=0.0, atol=1e-12 * scale)


def test_replacing_traces_are_not_added_where_features_are_not_binary():
    horde = Horde(N, [Question("a", discount=0.9)])
    horde.start((np.array([1, 2]), np.array([1.0, 0.5])))
    with pytest.raises(ValueError, match="replacing traces need binary features, and the newest features are not"):
        horde.add([Question("b", discount=0.9, method="replace")])
    assert [question.name for question in horde.questions] == ["a"]
    horde.update([1.0], (np.array([3]), np.array([0.5])))  # still takes any features
    horde.start([4])
    horde.add([Question("b", discount=0.9, method="replace")])
    horde.update([1.0, 2.0], [5])
    np.testing.assert_allclose(horde.predict([4]), [0.1, 0.2])


def test_saved_or_restored_equals_continued(tmp_path):
    rng = np.random.default_rng(3)
    questions = asked(rng, 9, named=True)
    X, contact, _ = stream(rng)
    C = rng.normal(size=(T, 9))
    horde = Horde(N, questions)
    horde.run(X[:61], C[:60], {"contact": contact[:60]})
    horde.save(tmp_path / "h.npz")
    other, restored = Horde.load(tmp_path / "h.npz"), Horde(N, questions)
    restored.restore(horde.state())
    for each in (horde, other, restored):
        each.run(X[60:], C[60:], {"contact": contact[60:]}, resume=True)
    for again in (other, restored):
        assert (again.questions, again.steps) == (horde.questions, T)
        np.testing.assert_array_equal(horde.predict(X[5]), again.predict(X[5]))
        for question in questions:
            np.testing.assert_array_equal(horde.weights(question.name), again.weights(question.name))
    for bad in ({}, Horde(N, questions[:8]).state(), Horde(N + 1, questions).state()):
        with pytest.raises(ValueError, match="does not fit"):
            restored.restore(bad)
    np.testing.assert_array_equal(horde.predict(X[5]), restored.predict(X[5]))
    to.TrueOnlineTD(3, 0.1, 0.9, 0.9).save(tmp_path / "td.npz")
    with pytest.raises(ValueError, match="holds a TrueOnlineTD, not a horde"):
        Horde.load(tmp_path / "td.npz")


def test_memory_is_that_of_the_features_met():
    horde = Horde(2_000_000, [Question(f"q{i}", discount=0.9) for i in range(100)])
    horde.run(np.arange(40).reshape(20, 2) * 50_000, np.ones((19, 100)))  # compiled, and at least one growth
    before = resident()
    horde.run(np.arange(4000).reshape(2000, 2) * 500, np.ones((1999, 100)))  # 4,000 rows of 800 bytes
    assert horde._memory.counts[layout.TAKEN] == 4000
    assert resident() - before < 40e6
    horde.add([Question("one more", discount=0.9)])
    assert resident() - before < 60e6
    assert horde._memory.u.nbytes <= 2 * buffers.FIRST_BYTES


def resident():
    """Bytes of memory that are in use; 0 where the system does not tell."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text(encoding="utf-8").split()[1]) * 4096 if statm.exists() else 0


@pytest.mark.parametrize("seed", range(3))
def test_ages_that_use_pages_again_and_growth_change_nothing(seed, monkeypatch):
    """With few pages, and room for few features at a time."""
    rng = np.random.default_rng(seed)
    n, steps = 300, 2000
    monkeypatch.setattr(buffers, "MIN_PAGES", 14)
    questions = asked(rng, 12)
    monkeypatch.setattr(buffers, "FIRST_BYTES", 8 * len(questions) * 10)
    centre = (np.cumsum(rng.normal(size=steps + 1)) * 10).astype(int)  # features come, go, and come back
    X = np.array([(c + rng.choice(25, size=4, replace=False)) % n for c in centre])
    C = rng.normal(size=(steps, len(questions)))
    starts = rng.random(steps + 1) < 0.002
    horde, single = Horde(n, questions), Horde(n, questions)
    values = horde.run(X, C, starts=starts)
    assert len(horde._memory.u) > 100
    assert horde._memory.places[layout.AGE].max() > 3 * len(horde._memory.owing)
    for t in range(steps + 1):
        if t == 0 or starts[t]:
            single.start(X[t])
        else:
            single.update(C[t - 1], X[t])
    for q, question in enumerate(questions):
        gamma = question.discount
        learner = LEARNERS[question.method](n, question.step_size, question.trace_decay, gamma)
        expected = learner.run(X, C[:, q], starts=starts)
        scale = max(1.0, np.abs(learner.weights).max())
        np.testing.assert_allclose(values[:, q], expected, rtol=0.0, atol=1e-12 * scale)
        np.testing.assert_allclose(horde.weights(question.name), learner.weights, rtol=0.0, atol=1e-12 * scale)
        np.testing.assert_allclose(horde.trace(question.name), learner.trace, rtol=1e-9, atol=1e-15)
        np.testing.assert_array_equal(single.weights(question.name), horde.weights(question.name))


def test_a_question_that_diverges_disturbs_no_other():
    shared = {"discount": 0.9, "trace_decay": 0.9, "step_size": 3.0, "method": "accumulate"}
    questions = [Question("wild", **shared), Question("zero", **shared), Question("calm", discount=0.9)]
    X = np.tile([[0, 1], [1, 2]], (1000, 1))
    C = np.tile([1.0, 0.0, 1.0], (len(X) - 1, 1))
    horde = Horde(3, questions)
    with np.errstate(over="ignore", invalid="ignore"):
        values = horde.run(X, C)
        assert not np.isfinite(horde.weights("wild")).all()
    assert (values[:, 1] == 0.0).all()
    learner = to.TrueOnlineTD(3, 0.1, 0.9, 0.9)
    np.testing.assert_allclose(values[:, 2], learner.run(X, C[:, 2]), rtol=0.0, atol=1e-12)


# --- Forms of features ----------------------------------------------------------------------------


def test_a_stream_may_be_given_in_any_form():
    rng = np.random.default_rng(6)
    questions = asked(rng, 7)
    X = np.sort(np.array([rng.choice(N, size=4, replace=False) for _ in range(T + 1)]), axis=1)
    dense = np.zeros((T + 1, N))
    np.put_along_axis(dense, X, 1.0, axis=1)
    C = rng.normal(size=(T, 7))
    expected = Horde(N, questions).run(X, C)
    for form in (list(X), X.tolist(), X.astype(np.int32), csr_array(dense), dense, (X, np.ones(X.shape)), list(dense)):
        np.testing.assert_array_equal(Horde(N, questions).run(form, C), expected)


def test_a_sample_may_be_given_in_any_form():
    rng = np.random.default_rng(7)
    questions = asked(rng, 7)
    X = np.sort(np.array([rng.choice(N, size=4, replace=False) for _ in range(T + 1)]), axis=1)
    C = rng.normal(size=(T, 7))
    frozen = X.copy()
    frozen.flags.writeable = False
    forms = [
        lambda t: X[t],
        lambda t: X[t].tolist(),
        lambda t: frozen[t],
        lambda t: np.repeat(X[t], 2)[::2],
        lambda t: (X[t], np.ones(4)),
        lambda t: np.isin(np.arange(N), X[t]).astype(float),
        lambda t: (np.append(X[t], np.setdiff1d(np.arange(N), X[t])[0]), np.append(np.ones(4), 0.0)),
    ]
    expected = Horde(N, questions)
    expected.run(X, C)
    for form in forms:
        horde = Horde(N, questions)
        horde.start(form(0))
        for t in range(T):
            horde.update(C[t] if t % 2 else C[t].tolist(), form(t + 1))
        for question in questions:
            np.testing.assert_array_equal(horde.weights(question.name), expected.weights(question.name))
        np.testing.assert_array_equal(horde.predict(form(3)), expected.predict(X[3]))


def test_rows_without_any_feature():
    horde = Horde(N, [Question("a", discount=0.5), Question("b", discount=0.9, method="replace")])
    nothing = np.zeros(0, np.int64)
    np.testing.assert_array_equal(horde.run([nothing] * 3, np.ones((2, 2)), last=True), np.zeros((3, 2)))
    horde.update(np.ones(2), np.array([3]))
    np.testing.assert_array_equal(horde.update(np.ones(2), nothing), np.ones(2))
    np.testing.assert_allclose(horde.predict([3]), [0.1, 0.1])


# --- The answers at the last row ------------------------------------------------------------------


def test_last_answers_of_a_piece_are_the_first_of_the_next():
    rng = np.random.default_rng(9)
    questions = asked(rng, 8)
    X, _, _ = stream(rng)
    C = rng.normal(size=(T, 8))
    whole = Horde(N, questions).run(X, C, last=True)
    horde = Horde(N, questions)
    ends = [0, 0, 1, 2, 40, 40, T]  # pieces of no transition at all among them
    rows = [horde.run(X[:1], [], last=True)]
    for first, end in pairwise(ends):
        piece = horde.run(X[first : end + 1], C[first:end], last=True, resume=True)
        np.testing.assert_array_equal(piece[0], rows[-1][-1])
        rows.append(piece)
    np.testing.assert_array_equal(np.concatenate([rows[0], *(piece[1:] for piece in rows[1:])]), whole)
    assert horde.steps == T


def test_one_row_starts():
    questions = [Question("a", discount=0.9), Question("b", discount=0.5)]
    horde = Horde(N, questions)
    assert horde.run(np.array([[1, 2]]), np.empty((0, 2))).shape == (0, 2)
    horde.update(np.array([1.0, 2.0]), np.array([3]))
    answers_at = horde.run(np.array([[1, 2]]), np.empty((0, 2)), starts=[True], last=True)
    np.testing.assert_allclose(answers_at, [[0.2, 0.4]], rtol=1e-15)
    np.testing.assert_array_equal(horde.trace("a"), np.zeros(N))
    assert horde.steps == 1


# --- Bad input ------------------------------------------------------------------------------------


def broken(parts, name, change):
    parts = {key: array.copy() for key, array in parts.items()}
    change(parts[name])
    return parts


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("rows", lambda a: a.__setitem__(a >= 0, 0)),
        ("rows", lambda a: a.__setitem__(0, N)),
        ("at", lambda a: a.__setitem__(0, N)),
        ("at", lambda a: a.__setitem__(0, -1)),
        ("since", lambda a: a.__setitem__(slice(None), 10**6)),
        ("places", lambda a: a.__setitem__((layout.LAST, 0), 10**6)),
        ("places", lambda a: a.__setitem__((layout.TURN, 0), 10**6)),
        ("order", lambda a: a.__setitem__(0, 10**6)),
        ("counts", lambda a: a.__setitem__(layout.TAKEN, N + 1)),
        ("counts", lambda a: a.__setitem__(layout.LENGTH, 5)),
        ("numbers", lambda a: a.__setitem__((layout.SCALE, 0), np.nan)),
    ],
)
def test_damaged_files_are_refused(name, change, tmp_path):
    rng = np.random.default_rng(3)
    horde = Horde(N, asked(rng, 5))
    horde.run(np.array([rng.choice(N - 1, 3, replace=False) + 1 for _ in range(50)]), rng.normal(size=(49, 5)))
    horde.save(tmp_path / "h.npz")
    parts = broken(files.read_learner(tmp_path / "h.npz")[2], name, change)
    rewrite(tmp_path / "h.npz", out=tmp_path / "broken.npz", **parts)
    with pytest.raises(ValueError, match="is damaged"):
        Horde.load(tmp_path / "broken.npz")


STREAMS = [
    (np.array([[0, 1], [2, 3], [4, N]]), r"X\[2\] has index 30, but indices go from 0"),
    (np.array([[0, 1], [2, -1], [4, 5]]), r"X\[1\] has index -1"),
    (np.array([[0, 1], [2, 3], [4, 4]]), r"X\[2\] has index 4 more than once"),
    ([np.array([0, 1]), np.array([2]), np.array([4, 4])], r"X\[2\] has index 4 more than once"),
    ([np.array([0, 1]), np.array([2]), np.array([N])], r"X\[2\] has index 30"),
    ((np.array([[0, 1], [2, 3], [4, 5]]), np.array([[1.0, 1.0], [1.0, np.nan], [1.0, 1.0]])), "must be finite"),
    ((np.array([[0, 1], [2, 3], [4, 5]]), np.array([[1.0, 1.0], [1.0, 0.5], [1.0, 1.0]])), "must be binary"),
    (np.full((3, N), np.inf), r"X\[0\] must be finite"),
    (np.full((3, N), 0.5), r"X\[0\] must be binary"),
    ([np.array([0, 1]), np.array([True]), np.array([4])], "booleans"),
    ([], "empty"),
]
CUMULANTS = [np.full((2, 2), np.nan), np.ones((2, 3)), [[1.0], [1.0, 2.0]], np.ones((2, 2), bool), "ab"]


def run(horde, X, C):
    horde.run(X, C, {"contact": [0.5, 0.5]})


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        *((lambda h, X=X: run(h, X, np.ones((2, 2))), message) for X, message in STREAMS),
        *((lambda h, C=C: run(h, [[0], [1], [2]], C), "must be 2 rows of 2 finite numbers") for C in CUMULANTS),
        (lambda h: h.update([1.0], [0], {"contact": 0.5}), "cumulants must be 2 finite numbers"),
        (lambda h: h.update([1.0, np.nan], [0], {"contact": 0.5}), "cumulants must be 2 finite numbers"),
        (lambda h: h.update([1.0, 2.0], [N], {"contact": 0.5}), "indices go from 0"),
        (lambda h: h.update([1.0, 2.0], [1, 1], {"contact": 0.5}), "more than once"),
        (lambda h: h.update([1.0, 2.0], [1], {"contact": 2.0}), r"number in \[0, 1\]"),
        (lambda h: h.update([1.0, 2.0], [1], {}), "must have 'contact'"),
        (lambda h: h.add([Question("a", discount=0.5)]), "two questions have the name 'a'"),
        *((lambda h, a=a: h.add(a), "a list of objects of the class Question, got") for a in (["a"], 5, None)),
        (lambda h: Horde(N, h.questions).update([1.0, 2.0], [1], {"contact": 0.5}), "call start"),
        (lambda h: h.run([[0], [1]], np.ones((3, 2))), "cumulants must be 1 rows"),
        (
            lambda h: h.update(np.ma.masked_array([1.0, 2.0], [True, False]), [0], {"contact": 0.5}),
            "cumulants must not be masked",
        ),
        (
            lambda h: run(h, [[0], [1], [2]], np.ma.masked_array(np.ones((2, 2)), True)),
            "cumulants must not be masked",
        ),
        (
            lambda h: h.run([[0], [1]], [[1.0, 2.0]], {"contact": np.ma.masked_array([0.5])}),
            "'contact' must not be masked",
        ),
        (lambda h: h.run([[0], [1]], [[1.0, 2.0]], {"contact": [0.5]}, resume=True), "resume=True continues from"),
        (lambda h: h.weights("c"), "there is no question 'c'"),
        (lambda h: h.update([1.0, 2.0], (np.array([1]), np.array([0.5])), {"contact": 0.5}), "binary"),
    ],
)
def test_bad_input_changes_nothing(attempt, message):
    horde = Horde(N, [Question("a", discount=0.9, method="replace"), Question("b", discount="contact")])
    horde.start([0])
    horde.update([1.0, 2.0], [1], {"contact": 0.5})

    def contents():
        weights = horde.weights("a"), horde.weights("b"), horde.trace("a")
        return *weights, horde.features[0], horde.predict([0, 1]), horde.steps

    before = contents()
    with pytest.raises((ValueError, RuntimeError), match=message):
        attempt(horde)
    for now, then in zip(contents(), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_questions_are_checked():
    for wrong in ({"discount": 1.5}, {"discount": 0.9, "method": "best"}, {"discount": 0.9, "step_size": 0.0}):
        with pytest.raises(ValueError, match=r"must|unknown"):
            Question("a", **wrong)
    with pytest.raises(ValueError, match="must have a name"):
        Question("", discount=0.9)
    with pytest.raises(ValueError, match="at least one sample"):
        discount_of(0.01, 40.0)
    assert horizon_of(discount_of(5.0, 100.0), 100.0) == pytest.approx(5.0, rel=1e-12)
    assert horizon_of(discount_of(0.003, 1000.0), 1000.0) == pytest.approx(0.003, rel=1e-12)
    assert horizon_of(1.0, 40.0) == np.inf


@pytest.mark.parametrize("discounts", [5, "gamma", [0.5]])
def test_discounts_that_are_no_mapping_are_refused(discounts):
    for named in ("gamma", 0.5):
        horde = Horde(4, [Question("force", named)])
        horde.start([0])
        with pytest.raises(ValueError, match="discounts must map the name of each discount to its value, got"):
            horde.update([1.0], [1], discounts)
        with pytest.raises(ValueError, match="discounts must map"):
            horde.run(np.array([[0], [1]]), [[1.0]], discounts)
    for bad in ({"gamma": {}}, {"gamma": "x"}, {"gamma": [None]}):
        with pytest.raises(ValueError, match="the discount 'gamma' must be"):
            Horde(4, [Question("force", "gamma")]).run(np.array([[0], [1]]), [[1.0]], bad)


def test_a_horde_too_large_for_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr(buffers, "allocate", lambda n: np.zeros(2**59))
    with pytest.raises(ValueError, match=r"n_features=1,000,000,000 would take 4.0 GB of memory"):
        Horde(10**9)
