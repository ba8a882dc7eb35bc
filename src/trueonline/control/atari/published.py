"""Sarsa(λ) as the program that was published with the paper really computes it (its Asterix experiment).

It differs from the algorithms of the text:
- traces below 0.01 are set to 0 after they have decayed;
- the dutch trace's increment is left out unless 1 − α eᵀψ > 0.01;
- accumulating and replacing traces decay, are added to, then used; the dutch trace is added to, used, then decays;
- where a value is above 10⁸ or no number, accumulate and replace do not learn at that step, and true online stops the run;
- actions are chosen by C's `rand`: one number always for ties (those within 1e-10), one for whether to explore, which is
  when it is divisible by 100, and one for the action if so.

Nothing here is exact in the sense of this package; it is exact in repeating that program, bit for bit.
"""

from __future__ import annotations

import numpy as np

from trueonline.core.compiling.kernels import kernel, specialise

THRESHOLD = 0.01
DIVERGED = 1e8
TIE = 1e-10
ACCUMULATE, REPLACE, TRUE_ONLINE = range(3)
CODES = {"accumulate": ACCUMULATE, "replace": REPLACE, "true_online": TRUE_ONLINE}
SKIPPED = 3274  # numbers that the program has drawn before its first choice


# --- C's random numbers ---------------------------------------------------------------------------


def seeded(seed: int) -> np.ndarray:
    """The state of glibc's `rand` after `srand(seed)`: 31 words r and a position.

    r_i = r_{i−3} + r_{i−31} (mod 2³²), of which the upper 31 binary digits are drawn; the first 310 are not used.
    """
    word = seed or 1
    state = np.zeros(32, np.uint32)
    for i in range(31):
        state[i] = word % 2**32
        word = 16807 * (word if word < 2**31 else word - 2**32) % (2**31 - 1)
    state[31] = 3  # the first three words are not added to
    for _ in range(310):
        rand.py_func(state)
    return state


@kernel
def rand(state):
    """The next number, from 0 to 2³¹ − 1."""
    i = state[31]
    state[i] = np.uint32((np.uint64(state[i]) + np.uint64(state[(i + 28) % 31])) & np.uint64(0xFFFFFFFF))
    state[31] = (i + 1) % 31
    return np.int64(state[i] >> 1)


# --- The program's steps --------------------------------------------------------------------------


@kernel
def evaluate(w, x, q):
    """q[a] ← the sum of the weights of the active features, in their order."""
    for a in range(q.size):
        q[a] = 0.0
    for i in x:
        for a in range(q.size):
            q[a] += w[i, a]


@kernel
def epsilon_greedy(q, one_in, random):
    best = q[0]
    for value in q:
        best = max(best, value)
    ties = 0
    for value in q:
        ties += abs(value - best) < TIE
    left = rand(random) % ties if ties > 0 else 0
    action = 0
    for a in range(q.size):
        if abs(q[a] - best) < TIE:
            if left == 0:
                action = a
                break
            left -= 1
    if rand(random) % one_in == 0:
        action = rand(random) % q.size
    return action


def begin(w, x, q, one_in, random):
    """Choose the first action of an episode; return it and its value."""
    evaluate(w, x, q)
    action = epsilon_greedy(q, one_in, random)
    return action, q[action]


def step(method, w, e, traced, count, x, action, reward, x_next, ends, q_old, alpha, gamma, lam, q, one_in, random):
    """Learn from one transition; return the next action, its value, and how many entries are traced (−1: diverged)."""
    evaluate(w, x, q)
    sound = True
    for value in q:
        sound = sound and abs(value) <= DIVERGED
    if not sound and method == TRUE_ONLINE:
        return 0, 0.0, -1
    value = q[action]
    action_next, value_next = 0, 0.0
    if not ends:
        evaluate(w, x_next, q)
        action_next = epsilon_greedy(q, one_in, random)
        value_next = q[action_next]
    if not sound:
        return action_next, value_next, count
    delta = reward + gamma * value_next - value
    if method == TRUE_ONLINE:
        along = 0.0
        for i in x:
            along += e[i, action]
        if 1 - alpha * along > THRESHOLD:
            for i in x:
                count = imprint(e, traced, count, i, action, e[i, action] + (1 - alpha * along))
        correction = value - q_old
        learn(w, e, traced, count, alpha * (delta + correction))
        for i in x:
            w[i, action] = w[i, action] - alpha * correction
        count = decay(e, traced, count, gamma * lam)
    else:
        count = decay(e, traced, count, gamma * lam)
        for i in x:
            count = imprint(e, traced, count, i, action, e[i, action] + 1.0 if method == ACCUMULATE else 1.0)
        learn(w, e, traced, count, alpha * delta)
    return action_next, value_next, count


@kernel
def imprint(e, traced, count, i, action, value):
    if e[i, action] == 0.0:
        traced[count] = i * e.shape[1] + action
        count += 1
    e[i, action] = value
    return count


@kernel
def learn(w, e, traced, count, by):
    w, e = w.reshape(-1), e.reshape(-1)
    for k in range(count):
        i = traced[k]
        w[i] = w[i] + by * e[i]


@kernel
def decay(e, traced, count, by):
    e = e.reshape(-1)
    kept = 0
    for k in range(count):
        i = traced[k]
        faded = by * e[i]
        if faded < THRESHOLD:
            e[i] = 0.0
        else:
            e[i] = faded
            traced[kept] = i
            kept += 1
    return kept


BEGIN = specialise(begin, "published")
STEP = specialise(step, "published")
