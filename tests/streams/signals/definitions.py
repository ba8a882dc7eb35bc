"""What derived signals and their bounds should be, in plain Python."""

import io
from itertools import pairwise

import numpy as np

BIG = 1e100

RATE = 40.0


def pieces(length, cuts):
    """Slices that cover a length."""
    edges = [0, *sorted(cut % (length + 1) for cut in cuts), length]
    return [slice(a, b) for a, b in pairwise(edges)]


def stream(seed, length, columns=2):
    """Times with jitter, silences and regular stretches, and starts at some of the silences."""
    rng = np.random.default_rng(seed)
    gaps = rng.choice([1 / RATE, 1 / RATE, rng.random() * 0.1 + 1e-3, 3.0], size=length, p=[0.4, 0.3, 0.25, 0.05])
    times = rng.choice([-1.0, 0.0, 1.7e9]) + np.cumsum(gaps)
    starts = rng.random(length) < 0.05
    return times, rng.standard_normal((length, columns)), starts


def through_a_file(state):
    file = io.BytesIO()
    np.savez(file, **state)
    with np.load(io.BytesIO(file.getvalue()), allow_pickle=False) as read:
        return {name: read[name] for name in read.files}
