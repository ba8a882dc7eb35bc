"""The sweep as a user of JAX would write it: one learner, `scan` over the steps, `vmap` over λ, α, runs and MRPs, jitted.

JAX is imported when it is asked for: it is not a dependency of the project.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.gpu_problems import ALPHAS, LAMS, Group, Measured

MISSING = "JAX is not installed, so the rows that compare with it were left out. `pip install 'jax[cuda12]'` installs it."


def available() -> bool:
    return find_spec("jax") is not None


@cache
def _jax() -> Any:
    """JAX with double precision. It leaves the device's memory to others until it needs it."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax  # type: ignore[import-not-found,unused-ignore]

    jax.config.update("jax_enable_x64", True)
    return jax


def learner(
    features: Any,
    states: Any,
    rewards: Any,
    discounts: Any,
    root: Any,
    target: Any,
    alpha: Any,
    lam: Any,
    *,
    method: str,
    tabular: bool,
) -> Any:
    """The error of one learner on one run: the mean of ‖B(w − w*)‖² over the steps, over its value at w = 0.

    With tabular features a state is the index of its feature, and `root` is the diagonal of B.
    """
    jax, jnp = _jax(), _jax().numpy

    def squared(off: Any) -> Any:
        return jnp.sum((root * off if tabular else root @ off) ** 2)

    def inner(vector: Any, state: Any) -> Any:
        return vector[state] if tabular else vector @ features[state]

    def add(vector: Any, state: Any, number: Any) -> Any:
        return vector.at[state].add(number) if tabular else vector + number * features[state]

    def replaced(e: Any, state: Any) -> Any:
        return e.at[state].set(1.0) if tabular else jnp.where(features[state] == 1.0, 1.0, e)

    def step(carry: Any, now: Any) -> Any:
        w, e, v_old, gamma, total = carry
        state, state_next, reward, gamma_next = now
        v, v_next = inner(w, state), inner(w, state_next)
        delta = reward + gamma_next * v_next - v
        if method == "true_online":
            dutch = 1.0 - alpha * gamma * lam * inner(e, state)
            e = add(gamma * lam * e, state, dutch)
            w = add(w + alpha * (delta + v - v_old) * e, state, -alpha * (v - v_old))
        else:
            e = add(gamma * lam * e, state, 1.0) if method == "accumulate" else replaced(gamma * lam * e, state)
            w = w + alpha * delta * e
        return (w, e, v_next, gamma_next, total + squared(w - target)), None

    nothing = jnp.zeros_like(target)
    begin = (nothing, nothing, 0.0, 0.0, 0.0)
    (_, _, _, _, total), _ = jax.lax.scan(step, begin, (states[:-1], states[1:], rewards, discounts))
    error = total / len(rewards) / squared(target)
    return jnp.where(jnp.isfinite(error), error, jnp.inf)


@cache
def sweep(method: str, tabular: bool) -> Any:
    """The jitted sweep of a method.

    Parameters
    ----------
    method : str
        "accumulate", "replace" or "true_online".
    tabular : bool
        Whether each state has one feature of its own.

    Returns
    -------
    jitted function
        It takes features[mrp, state, feature], states[mrp, run, step], rewards and discounts of that shape with one step
        fewer, root[mrp, row, feature] (tabular: root[mrp, feature]), target[mrp, feature], alphas and lams, and returns
        errors[mrp, run, α, λ].
    """
    vmap = _jax().vmap
    over = partial(learner, method=method, tabular=tabular)
    over = vmap(over, (None, None, None, None, None, None, None, 0))  # λ
    over = vmap(over, (None, None, None, None, None, None, 0, None))  # α
    over = vmap(over, (None, 0, 0, 0, None, None, None, None))  # runs
    over = vmap(over, (0, 0, 0, 0, 0, 0, None, None))  # MRPs
    return _jax().jit(over)


def arguments(group: Group) -> tuple[np.ndarray, ...]:
    """The arguments of a sweep."""
    states = group.states.astype(np.int32)
    return group.features, states, group.rewards, group.discounts, group.root, group.target, ALPHAS, LAMS


def measure(groups: Sequence[Group], rounds: int = 3) -> Measured:
    """Sweep all methods of all groups on JAX's default device.

    Parameters
    ----------
    groups : sequence of Group
        The groups.
    rounds : int
        How often it is timed, after one round of warm-up.

    Returns
    -------
    Measured
        Errors and seconds. All sweeps are called before the first result is waited for.
    """
    jax = _jax()
    names, inputs, compiled, programs = [], [], [], {}
    begin = perf_counter()
    for group in groups:
        given = arguments(group)
        for method in group.methods:
            shapes = (method, group.tabular, *(array.shape for array in given))
            if shapes not in programs:
                programs[shapes] = sweep(method, group.tabular).lower(*given).compile()
            names.append((*group.name, method))
            inputs.append(given)
            compiled.append(programs[shapes])
    preparing = perf_counter() - begin
    there = jax.device_put(inputs)

    def kernels() -> list[Any]:
        return jax.block_until_ready([call(*given) for call, given in zip(compiled, there, strict=True)])

    def transfers() -> list[np.ndarray]:
        found = [call(*jax.device_put(given)) for call, given in zip(compiled, inputs, strict=True)]
        return jax.device_get(found)

    kernels()
    errors = dict(zip(names, transfers(), strict=True))
    return Measured(errors, preparing, [_time(kernels) for _ in range(rounds)], [_time(transfers) for _ in range(rounds)])


def _time(call: Callable[[], object]) -> float:
    begin = perf_counter()
    call()
    return perf_counter() - begin
