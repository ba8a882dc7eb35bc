"""Positions in what can be read again: a place, and how many samples after it were used.

A reader takes samples in blocks, and may stop in the middle of one. The place then stays before the block. `skip` says how
many samples after the place were used, and `skipped` holds checksums of them: one of their times and one for each signal.
(CRC-32, because it can be continued. It guards against accidents, not against malice.)
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from trueonline.streams.sources.sample import Block, nothing

MAX_NUMBER = 2**62  # no file has as many bytes or rows
FROM_SCRATCH = "start from scratch (on the command line: --fresh)"  # the way out if a position does not fit


def skipping(position: dict[str, Any], block: Block, rows: int) -> dict[str, Any]:
    """The position some samples after another one.

    Parameters
    ----------
    position : dict
        The position from which `block` was read. A source that makes its samples from a seed has no checksums in it.
    block : Block
        The block that was read there.
    rows : int
        How many samples of the block were used.

    Returns
    -------
    dict
        A position from which the rest of the block comes next.
    """
    if not 0 <= rows <= len(block):
        raise ValueError(f"rows must be a whole number from 0 to the {len(block)} of the block, got {rows!r}")
    moved = {**position, "skip": position["skip"] + int(rows)}
    if "skipped" in position:
        moved["skipped"] = _continued(position["skipped"], block.part(0, rows))
    return moved


def nothing_skipped(signals: Sequence[str]) -> dict[str, Any]:
    """The checksums of no samples."""
    return {"times": 0, "values": dict.fromkeys(signals, 0)}


def _continued(skipped: dict[str, Any], block: Block) -> dict[str, Any]:
    """The checksums with those of a block. None stands for a signal that was not asked for when they were begun."""
    values = {
        name: None if before is None else zlib.crc32(block.values[:, j].tobytes(), before)
        for j, (name, before) in enumerate(skipped["values"].items())
    }
    return {"times": zlib.crc32(block.times.tobytes(), skipped["times"]), "values": values}


def checked_skipped(position: dict[str, Any], signals: Sequence[str]) -> dict[str, Any]:
    """The checksums of a position, checked, for these signals, which may be others than when it was taken."""
    skipped = position.get("skipped")
    values = skipped.get("values") if isinstance(skipped, dict) else None
    if isinstance(skipped, dict) and isinstance(values, dict):
        sums = [skipped.get("times"), *(value for value in values.values() if value is not None)]
        if all(type(each) is int and 0 <= each < 2**32 for each in sums):
            return {"times": skipped["times"], "values": {name: values.get(name) for name in signals}}
    raise ValueError(f"the position is damaged: skipped must hold a checksum for each signal, got {str(skipped)[:80]}")


def after_skipped(name: str, position: dict[str, Any], signals: Sequence[str], blocks: Iterable[Block]) -> Block:
    """Leave out the samples that the position says were used, and return the rest of the block in which they end.

    ValueError if these samples are not what they were when the position was taken, or if there are fewer.
    """
    before, skip = checked_skipped(position, signals), position["skip"]
    now, left, rest = nothing_skipped(signals), skip, nothing(len(signals))
    for block in blocks:
        drop = min(left, len(block))
        now = _continued(now, block.part(0, drop))
        left, rest = left - drop, block.part(drop)
        if not left:
            break
    differing = ["the times"] if left or now["times"] != before["times"] else []
    differing += [signal for signal, sum_ in before["values"].items() if sum_ not in (None, now["values"][signal])]
    if differing:
        raise ValueError(
            f"{name} is not the file that was read, or was changed: of the {skip:,} samples after the place of the position, "
            f"{', '.join(differing)} are not what they were; {FROM_SCRATCH}"
        )
    return rest


def whole_numbers(position: Any, kind: str, *names: str) -> list[int]:
    """Entries of a position, checked: whole numbers that are not negative."""
    if not isinstance(position, dict) or position.get("kind") != kind:
        raise ValueError(f"this is not a position in a source of the kind {kind}: {str(position)[:80]}")
    for name in names:
        if type(position.get(name)) is not int or not 0 <= position[name] < MAX_NUMBER:
            raise ValueError(f"the position is damaged: {name} must be a whole number, got {position.get(name)!r:.80}")
    return [position[name] for name in names]


def short_hash(data: bytes) -> str:
    """A hash of what comes before a position."""
    return hashlib.sha256(data).hexdigest()[:32]
