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

A replayable source can be read from any `position` on, and at the pace of its times (`Paced`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from trueonline.nexting.sources.addresses import shown_address, without_credentials
from trueonline.nexting.sources.cleaning import Cleaner
from trueonline.nexting.sources.lsl import Lsl
from trueonline.nexting.sources.mqtt import Mqtt
from trueonline.nexting.sources.pacing import Paced, check_pace
from trueonline.nexting.sources.parquet_file import ParquetFile
from trueonline.nexting.sources.pipes import Pipe
from trueonline.nexting.sources.positions import skipping
from trueonline.nexting.sources.ring import QUEUE
from trueonline.nexting.sources.sample import Block, Clean, Source
from trueonline.nexting.sources.simulated import Arm
from trueonline.nexting.sources.text_file import TextFile

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
    "shown_address",
    "skipping",
    "without_credentials",
]

SCHEMES: dict[str, type[Source]] = {
    "mqtt": Mqtt,
    "mqtts": Mqtt,
    "lsl": Lsl,
    "arm": Arm,
}  # a new kind of address is one more entry


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
    pace: float | Literal["fit"] | None = None,
    mqtt_password_file: str | os.PathLike | None = None,
    mqtt_ca: str | os.PathLike | None = None,
) -> Source:
    """Open the source that a path or an address stands for.

    Parameters
    ----------
    spec : str or path
        A path, "-" for standard input, or an address `mqtt://host:port/topic`, `mqtts://host:port/topic`, `lsl://name`, `arm`
        or `arm://SEED`.
    signals : sequence of str
        The names of the signals: columns, keys or channels.
    time : str, optional
        The column or key with the times, as numbers since the epoch or as ISO 8601. MQTT looks under "time" if it gets
        neither `time` nor `rate`. LSL and the arm have times of their own and use neither.
    rate : float, optional
        Samples per second, to make times from if there is no `time`.
    time_unit : {"s", "ms", "us", "ns"}
        The unit of times that are numbers.
    follow : bool
        Wait for more at the end of a text file that grows.
    whole_lines : bool
        Leave the last line of a text file or a pipe if it has no line break.
    queue : int
        How many samples may wait in a live source.
    pace : float or "fit", optional
        The pace of a replayable source: 1 for real time, 2 for twice as fast. "fit" is real time, or faster if that would take
        longer than about ten minutes. None reads as fast as possible.
    mqtt_password_file : str or path, optional
        A file with the password for an MQTT broker.
    mqtt_ca : str or path, optional
        A file with the certificates, in PEM, by which the certificate of an `mqtts://` broker is checked.

    Returns
    -------
    Source
        The source, opened. Use it in a `with` statement, or close it.

    Raises
    ------
    ValueError
        If there is no such source, if it lacks a signal, or if an option does not fit it.

    Examples
    --------
    >>> with open_source("arm://7", ["force", "position"]) as source:
    ...     block = next(source)
    >>> block.times[:3], block.values.shape
    (array([0.   , 0.025, 0.05 ]), (4096, 2))
    """
    name = os.fspath(spec)
    if not isinstance(name, str) or not name:
        raise ValueError(f"the source must be a path, '-' or an address, got {spec!r}")
    clock: dict[str, Any] = {"time": time, "rate": rate, "time_unit": time_unit}
    scheme, live = _scheme(name), is_live(name)
    if scheme and scheme not in SCHEMES:
        *others, last = (f"{each}://" for each in SCHEMES)
        raise ValueError(f"addresses begin with {', '.join(others)} or {last}, got {shown_address(name)}")
    parquet = name.lower().endswith((".parquet", ".pq"))
    if follow and (live or scheme or parquet):
        raise ValueError(f"follow is for text files that grow, got {shown_address(name)}; leave it out")
    if pace is not None:
        if live:
            shown = shown_address(name)
            raise ValueError(f"pace is for files and the arm, got {shown}, which comes when it is sent; leave it out")
        check_pace(pace)
    source: Source
    if mqtt_password_file is not None or mqtt_ca is not None:
        if SCHEMES.get(scheme) is not Mqtt:
            raise ValueError(
                f"--mqtt-password-file and --mqtt-ca are for MQTT, got {shown_address(name)}; leave them out"
            )
        source = Mqtt(name, signals, **clock, queue=queue, password_file=mqtt_password_file, ca=mqtt_ca)
    elif scheme:
        source = SCHEMES[scheme].from_address(name, signals, clock, queue)
    elif live:
        source = Pipe(None if name == "-" else name, signals, **clock, whole_lines=whole_lines)
    elif parquet:
        source = ParquetFile(name, signals, **clock)
    else:
        source = TextFile(name, signals, **clock, follow=follow, whole_lines=whole_lines)
    return source if pace is None else Paced(source, pace)


def is_live(spec: str | os.PathLike) -> bool:
    """Whether samples come when they are sent.

    Parameters
    ----------
    spec : str or path
        A path or an address, as for `open_source`.

    Returns
    -------
    bool
        True for a pipe and for addresses of sources that are not replayable.
    """
    name = os.fspath(spec)
    piped = os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name)
    scheme = _scheme(name)
    return name == "-" or piped or (scheme in SCHEMES and not SCHEMES[scheme].replayable)


def has_own_times(spec: str | os.PathLike) -> bool:
    """Whether samples bring times that nobody need name.

    Parameters
    ----------
    spec : str or path
        A path or an address, as for `open_source`.

    Returns
    -------
    bool
        True for LSL and the arm.
    """
    scheme = _scheme(os.fspath(spec))
    return scheme in SCHEMES and SCHEMES[scheme].own_times


def _scheme(name: str) -> str:
    """The scheme of an address, "" for a path. A bare `arm` is an address too."""
    if name.lower().startswith(("mqtt:", "mqtts:")) and not os.path.exists(name):
        return "mqtt"  # also without the slashes, so that no error shows a password in the name of a file
    return "arm" if name == "arm" else name.partition("://")[0].lower() if "://" in name else ""
