"""The compiled loop of a mixture over a block of samples: the experts learn, forecasts come true, and weights follow.

A fleet has thousands of mixtures, so their numbers must be few. Weights, traces and waiting forecasts are in single precision, as
differences in a *unit*: a power of two that is as large as the first difference of the stream, and grows when differences do.
Learners with the same features, step-size and λ share their trace, because it does not depend on what is learned.
"""

import math

import numpy as np

from trueonline.core.compiling.kernels import kernel, specialise
from trueonline.core.forms import pointer
from trueonline.streams.mixture.mixing import SIZE, look, mixed

# Columns of the plan, which has one row for each learner: where its weights begin, where its trace begins (-1: λ is 0 and needs
# none), whether it is the first that has this trace, its number of features, where its active features stand in a row of X, how
# many they are, and its base.
WEIGHTS, TRACE, LEADS, FEATURES, COLUMN, WIDTH, BASE = range(7)
PLAN = 7
STEP_SIZE, TRACE_DECAY = range(2)  # columns of the rates, likewise
SAMPLES, GAMMA, ELAPSED, UNIT = range(4)  # numbers of the state: how many samples, γ and Δt of the last one, and the unit
HEAD, WAITING, LOOKED = range(3)  # of the ring; from LOOKED on, for each look, the number of waiting samples that had it
KNOWN, OPEN, MADE, ORIGIN = range(
    4
)  # of a waiting sample: A_k, W_k, the forecast, and the base from which all three are measured
SLOT = 4
TINY = 1e-15  # a smaller entry of a trace changes no weight in single precision
LARGE = 2.0**40  # differences beyond so many units make the unit grow


@kernel
def along(vector, active, width):
    """The sum of a vector over the active features."""
    total = 0.0
    for i in range(width):
        total += vector[active[i]]
    return total


@kernel
def true_online_td(w, e, leads, n, x, x_next, width, reward, v_old, alpha, decay, gamma_next):
    """One step of true online TD(λ) over binary features, as in `methods.true_online_td`. Return V'."""
    v, v_next = along(w, x, width), along(w, x_next, width)
    delta = reward + gamma_next * v_next - v
    if leads:
        trace_x, shrink = along(e, x, width), np.float32(decay)
        for k in range(n):  # e ← γλe + φ − αγλ(eᵀφ)φ
            faded = shrink * e[k]
            e[k] = faded if abs(faded) > TINY else np.float32(0.0)
        for i in range(width):
            e[x[i]] += 1.0 - alpha * decay * trace_x
    step = np.float32(alpha * (delta + v - v_old))
    for k in range(n):  # w ← w + α(δ + V − V_old)e − α(V − V_old)φ
        w[k] += step * e[k]
    for i in range(width):
        w[x[i]] -= alpha * (v - v_old)
    return v_next


@kernel
def td(w, x, x_next, width, reward, alpha, gamma_next):
    """The same with λ = 0: the trace is φ."""
    delta = reward + gamma_next * along(w, x_next, width) - along(w, x, width)
    for i in range(width):
        w[x[i]] += alpha * delta


@kernel
def learn_experts(
    t, begins, plan, rates, naive, numbers, traces, v_old, last, state, forecast, X, x, base, base_before, gamma
):
    """Let the learners learn from the transition into sample t, and write the forecasts of all experts.

    A forecast is its distance from the first base, in units.
    """
    unit, origin = state[UNIT], base[naive[0]]
    for i in range(naive.size):
        forecast[i] = (base[naive[i]] - origin) / unit
    for i in range(plan.shape[0]):
        own, rate = pointer(plan, i * PLAN), pointer(rates, i * 2)
        w, e = pointer(numbers, own[WEIGHTS]), pointer(traces, max(own[TRACE], 0))
        column, n, width, b = own[COLUMN], own[FEATURES], own[WIDTH], base[own[BASE]]
        x_next = pointer(X, t * X.shape[1] + column)
        if begins:
            v_old[i] = 0.0
            if own[LEADS]:
                for k in range(n):
                    e[k] = 0.0
        else:
            active = pointer(last, column)
            if t > 0:
                active = pointer(X, (t - 1) * X.shape[1] + column)
            # The cumulant of the shaped question, (1 − γ)x' + γb' − b, as differences: exactly zero where nothing changes.
            cumulant = ((1.0 - gamma) * (x - b) + (b - base_before[own[BASE]])) / unit
            if own[TRACE] < 0:
                td(w, active, x_next, width, cumulant, rate[STEP_SIZE], gamma)
            else:
                lam = rate[TRACE_DECAY]
                if state[ELAPSED] != 1.0:
                    lam = lam ** state[ELAPSED]
                v_old[i] = true_online_td(
                    w,
                    e,
                    own[LEADS],
                    n,
                    active,
                    x_next,
                    width,
                    cumulant,
                    v_old[i],
                    rate[STEP_SIZE],
                    state[GAMMA] * lam,
                    gamma,
                )
        forecast[naive.size + i] = (b - origin) / unit + along(w, x_next, width)


@kernel
def follow_unit(state, x, base, base_before, bases, numbers, v_old, forecasts, carried):
    """Let the unit grow, and everything that is measured in it shrink, if a difference is too large for it."""
    largest = 0.0
    for i in range(bases):
        largest = max(largest, abs(x - base[i]), abs(base[i] - base[0]))
        if state[SAMPLES] > 0.0:
            largest = max(largest, abs(base[i] - base_before[i]))
    if largest > LARGE * state[UNIT]:
        grown = math.ldexp(1.0, max(math.frexp(largest)[1], -900))
        ratio = state[UNIT] / grown
        state[UNIT] = grown
        for k in range(numbers.size):
            numbers[k] *= ratio
        for k in range(v_old.size):
            v_old[k] *= ratio
        for k in range(forecasts.shape[0]):
            for i in range(forecasts.shape[1]):
                forecasts[k, i] *= ratio
        carried[SIZE] *= ratio


def run(
    plan, rates, naive, looks, fade, most, numbers, traces, v_old, last, last_bases, state, table, carried, ring, forecasts,
    slots, begin, X, values, bases, gammas, elapsed, starts, out,
):  # fmt: skip
    """Learn from samples of a block, and write the mixture's forecast at each of them.

    Return the number of samples that are done: fewer than all, if there is no room for another one to wait. `most` may wait.
    """
    size, room = forecasts.shape[1], forecasts.shape[0]
    regret, squares, weights = pointer(table, 0), pointer(table, size), pointer(table, 2 * size)
    looked = pointer(ring, LOOKED)
    sums, v, numbers_now, base_before = pointer(carried, 0), pointer(v_old, 0), pointer(state, 0), pointer(last_bases, 0)
    if begin > 0:
        base_before = pointer(bases, (begin - 1) * bases.shape[1])
    for t in range(begin, values.size):
        gamma, x, base, head, waiting = (
            gammas[t],
            values[t],
            pointer(bases, t * bases.shape[1]),
            ring[HEAD],
            ring[WAITING],
        )
        begins = starts[t] or numbers_now[SAMPLES] == 0.0
        if begins:
            waiting = 0
            for number in range(looks.size):
                looked[number] = 0
        if waiting == room - 1 and room < most:
            return t
        follow_unit(state, x, base, base_before, bases.shape[1], numbers, v_old, forecasts, carried)
        for j in range(waiting):  # what has come true of the waiting samples: M = (1 − γ)x' + γM'
            slot = pointer(slots, (head + j) % room * SLOT)
            slot[KNOWN] += slot[OPEN] * (1.0 - gamma) * (x - slot[ORIGIN])
            slot[OPEN] *= gamma
        now = (head + waiting) % room
        newest, slot_now, unit, origin = (
            pointer(forecasts, now * size),
            pointer(slots, now * SLOT),
            numbers_now[UNIT],
            base[naive[0]],
        )
        learn_experts(
            t, begins, plan, rates, naive, numbers, traces, v, last, numbers_now, newest, X, x, base, base_before, gamma
        )  # fmt: skip
        for number in range(looks.size):
            while looked[number] < waiting:
                k = (head + looked[number]) % room
                full, slot = looked[number] == 0 and waiting == room - 1, pointer(slots, k * SLOT)
                if slot[OPEN] > looks[number] and not full:
                    break
                y = slot[KNOWN] + slot[OPEN] * (origin + unit * mixed(weights, newest, size) - slot[ORIGIN])
                made = pointer(forecasts, k * size)
                look(regret, squares, weights, sums, fade, made, slot[MADE] / unit, y / unit, naive.size, size)
                looked[number] += 1
        done = looked[looks.size - 1]
        for number in range(looks.size):
            looked[number] -= done
        ring[HEAD], ring[WAITING] = (head + done) % room, waiting + 1 - done
        away = unit * mixed(weights, newest, size)
        out[t] = origin + away
        slot_now[KNOWN], slot_now[OPEN], slot_now[MADE], slot_now[ORIGIN] = 0.0, 1.0, away, origin
        numbers_now[SAMPLES] += 1.0
        numbers_now[GAMMA], numbers_now[ELAPSED] = gamma, elapsed[t]
        base_before = base
    return values.size


RUN = specialise(run, "mixture")
