"""A PyTorch module as a value function."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline.nonlinear.value_function import ValueAndGrad
from trueonline.optional import optional


def torch_value(module: Any) -> tuple[ValueAndGrad, np.ndarray]:
    """Make a value function and its initial weights from a PyTorch module.

    The weights are all parameters that require a gradient, one after the other. The other parameters and the buffers are
    constants. The module itself never changes. If all its parameters require a gradient, then
    `torch.nn.utils.vector_to_parameters(torch.tensor(learner.weights), module.parameters())` writes the learned weights into
    it, in double precision.

    Parameters
    ----------
    module : torch.nn.Module
        It must map one x, without a batch, to one number, V(x). It is called in double precision. x is what the module
        takes. Numbers and NumPy arrays become tensors, and their floats double precision.

    Returns
    -------
    value_and_grad : function (weights, x) → (value, gradient)
        The value function, for `ForwardTD`.
    weights : array of float64, 1-D
        The parameters of the module.

    Raises
    ------
    ValueError
        If PyTorch is not installed, or if the module is not one, has complex parameters, or none to learn.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))  # doctest: +SKIP
    >>> learner = ForwardTD(*torch_value(module), step_size=0.01, trace_decay=0.9, discount=0.99)  # doctest: +SKIP
    """
    torch = optional("torch_value needs PyTorch", "torch", extra="torch")
    if not isinstance(module, torch.nn.Module):
        raise ValueError(f"module must be a torch.nn.Module, got {type(module).__name__}")
    learned = {name: each for name, each in module.named_parameters() if each.requires_grad}
    if any(each.is_complex() for each in learned.values()):
        raise ValueError("module has complex parameters, but weights are real numbers: use real parameters")
    if not learned:
        raise ValueError(
            "module has no parameter that requires a gradient, so there is nothing to learn: call requires_grad_() on some"
        )
    others = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    constants = {name: _double(torch, each.detach().clone()) for name, each in others.items() if name not in learned}
    sizes, shapes = [each.numel() for each in learned.values()], [each.shape for each in learned.values()]
    weights = np.concatenate([each.detach().cpu().double().numpy().ravel() for each in learned.values()])

    def value_and_grad(weights: np.ndarray, x: Any) -> tuple[float, np.ndarray]:
        with torch.enable_grad():
            w = torch.tensor(weights, dtype=torch.float64, requires_grad=True)
            pieces = [piece.view(shape) for piece, shape in zip(w.split(sizes), shapes, strict=True)]
            buffers = {name: each.clone() for name, each in constants.items()}  # a module may count in its buffers
            parts = {**buffers, **dict(zip(learned, pieces, strict=True))}
            answer = torch.func.functional_call(module, parts, (_tensor(torch, x),))
            if not isinstance(answer, torch.Tensor) or answer.numel() != 1:
                shape = tuple(answer.shape) if isinstance(answer, torch.Tensor) else type(answer).__name__
                raise ValueError(f"the module must give one number, the value of x, got {shape}: end it with one output")
            if not answer.is_floating_point() or not answer.requires_grad:
                raise ValueError(
                    f"the module must give a real number that depends on its parameters, got {answer.dtype}"
                    f"{'' if answer.requires_grad else ', detached from them'}; does it use no_grad, detach or complex numbers?"
                )
            value = answer.reshape(())
            (gradient,) = torch.autograd.grad(value, w)
        return value.item(), gradient.numpy()

    return value_and_grad, weights


def _double(torch: Any, tensor: Any) -> Any:
    return tensor.to("cpu", torch.float64) if tensor.is_floating_point() else tensor.cpu()


def _tensor(torch: Any, x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return _double(torch, x)
    if isinstance(x, np.ndarray | np.generic | float | int):
        return _double(torch, torch.tensor(np.array(x)))
    return x
