"""Oracles of agents with a target policy: the equations of Sutton and Barto (2018), chapter 12, with dense vectors.

| agent | equations |
|---|---|
| Expected Sarsa(λ) | section 12.9: δ ← R + γV̄(S') − wᵀx; z ← γλρz + x; w ← w + αδz |
| Tree Backup(λ) | section 12.10: the same, z ← γλπ(A|S)z + x |
| GQ(λ) | section 12.11: … − αγ(1 − λ)(zᵀv)x̄'; v ← v + βδz − β(vᵀx)x |

γ and λ of a transition belong to the state that it enters. This file imports nothing of the package that it judges.
"""

import numpy as np


def epsilon_greedy(values, epsilon):
    """π of all actions; ties are shared."""
    best = values >= values.max() - 1e-10 * max(1.0, abs(values.max()))
    return (1.0 - epsilon) * best / best.sum() + epsilon / len(values)


def follow(stream, n_features, n_actions, choose, behaviour, epsilon, kind, alpha, beta=0.0):
    """Yield w, an array over feature and action, after every transition.

    `stream` has (x, reward, γ, λ) for each state that is entered: x None ends the episode, and a reward of None begins one.
    `choose` gives the next action from the values, and `behaviour` the probabilities of actions.
    """
    w, v = np.zeros((2, n_features * n_actions))
    z, psi, gamma, lam, kept = None, None, 0.0, 0.0, 0.0

    def block(x, chances):
        return np.outer(x, chances).ravel()

    for x, reward, gamma_given, lam_next in stream:
        gamma_next = 0.0 if x is None or reward is None else gamma_given
        mean, going_on = np.zeros(n_features * n_actions), None
        if x is not None:
            q = np.array([w @ block(x, one) for one in np.eye(n_actions)])
            pi, action = epsilon_greedy(q, epsilon), choose(q)
            mean = block(x, pi)
            cut = pi[action] if kind == "tree backup" else pi[action] / behaviour(q)[action]
            going_on = block(x, np.eye(n_actions)[action]), cut
        if reward is not None:
            delta = reward + gamma_next * (w @ mean) - w @ psi
            z = gamma * lam * kept * z + psi
            correction = gamma_next * (1.0 - lam_next) * (z @ v) * mean if kind == "gq" else 0.0
            w = w + alpha * (delta * z - correction)
            v = v + beta * (delta * z - (v @ psi) * psi)
            yield w.reshape(n_features, n_actions).copy()
        else:
            z = np.zeros_like(w)
        gamma, lam = gamma_next, lam_next
        if going_on is not None:
            psi, kept = going_on
