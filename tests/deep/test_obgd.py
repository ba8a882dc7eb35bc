"""ObGD for PyTorch modules learns what the compiled networks learn."""

import numpy as np
import pytest

from trueonline import deep

torch = pytest.importorskip("torch", reason="PyTorch is not part of `all`; CI runs this file apart")


def test_a_module_learns_as_the_compiled_network():
    net = deep.MLP(4, (6,), 1, sparsity=0.3, activation="tanh", layer_norm=False, seed=0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1)).double()
    for tensor, array in zip(module.parameters(), net.parameters, strict=True):
        tensor.data = torch.tensor(array)
    learner = deep.StreamTD(net, 0.9, 0.8, kappa=0.3)
    optimiser = deep.ObGD(module.parameters(), discount=0.9, trace_decay=0.8, kappa=0.3)
    X = np.random.default_rng(1).normal(size=(31, 4))
    for t in range(30):
        end = t % 11 == 10
        with torch.no_grad():
            v_next = 0.0 if end else module(torch.from_numpy(X[t + 1])).item()
        value = module(torch.from_numpy(X[t]))
        delta = X[t, 0] + 0.9 * v_next - value.item()
        value.backward()
        optimiser.step(delta, reset=end)
        assert learner.learn(X[t], X[t, 0], X[t + 1], end) == pytest.approx(delta, rel=1e-10)
    for tensor, array in zip(module.parameters(), net.parameters, strict=True):
        assert tensor.detach().numpy() == pytest.approx(array, rel=1e-10)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="parameters must be tensors"):
        deep.ObGD([])
    optimiser = deep.ObGD([torch.nn.Parameter(torch.zeros(2))])
    with pytest.raises(ValueError, match="no parameter has a gradient"):
        optimiser.step(1.0)
    optimiser.parameters[0].grad = torch.full((2,), float("nan"))
    with pytest.raises(ValueError, match="not finite"):
        optimiser.step(1.0)
    assert not optimiser.traces[0].any()
    with pytest.raises(ValueError, match="delta must be a finite number"):
        optimiser.step(float("nan"))
