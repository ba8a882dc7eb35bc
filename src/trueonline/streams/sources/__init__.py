"""Sources of samples behind one iterator, and the cleaning of samples.

| spec                               | source                                                           | replayable |
|------------------------------------|------------------------------------------------------------------|------------|
| a path, `*.parquet` or `*.pq`      | `ParquetFile`                                                    | yes        |
| any other path                     | `TextFile`: CSV or JSON lines, plain or gzipped, may be followed | yes        |
| `-`, or a path of a pipe or device | `Pipe`: CSV or JSON lines                                        | no         |
| `mqtt://host:port/topic`           | `Mqtt`: JSON                                                     | no         |
| `mqtts://host:port/topic`          | the same over TLS                                                | no         |
| `lsl://name`                       | `Lsl`                                                            | no         |
| `arm` or `arm://SEED`              | `Arm`: simulated, endless, at 40 Hz (a file named arm: `./arm`)  | yes        |
| several paths, or `logs/*.csv`     | `Chain`: files, one after another, as one stream                 | yes        |
| the same, followed, each a signal  | `Together`: files that grow at the same time, and new ones       | yes        |

A path may also be written as `file:///path`. A replayable source can be read from any `position` on, and at the pace of its times
(`Paced`).
"""

from __future__ import annotations

from trueonline.streams.sources.addresses import shown_address, without_credentials
from trueonline.streams.sources.cleaning import Cleaner
from trueonline.streams.sources.clock import TimeStyle
from trueonline.streams.sources.file_chain import Chain, files_named
from trueonline.streams.sources.files_together import Together
from trueonline.streams.sources.labels import Labels
from trueonline.streams.sources.lsl import Lsl
from trueonline.streams.sources.mqtt import Mqtt
from trueonline.streams.sources.opening import SCHEMES, SourceAddress, columns_of, open_source
from trueonline.streams.sources.pacing import Paced
from trueonline.streams.sources.parquet_file import ParquetFile
from trueonline.streams.sources.pipes import Pipe
from trueonline.streams.sources.positions import skipping
from trueonline.streams.sources.sample import Block, Clean, Source
from trueonline.streams.sources.simulated import Arm
from trueonline.streams.sources.text_file import TextFile

__all__ = [
    "SCHEMES",
    "Arm",
    "Block",
    "Chain",
    "Clean",
    "Cleaner",
    "Labels",
    "Lsl",
    "Mqtt",
    "Paced",
    "ParquetFile",
    "Pipe",
    "Source",
    "SourceAddress",
    "TextFile",
    "TimeStyle",
    "Together",
    "columns_of",
    "files_named",
    "open_source",
    "shown_address",
    "skipping",
    "without_credentials",
]
