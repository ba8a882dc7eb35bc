"""The compiled loop of a mixture over a block of samples: the experts learn, forecasts come true, and weights follow."""

from trueonline.core.compiling.kernels import kernel, specialise
from trueonline.core.forms import Active, pointer
from trueonline.core.memory import decay, value
from trueonline.core.memory.layout import memory_at
from trueonline.methods.true_online_td import true_online_td
from trueonline.streams.mixture.mixing import look, mixed

# Columns of the plan, which has one row for each learner: where its memory begins in both buffers, its number of features,
# where its active features stand in a row of X, how many they are, and its base.
NUMBERS, PLACES, FEATURES, COLUMN, WIDTH, BASE = range(6)
STEP_SIZE, TRACE_DECAY = range(2)  # columns of the rates, likewise
SAMPLES, GAMMA, ELAPSED = range(3)  # numbers of the state: how many samples there were, and γ and Δt of the last one
HEAD, WAITING, LOOKED = range(3)  # of the ring; from LOOKED on, for each look, the number of waiting samples that had it


@kernel
def learn_experts(
    t, begins, plan, rates, naive, numbers, places, v_old, last, state, forecast, X, x, base, base_before, gamma
):
    """Let the learners learn from the transition into sample t, and write the forecasts of all experts."""
    for i in range(naive.size):
        forecast[i] = base[naive[i]]
    for i in range(plan.shape[0]):
        own, rate = pointer(plan, i * 6), pointer(rates, i * 2)
        memory = memory_at(numbers, own[NUMBERS], places, own[PLACES], own[FEATURES])
        column, b = own[COLUMN], base[own[BASE]]
        x_next = Active(pointer(X, t * X.shape[1] + column), own[WIDTH])
        if begins:
            decay(memory, 0.0)
            v_old[i] = 0.0
        else:
            active = pointer(last, column)
            if t > 0:
                active = pointer(X, (t - 1) * X.shape[1] + column)
            # The cumulant of the shaped question, (1 − γ)x' + γb' − b, as differences: exactly zero where nothing changes.
            cumulant = (1.0 - gamma) * (x - b) + (b - base_before[own[BASE]])
            lam = rate[TRACE_DECAY]
            if state[ELAPSED] != 1.0:
                lam = lam ** state[ELAPSED]
            _, _, v_next = true_online_td(
                memory, Active(active, own[WIDTH]), cumulant, x_next, v_old[i], rate[STEP_SIZE], state[GAMMA], lam, gamma
            )
            v_old[i] = v_next
        forecast[naive.size + i] = b + value(memory, x_next)


def run(
    plan, rates, naive, looks, fade, numbers, places, v_old, last, last_bases, state, table, carried, ring, forecasts, known,
    open_weight, made, X, values, bases, gammas, elapsed, starts, out,
):  # fmt: skip
    """Learn from a block of samples, and write the mixture's forecast at each of them."""
    size, room = forecasts.shape[1], open_weight.size
    regret, squares, weights = pointer(table, 0), pointer(table, size), pointer(table, 2 * size)
    looked, now_known, now_open = pointer(ring, LOOKED), pointer(known, 0), pointer(open_weight, 0)
    sums, v, numbers_now, base_before = pointer(carried, 0), pointer(v_old, 0), pointer(state, 0), pointer(last_bases, 0)
    for t in range(values.size):
        gamma, base, head, waiting = gammas[t], pointer(bases, t * bases.shape[1]), ring[HEAD], ring[WAITING]
        begins = starts[t] or numbers_now[SAMPLES] == 0.0
        if begins:
            waiting = 0
            for number in range(looks.size):
                looked[number] = 0
        for j in range(waiting):  # what has come true of the waiting samples: M = (1 − γ)x' + γM'
            k = (head + j) % room
            now_known[k] += now_open[k] * (1.0 - gamma) * values[t]
            now_open[k] *= gamma
        now = (head + waiting) % room
        newest = pointer(forecasts, now * size)
        learn_experts(
            t,
            begins,
            plan,
            rates,
            naive,
            numbers,
            places,
            v,
            last,
            numbers_now,
            newest,
            X,
            values[t],
            base,
            base_before,
            gamma,
        )
        for number in range(looks.size):
            while looked[number] < waiting:
                k = (head + looked[number]) % room
                full = looked[number] == 0 and waiting == room - 1
                if now_open[k] > looks[number] and not full:
                    break
                y = now_known[k] + now_open[k] * mixed(weights, newest, size)
                look(regret, squares, weights, sums, fade, pointer(forecasts, k * size), made[k], y, naive.size, size)
                looked[number] += 1
        done = looked[looks.size - 1]
        for number in range(looks.size):
            looked[number] -= done
        ring[HEAD], ring[WAITING] = (head + done) % room, waiting + 1 - done
        out[t] = mixed(weights, newest, size)
        now_known[now], now_open[now], made[now] = 0.0, 1.0, out[t]
        numbers_now[SAMPLES] += 1.0
        numbers_now[GAMMA], numbers_now[ELAPSED] = gamma, elapsed[t]
        base_before = base


RUN = specialise(run, "mixture")
