/* The competitors in C: what a C programmer would write for one job, without checking any input.

   `c_loops.py` compiles this file twice, with and without leave to reassociate sums, and calls it through ctypes.
   Every loop begins anew (no trace, V_old = 0), learns from `steps` transitions between steps + 1 rows of X, and writes
   V_t(S_t) to `values`. */

#include <math.h>
#include <stdint.h>

#define EDGE 1e-2
#define DROP 1e-20
#define SPARE 64

/* --- True online TD(λ) for few active features: what every entry has to undergo is owed, see memory.py ------------- */

typedef struct {
    double *u, *z, *y;    /* w_i = u_i + y_k + c·z_k and e_i = s·z_k with k = slot_i */
    int32_t *slot, *owner; /* slot 0: no trace; z_0 = y_0 = 0 */
    double c;
    int64_t count, room;
} Memory;

/* y ← y + c·z and z ← s·z over the list; entries that have faded leave it when it has doubled since the last look. */
static __attribute__((noinline)) int64_t rebase(Memory *m, int64_t count, double s, double c)
{
    double *restrict y = m->y, *restrict z = m->z;
    for (int64_t k = 1; k <= count; k++) {
        y[k] += c * z[k];
        z[k] *= s;
    }
    if (count < m->room && s != 0.0)
        return count;
    double norms[8] = {0}; /* eight sums: without leave to reassociate, one would be a chain of additions */
    int64_t k = 1;
    for (; k + 7 <= count; k += 8)
        for (int j = 0; j < 8; j++)
            norms[j] += fabs(z[k + j]);
    for (; k <= count; k++)
        norms[0] += fabs(z[k]);
    double norm = 0.0;
    for (int j = 0; j < 8; j++)
        norm += norms[j];
    int64_t kept = 0;
    for (k = 1; k <= count; k++) {
        int32_t i = m->owner[k];
        if (fabs(z[k]) <= DROP * norm) {
            m->u[i] += y[k];
            m->slot[i] = 0;
        } else {
            kept++;
            m->slot[i] = kept;
            m->owner[kept] = i;
            z[kept] = z[k];
            y[kept] = y[k];
        }
    }
    m->room = 2 * kept + SPARE;
    return kept;
}

void lazy_true_online(Memory *m, const int64_t *restrict X, int64_t active, const double *restrict R, int64_t steps,
                      double alpha, double gamma, double lam, double *restrict values)
{
    double *restrict u = m->u, *restrict z = m->z, *restrict y = m->y;
    int32_t *restrict slot = m->slot, *restrict owner = m->owner;
    double s = 0.0, c = m->c, v_old = 0.0, decay = 0.0;
    int64_t count = m->count;
    for (int64_t t = 0; t < steps; t++) {
        const int64_t *x = X + t * active, *x_next = x + active;
        double v = 0.0, trace_x = 0.0, v_next = 0.0;
        for (int64_t j = 0; j < active; j++) {
            int64_t i = x[j], k = slot[i];
            v += u[i] + (y[k] + c * z[k]);
            trace_x += z[k];
        }
        for (int64_t j = 0; j < active; j++) {
            int64_t i = x_next[j], k = slot[i];
            v_next += u[i] + (y[k] + c * z[k]);
        }
        double delta = R[t] + gamma * v_next - v;
        double a = 1.0 - alpha * decay * (s * trace_x), b = -alpha * (v - v_old);
        s *= decay;
        if (s < EDGE) {
            count = rebase(m, count, s, c);
            s = 1.0;
            c = 0.0;
        }
        double a_z = a / s, b_y = b - c * a_z;
        for (int64_t j = 0; j < active; j++) {
            int64_t i = x[j], k = slot[i];
            if (k == 0) {
                k = ++count;
                slot[i] = (int32_t)k;
                owner[k] = (int32_t)i;
                z[k] = a_z;
                y[k] = b_y;
            } else {
                z[k] += a_z;
                y[k] += b_y;
            }
        }
        c += alpha * (delta + v - v_old) * s;
        values[t] = v;
        v_old = v_next;
        decay = gamma * lam;
    }
    m->c = c;
    m->count = count;
    /* The trace ends here (the next call begins anew), so s need not be kept. */
}

/* The same features with eager vectors: every step passes over all n entries of e and w. */
void eager_true_online(int64_t n, double *restrict w, double *restrict e, const int64_t *restrict X, int64_t active,
                       const double *restrict R, int64_t steps, double alpha, double gamma, double lam,
                       double *restrict values)
{
    double v_old = 0.0, decay = 0.0;
    for (int64_t t = 0; t < steps; t++) {
        const int64_t *x = X + t * active, *x_next = x + active;
        double v = 0.0, trace_x = 0.0, v_next = 0.0;
        for (int64_t j = 0; j < active; j++) {
            v += w[x[j]];
            trace_x += e[x[j]];
            v_next += w[x_next[j]];
        }
        double delta = R[t] + gamma * v_next - v;
        double dutch = 1.0 - alpha * decay * trace_x;
        double b = alpha * (delta + v - v_old);
        for (int64_t i = 0; i < n; i++) { /* one pass for both vectors; the active features are put right below */
            e[i] *= decay;
            w[i] += b * e[i];
        }
        for (int64_t j = 0; j < active; j++) {
            e[x[j]] += dutch;
            w[x[j]] += b * dutch - alpha * (v - v_old);
        }
        values[t] = v;
        v_old = v_next;
        decay = gamma * lam;
    }
}

/* --- Dense features: two passes a step, one to read and one to write ------------------------------------------------ */

void dense_accumulate(int64_t n, double *restrict w, double *restrict e, const double *restrict X,
                      const double *restrict R, int64_t steps, double alpha, double gamma, double lam,
                      double *restrict values)
{
    double decay = 0.0;
    for (int64_t t = 0; t < steps; t++) {
        const double *restrict x = X + t * n, *restrict x_next = x + n;
        double v = 0.0, v_next = 0.0;
        for (int64_t i = 0; i < n; i++) {
            v += w[i] * x[i];
            v_next += w[i] * x_next[i];
        }
        double b = alpha * (R[t] + gamma * v_next - v);
        for (int64_t i = 0; i < n; i++) {
            e[i] = decay * e[i] + x[i];
            w[i] += b * e[i];
        }
        values[t] = v;
        decay = gamma * lam;
    }
}

void dense_replace(int64_t n, double *restrict w, double *restrict e, const double *restrict X,
                   const double *restrict R, int64_t steps, double alpha, double gamma, double lam,
                   double *restrict values)
{
    double decay = 0.0;
    for (int64_t t = 0; t < steps; t++) {
        const double *restrict x = X + t * n, *restrict x_next = x + n;
        double v = 0.0, v_next = 0.0;
        for (int64_t i = 0; i < n; i++) {
            v += w[i] * x[i];
            v_next += w[i] * x_next[i];
        }
        double b = alpha * (R[t] + gamma * v_next - v);
        for (int64_t i = 0; i < n; i++) {
            e[i] = x[i] == 1.0 ? 1.0 : decay * e[i];
            w[i] += b * e[i];
        }
        values[t] = v;
        decay = gamma * lam;
    }
}

void dense_true_online(int64_t n, double *restrict w, double *restrict e, const double *restrict X,
                       const double *restrict R, int64_t steps, double alpha, double gamma, double lam,
                       double *restrict values)
{
    double v_old = 0.0, decay = 0.0;
    for (int64_t t = 0; t < steps; t++) {
        const double *restrict x = X + t * n, *restrict x_next = x + n;
        double v = 0.0, trace_x = 0.0, v_next = 0.0;
        for (int64_t i = 0; i < n; i++) {
            v += w[i] * x[i];
            trace_x += e[i] * x[i];
            v_next += w[i] * x_next[i];
        }
        double delta = R[t] + gamma * v_next - v;
        double dutch = 1.0 - alpha * decay * trace_x;
        double b = alpha * (delta + v - v_old), back = alpha * (v - v_old);
        for (int64_t i = 0; i < n; i++) {
            e[i] = decay * e[i] + dutch * x[i];
            w[i] += b * e[i] - back * x[i];
        }
        values[t] = v;
        v_old = v_next;
        decay = gamma * lam;
    }
}

/* --- SwiftTD for few active features, with plain vectors and a list of the features with trace --------------------- */

typedef struct {
    double *w, *z, *z_delta, *delta_w, *p, *z_bar, *h, *h_old, *h_temp, *beta;
    int64_t *list;
    int64_t count;
    double v_old, v_delta;
} Swift;

/* Goes on where the call before ended. A feature leaves the list when its trace is below epsilon. `values` are wᵀφ of the
   row that is entered, before the update. */
void eager_swift(Swift *m, const int64_t *restrict X, int64_t active, const double *restrict R, int64_t steps,
                 double gamma, double lam, double bound, double decay, double theta, double least, double epsilon,
                 double *restrict values)
{
    double *restrict w = m->w, *restrict z = m->z, *restrict z_delta = m->z_delta, *restrict delta_w = m->delta_w;
    double *restrict p = m->p, *restrict z_bar = m->z_bar, *restrict h = m->h, *restrict h_old = m->h_old;
    double *restrict h_temp = m->h_temp, *restrict beta = m->beta;
    int64_t *restrict list = m->list;
    const double most = log(bound), lowest = log(least), down = log(decay), fade = gamma * lam;
    for (int64_t t = 0; t < steps; t++) {
        const int64_t *x = X + t * active;
        double v = 0.0;
        for (int64_t j = 0; j < active; j++)
            v += w[x[j]];
        values[t] = v;
        double delta = R[t] + gamma * v - m->v_old, v_delta = m->v_delta;
        for (int64_t k = 0; k < m->count;) {
            int64_t i = list[k];
            delta_w[i] = delta * z[i] - z_delta[i] * v_delta;
            w[i] += delta_w[i];
            beta[i] += theta / exp(beta[i]) * (delta - v_delta) * p[i];
            beta[i] = beta[i] > most ? most : beta[i] < lowest ? lowest : beta[i];
            h_old[i] = h[i];
            h[i] = h_temp[i] + delta * z_bar[i] - z_delta[i] * v_delta;
            h_temp[i] = h[i];
            z_delta[i] = 0.0;
            z[i] *= fade;
            p[i] *= fade;
            z_bar[i] *= fade;
            if (fabs(z[i]) < epsilon) {
                z[i] = p[i] = z_bar[i] = delta_w[i] = 0.0;
                list[k] = list[--m->count];
            } else
                k++;
        }
        double tau = 0.0, b = 0.0;
        for (int64_t j = 0; j < active; j++) {
            tau += exp(beta[x[j]]);
            b += z[x[j]];
        }
        double scale = tau > bound ? bound / tau : 1.0;
        v_delta = 0.0;
        for (int64_t j = 0; j < active; j++) {
            int64_t i = x[j];
            if (z[i] == 0.0)
                list[m->count++] = i;
            v_delta += delta_w[i];
            z_delta[i] = scale * exp(beta[i]);
            z[i] += z_delta[i] * (1.0 - b);
            p[i] += h_old[i];
            z_bar[i] += z_delta[i] * (1.0 - b - z_bar[i]);
            h_temp[i] = h[i] - h_old[i] * (z[i] - z_delta[i]) - h[i] * z_delta[i];
            if (tau > bound) {
                h_temp[i] = h[i] = h_old[i] = z_bar[i] = 0.0;
                beta[i] += down;
            }
        }
        m->v_old = v;
        m->v_delta = v_delta;
    }
}
