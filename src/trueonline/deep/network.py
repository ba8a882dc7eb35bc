"""A small network whose whole step is one compiled call."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from itertools import pairwise
from typing import Any

import numpy as np

from trueonline import inputs
from trueonline.core.compiling.kernels import call
from trueonline.core.thread_guard import ThreadGuarded, guarded
from trueonline.deep import kernels

ACTIVATIONS = {"leaky_relu": 0.01, "relu": 0.0, "linear": 1.0, "tanh": math.nan}  # with the slope below zero
MAX_PARAMETERS = 10**8
DOUBLE = np.dtype(np.float64)


def alone(method: Callable) -> Callable:
    """A method of a network that waits for the calls of the learner whose network it is, and of the network itself."""
    inside = guarded(lambda guard, net, *given: method(net, *given))

    @wraps(method)
    def waits(net: MLP, *given: Any) -> Any:
        return inside(net if net._learner is None else net._learner, net, *given)

    return waits


class MLP(ThreadGuarded):
    """A fully connected network: hidden layers with layer normalisation and an activation, and linear outputs.

    A hidden layer computes h = f(normalised(Wh⁻ + b)). Layer normalisation subtracts the mean of the units and divides by their
    standard deviation (√(variance + 1e-5)); it has no parameters. At first, weights are uniform in ±1/√fan_in. Then 90 % of the
    incoming weights of each unit, rounded up, are set to 0 (sparse initialisation: Elsayed, Vasan and Mahmood 2024). So a unit with
    fewer than 10 inputs begins without weights, and two such layers in a row never learn. Biases begin at 0.

    Parameters
    ----------
    n_inputs : int
        The number of inputs.
    hidden : sequence of int, optional
        The number of units of each hidden layer. Without hidden layers the network is linear.
    n_outputs : int, optional
        The number of outputs.
    activation : str, optional
        The function f of hidden units: "leaky_relu" (slope 0.01 below zero), "relu", "tanh" or "linear".
    layer_norm : bool, optional
        Whether hidden layers are normalised.
    sparsity : float, optional
        The share of a unit's incoming weights that begin at 0, in [0, 1]. The number of zeros is rounded up.
    seed : int, optional
        The seed of the initial weights.

    Examples
    --------
    >>> net = MLP(n_inputs=2, hidden=(16,), n_outputs=3, seed=0)
    >>> [each.shape for each in net.parameters]
    [(16, 2), (16,), (3, 16), (3,)]
    >>> net([0.5, -1.0]).shape
    (3,)
    """

    def __init__(
        self,
        n_inputs: int,
        hidden: Sequence[int] = (32, 32),
        n_outputs: int = 1,
        *,
        activation: str = "leaky_relu",
        layer_norm: bool = True,
        sparsity: float = 0.9,
        seed: Any = None,
    ) -> None:
        if isinstance(hidden, int) or not isinstance(hidden, Sequence | np.ndarray):
            raise ValueError(f"hidden must list the units of each hidden layer, such as (32, 32), got {hidden!r}")
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {activation!r}")
        sizes = [inputs.count("n_inputs", n_inputs), *(inputs.count("hidden", each) for each in hidden)]
        sizes.append(inputs.count("n_outputs", n_outputs))
        if kernels.count_parameters(sizes) > MAX_PARAMETERS:
            raise ValueError(
                f"the network would have {kernels.count_parameters(sizes):,} parameters; make its layers smaller"
            )
        self._learner: Any = None  # whose network it is
        self.activation, self.layer_norm = activation, inputs.flag("layer_norm", layer_norm)
        self.sparsity = inputs.unit("sparsity", sparsity)
        self._shape = tuple(sizes)
        self._parts = kernels.parts(sizes)
        self._numbers = np.zeros(self._parts["taken"].stop)
        self._numbers[kernels.LAYERS : kernels.REWARD] = len(hidden) + 1, *(part.start for part in self._parts.values())
        self._part("shape")[:] = sizes
        self._bind()
        slope = ACTIVATIONS[activation]
        self._numbers[kernels.SATURATES] = math.isnan(slope)
        self._numbers[kernels.SLOPE] = 0.0 if math.isnan(slope) else slope
        self._numbers[kernels.LAYER_NORM] = layer_norm
        self.parameters = self._initial(np.random.default_rng(inputs.one_seed(seed)))

    def _initial(self, rng: np.random.Generator) -> list[np.ndarray]:
        parameters = []
        for fan_in, n in pairwise(self._shape):
            drawn = rng.uniform(-1.0, 1.0, (n, fan_in)) / math.sqrt(fan_in)
            for row in drawn:
                row[rng.permutation(fan_in)[: math.ceil(self.sparsity * fan_in)]] = 0.0
            parameters += [drawn, np.zeros(n)]
        return parameters

    @property
    def n_inputs(self) -> int:
        """The number of inputs."""
        return self._shape[0]

    @property
    def hidden(self) -> tuple[int, ...]:
        """The number of units of each hidden layer."""
        return self._shape[1:-1]

    @property
    def n_outputs(self) -> int:
        """The number of outputs."""
        return self._shape[-1]

    @property
    @alone
    def parameters(self) -> list[np.ndarray]:
        """Read-only copies of weights and biases, [W0, b0, W1, b1, …], a row of W for each unit, as in PyTorch.

        The attribute can be set, also to `module.parameters()` of a PyTorch module with the same layers.
        """
        shapes = self._shapes()
        parts = np.split(self._w, np.cumsum([math.prod(shape) for shape in shapes]))
        return [inputs.read_only(part.reshape(shape[::-1]).T.copy()) for part, shape in zip(parts, shapes, strict=False)]

    @parameters.setter
    @alone
    def parameters(self, values: Iterable[Any]) -> None:
        shapes = self._shapes()
        values = [each.detach().cpu() if hasattr(each, "detach") else each for each in values]  # tensors of PyTorch
        if len(values) != len(shapes):
            raise ValueError(
                f"parameters must be {len(shapes)} arrays, weights and biases of each layer, got {len(values)}"
            )
        arrays = [inputs.floats(f"parameters[{i}]", each) for i, each in enumerate(values)]
        for i, (array, shape) in enumerate(zip(arrays, shapes, strict=True)):
            if array.shape != shape or not np.isfinite(array).all():
                what = f"shape {array.shape}" if array.shape != shape else "values that are not finite"
                raise ValueError(f"parameters[{i}] must be finite numbers of shape {shape}, got {what}")
        self._w[:] = np.concatenate([array.T.reshape(-1) for array in arrays])
        self._seen[:] = 0.0
        if self._learner is not None:
            self._learner._network_set()

    @alone
    def __call__(self, x: Any) -> np.ndarray:
        """Compute the outputs.

        Parameters
        ----------
        x : features
            The inputs: a float array of length `n_inputs`, or sparse features in any of the package's forms.

        Returns
        -------
        numpy.ndarray
            The outputs.
        """
        self._here[:] = self._checked(x, "x")
        call(kernels.EVALUATE, self._address)
        return self._outputs

    def _checked(self, x: Any, name: str) -> np.ndarray:
        """The inputs as an array of float64; ValueError unless they are features of the right number and size."""
        return limited(x, self.n_inputs, name)

    def _stream(self, X: Any) -> np.ndarray:
        """A row of inputs for each state of a stream, which has any of the forms of features."""
        stream, rows = inputs.stream(X, self.n_inputs)
        if isinstance(stream, tuple):
            return np.array([self._checked(inputs.row(stream, t), f"X[{t}]") for t in range(rows)])
        stream = stream.copy()  # what is checked stays as it is when another thread writes to the array
        for t in np.flatnonzero(~(np.abs(stream).max(axis=1) <= kernels.MOST_INPUT)):
            self._checked(stream[t], f"X[{t}]")
        return stream

    # --- The array --------------------------------------------------------------------------------

    def _shapes(self) -> list[tuple[int, ...]]:
        return [shape for n_in, n in pairwise(self._shape) for shape in ((n, n_in), (n,))]

    def _part(self, name: str) -> np.ndarray:
        """A part of the array, by its name in `kernels.parts`."""
        return self._numbers[self._parts[name]]

    def _bind(self) -> None:
        """Find the parts that every step uses. A copy has an array of its own, and so another address."""
        self._address = self._numbers.ctypes.data
        self._here, self._ahead = self._part("here"), self._part("ahead")
        self._row = self._here.shape

    def __getstate__(self) -> dict[str, Any]:
        kept = super().__getstate__()
        return {name: value for name, value in kept.items() if name not in ("_address", "_here", "_ahead")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._bind()

    def _hold(self, x: Any, x_next: Any) -> bool:
        """Copy the inputs of a transition to where a compiled step reads them, if both are arrays of floats that fit."""
        fit = type(x) is type(x_next) is np.ndarray and x.dtype is x_next.dtype is DOUBLE
        if fit and x.shape == x_next.shape == self._row:
            self._here[:] = x
            self._ahead[:] = x_next
            return True
        return False

    @property
    def _w(self) -> np.ndarray:
        return self._part("w")

    @property
    def _e(self) -> np.ndarray:
        return self._part("e")

    @property
    def _outputs(self) -> np.ndarray:
        """A copy of the outputs of the newest pass."""
        return self._part("h")[-self.n_outputs :].copy()

    @property
    def _seen(self) -> np.ndarray:
        """What divergence is judged by."""
        return self._numbers[kernels.REWARD : kernels.SETTINGS]

    def _settings(self) -> dict[str, Any]:
        """The arguments of the constructor, except the seed."""
        return {
            "n_inputs": self.n_inputs,
            "hidden": list(self.hidden),
            "n_outputs": self.n_outputs,
            "activation": self.activation,
            "layer_norm": self.layer_norm,
            "sparsity": self.sparsity,
        }

    def __repr__(self) -> str:
        return f"MLP({', '.join(f'{name}={value!r}' for name, value in self._settings().items())})"


def limited(x: Any, n: int, name: str) -> np.ndarray:
    """Features as an array of n numbers; ValueError unless they are of the right number and size."""
    values = inputs.dense(inputs.features(x, n, name=name), n)
    largest = np.abs(values).max()
    if largest > kernels.MOST_INPUT:
        raise ValueError(f"{name} must not exceed {kernels.MOST_INPUT:g} in size, got {largest:g}: normalise the inputs")
    return values
