"""Problems of every form that sweeps have kernels for. Few dense features are always four, so that they share kernels."""

import numpy as np

import trueonline as to
from trueonline import study
from trueonline.problems import AverageReward, random_mdp, random_mrp

MRP, MDP = random_mrp(10, 3, 0.1, seed=1), random_mdp(10, 3, 2, 0.1, distance=0.7, seed=1)
NUMBERS = np.random.default_rng(5).normal(size=(10, 9))

FORMS = {
    "tabular": MRP,
    "few, binary": MRP.with_features(to.features.binary_code(10)),
    "few": MRP.with_features(NUMBERS[:, :4]),
    "many": MRP.with_features(NUMBERS),
    "average reward": AverageReward(MRP),
    "average reward, few": AverageReward(MRP.with_features(NUMBERS[:, :4])),
    "off-policy": MDP,
    "off-policy, begun elsewhere": MDP.with_features(np.eye(10), np.arange(10.0)),
    "off-policy, few": MDP.with_features(NUMBERS[:, :4], NUMBERS[0, :4]),
    "off-policy, many": MDP.with_features(NUMBERS),
}
SETTINGS = {"step_sizes": (0.01, 0.2, 60.0), "trace_decays": (0.0, 0.7, 1.0), "runs": 3, "steps": 30, "seed": 3}


def case(problem, methods, **changes):
    """A case of a few milliseconds."""
    return study.Case(problem, methods, **{**SETTINGS, **changes})
