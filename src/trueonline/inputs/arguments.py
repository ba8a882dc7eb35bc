"""Arguments by other names: a constructor says which one was meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar

# Names of arguments in papers and other libraries, and the names here. If there are several, the first that a class takes is meant.
OTHER_NAMES = {
    **dict.fromkeys(("alpha", "α", "lr", "learning_rate", "stepsize"), ("step_size",)),
    "eta": ("second_step_size=η·step_size", "step_size"),
    **dict.fromkeys(("lambda", "lam", "lambda_", "lambd", "lamda", "lmbda", "λ", "trace", "decay"), ("trace_decay",)),
    **dict.fromkeys(("gamma", "gamma_", "γ", "discount_factor"), ("discount",)),
    **dict.fromkeys(("beta", "β", "second_stepsize", "reward_rate_step_size"), ("second_step_size",)),
    **dict.fromkeys(("theta", "θ", "meta_stepsize"), ("meta_step_size",)),
    **dict.fromkeys(("n", "num_features", "features", "n_states", "num_states"), ("n_features",)),
    **dict.fromkeys(("num_actions", "actions"), ("n_actions",)),
    **dict.fromkeys(("epsilon", "eps", "ε"), ("policy=trueonline.control.EpsilonGreedy(…)",)),
}
MIN_SIMILARITY = 0.75  # how much a misspelt name must have in common with an argument
Init = TypeVar("Init", bound=Callable[..., None])


def explains_arguments(init: Init) -> Init:
    """Let a constructor name the class in its errors, and the argument that a user of other names probably means."""
    parameters = [name for name in inspect.signature(init).parameters if name != "self"]

    @wraps(init)
    def checked(self: Any, *arguments: Any, **named: Any) -> None:
        idle = (*getattr(self, "idle_arguments", ()), "options")
        taken = [
            *(name for name in parameters if name not in idle),
            *getattr(self, "options", ()),
            *getattr(self, "own_parameters", ()),
        ]
        unknown = [name for name in named if name not in parameters and name not in taken]
        if unknown:
            name, kind = unknown[0], type(self).__name__
            known = [meant for meant in OTHER_NAMES.get(name.lower(), ()) if meant.partition("=")[0] in taken]
            for meant in known or get_close_matches(name.lower(), taken, 1, MIN_SIMILARITY):
                raise TypeError(f"{kind} takes no argument {name!r}: use {meant}")
            raise TypeError(f"{kind} takes no argument {name!r}; it takes {', '.join(taken)}")
        try:
            inspect.signature(init).bind(self, *arguments, **named)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}; it takes {', '.join(taken)}") from None
        init(self, *arguments, **named)

    return checked  # type: ignore[return-value]


def with_defaults(init: Callable[..., None], *hidden: str, **defaults: Any) -> Any:
    """A constructor with other defaults, whose signature does not show some arguments."""
    signature = inspect.signature(init)
    names = list(signature.parameters)

    @wraps(init)
    def made(self: Any, *arguments: Any, **named: Any) -> None:
        given = {*names[1 : 1 + len(arguments)], *named}
        init(self, *arguments, **named, **{name: value for name, value in defaults.items() if name not in given})

    shown = [each for each in signature.parameters.values() if each.name not in hidden]
    shown = [each.replace(default=defaults[each.name]) if each.name in defaults else each for each in shown]
    made.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    return made
