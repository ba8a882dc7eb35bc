"""The definitions: what each method computes, from the paper's equations. Slow and obvious; they are the truth."""

from trueonline.forward.agents import (
    AccumulateSarsaSum,
    ClearingSarsaSum,
    OnlineSarsaReturn,
    OnlineWatkinsReturn,
    ReplaceSarsaSum,
    WatkinsQSum,
)
from trueonline.forward.lambda_returns import OfflineLambdaReturn, OnlineLambdaReturn
from trueonline.forward.returns import interim_lambda_return, lambda_return, n_step_returns
from trueonline.forward.traces import AccumulateSum, ReplaceSum

__all__ = [
    "AccumulateSarsaSum",
    "AccumulateSum",
    "ClearingSarsaSum",
    "OfflineLambdaReturn",
    "OnlineLambdaReturn",
    "OnlineSarsaReturn",
    "OnlineWatkinsReturn",
    "ReplaceSarsaSum",
    "ReplaceSum",
    "WatkinsQSum",
    "interim_lambda_return",
    "lambda_return",
    "n_step_returns",
]
