"""The classes of learners and agents of a derivation, each with the forward view that `verify` compares it with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trueonline.derivation.forward_learners import definition, definition_agent
from trueonline.derivation.forward_view import ForwardViewError
from trueonline.learners.derived import Plan, class_of

if TYPE_CHECKING:
    from trueonline.derivation.backward import Derivation


def learner(derivation: Derivation) -> Any:
    """A class of learners with the interface of `trueonline.TrueOnlineTD`."""
    derivation.for_predictions()
    plan = _plan(derivation, "off-policy" if "rho" in derivation.letters else "learner")
    made = class_of(plan)
    made.definition = definition(derivation, plan.title)
    return made


def agent(derivation: Derivation) -> Any:
    """A class of agents over ψ(s, a). They bootstrap from the best action if the forward view has V_max, else from the next."""
    if "rho" in derivation.letters:
        raise ForwardViewError("agents have no importance ratios: use the learner of this forward view")
    plan = _plan(derivation, "greedy" if derivation.greedily else "sarsa")
    made = class_of(plan)
    made.definition = definition_agent(derivation, plan.title)
    return made


def _plan(derivation: Derivation, base: str) -> Plan:
    about = f"{derivation.name}, derived from its forward view.\n\n{derivation}"
    return Plan(derivation.name, derivation.source(), about, tuple(sorted(derivation.constants)), base)
