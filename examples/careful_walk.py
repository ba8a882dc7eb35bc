"""Does the method that is derived from `careful_return` learn, and is it better?

    python examples/careful_walk.py [picture.png]

A walk over nineteen states starts in the middle and ends at either side. The reward is −1 at the left end and 1 at the right end.
The walk goes left and right equally often. The question is what would happen if it went right more often. Both methods learn with
importance ratios, and both are true online. One is derived from the λ-return of van Hasselt, Mahmood and Sutton (2014), the other
from `careful_return`.
"""

import argparse

import numpy as np
from careful_return import careful_return, step

import trueonline as to
from trueonline.derivation import derive, views
from trueonline.files import write_whole
from trueonline.look import figure, look

STATES, MIDDLE = 19, 9
STEP_SIZES = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8]
TRACE_DECAYS = [0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 1.0]
TARGETS = [0.6, 0.7, 0.8, 0.9]  # how often the target policy goes right
RUNS, STEPS = 50, 2_000


class Walk:
    """A problem for a study, with importance ratios."""

    features, discount = np.eye(STATES), 1.0

    def __init__(self, right):
        self.right = right
        self.lms_weights = self.chain(right).values
        self.metric = np.diag(self.chain(0.5).stationary)  # states count by how often the walk visits them

    @staticmethod
    def chain(right):
        moves = np.diag([1 - right] * STATES, -1)[:-1, :-1] + np.diag([right] * (STATES - 1), 1)
        ends = 1 - moves.sum(axis=1, keepdims=True)
        rewards = np.zeros((STATES, STATES + 1))
        rewards[0, -1], rewards[-1, -1] = -1, 1
        return to.problems.FiniteMRP(np.hstack((moves, ends)), rewards, discount=1.0, start=MIDDLE)

    def trajectory(self, steps, seed):
        right = np.random.default_rng(seed).random(steps) < 0.5
        states, rewards, discounts = np.full(steps + 1, MIDDLE), np.zeros(steps), np.ones(steps)
        for t in range(steps):
            state = states[t] + (1 if right[t] else -1)
            if 0 <= state < STATES:
                states[t + 1] = state
            else:  # an end: the next walk starts in the middle
                rewards[t], discounts[t] = np.sign(state), 0.0
        return states, rewards, discounts, np.where(right, self.right / 0.5, (1 - self.right) / 0.5)


def best(columns, method):
    """For each λ the mean error over the runs with the best α, and half the width of its 95 % interval."""
    found = []
    for lam in TRACE_DECAYS:
        runs = [
            columns["error"][
                (columns["method"] == method) & (columns["trace_decay"] == lam) & (columns["step_size"] == alpha)
            ]
            for alpha in STEP_SIZES
        ]
        least = min(runs, key=np.mean)
        found.append((least.mean(), 1.96 * least.std(ddof=1) / np.sqrt(len(least))))
    return np.array(found).T


def main(picture=None):
    methods = {
        "λ-return of van Hasselt et al.": derive(views.off_policy_lambda_return, views.ratio_step).learner,
        "careful λ-return": derive(careful_return, step).learner,
    }
    grid = {"step_sizes": STEP_SIZES, "trace_decays": TRACE_DECAYS, "runs": RUNS, "steps": STEPS}
    with look():
        fig, axes = figure(1, len(TARGETS), width=9.0, height=2.9, sharey=True)
        for ax, right in zip(axes[0], TARGETS, strict=True):
            table = to.sweep(Walk(right), methods=methods, **grid).to_pydict()
            columns = {name: np.array(values) for name, values in table.items()}
            print(f"\nto the right in {right:.0%} of the steps: error with the best step-size, for λ =")
            print(" " * 32 + "".join(f"{lam:9g}" for lam in TRACE_DECAYS))
            for name in methods:
                error, noise = best(columns, name)
                print(f"{name:32}" + "".join(f"{value:9.3f}" for value in error))
                ax.plot(TRACE_DECAYS, error, "o-", ms=3, label=name)
                ax.fill_between(TRACE_DECAYS, error - noise, error + noise, alpha=0.2, lw=0)
            ax.set(title=f"target: {right:.0%} to the right", xlabel="λ", ylim=(0, 1.05), xticks=[0, 0.5, 1])
        axes[0, 0].set_ylabel("error, at the best α")
        fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
        if picture:
            write_whole(picture, lambda file: fig.savefig(file, format="png"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", nargs="?", help="file for the picture, as PNG")
    main(parser.parse_args().picture)
