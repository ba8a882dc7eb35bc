"""Random calls with good and bad arguments on learners, agents, hordes and coders, drawn by Hypothesis."""

from __future__ import annotations

import random
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import trueonline as to
from tests.hostile import FINE, REFUSED, PromiseError
from tests.hostile.saved_files import frozen
from trueonline.streams import Horde, Question

PROMISE = "A bad call raises a ValueError, or a TypeError in plain words, and changes nothing, bit for bit."
TRIALS = 120  # each of some hundred calls
EXAMPLES = 15  # objects in a trial
N, ACTIONS = 6, 3

# --- Arguments ------------------------------------------------------------------------------------

odd = st.sampled_from(
    [
        None, True, False, "", "0.5", b"1", [], (), {}, [[]], [None], {"a": 1}, 1j, 0, 1, -1, 2, 5, 6, 7, 2**31, -(2**63),
        10**30, 0.0, -0.0, 0.5, 1.0, 1.5, -0.5, 1e-320, 1e308, np.nan, np.inf, -np.inf, np.float32(0.5), np.int8(3),
        np.uint64(2**63), np.array(0.5), np.array([0.5]), np.array([]), np.zeros((2, 2, 2)), np.array(["a"]), np.array([None]),
        np.arange(N), np.ma.masked_array([1.0], [True]), np.array(["2020"], "M8"), np.zeros(N, [("a", "f8")]),
    ]
)  # fmt: skip
unit = st.floats(0, 1)
number = st.floats(-10, 10)


@st.composite
def features(draw: Any) -> Any:
    """Features in any form, mostly good ones."""
    indices = draw(st.lists(st.integers(0, N - 1), unique=True, max_size=N - 1))
    return draw(
        st.sampled_from(
            [
                np.array(indices, int), indices, draw(st.integers(0, N - 1)), np.array([draw(number) for _ in range(N)]),
                [float(i in indices) for i in range(N)], (np.array(indices, int), np.array([draw(number) for _ in indices])),
                np.array(indices, np.int32), np.zeros(N, np.float32), np.asfortranarray(np.ones((N, 2)))[:, 0],
                np.array([*indices, draw(st.integers(-2, N + 1))]), np.array([np.nan] * N), np.ones(N + 1), np.ones((1, N)), None,
                (np.array([0, 0]), np.ones(2)), (np.array([0]), np.ones(2)), (np.array([0.5]), np.ones(1)), draw(odd),
            ]
        )
    )  # fmt: skip


@st.composite
def streams(draw: Any) -> Any:
    rows = draw(st.integers(0, 5))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    return draw(
        st.sampled_from(
            [
                rng.random((rows, N)), rng.integers(0, N, rows), np.argsort(rng.random((rows, N)))[:, :2], [0] * rows,
                (np.argsort(rng.random((rows, N)))[:, :2], rng.random((rows, 2))), rng.integers(0, N + 1, (rows, 1)),
                np.where(rng.random((rows, N)) < 0.05, np.nan, 1.0), [draw(features()) for _ in range(rows)], draw(odd),
            ]
        )
    )  # fmt: skip


def series(element: Any) -> Any:
    return st.one_of(
        st.lists(st.one_of(element, element, element, odd), max_size=6), st.lists(element, min_size=1, max_size=5), odd
    )


def some(good: Any) -> Any:
    """Mostly a good argument."""
    return st.integers(0, 9).flatmap(lambda n: odd if n == 0 else good)


def network(outputs: int) -> Any:
    return st.builds(to.deep.MLP, st.just(N), st.just((4,)), st.just(outputs), sparsity=st.just(0.0), seed=st.just(0))


own = st.none() | unit
starts = st.none() | series(st.booleans())
moving = st.just({"g": 0.5}) | st.dictionaries(st.just("g"), some(unit)) | odd
CALLS = {
    "learner": {
        "start": {"x": features()},
        "update": {"reward": some(number), "x_next": features(), "discount": some(own), "trace_decay": some(own)},
        "predict": {"x": features()},
        "predict_many": {"X": streams()},
        "run": {"X": streams(), "rewards": series(number), "discounts": st.none() | series(unit), "starts": starts},
    },
    "agent": {
        "start": {"x": features()},
        "step": {"reward": some(number), "x_next": features(), "discount": some(own), "trace_decay": some(own)},
        "truncate": {"reward": some(number), "x_next": features()},
        "end": {"reward": some(number)},
        "values": {"x": features()},
    },
    "horde": {
        "start": {"x": features()},
        "update": {"cumulants": series(number), "x_next": features(), "discounts": moving},
        "run": {
            "X": streams(),
            "cumulants": st.integers(0, 5).map(lambda n: np.ones((n, 2))) | series(number),
            "discounts": st.integers(0, 5).map(lambda n: {"g": np.full(n, 0.5)}) | odd,
            "starts": starts,
        },
        "predict": {"x": features()},
        "weights": {"name": some(st.sampled_from(["a", "b", "c"]))},
        "add": {"questions": st.one_of(odd, st.just([Question("a", 0.5)]), st.just([Question("c", 0.9)]))},
    },
    "coder": {
        "__call__": {"x": some(st.lists(st.floats(-3, 3), min_size=2, max_size=2)) | series(number)},
        "many": {"X": st.lists(st.lists(number, min_size=2, max_size=2), max_size=4) | odd},
    },
}
OFF_POLICY = {"ratio": some(st.none() | st.floats(0, 5)), "interest": some(own), "probability": some(own)}
CALLS["off-policy"] = CALLS["learner"] | {"update": CALLS["learner"]["update"] | OFF_POLICY}
CALLS["network"] = {name: CALLS["learner"][name] for name in ("start", "update", "predict")}
COMMON = {"step_size": some(st.floats(1e-6, 0.5)), "trace_decay": some(unit), "discount": some(unit)}
LEARNER = {"n_features": some(st.just(N)), **COMMON, "initial_weights": some(st.none() | st.just(np.linspace(0, 1, N)))}
AGENT = {"n_features": some(st.just(N)), "n_actions": some(st.just(ACTIONS)), **COMMON, "seed": st.just(0)}
ADAPTED = {"bound": some(st.none() | unit), "meta_step_size": some(st.none() | st.floats(0, 0.1))}
LEARNED = {
    "bound": some(unit),
    "decay": some(unit),
    "meta_step_size": some(st.floats(0, 0.1)),
    "min_step_size": some(unit),
}
TARGET = {"target_epsilon": some(unit), "policy": st.just(to.control.EpsilonGreedy(0.3))}
NETWORK = {"discount": some(unit), "trace_decay": some(unit), "step_size": some(unit), "kappa": some(st.floats(1, 3))}
BOX = {"low": some(st.just([0.0, -1.0])), "high": some(st.just([1.0, 2.0]))}
MAKERS: list[tuple[str, Any, dict[str, Any]]] = [
    *(("learner", kind, LEARNER | ADAPTED) for kind in (to.TrueOnlineTD, to.AccumulateTD, to.ReplaceTD, to.EmphaticTD)),
    *(("learner", kind, LEARNER) for kind in (to.MonteCarlo, to.ProvisionalTD, to.OnlineLambdaReturn)),
    *(
        ("learner", kind, LEARNER | {"second_step_size": some(unit)})
        for kind in (to.GTD, to.TrueOnlineGTD, to.TrueOnlineDifferentialTD)
    ),
    *(
        ("off-policy", kind, LEARNER | {"second_step_size": some(unit)})
        for kind in (to.TDRC, to.WISTrueOnlineGTD, to.forward.GTDSum)
    ),
    *(("off-policy", kind, LEARNER) for kind in (to.VTrace, to.forward.EmphaticSum)),
    *(("agent", kind, AGENT | TARGET) for kind in (to.control.TreeBackupQ, to.forward.TreeBackupQSum)),
    ("agent", to.forward.OnlineWatkinsReturn, AGENT | {"policy": st.just(to.control.EpsilonGreedy(0.3))}),
    ("network", to.deep.StreamTD, NETWORK | {"net": some(network(1))}),
    ("agent", to.deep.StreamSarsa, NETWORK | {"net": some(network(ACTIONS))}),
    ("agent", to.control.TrueOnlineDifferentialSarsa, AGENT | {"second_step_size": some(unit)}),
    ("learner", to.SwiftTD, LEARNER | LEARNED),
    ("agent", to.control.SwiftSarsa, AGENT | LEARNED),
    *(("agent", kind, AGENT) for kind in (to.control.TrueOnlineSarsa, to.control.ReplaceSarsa, to.control.TrueOnlineWatkinsQ)),
    ("horde", Horde, {"n_features": some(st.just(N)), "questions": some(st.just([Question("a", 0.5), Question("b", "g")]))}),
    ("coder", to.features.TileCoder, BOX | {"bins": some(st.just(3)), "tilings": some(st.just(2)), "size": some(st.just(9))}),
    ("coder", to.features.Fourier, BOX | {"order": some(st.integers(1, 3)), "coupled": some(st.booleans())}),
]  # fmt: skip

# --- The trial ------------------------------------------------------------------------------------


def trial(rng: random.Random, folder: Path, shared: Path) -> Counter[str]:
    counts: Counter[str] = Counter()

    @seed(rng.randrange(2**32))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,  # to shrink each of them takes minutes, and the trial seems to hang
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def examine(data: Any) -> None:
        role, make, arguments = data.draw(st.sampled_from(MAKERS))
        thing = attempt(counts, make, {name: data.draw(value) for name, value in arguments.items()}, None)
        for _ in range(12 if thing is not None else 0):
            name = data.draw(st.sampled_from(sorted(CALLS[role])))
            given = {key: data.draw(value) for key, value in CALLS[role][name].items()}
            attempt(counts, getattr(thing, name), given, thing)

    examine()
    return counts


def attempt(counts: Counter[str], call: Any, given: dict[str, Any], thing: Any) -> Any:
    """Make a call. If it is refused, it must be in words that somebody wrote, and the thing must be as it was."""
    before = None if thing is None else state(thing)
    try:
        made = call(**given) if getattr(call, "__name__", "") != "__call__" else call(*given.values())
        counts[FINE] += 1
        return made
    except (ValueError, TypeError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "begun" not in str(error):
            raise
        shown = f"{getattr(call, '__qualname__', call)}({given})"
        line = traceback.extract_tb(error.__traceback__)[-1].line or ""
        if not str(error).strip() or (isinstance(error, TypeError) and not line.startswith("raise ")):
            raise PromiseError(f"{shown} was not refused in plain words, but by {error!r}") from error
        if before is not None and state(thing) != before:
            raise PromiseError(f"{shown} was refused and has changed something") from error
        counts[REFUSED] += 1
        return None


def state(thing: Any) -> Any:
    """All that an object holds."""
    if isinstance(thing, Horde):
        return frozen([thing.steps, thing.questions, thing.state()])
    if isinstance(thing, to.deep.StreamTD | to.deep.StreamSarsa):  # the rest of it are values that a pass leaves behind
        return frozen([thing._dump(), thing.steps])
    held = frozen(thing.__getstate__())
    return [held, frozen(thing._q)] if hasattr(thing, "_q") else held
