"""An update rule of your own as a full method: learner, agent, verify, sweep.

    python examples/own_method.py

True online TD(λ) differs from accumulate TD(λ) in two places: the trace is a dutch trace, and the weights are corrected by
V − V_old. Is the dutch trace alone enough? The rule below has only that. (The answer is no: it takes both.)
"""

import tempfile

import numpy as np
from own_problem import House

import trueonline as to
from trueonline.core.memory import decay, imprint, learn, recall


@to.kernel
def dutch_td(memory, x, reward, x_next, alpha, gamma, lam, gamma_next):  # it names what it needs
    v, trace_x, v_next = recall(memory, x, x_next)  # wᵀφ, eᵀφ, wᵀφ'
    delta = reward + gamma_next * v_next - v  # δ ← R + γ wᵀφ' − wᵀφ
    decay(memory, gamma * lam)  # e ← γλe …
    imprint(memory, x, 1.0 - alpha * gamma * lam * trace_x, 0.0)  # … + φ − αγλ(eᵀφ)φ
    learn(memory, alpha * delta)  # w ← w + αδe
    return v, delta, v_next


dutch = to.method(dutch_td, definition=to.OnlineLambdaReturn, trace="dutch")


def main():
    learner = dutch.learner(n_features=1_000_000, step_size=0.1, trace_decay=0.9, discount=0.99)  # sparse or dense
    learner.run(np.random.default_rng(0).integers(1_000_000, size=(1001, 10)), np.ones(1000))
    with tempfile.TemporaryDirectory() as folder:
        learner.save(f"{folder}/learner.npz")
        print("loaded:", to.load(f"{folder}/learner.npz").steps, "steps")
    agent = dutch.agent(n_features=3, n_actions=2, step_size=0.1, trace_decay=0.9, discount=0.99)  # dutch Sarsa(λ)
    print("action:", agent.start(0))
    report = dutch.verify()
    print(f"verify: {'exact' if report.exact else 'not exact'}, largest difference {report.max_error:.1e}")
    methods = {"accumulate": None, "true_online": None, "dutch": dutch}  # None: the package's own
    step_sizes, trace_decays = np.geomspace(0.01, 1.0, 13), [0.0, 0.5, 0.8, 0.9, 0.95, 1.0]
    table = to.sweep(House(), methods, step_sizes, trace_decays, runs=20, steps=7 * 24)
    means = table.group_by(["method", "step_size", "trace_decay"]).aggregate([("error", "mean")]).to_pylist()
    for method in methods:
        best = min((row for row in means if row["method"] == method), key=lambda row: row["error_mean"])
        print(f"sweep: {method:12} {best['error_mean']:.4f} at α = {best['step_size']:g}, λ = {best['trace_decay']:g}")


if __name__ == "__main__":  # so that engine="dask" may start workers, which read this file again
    main()
