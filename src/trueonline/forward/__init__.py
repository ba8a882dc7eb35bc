"""The definitions: what each method computes, from the paper's equations. Slow and obvious; they are the truth."""

from trueonline.forward.lambda_returns import OfflineLambdaReturn, OnlineLambdaReturn
from trueonline.forward.returns import interim_lambda_return, lambda_return, n_step_returns
from trueonline.forward.traces import AccumulateSum, ReplaceSum

__all__ = [
    "AccumulateSum",
    "OfflineLambdaReturn",
    "OnlineLambdaReturn",
    "ReplaceSum",
    "interim_lambda_return",
    "lambda_return",
    "n_step_returns",
]
