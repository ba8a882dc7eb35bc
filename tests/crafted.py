"""Files with crafted values: each array and each setting of a saved file is replaced in turn by one that it never has.

The file must be refused with a ValueError, or what it holds must still work. A crash would end the tests, so this module runs
in a process of its own: `python -m tests.crafted [--every=N] KIND …` prints a line for each kind, with the failures. With
`--every`, it tries one of N crafted files.
"""

import copy
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

import trueonline as to
from trueonline import files
from trueonline.control import TrueOnlineSarsa

LARGE = 10**5
HUGE = {"f": 1e300, "i": 2**62, "u": 2**31, "b": 1, "c": 1e300}


def crafted_arrays(array):
    """What an array may be replaced by: other values, other shapes and other types."""
    kind = array.dtype.kind
    if array.size > LARGE:  # to write it takes long
        yield "all -1", np.full(array.shape, -1).astype(array.dtype)
        yield "shorter", array[:-1]
        yield "bool", array.astype(bool)
        return
    if kind in "fiubc":
        values = [0, 1, -1, 2**31 - 1, HUGE[kind]]
        values += [np.nan, np.inf, -np.inf, 1e300, -1e300, 0.5, 5e-324] if kind == "f" else []
        for value in values:
            with np.errstate(all="ignore"):
                yield f"all {value}", np.full(array.shape, value).astype(array.dtype)
        for place in {0, array.size // 2, array.size - 1} if array.size else ():
            for value in values[2:]:
                other = array.copy()
                with np.errstate(all="ignore"):
                    other.reshape(-1)[place] = np.array(value).astype(array.dtype)
                yield f"{value} at {place}", other
        yield "float32", array.astype(np.float32)
        yield "int32", array.real.astype(np.int32) if kind != "f" else np.zeros(array.shape, np.int32)
        yield "int64", np.zeros(array.shape, np.int64)
        yield "complex", array.astype(complex)
        yield "other byte order", array.astype(array.dtype.newbyteorder())
        yield "bool", array.astype(bool)
    yield "float64", np.zeros(array.shape)
    yield "text", np.full(array.shape, "x")
    yield "empty", array.reshape(-1)[:0]
    yield "a number", np.array(7.0)
    yield "one more dimension", array[None]
    yield "doubled", np.concatenate([array, array]) if array.ndim else np.array([array, array])
    if array.ndim:
        yield "shorter", array[:-1]
        yield "Fortran's order", np.asfortranarray(array)


def crafted_settings(settings, depth=3):
    """The same settings, with one of them replaced or missing, down to some depth."""
    for name, value in settings.items():
        missing = {other: settings[other] for other in settings if other != name}
        yield f"{name} missing", missing
        for other in (None, "x", -1, 0, 1e300, float("nan"), 2**70, 0.5, True, [], {}, [None], {"x": 1}):
            yield f"{name} = {other!r}", {**settings, name: other}
        if isinstance(value, dict) and depth:
            for what, inner in crafted_settings(value, depth - 1):
                yield f"{name}/{what}", {**settings, name: inner}
        elif isinstance(value, list) and value and isinstance(value[0], dict) and depth:
            for what, inner in crafted_settings(value[0], depth - 1):
                yield f"{name}[0]/{what}", {**settings, name: [inner, *value[1:]]}


# --- Kinds of files: each makes one, and uses one ---


def learner(make, dense=False, steps=60):
    def write(path):
        one, rng = make(), np.random.default_rng(0)
        X = rng.random((40, 12)) if dense else rng.permuted(np.tile(np.arange(12), (40, 1)), axis=1)[:, :3]
        one.run(X, rng.random(39))
        one.save(path)

    def use(path):
        one = to.load(path)
        work(one)
        for name in ("weights", "trace", "steps", "step_sizes", "bounded", "diverged"):
            getattr(one, name, None)

    def work(one):
        for t in range(steps):
            x = np.eye(12)[t % 12] if t % 7 == 0 and t > steps // 2 else np.array([t % 12, (t + 5) % 12])
            try:
                one.update(1.0, x)
            except RuntimeError:  # between episodes
                one.start(x)
        one.run(np.arange(steps) % 12, np.ones(steps - 1))

    return write, use


def agent(make):
    def write(path):
        one = make()
        one.start([0, 1])
        for t in range(30):
            one.step(1.0, [t % 12, (t + 3) % 12])
        one.save(path)

    def use(path):
        one = to.load(path)
        if one.action is None:
            one.start([0, 1])
        for t in range(100):
            one.step(1.0, [t % 12, (t + 3) % 12])
        assert one.weights.shape == (12, 3)

    return write, use


def delayed(name):
    from trueonline import nonlinear

    def linear(w, x):
        return float(w @ x), x

    def write(path):
        one = getattr(nonlinear, name)(linear, np.zeros(3), 0.1, 0.9, 0.9, horizon=5)
        one.start(np.eye(3)[0])
        for t in range(12):
            one.update(1.0, np.eye(3)[t % 3])
        one.save(path)

    def use(path):
        one = getattr(nonlinear, name).load(path, linear)
        try:
            one.update(1.0, np.ones(3))
        except RuntimeError:
            one.start(np.ones(3))
        for _ in range(20):
            one.update(1.0, np.ones(3))

    return write, use


def horde():
    from trueonline.nexting import Horde, Question

    def write(path):
        asked = [
            Question(f"q{i}", 0.9, method=method) for i, method in enumerate(("true_online", "accumulate", "replace"))
        ]
        one = Horde(60, [*asked, Question("q3", "gamma", step_size=0.01)])
        one.start([0, 1])
        for t in range(100):
            one.update(np.ones(4), [t % 40, (t + 7) % 40], {"gamma": 0.5})
        one.save(path)

    def use(path):
        one = Horde.load(path)
        names = [question.name for question in one.questions]
        try:
            one.update(np.ones(len(names)), [1, 2], {"gamma": 0.5})
        except RuntimeError:
            one.start([1, 2])
        for t in range(150):
            one.update(np.ones(len(names)), [t % 60, (t + 7) % 60], {"gamma": 0.5})
        one.predict([5, 6])
        for name in names:
            one.weights(name), one.trace(name)
        one.add([Question("more", 0.3)])

    return write, use


def predictor(**options):
    from trueonline.nexting.predictor import Clean, Predictor, Setup

    signals = ["a", "velocity(a)", "lag(b, 1s)", "lowpass(b, 2s)"]
    setup = Setup(signals=signals, targets=["a", "b"], horizons=[0.5, 2.0], rate=10.0, **options)

    def samples(first, n):
        t = np.arange(first, first + n)
        return Clean(t / 10, np.column_stack([np.sin(t / 9), np.cos(t / 5)]), t == 0)

    def write(path):
        one = Predictor(setup)
        one.learn(samples(0, 70))
        files.write_learner(path, "Predictor", {}, one.state())

    def use(path):
        one = Predictor(setup)
        one.restore(files.read_learner(path)[2])
        for first in range(1000, 1160, 80):
            one.learn(samples(first, 80))
        one.scores(), one.counters()

    return write, use


def training():
    import gymnasium

    from trueonline.control.gym.training import train

    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    features = to.features.from_space(env.observation_space)

    def go(path, episodes):
        one = TrueOnlineSarsa(env.observation_space.n, env.action_space.n, 0.1, 0.9, 0.9, seed=1)
        train(env, one, features, episodes=episodes, seed=0, checkpoint=path, evaluate_every=2, evaluate_episodes=2)

    return lambda path: go(path, 4), lambda path: go(path, 8)


def atari(protocol, method):
    from trueonline.control.atari.runs import Run, Settings, learn_background

    background = learn_background(decisions=20)

    def started():
        return Run(Settings(protocol, method, frames=10_000), background)

    def write(path):
        one = started()
        for _ in range(30):
            one._decide()
        one.save(path)

    def use(path):
        one = started()
        one.resume(path)
        for _ in range(10):
            if one.finished:
                break
            one._decide()

    return write, use


def _three(kind, **options):
    return lambda: kind(12, 0.1, 0.9, 0.95, **options)


KINDS = {
    "true online": lambda: learner(_three(to.TrueOnlineTD)),
    "dense": lambda: learner(_three(to.TrueOnlineTD), dense=True),
    "adapted": lambda: learner(_three(to.TrueOnlineTD, bound=1.0, meta_step_size=0.01, initial_weights=np.ones(12))),
    "replace": lambda: learner(_three(to.ReplaceTD)),
    "provisional": lambda: learner(_three(to.ProvisionalTD)),
    "provisional dense": lambda: learner(_three(to.ProvisionalTD), dense=True),
    "provisional adapted": lambda: learner(_three(to.ProvisionalTD, bound=1.0)),
    "gtd": lambda: learner(_three(to.GTD, second_step_size=0.01)),
    "true online gtd": lambda: learner(_three(to.TrueOnlineGTD, second_step_size=0.01)),
    "definition": lambda: learner(_three(to.forward.OnlineLambdaReturn), steps=9),
    "n-step": lambda: learner(_three(to.forward.NStepReturn, n=3), steps=9),
    "sarsa": lambda: agent(lambda: TrueOnlineSarsa(12, 3, 0.1, 0.9, 0.9, seed=0)),
    "twister": lambda: agent(
        lambda: TrueOnlineSarsa(12, 3, 0.1, 0.9, 0.9, seed=np.random.Generator(np.random.MT19937(0)))
    ),
    "forward": lambda: delayed("ForwardTD"),
    "delayed": lambda: delayed("DelayedLambdaReturn"),
    "horde": horde,
    "predictor": lambda: predictor(features=200),
    "large predictor": predictor,
    "training": training,
    "atari published": lambda: atari("published", "true_online"),
    "atari paper": lambda: atari("paper", "true_online"),
}


def craft(name, folder, every=1):
    """Try all crafted files of a kind. Return how often each outcome came, and the failures in words."""
    write, use = KINDS[name]()
    path = Path(folder) / "crafted.npz"
    write(path)
    kind, settings, arrays = files.read_learner(path)
    files.write_learner(path, kind, settings, arrays)
    use(path)  # the file itself is accepted
    outcomes, failures = Counter(), []
    trials = [
        (f"{part}: {what}", settings, {**arrays, part: other})
        for part in arrays
        for what, other in crafted_arrays(arrays[part])
    ]
    trials += [
        (f"{part} missing", settings, {other: arrays[other] for other in arrays if other != part}) for part in arrays
    ]
    trials += [(what, other, arrays) for what, other in crafted_settings(settings)]
    for what, some_settings, some_arrays in trials[::every]:
        print(f"{name}: {what}", file=sys.stderr, flush=True)  # the last line before a crash
        try:
            files.write_learner(path, kind, copy.deepcopy(some_settings), some_arrays)
            use(path)
            outcomes["works"] += 1
        except ValueError:
            outcomes["refused"] += 1
        except Exception as error:
            failures.append(f"{what}: {type(error).__name__}: {str(error)[:120]}")
    return outcomes, failures


if __name__ == "__main__":
    np.seterr(all="ignore")
    os.fsync = lambda handle: None  # most of the time would go there
    options = [each for each in sys.argv[1:] if each.startswith("--every=")]
    every = int(options[-1].partition("=")[2]) if options else 1
    for each in [each for each in sys.argv[1:] if each not in options] or KINDS:
        with tempfile.TemporaryDirectory() as folder:
            outcomes, failures = craft(each, folder, every)
        print(json.dumps({"kind": each, **outcomes, "failures": failures}), flush=True)
