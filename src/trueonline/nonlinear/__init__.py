"""Forward TD(λ): prediction with any differentiable value function, such as a neural network.

The method is that of van Seijen, *Effective Multi-step Temporal-Difference Learning for Non-Linear Function Approximation*, 2016
(arXiv 1608.05151). `ForwardTD` is the method, and `DelayedLambdaReturn` its definition. `horizon_within` chooses the horizon,
and `torch_value` makes a value function from a PyTorch module.
"""

from trueonline.nonlinear.delayed_return import DelayedLambdaReturn
from trueonline.nonlinear.forward_td import ForwardTD
from trueonline.nonlinear.horizon import horizon_within
from trueonline.nonlinear.pytorch import torch_value

__all__ = ["DelayedLambdaReturn", "ForwardTD", "horizon_within", "torch_value"]
