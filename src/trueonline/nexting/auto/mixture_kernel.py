"""The compiled loop of a mixture over a block of samples: the experts learn, forecasts come true, and weights follow."""

from trueonline.core.forms import Active, pointer
from trueonline.core.kernels import kernel, specialise
from trueonline.core.memory import decay, value
from trueonline.core.memory.layout import memory_at
from trueonline.methods.true_online_td import true_online_td
from trueonline.nexting.auto.mixing import WEIGHT, look, mixed

# Columns of the plan, which has one row for each learner: where its memory begins in both buffers, its number of features,
# where its active features stand in a row of X, how many they are, and its base.
NUMBERS, PLACES, FEATURES, COLUMN, WIDTH, BASE = range(6)
STEP_SIZE, TRACE_DECAY = range(2)  # columns of the rates, likewise
SAMPLES, GAMMA, ELAPSED = range(3)  # numbers of the state: how many samples there were, and γ and Δt of the last one
HEAD, WAITING, LOOKED = range(3)  # of the ring; from LOOKED on, for each look, the number of waiting samples that had it


@kernel
def learn_experts(t, now, begins, plan, rates, naive, numbers, places, v_old, last, last_bases, state, forecasts,
                  X, values, bases, gamma):  # fmt: skip
    """Let the learners learn from the transition into sample t, and write the forecasts of all experts to row `now`."""
    for i in range(naive.size):
        forecasts[now, i] = bases[t, naive[i]]
    for i in range(plan.shape[0]):
        memory = memory_at(numbers, plan[i, NUMBERS], places, plan[i, PLACES], plan[i, FEATURES])
        base, width = plan[i, BASE], plan[i, WIDTH]
        x_next = Active(pointer(X, t * X.shape[1] + plan[i, COLUMN]), width)
        if begins:
            decay(memory, 0.0)
            v_old[i] = 0.0
        else:
            x = Active(pointer(last, plan[i, COLUMN]), width)
            # The cumulant of the shaped question, (1 − γ)x' + γb' − b, as differences: exactly zero where nothing changes.
            cumulant = (1.0 - gamma) * (values[t] - bases[t, base]) + (bases[t, base] - last_bases[base])
            lam = rates[i, TRACE_DECAY]
            if state[ELAPSED] != 1.0:
                lam = lam ** state[ELAPSED]
            _, _, v_next = true_online_td(
                memory, x, cumulant, x_next, v_old[i], rates[i, STEP_SIZE], state[GAMMA], lam, gamma
            )
            v_old[i] = v_next
        forecasts[now, naive.size + i] = bases[t, base] + value(memory, x_next)


def run(
    plan, rates, naive, looks, fade, numbers, places, v_old, last, last_bases, state, table, carried, ring, forecasts, known,
    open_weight, made, regrets, X, values, bases, gammas, elapsed, starts, out,
):  # fmt: skip
    """Learn from a block of samples, and write the mixture's forecast at each of them."""
    room, weights = open_weight.size, table[WEIGHT]
    for t in range(values.size):
        begins, gamma = starts[t] or state[SAMPLES] == 0.0, gammas[t]
        if begins:
            ring[WAITING:] = 0
        for j in range(ring[WAITING]):  # what has come true of the waiting samples: M = (1 − γ)x' + γM'
            k = (ring[HEAD] + j) % room
            known[k] += open_weight[k] * (1.0 - gamma) * values[t]
            open_weight[k] *= gamma
        now = (ring[HEAD] + ring[WAITING]) % room
        learn_experts(t, now, begins, plan, rates, naive, numbers, places, v_old, last, last_bases, state, forecasts,
                      X, values, bases, gamma)  # fmt: skip
        for number in range(looks.size):
            while ring[LOOKED + number] < ring[WAITING]:
                k = (ring[HEAD] + ring[LOOKED + number]) % room
                full = ring[LOOKED + number] == 0 and ring[WAITING] == room - 1
                if open_weight[k] > looks[number] and not full:
                    break
                y = known[k] + open_weight[k] * mixed(weights, forecasts[now])
                look(table, carried, fade, forecasts[k], made[k], y, regrets)
                ring[LOOKED + number] += 1
        done = ring[LOOKED + looks.size - 1]
        ring[HEAD] = (ring[HEAD] + done) % room
        ring[WAITING] += 1 - done
        for number in range(looks.size):
            ring[LOOKED + number] -= done
        out[t] = mixed(weights, forecasts[now])
        known[now], open_weight[now], made[now] = 0.0, 1.0, out[t]
        state[SAMPLES] += 1.0
        state[GAMMA], state[ELAPSED] = gamma, elapsed[t]
        for i in range(last.size):
            last[i] = X[t, i]
        for i in range(last_bases.size):
            last_bases[i] = bases[t, i]


RUN = specialise(run, "mixture")
