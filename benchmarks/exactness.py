"""How far the owed arithmetic of the memory strays from eager arithmetic over a long run."""

from __future__ import annotations

import numpy as np

from benchmarks import streams
from benchmarks.eager import EagerSparse, follow
from benchmarks.report import Section, Settings, Table, Target
from trueonline import TrueOnlineTD

N = 200_000
DISTINCT = 2_000
# λ, γ and α. With λγ = 1 nothing is ever forgotten, so α is small.
CASES = ((0.0, 0.99, 0.01), (0.5, 1.0, 0.01), (0.9, 0.99, 0.01), (1.0, 0.99, 0.01), (1.0, 1.0, 0.001))
LIMIT = 1e-9


def measure(settings: Settings) -> Section:
    steps = 5_000 if settings.quick else 100_000
    # Features that are never active have no weight and no trace, so the eager vectors need the visited ones only.
    X, rewards = streams.few(N, steps, DISTINCT)
    visited, inverse = np.unique(X, return_inverse=True)
    compact, numbers = list(inverse.reshape(X.shape)), rewards.tolist()
    rows, worst = [], 0.0
    for lam, gamma, alpha in CASES:
        parameters = {"step_size": alpha, "trace_decay": lam, "discount": gamma}
        learner = TrueOnlineTD(N, **parameters)
        learner.run(X, rewards)
        w = learner.weights[visited]
        double = _eager(len(visited), parameters, np.float64, compact, numbers)
        wide = _eager(len(visited), parameters, np.longdouble, compact, numbers)
        error = _difference(w, double)
        worst = max(worst, error)
        exact = f"{_difference(w, wide):.1e}", f"{_difference(double, wide):.1e}"
        rows.append((f"{lam * gamma:g}", f"{alpha:g}", f"{float(np.abs(double).max()):.3g}", f"{error:.1e}", *exact))
    columns = ("λγ", "α", "largest weight", "`run` − eager", "`run` − extended", "eager − extended")
    return Section(
        "Exactness",
        f"True online TD(λ), {streams.ACTIVE} active of {N:,} features, {len(visited):,} of them visited, {steps:,} "
        "steps: the largest difference of any weight, relative to the largest weight, between `run`, eager double "
        "arithmetic, and eager arithmetic in extended precision (`np.longdouble`), which shows whose rounding it is.",
        [Table(columns, rows)],
        [Target(f"`run` against eager, worst λγ, {steps:,} steps", f"≤ {LIMIT:.0e}", f"{worst:.1e}", worst <= LIMIT)],
    )


def _eager(n: int, parameters: dict[str, float], kind: type, X: list[np.ndarray], rewards: list[float]) -> np.ndarray:
    learner = EagerSparse(n, **parameters, kind=kind)
    follow(learner, X, rewards)
    return learner.w


def _difference(w: np.ndarray, reference: np.ndarray) -> float:
    return float(np.abs(w - reference).max() / np.abs(reference).max())
