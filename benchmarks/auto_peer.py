"""Forecast streams by other packages; started by `auto.py` as a script, in an environment that may be another.

    python auto_peer.py PEER CASES.npz FORECASTS.npz

A forecast at sample t is made from samples up to t, about M_t, the discounted mean of what comes. Learners get the features below,
and learn from a mean when all but 1 % of it is known. Parameters have their defaults. The file of results has a forecast for each
sample of each case, the seconds that all took, and the version of the package.

It imports NumPy and the peer, and nothing of this repository.
"""

import math
import sys
from importlib.metadata import version
from itertools import pairwise
from time import perf_counter

import numpy as np

LAGS = (0, 1, 2, 4, 8)
RATES = (0.1, 0.02)
DAY = 86400.0
REFITS = 10  # of LightGBM, in each stream
PAST = 400  # samples that AutoETS sees
REFIT = 100  # samples after which AutoETS finds its parameters again


def features(x, seconds):
    """The value and lags of it, slow means, and the calendar."""
    columns = [np.ones(len(x)), *(np.r_[np.full(lag, x[0]), x[: len(x) - lag]] for lag in LAGS)]
    for rate in RATES:
        slow = np.empty(len(x))
        mean = x[0]
        for t, value in enumerate(x.tolist()):
            mean += rate * (value - mean)
            slow[t] = mean
        columns.append(slow)
    for period, waves in ((DAY, 3), (7 * DAY, 1)):
        for k in range(1, waves + 1):
            columns += [np.sin(2 * np.pi * k * seconds / period), np.cos(2 * np.pi * k * seconds / period)]
    return np.column_stack(columns)


def delay(gamma):
    """The samples after which all but 1 % of a mean is known."""
    return math.ceil(math.log(0.01) / math.log(gamma))


def came_true(x, gamma, window):
    """The mean over the coming window, for each sample that has one."""
    weights = gamma ** np.arange(window)
    return np.convolve(x[1:], weights[::-1], "valid") / weights.sum()


def rls(x, seconds, gamma):
    """Recursive least squares with weights 1/|error|, so that absolute errors count (iteratively reweighted)."""
    X = features(x, seconds)
    window = delay(gamma)
    M = came_true(x, gamma, window)
    P, w, size, out = 100.0 * np.eye(X.shape[1]), np.zeros(X.shape[1]), 0.0, np.empty(len(x))
    w[1] = 1.0  # the newest value stays
    for t in range(len(x)):
        if t >= window:
            row = X[t - window]
            error = M[t - window] - row @ w
            size += max(0.01, 1.0 / (t - window + 1)) * (abs(error) - size)
            weight = size / max(abs(error), 0.1 * size, 1e-12)
            gain = P @ row / (1.0 / weight + row @ P @ row)
            P -= np.outer(gain, row @ P)
            w += gain * error
        out[t] = X[t] @ w
    return out


def river(x, seconds, gamma):
    """An adaptive random forest of three trees, which is better on such streams than one tree or a linear model."""
    from river import forest

    X = features(x, seconds)
    window = delay(gamma)
    M, rows = came_true(x, gamma, window), [dict(enumerate(row)) for row in X.tolist()]
    model = forest.ARFRegressor(n_models=3, seed=0)
    out = np.empty(len(x))
    for t in range(len(x)):
        if t >= window:
            model.learn_one(rows[t - window], M[t - window] - x[t - window])
        out[t] = x[t] + model.predict_one(rows[t])
    return out


def lightgbm(x, seconds, gamma):
    """Gradient boosting with absolute loss, trained on all of the past, ten times in a stream."""
    from lightgbm import Dataset, train

    X = features(x, seconds)
    window = delay(gamma)
    M, out = came_true(x, gamma, window), np.empty(len(x))
    edges = np.linspace(0, len(x), REFITS + 1).astype(int)
    for begin, end in pairwise(edges.tolist()):
        known = begin - window
        out[begin:end] = x[begin:end]
        if known > 20:
            data = Dataset(X[:known], M[:known] - x[:known])
            model = train({"objective": "l1", "num_threads": 1, "verbosity": -1}, data)
            out[begin:end] += model.predict(X[begin:end])
    return out


def statsforecast(x, seconds, gamma):
    """AutoETS, whose forecasts of the coming samples are averaged with the weights of the mean."""
    from statsforecast.models import AutoETS

    window = delay(gamma)
    weights = gamma ** np.arange(window)
    weights /= weights.sum()
    out, model = x.copy(), None
    for t in range(20, len(x)):
        past = x[max(0, t + 1 - PAST) : t + 1]
        if np.ptp(past) == 0.0:
            continue
        if model is None or t % REFIT == 0:
            model = AutoETS(season_length=1).fit(past)
        out[t] = model.forward(past, h=window)["mean"] @ weights
    return out


PEERS = {"rls": rls, "river": river, "lightgbm": lightgbm, "statsforecast": statsforecast}


def main(name, cases, to):
    here = "NumPy" if name == "rls" else version(name)
    with np.load(cases) as file:
        streams = {key: file[key] for key in file.files}
    peer = PEERS[name]
    peer(np.sin(np.arange(200.0)), np.arange(200.0), 0.9)  # imports and compiles
    began = perf_counter()
    found = {key: peer(*stream, float(key.split()[0])) for key, stream in streams.items()}
    np.savez(to, **found, seconds=perf_counter() - began, version=here)


if __name__ == "__main__":
    main(*sys.argv[1:])
