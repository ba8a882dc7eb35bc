"""The settings of `trueonline train`: everything that determines a run except its number, and the agent that they make."""

from __future__ import annotations

import ast
import inspect
import json
import sys
from dataclasses import asdict, dataclass, field
from typing import Any

from trueonline import catalog, control, features
from trueonline.control.gym import environments, network_agents
from trueonline.features.spaces import Maker
from trueonline.inputs import count, flag, number, positive, unit
from trueonline.study.checks import check_known

LENGTHS = ("episodes", "evaluate")  # settings that may change between two calls: a training can be extended
# Arguments of agents that are settings of their own, or no numbers. All others are parameters.
NO_PARAMETERS = {
    "n_features",
    "n_actions",
    "net",
    "actor",
    "critic",
    "step_size",
    "trace_decay",
    "discount",
    "policy",
    "seed",
}
NO_PARAMETERS |= {"initial_weights", "normalise", "scale_rewards", "time_limit", "continuous", "options"}


@dataclass(frozen=True)
class TrainingSettings:
    """Everything that determines a run, except its number.

    Parameters
    ----------
    environment : str
        The name of a Gymnasium environment, or module:Name.
    options : dict
        For `gymnasium.make`.
    method : str
        One of `catalog.agents()`, or "stream_q", "stream_sarsa" or "stream_ac", which learn a network.
    step_size : float
        α, which is divided by the number of active features if `divided`.
    divided : bool
        Whether the step-size is divided.
    trace_decay, discount : float
        λ and γ.
    epsilon : float
        How often a random action is taken. With `epsilon_final` and `epsilon_steps` ε changes linearly.
    epsilon_final : float, optional
        The ε at the end.
    epsilon_steps : int, optional
        How many steps ε takes to get there.
    features : str
        "auto", "table", "tiles" or "fourier".
    feature_options : dict
        For `trueonline.features.from_space`, or "hidden", the units of the hidden layers of a network.
    episodes : int
        How many episodes to train.
    evaluate : int
        How many greedy episodes to play afterwards.
    seed : int
        The seed of everything random. Each run has its own, made from it and the number of the run.
    parameters : dict
        Further arguments of the agent that are numbers, such as "meta_step_size", "target_epsilon" or "kappa". "eta" is the ratio
        of the second step-size to the first.
    """

    environment: str
    options: dict[str, Any] = field(default_factory=dict)
    method: str = "true_online_sarsa"
    step_size: float = 0.5
    divided: bool = True
    trace_decay: float = 0.9
    discount: float = 0.99
    epsilon: float = 0.1
    epsilon_final: float | None = None
    epsilon_steps: int | None = None
    features: str = "auto"
    feature_options: dict[str, Any] = field(default_factory=dict)
    episodes: int = 500
    evaluate: int = 20
    seed: int = 0
    parameters: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = (*catalog.agents(), *network_agents.TITLES)
        if self.method not in known:
            raise ValueError(f"unknown method {self.method!r}; known are {', '.join(known)}")
        if self.is_deep and self.features != "auto":
            raise ValueError(f"an agent with a network learns its features: drop --features {self.features}")
        check_known(f"parameter of {self.method}", self.parameters, self.parameter_names)
        for name, value in self.parameters.items():
            number(name, value)
        positive("step-size", self.step_size)
        unit("trace-decay", self.trace_decay)
        unit("discount", self.discount)
        unit("epsilon", self.epsilon)
        count("episodes", self.episodes)
        environments.entropy(self.seed)
        flag("divided", self.divided)
        for name in ("options", "feature_options"):
            if not isinstance(getattr(self, name), dict):
                raise ValueError(f"{name} must be a dictionary, got {getattr(self, name)!r:.80}")
        if self.evaluate:
            count("evaluate", self.evaluate)
        if (self.epsilon_final is None) != (self.epsilon_steps is None):
            raise ValueError("epsilon-final and epsilon-steps belong together: give both, or neither")
        if self.epsilon_final is not None:
            unit("epsilon-final", self.epsilon_final)
            count("epsilon-steps", self.epsilon_steps)

    @property
    def is_deep(self) -> bool:
        """Whether the agent learns a network."""
        return self.method in network_agents.TITLES

    @property
    def title(self) -> str:
        """The name of the method."""
        return network_agents.TITLES[self.method] if self.is_deep else self.row.title

    @property
    def row(self) -> catalog.Method:
        """The method's row of the catalogue."""
        return catalog.METHODS[self.method]

    @property
    def parameter_names(self) -> list[str]:
        """The parameters that the agent has."""
        kind = network_agents.kind(self.method) if self.is_deep else self.row.resolve("learner")
        left_out = NO_PARAMETERS.union(getattr(kind, "idle_arguments", ()))
        if not self.is_deep and self.row.trace == "none":  # step-size adaptation has to know the trace
            left_out |= {"bound", "meta_step_size"}
        names = [name for name in inspect.signature(kind).parameters if name not in left_out]
        return [*names, *(["eta"] if "second_step_size" in names else [])]

    def plain(self) -> dict[str, Any]:
        """The settings as JSON has them. Parameters are left out where there are none, as files of earlier versions do."""
        return {
            name: value for name, value in json.loads(json.dumps(asdict(self))).items() if value or name != "parameters"
        }

    def environment_made(self) -> Any:
        """A new environment."""
        if ":" in self.environment and "" not in sys.path:
            sys.path.insert(0, "")  # module:Name is looked for in the current folder too
        return environments.make(self.environment, **self.options)

    def features_for(self, env: Any) -> Maker:
        """The maker of features for the observations of an environment."""
        if self.is_deep:
            return self._observations_of(env)
        try:
            maker = features.from_space(env.observation_space, self.features, **self.feature_options)
        except TypeError:
            given = ", ".join(f"--{name}" for name in self.feature_options)
            raise ValueError(
                f"these features have no {given}; bins and tilings are for tiles, order for fourier"
            ) from None
        if self.row.binary and isinstance(maker, features.Fourier):
            raise ValueError(f"{self.method} needs binary features, which --features fourier are not; use tiles")
        return maker

    def _observations_of(self, env: Any) -> Any:
        others = [f"--{name}" for name in self.feature_options if name != "hidden"]
        if others:
            raise ValueError(f"an agent with a network has no {', '.join(others)}; it has --hidden")
        return network_agents.Observations(env.observation_space, **self.feature_options)

    def alpha(self, maker: Maker) -> float:
        """The step-size that the agent gets."""
        return self.step_size / maker.n_active if self.divided else self.step_size

    def schedule(self) -> float | control.Linear:
        """ε, or how it changes."""
        if self.epsilon_final is None or self.epsilon_steps is None:
            return self.epsilon
        return control.Linear(self.epsilon, self.epsilon_final, self.epsilon_steps)

    def agent(self, env: Any, maker: Any, run: int) -> Any:
        """The agent of a run, before it has learned anything."""
        if self.is_deep:
            return network_agents.agent(self, env, maker, run)
        own = dict(self.parameters)
        if "eta" in own:
            own["second_step_size"] = own.pop("eta") * self.alpha(maker)
        agent: control.Agent = self.row.resolve("learner")(
            maker.n_features,
            int(environments.discrete(env).n),
            self.alpha(maker),
            self.trace_decay,
            self.discount,
            control.EpsilonGreedy(self.schedule()),
            seed=[self.seed, run],
            **own,
        )
        return agent


def option(text: str) -> tuple[str, Any]:
    """Read KEY=VALUE. Numbers, true, false, none and JSON are read as such, everything else as text.

    >>> option("is_slippery=false"), option("map_name=8x8"), option("max_episode_steps=1000")
    (('is_slippery', False), ('map_name', '8x8'), ('max_episode_steps', 1000))
    """
    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier():
        raise ValueError(f"--option and --parameter must be KEY=VALUE, got {text!r}")
    words = {"true": True, "false": False, "none": None, "null": None}
    if value.lower() in words:
        return key, words[value.lower()]
    for read in (json.loads, ast.literal_eval):
        try:
            return key, read(value)
        except (ValueError, SyntaxError):
            continue
    return key, value
