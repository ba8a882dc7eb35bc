"""A PyTorch module as a value function."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from trueonline.nonlinear.delayed_learner import ValueAndGrad


def torch_value(module: Any) -> tuple[ValueAndGrad, np.ndarray]:
    """`value_and_grad` and `weights` of a `torch.nn.Module`, for `ForwardTD(*torch_value(module), step_size=…, …)`.

    The weights are all parameters that require a gradient, one after the other, in double precision; parameters that do
    not, and buffers, are constants. The module is called as it is, in double precision and without a batch, and must give one
    number: V(x). x is what it takes; numbers and NumPy arrays are made tensors, floats in double precision. The module itself
    is never changed; `torch.nn.utils.vector_to_parameters(torch.tensor(learner.weights), module.parameters())` puts
    what was learned into it where all its parameters require a gradient, and makes them double.
    """
    torch = _torch()
    if not isinstance(module, torch.nn.Module):
        raise ValueError(f"module must be a torch.nn.Module, got {type(module).__name__}")
    learned = {name: each for name, each in module.named_parameters() if each.requires_grad}
    if any(each.is_complex() for each in learned.values()):
        raise ValueError("module has complex parameters; weights are real numbers")
    if not learned:
        raise ValueError("module has no parameter that requires a gradient: there is nothing to learn")
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
                raise ValueError(f"the module must give one number, the value of x, got {shape}")
            if not answer.is_floating_point() or not answer.requires_grad:
                raise ValueError(
                    f"the module must give a real number that depends on its parameters, got {answer.dtype}"
                    f"{'' if answer.requires_grad else ', detached from them'}; does it use no_grad, detach or complex numbers?"
                )
            value = answer.reshape(())
            (gradient,) = torch.autograd.grad(value, w)
        return value.item(), gradient.numpy()

    return value_and_grad, weights


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError:
        raise ValueError("torch_value needs PyTorch: pip install 'trueonline[torch]'") from None


def _double(torch: Any, tensor: Any) -> Any:
    return tensor.to("cpu", torch.float64) if tensor.is_floating_point() else tensor.cpu()


def _tensor(torch: Any, x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return _double(torch, x)
    if isinstance(x, np.ndarray | np.generic | float | int):
        return _double(torch, torch.tensor(np.array(x)))
    return x
