"""ObGD for PyTorch modules (Elsayed, Vasan and Mahmood 2024, arXiv 2410.14606)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from trueonline import inputs
from trueonline.optional import optional


class ObGD:
    """Overshooting-bounded gradient descent with eligibility traces, for the parameters of any PyTorch module.

    Compute v(S), call `backward()` on it, and then `step` with the TD error. A step is that of `StreamTD`:

        e ← γλe + ∇v
        M = ακ·max(|δ|, 1)·Σ|e|
        w ← w + α/max(M, 1)·δe

    It goes up the gradient, and clears the gradients itself.

    Parameters
    ----------
    parameters : iterable of torch.Tensor
        The parameters to learn, such as `module.parameters()`.
    step_size : float, optional
        α > 0, the largest step-size.
    discount : float, optional
        γ in [0, 1].
    trace_decay : float, optional
        λ in [0, 1].
    kappa : float, optional
        κ > 0. A larger κ makes smaller steps.

    Raises
    ------
    ValueError
        If an argument is bad, or PyTorch is not installed.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> module = torch.nn.Linear(4, 1)  # doctest: +SKIP
    >>> optimiser = ObGD(module.parameters(), discount=0.99, trace_decay=0.8)  # doctest: +SKIP
    >>> value = module(x)  # doctest: +SKIP
    >>> delta = (reward + 0.99 * module(x_next) - value).item()  # doctest: +SKIP
    >>> value.backward()  # doctest: +SKIP
    >>> optimiser.step(delta)  # doctest: +SKIP
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        step_size: float = 1.0,
        discount: float = 0.99,
        trace_decay: float = 0.8,
        kappa: float = 2.0,
    ) -> None:
        torch = _torch()
        given = list(parameters)
        self.parameters = [each for each in given if isinstance(each, torch.Tensor) and each.requires_grad]
        if not self.parameters or not all(isinstance(each, torch.Tensor) for each in given):
            raise ValueError("parameters must be tensors, some of which require a gradient, such as module.parameters()")
        self.step_size, self.kappa = inputs.positive("step_size", step_size), inputs.positive("kappa", kappa)
        self.discount, self.trace_decay = inputs.unit("discount", discount), inputs.unit("trace_decay", trace_decay)
        self.traces = [torch.zeros_like(each) for each in self.parameters]

    def step(self, delta: float, reset: bool = False) -> None:
        """Update the traces by the gradients, and the parameters by the traces.

        Parameters
        ----------
        delta : float
            The TD error δ.
        reset : bool, optional
            Whether the traces are zero afterwards, as at the end of an episode.

        Raises
        ------
        ValueError
            If δ or a gradient is not finite, or no parameter has a gradient. Nothing has changed then.
        """
        torch = _torch()
        delta = inputs.number("delta", delta.item() if isinstance(delta, torch.Tensor) else delta)
        if all(each.grad is None for each in self.parameters):
            raise ValueError("no parameter has a gradient: call backward() on the value before step(delta)")
        decay = self.discount * self.trace_decay
        with torch.no_grad():
            traces = [
                decay * trace if parameter.grad is None else torch.add(parameter.grad, trace, alpha=decay)
                for parameter, trace in zip(self.parameters, self.traces, strict=True)
            ]
            total = sum(trace.abs().sum().item() for trace in traces)
            if not math.isfinite(total):
                raise ValueError("the gradients or traces are not finite: the module has diverged")
            self.traces = traces
            overshoot = self.step_size * self.kappa * max(abs(delta), 1.0) * total
            share = self.step_size / max(overshoot, 1.0) * delta
            for parameter, trace in zip(self.parameters, self.traces, strict=True):
                parameter.add_(trace, alpha=share)
                parameter.grad = None
                if reset:
                    trace.zero_()


def _torch() -> Any:
    return optional("ObGD needs PyTorch", "torch", extra="torch")
