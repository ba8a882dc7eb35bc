"""The base of learners and agents that learn a network from a stream, one transition at a time."""

from __future__ import annotations

import os
import sys
import warnings
from abc import ABC
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from trueonline import files, inputs, notebook
from trueonline.core.compiling.kernels import call
from trueonline.core.thread_guard import ThreadGuarded, guarded
from trueonline.deep import kernels
from trueonline.deep.network import MLP
from trueonline.inputs import Parameters, Parametrised, Schedule

PARAMETERS = """\
net : MLP
    The network. It belongs to the learner from now on, which changes its parameters.
discount : float
    γ in [0, 1], the default of every transition.
trace_decay : float
    λ in [0, 1], the default of every transition.
step_size : float or callable, optional
    α > 0, or a schedule t → α_t, with t the number of transitions learned from. It is a largest step-size: ObGD makes it smaller.
kappa : float, optional
    κ > 0. A larger κ makes smaller steps.
"""


WHOLE = frozenset((int, np.int64, np.int32))
NUMBERS = frozenset((float, int, np.float64, np.float32, np.int64, np.int32))


class Streaming(ThreadGuarded, Parametrised, ABC):
    """A value network that learns by TD(λ) with ObGD (see `StreamTD`)."""

    def __init__(
        self, net: MLP, discount: float, trace_decay: float, step_size: float | Schedule = 1.0, kappa: float = 2.0
    ) -> None:
        self.net = checked_net("net", net)
        self._parameters = Parameters(net.n_inputs, step_size, trace_decay, discount)
        self._kappa = inputs.positive("kappa", kappa)
        self._networks = tuple(self._nets().values())
        self._initial = {name: each._w.copy() for name, each in self._nets().items()}
        warn_of_empty(self._networks)
        self._attach()

    def _attach(self) -> None:
        """Write the settings of the update to the networks' arrays, and begin at the beginning."""
        self.net._numbers[kernels.KAPPA] = self.kappa
        for net in self._nets().values():
            net._e[:] = net._seen[:] = net._numbers[kernels.LAST] = 0.0  # a learner with a head sets LAST afterwards
            net._learner = self
        self._steps = 0
        self._decay = 0.0  # of the trace at the next transition: γλ of the state that the learner is in
        self._here: np.ndarray | None = None
        self._diverged = False

    def _nets(self) -> dict[str, MLP]:
        return {"net": self.net}

    @property
    def kappa(self) -> float:
        """κ of the update."""
        return self._kappa

    @property
    def n_features(self) -> int:
        """The number of inputs of the network."""
        return self.net.n_inputs

    @property
    @guarded
    def weights(self) -> np.ndarray:
        """A copy of all parameters as one vector. `net.parameters` has them layer by layer."""
        return inputs.read_only(np.concatenate([net._w for net in self._nets().values()]))

    @property
    @guarded
    def trace(self) -> np.ndarray:
        """A copy of the traces of all parameters as one vector, as the last transition used them."""
        return inputs.read_only(np.concatenate([net._e for net in self._nets().values()]))

    @property
    def steps(self) -> int:
        """The number of transitions learned from: the t of a step-size schedule."""
        return self._steps

    @property
    def diverged(self) -> bool:
        """Whether a transition was refused because the network has diverged (docs/methods/streaming_deep.md#divergence)."""
        return self._diverged

    @guarded
    def reset(self) -> None:
        """Forget everything, and return to the parameters that the network had when the learner was made."""
        for name, net in self._nets().items():
            net._w[:] = self._initial[name]
        self._attach()

    # --- Learning ---------------------------------------------------------------------------------

    # They take `_given`, an output, R, more, γ, α and the decay of the trace. The networks hold x and x′.
    _entry: Any = staticmethod(kernels.LEARN)
    _run_entry: Any = staticmethod(kernels.RUN)

    def _given(self) -> tuple:
        """What compiled steps take first: the addresses of the networks."""
        return (self.net._address,)

    def _numbered(self, output: Any) -> int:
        """The output or action as compiled steps take it."""
        return output

    def _learn(
        self, x: Any, output: Any, reward: Any, x_next: Any, more: tuple, ends: bool, greedy: bool = True
    ) -> float:
        """Learn from one transition with the learner's own γ and λ. The trace is zero after an end, or if not `greedy`."""
        gamma = 0.0 if inputs.flag("terminated", ends) else self.discount
        lam = self.trace_decay if inputs.flag("greedy", greedy) else 0.0
        if x_next is None and not ends:
            raise ValueError("x_next must be features, got None; at the end of an episode, give terminated=True")
        return self._transition(x, output, reward, x_next, more, gamma, lam)

    @guarded
    def _transition(self, x: Any, output: Any, reward: Any, x_next: Any, more: tuple, gamma: float, lam: float) -> float:
        """Learn from one transition into a state with these γ and λ."""
        alpha = self._alpha()
        self._check_owner()
        if gamma == 0.0:
            x_next = x  # it does not matter
        try:
            if not (type(output) in WHOLE and type(reward) in NUMBERS and self.net._hold(x, x_next)):
                raise TypeError
            delta = self._entry(*self._given(), output, float(reward), *more, gamma, alpha, self._decay)
        except (OverflowError, TypeError, ValueError):  # another form of input, or bad input
            self.net._hold(self.net._checked(x, "x"), self.net._checked(x_next, "x_next"))
            output, reward = self._numbered(self._checked_action(output)), inputs.number("reward", reward)
            try:
                delta = call(self._entry, *self._given(), output, reward, *more, gamma, alpha, self._decay)
            except ValueError as error:
                if error.args:  # it cannot be compiled
                    raise
                self._diverged = True
                raise ValueError(DIVERGED) from None
        self._decay = gamma * lam
        self._steps += 1
        return delta

    def _own(self, name: str, given: float | None) -> float:
        """γ or λ of a transition: what was given, or the learner's own."""
        return getattr(self, name) if given is None else inputs.unit(name, given)

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return self.net.n_outputs

    def _checked_action(self, action: Any, name: str = "action") -> int:
        n = self.n_actions
        whole = isinstance(action, int | np.integer) and not isinstance(action, bool)
        if not whole or not 0 <= action < n:
            raise ValueError(f"{name} must be a whole number from 0 to {n - 1}, got {action!r}")
        return int(action)

    @guarded
    def _run(
        self,
        X: Any,
        outputs: np.ndarray,
        more: tuple,
        rewards: Any,
        terminated: Any,
        greedy: Any,
        resume: bool,
        discounts: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn from a stream in one call; return predictions and TD errors. Nothing changes if one is not finite."""
        if callable(self.step_size):
            raise ValueError("run takes no step-size schedule: call learn for each transition")
        X = self.net._stream(X)
        rewards = inputs.rewards(rewards, len(X))
        ends = inputs.marks("terminated", terminated, len(rewards))
        clears = ends if greedy is None else ends | ~inputs.marks("greedy", greedy, len(rewards))
        lams = np.where(clears, 0.0, self.trace_decay)
        gammas = np.where(ends, 0.0, inputs.units("discounts", discounts, len(rewards), self.discount))
        values, deltas = np.empty((2, len(rewards)))
        self._check_owner()
        before = [each.copy() for each in self._changing()]
        decay = self._decay
        if not resume:
            self._forget()
        done = self._stream(X, outputs, rewards, more, gammas, lams, values, deltas)
        if done < len(rewards):
            for now, then in zip(self._changing(), before, strict=True):
                now[:] = then
            self._decay, self._diverged = decay, True
            raise ValueError(f"at transition {done}: {DIVERGED}")
        self._decay = float(gammas[-1] * lams[-1])
        self._steps += len(rewards)
        self._stand_after(None if ends[-1] else X[-1].copy())
        return values, deltas

    def _stream(self, X: Any, outputs: Any, rewards: Any, more: tuple, gammas: Any, lams: Any, *results: Any) -> int:
        """Learn from a stream that fits; return the number of transitions before one whose δ is not finite."""
        decays = np.r_[self._decay, (gammas * lams)[:-1]]
        return call(self._run_entry, *self._given(), X, outputs, rewards, *more, gammas, self._alpha(), decays, *results)

    def _alpha(self) -> float:
        """The step-size of the coming transition."""
        return self._parameters.alpha(self._steps)

    def _network_set(self) -> None:
        """Somebody has set the parameters of a network."""
        self._diverged = False

    def _changing(self) -> list[np.ndarray]:
        """The arrays that learning changes."""
        return [net._numbers for net in self._nets().values()]

    def _forget(self) -> None:
        """Begin an episode, without a trace."""
        self._decay = 0.0

    def _stand_after(self, here: np.ndarray | None) -> None:
        """Be in the last state of a stream, or in none."""
        self._here = here

    def _check_owner(self) -> None:
        """RuntimeError if a network has been given to another learner."""
        for net in self._networks:
            if net._learner is not self:
                raise RuntimeError(
                    f"a network of this {type(self).__name__} belongs to another learner now: make an MLP for each"
                )

    def _checked_actions(self, actions: Any, rows: int) -> np.ndarray:
        """The actions of a stream."""
        array = np.array(actions)  # a copy: what is checked stays as it is when another thread writes to the array
        if array.shape != (rows,) or array.dtype.kind not in "iu" or not ((array >= 0) & (array < self.n_actions)).all():
            raise ValueError(f"actions must be {rows} whole numbers from 0 to {self.n_actions - 1}, got {actions!r:.80}")
        return np.require(array, np.int64, ("C", "A", "W"))

    # --- Files ------------------------------------------------------------------------------------

    @guarded
    def save(self, path: str | os.PathLike) -> None:
        """Write everything to one file, from which `trueonline.load` resumes bit for bit.

        Schedules and policies of your own are code and are not saved: give them to `load` again.

        Parameters
        ----------
        path : path
            The file to write.
        """
        files.write_learner(path, type(self).__name__, self._settings(), self._dump())

    def _settings(self) -> dict[str, Any]:
        return {
            **{name: net._settings() for name, net in self._nets().items()},
            "discount": self.discount,
            "trace_decay": self.trace_decay,
            "step_size": None if callable(self.step_size) else self.step_size,
            "kappa": self.kappa,
        }

    def _dump(self) -> dict[str, np.ndarray]:
        parts = {"steps": np.array(self._steps), "decay": np.array(self._decay)}
        for name, net in self._nets().items():
            parts |= {f"{name}_weights": net._w, f"{name}_trace": net._e, f"{name}_seen": net._seen}
            parts[f"{name}_initial_weights"] = self._initial[name]
        return parts if self._here is None else {**parts, "here": self._here}

    def _restore_nets(self, parts: dict[str, np.ndarray]) -> None:
        """Take over a saved state; ValueError if it does not fit."""
        for name, net in self._nets().items():
            net._w[:] = inputs.saved_array(parts, f"{name}_weights", net._w.shape, np.float64)
            net._e[:] = inputs.saved_array(parts, f"{name}_trace", net._w.shape, np.float64)
            self._initial[name] = inputs.saved_array(parts, f"{name}_initial_weights", net._w.shape, np.float64)
            net._seen[:] = inputs.saved_array(parts, f"{name}_seen", net._seen.shape, np.float64)
            inputs.check_saved({f"{name}_seen": (net._seen >= 0.0).all() and np.isfinite(net._seen).all()})
        self._steps = inputs.saved_count("steps", inputs.saved_array(parts, "steps", (), np.int64))
        self._decay = inputs.unit("decay", inputs.saved_array(parts, "decay", (), np.float64).item())
        self._here = None
        if "here" in parts:
            here = inputs.saved_array(parts, "here", (self.net.n_inputs,), np.float64)
            self._here = self.net._checked(here, "the saved state")

    @classmethod
    def _loaded(cls, settings: dict[str, Any], parts: dict[str, np.ndarray]) -> Any:
        """The learner that a file describes."""
        learner = cls(**with_nets(settings))
        learner._restore_nets(parts)
        return learner

    def _repr_html_(self) -> str | None:
        """The HTML that a notebook shows."""
        return notebook.described(self, self._settings())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._settings().items())})"


DIVERGED = (
    f"the network has diverged: its outputs are not finite, or exceed {kernels.LIMIT:g} times the largest return that rewards so "
    "far can add up to. Nothing was learned from this transition. Call reset, and use a larger kappa, a smaller step_size, or "
    "normalised inputs and rewards"
)


def checked_net(name: str, net: Any, *, outputs: int | None = None) -> MLP:
    """A network; ValueError if it is something else, or has another number of outputs."""
    if not isinstance(net, MLP):
        raise ValueError(
            f"{name} must be an MLP, got {type(net).__name__}; for a PyTorch module, use trueonline.deep.ObGD"
        )
    if outputs is not None and net.n_outputs != outputs:
        raise ValueError(f"{name} must have {outputs} output, got {net.n_outputs}")
    return net


def warn_of_empty(nets: Iterable[MLP]) -> None:
    """Warn of networks that never learn, where the code is that made the learner."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("trueonline."):
        level, frame = level + 1, frame.f_back
    for net in nets:
        if any(not first.any() and not second.any() for first, second in pairwise(net.parameters[::2])):
            warnings.warn(
                f"two layers in a row of {net} have zero weights only, and never learn: sparse initialisation leaves a unit with "
                "fewer than 10 inputs no weight. Use wider layers or a smaller sparsity",
                stacklevel=level,
            )


def with_nets(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of a file, with networks in place of their settings."""
    nets = {name: MLP(**value) for name, value in settings.items() if isinstance(value, dict) and "n_inputs" in value}
    return {**settings, **nets}
