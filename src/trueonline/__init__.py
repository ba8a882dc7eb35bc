"""True online temporal-difference learning: exact, fast, and checked against its definition.

The methods of van Seijen, Mahmood, Pilarski, Machado and Sutton, *True Online Temporal-Difference Learning*,
JMLR 17(145), 2016.

>>> import trueonline as to
>>> learner = to.TrueOnlineTD(n_features=3, step_size=0.5, trace_decay=0.9, discount=1.0)
>>> learner.start([1.0, 0.0, 0.0])
>>> learner.update(0.0, [0.0, 1.0, 0.0])
0.0
>>> learner.update(1.0, None)
1.0
>>> learner.weights
array([0.45, 0.5 , 0.  ])
"""

from trueonline import catalog
from trueonline.optional import late_names

__version__ = "0.2.0"

# The public names, and the modules that define them. Nothing is imported before it is asked for: `import trueonline` stays instant.
# The catalogue names the learners. Type checkers read `__init__.pyi`, which `python -m tools.generated` writes.
_HOME = {
    **catalog.homes("learners"),
    "OnlineLambdaReturn": "forward",
    "OfflineLambdaReturn": "forward",
    "Learner": "learners.interface",
    "load": "learners.loading",
    "verify": "checks.verification",
    "check_learner": "checks.contract",
    "kernel": "core.compiling.kernels",
    "method": "learners.own",
    "Parameter": "catalog",
    "derive": "derivation",
    "sweep": "study",
}
_MODULES = ("control", "deep", "features", "forward", "nonlinear", "problems", "streams", "study")

__all__ = ["__version__", *_HOME, *_MODULES]  # noqa: PLE0604

__getattr__, __dir__ = late_names(__name__, _HOME, _MODULES)
