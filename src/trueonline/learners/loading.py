"""`load`: read a learner or an agent from its file. The catalogue knows every class that a saved file may name."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from trueonline import catalog, files
from trueonline.core.transition import asked
from trueonline.inputs import Schedule, count
from trueonline.learners.interface import Learner
from trueonline.learners.over_memory import OverMemory

CODE = {  # arguments that may be code: their name, how to give one, their name if they are data, how to replace them
    "step_size": ("a step-size schedule", "step_size=schedule", "the constant step_size", ""),
    "second_step_size": (
        "a schedule of second step-sizes",
        "second_step_size=schedule",
        "the constant second_step_size",
        "",
    ),
    "policy": (
        "a policy of your own, or one with a schedule",
        "policy=your_policy",
        "the policy",
        ", and set agent.policy afterwards",
    ),
}
# Definitions that can be saved, beside the classes of the catalogue:
DEFINITIONS = ("OnlineLambdaReturn", "OfflineLambdaReturn", "GammaReturn", "OmegaReturn", "NStepReturn", "ComplexReturn")


def classes() -> dict[str, type]:
    """Every class that a saved file may name, by that name: those of the catalogue, and of methods made in this process."""
    kinds = [row.resolve("learner") for row in catalog.METHODS.values()]
    known = {kind.__name__: kind for kind in kinds if isinstance(kind, type)}
    forward = import_module("trueonline.forward")
    known |= {name: getattr(forward, name) for name in DEFINITIONS}
    deep = import_module("trueonline.deep")
    known |= {name: kind for name, kind in vars(deep).items() if hasattr(kind, "_loaded")}
    return known | import_module("trueonline.learners.own").made_here()


def load(
    path: str | os.PathLike,
    *,
    step_size: Schedule | None = None,
    second_step_size: Schedule | None = None,
    policy: Any = None,
) -> Any:
    """Load the learner or agent that `save` wrote. It resumes bit for bit.

    Schedules and policies of your own are code and are not saved: give them again.

    Parameters
    ----------
    path : path
        The file.
    step_size : callable, optional
        The step-size schedule, if the learner had one.
    second_step_size : callable, optional
        The schedule of second step-sizes, if the learner had one.
    policy : callable, optional
        The policy of your own, if the agent had one.

    Returns
    -------
    Learner or Agent
        The learner or agent, as it was when saved.

    Raises
    ------
    ValueError
        If the file is not one of `save`, is damaged, or was saved with a schedule or policy that is not given here.

    Examples
    --------
    >>> import tempfile, trueonline as to
    >>> learner = to.TrueOnlineTD(n_features=2, step_size=0.5, trace_decay=1.0, discount=1.0)
    >>> _ = learner.run([0, 1], rewards=[1.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     learner.save(f"{folder}/learner.npz")
    ...     to.load(f"{folder}/learner.npz").weights
    array([0.5, 0. ])
    """
    return load_one_of(None, path, step_size, policy, second_step_size)


def load_one_of(
    kinds: dict[str, type] | None,
    path: str | os.PathLike,
    step_size: Schedule | None,
    policy: Any,
    second_step_size: Schedule | None = None,
) -> Any:
    """The same for a file that holds one of these classes, by the names that files give them."""
    name, settings, arrays = files.read_learner(path)
    known = classes() if kinds is None else kinds
    if name not in known:
        if name.startswith("own "):
            raise ValueError(f"{path} {_of_an_own_method(name, known)}")
        hint = "; load it with `trueonline.nonlinear.ForwardTD.load(path, value_and_grad)`" if name == "ForwardTD" else ""
        raise ValueError(f"{path} holds a {name}, which is none of {', '.join(known)}{hint}")
    kind = known[name]
    acts = hasattr(kind, "truncate")
    code = {"step_size": setting_or_code(path, settings, "step_size", step_size)}
    if acts:
        code["policy"] = setting_or_code(path, settings, "policy", policy)
    elif policy is not None:
        raise ValueError(f"{path} holds a {name}, which has no policy: load it without policy")
    if issubclass(kind, OverMemory) and "beta" in asked(kind.method.resolve("rule")):
        code["second_step_size"] = setting_or_code(path, settings, "second_step_size", second_step_size)
    elif second_step_size is not None:
        raise ValueError(f"{path} holds a {name}, which has no second step-size: load it without second_step_size")
    make = _agent if acts else _learner
    try:
        if hasattr(kind, "_loaded"):
            return kind._loaded({**settings, **code}, arrays)
        count("n_features", settings["n_features"])  # some constructors check it last
        return make(kind, {**settings, **code}, arrays)
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, NotImplementedError, AttributeError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def _of_an_own_method(name: str, known: dict[str, type]) -> str:
    """Why the learner or agent of a method of one's own is not loaded."""
    what, _, _ = name.removeprefix("own ").rpartition(" ")
    method, _, role = what.rpartition(" ")
    if any(each.startswith(f"own {what} ") for each in known):
        return f"was saved with another rule: the rule of {method} has changed since"
    return (
        f"is of the method {method}, which is not of this package; load it with `.{role}.load(path)` of the same "
        "`trueonline.method(…)` or `derive(…)`"
    )


def setting_or_code(path: str | os.PathLike, settings: dict[str, Any], name: str, code: Any) -> Any:
    """The setting of this name in the file, or the argument of `load` if the setting is code."""
    if settings.get(name) is None and code is None:
        raise ValueError(f"{path} was saved with {CODE[name][0]}, which is code: load it with {CODE[name][1]}")
    if settings.get(name) is not None and code is not None:
        raise ValueError(f"{path} was saved with {CODE[name][2]} {settings[name]}: load it without {name}{CODE[name][3]}")
    return settings[name] if code is None else code


def _learner(kind: type[Learner], settings: dict[str, Any], arrays: dict[str, Any]) -> Learner:
    learner = kind(**settings, initial_weights=arrays.pop("initial_weights", None))
    learner._restore(arrays)
    return learner


def _agent(kind: Any, settings: dict[str, Any], arrays: dict[str, Any]) -> Any:
    rng, action, policy = (settings.pop(part) for part in ("rng", "action", "policy"))
    if isinstance(policy, dict):
        policy = import_module("trueonline.control.policies").restore(policy)
    agent = kind(**settings, policy=policy, initial_weights=arrays.pop("initial_weights", None))
    agent._restore(arrays, rng, action)
    return agent
