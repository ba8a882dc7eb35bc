"""One step of streaming deep RL as a compiled loop: forward, backward, the trace and the bounded update (ObGD).

A network's numbers lie in one array: settings, shape, parameters w, traces e, the units of the last forward pass, and what a
transition gives. The shape is the number of inputs, of the units of each hidden layer, and of outputs. A layer keeps the weights of
one input side by side, so all its units are computed together. A compiled step gets the address of the array as a number, because
Numba allocates a record for each array.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numba import types

from trueonline.core.compiling.kernels import inlined, kernel, outlined, primitive, specialise
from trueonline.core.forms import pointer

# Places of the settings, which come first. SLOPE is that of a leaky rectifier. From SHAPE to TAKEN they say where the other parts
# begin (see `Net`). From REWARD on they are what divergence is judged by: the largest |R| and 1/(1 − γ) so far, and the lengths of
# the present and the longest episode.
KAPPA, ENTROPY, SLOPE, SATURATES, LAYER_NORM, LAST, SHARE, LAYERS = range(8)
SHAPE, W, E, H, Y, D, SPREAD, HERE, AHEAD, TAKEN, REWARD, HORIZON, LENGTH, LONGEST, SETTINGS = range(8, 23)
PLAIN, DUTCH, HEAD = range(3)  # how the last layer learns: as the others, with a dutch trace, or by a head of its own
EPSILON = 1e-5  # of layer normalisation
SMALL = 1e-8  # under the root of a running variance
BEST = -1  # in place of an output: the largest
LEAST_DEVIATION = 1e-100  # of a Gaussian policy: a smaller one has diverged
MOST_INPUT = 1e100  # the size of an input: gradients by much larger ones would overflow
LIMIT = 10.0  # a network whose values exceed the largest return so often has diverged
LEAST_HORIZON, MOST_HORIZON = 100.0, 1e9  # of the largest return


class Net(NamedTuple):
    """A network inside a kernel: pointers into its array."""

    settings: Any
    w: Any  # the parameters, layer by layer: weights, then biases
    e: Any  # their traces
    h: Any  # the outputs of the units of all layers
    y: Any  # their inputs, normalised
    d: Any  # the gradient of what is learned by their inputs
    spread: Any  # of each layer: the root of the variance that divided its inputs
    shape: Any
    layers: Any
    parameters: Any  # their number
    outputs: Any  # where the outputs begin among the units
    v: Any  # the outputs
    slopes: Any  # the gradient of what is learned by the outputs
    here: Any  # the inputs of the state left
    ahead: Any  # those of the state entered
    taken: Any  # a continuous action


def count_parameters(shape: Any) -> int:
    """The number of parameters of a network."""
    return int(sum((n_in + 1) * n for n_in, n in pairwise(shape)))


def parts(shape: Any) -> dict[str, slice]:
    """Where the parts of a network's array lie, in the order of their places among the settings."""
    units, n = int(sum(shape[1:])), count_parameters(shape)
    sizes = {"shape": len(shape), "w": n, "e": n, "h": units, "y": units, "d": units, "spread": len(shape)}
    sizes |= {"here": shape[0], "ahead": shape[0], "taken": shape[-1]}
    ends = (SETTINGS + np.cumsum(list(sizes.values()))).tolist()
    return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}


@primitive
def floats(context: Any, address: Any, offset: Any) -> Any:
    """A pointer to the floats at an address, without the first `offset`."""
    kind = types.CPointer(types.float64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.gep(builder.inttoptr(arguments[0], context.get_value_type(kind)), [arguments[1]])

    return kind(address, types.int64), generate


@kernel
def part(address, place):
    """The part of an array whose beginning is in this place."""
    return floats(address, int(floats(address, 0)[place]))


@kernel
def attach(address):
    """The network in an array."""
    settings, shape = floats(address, 0), part(address, SHAPE)
    layers, parameters = int(settings[LAYERS]), int(settings[E] - settings[W])
    outputs = int(settings[Y] - settings[H]) - int(shape[layers])
    return Net(
        settings,
        part(address, W),
        part(address, E),
        part(address, H),
        part(address, Y),
        part(address, D),
        part(address, SPREAD),
        shape,
        layers,
        parameters,
        outputs,
        floats(address, int(settings[H]) + outputs),
        floats(address, int(settings[D]) + outputs),
        part(address, HERE),
        part(address, AHEAD),
        part(address, TAKEN),
    )


@kernel
def units(net, layer):
    """The number of units of a layer; 0 is that of the inputs."""
    return int(net.shape[layer])


def _add(w, e, n, share):
    for i in range(n):
        w[i] += share * e[i]


def _normalise(net, layer, first, n):
    mean = variance = 0.0
    for o in range(first, first + n):
        mean += net.y[o]
    mean /= n
    for o in range(first, first + n):
        variance += (net.y[o] - mean) ** 2
    spread = math.sqrt(variance / n + EPSILON)
    for o in range(first, first + n):
        net.y[o] = (net.y[o] - mean) / spread
    net.spread[layer] = spread


def _activate(net, first, n):
    slope = net.settings[SLOPE]
    for o in range(first, first + n):
        y = net.y[o]
        if net.settings[SATURATES] != 0.0:
            net.h[o] = math.tanh(y)
        else:
            net.h[o] = y if y > 0.0 else slope * y


def _forward(net, x):
    n_in, w, before, unit = units(net, 0), 0, 0, 0
    for layer in range(net.layers):
        n = units(net, layer + 1)
        for o in range(n):
            net.y[unit + o] = net.w[w + n_in * n + o]
        for i in range(n_in):
            x_i = x[i] if layer == 0 else net.h[before + i]
            for o in range(n):
                net.y[unit + o] += x_i * net.w[w + i * n + o]
        if layer < net.layers - 1:
            if net.settings[LAYER_NORM] != 0.0:
                normalise(net, layer, unit, n)
            activate(net, unit, n)
        before, unit = unit, unit + n
        w += (n_in + 1) * n
        n_in = n
    for o in range(n_in):
        net.v[o] = net.y[before + o]


def _through_units(net, layer, first, n):
    """From the gradient by the outputs of a hidden layer to that by the inputs of its units."""
    slope = net.settings[SLOPE]
    for o in range(first, first + n):
        if net.settings[SATURATES] != 0.0:
            net.d[o] *= 1.0 - net.h[o] ** 2
        else:
            net.d[o] *= 1.0 if net.y[o] > 0.0 else slope
    if net.settings[LAYER_NORM] != 0.0:
        mean = along = 0.0
        for o in range(first, first + n):
            mean += net.d[o]
            along += net.d[o] * net.y[o]
        mean /= n
        along /= n
        for o in range(first, first + n):
            net.d[o] = (net.d[o] - mean - net.y[o] * along) / net.spread[layer]


def _backward(net, x, decay):
    """e ← γλe + ∇, layer by layer from the last; return Σ|e|. The last layer has no trace here if a head learns it."""
    total, unit, end, scale = 0.0, net.outputs, net.parameters, 1.0
    if net.settings[LAST] == HEAD:
        scale = 0.0
    elif net.settings[LAST] == DUTCH:  # ∇ becomes ∇(1 − αγλeᵀ∇), with the α of the last update
        scale -= net.settings[SHARE] * decay * along_outputs(net, x)
    for layer in range(net.layers - 1, -1, -1):
        n_in, n = units(net, layer), units(net, layer + 1)
        w, before = end - (n_in + 1) * n, unit - n_in
        for o in range(n):
            bias = w + n_in * n + o
            net.e[bias] = decay * net.e[bias] + scale * net.d[unit + o]
            total += abs(net.e[bias])
        for i in range(n_in):
            x_i = x[i] if layer == 0 else net.h[before + i]
            row, along = w + i * n, 0.0
            for o in range(n):
                trace = decay * net.e[row + o] + x_i * (scale * net.d[unit + o])
                along += net.w[row + o] * net.d[unit + o]
                total += abs(trace)
                net.e[row + o] = trace
            if layer > 0:
                net.d[before + i] = along
        scale = 1.0
        if layer > 0:
            through_units(net, layer - 1, before, n_in)
        unit, end = before, w
    return total


def _along_outputs(net, x):
    """eᵀ∇ over the last layer."""
    n_in, n, total = units(net, net.layers - 1), units(net, net.layers), 0.0
    w = net.parameters - (n_in + 1) * n
    for i in range(n_in + 1):
        x_i = 1.0 if i == n_in else (x[i] if net.layers == 1 else net.h[net.outputs - n_in + i])
        for o in range(n):
            total += net.e[w + i * n + o] * x_i * net.d[net.outputs + o]
    return total


add, normalise, activate, forward, through_units, along_outputs, backward = (
    outlined(each, reassociate=True)
    for each in (_add, _normalise, _activate, _forward, _through_units, _along_outputs, _backward)
)


# --- Updates --------------------------------------------------------------------------------------


@kernel
def largest(values, n):
    """The largest of n values."""
    best = values[0]
    for o in range(1, n):
        best = max(best, values[o])
    return best


@kernel
def td_error(net, x, output, reward, x_next, bootstrap, gamma_next):
    """δ = R + γv(S′) − v(S), with v(S) = `output`, and v(S′) = output `bootstrap` or the largest. The newest pass is that of S."""
    v_next = 0.0
    if gamma_next != 0.0:
        forward(net, x_next)
        v_next = largest(net.v, units(net, net.layers)) if bootstrap == BEST else net.v[bootstrap]
    forward(net, x)
    return reward + gamma_next * v_next - net.v[output]


@kernel
def is_sound(net, size, reward, gamma):
    """Whether values of this size are possible after such a reward and γ. If not, the network has diverged.

    The largest return has the largest |R| so far in each of 1/(1 − γ) steps, or of those of the longest episode so far, if they are
    fewer. |R| counts as 1 at least, and the first values of a network are possible.
    """
    length = net.settings[LENGTH] + 1.0
    longest = max(length, net.settings[LONGEST])
    horizon = max(1.0 / max(1.0 - gamma, 1.0 / MOST_HORIZON), net.settings[HORIZON])
    steps = min(horizon, max(longest, LEAST_HORIZON))
    largest = max(abs(reward), net.settings[REWARD])
    if net.settings[REWARD] == 0.0:
        largest = max(largest, 1.0, size / steps)
    sound = size < LIMIT * steps * largest
    if sound:
        net.settings[REWARD], net.settings[HORIZON] = largest, horizon
        net.settings[LENGTH], net.settings[LONGEST] = 0.0 if gamma == 0.0 else length, longest
    return sound


@kernel
def bounded_update(net, x, delta, alpha, decay):
    """ObGD. e ← γλe + ∇, then w ← w + α/max(M, 1)·δe with M = ακ·max(|δ|, 1)·Σ|e|. `net.slopes` has the gradient by the outputs."""
    total = backward(net, x, decay)
    overshoot = alpha * net.settings[KAPPA] * max(abs(delta), 1.0) * total
    net.settings[SHARE] = alpha / max(overshoot, 1.0)
    add(net.w, net.e, net.parameters, net.settings[SHARE] * delta)


@kernel
def choose_output(net, output):
    """The gradient of one output by the outputs."""
    for o in range(units(net, net.layers)):
        net.slopes[o] = 1.0 if o == output else 0.0


@kernel
def update_value(net, x, output, reward, x_next, bootstrap, gamma_next, alpha, decay):
    """Learn the value of one output; return δ, or NaN before anything changes."""
    delta = td_error(net, x, output, reward, x_next, bootstrap, gamma_next)
    if is_sound(net, abs(delta) + abs(net.v[output]), reward, gamma_next):
        choose_output(net, output)
        bounded_update(net, x, delta, alpha, decay)
        return delta
    return np.nan


@kernel
def softmax_slopes(net, action, weight):
    """The gradient of ln π(A|S) + weight·H(π) by the outputs, with π their softmax; return the size of the outputs."""
    n, best = units(net, net.layers), largest(net.v, units(net, net.layers))
    total = entropy = size = 0.0
    for o in range(n):
        total += math.exp(net.v[o] - best)
    log_total = best + math.log(total)
    for o in range(n):
        entropy -= math.exp(net.v[o] - log_total) * (net.v[o] - log_total)
    for o in range(n):
        log_pi = net.v[o] - log_total
        pi = math.exp(log_pi)
        net.slopes[o] = (1.0 if o == action else 0.0) - pi - weight * pi * (log_pi + entropy)
        size += abs(net.v[o])
    return size


@kernel
def gaussian_slopes(net, action, weight):
    """The same for independent Gaussians and the action in `net.taken`. The outputs are their means μ, and then s with the standard
    deviation σ = ln(1 + e^s).

    ∂ ln π/∂μ = z/σ and ∂(ln π + weight·H)/∂σ = (z² − 1 + weight)/σ, with z = (a − μ)/σ.
    """
    n, total = units(net, net.layers) // 2, 0.0
    for o in range(n):
        s = net.v[n + o]
        sigma = max(s, 0.0) + math.log1p(math.exp(-abs(s)))
        if not sigma > LEAST_DEVIATION:
            return np.inf
        z = (net.taken[o] - net.v[o]) / sigma
        net.slopes[o] = z / sigma
        net.slopes[n + o] = (z * z - 1.0 + weight) / sigma * (1.0 - math.exp(-sigma))  # dσ/ds = 1 − e^−σ
        total += abs(net.v[o]) + abs(s) + 0.0 * (net.slopes[o] + net.slopes[n + o])
    return total


policy_slopes = softmax_slopes


def update_actor_critic(critic, actor, x, action, reward, x_next, gamma_next, alpha, decay):
    """Learn a value, and a policy along ∇[ln π(A|S) + τ·sign(δ)·H(π)]; return δ, or NaN before anything changes."""
    delta = td_error(critic, x, 0, reward, x_next, 0, gamma_next)
    forward(actor, x)
    size = policy_slopes(actor, action, actor.settings[ENTROPY] * ((delta > 0.0) - (delta < 0.0)))
    if not (is_sound(critic, abs(delta) + abs(critic.v[0]), reward, gamma_next) and is_sound(actor, size, 0.0, 1.0)):
        return np.nan
    choose_output(critic, 0)
    bounded_update(critic, x, delta, alpha, decay)
    bounded_update(actor, x, delta, alpha, decay)
    return delta


update_both = inlined(update_actor_critic)


# --- Entry points ---------------------------------------------------------------------------------


@kernel
def fits(net, x):
    """Whether none of the inputs is too large, or not a number."""
    total = 0.0
    for i in range(units(net, 0)):
        total += abs(x[i])
    return total <= MOST_INPUT * units(net, 0)


@kernel
def has(net, output):
    """Whether there is such an output."""
    return 0 <= output < units(net, net.layers)


def take_numbered(actor, actions, t):
    """The action of transition t."""
    return actions[t]


def take_vector(actor, actions, t):
    """The same for a vector, which is copied to `actor.taken`."""
    for o in range(actions.shape[1]):
        actor.taken[o] = actions[t, o]
    return 0


take = kernel(take_numbered)


def evaluate(address):
    """Compute the outputs for `here`."""
    net = attach(address)
    forward(net, net.here)


def learn(address, output, reward, bootstrap, gamma_next, alpha, decay):
    """Learn from one transition; return δ. ValueError before anything changes, for input that does not fit, or divergence."""
    net = attach(address)
    if not (fits(net, net.here) and fits(net, net.ahead) and has(net, output) and has(net, max(bootstrap, 0))):
        raise ValueError
    delta = update_value(net, net.here, output, reward, net.ahead, bootstrap, gamma_next, alpha, decay)
    if math.isnan(delta):
        raise ValueError
    return delta


def learn_both(address, actor_address, action, reward, gamma_next, alpha, decay):
    """Learn a value and a policy from one transition, as `learn` does."""
    critic, actor = attach(address), attach(actor_address)
    if not (fits(critic, critic.here) and fits(critic, critic.ahead) and has(actor, action)):
        raise ValueError
    delta = update_both(critic, actor, critic.here, action, reward, critic.ahead, gamma_next, alpha, decay)
    if math.isnan(delta):
        raise ValueError
    return delta


def run(address, X, outputs, rewards, bootstraps, gammas, alpha, decays, values, deltas):
    """Learn from a stream; return the number of transitions before the network has diverged. Input fits."""
    net = attach(address)
    for t in range(rewards.size):
        x, x_next = pointer(X, t * X.shape[1]), pointer(X, (t + 1) * X.shape[1])
        deltas[t] = update_value(net, x, outputs[t], rewards[t], x_next, bootstraps[t], gammas[t], alpha, decays[t])
        values[t] = net.v[outputs[t]]
        if math.isnan(deltas[t]):
            return t
    return rewards.size


def run_both(address, actor_address, X, actions, rewards, gammas, alpha, decays, values, deltas):
    """The same for a value and a policy."""
    critic, actor = attach(address), attach(actor_address)
    for t in range(rewards.size):
        x, x_next, action = pointer(X, t * X.shape[1]), pointer(X, (t + 1) * X.shape[1]), take(actor, actions, t)
        deltas[t] = update_both(critic, actor, x, action, rewards[t], x_next, gammas[t], alpha, decays[t])
        values[t] = critic.v[0]
        if math.isnan(deltas[t]):
            return t
    return rewards.size


def observe(moments, x):
    """Welford's update of [count, means, sums of squares] by the numbers x."""
    n = x.size
    moments[0] += 1.0
    for i in range(n):
        before = x[i] - moments[1 + i]
        moments[1 + i] += before / moments[0]
        moments[1 + n + i] += before * (x[i] - moments[1 + i])


def normalised(moments, x, out):
    """(x − mean)/√(variance + ε). The variance of fewer than two numbers is 1."""
    n, count = x.size, moments[0]
    for i in range(n):
        variance = moments[1 + n + i] / (count - 1.0) if count > 1.0 else 1.0
        out[i] = (x[i] - moments[1 + i]) / math.sqrt(variance + SMALL)


EVALUATE, LEARN, LEARN_BOTH, RUN, RUN_BOTH, OBSERVE, NORMALISED = (
    specialise(each, "net") for each in (evaluate, learn, learn_both, run, run_both, observe, normalised)
)
_GAUSSIAN = inlined(update_actor_critic, policy_slopes=gaussian_slopes)
LEARN_GAUSSIAN = specialise(learn_both, "gaussian", update_both=_GAUSSIAN)
RUN_GAUSSIAN = specialise(run_both, "gaussian", update_both=_GAUSSIAN, take=kernel(take_vector))
