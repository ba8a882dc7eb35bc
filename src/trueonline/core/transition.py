"""The transition: everything that a rule can ask for.

The loops hold one `Transition`. A rule names the parts that it needs in its signature, and `asking` calls the rule with them:

    @kernel
    def true_online_td(memory, x, reward, x_next, v_old, alpha, gamma, lam, gamma_next): …

A rule returns V(S), δ and V(S'). V(S') is `v_old` of the next step. A name that no transition has is a parameter of the rule.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, NamedTuple

from trueonline.core.compiling.kernels import kernel
from trueonline.core.compiling.syntax import made_of


class Transition(NamedTuple):
    """A step from S to S'. For the time of each part see docs/architecture.md."""

    x: Any  # φ, the features of S
    reward: Any  # R
    x_next: Any  # φ', the features of S'
    x_expected: Any  # φ̄', the mean of the features of S' over the actions of the target policy; φ' by default
    v_old: Any  # V(S) as the step before saw it, 0 at a beginning
    alpha: Any  # α, the step-size
    beta: Any  # β, the second step-size
    gamma: Any  # γ of S: the trace decays by it
    lam: Any  # λ of S
    gamma_next: Any  # γ of S': the bootstrap is discounted by it; 0 ends the episode
    lam_next: Any  # λ of S'
    rho: Any  # ρ, the importance ratio of the action taken in S
    rho_old: Any  # ρ of the step before
    pi: Any  # π(A|S), the target policy's probability of the action taken in S; at most ρ, and by default min(1, ρ)
    interest: Any  # I, the interest in S
    carried: Any  # four numbers that belong to the rule, 0 to begin with, kept from step to step and saved
    greedy: Any  # 1 if the action taken in S was greedy, else 0 (agents only)
    discount: Any  # γ as the learner's constant
    trace_decay: Any  # λ as the learner's constant
    parameters: Any  # the rule's own numbers, in the order of their names; a rule asks for them by name
    which: Any  # the number of the rule, in kernels that several rules share (`core.family`); rules cannot ask for it


ASKED = Transition._fields[:-2]

# The numbers of a transition that Python passes to the loops, in one array of this order:
ALPHA, BETA, GAMMA_NEXT, LAM_NEXT, RHO, PI, INTEREST, DISCOUNT, TRACE_DECAY = range(9)

MOST_PARAMETERS = 8  # of a rule

# The public names of parts that a rule may ask for. Every transition has all other parts.
ARGUMENTS = {
    "rho": "ratio",
    "pi": "probability",
    "interest": "interest",
    "x_expected": "x_expected",
    "beta": "second_step_size",
}


def asked(rule: Any) -> tuple[str, ...]:
    """The names in a rule's signature that transitions have."""
    return tuple(name for name in _names(rule) if name in ASKED)


def parameters_of(rule: Any) -> tuple[str, ...]:
    """The other names in a rule's signature, in the order in which `Transition.parameters` holds them."""
    return tuple(sorted(name for name in _names(rule) if name not in ASKED))


def check_parameters(rule: Any, given: Iterable[str]) -> None:
    """TypeError unless these are the parameters of a rule."""
    own, name = parameters_of(rule), rule.py_func.__name__
    for each in own:
        if each not in given:
            raise TypeError(
                f"the rule {name} asks for {each!r}, which no transition has: if it is a parameter, give its value to "
                f"trueonline.method, as in parameters={{{each!r}: 1.0}}; transitions have {', '.join(ASKED)}"
            )
    for each in given:
        if each not in own:
            has = f"its parameters are {', '.join(own)}" if own else "it has no parameters"
            raise TypeError(f"the rule {name} does not ask for {each!r}: {has}")
    if len(own) > MOST_PARAMETERS:
        raise TypeError(f"the rule {name} has {len(own)} parameters; {MOST_PARAMETERS} is the most")


def _names(rule: Any) -> list[str]:
    function = getattr(rule, "py_func", None)
    if function is None:
        raise TypeError(f"a rule must be a compiled kernel, got {rule!r}; decorate it with trueonline.kernel")
    memory, *names = inspect.signature(function).parameters or [""]
    if memory != "memory":
        raise TypeError(f"the rule {function.__name__} begins with {memory!r}; its first argument must be memory")
    return names


def asking(rule: Any) -> Any:
    """A kernel (memory, transition) that calls `rule` with the parts that its signature names. It is kept with the rule."""
    if "ask" not in vars(rule):
        own = parameters_of(rule)
        parts = (f"parameters[{own.index(name)}]" if name in own else name for name in _names(rule))
        arguments = "".join(f", transition.{part}" for part in parts)
        text = f"def ask(memory, transition):\n    return rule(memory{arguments})\n"
        rule.ask = kernel(made_of(text, "ask", {"rule": rule}))
    return rule.ask


def _other_step_sizes() -> Any:
    """A kernel (t, alpha, beta): the same transition with other step-sizes."""
    own = ("alpha", "beta")
    parts = ", ".join(name if name in own else f"t.{name}" for name in Transition._fields)
    text = f"def with_step_sizes(t, alpha, beta):\n    return Transition({parts})\n"
    return kernel(made_of(text, "with_step_sizes", {"Transition": Transition}))


with_step_sizes = _other_step_sizes()


@kernel
def arriving(x, reward, x_next, x_expected, v_old, gamma, lam, rho_old, greedy, carried, parameters, settings, which):
    """The transition from x to x_next, with the numbers that Python gives in `settings`."""
    return Transition(
        x=x,
        reward=reward,
        x_next=x_next,
        x_expected=x_expected,
        v_old=v_old,
        alpha=settings[ALPHA],
        beta=settings[BETA],
        gamma=gamma,
        lam=lam,
        gamma_next=settings[GAMMA_NEXT],
        lam_next=settings[LAM_NEXT],
        rho=settings[RHO],
        rho_old=rho_old,
        pi=settings[PI],
        interest=settings[INTEREST],
        carried=carried,
        greedy=greedy,
        discount=settings[DISCOUNT],
        trace_decay=settings[TRACE_DECAY],
        parameters=parameters,
        which=which,
    )


@kernel
def on_policy(x, reward, x_next, v_old, alpha, gamma, lam, gamma_next, carried):
    """A transition with constant λ and γ (except γ = 0 at ends), without ratios, interests or second step-sizes."""
    return Transition(
        x=x,
        reward=reward,
        x_next=x_next,
        x_expected=x_next,
        v_old=v_old,
        alpha=alpha,
        beta=0.0,
        gamma=gamma,
        lam=lam,
        gamma_next=gamma_next,
        lam_next=lam,
        rho=1.0,
        rho_old=1.0,
        pi=1.0,
        interest=1.0,
        carried=carried,
        greedy=0.0,
        discount=gamma_next,
        trace_decay=lam,
        parameters=None,
        which=0,
    )
