"""Derived methods beside the ones that were written by hand."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import streams
from benchmarks.report import Section, Settings, Table, Target
from benchmarks.timing import race
from trueonline import TrueOnlineTD, problems
from trueonline.control import TrueOnlineWatkinsQ
from trueonline.study.cases import Case

LIMIT = 1.2
PARAMETERS = {"step_size": 0.01, "trace_decay": 0.9, "discount": 0.99}


def measure(settings: Settings) -> Section:
    section = Section(
        "Derived methods",
        "`derive` from the interim λ-return beside `TrueOnlineTD`, and from the target of section 6.2 beside "
        "`TrueOnlineWatkinsQ`: the same streams, the same entry points, other kernels. Where α is constant, the one written "
        "by hand has Algorithm 2 (e/α); derived ones are in the form of Algorithm 4. Times are per step.",
    )
    if find_spec("sympy") is None:
        section.notes.append("SymPy is not installed: nothing was measured.")
        return section
    from trueonline.derivation import derive, views

    begin = perf_counter()
    td = derive(views.lambda_return)
    took = perf_counter() - begin
    watkins = derive(views.watkins)
    rows, ratios = [], []
    for what, steps, competitors in [*_runs(settings, td), _updates(td), _sweeps(settings, td), _acting(watkins)]:
        times = race(competitors, rounds=settings.rounds)
        ratio = times.ratio("derived", "by hand")
        rows.append([what, *(times.per_step(name, steps) for name in competitors), ratio])
        ratios.append((ratio, what))
    section.tables.append(Table(("what", "derived", "by hand", "derived against by hand"), rows))
    worst, where = max(ratios, key=lambda pair: pair[0].median)
    over = sum(ratio.median > LIMIT for ratio, _ in ratios)
    measured = f"{worst}, {where}; {over} of {len(ratios)} over"
    section.targets.append(Target("derived against by hand, worst of all", f"≤ {LIMIT:g}×", measured, over == 0))
    section.notes.append(f"Deriving from the interim λ-return took {took:.1f} s, with its checks.")
    return section


def _pair(derived: Any, by_hand: Any, call: Any) -> dict[str, Any]:
    return {"derived": partial(call, derived), "by hand": partial(call, by_hand)}


def _runs(settings: Settings, td: Any) -> list[tuple[str, int, dict[str, Any]]]:
    steps = 20_000 if settings.quick else 200_000
    given = {
        "`run`, 9 of 200,000 active": (200_000, *streams.tile_coded(200_000, steps)),
        "`run`, dense, n = 100": (100, *streams.dense(100, steps // 10, binary=False)),
        "`run`, dense, n = 1,000": (1_000, *streams.dense(1_000, steps // 40, binary=False)),
    }
    found = []
    for what, (n, X, rewards) in given.items():
        learners = [kind(n, **PARAMETERS) for kind in (td.learner, TrueOnlineTD)]
        np.testing.assert_allclose(learners[0].run(X, rewards), learners[1].run(X, rewards), rtol=0.0, atol=1e-9)
        found.append((what, len(rewards), _pair(*learners, lambda learner, X=X, R=rewards: learner.run(X, R))))
    return found


def _stepping(n: int, steps: int, learn: str) -> Any:
    """Take a learner or an agent through a stream, a transition at a time, by its method of this name."""
    X, rewards = streams.tile_coded(n, steps)
    rows, R = list(X), rewards.tolist()

    def go(learner: Any) -> None:
        learner.start(rows[0])
        step = getattr(learner, learn)
        for reward, x in zip(R, rows[1:], strict=True):
            step(reward, x)

    return go


def _updates(td: Any) -> tuple[str, int, dict[str, Any]]:
    n, steps = 200_000, 2_000
    learners = [kind(n, **PARAMETERS) for kind in (td.learner, TrueOnlineTD)]
    return "`update`, 9 of 200,000 active", steps, _pair(*learners, _stepping(n, steps, "update"))


def _sweeps(settings: Settings, td: Any) -> tuple[str, int, dict[str, Any]]:
    problem = problems.random_mrp(100, 10, 0.1, seed=0)
    methods = {"derived": td.learner, "true_online": None}
    lams = tuple(np.arange(10) / 10.0)
    case = Case(
        problem, methods, step_sizes=(0.01, 0.1), trace_decays=lams, runs=2, steps=500 if settings.quick else 2_000
    )
    tasks = {task.method: task for task in case.tasks()}
    competitors = {"derived": tasks["derived"].compute, "by hand": tasks["true_online"].compute}
    return "a sweep, MRP of 100 states", tasks["derived"].steps, competitors


def _acting(watkins: Any) -> tuple[str, int, dict[str, Any]]:
    n, actions, steps = 50_000, 3, 2_000
    agents = [kind(n, actions, **PARAMETERS, seed=0) for kind in (watkins.agent, TrueOnlineWatkinsQ)]
    return "an agent's `step`, 9 of 50,000 active", steps, _pair(*agents, _stepping(n, steps, "step"))
