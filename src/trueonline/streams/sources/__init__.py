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

A path may also be written as `file:///path`. A replayable source can be read from any `position` on, and at the pace of its times
(`Paced`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from trueonline.streams.sources.addresses import LIKE_MQTT, local_path, scheme_of, shown_address, without_credentials
from trueonline.streams.sources.cleaning import Cleaner
from trueonline.streams.sources.clock import TimeStyle
from trueonline.streams.sources.file_chain import FILES_NAMED, Chain, files_named, is_pattern, not_empty
from trueonline.streams.sources.lsl import Lsl
from trueonline.streams.sources.mqtt import Mqtt
from trueonline.streams.sources.numeric_columns import parquet_columns, text_columns
from trueonline.streams.sources.pacing import Paced, check_pace
from trueonline.streams.sources.parquet_file import ParquetFile
from trueonline.streams.sources.pipes import Pipe
from trueonline.streams.sources.positions import skipping
from trueonline.streams.sources.ring import QUEUE
from trueonline.streams.sources.sample import Block, Clean, Source
from trueonline.streams.sources.simulated import Arm
from trueonline.streams.sources.text_file import TextFile
from trueonline.words import listed

__all__ = [
    "Arm",
    "Block",
    "Chain",
    "Clean",
    "Cleaner",
    "Lsl",
    "Mqtt",
    "Paced",
    "ParquetFile",
    "Pipe",
    "Source",
    "TextFile",
    "TimeStyle",
    "columns_of",
    "files_named",
    "has_own_times",
    "is_live",
    "is_several",
    "open_source",
    "shown_address",
    "shown_source",
    "skipping",
    "without_credentials",
]

Spec = str | os.PathLike

SCHEMES: dict[str, type[Source]] = {
    "mqtt": Mqtt,
    "mqtts": Mqtt,
    "lsl": Lsl,
    "arm": Arm,
}  # a new kind of address is one more entry


def open_source(
    spec: Spec | Sequence[Spec],
    signals: Sequence[str],
    *,
    time: str | None = None,
    rate: float | None = None,
    time_unit: str = "s",
    time_format: str | None = None,
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
    spec : str, path, or a sequence of them
        A path, "-" for standard input, or an address `file:///path`, `mqtt://host:port/topic`, `mqtts://host:port/topic`,
        `lsl://name`, `arm` or `arm://SEED`. Several paths, or a pattern such as `logs/*.csv`, are one stream, file after file.
    signals : sequence of str
        The names of the signals: columns, keys or channels.
    time : str, optional
        The column or key with the times, as numbers since the epoch or as ISO 8601. MQTT looks under "time" if it gets
        neither `time` nor `rate`. LSL and the arm have times of their own and use neither.
    rate : float, optional
        Samples per second, to make times from if there is no `time`.
    time_unit : {"s", "ms", "us", "ns"}
        The unit of times that are numbers.
    time_format : str, optional
        The form of times that are neither numbers nor ISO 8601, as `datetime.strptime` knows it: "%d.%m.%Y %H:%M".
    follow : bool
        Wait for more at the end of a text file that grows. If there are several files, the last one is followed.
    whole_lines : bool
        Leave the last line of a text file or a pipe if it has no line break. If there are several files, this applies to the last.
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
    clock: dict[str, Any] = {"time": time, "rate": rate, "time_unit": time_unit, "time_format": time_format}
    if is_several(spec):
        if mqtt_password_file is not None or mqtt_ca is not None:
            raise ValueError("--mqtt-password-file and --mqtt-ca are for MQTT, got files; leave them out")
        chain = _chain(_specs(spec), signals, clock, follow, whole_lines)
        return chain if pace is None else Paced(chain, check_pace(pace))
    (name,) = _specs(spec)
    scheme, live = _scheme(name), is_live(name)
    if scheme and scheme not in SCHEMES:
        *others, last = (f"{each}://" for each in SCHEMES)
        raise ValueError(f"addresses begin with {', '.join(others)} or {last}, got {shown_address(name)}")
    if follow and (live or scheme or _is_parquet(name)):
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
    else:
        source = _file(name, signals, clock, follow, whole_lines)
    return source if pace is None else Paced(source, pace)


def _file(
    path: str, signals: Sequence[str], clock: dict[str, Any], follow: bool, whole_lines: bool, first_row: int = 0
) -> Source:
    if _is_parquet(path):
        return ParquetFile(path, signals, **clock, first_row=first_row)
    return TextFile(path, signals, **clock, follow=follow, whole_lines=whole_lines, first_row=first_row)


def _chain(specs: list[str], signals: Sequence[str], clock: dict[str, Any], follow: bool, whole_lines: bool) -> Source:
    """Several files as one stream. A file is whole if another one follows it."""
    paths = _files(specs)
    if follow and _is_parquet(paths[-1]):
        raise ValueError(f"follow is for text files that grow, got {paths[-1]}; leave it out")

    def opened(path: str, rows: int, last: bool) -> Source:
        return _file(path, signals, clock, follow and last, whole_lines and last, rows)

    return Chain(paths, opened)


def _files(specs: list[str]) -> list[str]:
    """The files that several names stand for. ValueError if one of them is not a file."""
    others = [spec for spec in specs if is_live(spec) or _scheme(spec)]
    if others:
        raise ValueError(f"several sources must all be files, got {shown_address(others[0])}; name it alone")
    return files_named(specs)


def _specs(spec: Spec | Sequence[Spec]) -> list[str]:
    """The names of sources. ValueError unless each is a text."""
    each = [spec] if isinstance(spec, str | os.PathLike) else list(spec)
    names = [os.fspath(name) if isinstance(name, str | os.PathLike) else name for name in each]
    if not names or any(not isinstance(name, str) or not name for name in names):
        raise ValueError(f"the source must be a path, '-' or an address, or several paths, got {spec!r}")
    return [local_path(name) for name in names]


def columns_of(spec: Spec | Sequence[Spec], time: str | None = None) -> tuple[str, ...]:
    """List the signals that a source has: all columns or keys that hold numbers, except the time.

    Parameters
    ----------
    spec : str, path, or a sequence of them
        As for `open_source`. If there are several files, only the first is read, and at most 4,096 rows of a text. A column
        counts if all its cells in these rows are numbers or missing, and at least one is a number.
    time : str, optional
        The column or key with the times.

    Returns
    -------
    tuple of str
        The names, in the order of the source.

    Raises
    ------
    ValueError
        If the source is live and says nothing before its first sample, or if it has no such column.
    """
    names = _specs(spec)
    name = not_empty(_files(names))[0] if is_several(spec) else names[0]
    scheme = _scheme(name)
    if is_live(name) or (scheme and SCHEMES.get(scheme) is not Arm):
        raise ValueError(
            f"all signals can be listed for files and the arm, got {shown_address(name)}; name them: --signals a,b"
        )
    if scheme:
        return Arm.names
    found = parquet_columns(name) if _is_parquet(name) else text_columns(name, time)
    signals = tuple(each for each in found if each != time)
    if not signals:
        raise ValueError(
            f"{name} has no column of numbers{(time and f' beside {time}') or ''}; name the signals: --signals a,b"
        )
    return signals


def is_several(spec: Spec | Sequence[Spec]) -> bool:
    """Whether a source is several files.

    Parameters
    ----------
    spec : str, path, or a sequence of them
        As for `open_source`.

    Returns
    -------
    bool
        True for more than one name, and for a pattern such as `logs/*.csv`.
    """
    names = _specs(spec)
    return len(names) > 1 or is_pattern(names[0])


def shown_source(spec: Spec | Sequence[Spec]) -> str:
    """A source as it may be shown: without user and password, and not too many names.

    Parameters
    ----------
    spec : str, path, or a sequence of them
        As for `open_source`.

    Returns
    -------
    str
        The names.
    """
    return listed(map(shown_address, _specs(spec)), most=FILES_NAMED)


def is_live(spec: Spec | Sequence[Spec]) -> bool:
    """Whether samples come when they are sent.

    Parameters
    ----------
    spec : str, path, or a sequence of them
        As for `open_source`.

    Returns
    -------
    bool
        True for a pipe and for addresses of sources that are not replayable.
    """
    if is_several(spec):
        return False
    (name,) = _specs(spec)
    piped = os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name)
    scheme = _scheme(name)
    return name == "-" or piped or (scheme in SCHEMES and not SCHEMES[scheme].replayable)


def has_own_times(spec: Spec | Sequence[Spec]) -> bool:
    """Whether samples bring times that nobody need name.

    Parameters
    ----------
    spec : str, path, or a sequence of them
        As for `open_source`.

    Returns
    -------
    bool
        True for LSL and the arm.
    """
    if is_several(spec):
        return False
    scheme = _scheme(_specs(spec)[0])
    return scheme in SCHEMES and SCHEMES[scheme].own_times


def _is_parquet(name: str) -> bool:
    return name.lower().endswith((".parquet", ".pq"))


def _scheme(name: str) -> str:
    """The scheme of an address, "" for a path. A bare `arm` is an address too."""
    if LIKE_MQTT.match(name) and not os.path.exists(name):
        return "mqtt"  # also without the colon or the slashes, so that no error shows a password in the name of a file
    return "arm" if name == "arm" else scheme_of(name)
