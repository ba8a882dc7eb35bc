"""Where samples come from, behind one iterator: files, pipes, MQTT, Lab Streaming Layer, a simulated arm; and their cleaning.

| spec                          | source                                                          | replayable |
|-------------------------------|-----------------------------------------------------------------|------------|
| a path, `*.parquet` or `*.pq` | `ParquetFile`                                                   | yes        |
| any other path                | `TextFile`: CSV or JSON lines, plain or gzipped; may be followed| yes        |
| `-`, or a path of a pipe or device | `Pipe`: CSV or JSON lines                                  | no         |
| `mqtt://host:port/topic`      | `Mqtt`: JSON                                                    | no         |
| `lsl://name`                  | `Lsl`                                                           | no         |
| `arm` or `arm://SEED`         | `Arm`: simulated, without end, at 40 Hz (a file named arm: `./arm`) | yes    |

What is replayable can be read from any `position` on, and in the pace of its times (`Paced`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from trueonline.inputs import positive
from trueonline.nexting.sources.cleaning import Cleaner
from trueonline.nexting.sources.files import ParquetFile, TextFile
from trueonline.nexting.sources.lsl import Lsl
from trueonline.nexting.sources.mqtt import QUEUE, Mqtt
from trueonline.nexting.sources.pacing import Paced
from trueonline.nexting.sources.pipes import Pipe
from trueonline.nexting.sources.sample import Block, Clean, Source, skipping
from trueonline.nexting.sources.simulated import Arm, seed_of

__all__ = [
    "Arm",
    "Block",
    "Clean",
    "Cleaner",
    "Lsl",
    "Mqtt",
    "Paced",
    "ParquetFile",
    "Pipe",
    "Source",
    "TextFile",
    "has_own_times",
    "is_live",
    "open_source",
    "skipping",
]


def open_source(
    spec: str | os.PathLike,
    signals: Sequence[str],
    *,
    time: str | None = None,
    rate: float | None = None,
    time_unit: str = "s",
    follow: bool = False,
    whole_lines: bool = False,
    queue: int = QUEUE,
    pace: float | None = None,
) -> Source:
    """The source that a path or an address stands for (see the table above).

    `time` names the column with the times, in `time_unit` (s, ms, us, ns) since the epoch or as ISO 8601; without it they
    are made from `rate`, in samples per second. MQTT looks under "time" when given neither. LSL and the arm have times of
    their own and use neither. `follow` is for text files that grow; `whole_lines` leaves the last line of a text file or a
    pipe if it has no line break. `queue` is for live sources: how many samples may wait. `pace` is for the others: 1 gives
    the samples in real time, 2 twice as fast (see `Paced`), and None as fast as they are read.
    """
    name = os.fspath(spec)
    if not isinstance(name, str) or not name:
        raise ValueError(f"the source must be a path, '-' or an address, got {spec!r}")
    clock: dict[str, Any] = {"time": time, "rate": rate, "time_unit": time_unit}
    scheme, live = _scheme(name), is_live(name)
    if scheme and scheme not in ("mqtt", "lsl", "arm"):
        raise ValueError(f"addresses begin with mqtt://, lsl:// or arm://, got {name}")
    parquet = name.lower().endswith((".parquet", ".pq"))
    if follow and (live or scheme or parquet):
        raise ValueError(f"follow is for text files that grow, got {name}; leave it out")
    if pace is not None:
        if live:
            raise ValueError(f"pace is for files and the arm, got {name}, which comes when it is sent; leave it out")
        positive("pace", pace)
    source: Source
    if scheme == "mqtt":
        source = Mqtt(name, signals, **clock, queue=queue)
    elif scheme == "lsl":
        source = Lsl(unquote(name.partition("://")[2].rstrip("/")), signals, queue=queue)
    elif scheme == "arm":
        source = Arm(seed_of(name), signals)
    elif live:
        source = Pipe(None if name == "-" else name, signals, **clock, whole_lines=whole_lines)
    elif parquet:
        source = ParquetFile(name, signals, **clock)
    else:
        source = TextFile(name, signals, **clock, follow=follow, whole_lines=whole_lines)
    return source if pace is None else Paced(source, pace)


def is_live(spec: str | os.PathLike) -> bool:
    """Whether samples come when they are sent: a pipe, MQTT or LSL."""
    name = os.fspath(spec)
    piped = os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name)
    return name == "-" or piped or _scheme(name) in ("mqtt", "lsl")


def has_own_times(spec: str | os.PathLike) -> bool:
    """Whether samples bring times that nobody need tell of: LSL, and the arm."""
    return _scheme(os.fspath(spec)) in ("lsl", "arm")


def _scheme(name: str) -> str:
    return "arm" if name == "arm" else name.partition("://")[0].lower() if "://" in name else ""
