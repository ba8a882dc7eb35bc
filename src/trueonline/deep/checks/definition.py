"""Streaming deep RL by its equations, slow and obvious: what the compiled learners must equal at every step.

Gradients are products of Jacobians, and everything is written with whole vectors and matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueonline import inputs
from trueonline.control.transitions import TIE
from trueonline.deep.network import ACTIVATIONS, MLP
from trueonline.inputs import Schedule

EPSILON = 1e-5  # of layer normalisation


class Network:
    """A network with the parameters of an `MLP`."""

    def __init__(self, net: MLP) -> None:
        self.parameters = [each.copy() for each in net.parameters]
        self.activation, self.layer_norm = net.activation, net.layer_norm

    def jacobians(self, x: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """The outputs, and the derivatives of all outputs by each array of parameters."""
        h, hidden = x, []
        derivatives: list[np.ndarray] = []
        layers = list(zip(self.parameters[::2], self.parameters[1::2], strict=True))
        for number, (W, b) in enumerate(layers):
            z = W @ h + b
            by_W = np.einsum("ij,k->ijk", np.eye(b.size), h)  # ∂z_i/∂W_jk
            derivatives = [np.tensordot(W, each, 1) for each in derivatives] + [by_W, np.eye(b.size)]
            if number == len(layers) - 1:
                return z, derivatives
            y, by_z = self._normalised(z)
            h, by_y = self._activated(y)
            step = by_y @ by_z
            derivatives = [np.tensordot(step, each, 1) for each in derivatives]
            hidden.append(h)
        raise AssertionError("a network has an output layer")

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """The outputs."""
        return self.jacobians(x)[0]

    def _normalised(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(z − mean)/√(variance + ε), and its Jacobian."""
        if not self.layer_norm:
            return z, np.eye(z.size)
        n = z.size
        centring = np.eye(n) - np.ones((n, n)) / n
        centred = centring @ z
        spread = np.sqrt(centred @ centred / n + EPSILON)
        return centred / spread, centring / spread - np.outer(centred, centred) / (n * spread**3)

    def _activated(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """f(y), and its Jacobian."""
        if self.activation == "tanh":
            return np.tanh(y), np.diag(1.0 - np.tanh(y) ** 2)
        slopes = np.where(y > 0.0, 1.0, ACTIVATIONS[self.activation])
        return slopes * y, np.diag(slopes)


class Bounded:
    """ObGD on a network: e ← γλe + ∇, M = ακ·max(|δ|, 1)·Σ|e|, w ← w + α/max(M, 1)·δe."""

    def __init__(self, network: Network, kappa: float) -> None:
        self.network, self.kappa = network, kappa
        self.traces = [np.zeros_like(each) for each in network.parameters]

    def step(self, delta: float, gradient: list[np.ndarray], alpha: float, decay: float) -> None:
        """Change the parameters. `decay` is γλ of the state left."""
        self.traces = [decay * e + g for e, g in zip(self.traces, gradient, strict=True)]
        overshoot = alpha * self.kappa * max(abs(delta), 1.0) * sum(np.abs(e).sum() for e in self.traces)
        for w, e in zip(self.network.parameters, self.traces, strict=True):
            np.add(w, alpha / max(overshoot, 1.0) * delta * e, out=w)


class StreamDefinition:
    """What the definitions of stream TD(λ), Q(λ), Sarsa(λ) and AC(λ) share."""

    def __init__(
        self, net: MLP, discount: float, trace_decay: float, step_size: float | Schedule = 1.0, kappa: float = 2.0
    ) -> None:
        self.n_features, self.discount, self.trace_decay, self.step_size = net.n_inputs, discount, trace_decay, step_size
        self.value = Bounded(Network(net), kappa)
        self.decay, self.steps = 0.0, 0

    @property
    def weights(self) -> np.ndarray:
        """All parameters as one vector, in the order of the compiled learners."""
        return np.concatenate([w.T.reshape(-1) for each in self._learning() for w in each.network.parameters])

    def _learning(self) -> tuple[Bounded, ...]:
        return (self.value,)

    def _features(self, x: Any) -> np.ndarray:
        return inputs.dense(inputs.features(x, self.n_features), self.n_features)

    def _alpha(self) -> float:
        return self.step_size(self.steps) if callable(self.step_size) else self.step_size

    def _transition(self, x: Any, output: int, reward: float, v_next: float, gamma: float, decay: float) -> float:
        """Learn the value of one output from a transition into a state of this value and γ."""
        outputs, jacobians = self.value.network.jacobians(self._features(x))
        delta = reward + gamma * v_next - outputs[output]
        self.value.step(delta, [each[output] for each in jacobians], self._alpha(), self.decay)
        self.decay = decay
        self.steps += 1
        return delta


class TDDefinition(StreamDefinition):
    """Stream TD(λ)."""

    def start(self, x: Any) -> None:
        """Begin an episode."""
        self.here, self.decay = x, 0.0

    def update(self, reward: float, x_next: Any, discount: float, trace_decay: float) -> float:
        """Learn from the transition out of the present state."""
        gamma = 0.0 if x_next is None else discount
        v_next = 0.0 if x_next is None else self.value.network.outputs(self._features(x_next))[0]
        delta = self._transition(self.here, 0, reward, v_next, gamma, gamma * trace_decay)
        self.here = x_next
        return delta


class ActingDefinition(StreamDefinition):
    """An agent with the interface of the others, which learns, and then chooses."""

    def __init__(self, *arguments: Any, policy: Any = None, seed: Any = None, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.policy, self.rng = policy, np.random.default_rng(seed)

    def start(self, x: Any) -> int:
        """Begin an episode."""
        self.here, self.decay = x, 0.0
        return self._choose(x)

    def step(self, reward: float, x_next: Any, discount: float, trace_decay: float) -> int:
        """Learn, and choose the next action."""
        self._learn(reward, x_next, discount, trace_decay)
        self.here = x_next
        return self._choose(x_next)

    def truncate(self, reward: float, x_next: Any, discount: float) -> None:
        """Learn from the last transition of a truncated episode."""
        self._learn(reward, x_next, discount, 0.0)

    def end(self, reward: float) -> None:
        """Learn from the last transition of an episode."""
        self._learn(reward, None, 0.0, 0.0)

    def _learn(self, reward: float, x_next: Any, gamma: float, lam: float) -> Any:
        raise NotImplementedError

    def _values(self, x: Any) -> np.ndarray:
        return self.value.network.outputs(self._features(x))

    def _choose(self, x: Any, ahead: int = 0) -> int:
        values = self._values(x)
        self.action = self.policy(values, self.rng, self.steps + ahead)
        self.best = values[self.action] >= values.max() - TIE * max(1.0, abs(values.max()))
        return self.action


class QDefinition(ActingDefinition):
    """Stream Q(λ). An action that is not one of the best clears the trace after it."""

    def _learn(self, reward: float, x_next: Any, gamma: float, lam: float) -> None:
        v_next = 0.0 if x_next is None else self._values(x_next).max()
        self._transition(self.here, self.action, reward, v_next, gamma, gamma * lam if self.best else 0.0)


class SarsaDefinition(ActingDefinition):
    """Stream Sarsa(λ), which chooses the next action before it learns."""

    def step(self, reward: float, x_next: Any, discount: float, trace_decay: float) -> int:
        """Choose the next action, and learn."""
        self._learn(reward, x_next, discount, trace_decay)
        self.here = x_next
        return self.action

    def _learn(self, reward: float, x_next: Any, gamma: float, lam: float) -> None:
        left = self.action
        v_next = 0.0 if x_next is None else self._values(x_next)[self._choose(x_next, 1)]
        self._transition(self.here, left, reward, v_next, gamma, gamma * lam)


class ACDefinition(ActingDefinition):
    """Stream AC(λ). The network is that of the critic."""

    def __init__(
        self,
        actor: MLP,
        critic: MLP,
        discount: float,
        trace_decay: float,
        kappa_policy: float = 3.0,
        kappa_value: float = 2.0,
        entropy: float = 0.01,
        step_size: float | Schedule = 1.0,
        continuous: bool = False,
        **acting: Any,
    ) -> None:
        super().__init__(critic, discount, trace_decay, step_size, kappa_value, **acting)
        self.actor, self.entropy = Bounded(Network(actor), kappa_policy), entropy
        self.slopes = gaussian_slopes if continuous else softmax_slopes

    def learn(self, x: Any, action: Any, reward: float, x_next: Any, terminated: bool) -> float:
        """Learn from one transition."""
        self.here, self.action = x, action
        return self._learn(reward, None if terminated else x_next, 0.0 if terminated else self.discount, self.trace_decay)

    def _learn(self, reward: float, x_next: Any, gamma: float, lam: float) -> float:
        alpha, decay = self._alpha(), self.decay
        v_next = 0.0 if x_next is None else self.value.network.outputs(self._features(x_next))[0]
        outputs, jacobians = self.actor.network.jacobians(self._features(self.here))
        delta = self._transition(self.here, 0, reward, v_next, gamma, gamma * lam)
        slopes = self.slopes(outputs, self.action, self.entropy * np.sign(delta))
        self.actor.step(delta, [np.tensordot(slopes, each, 1) for each in jacobians], alpha, decay)
        return delta

    def _values(self, x: Any) -> np.ndarray:
        return softmax(self.actor.network.outputs(self._features(x)))

    def _learning(self) -> tuple[Bounded, ...]:
        return self.value, self.actor


def softmax(outputs: np.ndarray) -> np.ndarray:
    """The probability of each action."""
    return np.exp(outputs - outputs.max()) / np.exp(outputs - outputs.max()).sum()


def softmax_slopes(outputs: np.ndarray, action: int, weight: float) -> np.ndarray:
    """The gradient of ln π(A|S) + weight·H(π) by the outputs, with π their softmax."""
    pi = softmax(outputs)
    by_outputs = np.diag(pi) - np.outer(pi, pi)  # ∂π_i/∂o_j
    return by_outputs[action] / pi[action] - weight * (np.log(pi) + 1.0) @ by_outputs  # H = −Σ π ln π


def gaussian_slopes(outputs: np.ndarray, action: np.ndarray, weight: float) -> np.ndarray:
    """The same for Gaussians, with means μ and the standard deviations σ = ln(1 + e^s) as outputs: H = Σ ln σ + a constant."""
    mu, s = np.split(outputs, 2)
    sigma = np.log(1.0 + np.exp(s))
    by_mu = (action - mu) / sigma**2  # ln π = −Σ (a − μ)²/2σ² − Σ ln σ + a constant
    by_sigma = (action - mu) ** 2 / sigma**3 - 1.0 / sigma + weight / sigma
    return np.concatenate([by_mu, by_sigma / (1.0 + np.exp(-s))])


class HeadDefinition(StreamDefinition):
    """A true online head on a learning body: Algorithm 2 of van Seijen et al. (2016) over the features of the present body."""

    def __init__(self, *arguments: Any, head_step_size: float, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.head_step_size = head_step_size
        *_, weights, bias = self.value.network.parameters
        self.w, self.e, self.v_old = np.append(weights, bias), np.zeros(weights.size + 1), 0.0

    def learn(self, x: Any, reward: float, x_next: Any, terminated: bool) -> float:
        """Learn from one transition."""
        network, alpha, decay = self.value.network, self.head_step_size, self.decay
        _, jacobians = network.jacobians(x)
        phi, phi_next = self._phi(x), self._phi(x_next)
        gamma = 0.0 if terminated else self.discount
        v, v_next = self.w @ phi, self.w @ phi_next
        delta = reward + gamma * v_next - v
        if decay == 0.0:
            self.v_old = v
        self.e = decay * self.e + phi - alpha * decay * (self.e @ phi) * phi
        w = self.w + alpha * (delta + v - self.v_old) * self.e - alpha * (v - self.v_old) * phi
        body = [each[0] for each in jacobians[:-2]]
        self.value.step(delta, [*body, *(np.zeros_like(each) for each in network.parameters[-2:])], self._alpha(), decay)
        self.w, self.v_old, self.decay = w, v_next, gamma * self.trace_decay
        network.parameters[-2:] = [w[:-1].reshape(1, -1), w[-1:].copy()]
        self.steps += 1
        return delta

    def _phi(self, x: np.ndarray) -> np.ndarray:
        """The last hidden layer, which is the derivative of the output by the last weights, and a 1."""
        _, jacobians = self.value.network.jacobians(x)
        return np.append(jacobians[-2][0, 0], 1.0)
