"""Small studies, and what users bring to them: methods, kernels and a problem of their own."""

import numba
import numpy as np

import trueonline as to
from tests.study.own_rules import plain_weights
from trueonline import study
from trueonline.core.memory import decay, imprint, learn, recall

MRP = to.problems.random_mrp(10, 3, 0.1, seed=1)
SEEN = {
    "tabular": MRP,
    "binary": MRP.with_features(to.features.binary_code(10)),
    "binary of unit length": MRP.with_features(to.features.binary_code(10, unit_length=True)),
    "non-binary": MRP.with_features(to.features.random_unit(10, seed=2)),
    "episodic": to.problems.random_walk(),
    "episodic with one feature": to.problems.two_state(),
}


def small(problem=MRP, methods=None, labels=None, **changes):
    """A case of a few milliseconds."""
    settings = {"step_sizes": (0.1, 0.3), "trace_decays": (0.5, 0.9), "runs": 2, "steps": 20, "seed": 3, **changes}
    return study.Case(problem, methods or dict.fromkeys(study.applicable(problem)), labels=labels or {}, **settings)


def names(case):
    return [task.name for task in case.tasks()]


def errors(table):
    """(method, α, λ, run) → error."""
    return {tuple(row.values())[:4]: row["error"] for row in table.to_pylist()}


def mean_error(problem, method, alpha, lam, run, *, steps, seed, eta=None, after=0):
    """The mean over the steps of (w − w*)ᵀB(w − w*), over its value at the first weights, from the equations."""
    states, rewards, discounts, *ratios = given = problem.trajectory(steps, study.run_seed(seed, run))
    first = np.asarray(getattr(problem, "initial_weights", np.zeros(problem.features.shape[1])))
    chances = {"ratios": ratios[0], "probabilities": given.probabilities} if ratios else {}
    eta = study.SweptMethod(method).second if eta is None else eta
    weights = plain_weights(method, problem.features[states], rewards, discounts, first, alpha, lam, eta=eta, **chances)
    with np.errstate(over="ignore", invalid="ignore"):
        off = np.array([first, *weights]) - problem.lms_weights
        errors = np.einsum("ti,ij,tj->t", off, problem.metric, off)
    mean = errors[1 + after :].mean() / errors[0]
    return mean if np.isfinite(mean) else np.inf


class Eager:
    """True online TD(λ) as printed, touching every entry at every step: a learner class as users have them."""

    def __init__(self, n_features, step_size, trace_decay, discount):
        self.alpha, self.lam, self.gamma_own = step_size, trace_decay, discount
        self.weights = np.zeros(n_features)

    def start(self, x):
        self.x, self.e, self.gamma, self.v_old = x, np.zeros(x.size), 0.0, 0.0

    def update(self, reward, x_next, discount):
        alpha, x, w, e = self.alpha, self.x, self.weights, self.gamma * self.lam * self.e
        v, v_next = w @ x, w @ x_next
        self.e = e + x - alpha * (e @ x) * x
        self.weights = w + alpha * (reward + discount * v_next - self.v_old) * self.e - alpha * (v - self.v_old) * x
        self.x, self.gamma, self.v_old = x_next, discount, v_next


# A rule of a user. It has the name and the text of a rule of the package, so that its kernels are found on disk.


@numba.njit
def accumulate_td(memory, x, reward, x_next, alpha, gamma, lam, gamma_next):
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    decay(memory, gamma * lam)
    imprint(memory, x, 1.0, 0.0)
    learn(memory, alpha * delta)
    return v, delta, v_next


own_accumulate = accumulate_td


class Ring:
    """A problem of a user's own: nothing but what a study asks for. Twelve places; from each one place on or two."""

    discount = 0.8

    def __init__(self):
        angles = 2.0 * np.pi * np.arange(12)[:, None] / 12
        self.features = np.hstack([np.ones((12, 1)), np.cos(angles), np.sin(angles)])
        self.metric = self.features.T @ self.features / 12
        self.lms_weights = np.array([1.0, -0.5, 2.0])

    def trajectory(self, steps, seed):
        rng = np.random.default_rng(seed)
        states = np.append(0, np.cumsum(rng.integers(1, 3, size=steps))) % 12
        return states, self.features[states[:-1], 1] + rng.normal(size=steps), np.full(steps, self.discount)
