"""The base of every agent: action values that are linear in block features, a policy over them, and a rule that learns."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from trueonline import files, inputs
from trueonline.control.policies import EpsilonGreedy, Policy, check_policy, describe
from trueonline.control.transitions import compiled
from trueonline.core import memory
from trueonline.core.compiling.kernels import call
from trueonline.core.memory import KINDS
from trueonline.core.thread_guard import guarded
from trueonline.core.transition import GAMMA_NEXT, asked
from trueonline.inputs import Features, FeaturesLike, Parameters, Schedule, explains_arguments, saved_count
from trueonline.learners.acting import Acting
from trueonline.learners.docstrings import ADAPTATION, AGENT, SECOND
from trueonline.learners.over_memory import OverMemory, idle, take_parameters

OPTIONS = """\
**options : bool
    Switches of the class, off by default.
"""


class Agent(Acting, OverMemory):
    """An agent that learns action values Q(s, a) = wᵀψ(s, a) while it acts.

    ψ(s, a) are block features: those of the state, in the block of the action (end of section 4.3). The features x of a state are a
    float array of length `n_features`, an integer array of active indices, one integer, or a pair (indices, values). The action
    chosen for the next state is the one to execute next. The method bootstraps from that action, or from the best one.
    """

    _shared_parameters = AGENT + SECOND + ADAPTATION + OPTIONS
    binary: ClassVar[bool] = False  # whether the rule is defined for binary features only
    has_target: ClassVar[bool] = False  # whether it has a target policy beside its policy
    options: ClassVar[tuple[str, ...]] = ()  # switches that the rule has beside the common settings, off by default

    def __init_subclass__(cls, **options: Any) -> None:
        take_parameters(cls)
        super().__init_subclass__(**options)
        if "method" in vars(cls):
            cls.binary = cls.method.binary
            cls.idle_arguments = idle(cls.method)

    @explains_arguments
    def __init__(
        self,
        n_features: int,
        n_actions: int,
        step_size: float | Schedule,
        trace_decay: float,
        discount: float,
        policy: Policy | None = None,
        *,
        seed: Any = None,
        initial_weights: ArrayLike | None = None,
        second_step_size: float | Schedule | None = None,
        bound: float | None = None,
        meta_step_size: float | None = None,
        **options: bool,
    ) -> None:
        for name in self.options:
            setattr(self, name, inputs.flag(name, options.get(name, False)))
        self._choose_method()
        asks = set(asked(self.method.resolve("rule"))) & {"rho", "pi", "interest"}
        if not self.has_target and (asks or KINDS[self.method.memory].memories > 1):
            raise TypeError(f"{type(self).__name__}: agents have one vector of weights, and no ratios or interests")
        if second_step_size is None and self.method.second_is_first:
            second_step_size = step_size
        if callable(step_size) and "alpha" in self.method.constants:
            raise ValueError(
                "step_size is a constant of this forward view, got a schedule; write alpha[j] in it to let it vary"
            )
        self.n_features = inputs.count("n_features", n_features)
        self.n_actions = inputs.count("n_actions", n_actions, inputs.MAX_FEATURES // self.n_features)
        if initial_weights is not None:
            initial_weights = inputs.as_array("initial_weights", initial_weights)
            if initial_weights.shape != (self.n_features, self.n_actions):
                raise ValueError(
                    f"initial_weights must have a row for each feature and a column for each action, "
                    f"({self.n_features}, {self.n_actions}), got shape {initial_weights.shape}"
                )
            if initial_weights.dtype.kind == "f" and not np.isfinite(initial_weights).all():
                bad = tuple(int(place) for place in np.argwhere(~np.isfinite(initial_weights))[0])
                raise ValueError(f"initial_weights must be finite, got {initial_weights[bad]} at {bad}")
            initial_weights = initial_weights.reshape(-1)
        if policy is not None:
            check_policy(policy)
        self._set_step_sizes(second_step_size, bound, meta_step_size)
        total = self.n_features * self.n_actions
        self._parameters = Parameters(total, step_size, trace_decay, discount, initial_weights)
        self.policy: Policy = EpsilonGreedy(0.1) if policy is None else policy
        self.rng = np.random.default_rng(inputs.joint_seed(seed))
        self.reset()

    def _choose_method(self) -> None:
        """Set `method` if it depends on the options."""

    @property
    def _shape(self) -> tuple[int, ...]:
        return (self.n_features, self.n_actions)

    @property
    @guarded
    def weights(self) -> np.ndarray:
        return inputs.read_only(memory.weights(memory.each(self._memory)[0]).reshape(self.n_features, self.n_actions))

    @property
    @guarded
    def trace(self) -> np.ndarray:
        """A read-only copy of the trace, as the last transition used it, in the shape of the weights."""
        return inputs.read_only(memory.trace(memory.each(self._memory)[0]).reshape(self.n_features, self.n_actions))

    @property
    def action(self) -> int | None:
        """The action to be executed now; None between episodes."""
        return self._action

    @guarded
    def reset(self) -> None:
        """Forget what was learned, and return to the initial weights. The random numbers continue."""
        method = self.method
        self._entries = compiled(self._rule(), method.memory, self._is_adapted)
        self._allocate()
        self._here: Features | None = None
        self._action: int | None = None
        self._q = np.empty(self.n_actions)
        # The numbers of an ordinary transition, unless they change with time.
        varies = callable(self.step_size) or callable(self._second_step_size)
        self._ordinary = None if varies else self._numbers(0, None, None)

    @guarded
    def values(self, x: FeaturesLike) -> np.ndarray:
        q = np.empty(self.n_actions)
        self._evaluate(x, "x", q)
        return q

    @guarded
    def start(self, x: FeaturesLike) -> int:
        here = self._evaluate(x, "x", self._q)
        action = self._choose(self.steps)
        memory.begin(self._memory)
        self._stand(here, action)
        return action

    @guarded
    def step(
        self, reward: float, x_next: FeaturesLike, discount: float | None = None, trace_decay: float | None = None
    ) -> int:
        x, action = self._learn(reward, x_next, discount, trace_decay)
        self._stand(x, action)
        return action

    @guarded
    def truncate(self, reward: float, x_next: FeaturesLike, discount: float | None = None) -> None:
        self._learn(reward, x_next, discount, None)
        self._here = self._action = None

    @guarded
    def end(self, reward: float) -> None:
        here, action = self._standing()
        reward = inputs.number("reward", reward)
        numbers = self._numbers(self.steps, None, None)
        numbers[GAMMA_NEXT] = 0.0
        self._q[:] = 0.0  # there is no next state
        self._transition(here, action, reward, here, action, numbers)
        self._here = self._action = None

    def _numbers(self, steps: int, discount: float | None, trace_decay: float | None) -> np.ndarray:
        """The numbers of the coming transition, in the order of `core.transition`."""
        gamma = self.discount if discount is None else inputs.unit("discount", discount)
        lam = self.trace_decay if trace_decay is None else inputs.unit("trace_decay", trace_decay)
        alpha = self._parameters.alpha(steps)
        beta = inputs.at("second_step_size", self._second_step_size, steps, inputs.ratio)
        return np.array([alpha, beta, gamma, lam, 1.0, 1.0, 1.0, self.discount, self.trace_decay])

    def _learn(
        self, reward: float, x_next: Any, discount: float | None, trace_decay: float | None
    ) -> tuple[Features, int]:
        here, action = self._standing()
        if x_next is None:
            raise ValueError("x_next must be features, got None; at the end of the episode, call end(reward)")
        if self.method.constants:
            self._refuse_others(discount, trace_decay)
        if type(reward) is not float or not math.isfinite(reward):
            reward = inputs.number("reward", reward)
        steps = self.steps
        numbers = self._ordinary
        if numbers is None or discount is not None or trace_decay is not None:
            numbers = self._numbers(steps, discount, trace_decay)
        x = self._evaluate(x_next, "x_next", self._q)
        action_next = self._choose(steps + 1)
        self._transition(here, action, reward, x, action_next, numbers)
        return x, action_next

    def _evaluate(self, x: Any, name: str, q: np.ndarray) -> Features:
        """Write the values of all actions to q; return x in one of the package's forms."""
        if inputs.native(x):
            x = inputs.copied(x)  # what is checked stays as it is when another thread writes to the array
            try:
                self._entries.values(*self._memory, *inputs.given(x), q)
                return x
            except (TypeError, ValueError):
                pass  # another form of features, or bad input
        x = inputs.copied(inputs.features(x, self.n_features, binary=self.binary, name=name))
        call(self._entries.values, *self._memory, *inputs.given(x), q)
        return x

    def _choose(self, t: int) -> int:
        action = self.policy(self._q.copy(), self.rng, t)  # a copy: a policy may change it
        if type(action) is not int or not 0 <= action < self.n_actions:
            action = self._checked_action(action)
        return action

    def _checked_action(self, action: Any) -> int:
        whole = isinstance(action, int | np.integer) and not isinstance(action, bool)
        if not whole or not 0 <= action < self.n_actions:
            raise ValueError(f"the policy must choose an action from 0 to {self.n_actions - 1}, it chose {action!r}")
        return int(action)

    def _transition(
        self, here: Features, action: int, reward: float, x: Features, following: int, numbers: np.ndarray
    ) -> None:
        """Learn from a transition. Features that have changed their form are converted, so each form is compiled once."""
        now, then = inputs.given(here), inputs.given(x)
        try:
            self._entries.transition(*self._memory, *now, action, reward, *then, self._q, following, numbers)
        except TypeError:  # another form, or the first transition
            now = inputs.given(inputs.like(here, x, self.n_features))
            call(self._entries.transition, *self._memory, *now, action, reward, *then, self._q, following, numbers)

    def _stand(self, x: Features, action: int) -> None:
        self._here = x
        self._action = action

    def _standing(self) -> tuple[Features, int]:
        if self._here is None or self._action is None:
            raise RuntimeError("no episode has begun: call start(x) with its first features")
        return self._here, self._action

    def _settings(self) -> dict[str, Any]:
        return {
            "n_features": self.n_features,
            "n_actions": self.n_actions,
            "step_size": None if callable(self.step_size) else self.step_size,
            "trace_decay": self.trace_decay,
            "discount": self.discount,
            "policy": describe(self.policy),
            "rng": plain(self.rng.bit_generator.state),
            "action": self._action,
            **self._step_size_settings(),
            **{name: getattr(self, name) for name in self.options},
        }

    def save(self, path: str | os.PathLike) -> None:
        """Write everything to one file, random state included, from which `trueonline.load` resumes bit for bit.

        The file appears whole or not at all. Schedules and policies of your own are code and are not saved: give them to `load`
        again.

        Parameters
        ----------
        path : path
            The file to write.
        """
        files.write_learner(path, self._kind(), self._settings(), self._dump())

    @classmethod
    def _kind(cls) -> str:
        """The name of the class in a saved file."""
        return cls.__name__

    @guarded
    def _dump(self) -> dict[str, np.ndarray]:
        parts = self._dump_memory()
        if self._parameters.initial_weights is not None:
            parts["initial_weights"] = self._parameters.initial_weights.reshape(self.n_features, self.n_actions)
        here = self._here
        if here is not None:
            parts |= {"here_indices": here[0], "here": here[1]} if isinstance(here, tuple) else {"here": here}
        return parts

    def _restore(self, parts: dict[str, np.ndarray], rng: dict[str, Any], action: int | None) -> None:
        """Take over a saved state; ValueError, KeyError or TypeError if it does not fit."""
        self._restore_memory(parts)
        self.rng = generator(rng)
        self._here = self._action = None
        if action is not None:
            x = (parts["here_indices"], parts["here"]) if "here_indices" in parts else parts["here"]
            x = inputs.features(x, self.n_features, binary=self.binary, name="the saved features")
            self._stand(x, self._checked_action(action))

    def __getstate__(self) -> dict[str, Any]:
        state = {"parameters": self._parameters, "policy": self.policy, "parts": self._dump()}
        names = ("n_features", "n_actions", *self.options, *self._more_settings)
        settings = {name: getattr(self, name) for name in names}
        return {**state, "settings": settings, "action": self._action, "rng": self.rng.bit_generator.state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._parameters, self.policy = state["parameters"], state["policy"]
        for name, value in state["settings"].items():
            setattr(self, name, value)
        self._choose_method()
        self.reset()
        self._restore(state["parts"], state["rng"], state["action"])

    def __repr__(self) -> str:
        schedule = getattr(self.step_size, "__name__", repr(self.step_size))
        return (
            f"{type(self).__name__}(n_features={self.n_features}, n_actions={self.n_actions}, step_size={schedule}, "
            f"trace_decay={self.trace_decay}, discount={self.discount}, policy={self.policy}"
            f"{''.join(f', {name}={value}' for name, value in self._step_size_settings().items() if value is not None)}"
            f"{''.join(f', {name}={getattr(self, name)}' for name in self.options)})"
        )


def plain(state: Any) -> Any:
    """The state of a bit generator as JSON takes it."""
    if isinstance(state, dict):
        return {name: plain(value) for name, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray | np.generic) else state


def generator(state: dict[str, Any]) -> np.random.Generator:
    kind: Callable | None = getattr(np.random, str(state["bit_generator"]), None)
    if not (isinstance(kind, type) and issubclass(kind, np.random.BitGenerator)):
        raise ValueError(f"the random state is of an unknown kind {state['bit_generator']!r}")
    bits = kind()
    bits.state = state
    # NumPy believes the position in the words that are drawn already, and would read beyond them.
    most = {"MT19937": (state["state"], "pos", 624), "Philox": (state, "buffer_pos", 4)}.get(state["bit_generator"])
    if most is not None:
        saved_count(f"random state's {most[1]}", most[0][most[1]], most[2])
    saved_count("random state's has_uint32", state.get("has_uint32", 0), 1)
    return np.random.Generator(bits)
