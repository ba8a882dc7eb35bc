"""The transition: everything that a rule can ask for.

The loops hold one `Transition`. A rule names the parts that it needs in its signature, and `asking` calls the rule with them:

    @kernel
    def true_online_td(memory, x, reward, x_next, v_old, alpha, gamma, lam, gamma_next): …

A rule returns V(S), δ and V(S'). V(S') is `v_old` of the next step.
"""

from __future__ import annotations

import inspect
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
    interest: Any  # I, the interest in S
    carried: Any  # three numbers that belong to the rule, 0 to begin with, kept from step to step and saved
    greedy: Any  # 1 if the action taken in S was greedy, else 0 (agents only)
    discount: Any  # γ as the learner's constant
    trace_decay: Any  # λ as the learner's constant
    which: Any  # the number of the rule, in kernels that several rules share (`core.family`); rules cannot ask for it


ASKED = Transition._fields[:-1]

# The numbers of a transition that Python passes to the loops, in one array of this order:
ALPHA, BETA, GAMMA_NEXT, LAM_NEXT, RHO, INTEREST, DISCOUNT, TRACE_DECAY = range(8)

# The public names of parts that a rule may ask for. Every transition has all other parts.
ARGUMENTS = {"rho": "ratio", "interest": "interest", "x_expected": "x_expected", "beta": "second_step_size"}


def asked(rule: Any) -> tuple[str, ...]:
    """The names in a rule's signature, without `memory`; TypeError for a name that transitions do not have."""
    function = getattr(rule, "py_func", None)
    if function is None:
        raise TypeError(f"a rule must be a compiled kernel, got {rule!r}; decorate it with trueonline.kernel")
    memory, *names = inspect.signature(function).parameters or [""]
    unknown = [name for name in names if name not in ASKED]
    if memory != "memory" or unknown:
        wrong = f"asks for {unknown[0]!r}" if unknown else f"begins with {memory!r}"
        raise TypeError(
            f"the rule {function.__name__} {wrong}; its first argument must be memory, and the others must be among "
            f"{', '.join(ASKED)}"
        )
    return tuple(names)


def asking(rule: Any) -> Any:
    """A kernel (memory, transition) that calls `rule` with the parts that its signature names. It is kept with the rule."""
    if "ask" not in vars(rule):
        arguments = "".join(f", transition.{name}" for name in asked(rule))
        text = f"def ask(memory, transition):\n    return rule(memory{arguments})\n"
        rule.ask = kernel(made_of(text, "ask", {"rule": rule}))
    return rule.ask


@kernel
def with_step_sizes(t, alpha, beta):
    """The same transition with other step-sizes."""
    return Transition(
        x=t.x,
        reward=t.reward,
        x_next=t.x_next,
        x_expected=t.x_expected,
        v_old=t.v_old,
        alpha=alpha,
        beta=beta,
        gamma=t.gamma,
        lam=t.lam,
        gamma_next=t.gamma_next,
        lam_next=t.lam_next,
        rho=t.rho,
        rho_old=t.rho_old,
        interest=t.interest,
        carried=t.carried,
        greedy=t.greedy,
        discount=t.discount,
        trace_decay=t.trace_decay,
        which=t.which,
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
        interest=1.0,
        carried=carried,
        greedy=0.0,
        discount=gamma_next,
        trace_decay=lam,
        which=0,
    )
