"""Weights, a trace, and a step-size for each feature that is learned by its meta-gradient: for SwiftTD.

A step-size changes by the factor e^{…p_i/α_i}, which is not linear in the trace p. So nothing can be owed, and every step passes
over the list of the features with trace. The memory makes this pass cheap. Weights and trace lie as in `core.memory`, and the other
numbers of a feature lie in one of two places:

| where         | what                                                                                                      |
|---------------|-----------------------------------------------------------------------------------------------------------|
| on the list   | w in `y` (with u_i = 0), z in `z`, and in `tiles` φ, p, z̄, h, h_old, α and δw, each for TILE entries in a row |
| off the list  | w in `u`, h in `h`, α in `alpha`, where 0 stands for the step-size that every feature begins with         |

Everything on the list is consecutive, so the pass is one vectorised loop without random access. φ is 0 for features that are not
active, and the equations then change nothing that they should not. (Within a tile, the distances between the numbers of an entry
are known when the loop is compiled. With nine separate arrays the compiler would have to compare all addresses, and gives up.)

Decay is owed, as s ← g·s, and paid by the next pass. So the beginning of an episode is s = 0 here too.

An entry leaves the list when z, z̄ and p/α are all below DROP of the whole: in double precision it cannot change anything that the
rest changes. The list is looked through every LOOK steps.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from trueonline.core.compiling.kernels import inlined, kernel, outlined
from trueonline.core.forms import entry
from trueonline.core.memory.layout import (
    COUNT,
    DELTA_W,
    DENSE,
    FIELDS,
    H_OLD,
    PHI,
    SETTINGS,
    STEP_SIZE,
    TILE,
    Z_BAR,
    Buffers,
    H,
    P,
    S,
    _stride,
    beyond,
    each,
    features,
    parts,
)
from trueonline.core.memory.upkeep import DROP
from trueonline.inputs.saved_arrays import check_saved, saved_array, saved_count

BOUND, LOG_DECAY, META, LEAST = range(4)  # the settings: η, ln of the decay, θ and η_min …
BOUNDED, LOOKED = 4, 5  # … and counters: steps at which the bound was exceeded, steps since the list was looked through
LOOK = 16


@kernel
def cell(k, field):
    """The place in `tiles` of a number of the entry in slot k."""
    before = np.uint64(k) - np.uint64(1)
    return (before // np.uint64(TILE)) * np.uint64(TILE * FIELDS) + np.uint64(field * TILE) + before % np.uint64(TILE)


# --- What a rule says -----------------------------------------------------------------------------


@kernel
def enter(memory, x, alpha):
    """Put the active features on the list, with step-size α if they are new; return wᵀx, zᵀx, Σ_i α_i x_i² and δwᵀx."""
    count = int(memory.head[COUNT])
    v = trace_x = rate = v_delta = 0.0
    for j in range(x.size):
        i, x_i = entry(x, j)
        if x_i != 0.0:
            k = memory.slot[i]
            if k == 0:
                count += 1
                k = count
                _enlist(memory, i, k, alpha)
            memory.tiles[cell(k, PHI)] = x_i
            v += memory.y[k] * x_i
            trace_x += memory.z[k] * x_i
            rate += memory.tiles[cell(k, STEP_SIZE)] * x_i * x_i
            v_delta += memory.tiles[cell(k, DELTA_W)] * x_i
    memory.head[COUNT] = count
    return v, memory.head[S] * trace_x, rate, v_delta


@kernel
def _enlist(memory, i, k, alpha):
    memory.slot[i], memory.owner[k] = k, i
    memory.y[k], memory.u[i], memory.z[k] = memory.u[i], 0.0, 0.0
    memory.tiles[cell(k, P)] = memory.tiles[cell(k, Z_BAR)] = memory.tiles[cell(k, DELTA_W)] = 0.0
    memory.tiles[cell(k, H)] = memory.tiles[cell(k, H_OLD)] = memory.h[i]
    memory.tiles[cell(k, STEP_SIZE)] = memory.alpha[i] if memory.alpha[i] != 0.0 else alpha


@kernel
def value_ahead(memory, x):
    """Return wᵀx. (`value` would read two more numbers of each feature.)"""
    v = 0.0
    for j in range(x.size):
        i, x_i = entry(x, j)
        v += (memory.u[i] + memory.y[memory.slot[i]]) * x_i
    return v


def for_each(feature: Callable) -> Any:
    """A kernel (memory, step, exceeds) that passes over the list and applies `feature` to each of its entries.

    `feature(φ, w, z, p, z̄, h, h_old, α, step, exceeds)` returns w, z, p, z̄, h, h_old, α and δw. It gets z, p and z̄ already decayed.
    """
    names = {**_pass.__globals__, "in_tile": inlined(in_tile, feature=feature)}
    passed = outlined(FunctionType(_pass.__code__, names, "passed"))

    @kernel
    def to_each(memory, step, exceeds):
        head = memory.head
        passed(memory.y, memory.z, memory.tiles, int(head[COUNT]), head[S], step, exceeds)
        head[S] = 1.0
        memory.settings[BOUNDED] += exceeds
        memory.settings[LOOKED] += 1.0
        if memory.settings[LOOKED] >= LOOK:
            look(memory)

    return to_each


def feature(*numbers):
    """A placeholder in the loop below."""
    raise NotImplementedError("for kernels only")


def in_tile(y, z, tiles, first, count, s, step, exceeds):
    tile = first * FIELDS
    for k in range(min(TILE, count - first)):
        w, trace, p, z_bar, h, h_old, alpha, delta_w = feature(
            tiles[tile + PHI * TILE + k],
            y[first + 1 + k],
            s * z[first + 1 + k],
            s * tiles[tile + P * TILE + k],
            s * tiles[tile + Z_BAR * TILE + k],
            tiles[tile + H * TILE + k],
            tiles[tile + H_OLD * TILE + k],
            tiles[tile + STEP_SIZE * TILE + k],
            step,
            exceeds,
        )
        y[first + 1 + k] = w
        z[first + 1 + k] = trace
        tiles[tile + PHI * TILE + k] = 0.0
        tiles[tile + P * TILE + k] = p
        tiles[tile + Z_BAR * TILE + k] = z_bar
        tiles[tile + H * TILE + k] = h
        tiles[tile + H_OLD * TILE + k] = h_old
        tiles[tile + STEP_SIZE * TILE + k] = alpha
        tiles[tile + DELTA_W * TILE + k] = delta_w


def _pass(y, z, tiles, count, s, step, exceeds):
    """Compiled for both cases apart, because without `exceeds` there is less to do."""
    for first in range(0, count, TILE):
        if exceeds:
            in_tile(y, z, tiles, first, count, s, step, True)
        else:
            in_tile(y, z, tiles, first, count, s, step, False)


# --- Upkeep ---------------------------------------------------------------------------------------


def _norms(z, tiles, count):
    """The 1-norms of z, z̄ and p/α."""
    of_z = of_z_bar = of_p = 0.0
    for first in range(0, count, TILE):
        tile = first * FIELDS
        for k in range(min(TILE, count - first)):
            of_z += abs(z[first + 1 + k])
            of_z_bar += abs(tiles[tile + Z_BAR * TILE + k])
            of_p += abs(tiles[tile + P * TILE + k] / tiles[tile + STEP_SIZE * TILE + k])
    return of_z, of_z_bar, of_p


_norms = outlined(_norms, reassociate=True)


@outlined
def look(memory):
    """Take faded entries off the list. A NaN stays on it, where it can be seen."""
    memory.settings[LOOKED] = 0.0
    count = int(memory.head[COUNT])
    tiles = memory.tiles
    of_z, of_z_bar, of_p = _norms(memory.z, tiles, count)
    kept = 0
    for k in range(1, count + 1):
        i = memory.owner[k]
        z_bar, p, alpha = tiles[cell(k, Z_BAR)], tiles[cell(k, P)], tiles[cell(k, STEP_SIZE)]
        faded = abs(memory.z[k]) <= DROP * of_z and abs(z_bar) <= DROP * of_z_bar and abs(p / alpha) <= DROP * of_p
        if faded:
            memory.u[i], memory.slot[i] = memory.y[k], 0
            memory.h[i], memory.alpha[i] = tiles[cell(k, H)], alpha
        else:
            kept += 1
            if kept < k:
                memory.slot[i], memory.owner[kept] = kept, i
                memory.y[kept], memory.z[kept] = memory.y[k], memory.z[k]
                for field in range(P, FIELDS):
                    tiles[cell(kept, field)] = tiles[cell(k, field)]
    memory.head[COUNT] = kept


# --- Seen from Python -----------------------------------------------------------------------------


class Kept(NamedTuple):
    """The numbers behind the memory, as arrays: in `tiles` a block for every TILE entries, with a row for each field."""

    settings: np.ndarray
    h: np.ndarray
    alpha: np.ndarray
    tiles: np.ndarray


def kept(buffers: Buffers) -> Kept:
    """The numbers behind the one memory in these buffers."""
    n, numbers = features(buffers), beyond(buffers)
    stride = _stride.py_func(n)
    tiles = numbers[SETTINGS + 2 * stride :].reshape(-1, FIELDS, TILE)
    return Kept(numbers[:SETTINGS], numbers[SETTINGS:][:n], numbers[SETTINGS + stride :][:n], tiles)


def step_sizes(buffers: Buffers, alpha: float) -> np.ndarray:
    """A dense copy of the step-sizes of all features, of which those never seen have α."""
    now = kept(buffers)
    found = np.where(now.alpha == 0.0, alpha, now.alpha)
    owners, numbers = listed(buffers)
    found[owners] = numbers[STEP_SIZE]
    return found


def listed(buffers: Buffers) -> tuple[np.ndarray, np.ndarray]:
    """The features on the list, and a row for each field with their numbers."""
    (one,) = each(buffers)
    count = int(one.numbers[COUNT])
    rows = kept(buffers).tiles.transpose(1, 0, 2).reshape(FIELDS, -1)
    return parts(one)[4][1 : count + 1], rows[:, :count]


def dump(buffers: Buffers) -> dict[str, np.ndarray]:
    """The contents of the memory beside weights and trace, as a few arrays."""
    now = kept(buffers)
    seen = np.flatnonzero(now.alpha)
    return {
        "settings": now.settings.copy(),
        "seen": seen,
        "of_features": np.stack((now.h[seen], now.alpha[seen])),
        "of_list": listed(buffers)[1].copy(),
    }


def rebuild(buffers: Buffers, saved: dict[str, np.ndarray]) -> None:
    """Put back what `dump` described, after the memory itself. ValueError if the parts do not fit together.

    h, p and z̄ may be any numbers, because learners diverge. Step-sizes are positive, or NaN.
    """
    (one,) = each(buffers)
    count, n = int(one.numbers[COUNT]), features(buffers)
    settings = saved_array(saved, "settings", (SETTINGS,), np.float64)
    shape = np.asarray(saved.get("seen")).shape[:1]
    seen = saved_array(saved, "seen", shape, np.int64)
    of_features = saved_array(saved, "of_features", (2, *shape), np.float64)
    of_list = saved_array(saved, "of_list", (FIELDS, count), np.float64)
    step_sizes = np.append(of_features[1], of_list[STEP_SIZE])
    check_saved({"layout": one.numbers[DENSE] == 0.0, "seen": (seen >= 0) & (seen < n)})
    check_saved({"step-sizes": ~((step_sizes <= 0.0) | np.isinf(step_sizes)), "features": of_list[PHI] == 0.0})
    saved_count("number of bounded steps", settings[BOUNDED])
    saved_count("number of steps", settings[LOOKED], LOOK)
    now = kept(buffers)
    now.settings[[BOUNDED, LOOKED]] = settings[[BOUNDED, LOOKED]]
    now.h[seen], now.alpha[seen] = of_features
    k = np.arange(count)
    now.tiles[k // TILE, :, k % TILE] = of_list.T
