"""A predictor that is surprised by definition: by |x| / 10 of its first signal.

It expects 0, its error is x, and 1.5 is its usual error.

As a program it is `trueonline` with this predictor.
"""

import dataclasses
import sys

import numpy as np

from trueonline.streams.predictor import Predictor

learn = Predictor.learn


def surprised(predictor, clean):
    answers = learn(predictor, clean)
    size = len(answers.times)
    x = answers.signals[:, 0]
    return dataclasses.replace(
        answers,
        low=answers.predictions - 1.0,
        high=np.where(answers.predictions > 1e9, 0.0, np.nan),
        surprise=np.minimum(np.abs(x) / 10.0, 1.0),
        suspect=(np.arange(size) * 0 + len(predictor.names) - 1).astype(np.int64),
        expected=np.zeros(size),
        usual=np.full(size, 1.5),
        error=x,
    )


if __name__ == "__main__":
    Predictor.learn = surprised
    from trueonline.cli import main

    main(sys.argv[1:])
