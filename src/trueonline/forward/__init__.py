"""The definitions: each method from its equations. They are slow and obvious, and other code is compared with them."""

from trueonline.forward.agents import (
    AccumulateSarsaSum,
    ClearingSarsaSum,
    ExpectedSarsaSum,
    GQSum,
    OnlineDifferentialSarsaReturn,
    OnlineSarsaReturn,
    OnlineWatkinsReturn,
    ReplaceSarsaSum,
    SwiftSarsaEquations,
    TreeBackupQSum,
    WatkinsQSum,
)
from trueonline.forward.cut_traces import ABTDSum, TreeBackupSum, VTraceSum
from trueonline.forward.differential import OnlineDifferentialReturn
from trueonline.forward.emphatic import EmphaticBetaSum, EmphaticSum, OnlineEmphaticReturn
from trueonline.forward.gradient import GTD2Sum, GTDSum, HTDSum, OnlineGTDReturn, ProximalGTD2Sum, TDRCSum
from trueonline.forward.interim_returns import interim_lambda_return, lambda_return, n_step_returns
from trueonline.forward.lambda_returns import OfflineLambdaReturn, OnlineLambdaReturn
from trueonline.forward.monte_carlo import EpisodeMonteCarlo, OnlineMonteCarlo
from trueonline.forward.off_policy_returns import (
    OffPolicySum,
    OnlineOffPolicyReturn,
    off_policy_lambda_returns,
)
from trueonline.forward.other_returns import AverageReturn, ComplexReturn, GammaReturn, NStepReturn, OmegaReturn
from trueonline.forward.provisional_views import ProvisionalQView, ProvisionalTDView
from trueonline.forward.swift_equations import SwiftTDEquations
from trueonline.forward.traces import AccumulateSum, ImpliedSum, ReplaceSum
from trueonline.forward.weighted_returns import OnlineWISGTDReturn, OnlineWISReturn, WISGTDSum

__all__ = [
    "ABTDSum",
    "AccumulateSarsaSum",
    "AccumulateSum",
    "AverageReturn",
    "ClearingSarsaSum",
    "ComplexReturn",
    "EmphaticBetaSum",
    "EmphaticSum",
    "EpisodeMonteCarlo",
    "ExpectedSarsaSum",
    "GQSum",
    "GTD2Sum",
    "GTDSum",
    "GammaReturn",
    "HTDSum",
    "ImpliedSum",
    "NStepReturn",
    "OffPolicySum",
    "OfflineLambdaReturn",
    "OmegaReturn",
    "OnlineDifferentialReturn",
    "OnlineDifferentialSarsaReturn",
    "OnlineEmphaticReturn",
    "OnlineGTDReturn",
    "OnlineLambdaReturn",
    "OnlineMonteCarlo",
    "OnlineOffPolicyReturn",
    "OnlineSarsaReturn",
    "OnlineWISGTDReturn",
    "OnlineWISReturn",
    "OnlineWatkinsReturn",
    "ProvisionalQView",
    "ProvisionalTDView",
    "ProximalGTD2Sum",
    "ReplaceSarsaSum",
    "ReplaceSum",
    "SwiftSarsaEquations",
    "SwiftTDEquations",
    "TDRCSum",
    "TreeBackupQSum",
    "TreeBackupSum",
    "VTraceSum",
    "WISGTDSum",
    "WatkinsQSum",
    "interim_lambda_return",
    "lambda_return",
    "n_step_returns",
    "off_policy_lambda_returns",
]
