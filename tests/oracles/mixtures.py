"""A mixture of experts, from its definition: eager true online TD(λ), and the weights of ML-Poly with fading regrets."""

import numpy as np


def true_online_td(rows, n, cumulants, gammas, trace_decays, alpha, starts):
    """V_t(S_t) after learning from the transition into sample t, with dense weights and traces (Algorithm 2 of the paper)."""
    features = np.zeros((len(rows), n))
    for t, active in enumerate(rows):
        for i in active:
            features[t, i] += 1.0
    w, e, v_old, out = np.zeros(n), np.zeros(n), 0.0, np.zeros(len(rows))
    for t in range(len(rows)):
        if t == 0 or starts[t]:
            e, v_old = np.zeros(n), 0.0
        else:
            x, x_next = features[t - 1], features[t]
            v, v_next = w @ x, w @ x_next
            delta = cumulants[t] + gammas[t] * v_next - v
            decay = gammas[t - 1] * trace_decays[t - 1]
            e = decay * e + x - alpha * decay * (e @ x) * x
            w = w + alpha * (delta + v - v_old) * e - alpha * (v - v_old) * x
            v_old = v_next
        out[t] = w @ features[t]
    return out


def forecasts(experts, X, x, bases, gammas, starts, elapsed):
    """Forecasts of all experts at all samples. An expert is (base,) or (base, first column, width, n, step-size, λ)."""
    columns = []
    for expert in experts:
        b = bases[:, expert[0]]
        if len(expert) == 1:
            columns.append(b)
            continue
        _, first, width, n, step_size, lam = expert
        shaped = (1.0 - gammas) * x + gammas * b - np.append(b[0], b[:-1])
        rows = X[:, first : first + width]
        columns.append(b + true_online_td(rows, n, shaped, gammas, lam**elapsed, step_size / width, starts))
    return np.column_stack(columns)


def mean(w, f):
    """The weighted mean, as a difference from the first: without rounding where all agree, so that no regret is rounding alone."""
    return f[0] + w @ (f - f[0])


def mix(F, x, gammas, starts, looks, memory, room, naive, usual=1000.0):
    """Forecasts of the mixture, its weights after each sample, and (regret, loss of the mixture, losses) of every look.

    The first `naive` experts are naive forecasts. Their prior is 1 + 600 / (30 + n) at look n. That of the others is 1.
    """
    T, size = F.shape

    def spread(raw, looks):
        prior = np.where(np.arange(size) < naive, 1.0 + 20.0 * 30.0 / (30.0 + looks), 1.0)
        return prior * raw / (prior * raw).sum() if raw.sum() > 0.0 else prior / prior.sum()

    fade = 1.0 - 1.0 / memory if np.isfinite(memory) else 1.0
    R, S, w = np.zeros(size), np.zeros(size), spread(np.zeros(size), 0)
    largest, mean_size, seen = 0.0, 0.0, 0
    waiting, looked, out, weights, history = [], {}, np.zeros(T), np.zeros((T, size)), []
    for t in range(T):
        if t == 0 or starts[t]:
            waiting = []

        def came_true(k, t=t):
            """What is known of M_k at sample t, and the weight that is open."""
            known, open_weight = 0.0, 1.0
            for j in range(k + 1, t + 1):
                known += open_weight * (1.0 - gammas[j]) * x[j]
                open_weight *= gammas[j]
            return known, open_weight

        full = len(waiting) == room - 1
        for number, threshold in enumerate(looks):
            for place, k in enumerate(list(waiting)):
                if looked[k] > number:
                    continue
                known, open_weight = came_true(k)
                if open_weight > threshold and not (full and place == 0):
                    break
                looked[k] = number + 1
                y, p = known + open_weight * mean(w, F[t]), out[k]
                r = np.sign(p - y) * (p - F[k])
                seen += 1
                mean_size += max(1.0 / usual, 1.0 / seen) * (np.abs(r).mean() - mean_size)
                if mean_size <= 0.0:
                    continue
                r = r / mean_size
                history.append((r, abs(p - y) / mean_size, np.abs(F[k] - y) / mean_size))
                bound = fade * largest
                if np.abs(r).max() > bound:
                    largest = np.abs(r).max()
                    r = r * bound / largest
                else:
                    largest = bound
                R, S = np.maximum(fade * R + r, -300.0), fade**2 * S + r**2
                raw = np.maximum(R, 0.0) / (largest**2 + S) if largest > 0.0 else np.zeros(size)
                w = spread(raw, seen)
        waiting = [k for k in waiting if looked[k] < len(looks)]
        waiting.append(t)
        looked[t] = 0
        out[t], weights[t] = mean(w, F[t]), w
    return out, weights, history
