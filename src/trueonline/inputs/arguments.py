"""Arguments by other names: a constructor says which one was meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

MEANT = {  # how papers and other libraries call an argument
    **dict.fromkeys(("alpha", "lr", "learning_rate", "stepsize", "eta"), "step_size"),
    **dict.fromkeys(("lam", "lambda_", "lambd", "lamda", "lmbda", "trace"), "trace_decay"),
    "lambda": "trace_decay",
    **dict.fromkeys(("gamma", "discount_factor", "gamma_"), "discount"),
    **dict.fromkeys(("beta", "second_stepsize", "reward_rate_step_size"), "second_step_size"),
    **dict.fromkeys(("theta", "meta_stepsize"), "meta_step_size"),
    **dict.fromkeys(("n", "num_features", "features"), "n_features"),
    **dict.fromkeys(("num_actions", "actions"), "n_actions"),
    **dict.fromkeys(("epsilon", "eps"), "policy=trueonline.control.EpsilonGreedy(…)"),
}
Init = TypeVar("Init", bound=Callable[..., None])


def explains_arguments(init: Init) -> Init:
    """Let a constructor name the class in its errors, and the argument that a user of other names probably means."""
    parameters = [name for name in inspect.signature(init).parameters if name != "self"]

    @wraps(init)
    def checked(self: Any, *arguments: Any, **named: Any) -> None:
        idle = (*getattr(self, "idle_arguments", ()), "options")
        taken = [*(name for name in parameters if name not in idle), *getattr(self, "options", ())]
        unknown = [name for name in named if name not in parameters and name not in taken]
        if unknown:
            name, kind = unknown[0], type(self).__name__
            meant = MEANT.get(name.lower())
            if meant is not None and meant.partition("=")[0] in taken:
                raise TypeError(f"{kind} takes no argument {name!r}: use {meant}")
            raise TypeError(f"{kind} takes no argument {name!r}; it takes {', '.join(taken)}")
        try:
            inspect.signature(init).bind(self, *arguments, **named)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}; it takes {', '.join(taken)}") from None
        init(self, *arguments, **named)

    return checked  # type: ignore[return-value]
