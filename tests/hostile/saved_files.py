"""Every kind of file that the package saves and reads again: how to make one, read it, compare what was read, and use it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import trueonline as to
from trueonline import files, study
from trueonline.control.gym.checkpoints import TrainingCheckpoint
from trueonline.streams import Horde, Question
from trueonline.streams.fleet import Fleet, FleetCleaner
from trueonline.streams.predictor import Predictor, Setup
from trueonline.streams.running.stream_checkpoint import KIND, Checkpoint
from trueonline.streams.sources import Block, Clean, Cleaner, Labels
from trueonline.study.storage.store import Store

FEATURES, ACTIONS = 12, 3
FORWARD = ("horizon", "_parameters", "_weights", "_initial_weights", "_here", "_standing", "_value", "_steps")


@dataclass(frozen=True)
class Saved:
    """A kind of file. `read` raises ValueError where it refuses. `content` is all that there is to compare."""

    make: Callable[[Path], None]
    read: Callable[[Path], Any]
    content: Callable[[Any], Any]
    use: Callable[[Any, np.random.Generator], Any]


def frozen(thing: Any) -> Any:
    """All of a thing in a form that compares bit for bit."""
    if isinstance(thing, np.ndarray | np.generic):
        return thing.dtype.str, thing.shape, thing.tobytes()
    if isinstance(thing, dict):
        return {name: frozen(value) for name, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [frozen(each) for each in thing]
    if is_dataclass(thing):
        return {each.name: frozen(getattr(thing, each.name)) for each in fields(thing)}
    if isinstance(thing, np.random.Generator):
        return thing.bit_generator.state
    return thing if isinstance(thing, str | bytes | bool | int | None) else repr(thing)


# --- Learners and agents --------------------------------------------------------------------------


def stream(rng: np.random.Generator, form: str, length: int = 30) -> Any:
    """Rows of features in one of the forms that learners take."""
    if form == "dense":
        return rng.random((length + 1, FEATURES))
    if form == "pairs":
        return np.argsort(rng.random((length + 1, FEATURES)))[:, :3], rng.standard_normal((length + 1, 3))
    return np.argsort(rng.random((length + 1, FEATURES)))[:, :3]


def _learner(kind: str, form: str, **more: Any) -> Saved:
    def make(path: Path) -> None:
        cls = getattr(to, kind, None) or getattr(to.forward, kind)
        learner = cls(FEATURES, step_size=0.05, trace_decay=0.8, discount=0.9, **more)
        rng = np.random.default_rng(3)
        learner.run(stream(rng, form), rng.standard_normal(30))
        learner.save(path)

    def use(learner: Any, rng: np.random.Generator) -> None:
        for each in dict.fromkeys(("indices", form)):
            learner.run(stream(rng, each), rng.standard_normal(30))
            learner.start(stream(rng, each, 0)[0] if each != "pairs" else 1)
            learner.update(1.0, None)
        _ = learner.weights, learner.predict(2), learner.steps, learner.diverged
        if not isinstance(learner, to.forward.NStepReturn):  # it has no backward view
            _ = learner.trace

    return Saved(make, to.load, lambda it: frozen([type(it).__name__, it._settings(), it.__getstate__()]), use)


def _agent(kind: str, **more: Any) -> Saved:
    return _acting(lambda: getattr(to.control, kind)(FEATURES, ACTIONS, 0.05, 0.8, 0.9, **{"seed": 1, **more}))


def _network_agent(kind: str, *outputs: int, **more: Any) -> Saved:
    nets = [{"n_outputs": n, "hidden": (8,), "sparsity": 0.5, "seed": 1} for n in outputs]
    return _acting(
        lambda: getattr(to.deep, kind)(*(to.deep.MLP(FEATURES, **net) for net in nets), 0.9, 0.8, seed=1, **more)
    )


def _acting(made: Callable[[], Any]) -> Saved:
    def make(path: Path) -> None:
        act(agent := made(), np.random.default_rng(3))
        agent.save(path)

    def act(agent: Any, rng: np.random.Generator) -> None:
        rows = stream(rng, "indices")
        agent.start(rows[0])
        for row in rows[1:]:
            agent.step(float(rng.standard_normal()), row)
        _ = agent.weights, agent.trace, agent.values(2)

    def use(agent: Any, rng: np.random.Generator) -> None:
        if agent.action is not None:
            agent.step(1.0, 2)
            agent.end(1.0)
        act(agent, rng)

    return Saved(make, to.load, lambda it: frozen([type(it).__name__, it._settings(), it._dump()]), use)


def _make_horde(path: Path) -> None:
    discounts = (0.5, 0.9, "gamma")
    horde = Horde(FEATURES, [Question(f"{m}{d}", d, method=m) for m in ("true_online", "replace") for d in discounts])
    _use_horde(horde, np.random.default_rng(3), 30)
    horde.save(path)


def _use_horde(horde: Horde, rng: np.random.Generator, length: int = 600) -> None:
    n = len(horde.questions)
    moving = {name: rng.random(length) for name in {q.discount for q in horde.questions} if isinstance(name, str)}
    horde.run(stream(rng, "indices", length), rng.standard_normal((length, n)), moving)
    horde.update(np.zeros(n), [1, 2], dict.fromkeys(moving, 0.5))
    _ = [(horde.weights(question.name), horde.trace(question.name)) for question in horde.questions]


def _value(weights: np.ndarray, x: Any) -> tuple[float, np.ndarray]:
    if np.shape(x) != weights.shape:
        raise ValueError("x must be as long as the weights")
    return float(np.tanh(weights @ x)), (1.0 - np.tanh(weights @ x) ** 2) * x


def _make_forward(path: Path) -> None:
    learner = to.nonlinear.ForwardTD(_value, np.zeros(4), 0.1, 0.8, 0.9, horizon=6)
    _use_forward(learner, np.random.default_rng(3))
    learner.save(path)


def _use_forward(learner: Any, rng: np.random.Generator) -> None:
    learner.run(rng.random((31, 4)), rng.standard_normal(30))


# --- Checkpoints ----------------------------------------------------------------------------------

SETUP = Setup(["a", "velocity(b)"], ["a", "b"], [0.5, 0.9], tilings=4, bins=4, features=60, tiles="pairs")


def _predictor() -> tuple[Predictor, Cleaner]:
    predictor = Predictor(SETUP)
    return predictor, Cleaner(predictor.columns, max_gap=5.0)


def _use_predictor(both: tuple, rng: np.random.Generator) -> None:
    predictor, cleaner, *_ = both
    last = cleaner.state()["time"] or 0.0
    clean = cleaner(Block(last + np.arange(1.0, 301.0), rng.standard_normal((300, len(predictor.columns)))))
    predictor.learn(clean if len(clean) else Clean(np.array([last]), np.zeros((1, 2)), np.array([True])))
    _ = predictor.scores(), predictor.scores_so_far(), predictor.counters(), predictor.state(), predictor.experts(0)


def _make_checkpoint(path: Path) -> None:
    predictor, cleaner = _predictor()
    _use_predictor((predictor, cleaner, {}), np.random.default_rng(3))
    about = {
        "setup": SETUP.as_json(), "source": {"source": "log.csv"}, "position": {"offset": 3}, "cleaner": cleaner.state(),
        "rows": 7, "counted": {}, "written": 1e9, "ended": False, "earlier": {"samples": 0, "counters": {}}, "alerts": {},
        "not_published": 0,
    }  # fmt: skip
    files.write_learner(path, KIND, about, predictor.state())


def _read_checkpoint(path: Path) -> tuple[Predictor, Cleaner, Any]:
    checkpoint = Checkpoint.read(path)
    checkpoint.resumes(path, SETUP.as_json(), {"source": "log.csv"})
    predictor, cleaner = _predictor()
    predictor.restore(checkpoint.arrays)
    cleaner.restore(checkpoint.about["cleaner"])
    return predictor, cleaner, checkpoint.about


def _fleet() -> tuple[Fleet, FleetCleaner]:
    labels, setup = Labels("pump"), Setup(["a"], ["a"], [0.5], tilings=2, bins=3)
    cleaners = FleetCleaner(labels, lambda name: Cleaner(("a",), max_gap=5.0))
    return Fleet(setup, labels, cleaners), cleaners


def _use_fleet(both: tuple, rng: np.random.Generator) -> None:
    fleet, cleaners = both
    codes = [fleet.labels.code(name) for name in ("north", "süd", "east")]
    last = max((state["time"] or 0.0 for state in cleaners.state()["of"].values()), default=0.0)
    values = np.column_stack([rng.standard_normal(90), np.tile(codes, 30)])
    fleet.learn(cleaners(Block(last + np.repeat(np.arange(1.0, 31.0), 3), values)))
    _ = fleet.worst_first(), fleet.counters(), cleaners.counters(), {**fleet.state()}


def _make_fleet(path: Path) -> None:
    fleet, cleaners = _fleet()
    _use_fleet((fleet, cleaners), np.random.default_rng(3))
    files.write_learner(path, KIND, cleaners.state(), fleet.state())


def _read_fleet(path: Path) -> tuple[Fleet, FleetCleaner]:
    _, about, arrays = files.read_learner(path)
    fleet, cleaners = _fleet()
    cleaners.restore(about)
    fleet.restore(arrays)
    return fleet, cleaners


@cache
def _lake() -> Any:
    import gymnasium

    return gymnasium.make("FrozenLake-v1")


def _training() -> tuple[Any, dict[str, Any]]:
    features = to.features.from_space(_lake().observation_space)
    return to.control.TrueOnlineSarsa(16, 4, 0.5, 0.9, 0.99, seed=3), {"env": _lake(), "features": features}


def _train(agent: Any, options: dict[str, Any], path: Path | None, episodes: int) -> None:
    to.control.train(agent=agent, **options, episodes=episodes, seed=1, checkpoint=path)


def _read_training(path: Path) -> tuple[Any, Any, Any]:
    agent, options = _training()
    found = TrainingCheckpoint(path, agent, options["env"], options["features"], (1,)).read()
    if found is None:
        raise FileNotFoundError(path)
    history, restore = found
    restore(agent)
    return agent, history, path


def _use_training(found: tuple, rng: np.random.Generator) -> None:
    agent, options = _training()
    _train(agent, options, found[2], 25)


# --- Atari ----------------------------------------------------------------------------------------


@cache
def _atari(method: str) -> Any:
    from trueonline.control import atari

    settings = atari.AtariSettings(method=method, frames=200, seed=1)
    return atari.AtariRun(settings, np.zeros((210, 160), np.uint8))


def _play(run: Any, decisions: int) -> None:
    for _ in range(decisions):
        run._decide()


def _make_atari(method: str, path: Path) -> None:
    _play(run := _atari(method), 30)
    run.save(path)
    _atari.cache_clear()


def _read_atari(method: str, path: Path) -> Any:
    (run := _atari(method)).resume(path)
    return run


def _atari_content(run: Any) -> Any:
    now = [run.score, run.frames, run.played, run.action, run.diverged, run.episodes]
    return frozen([*run.player.dump(), run.emulator.dump(), now])


# --- Results of sweeps ----------------------------------------------------------------------------


@cache
def _task() -> Any:
    case = study.Case(to.problems.random_mrp(5, 2, 0.1), {"true_online": None}, (0.1, 0.3), (0.0, 0.9), runs=5, steps=20)
    return case.tasks()[0]


def _make_result(path: Path) -> None:
    Store(path.parent).write(_task(), _task().compute())
    Store(path.parent).path(_task()).rename(path)


def _read_result(path: Path) -> Any:
    store = Store(path.parent)
    path.rename(store.path(_task()))
    table = store.read(_task())
    store.path(_task()).rename(path)
    if table is None:
        raise ValueError("the result counts as missing")
    return table


# --- Sealed files ---------------------------------------------------------------------------------

MARK = {"bytes": 1234, "sha256": "0f" * 32, "whole": True}  # such as stands beside predictions


def _read_mark(path: Path) -> Any:
    value = files.read_json(path)
    if value is None:
        raise ValueError("the mark counts as missing")
    return value


FILES: dict[str, Saved] = {
    "true_online": _learner("TrueOnlineTD", "indices"),
    "true_online_dense": _learner("TrueOnlineTD", "dense", initial_weights=np.linspace(0, 1, FEATURES)),
    "adapted": _learner("TrueOnlineTD", "pairs", bound=0.9, meta_step_size=0.01),
    "replace": _learner("ReplaceTD", "indices"),
    "true_online_gtd": _learner("TrueOnlineGTD", "indices", second_step_size=0.01),
    "gtd_dense": _learner("GTD", "dense", second_step_size=0.01),
    "differential": _learner("TrueOnlineDifferentialTD", "indices", second_step_size=0.01),
    "emphatic": _learner("TrueOnlineEmphaticTD", "pairs"),
    "provisional_q": _learner("ProvisionalQ", "indices"),
    "provisional_adapted": _learner("ProvisionalTD", "dense", bound=1.0),
    "swift_td": _learner("SwiftTD", "indices"),
    "swift_dense": _learner("SwiftTD", "dense", bound=0.5, meta_step_size=0.01),
    "online_lambda_return": _learner("OnlineLambdaReturn", "indices"),
    "n_step": _learner("NStepReturn", "indices", n=3),
    "sarsa": _agent("TrueOnlineSarsa"),
    "differential_sarsa": _agent("TrueOnlineDifferentialSarsa", second_step_size=0.01),
    "twister": _agent("AccumulateSarsa", seed=np.random.Generator(np.random.MT19937(0))),
    "swift_sarsa": _agent("SwiftSarsa"),
    "gq": _agent("GQ"),
    "watkins_q": _agent("WatkinsQ", policy=to.control.Softmax(0.5), initial_weights=np.ones((FEATURES, ACTIONS))),
    "stream_q": _network_agent("StreamQ", ACTIONS, normalise=True, scale_rewards=True),
    "stream_ac": _network_agent("StreamAC", ACTIONS, 1),
    "head": _network_agent("TrueOnlineHeadQ", ACTIONS),
    "horde": Saved(_make_horde, Horde.load, lambda it: frozen([it.n_features, it.questions, it.state()]), _use_horde),
    "forward_td": Saved(
        _make_forward,
        lambda path: to.nonlinear.ForwardTD.load(path, _value),
        lambda it: frozen([getattr(it, name) for name in FORWARD] + [list(it._kept), it._older()]),
        _use_forward,
    ),
    "predictions": Saved(
        _make_checkpoint, _read_checkpoint, lambda it: frozen([it[0].state(), it[1].state(), it[2]]), _use_predictor
    ),
    "fleet": Saved(
        _make_fleet, _read_fleet, lambda it: frozen([{**it[0].state()}, it[1].state(), it[0].labels.names]), _use_fleet
    ),
    "training": Saved(
        lambda path: _train(*_training(), path, 20),
        _read_training,
        lambda it: frozen([it[0]._settings(), it[0]._dump(), it[1]]),
        _use_training,
    ),
    "mark": Saved(lambda path: files.write_json(path, MARK), _read_mark, frozen, lambda it, rng: None),
    "sweep_result": Saved(_make_result, _read_result, lambda it: it.to_pydict(), lambda it, rng: None),
}
if find_spec("ale_py"):
    FILES |= {
        f"atari_{method}": Saved(
            partial(_make_atari, method), partial(_read_atari, method), _atari_content, lambda it, rng: _play(it, 5)
        )
        for method in ("random", "true_online")
    }


def make_all(folder: Path) -> None:
    for name, saved in FILES.items():
        saved.make(folder / name)
