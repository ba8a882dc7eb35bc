"""ObGD for PyTorch modules learns what the compiled networks learn."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from trueonline import deep
from trueonline.deep.checks.definition import Bounded

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
    net.parameters = module.parameters()
    assert net(X[0])[0] == pytest.approx(module(torch.from_numpy(X[0])).item(), rel=1e-12)


def test_convolutions_learn_by_the_equations():
    """The network of the paper for MinAtar, on pixels like those of a game."""
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(4, 16, 3), torch.nn.LeakyReLU(), torch.nn.Flatten(0), torch.nn.Linear(1024, 3)
    module = torch.nn.Sequential(*layers).double()
    optimiser = deep.ObGD(module.parameters(), step_size=0.7, discount=0.9, trace_decay=0.8, kappa=0.4)
    truth = Bounded(SimpleNamespace(parameters=[each.detach().numpy().copy() for each in module.parameters()]), 0.4)
    rng, decay = np.random.default_rng(0), 0.0
    for t in range(12):
        value = module(torch.from_numpy((rng.random((4, 10, 10)) < 0.2).astype(float)))[t % 3]
        value.backward()
        gradient = [each.grad.numpy().copy() for each in module.parameters()]
        delta, end = float(rng.normal()), t == 6
        optimiser.step(delta, reset=end)
        truth.step(delta, gradient, 0.7, decay)
        decay = 0.0 if end else 0.9 * 0.8
        for tensor, array in zip(module.parameters(), truth.network.parameters, strict=True):
            assert tensor.detach().numpy() == pytest.approx(array, rel=1e-9, abs=1e-12)


def test_the_example_plays_from_pixels():
    pytest.importorskip("minatar")
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "minatar_pixels.py"))
    returns = example["train"](steps=400)
    assert len(returns) > 10
    assert returns == example["train"](steps=400)


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
