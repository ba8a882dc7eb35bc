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

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

# The public names, and the modules that define them. Nothing is imported before it is asked for: `import trueonline` stays instant.
_HOME = {
    "AccumulateTD": "learners.on_policy",
    "ReplaceTD": "learners.on_policy",
    "TrueOnlineTD": "learners.on_policy",
    "MonteCarlo": "learners.on_policy",
    "SwiftTD": "learners.swift",
    "TDStar": "learners.on_policy",
    "EmphaticTD": "learners.off_policy",
    "TrueOnlineEmphaticTD": "learners.off_policy",
    "GTD": "learners.off_policy",
    "TrueOnlineGTD": "learners.off_policy",
    "ProvisionalTD": "learners.off_policy",
    "ProvisionalQ": "learners.off_policy",
    "WISTD": "learners.weighted",
    "WISGTD": "learners.weighted",
    "WISTrueOnlineGTD": "learners.weighted",
    "TrueOnlineDifferentialTD": "learners.average_reward",
    "OnlineLambdaReturn": "forward",
    "OfflineLambdaReturn": "forward",
    "Learner": "learners.interface",
    "load": "learners.loading",
    "verify": "checks.verification",
    "check_learner": "checks.contract",
    "kernel": "core.compiling.kernels",
    "method": "learners.own",
    "derive": "derivation",
    "sweep": "study",
}
_MODULES = ("control", "deep", "features", "forward", "nonlinear", "problems", "streams", "study")

__all__ = ["__version__", *_HOME, *_MODULES]  # noqa: PLE0604

if TYPE_CHECKING:
    from trueonline import control as control
    from trueonline import deep as deep
    from trueonline import features as features
    from trueonline import forward as forward
    from trueonline import nonlinear as nonlinear
    from trueonline import problems as problems
    from trueonline import streams as streams
    from trueonline import study as study
    from trueonline.checks.contract import check_learner as check_learner
    from trueonline.checks.verification import verify as verify
    from trueonline.core.compiling.kernels import kernel as kernel
    from trueonline.derivation import derive as derive
    from trueonline.forward import OfflineLambdaReturn as OfflineLambdaReturn
    from trueonline.forward import OnlineLambdaReturn as OnlineLambdaReturn
    from trueonline.learners.average_reward import TrueOnlineDifferentialTD as TrueOnlineDifferentialTD
    from trueonline.learners.interface import Learner as Learner
    from trueonline.learners.loading import load as load
    from trueonline.learners.off_policy import GTD as GTD
    from trueonline.learners.off_policy import EmphaticTD as EmphaticTD
    from trueonline.learners.off_policy import ProvisionalQ as ProvisionalQ
    from trueonline.learners.off_policy import ProvisionalTD as ProvisionalTD
    from trueonline.learners.off_policy import TrueOnlineEmphaticTD as TrueOnlineEmphaticTD
    from trueonline.learners.off_policy import TrueOnlineGTD as TrueOnlineGTD
    from trueonline.learners.on_policy import AccumulateTD as AccumulateTD
    from trueonline.learners.on_policy import MonteCarlo as MonteCarlo
    from trueonline.learners.on_policy import ReplaceTD as ReplaceTD
    from trueonline.learners.on_policy import TDStar as TDStar
    from trueonline.learners.on_policy import TrueOnlineTD as TrueOnlineTD
    from trueonline.learners.own import method as method
    from trueonline.learners.swift import SwiftTD as SwiftTD
    from trueonline.learners.weighted import WISGTD as WISGTD
    from trueonline.learners.weighted import WISTD as WISTD
    from trueonline.learners.weighted import WISTrueOnlineGTD as WISTrueOnlineGTD
    from trueonline.study import sweep as sweep


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"trueonline.{name}")
    if name not in _HOME:
        raise AttributeError(f"trueonline has no {name!r}; it has {', '.join((*_HOME, *_MODULES))}")
    found = getattr(import_module(f"trueonline.{_HOME[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
