"""What step-size adaptation is worth: the error of true online TD(λ) against the given step-size.

    python examples/step_size_adaptation.py [picture.png]

Ten signals fade, each at its own pace, while noise drives them. The reward is a mixture of all ten, so the value to predict is a
mixture of them too. In the first stream the sensors have different units: each signal is multiplied by a number between 1/30
and 30. In the second stream the units are the same, but forty more sensors show only noise, and half-way the mixture changes its
sign.
"""

import argparse

import numpy as np

import trueonline as to
from trueonline.files import write_whole
from trueonline.look import figure, look

RUNS, STEPS, PIECE, SIGNALS, NOISE, DISCOUNT = 20, 20_000, 500, 10, 40, 0.9
STEP_SIZES = 10.0 ** np.arange(-5.0, 1.1, 0.5)
ADAPTATIONS = {
    "no adaptation": {},
    "bound=1": {"bound": 1.0},
    "bound=1, meta_step_size=0.1": {"bound": 1.0, "meta_step_size": 0.1},
    "meta_step_size=0.1": {"meta_step_size": 0.1},
}


def signals(rng):
    """Ten signals of variance 1, the rewards, and the weights of the signals in the value."""
    fade, mixture = rng.uniform(0.5, 0.95, size=SIGNALS), rng.normal(size=SIGNALS)
    z = np.empty((STEPS + 1, SIGNALS))
    z[0] = rng.normal(size=SIGNALS)
    for t in range(STEPS):
        z[t + 1] = fade * z[t] + np.sqrt(1 - fade**2) * rng.normal(size=SIGNALS)
    rewards = z[1:] @ mixture + rng.normal(size=STEPS)
    return z, rewards, mixture * fade / (1 - DISCOUNT * fade)  # Σ_k γ^{k−1} E[c z_k]


def different_units(seed):
    """The stream, the size of each sensor's signal, and the weights of the signals in the value at every time."""
    rng = np.random.default_rng(seed)
    z, rewards, value = signals(rng)
    sizes = 30.0 ** rng.uniform(-1, 1, size=SIGNALS)
    return z * sizes, rewards, sizes, np.tile(value, (STEPS, 1))


def noise_and_a_change(seed):
    rng = np.random.default_rng(seed)
    z, rewards, value = signals(rng)
    sign = np.where(np.arange(STEPS) < STEPS // 2, 1.0, -1.0)
    X = np.hstack((z, rng.normal(size=(STEPS + 1, NOISE))))
    return X, sign * rewards, np.ones(SIGNALS + NOISE), sign[:, None] * np.append(value, np.zeros(NOISE))


def error(stream, alpha, settings):
    """The squared error of the value, averaged over time and divided by the error of predicting 0."""
    X, rewards, sizes, values = stream
    learner = to.TrueOnlineTD(X.shape[1], alpha, trace_decay=0.9, discount=DISCOUNT, **settings)
    errors = []
    for t in range(0, STEPS, PIECE):
        learner.run(X[t : t + PIECE + 1], rewards[t : t + PIECE], resume=True)
        if np.abs(learner.weights).max() < 1e6:  # all signals have variance 1, and are independent
            errors.append(((sizes * learner.weights - values[t]) ** 2).sum() / (values[t] ** 2).sum())
        else:
            return np.inf
    return np.mean(errors)


def main(picture=None):
    with look():
        fig, axes = figure(1, 2, width=8.5, height=3.3, sharey=True)
        for ax, make, title in zip(
            axes[0],
            (different_units, noise_and_a_change),
            ("Sensors in different units", "Forty sensors of noise, and a change"),
            strict=True,
        ):
            streams = [make(seed) for seed in range(RUNS)]
            print(f"\n{title}: error with α =\n{'':30}" + "".join(f"{alpha:8.2g}" for alpha in STEP_SIZES))
            for name, settings in ADAPTATIONS.items():
                runs = np.array([[error(stream, alpha, settings) for alpha in STEP_SIZES] for stream in streams])
                mean = runs.mean(axis=0)
                noise = 1.96 * np.where(np.isfinite(mean), runs, 0.0).std(axis=0, ddof=1) / np.sqrt(RUNS)
                print(f"{name:30}" + "".join(f"{value:8.3f}" for value in mean))
                wide = {"lw": 5, "alpha": 0.4} if not settings else {}  # visible under another line
                (line,) = ax.plot(STEP_SIZES, mean, "o-", ms=3, label=name, **wide)
                seen = mean < 2
                ax.fill_between(STEP_SIZES, mean - noise, mean + noise, seen, alpha=0.2, lw=0, color=line.get_color())
            ax.set(title=title, xlabel="given step-size α", xscale="log", ylim=(0, 1.5))
        axes[0, 0].set_ylabel("error (1: predicting 0)")
        fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
        if picture:
            write_whole(picture, lambda file: fig.savefig(file, format="png"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", nargs="?", help="file for the picture, as PNG")
    main(parser.parse_args().picture)
