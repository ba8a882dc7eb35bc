"""What predictions do when something breaks: six streams with a daily pattern, in each of which something goes wrong.

python examples/robustness.py [picture.png]
"""

import argparse

import numpy as np

from trueonline.files import write_whole
from trueonline.look import figure, look
from trueonline.streams import Clean, Predictor, Setup

DAYS, A_DAY = 28, 288  # a sample every five minutes
HORIZON = 7200.0


def streams(seed=0):
    """Times and values of each stream, by what happens in it."""
    rng = np.random.default_rng(seed)
    T = DAYS * A_DAY
    middle, week = T // 2, 7 * A_DAY
    times = 300.0 * np.arange(T)
    usual = 20.0 + 5.0 * np.sin(2.0 * np.pi * times / 86400.0) + 0.5 * rng.standard_normal(T)
    after = np.arange(T) >= middle
    away = (np.arange(T) >= middle) & (np.arange(T) < middle + week)
    spikes = np.where(rng.random(T) < 0.1, rng.exponential(100.0, T), 0.0)
    return {
        "the level steps up by 30": (times, usual + 30.0 * after),
        "a week is missing": (times[~away], usual[~away]),
        "the unit becomes a million times smaller": (times, usual * np.where(after, 1e6, 1.0)),
        "the unit becomes a million times larger": (times, usual * np.where(after, 1e-6, 1.0)),
        "the sensor is stuck for a week": (times, np.where(away, usual[middle], usual)),
        "a tenth of all samples are spikes": (times, usual + spikes),
    }


def predict(times, values):
    """The predictions, and what came true."""
    predictor = Predictor(Setup(signals=["x"], targets=["x"], horizons=[HORIZON]))
    answers = predictor.learn(Clean(times, values[:, None].copy(), np.arange(len(times)) == 0))
    gammas = np.exp(-np.diff(times, prepend=times[0] - 300.0) / HORIZON)
    came_true = np.full(len(values), values[-1])
    for t in range(len(values) - 2, -1, -1):
        came_true[t] = (1.0 - gammas[t + 1]) * values[t + 1] + gammas[t + 1] * came_true[t + 1]
    return answers.predictions[:, 0], came_true


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", nargs="?", default="robustness.png", help="the picture; by default robustness.png")
    path = parser.parse_args().picture
    with look():
        picture, axes = figure(3, 2, width=10.0, height=6.6)
        for axis, (name, (times, values)) in zip(axes.flat, streams().items(), strict=True):
            predictions, came_true = predict(times, values)
            first = (DAYS // 2 - 2) * 86400.0
            shown = (times >= first) & (times < first + 13 * 86400.0)
            days = times[shown] / 86400.0
            axis.plot(days, came_true[shown], "k", linewidth=0.8, label="what came true")
            axis.plot(
                days, predictions[shown], linewidth=1.0, alpha=0.85, label="prediction: mean over the coming two hours"
            )
            if "unit" in name:
                axis.set_yscale("symlog", linthresh=1e-5)
            axis.set_title(name, loc="left")
            error, hold = np.abs(predictions - came_true), np.abs(values - came_true)
            late = times > times[-1] - 3 * 86400.0
            share = error[late].mean() / hold[late].mean()
            print(f"{name:42} error in the last three days, over that of the newest value: {share:.3g}")
        for axis in axes[-1]:
            axis.set_xlabel("day")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        picture.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
        write_whole(path, lambda file: picture.savefig(file, format="png", dpi=110))
    print(f"The picture is in {path}.")


if __name__ == "__main__":
    main()
