"""The constants that keep random seeds apart: every seed that begins with a constant is made here.

NumPy ignores zeros at the end of a seed: [41, 3] and [41, 3, 0, 0] give the same numbers. So two purposes with the same
constant are apart only if their other parts cannot agree. `SEEDS` says for each purpose which parts its seeds have. The
constants never change, because stored results depend on them.
"""

from __future__ import annotations

SEEDS: dict[str, tuple[int, tuple[str, ...]]] = {
    "trajectory of a sweep": (20160817, ("seed", "run")),
    "confirmation of a sweep": (20160818, ("seed",)),
    "features of a sweep file": (41, ("seed",)),
    "features of the paper's MRPs": (41, ("seed", "kind", "number")),
    "paper's MRPs": (31, ("seed", "kind", "number")),
    "MRPs of a grid": (51, ("seed", "k", "b", "number")),
    "features of MRPs of a grid": (61, ("seed", "k", "b", "number")),
    "off-policy MDPs": (61, ("seed", "number")),
    "features of the Collision task": (71, ("seed", "run")),
    "trajectories of the Collision task": (73, ("seed", "run")),
    "background of a game": (2016, ("seed",)),
    "arm": (20130612, ("seed",)),
    "training episode": (1, ("episode", "seed")),
    "evaluation episode": (2, ("episode", "seed")),
    "filmed episode": (3, ("episode", "seed")),
}
# These two have a seed in common, for kind 0 and number 0. They belong to different studies.
SHARED_SEEDS = {("features of a sweep file", "features of the paper's MRPs")}


def seed_of(purpose: str, *parts: int) -> list[int]:
    """The seed for a purpose, as NumPy takes it.

    Parameters
    ----------
    purpose : str
        A key of `SEEDS`.
    *parts : int
        The parts that `SEEDS` names. The last one may be several numbers, if it is the seed of a user.

    Returns
    -------
    list of int

    Examples
    --------
    >>> seed_of("trajectory of a sweep", 0, 3)
    [20160817, 0, 3]
    """
    constant, names = SEEDS[purpose]
    if len(parts) < len(names) or (len(parts) > len(names) and names[-1] != "seed"):
        raise ValueError(f"the seed of {purpose} has the parts {', '.join(names)}, got {parts}")
    return [constant, *parts]
