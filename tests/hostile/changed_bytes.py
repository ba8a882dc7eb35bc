"""Saved files with changed bytes: single bits, bytes, gaps, insertions, swapped blocks, and fields of the zip directory."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

from tests.hostile import FINE, REFUSED, PromiseError
from tests.hostile.saved_files import FILES, make_all

PROMISE = "A saved file with changed bytes is refused, or is read as what was saved, bit for bit."
TRIALS = 40_000
RECORDS = {b"PK\x03\x04": 30, b"PK\x01\x02": 46, b"PK\x05\x06": 22, b"PK\x06\x06": 56}  # of a zip file, and their sizes

prepare = make_all


def trial(rng: random.Random, folder: Path, shared: Path) -> str:
    name = rng.choice([name for name in FILES if not name.startswith("atari_") or rng.random() < 0.1])
    whole, expected = original(name, shared)
    path = folder / name
    changed = change(rng, whole)
    path.write_bytes(changed)
    try:
        found = FILES[name].content(FILES[name].read(path))
    except ValueError as error:
        if not str(error).strip():
            raise PromiseError("the refusal has no message") from error
        return REFUSED
    if found != expected:
        raise PromiseError(f"{name} was read as something else")
    return FINE


@cache
def original(name: str, shared: Path) -> tuple[bytes, Any]:
    """The bytes of a file, and its content."""
    copy = shared / f"{name}.read"
    copy.write_bytes((shared / name).read_bytes())
    return copy.read_bytes(), FILES[name].content(FILES[name].read(copy))


def change(rng: random.Random, whole: bytes) -> bytes:
    """Other bytes than these."""
    while True:
        data = bytearray(whole)
        CHANGES[rng.choice(list(CHANGES))](rng, data)
        if data != whole:
            return bytes(data)


def flip_a_bit(rng: random.Random, data: bytearray) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def replace_bytes(rng: random.Random, data: bytearray) -> None:
    for _ in range(rng.choice([1, 1, 2, 10])):
        data[rng.randrange(len(data))] = rng.randrange(256)


def truncate(rng: random.Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def insert(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.randbytes(rng.choice([1, 2, 8, 100]))


def remove(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.choice([1, 2, 8, 100])]


def swap(rng: random.Random, data: bytearray) -> None:
    size = rng.choice([1, 8, 64, 512])
    if len(data) > 2 * size:
        a, b = sorted(rng.sample(range(0, len(data) - size, size), 2)) if len(data) > 3 * size else (0, size)
        data[a : a + size], data[b : b + size] = data[b : b + size], data[a : a + size]


def change_a_record(rng: random.Random, data: bytearray) -> None:
    """A number in a header of the zip file; a bit where there is no such header."""
    places = [(at, size) for mark, size in RECORDS.items() for at in _all(bytes(data), mark)]
    if not places:
        return flip_a_bit(rng, data)
    at, size = rng.choice(places)
    field = at + rng.randrange(4, min(size, len(data) - at) - 1)
    width = rng.choice([1, 2, 4])
    number = rng.choice([0, 1, 255, 2**width, rng.randrange(2**16), 2 ** (8 * width) - 1])
    data[field : field + width] = (number % 2 ** (8 * width)).to_bytes(width, "little")
    return None


def _all(data: bytes, mark: bytes) -> list[int]:
    places, at = [], -1
    while (at := data.find(mark, at + 1)) >= 0:
        places.append(at)
    return places


CHANGES = {
    f.__name__: f for f in (flip_a_bit, replace_bytes, truncate, insert, remove, swap, change_a_record)
}  # each as often as any other
