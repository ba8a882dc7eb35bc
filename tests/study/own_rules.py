"""Rules of users' own that use a memory in other orders than the catalogue's rules do, and the plain forms of all swept rules."""

from functools import partial
from itertools import pairwise

import numpy as np

from tests.oracles import average_reward, family, prediction
from trueonline.core.compiling.kernels import kernel
from trueonline.core.memory import decay, imprint, learn, recall, shift


@kernel
def late_decay(memory, x, reward, x_next, alpha, lam, gamma_next):
    """Imprints, then decays, and pulls the next value towards zero."""
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    imprint(memory, x, 1.0, 0.0)
    learn(memory, alpha * delta)
    decay(memory, gamma_next * lam)
    shift(memory, x_next, -0.5 * alpha * v_next)
    return v, delta, v_next


@kernel
def two_rebases(memory, x, reward, x_next, alpha, gamma, lam, gamma_next):
    """Imprints twice, each time where the trace is so small or large that the memory rebases: by γλ/256, and by 256."""
    v, _, v_next = recall(memory, x, x_next)
    delta = reward + gamma_next * v_next - v
    decay(memory, gamma * lam)
    imprint(memory, x, 1.0, 0.0)
    learn(memory, alpha * delta)
    decay(memory, 256.0)
    imprint(memory, x, 0.5, 0.25 * alpha)
    decay(memory, 0.00390625)
    return v, delta, v_next


def plain_late_decay(x, rewards, discounts, w, alpha, lam):
    """`late_decay` with dense vectors: the weights after every step."""
    e = np.zeros(len(w))
    for t, reward in enumerate(rewards):
        v, v_next = w @ x[t], w @ x[t + 1]
        e = e + x[t]
        w = w + alpha * (reward + discounts[t] * v_next - v) * e
        e = discounts[t] * lam * e
        w = w - 0.5 * alpha * v_next * x[t + 1]
        yield w


def plain_two_rebases(x, rewards, discounts, w, alpha, lam):
    """`two_rebases` with dense vectors."""
    e, gamma = np.zeros(len(w)), 0.0
    for t, reward in enumerate(rewards):
        delta = reward + discounts[t] * (w @ x[t + 1]) - w @ x[t]
        e = gamma * lam * e + x[t]
        w = w + alpha * delta * e
        e = 256.0 * e + 0.5 * x[t]
        w = w + 0.25 * alpha * x[t]
        e, gamma = e / 256.0, discounts[t]
        yield w


ON_POLICY = {
    "accumulate": prediction.accumulate_td,
    "replace": prediction.replace_td,
    "true_online": prediction.true_online_td,
}
OFF_POLICY = {  # with the defaults of the parameters that some have
    "off_policy": family.off_policy_td,
    "true_online_off_policy": family.true_online_gtd,
    "gtd": family.gtd,
    "true_online_gtd": family.true_online_gtd,
    "tdrc": partial(family.gtd, kappa=1.0),
    "gtd2": partial(family.gtd, second=True),
    "proximal_gtd2": partial(family.gtd, second=True, ahead=True),
    "htd": family.htd,
    "tree_backup": family.tree_backup,
    "v_trace": partial(family.v_trace, rho_bar=1.0, c_bar=1.0),
    "abtd": partial(family.abtd, psi_0=1.0, psi_max=2.0),
    "emphatic": family.emphatic_td,
    "emphatic_beta": partial(family.emphatic_td, decay=0.8),
    "true_online_emphatic": family.true_online_emphatic_td,
}


def differential(episodes, w):
    betas = np.concatenate([episode.betas for episode in episodes])
    return average_reward.true_online_differential_td(episodes, w, betas)


PLAIN = {**ON_POLICY, **OFF_POLICY, "true_online_differential": differential}
OWN = {"late decay": (late_decay, plain_late_decay), "two rebases": (two_rebases, plain_two_rebases)}


def plain_weights(name, x, rewards, discounts, w, alpha, lam, *, eta=0.0, ratios=1.0, probabilities=0.0):
    """The weights of a swept method after every step, with dense vectors."""
    if name in OWN:
        return OWN[name][1](x, rewards, discounts, w, alpha, lam)
    each = {"trace_decays": lam, "alphas": alpha, "betas": eta * alpha, "interests": 1.0, "ratios": ratios}
    each["probabilities"] = probabilities
    filled = {name: np.broadcast_to(value, len(rewards)) for name, value in each.items()}
    episodes = []
    for at, to in pairwise([0, *np.flatnonzero(discounts[:-1] == 0.0) + 1, len(rewards)]):
        parts = {key: part[at:to] for key, part in filled.items()}
        episodes.append(prediction.Episode(x[at : to + 1], rewards[at:to], discounts[at:to], **parts))
    return (each[0] if isinstance(each, tuple) else each for each in PLAIN[name](episodes, w))
