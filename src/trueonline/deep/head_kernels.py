"""One step of a network whose last layer learns by a linear method, as compiled loops.

The method's memory holds the weights of the last layer. The features are the units of the last hidden layer, and a 1 for the bias.
After each step the weights are copied to the network, where the next pass reads them.
"""

from __future__ import annotations

from typing import Any

from trueonline.control.transitions import moved
from trueonline.core.compiling.kernels import inlined, kept_with, kernel, specialise
from trueonline.core.forms import pointer
from trueonline.core.loops import names_of, transit
from trueonline.core.memory.layout import PLACE, at
from trueonline.core.memory.operations import weight_in
from trueonline.core.transition import GAMMA_NEXT, LAM_NEXT
from trueonline.deep import kernels
from trueonline.deep.kernels import BEST, bounded_update, choose_output, fits, forward, has, is_sound, units

step_here = step_between = None  # placeholders: transitions with the rule of a method
attach_net = kernels.attach


@kernel
def read_features(net, features):
    """Write the units of the last hidden layer, and a 1."""
    n = units(net, net.layers - 1)
    for i in range(n):
        features[i] = net.h[net.outputs - n + i]
    features[n] = 1.0


@kernel
def learn_body(net, head, places, output, delta, alpha, decay):
    """ObGD on the body, along the gradient with the weights before the head learned; then copy its weights to the last layer."""
    choose_output(net, output)
    bounded_update(net, net.here, delta, alpha, decay)
    one = at(head, places, 0)
    first = net.parameters - one.n
    for i in range(one.n):
        net.w[first + i] = weight_in(one, i)


def learn(address, head, places, ahead, output, reward, bootstrap, lam, gamma_next, alpha, decay):
    """Learn from one transition; return δ. ValueError before anything changes, for input that does not fit, or divergence."""
    net = attach_net(address)
    if not (fits(net, net.here) and fits(net, net.ahead) and has(net, output)):
        raise ValueError
    now, v_next = pointer(head, PLACE), 0.0
    forward(net, net.ahead)
    read_features(net, pointer(ahead, 0))
    if gamma_next != 0.0:
        v_next = net.v[0]
    forward(net, net.here)
    delta = reward + gamma_next * v_next - net.v[0]
    if not is_sound(net, abs(delta) + abs(net.v[0]), reward, gamma_next):
        raise ValueError
    read_features(net, now)  # in place of the features of the step before: the body has changed since
    delta = step_here(head, places, ahead, None, None, None, reward, gamma_next, lam)
    learn_body(net, head, places, output, delta, alpha, decay)
    return delta


def act(
    address, head, places, here, ahead, q, settings, action, reward, bootstrap, lam, gamma_next, alpha, decay
):  # fmt: skip
    """The same for the value of an action. `bootstrap` is the next action, or BEST."""
    net = attach_net(address)
    if not (fits(net, net.here) and fits(net, net.ahead) and has(net, action) and has(net, max(bootstrap, 0))):
        raise ValueError
    v_next, following = 0.0, max(bootstrap, 0)
    forward(net, net.ahead)
    read_features(net, pointer(ahead, 0))
    if bootstrap == BEST:
        for a in range(1, q.size):
            if net.v[a] > net.v[following]:
                following = a
    for a in range(q.size):
        q[a] = net.v[a]
    if gamma_next != 0.0:
        v_next = gamma_next * net.v[following]
    forward(net, net.here)
    delta = reward + v_next - net.v[action]
    if not is_sound(net, abs(delta) + abs(net.v[action]), reward, gamma_next):
        raise ValueError
    read_features(net, pointer(here, 0))
    settings[GAMMA_NEXT], settings[LAM_NEXT] = gamma_next, lam
    delta = step_between(head, places, here, None, action, reward, ahead, None, q, None, following, settings)
    learn_body(net, head, places, action, delta, alpha, decay)
    return delta


def compiled(rule: Any, memory: str) -> tuple[Any, Any]:
    """The entry points `learn` and `act` with the rule of a method, kept with the rule."""
    made = kept_with(rule)
    if ("head", memory) not in made:
        names, name = names_of(rule, memory, adapted=False), f"{rule.py_func.__name__}_head"
        learning = specialise(learn, name, step_here=inlined(transit, **names))
        made["head", memory] = learning, specialise(act, name, step_between=inlined(moved, **names))
    return made["head", memory]
