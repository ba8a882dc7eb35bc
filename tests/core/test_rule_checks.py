"""Rules that cannot work are refused where they are given, in one line that names the fix."""

import pytest

import trueonline as to
from trueonline.core.memory import decay, imprint, learn, recall

WALK = to.problems.random_walk(5)


@to.kernel
def second(memory, x, reward, x_next, alpha, gamma_next):
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    decay(memory, 0.0)
    imprint(memory, x, 1.0, 0.0)
    learn(memory, alpha * delta)
    decay(memory.second, 0.0)
    imprint(memory.second, x, 1.0, 0.0)
    learn(memory.second, alpha * delta)
    return v, delta, v_next


@to.kernel
def silent(memory, x, reward, x_next, alpha):
    learn(memory, alpha * reward)


@to.kernel
def short(memory, x, reward, x_next):
    v, _, v_next = recall(memory, x, x_next)
    return v, v_next


@to.kernel
def misspelt(memory, x, reward, x_next):
    v, _, v_next = recall(memory, x, x_next)
    lern(memory, v)  # noqa: F821
    return v, reward, v_next


@to.kernel
def unpacks_wrongly(memory, x, reward, x_next):
    v, _ = recall(memory, x, x_next)
    return v, reward, v


@to.kernel
def opens_a_file(memory, x, reward, x_next):
    with open("file"):
        pass
    return 0.0, reward, 0.0


@to.kernel
def has_four_memories(memory, x, reward, x_next):
    learn(memory.fourth, 0.1)
    return 0.0, reward, 0.0


@to.kernel
def reads_weights(memory, x, reward, x_next):
    v, _, v_next = recall(memory, x, x_next)
    return v + memory.second.w[0], reward, v_next


@to.kernel
def learn_beside(several, change):
    beside = several.second
    learn(beside, change)


@to.kernel
def second_in_a_helper(memory, x, reward, x_next, alpha):
    v, _, v_next = recall(memory, x, x_next)
    learn_beside(memory, alpha * reward)
    return v, reward, v_next


def swept(rule):
    to.sweep(WALK, {"mine": rule}, step_sizes=[0.1], trace_decays=[0.5], runs=1, steps=5)


def learned(rule):
    learner = to.method(rule).learner(2, 0.1, 0.5, 0.9)
    learner.start([1.0, 0.0])
    learner.update(1.0, [0.0, 1.0])


@pytest.mark.parametrize("use", [swept, learned])
@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (silent, r"silent must return V\(S\), δ and V\(S'\), as in `return v, delta, v_next`; it returns nothing"),
        (short, r"short must return .*; it returns \(v, v_next\)"),
        (misspelt, "misspelt uses 'lern', which nothing defines; import or define it"),
        (
            unpacks_wrongly,
            "_unpacks_wrongly cannot be compiled: .*wrong tuple length.* the operations of trueonline.core",
        ),
        (opens_a_file, "_opens_a_file cannot be compiled: .*upported"),
        (
            has_four_memories,
            "has_four_memories reads memory.fourth, but memories have no fourth: .* memory=.two. or .three.",
        ),
        (
            reads_weights,
            r"reads_weights reads memory\.second\.w, but memories have no w: use .* value\(.* memory=.two. or",
        ),
    ],
)
def test_a_rule_that_cannot_work_is_refused_in_one_line(rule, message, use):
    with pytest.raises((TypeError, ValueError), match=message) as error:
        use(rule)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("rule", [second, second_in_a_helper])
def test_a_sweep_gives_a_rule_the_memories_that_it_reads(rule):
    name = rule.py_func.__name__
    assert to.study.SweptMethod(rule).memories == 2
    if rule is second:
        swept(rule)
    with pytest.raises(ValueError, match=f"memories must be from 2 to 3, which {name} uses, got 1"):
        to.study.SweptMethod(rule, memories=1)
    with pytest.raises(ValueError, match=rf"{name} uses memory\.second, .* give memory='two'"):
        to.method(rule)
