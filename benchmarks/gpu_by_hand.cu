// The sweep of Figure 4 by hand, as fast as we can make it: the limit that the engine "cuda" is compared with.
//
// Everywhere r = w − w* is kept instead of w. Then δ = (R + γ w*ᵀφ' − w*ᵀφ) + γ rᵀφ' − rᵀφ. All learners of a run share the first part.
// V − V_old needs no w* at all. The traces of accumulate and replace TD(λ) do not depend on α, so the learners of a run and a λ share
// them.
//
// The file compiles as CUDA and as plain C++. In C++ the same functions run on the CPU, for tests. A warp has one lane there, or WARP
// of them, each a thread.

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define BOTH __host__ __device__
#define FN __device__ __forceinline__
#define UNROLL _Pragma("unroll")
constexpr int LANES = 32;
FN void meet(unsigned lanes = ~0u) { __syncwarp(lanes); }
#else
#define BOTH
#define FN inline
#define UNROLL
#ifdef WARP
#include <barrier>
#include <thread>
constexpr int LANES = WARP;
static thread_local std::barrier<> *warp_barrier;
FN void meet(unsigned = 0u) { warp_barrier->arrive_and_wait(); }
#else
constexpr int LANES = 1;
FN void meet(unsigned = 0u) {}
#endif
#endif

enum Method { ACCUMULATE = 0, REPLACE = 1, TRUE_ONLINE = 2 };

// A group of problems and a method, as Python hands it over. All pointers are to the memory of where the sweep runs.
struct Job {
    std::int32_t method, tabular, states, features, problems, runs, steps, alphas, lams;
    double discount;
    const double *table;              // problem, state, feature; null if tabular
    const std::uint8_t *trajectories; // problem, run, step: states
    const double *rewards;            // problem, run, step
    const double *root;               // problem, row, feature: upper triangular; problem, feature: its diagonal, if tabular
    const double *target;             // problem, feature
    const double *alpha, *lam;
    double *errors;                   // problem, run, α, λ
};

constexpr double INFINITE = __builtin_huge_val();

FN double finished(double total, int steps, double initial) {
    return total < INFINITE ? total / steps / initial : INFINITE;
}

// ------------------------------------------------------------------------------------------------------------------ dense features
//
// With u = Br the error is ‖u‖². Each state has ξ = B⁻ᵀφ, so that rᵀφ = uᵀξ, and η = Bφ, which is added to u and to Be.
// The vectors of a learner are in registers. A multiprocessor of an H200 does 64 multiplications a clock, but hands 16 numbers of
// shared memory to its threads. So a thread has several learners of one run and one λ, which use a number that it loads. The next
// value follows from this step's: (u + Δ)ᵀξ' = uᵀξ' + Δᵀξ'.

constexpr int CHUNK = 16;      // steps whose shared numbers are prepared together
constexpr double SMALL = 1e-3; // Be = Sz, and S is made 1 again below this

BOTH constexpr int learners_of_thread(int method) { return method == TRUE_ONLINE ? 2 : 4; }
BOTH constexpr int even(int n) { return n + n % 2; }

template <int N, int METHOD> struct Dense {
    static constexpr int A = learners_of_thread(METHOD);
    static constexpr int ROW = even(N), TRACE = even(N + 1);
    static constexpr bool OWN = METHOD == TRUE_ONLINE;   // whether each learner has a trace of its own
    static constexpr int WARPS = OWN ? 2 : 5;            // of a block; all work on the same run
    static constexpr int BLOCKS = OWN ? 6 : 3;           // of a multiprocessor, at least; with more, registers spill
    static constexpr int LAMS = LANES == 1 ? 1 : A;      // how many λ a warp works on
    static constexpr int EACH = LANES / LAMS;            // how many of its lanes work on one of them
    static constexpr int ALPHAS = EACH * A;              // how many α a warp works on
    static constexpr int LAM_ROOM = CHUNK * TRACE + 2;   // + 2: so that different λ lie in different banks

    // How many numbers a block shares, and how many each of its warps.
    static BOTH constexpr int block_numbers(int k) { return 2 * k * ROW + even(k) + even(N * N); }
    static BOTH constexpr int warp_numbers() { return 3 * CHUNK + (OWN ? 0 : LAMS * LAM_ROOM); }

    static FN void load(double *to, const double *from, int count) {
#ifdef __CUDACC__
        UNROLL for (int q = 0; q < count; q += 2) {
            const double2 two = *reinterpret_cast<const double2 *>(from + q);
            to[q] = two.x;
            if (q + 1 < count) to[q + 1] = two.y;
        }
#else
        for (int q = 0; q < count; ++q) to[q] = from[q];
#endif
    }

    // ξ, then η (with a trace of one's own) or φ, then w*ᵀφ, of the states first, first + stride, …; then B.
    static FN void tables(const Job &job, int problem, double *shared, int first, int stride) {
        const int k = job.states;
        const double *root = job.root + problem * N * N, *target = job.target + problem * N;
        double *xi = shared, *own = xi + k * ROW, *known = own + k * ROW, *near = known + even(k);
        for (int m = first; m < N * N; m += stride) near[m] = root[m];
        for (int s = first; s < k; s += stride) {
            const double *phi = job.table + ((std::size_t)problem * k + s) * N;
            double x[N], value = 0.0;
            UNROLL for (int q = 0; q < N; ++q) {
                x[q] = phi[q];
                value += target[q] * x[q];
            }
            known[s] = value;
            UNROLL for (int q = 0; q < N; ++q) {
                double sum = x[q];
                if (OWN) {
                    sum = 0.0;
                    UNROLL for (int m = q; m < N; ++m) sum += root[q * N + m] * x[m];
                }
                own[s * ROW + q] = sum;
            }
            UNROLL for (int q = 0; q < N; ++q) { // Bᵀξ = φ, from the first row down
                double rest = x[q];
                UNROLL for (int m = 0; m < q; ++m) rest -= root[m * N + q] * x[m];
                x[q] = rest / root[q * N + q];
                xi[s * ROW + q] = x[q];
            }
        }
    }

    // One lane of a warp, which has the λ from number first_lam on and the α from number first on.
    static FN void sweep(const Job &job, int at, int first_lam, int first, int lane, const double *tables, double *mine) {
        const int sub = lane / EACH, first_alpha = first + lane % EACH * A; // of this lane
        const int k = job.states, steps = job.steps, problem = at / job.runs;
        const double *xi = tables, *own = xi + k * ROW, *known = own + k * ROW, *root = known + even(k);
        double *reward = mine, *cross = reward + CHUNK, *traces = cross + CHUNK;
        std::int32_t *row = reinterpret_cast<std::int32_t *>(traces + (OWN ? 0 : LAMS * LAM_ROOM)); // CHUNK + 1 of them
        const std::uint8_t *states = job.trajectories + (std::size_t)at * (steps + 1);
        const double *rewards = job.rewards + (std::size_t)at * steps;
        const double *target = job.target + problem * N;
        const double gamma = job.discount;

        double u[A][N], z[A][N], alpha[A], v[A], v_old[A], along[A], total[A], initial = 0.0;
        UNROLL for (int a = 0; a < A; ++a) {
            const int i = first_alpha + a;
            alpha[a] = job.alpha[i < job.alphas ? i : job.alphas - 1];
            total[a] = v[a] = v_old[a] = along[a] = 0.0;
        }
        UNROLL for (int q = 0; q < N; ++q) {
            double sum = 0.0;
            UNROLL for (int m = q; m < N; ++m) sum -= root[q * N + m] * target[m];
            initial += sum * sum;
            UNROLL for (int a = 0; a < A; ++a) {
                u[a][q] = sum;
                z[a][q] = 0.0;
                v[a] += sum * xi[states[0] * ROW + q];
            }
        }
        const int j = first_lam + sub < job.lams ? first_lam + sub : job.lams - 1;
        const double g = gamma * job.lam[j], back = g > 0.0 ? 1.0 / g : 0.0;
        double S = 1.0, over_S = 1.0;
        // If learners share a trace, a lane keeps components of the traces of the warp's λ: the c-th, the (c + LANES)-th, …
        constexpr int KEPT = (LAMS * N + LANES - 1) / LANES;
        double kept[KEPT];
        UNROLL for (int c = 0; c < KEPT; ++c) kept[c] = 0.0;

        for (int begin = 0; begin < steps; begin += CHUNK) {
            const int count = steps - begin < CHUNK ? steps - begin : CHUNK;
            meet(); // the chunk before is done with
            for (int t = lane; t < count; t += LANES) {
                const int s = states[begin + t], n = states[begin + t + 1];
                reward[t] = rewards[begin + t] + gamma * known[n] - known[s];
                row[t] = s * ROW;
                row[t + 1] = n * ROW; // the next lane writes the same number
                if (OWN) {
                    double sum = 0.0;
                    UNROLL for (int q = 0; q < N; ++q) sum += own[s * ROW + q] * xi[n * ROW + q];
                    cross[t] = sum; // φᵀφ'
                }
            }
            if (!OWN) {
                meet();
                UNROLL for (int c = 0; c < KEPT; ++c) { // e, a component a lane
                    const int which = (lane + c * LANES) / N, q = (lane + c * LANES) % N;
                    if (which < LAMS) {
                        const int its = first_lam + which < job.lams ? first_lam + which : job.lams - 1;
                        const double decay = gamma * job.lam[its];
                        double e = kept[c];
                        for (int t = 0; t < count; ++t) {
                            const double x = own[row[t] + q];
                            e = METHOD == REPLACE ? (x == 1.0 ? 1.0 : decay * e) : decay * e + x;
                            traces[which * LAM_ROOM + t * TRACE + q] = e;
                        }
                        kept[c] = e;
                    }
                }
                meet();
                for (int c = lane; c < LAMS * count; c += LANES) { // Be and eᵀφ', a step a lane
                    const int which = c / count, t = c - which * count;
                    double *trace = traces + which * LAM_ROOM + t * TRACE, e[N], sum = 0.0;
                    UNROLL for (int q = 0; q < N; ++q) {
                        e[q] = trace[q];
                        sum += e[q] * own[row[t + 1] + q];
                    }
                    trace[N] = sum;
                    UNROLL for (int q = 0; q < N; ++q) {
                        double part = 0.0;
                        UNROLL for (int m = q; m < N; ++m) part += root[q * N + m] * e[m];
                        trace[q] = part;
                    }
                }
            }
            meet();
            for (int t = 0; t < count; ++t) {
                double next[N], add[N + 1];
                load(next, xi + row[t + 1], N);
                if (OWN) load(add, own + row[t], N);
                else load(add, traces + sub * LAM_ROOM + t * TRACE, N + 1);
                const double seen = reward[t];
                UNROLL for (int a = 0; a < A; ++a) {
                    double v_next = 0.0, error = 0.0;
                    UNROLL for (int q = 0; q < N; ++q) v_next += u[a][q] * next[q];
                    const double delta = seen + gamma * v_next - v[a];
                    if (OWN) {
                        const double dutch = (1.0 - alpha[a] * g * along[a]) * over_S;
                        const double back_to_old = alpha[a] * (v[a] - v_old[a]), b = alpha[a] * delta + back_to_old, c = b * S;
                        double product = 0.0;
                        UNROLL for (int q = 0; q < N; ++q) {
                            z[a][q] += dutch * add[q];
                            product += z[a][q] * next[q];
                            u[a][q] += c * z[a][q] - back_to_old * add[q];
                            error += u[a][q] * u[a][q];
                        }
                        along[a] = S * product; // eᵀφ'
                        v_old[a] = v_next;
                        v[a] = v_next + b * along[a] - back_to_old * cross[t];
                    } else {
                        const double b = alpha[a] * delta;
                        UNROLL for (int q = 0; q < N; ++q) {
                            u[a][q] += b * add[q];
                            error += u[a][q] * u[a][q];
                        }
                        v[a] = v_next + b * add[N];
                    }
                    total[a] += error;
                }
                if (OWN) {
                    S *= g;
                    over_S *= back;
                    if (S < SMALL) {
                        UNROLL for (int a = 0; a < A; ++a) UNROLL for (int q = 0; q < N; ++q) z[a][q] *= S;
                        S = over_S = 1.0;
                    }
                }
            }
        }
        UNROLL for (int a = 0; a < A; ++a) {
            const int i = first_alpha + a;
            if (i < job.alphas && first_lam + sub < job.lams)
                job.errors[((std::size_t)at * job.alphas + i) * job.lams + j] = finished(total[a], steps, initial);
        }
    }
};

// --------------------------------------------------------------------------------------------------------------- tabular features
//
// r_i = p_i + C z_i and e_i = S z_i. Only the entry of the state changes in a step: decay is S ← γλS, and learning is C ← C + bS.
// The error Σ d_i r_i² is P + 2CQ + C²R with P = Σ d_i p_i², Q = Σ d_i p_i z_i and R = Σ d_i z_i². A step changes one term of each sum.
//
// As S shrinks, digits are lost. So an epoch ends when S < EDGE: p ← p + Cz, z ← Sz, C ← 0, S ← 1. The sums P, Q and R change at once.
// An entry waits until its state is visited again: after a epochs it needs p ← p + T_a z and z ← X_a z. After AGES epochs its trace is
// below GONE, which changes no weight by more than rounding does. Then it is settled: p ← p + T z and z ← 0.
// S and the epochs are the same for all learners of a warp, which have one run and one λ. EDGE = 1e-3 was tried: the errors are then
// wrong by up to 5e-9, because P and C²R grow with 1/S² while their sum does not.

constexpr double EDGE = 1e-2, GONE = 1e-16;
constexpr int AGES = 8; // EDGE^AGES = GONE
constexpr int STRETCH = 32;

struct Tabular {
    // The bytes of a warp: d, p, z, T, X and rewards; then the epoch of each state's last visit; then states.
    static constexpr std::size_t bytes(int k, int width, bool own) {
        const std::size_t numbers = (std::size_t)k * (1 + width + (own ? width : 1)) + AGES * width + AGES + 1 + STRETCH;
        return numbers * sizeof(double) + (std::size_t)k * sizeof(std::int16_t) + 2 * STRETCH;
    }

    // One of the `width` lanes of a warp: the learner with α number first_alpha + lane.
    template <int METHOD> static FN void sweep(const Job &job, int at, int j, int first_alpha, int width, int lane, double *shared) {
        constexpr bool OWN = METHOD == TRUE_ONLINE; // whether each learner has a trace of its own
        const int k = job.states, steps = job.steps, problem = at / job.runs;
        const unsigned lanes = ~0u >> (32 - width);
        const int z_width = OWN ? width : 1;
        double *d = shared, *p_all = d + k, *z_all = p_all + k * width, *T = z_all + k * z_width;
        double *X = T + AGES * width, *reward = X + AGES + 1;
        std::int16_t *epochs = reinterpret_cast<std::int16_t *>(reward + STRETCH);
        std::uint8_t *after = reinterpret_cast<std::uint8_t *>(epochs + k), *past = after + STRETCH;
        double *p = p_all + lane, *z = z_all + (OWN ? lane : 0);
        T += lane;
        const std::uint8_t *states = job.trajectories + (std::size_t)at * (steps + 1);
        const double *rewards = job.rewards + (std::size_t)at * steps, *target = job.target + problem * k;
        const double alpha = job.alpha[first_alpha + lane], gamma = job.discount, g = gamma * job.lam[j];

        int length = 1; // steps of an epoch
        double at_end = g;
        while (!(at_end < EDGE) && length <= steps) {
            at_end *= g;
            ++length;
        }
        int ages = 1; // after which an entry has no trace
        X[0] = 1.0;
        X[1] = at_end; // all lanes write the same numbers
        while (!(X[ages] < GONE) && ages < AGES) {
            X[ages + 1] = X[ages] * at_end;
            ++ages;
        }
        for (int i = lane; i < k; i += width) {
            const double b = job.root[problem * k + i];
            d[i] = b * b;
            epochs[i] = -1;
        }
        for (int i = 0; i < k; ++i) {
            p[i * width] = -target[i];
            z[i * z_width] = 0.0;
        }
        for (int a = 0; a < AGES; ++a) T[a * width] = 0.0;
        meet(lanes);
        double initial = 0.0;
        for (int i = 0; i < k; ++i) initial += d[i] * target[i] * target[i];

        int s = states[0], n = states[1], epoch = 0, left = length;
        double here_p = p[s * width], here_z = 0.0, there_p = p[n * width], there_z = 0.0, r_old = 0.0; // of s and of n
        double S = 1.0, over_S = 1.0, C = 0.0, P = initial, Q = 0.0, R = 0.0, total = 0.0;
        const double back = g > 0.0 ? 1.0 / g : 0.0;
        const int waits = ages * length;
        for (int begin = 0; begin < steps; begin += STRETCH) {
            const int count = steps - begin < STRETCH ? steps - begin : STRETCH;
            for (int t = lane; t < count; t += width) {
                const int now = begin + t, to = states[now + 1];
                after[t] = states[now + 2 <= steps ? now + 2 : steps];
                past[t] = states[now >= waits ? now - waits : now];
                reward[t] = rewards[now] + gamma * target[to] - target[states[now]];
            }
            meet(lanes);
            for (int t = 0; t < count; ++t) {
                // All reading of what the lanes share comes before all writing. The entry for the next step is read now: to wait
                // for it then would take as long as all the rest.
                const int further = after[t], old = past[t], old_epoch = epochs[old], further_epoch = epochs[further];
                double further_p = p[further * width], further_z = z[further * z_width];
                const double weight = d[s];
                const double r = here_p + C * here_z, r_next = there_p + C * there_z;
                const double delta = reward[t] + gamma * r_next - r;
                if (left == 0) {
                    S *= g;
                    for (int a = ages - 1; a > 0; --a) T[a * width] = T[(a - 1) * width] + X[a] * C;
                    T[0] = C;
                    P += C * (2.0 * Q + C * R);
                    Q = S * (Q + C * R);
                    R *= S * S;
                    here_p += C * here_z;
                    here_z *= S;
                    there_p += C * there_z;
                    there_z *= S;
                    C = 0.0;
                    S = over_S = 1.0;
                    left = length;
                    ++epoch;
                } else if (begin + t > 0) { // at the first step nothing decays
                    S *= g;
                    over_S *= back;
                }
                --left;
                const int age = epoch - further_epoch < ages ? epoch - further_epoch : ages;
                if (age > 0) {
                    further_p += further_z * T[(age - 1) * width];
                    further_z *= X[age];
                }
                const bool settles = old != s && old_epoch == epoch - ages;
                double old_p = 0.0;
                if (settles) old_p = p[old * width] + z[old * z_width] * T[(ages - 1) * width];
                double up = over_S, side, b = alpha * delta;
                if (METHOD == TRUE_ONLINE) {
                    const double change = alpha * (r - r_old);
                    up -= alpha * here_z; // (1 − αγλeᵀφ)/S, and γλe = Sz
                    side = -change - C * up;
                    b += change;
                    r_old = r_next;
                } else {
                    if (METHOD == REPLACE) up -= here_z;
                    side = -C * up;
                }
                P += weight * side * (2.0 * here_p + side);
                Q += weight * (here_p * up + side * (here_z + up));
                R += weight * up * (2.0 * here_z + up);
                here_p += side;
                here_z += up;
                C += b * S;
                total += P + C * (2.0 * Q + C * R);
                meet(lanes);
                p[s * width] = here_p;
                z[s * z_width] = here_z;
                epochs[s] = epoch;
                if (settles) {
                    p[old * width] = old_p;
                    z[old * z_width] = 0.0;
                    epochs[old] = -1;
                }
                meet(lanes);
                if (further == s) { // it has changed since it was read
                    further_p = here_p;
                    further_z = here_z;
                }
                if (n != s) {
                    here_p = there_p;
                    here_z = there_z;
                }
                s = n;
                n = further;
                there_p = n == s ? here_p : further_p;
                there_z = n == s ? here_z : further_z;
            }
        }
        job.errors[((std::size_t)at * job.alphas + first_alpha + lane) * job.lams + j] = finished(total, steps, initial);
    }
};

// ------------------------------------------------------------------------------------------------------------------------- on a GPU

#ifdef __CUDACC__

#include <map>
#include <vector>

template <int N, int METHOD> __global__ void __launch_bounds__(LANES *Dense<N, METHOD>::WARPS, Dense<N, METHOD>::BLOCKS) dense(Job job) {
    using Kind = Dense<N, METHOD>;
    extern __shared__ double2 aligned[];
    double *shared = reinterpret_cast<double *>(aligned);
    const int parts = (job.lams + Kind::LAMS * Kind::WARPS - 1) / (Kind::LAMS * Kind::WARPS); // blocks of a run
    const int at = blockIdx.x / parts, part = blockIdx.x % parts;
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    Kind::tables(job, at / job.runs, shared, threadIdx.x, blockDim.x);
    __syncthreads();
    const int first_lam = (part * Kind::WARPS + warp) * Kind::LAMS;
    if (first_lam >= job.lams) return;
    Kind::sweep(job, at, first_lam, blockIdx.y * Kind::ALPHAS, lane, shared,
                shared + Kind::block_numbers(job.states) + warp * Kind::warp_numbers());
}

template <int METHOD> __global__ void __launch_bounds__(LANES) tabular(Job job) {
    extern __shared__ double2 aligned[];
    const int first_alpha = blockIdx.y * LANES, width = min(LANES, job.alphas - first_alpha);
    if (threadIdx.x < width)
        Tabular::sweep<METHOD>(job, blockIdx.x / job.lams, blockIdx.x % job.lams, first_alpha, width, threadIdx.x,
                               reinterpret_cast<double *>(aligned));
}

using Kernel = void (*)(Job);

struct Launch {
    Kernel kernel;
    dim3 blocks;
    int threads;
    std::size_t bytes;
};

template <int N, int METHOD> Launch dense_launch(const Job &job) {
    using Kind = Dense<N, METHOD>;
    const int parts = (job.lams + Kind::LAMS * Kind::WARPS - 1) / (Kind::LAMS * Kind::WARPS);
    const std::size_t numbers = Kind::block_numbers(job.states) + Kind::WARPS * Kind::warp_numbers();
    return {dense<N, METHOD>, dim3(job.problems * job.runs * parts, (job.alphas + Kind::ALPHAS - 1) / Kind::ALPHAS), LANES * Kind::WARPS,
            numbers * sizeof(double)};
}

template <int METHOD> Launch launch(const Job &job) {
    if (job.tabular) {
        const int width = job.alphas < LANES ? job.alphas : LANES;
        return {tabular<METHOD>, dim3(job.problems * job.runs * job.lams, (job.alphas + LANES - 1) / LANES), LANES,
                Tabular::bytes(job.states, width, METHOD == TRUE_ONLINE)};
    }
    switch (job.features) {
    case 4: return dense_launch<4, METHOD>(job);
    case 5: return dense_launch<5, METHOD>(job);
    case 7: return dense_launch<7, METHOD>(job);
    default: return {nullptr, dim3(), 0, 0};
    }
}

static Launch launch(const Job &job) {
    return job.method == ACCUMULATE ? launch<ACCUMULATE>(job) : job.method == REPLACE ? launch<REPLACE>(job) : launch<TRUE_ONLINE>(job);
}

#define CHECK(call)                                                                                                                      \
    do {                                                                                                                                 \
        const cudaError_t status = (call);                                                                                               \
        if (status != cudaSuccess) return cudaGetErrorString(status);                                                                    \
    } while (0)

// Arrays of the host on the device. An array that several jobs name is there once.
class Device {
  public:
    ~Device() {
        for (const auto &array : arrays) cudaFree(array.second.there);
    }
    cudaError_t add(const void *here, std::size_t bytes, bool result) {
        if (here == nullptr || arrays.count(here)) return cudaSuccess;
        void *there = nullptr;
        const cudaError_t status = cudaMalloc(&there, bytes);
        if (status == cudaSuccess) arrays[here] = {there, bytes, result};
        return status;
    }
    cudaError_t copy(bool results, cudaStream_t stream) const {
        for (const auto &[here, array] : arrays) {
            if (array.result != results) continue;
            const cudaError_t status =
                results ? cudaMemcpyAsync(const_cast<void *>(here), array.there, array.bytes, cudaMemcpyDeviceToHost, stream)
                        : cudaMemcpyAsync(array.there, here, array.bytes, cudaMemcpyHostToDevice, stream);
            if (status != cudaSuccess) return status;
        }
        return cudaSuccess;
    }
    template <class T> T *operator[](T *here) const {
        return here == nullptr ? nullptr : static_cast<T *>(arrays.at(here).there);
    }

  private:
    struct Array {
        void *there;
        std::size_t bytes;
        bool result;
    };
    std::map<const void *, Array> arrays;
};

constexpr int STREAMS = 8;

// Memory of the host that the device reads and writes at full speed; null if there is none. `release_memory` gives it back.
extern "C" void *pinned_memory(std::size_t bytes) {
    void *memory = nullptr;
    return cudaMallocHost(&memory, bytes) == cudaSuccess ? memory : nullptr;
}

extern "C" void release_memory(void *memory) { cudaFreeHost(memory); }

// Do all jobs, whose pointers are to the memory of the host, `rounds` times after one for warm-up. Milliseconds of each round: of
// the kernels, and from the first copy to the device to the last copy back. Memory on the device is allocated before.
// Null, or what went wrong.
extern "C" const char *sweep_on_gpu(const Job *jobs, int count, int rounds, float *kernels, float *transfers) {
    Device device;
    std::vector<Launch> launches;
    std::vector<Job> there(jobs, jobs + count);
    for (Job &job : there) {
        const std::size_t at = (std::size_t)job.problems * job.runs, numbers = sizeof(double);
        const std::size_t rows = job.tabular ? 1 : job.features;
        CHECK(device.add(job.table, numbers * job.problems * job.states * job.features, false));
        CHECK(device.add(job.trajectories, at * (job.steps + 1), false));
        CHECK(device.add(job.rewards, numbers * at * job.steps, false));
        CHECK(device.add(job.root, numbers * job.problems * rows * job.features, false));
        CHECK(device.add(job.target, numbers * job.problems * job.features, false));
        CHECK(device.add(job.alpha, numbers * job.alphas, false));
        CHECK(device.add(job.lam, numbers * job.lams, false));
        CHECK(device.add(job.errors, numbers * at * job.alphas * job.lams, true));
        job.table = device[job.table];
        job.trajectories = device[job.trajectories];
        job.rewards = device[job.rewards];
        job.root = device[job.root];
        job.target = device[job.target];
        job.alpha = device[job.alpha];
        job.lam = device[job.lam];
        job.errors = device[job.errors];
        const Launch one = launch(job);
        if (one.kernel == nullptr) return "there is a kernel for 4, 5 and 7 dense features only";
        CHECK(cudaFuncSetAttribute(one.kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
        launches.push_back(one);
    }
    cudaStream_t streams[STREAMS];
    cudaEvent_t done[STREAMS], start, ready, computed, stop;
    for (int i = 0; i < STREAMS; ++i) {
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming));
    }
    for (cudaEvent_t *event : {&start, &ready, &computed, &stop}) CHECK(cudaEventCreate(event));
    for (int round = -1; round < rounds; ++round) {
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(start, streams[0]));
        CHECK(device.copy(false, streams[0]));
        CHECK(cudaEventRecord(ready, streams[0]));
        for (int i = 1; i < STREAMS; ++i) CHECK(cudaStreamWaitEvent(streams[i], ready, 0));
        for (int i = 0; i < count; ++i) {
            const Launch &one = launches[i];
            // Here, because jobs of other sizes may share the kernel.
            CHECK(cudaFuncSetAttribute(one.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)one.bytes));
            one.kernel<<<one.blocks, one.threads, one.bytes, streams[i % STREAMS]>>>(there[i]);
            CHECK(cudaGetLastError());
        }
        for (int i = 1; i < STREAMS; ++i) {
            CHECK(cudaEventRecord(done[i], streams[i]));
            CHECK(cudaStreamWaitEvent(streams[0], done[i], 0));
        }
        CHECK(cudaEventRecord(computed, streams[0]));
        CHECK(device.copy(true, streams[0]));
        CHECK(cudaEventRecord(stop, streams[0]));
        CHECK(cudaEventSynchronize(stop));
        if (round >= 0) {
            CHECK(cudaEventElapsedTime(&kernels[round], ready, computed));
            CHECK(cudaEventElapsedTime(&transfers[round], start, stop));
        }
    }
    for (cudaEvent_t event : {start, ready, computed, stop}) CHECK(cudaEventDestroy(event));
    for (int i = 0; i < STREAMS; ++i) {
        CHECK(cudaEventDestroy(done[i]));
        CHECK(cudaStreamDestroy(streams[i]));
    }
    return nullptr;
}

#else // ------------------------------------------------------------------------------------------------------------- on the CPU

#include <vector>

// Call lane(0), lane(1), … for all lanes of a warp at once.
template <class Lane> static void all_lanes(int count, Lane lane) {
#ifdef WARP
    std::barrier<> barrier(count);
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i)
        threads.emplace_back([&, i] {
            warp_barrier = &barrier;
            lane(i);
        });
    for (std::thread &thread : threads) thread.join();
#else
    for (int i = 0; i < count; ++i) lane(i);
#endif
}

template <int N, int METHOD> static void dense(const Job &job) {
    using Kind = Dense<N, METHOD>;
    std::vector<double> block(Kind::block_numbers(job.states)), warp(Kind::warp_numbers());
    for (int at = 0; at < job.problems * job.runs; ++at) {
        Kind::tables(job, at / job.runs, block.data(), 0, 1);
        for (int j = 0; j < job.lams; j += Kind::LAMS)
            for (int i = 0; i < job.alphas; i += Kind::ALPHAS)
                all_lanes(LANES, [&](int lane) { Kind::sweep(job, at, j, i, lane, block.data(), warp.data()); });
    }
}

template <int METHOD> static void tabular(const Job &job) {
    std::vector<double> warp(Tabular::bytes(job.states, LANES, METHOD == TRUE_ONLINE) / sizeof(double) + 1);
    for (int at = 0; at < job.problems * job.runs; ++at)
        for (int j = 0; j < job.lams; ++j)
            for (int i = 0; i < job.alphas; i += LANES) {
                const int width = job.alphas - i < LANES ? job.alphas - i : LANES;
                all_lanes(width, [&](int lane) { Tabular::sweep<METHOD>(job, at, j, i, width, lane, warp.data()); });
            }
}

template <int METHOD> static const char *sweep(const Job &job) {
    if (job.tabular) tabular<METHOD>(job);
    else if (job.features == 4) dense<4, METHOD>(job);
    else if (job.features == 5) dense<5, METHOD>(job);
    else if (job.features == 7) dense<7, METHOD>(job);
    else return "there is a kernel for 4, 5 and 7 dense features only";
    return nullptr;
}

extern "C" const char *sweep_on_cpu(const Job *job) {
    return job->method == ACCUMULATE ? sweep<ACCUMULATE>(*job) : job->method == REPLACE ? sweep<REPLACE>(*job) : sweep<TRUE_ONLINE>(*job);
}

#endif
