"""Forward TD(λ): prediction with any differentiable value function.

The method of van Seijen, *Effective Multi-step Temporal-Difference Learning for Non-Linear Function Approximation*, 2016
(arXiv 1608.05151). `ForwardTD` is the method, `DelayedLambdaReturn` its definition.
"""

from trueonline.nonlinear.delayed_learner import horizon_within
from trueonline.nonlinear.delayed_return import DelayedLambdaReturn
from trueonline.nonlinear.forward_td import ForwardTD
from trueonline.nonlinear.pytorch import torch_value

__all__ = ["DelayedLambdaReturn", "ForwardTD", "horizon_within", "torch_value"]
