# Written by `python -m tools.generated`. Type checkers read this file, because __init__.py imports its names late.

from trueonline import control as control
from trueonline import deep as deep
from trueonline import features as features
from trueonline import forward as forward
from trueonline import nonlinear as nonlinear
from trueonline import problems as problems
from trueonline import streams as streams
from trueonline import study as study
from trueonline.catalog import Parameter as Parameter
from trueonline.checks.contract import check_learner as check_learner
from trueonline.checks.verification import verify as verify
from trueonline.core.compiling.kernels import kernel as kernel
from trueonline.derivation import derive as derive
from trueonline.forward import OfflineLambdaReturn as OfflineLambdaReturn
from trueonline.forward import OnlineLambdaReturn as OnlineLambdaReturn
from trueonline.learners.average_reward import TrueOnlineDifferentialTD as TrueOnlineDifferentialTD
from trueonline.learners.interface import Learner as Learner
from trueonline.learners.linear import WithProvisionalWeights
from trueonline.learners.linear import WithSecondWeights
from trueonline.learners.linear import WithUsage
from trueonline.learners.loading import load as load
from trueonline.learners.memory_learner import MemoryLearner
from trueonline.learners.own import method as method
from trueonline.learners.swift import SwiftTD as SwiftTD
from trueonline.study import sweep as sweep

__version__: str

class AccumulateTD(MemoryLearner):
    """TD(λ) with accumulating traces (Sutton 1988; Algorithm 1 of van Seijen et al. 2016)."""

class ReplaceTD(MemoryLearner):
    """TD(λ) with replacing traces, for binary features (section 2.3 of van Seijen et al. 2016)."""

class TrueOnlineTD(MemoryLearner):
    """True online TD(λ): the online λ-return algorithm, exactly, at every step (Algorithm 2 of van Seijen et al. 2016)."""

class MonteCarlo(MemoryLearner):
    """Monte Carlo prediction with dutch traces: no bootstrapping, in constant memory (van Hasselt and Sutton 2015)."""

class TDStar(MemoryLearner):
    """TD*(λ) (after Schapire and Warmuth 1996): TD(λ) whose errors consist of the predictions that are made."""

class GTD(WithSecondWeights, MemoryLearner):
    """GTD(λ) (Maei 2011): off-policy, with second weights h that correct the gradient."""

class TrueOnlineGTD(WithSecondWeights, MemoryLearner):
    """True online GTD(λ) (van Hasselt, Mahmood and Sutton 2014): equal at every step to the forward view of w and of h."""

class TDRC(WithSecondWeights, MemoryLearner):
    """TDRC(λ) (Ghiassian, Patterson, Garg, Gupta, White and White 2020): GTD(λ) whose second weights are pulled towards zero."""

class GTD2(WithSecondWeights, MemoryLearner):
    """GTD2(λ) (Sutton and others 2009; with traces Maei 2011): the weights follow the gradient that the second weights estimate."""

class ProximalGTD2(WithSecondWeights, MemoryLearner):
    """Proximal GTD2(λ) (Mahadevan and others 2014, as GTD2-MP; Liu and others 2015): GTD2(λ) with a look half a step ahead."""

class HTD(WithSecondWeights, MemoryLearner):
    """HTD(λ), hybrid TD (Hackman 2012; White and White 2016): GTD(λ) off-policy, and TD(λ) where the policies agree."""

class TreeBackup(MemoryLearner):
    """Tree Backup(λ) for prediction (Precup, Sutton and Singh 2000; Ghiassian and Sutton 2021): the trace carries no ratios."""

class VTrace(MemoryLearner):
    """V-trace(λ) (Espeholt and others 2018): off-policy TD(λ) whose ratios are clipped, in updates and in the trace."""

class ABTD(MemoryLearner):
    """ABTD(ζ) (Ghiassian and Sutton 2021, after ABQ(ζ) of Mahmood, Yu and Sutton 2017): bootstrapping that depends on the action."""

class EmphaticTD(MemoryLearner):
    """Emphatic TD(λ) (Sutton, Mahmood and White 2016): a state is updated in proportion to its emphasis."""

class EmphaticTDBeta(MemoryLearner):
    """Emphatic TD(λ, β) (Hallak, Tamar, Munos and Mannor 2016): the follow-on trace decays by β instead of γ."""

class TrueOnlineEmphaticTD(MemoryLearner):
    """True online emphatic TD(λ) (Sutton 2015): equal to its forward view at every step."""

class ProvisionalTD(WithProvisionalWeights, MemoryLearner):
    """Provisional TD(λ), or PTD(λ) (after Sutton, Mahmood, Precup and van Hasselt 2014): it undoes updates where policies differ."""

class ProvisionalQ(WithProvisionalWeights, MemoryLearner):
    """Provisional Q(λ), or PQ(λ) (after Sutton, Mahmood, Precup and van Hasselt 2014): provisional TD(λ) for action values."""

class WISTD(WithUsage, MemoryLearner):
    """WIS-TD(λ) (after Mahmood and Sutton 2015): weighted importance sampling, by a step-size for each feature."""

class WISGTD(WithUsage, WithSecondWeights, MemoryLearner):
    """WIS-GTD(λ) (Mahmood and Sutton 2015): GTD(λ) with a step-size for each feature, 1 over its usage."""

class WISTrueOnlineGTD(WithUsage, WithSecondWeights, MemoryLearner):
    """WIS-TO-GTD(λ) (Mahmood and Sutton 2015): true online GTD(λ) with a step-size for each feature, 1 over its usage."""
