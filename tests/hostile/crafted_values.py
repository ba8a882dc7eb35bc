"""Files that fit together but hold crafted values: in every array and setting, as members, and as a zip bomb."""

from __future__ import annotations

import json
import random
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.hostile import FINE, REFUSED, PromiseError
from tests.hostile.saved_files import FILES, make_all
from trueonline import files

PROMISE = "A crafted file is refused or can be used: no crash, no hang, no more than 500 MB of memory."
TRIALS = 5_000
WHOLE = [-1, 0, 1, 2, 7, 255, 2**15, 2**31 - 1, 2**31, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63)]
REAL = [np.nan, np.inf, -np.inf, -1.0, 0.0, -0.0, 0.5, 1e-320, 1e-30, 1e9, 1e18, 1e200, 1.7e308, -1e308, 2.0**53]
OTHER = [None, True, "", "x" * 5000, [], {}, [[1]], {"a": 1}, "nan", 1e400, 10**30, *WHOLE, *REAL]
LEARNERS = [name for name in FILES if name not in ("sweep_result", "mark")]  # files that `write_learner` writes
BOMB = 3 * 2**30  # bytes that unpack from about 3 MB
BOMBS = ("unknown.npy", "about.json")  # members that may be the bomb


def prepare(shared: Path) -> None:
    make_all(shared)
    for name in BOMBS:
        with (
            zipfile.ZipFile(shared / f"{name}.bomb", "w", zipfile.ZIP_DEFLATED) as archive,
            archive.open(name, "w", force_zip64=True) as member,
        ):
            member.write(_header(f"({BOMB // 8},)"))
            for _ in range(BOMB // 2**24):
                member.write(bytes(2**24))


def trial(rng: random.Random, folder: Path, shared: Path) -> str:
    name = rng.choice([name for name in LEARNERS if name != "atari_true_online" or rng.random() < 0.1])
    kind, settings, arrays = files.read_learner(shared / name)
    settings = json.loads(json.dumps(settings))
    path = folder / name
    ways = [craft_array] * 10 + [craft_setting] * 4 + [drop, add, swap_members, rename]
    if rng.random() < 0.05:
        craft_archive(rng, shared / name, path)
    else:
        for _ in range(rng.choice([1, 1, 2])):
            rng.choice(ways)(rng, settings, arrays)
        files.write_learner(path, kind, settings, arrays)
    try:
        thing = FILES[name].read(path)
        FILES[name].use(thing, np.random.default_rng(1))
    except ValueError as error:
        if not str(error).strip():
            raise PromiseError("the refusal has no message") from error
        return REFUSED
    return FINE


def craft_array(rng: random.Random, settings: dict, arrays: dict[str, np.ndarray]) -> None:
    """Other numbers, another shape or another type in one array."""
    name = rng.choice(sorted(arrays))
    array = np.array(arrays[name], order="C")
    chance, kind = rng.random(), array.dtype.kind
    if chance < 0.65 and array.size and kind in "fiub":
        flat = array.reshape(-1)
        numbers = [*WHOLE, *REAL] if kind == "f" else [*WHOLE, array.size, array.size - 1, *flat[:3].tolist()]
        for place in rng.choices(range(flat.size), k=rng.choice([1, 1, 2, flat.size])):
            number = rng.choice(numbers)
            flat[place] = number if kind == "f" else np.array(int(number) % 2**64, np.uint64).astype(array.dtype)
    elif chance < 0.85:
        flat = array.ravel()
        shapes = [flat[:0], flat[:-1], flat[:1], flat[:, None], flat[None], array.T, np.tile(flat, 3)]
        array = rng.choice([*shapes, np.zeros(rng.choice([0, 3, 10**7 // array.itemsize]), array.dtype)])
    else:
        other = rng.choice(["f4", "f2", "i1", "u8", "i4", "?", ">f8", ">i8", "U8"])  # others cannot even be written
        array = np.zeros(array.shape, other) if rng.random() < 0.5 or kind == "U" else array.astype(other)
    arrays[name] = array


def craft_setting(rng: random.Random, settings: dict, arrays: dict) -> None:
    """Another value at some depth of the settings."""
    inside: Any = settings
    while True:
        key = rng.choice(sorted(inside) if isinstance(inside, dict) else range(len(inside)))
        if not isinstance(inside[key], dict | list) or not inside[key] or rng.random() < 0.2:
            break
        inside = inside[key]
    if rng.random() < 0.2:
        del inside[key]
    else:
        inside[key] = rng.choice(OTHER)


def drop(rng: random.Random, settings: dict, arrays: dict) -> None:
    del arrays[rng.choice(sorted(arrays))]


def add(rng: random.Random, settings: dict, arrays: dict) -> None:
    arrays[rng.choice(["unknown", "here", "here_indices", "initial_weights", "x99", "own/last", "w"])] = np.arange(5.0)


def rename(rng: random.Random, settings: dict, arrays: dict) -> None:
    arrays[rng.choice(["other", *arrays])] = arrays.pop(rng.choice(sorted(arrays)))


def swap_members(rng: random.Random, settings: dict, arrays: dict) -> None:
    a, b = (rng.choice(sorted(arrays)) for _ in range(2))
    arrays[a], arrays[b] = arrays[b], arrays[a]


def craft_archive(rng: random.Random, whole: Path, path: Path) -> None:
    """Archives that `write_learner` would not write."""
    with zipfile.ZipFile(whole) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    victim = rng.choice(sorted(members))
    way = rng.choice(["compressed", "bomb", "huge shape", "bad header", "pickled", "twice"])
    header, _, rest = members[victim].partition(b"\n")
    if way == "bomb":
        bomb = rng.choice(BOMBS)
        shutil.copy(whole.with_name(f"{bomb}.bomb"), path)
        members.pop(bomb, None)
    elif way == "huge shape":
        shape = rng.choice(["(1000000000000,)", "(4000000000, 4)", "(-1,)", "(" * 500, "(2**70,)"])
        members[victim] = _header(shape) + b"\0" * 64
    elif way == "bad header":
        noise = bytes(rng.choice(b"'(){}[],:\\\0#\"") for _ in range(20))
        members[victim] = header[:20] + noise + header[40:] + b"\n" + rest
    elif way == "pickled":
        members[victim] = _header("(1,)", "'|O'") + b"cos\nabort\n(tR."  # whoever unpickles it is seen to crash
    elif way == "twice":
        members |= {f"./{victim}": members[victim]}
    compression = zipfile.ZIP_DEFLATED if way == "compressed" else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "a", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def _header(shape: str, kind: str = "'<f8'") -> bytes:
    text = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
