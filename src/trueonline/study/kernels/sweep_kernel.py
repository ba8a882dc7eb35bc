"""The sweep kernel: one trajectory, every step-size and trace decay, the error measured after every step."""

from __future__ import annotations

from typing import Any

from numba import types

from trueonline.core.compiling.kernels import inlined, kept_with, kernel, operation, specialise
from trueonline.core.family import members, merged
from trueonline.core.memory import KINDS
from trueonline.core.memory.layout import HEADER
from trueonline.core.memory.short_runs import listed, spread_out, three, two
from trueonline.core.pointers import on_stack, since
from trueonline.core.transition import asking
from trueonline.study.kernels import sweep_body
from trueonline.study.kernels.sweep_body import Diagonal, Given, Trajectory, Triangular, learner


def sweep(numbers, features, n, run, measure, alphas, lams, errors):
    """Write to errors[i, j] the error of a learner with α_i and λ_j on a run (`sweep_body.learner`)."""
    states, rewards, discounts, chances = run
    root, target, first, discount, second, after, parameters, which = measure
    own, vectors = on_stack(OWN), since(numbers, 0)
    memory = lay_out(own, vectors, n, features)
    off = since(vectors, 2 * MEMORIES * n)
    numbers_of_rule = since(parameters, 0)
    given = Given(
        since(features, 0),
        rooted(root),
        since(target, 0),
        since(first, 0),
        discount,
        second,
        after,
        numbers_of_rule,
        which,
    )
    trajectory = Trajectory(
        since(states, 0), since(rewards, 0), since(discounts, 0), since(chances, 0), chances.size // 2 - 1, rewards.size
    )
    for i in range(alphas.size):
        for j in range(lams.size):
            errors[i, j] = learner(memory, own, off, given, trajectory, alphas[i], lams[j])


@operation
def rooted(root):
    """B, from its diagonal, or from an upper triangular matrix. A matrix of one row stands for a diagonal too."""

    def matrix(root):
        rows, n = root.shape
        return Triangular(since(root, 0), n if rows == n else 0, n if rows == n else 1)

    return (lambda root: Diagonal(since(root, 0))) if root.ndim == 1 else matrix


# --- Where the numbers of a learner lie -----------------------------------------------------------
#
# On the stack: what the rule carries, and the headers of memories. Beside them, or elsewhere if there are many features: two
# vectors of each memory, and w − w*.

CARRIED = 4
OWN = LISTS = 0  # placeholders: the numbers on the stack, and where vectors begin among them
MEMORIES = 1  # a placeholder


def vector_numbers(n: int, memories: int) -> int:
    """How many numbers the vectors of a learner have."""
    return (2 * memories + 1) * n


@operation
def part(own, vectors, n, which, features):
    """One of the memories."""

    def sparse(own, vectors, n, which, features):
        head, z = since(own, CARRIED + which * HEADER), 2 * which * n - 1
        return listed(n, head, since(vectors, z), since(vectors, z + n))

    def dense(own, vectors, n, which, features):
        head, u = since(own, CARRIED + which * HEADER), 2 * which * n
        return spread_out(n, head, since(vectors, u), since(vectors, u + n - 1))

    return sparse if isinstance(features.dtype, types.Integer) else dense


@kernel
def lay_out_one(own, vectors, n, features):
    return part(own, vectors, n, 0, features)


@kernel
def lay_out_two(own, vectors, n, features):
    return two(part(own, vectors, n, 0, features), part(own, vectors, n, 1, features))


@kernel
def lay_out_three(own, vectors, n, features):
    first, second = part(own, vectors, n, 0, features), part(own, vectors, n, 1, features)
    return three(first, second, part(own, vectors, n, 2, features))


lay_out = lay_out_one  # a placeholder
LAYOUTS = {"one": lay_out_one, "two": lay_out_two, "three": lay_out_three}


def names_of(rule: Any, memory: str, few: int = 0) -> dict[str, Any]:
    """The global names of the templates of sweeps, on processors and GPUs: the learner with its rule, and where numbers lie."""
    memories = KINDS[memory].memories
    lists = CARRIED + memories * HEADER
    if "swept" not in vars(rule):
        rule.swept = inlined(sweep_body.learner, rule=asking(rule))
    return {
        "learner": rule.swept,
        "lay_out": LAYOUTS[memory],
        "MEMORIES": memories,
        "LISTS": lists,
        "OWN": lists + (vector_numbers(few, memories) if few else 0),
    }


def compiled(rule: Any, memory: str) -> Any:
    """The sweep kernel of a rule over a kind of memory."""
    rule = merged(memory) if rule in members(memory) else rule
    made = kept_with(rule)
    if ("sweep", memory) not in made:
        made["sweep", memory] = specialise(sweep, rule.py_func.__name__, **names_of(rule, memory))
    return made["sweep", memory]
