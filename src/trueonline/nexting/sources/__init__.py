"""Where samples come from, behind one iterator: files, pipes, MQTT and Lab Streaming Layer; and their cleaning.

| spec                          | source                                                          | replayable |
|-------------------------------|-----------------------------------------------------------------|------------|
| a path, `*.parquet` or `*.pq` | `ParquetFile`                                                   | yes        |
| any other path                | `TextFile`: CSV or JSON lines, plain or gzipped; may be followed| yes        |
| `-`, or a path of a pipe or device | `Pipe`: CSV or JSON lines                                  | no         |
| `mqtt://host:port/topic`      | `Mqtt`: JSON                                                    | no         |
| `lsl://name`                  | `Lsl`                                                           | no         |
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from trueonline.nexting.sources.cleaning import Cleaner
from trueonline.nexting.sources.lsl import Lsl
from trueonline.nexting.sources.mqtt import QUEUE, Mqtt
from trueonline.nexting.sources.pipes import Pipe
from trueonline.nexting.sources.sample import Block, Clean, Source
from trueonline.nexting.sources.tables import ParquetFile, TextFile

__all__ = ["Block", "Clean", "Cleaner", "Lsl", "Mqtt", "ParquetFile", "Pipe", "Source", "TextFile", "open_source"]


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
) -> Source:
    """The source that a path or an address stands for (see the table above).

    `time` names the column with the times, in `time_unit` (s, ms, us, ns) since the epoch or as ISO 8601; without it they
    are made from `rate`, in samples per second. MQTT looks under "time" when given neither. LSL has times of its own and
    uses neither. `follow` is for text files that grow; `whole_lines` leaves their last line if it has no line break. `queue` is
    for live sources: how many samples may wait.
    """
    name = os.fspath(spec)
    if not isinstance(name, str) or not name:
        raise ValueError(f"the source must be a path, '-' or an address, got {spec!r}")
    clock: dict[str, Any] = {"time": time, "rate": rate, "time_unit": time_unit}
    scheme = name.partition("://")[0].lower() if "://" in name else ""
    if scheme and scheme not in ("mqtt", "lsl"):
        raise ValueError(f"addresses begin with mqtt:// or lsl://, got {name}")
    live = bool(scheme) or name == "-" or (os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name))
    parquet = name.lower().endswith((".parquet", ".pq"))
    if follow and (live or parquet):
        raise ValueError(f"follow is for text files that grow, got {name}; leave it out")
    if scheme == "mqtt":
        return Mqtt(name, signals, **clock, queue=queue)
    if scheme == "lsl":
        return Lsl(unquote(name.partition("://")[2].rstrip("/")), signals, queue=queue)
    if live:
        return Pipe(None if name == "-" else name, signals, **clock)
    if parquet:
        return ParquetFile(name, signals, **clock)
    return TextFile(name, signals, **clock, follow=follow, whole_lines=whole_lines)
