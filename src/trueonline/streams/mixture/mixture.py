"""`Mixture`: one question, answered by many experts that are weighted online."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from trueonline import inputs
from trueonline.core.compiling.kernels import call
from trueonline.core.thread_guard import ThreadGuarded, guarded
from trueonline.inputs import MAX_COUNT, Resumable, count, saved_array, saved_count
from trueonline.streams.mixture.experts import Expert, FeatureSet
from trueonline.streams.mixture.mixing import (
    CARRIED,
    DELAY,
    FADED,
    FIRST,
    LARGEST,
    LOOKS,
    MAX_WAITING,
    MEMORY_LOOKS,
    NAIVE_PRIOR,
    REGRET,
    SEEN,
    SIZE,
    SQUARES,
    WEIGHT,
)
from trueonline.streams.mixture.mixture_kernel import (
    GAMMA,
    HEAD,
    LOOKED,
    OPEN,
    PLAN,
    RUN,
    SAMPLES,
    SLOT,
    UNIT,
    WAITING,
)

RINGS = ("forecasts", "slots")  # arrays with a row for each sample that waits
SPARSE = ("numbers", "traces")  # arrays with many zeros
SMALLEST_UNIT = 2.0**-900


class _Layout(NamedTuple):
    """Where the numbers of learners lie. Mixtures of the same experts share it."""

    experts: tuple[Expert, ...]
    bounds: np.ndarray  # the number of features at each place of a row of X
    plan: np.ndarray
    rates: np.ndarray
    weights: int
    traces: int


@cache
def _layout(
    sets: tuple[FeatureSet, ...], naive: tuple[Expert, ...], learners: tuple[Expert, ...], bases: tuple[str, ...]
) -> _Layout:
    traces: dict[tuple[str | None, float, float], list[Expert]] = {}
    for each in learners:
        traces.setdefault((each.features, each.step_size, each.trace_decay), []).append(each)
    known = {each.name: each for each in sets}
    columns = dict(zip(known, np.cumsum([0, *(each.n_active for each in sets)]).tolist(), strict=False))
    plan, rates, weights, traced = [], [], 0, 0
    for (features, step_size, trace_decay), alike in traces.items():
        own = known[features or ""]
        trace = traced if trace_decay else -1
        for place, learner in enumerate(alike):
            leads = place == 0 and trace >= 0
            base = bases.index(learner.base)
            plan.append([weights, trace, leads, own.n_features, columns[own.name], own.n_active, base])
            rates.append([step_size / own.n_active, trace_decay])
            weights += own.n_features
        traced += own.n_features if trace_decay else 0
    return _Layout(
        (*naive, *(each for alike in traces.values() for each in alike)),
        np.repeat([each.n_features for each in sets], [each.n_active for each in sets]),
        np.array(plan, np.int64).reshape(-1, PLAN),
        np.array(rates).reshape(-1, 2),
        weights,
        traced,
    )


class Mixture(ThreadGuarded, Resumable):
    """Answers one question by many experts, which are weighted online.

    The question is the mean over the coming horizon, M_t = (1 − γ_{t+1})·x_{t+1} + γ_{t+1}·M_{t+1}. With a constant γ this is the
    return times 1 − γ.

    **Experts.** A naive expert forecasts a *base* b_t, such as the newest value. A learner corrects a base by *shaping* (Ng, Harada
    and Russell 1999). The cumulant (1 − γ_{t+1})·x_{t+1} + γ_{t+1}·b_{t+1} − b_t has the return M_t − b_t, for every b. So a
    learner that has learned nothing forecasts the base, and what it learns is a correction. Learners are true online TD(λ) over
    binary features, with the rule and the memory of `TrueOnlineTD`.

    **Weights.** The module `mixing` has the equations and the regret bound. If what is forecast comes true at once (γ = 0, a single
    look), the bound promises that the mixture is not much worse than its best expert. Otherwise it says so only afterwards.

    Threads may share a mixture: a call waits for the calls of other threads.

    Parameters
    ----------
    feature_sets : sequence of FeatureSet
        The features that learners learn from. A row of `X` has the active features of all sets, one set after the other.
    experts : sequence of Expert
        The experts. At least one of them must be naive.
    bases : sequence of str
        The names of the bases, in the order of their columns.
    looks : sequence of float
        The open weights at which a forecast is looked at, falling.
    memory : float
        The number of looks after which a regret has faded to a third. `math.inf`: regrets do not fade.
    room : int
        The number of samples that may wait for their looks. If more would have to wait, the oldest is looked at early.

    Attributes
    ----------
    experts : tuple of Expert
        The experts, the naive ones first.
    samples : int
        The number of samples learned from.

    Raises
    ------
    ValueError
        If an expert names a base or features that are not there, or a number is out of range.

    Examples
    --------
    >>> sets = [FeatureSet("parity", n_features=2, n_active=1)]
    >>> experts = [Expert("hold"), Expert("hold", "parity", step_size=0.3, trace_decay=0.9)]
    >>> mixture = Mixture(sets, experts, bases=["hold"])
    >>> t = np.arange(200)
    >>> values = np.where(t % 2, 1.0, -1.0)  # 1 and −1 in turn, so with γ = 0.5 the mean is −x/3
    >>> forecasts = mixture.run((t % 2)[:, None], values, values[:, None], discounts=0.5)
    >>> forecasts[-2:].round(3), mixture.weights.round(3)
    (array([ 0.333, -0.333]), array([0., 1.]))
    """

    def __init__(
        self,
        feature_sets: Sequence[FeatureSet],
        experts: Sequence[Expert],
        bases: Sequence[str],
        looks: Sequence[float] = LOOKS,
        memory: float = MEMORY_LOOKS,
        room: int = MAX_WAITING,
    ) -> None:
        sets, names = {each.name: each for each in feature_sets}, list(bases)
        for kind, group, known in (
            ("features", [e.features for e in experts], sets),
            ("base", [e.base for e in experts], names),
        ):
            wrong = [each for each in group if each is not None and each not in known]
            if wrong:
                raise ValueError(f"an expert has the {kind} {wrong[0]!r}; known are {', '.join(known) or 'none'}")
        if len(sets) < len(feature_sets):
            raise ValueError("two feature sets have the same name; give each a name of its own")
        falling = all(a > b for a, b in zip(looks, [*looks[1:], -1.0], strict=True))
        if not looks or not falling or not all(0.0 <= each < 1.0 for each in looks):
            raise ValueError(f"looks must be falling numbers from 0 to below 1, got {looks!r}")
        if not memory >= 1.0:
            raise ValueError(f"memory must be at least 1 look, got {memory!r}")
        if count("room", room) < 2:
            raise ValueError(f"room must be at least 2 samples, got {room!r}")
        naive = [each for each in experts if each.features is None]
        learners = [each for each in experts if each.features is not None]
        if not naive:
            raise ValueError("a mixture needs at least one naive expert; add Expert(base)")
        layout = _layout(tuple(feature_sets), tuple(naive), tuple(learners), tuple(names))
        self.experts, self._bounds, self._plan, self._rates = layout.experts, layout.bounds, layout.plan, layout.rates
        size = len(self.experts)
        self._settings = (
            np.array([names.index(each.base) for each in naive]),
            np.array(looks, float),
            1.0 if math.isinf(memory) else 1.0 - 1.0 / memory,
            room,
        )
        self._state: dict[str, np.ndarray] = {
            "numbers": np.zeros(layout.weights, np.float32),
            "traces": np.zeros(max(layout.traces, 1), np.float32),
            "v_old": np.zeros(len(learners)),
            "last": np.zeros(len(self._bounds), np.int64),
            "last_bases": np.zeros(len(names)),
            "state": np.array([0.0, 0.0, 1.0, SMALLEST_UNIT]),
            "table": np.zeros((3, size)),
            "carried": np.zeros(CARRIED),
            "ring": np.zeros(LOOKED + len(looks), np.int64),
            "forecasts": np.zeros((2, size), np.float32),
            "slots": np.zeros((2, SLOT)),
        }
        first = self._first_priors()
        self._state["table"][WEIGHT] = first / first.sum()

    @property
    def samples(self) -> int:
        """The number of samples learned from."""
        return int(self._state["state"][SAMPLES])

    @property
    def weights(self) -> np.ndarray:
        """The weights of the experts now: an array of shape (experts,) that sums to 1."""
        return self._state["table"][WEIGHT].copy()

    @property
    def regrets(self) -> np.ndarray:
        """The faded regret against each expert: an array of shape (experts,), in units of the usual regret.

        The floor raises it, and what scaling down left out is not in it. `regret_bound` bounds the true regret.
        """
        return self._state["table"][REGRET].copy()

    @guarded
    def regret_bound(self) -> np.ndarray:
        """Compute a bound on the regret against each expert, from the stream so far (module `mixing`).

        Returns
        -------
        array of shape (experts,)
            The bounds. They are about losses that are divided by the usual size of regrets at the time.
        """
        carried, squares = self._state["carried"], self._state["table"][SQUARES]
        largest, fade = carried[LARGEST], self._settings[2]
        if not carried[FADED]:
            return np.zeros(len(squares))
        with np.errstate(divide="ignore"):  # ln 0 = −∞ is what is meant
            grown = np.log(squares) - 2.0 * (carried[FADED] - 1.0) * math.log(fade) - 2.0 * math.log(carried[FIRST])
        bits = (self._first_priors() * np.logaddexp(0.0, grown)).sum() / math.log(2.0)
        return largest + np.sqrt((largest**2 + squares) * max(bits + carried[DELAY], 0.0))

    def _first_priors(self) -> np.ndarray:
        """The priors of all experts before the first look."""
        return np.array([1.0 + NAIVE_PRIOR * (each.features is None) for each in self.experts])

    def run(self, X: Any, values: Any, bases: Any, discounts: Any, starts: Any = None, elapsed: Any = None) -> np.ndarray:
        """Learn from a block of samples.

        Parameters
        ----------
        X : array of int, of shape (T, active features of all sets)
            The active features at each sample, those of the first set first.
        values : array of shape (T,)
            x, the signal to predict.
        bases : array of shape (T, bases)
            The bases at each sample.
        discounts : float or array of shape (T,)
            γ of the step into each sample, in [0, 1].
        starts : array of bool, of shape (T,), optional
            True at the first sample of a new stream. Nothing is learned across it.
        elapsed : array of shape (T,), optional
            The time since the sample before, in units of the usual time. λ of that step is raised to it.

        Returns
        -------
        array of shape (T,)
            The forecast of M_t at each sample, from what was learned up to it.

        Raises
        ------
        ValueError
            If the block does not fit. Nothing has changed then.
        """
        # Copies: other threads cannot write to them, and the kernel is compiled for one kind of array.
        given = {"X": X, "values": values, "bases": bases, "discounts": discounts, "starts": starts, "elapsed": elapsed}
        for name, each in given.items():
            inputs.unmasked(name, each)
        x, naive, rows = (
            np.array(each, dtype, order="C") for each, dtype in ((values, float), (bases, float), (X, None))
        )
        T = len(x) if x.ndim == 1 else -1
        gammas, spans = (
            np.array(np.broadcast_to(1.0 if each is None else each, x.shape), float) for each in (discounts, elapsed)
        )
        begin = np.array(np.zeros(x.shape) if starts is None else starts, np.bool_, order="C")
        shapes = ((T,), (T, len(self._bounds)), (T, self._state["last_bases"].size), (T,))
        if (x.shape, rows.shape, naive.shape, begin.shape) != shapes:
            raise ValueError(
                f"values, X, bases and starts must have the shapes {shapes}, got {(x.shape, rows.shape, naive.shape, begin.shape)}"
            )
        if rows.dtype.kind not in "iu" or not ((rows >= 0) & (rows < self._bounds)).all():
            raise ValueError("X must hold integers from 0 to below the number of features of their set")
        for name, array in (("values", x), ("bases", naive), ("discounts", gammas), ("elapsed", spans)):
            if not np.isfinite(array).all():
                raise ValueError(f"{name} must be finite")
        if not ((gammas >= 0.0) & (gammas <= 1.0)).all() or not (spans >= 0.0).all():
            raise ValueError("discounts must be from 0 to 1, and elapsed at least 0")
        return self.run_checked(rows.astype(np.int64, copy=False), x, naive, gammas, spans, begin)

    @guarded
    def run_checked(
        self,
        X: np.ndarray,
        values: np.ndarray,
        bases: np.ndarray,
        gammas: np.ndarray,
        elapsed: np.ndarray,
        starts: np.ndarray,
    ) -> np.ndarray:
        """`run` for arrays that are known to be good: contiguous, of the right types, shapes and ranges.

        Parameters
        ----------
        X, values, bases, gammas, elapsed, starts : array
            As for `run`. None of them may be left out.

        Returns
        -------
        array of shape (T,)
            The forecast at each sample.
        """
        out, done = np.empty(len(values)), 0
        while done < len(values):
            done = call(
                RUN, self._plan, self._rates, *self._settings, *self._state.values(),
                done, X, values, bases, gammas, elapsed, starts, out,
            )  # fmt: skip
            if done < len(values):
                room = len(self._state["slots"])
                self._make_room(min(room + room // 4 + 1, self._settings[-1]))
        if done:
            self._state["last"][:], self._state["last_bases"][:] = X[-1], bases[-1]
        return out

    def _make_room(self, room: int) -> None:
        """Give room to so many samples that wait, the oldest first."""
        ring = self._state["ring"]
        order = (ring[HEAD] + np.arange(ring[WAITING])) % len(self._state["slots"])
        for name in RINGS:
            old = self._state[name]
            self._state[name] = np.zeros((room, old.shape[1]), old.dtype)
            self._state[name][: len(order)] = old[order]
        ring[HEAD] = 0

    # --- Saving -----------------------------------------------------------------------------------

    @guarded
    def state(self) -> dict[str, np.ndarray]:
        """Copy everything that `restore` needs to resume bit for bit. Weights and traces that are zero take a bit.

        Returns
        -------
        dict from str to array
            The arrays by name.
        """
        self._make_room(len(self._state["slots"]))  # the oldest first
        state = Resumable.state(self)
        for name in RINGS:
            state[name] = state[name][: self._state["ring"][WAITING]]
        for name in SPARSE:
            state[f"{name} set"], state[name] = np.packbits(state[name] != 0.0), state[name][state[name] != 0.0]
        return state

    @guarded
    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Resume from a state.

        Parameters
        ----------
        state : mapping from str to array
            The state of a mixture with the same feature sets, experts and settings.

        Raises
        ------
        ValueError
            If the state does not fit, or a number in it is impossible. Nothing has changed then.
        """
        whole = dict(state)
        for name in SPARSE:
            size = len(self._state[name])
            held = np.unpackbits(saved_array(state, f"{name} set", (-(-size // 8),), np.uint8), count=size).astype(bool)
            whole[name] = np.zeros(size, np.float32)
            whole[name][held] = saved_array(state, name, (int(held.sum()),), np.float32)
        ring = saved_array(state, "ring", self._state["ring"].shape, np.int64)
        waiting = saved_count("samples that wait", ring[WAITING], self._settings[-1])
        before = dict(self._state)
        try:
            for name in RINGS:
                saved = saved_array(state, name, (waiting, before[name].shape[1]), before[name].dtype)
                whole[name] = np.concatenate([saved, np.zeros((2, saved.shape[1]), saved.dtype)])[: self._settings[-1]]
                self._state[name] = np.empty_like(whole[name])
            Resumable.restore(self, whole)
        except ValueError:
            self._state = before
            raise

    def _possible(self, saved: Mapping[str, np.ndarray]) -> dict[str, Any]:
        ring, room, table, carried = saved["ring"], len(saved["slots"]), saved["table"], saved["carried"]
        last, weight, state = saved["last"], saved["slots"][:, OPEN], saved["state"]
        finite = ("numbers", "traces", "v_old", "last_bases", "forecasts", "slots", "carried", "table", "state")
        return {
            "ring": (ring >= 0).all()
            and ring[HEAD] < room
            and ring[WAITING] < room
            and (ring[LOOKED:] <= ring[WAITING]).all(),
            "last": (last >= 0) & (last < self._bounds),
            **{name: np.isfinite(saved[name]) for name in finite},
            "open_weight": (weight >= 0.0) & (weight <= 1.0),
            "weights": table[[SQUARES, WEIGHT]] >= 0.0,
            "state of the samples": state[GAMMA] <= 1.0 and (state >= 0.0).all() and state[SAMPLES] <= MAX_COUNT,
            "unit": state[UNIT] > 0.0,
            "sums of the weights": carried[[SEEN, FADED, SIZE, LARGEST, FIRST]] >= 0.0,
        }
