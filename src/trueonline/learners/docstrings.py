"""The parameters that many classes share, written once. Each class gets them in its docstring."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

_TITLE = "Parameters\n----------\n"

_STEP_SIZE = """\
step_size : float or callable
    α > 0, or a schedule t → α_t, with t the number of transitions learned from.
"""
_COMMON = f"""\
{_STEP_SIZE}\
trace_decay : float
    λ in [0, 1], the default of every transition.
discount : float
    γ in [0, 1], the default of every transition.
"""

LEARNER = f"""\
n_features : int
    The number of features, and of weights.
{_COMMON}\
initial_weights : array_like, optional
    The weights to begin with, `n_features` numbers. Zeros by default.
"""

SECOND = """\
second_step_size : float or callable, optional
    β ≥ 0 of the second weights or of the reward rate, or a schedule t → β_t. Methods that have either need it, and no other method
    takes it. `TDRC` takes `step_size` by default.
"""

INITIAL = """\
initial_step_size : float, optional
    α_0 > 0, the step-size of each feature at first. Its usage begins at 1/α_0. By default the first of `step_size`. Methods whose
    step-sizes come from the usage of features take it, and no other method does.
"""

_OF_ALL = "step_size : float or callable\n    α > 0, or a schedule"
_OF_EACH = "step_size : float, array_like or callable\n    α > 0, or one for each feature, or a schedule of either"
PER_FEATURE = LEARNER.replace(_OF_ALL, _OF_EACH)  # for methods with a step-size for each feature

AGENT = f"""\
n_features : int
    The number of features of a state.
n_actions : int
    The number of actions.
{_COMMON}\
policy : callable
    policy(values, rng, t) chooses an action from the values of all actions. Agents of `trueonline.control` are ε-greedy with
    ε = 0.1 by default.
seed : int or sequence of int, optional
    The seed of all randomness.
initial_weights : array_like, optional
    The weights to begin with: a row for each feature, a column for each action. Zeros by default.
"""

TARGET = """\
target_epsilon : float, optional
    The target policy is ε-greedy by the current values, with this ε. 0, which is greedy, by default.
"""

ADAPTATION = """\
bound : float, optional
    Step-size adaptation: α is lowered for a transition whose update would close more than this share of its error. 1 keeps an
    update from overshooting. Off by default (docs/guides/step_sizes.md).
meta_step_size : float, optional
    Step-size adaptation: θ, by which the step-size of every feature follows its meta-gradient. 0.1 suits most streams, and
    0.01 those with thousands of active features; it has no unit. `bound` is then 0.1 by default. Off by default.
"""

NO_ADAPTATION = """\
bound : None, optional
    There is no step-size adaptation here: any other value is refused.
meta_step_size : None, optional
    The same.
"""

LEARNED = """\
bound : float, optional
    η > 0. The rate of learning τ = Σ_i α_i x_i², the share of its error that an update closes, is kept to η, and so is every
    step-size.
decay : float, optional
    In (0, 1]. If τ exceeds η, the step-size of each active feature is multiplied by this number to the power of x_i².
meta_step_size : float, optional
    θ ≥ 0, by which the logarithm of each step-size follows its meta-gradient. With 0 the step-sizes are not learned.
min_step_size : float, optional
    The smallest step-size of a feature, above 0 and at most `bound`.
"""


def of_parameters(parameters: Mapping[str, Any]) -> str:
    """The text of the parameters of a rule."""
    return "".join(
        f"{name} : float, optional\n    {each.about or 'A parameter of the rule.'} {each.default:g} by default.\n"
        for name, each in parameters.items()
    )


def with_learned_step_sizes(shared: str) -> str:
    """The parameters of a method that learns its step-sizes."""
    first = "step_size : float\n    α > 0, the step-size that each feature begins with.\n"
    return shared.replace(_STEP_SIZE, first) + LEARNED


class Documented:
    """A class whose subclasses share parameters. Each of their docstrings gets the section `Parameters`."""

    _shared_parameters: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__doc__:
            cls.__doc__ = with_parameters(cls.__doc__, cls._shared_parameters)


def with_parameters(text: str, shared: str) -> str:
    """A docstring with shared parameters, before its own parameters and its examples.

    >>> print(with_parameters('''Add.
    ...
    ...     Examples
    ...     --------
    ...     Two and two.''', "a : float\\n    A number.\\n"))
    Add.
    <BLANKLINE>
    Parameters
    ----------
    a : float
        A number.
    <BLANKLINE>
    Examples
    --------
    Two and two.
    """
    text = inspect.cleandoc(text)
    if not shared or shared.partition("\n")[0] in text:
        return text
    about, title, rest = text.partition(_TITLE)
    if not title:
        about, title, rest = text.partition("Examples\n--------\n")
        rest = f"\n{title}{rest}" if title else ""
    return f"{about.rstrip()}\n\n{_TITLE}{shared}{rest}".rstrip()
