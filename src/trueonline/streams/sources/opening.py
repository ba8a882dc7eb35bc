"""From the name of a source to an open source."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trueonline.streams.sources.addresses import LIKE_MQTT, local_path, scheme_of, shown_address, without_credentials
from trueonline.streams.sources.file_chain import MAX_NAMED_FILES, Chain, files_named, is_pattern, not_empty
from trueonline.streams.sources.files_together import Together
from trueonline.streams.sources.labels import Labels
from trueonline.streams.sources.lsl import Lsl
from trueonline.streams.sources.mqtt import Mqtt
from trueonline.streams.sources.numeric_columns import parquet_columns, text_columns
from trueonline.streams.sources.pacing import Paced, check_pace
from trueonline.streams.sources.parquet_file import ParquetFile
from trueonline.streams.sources.pipes import Pipe
from trueonline.streams.sources.ring import QUEUE_SAMPLES
from trueonline.streams.sources.sample import Source
from trueonline.streams.sources.simulated import Arm
from trueonline.streams.sources.text_file import TextFile
from trueonline.words import listed

FILE = "file"  # as the column of names: each file is a signal
Spec = str | os.PathLike | Sequence[str | os.PathLike]

# A new kind of address is one more entry.
SCHEMES: dict[str, type[Source]] = {"mqtt": Mqtt, "mqtts": Mqtt, "lsl": Lsl, "arm": Arm}


@dataclass(frozen=True)
class SourceAddress:
    """The name of a source, taken apart.

    Parameters
    ----------
    names : tuple of str
        One name, or the names of several files. An address file:///path is a path here.
    kind : type of Source or None
        The class that reads an address scheme://…, None for files and pipes.
    several : bool
        Whether it stands for several files: by more than one name, a folder, or a pattern such as `logs/*.csv`.
    is_pipe : bool
        Whether it is "-", or the path of a pipe or a device.
    """

    names: tuple[str, ...]
    kind: type[Source] | None = None
    several: bool = False
    is_pipe: bool = False

    @classmethod
    def of(cls, spec: Spec | SourceAddress) -> SourceAddress:
        """Take the name of a source apart.

        Parameters
        ----------
        spec : str, path, a sequence of them, or SourceAddress
            As for `open_source`.

        Returns
        -------
        SourceAddress
            Its parts.

        Raises
        ------
        ValueError
            If there is no such kind of address, or if one of several sources is not a file.
        """
        if isinstance(spec, SourceAddress):
            return spec
        each = [spec] if isinstance(spec, str | os.PathLike) else list(spec)
        names = [os.fspath(name) if isinstance(name, str | os.PathLike) else name for name in each]
        if not names or any(not isinstance(name, str) or not name for name in names):
            raise ValueError(f"the source must be a path, '-' or an address, or several paths, got {spec!r}")
        names = [local_path(name) for name in names]
        addresses = [cls((name,), _kind(name), is_pattern(name) or os.path.isdir(name), _is_pipe(name)) for name in names]
        if len(names) == 1:
            return addresses[0]
        others = [address for address in addresses if address.kind or address.is_pipe]
        if others:
            raise ValueError(f"several sources must all be files, got {others[0].shown}; name it alone")
        return cls(tuple(names), several=True)

    @property
    def is_live(self) -> bool:
        """Whether samples come when they are sent."""
        return self.is_pipe or (self.kind is not None and not self.kind.replayable)

    @property
    def has_own_times(self) -> bool:
        """Whether samples bring times that nobody need name."""
        return self.kind is not None and self.kind.own_times

    @property
    def is_mqtt(self) -> bool:
        """Whether a broker sends the samples."""
        return self.kind is Mqtt

    @property
    def files(self) -> list[str]:
        """The files, in order; none for an address or a pipe. ValueError if a pattern fits none, or one is named twice."""
        return [] if self.kind or self.is_pipe else files_named(self.names)

    @property
    def shown(self) -> str:
        """The names as they may be shown: without user and password, and not too many."""
        return listed(map(shown_address, self.names), most=MAX_NAMED_FILES)

    @property
    def title(self) -> str:
        """The names without their folders."""
        if self.kind is not None:
            return self.shown
        return listed((os.path.basename(os.path.normpath(name)) for name in self.names), most=MAX_NAMED_FILES)

    @property
    def stored(self) -> str | list[str]:
        """The names as they are stored and compared: without user and password."""
        names = [without_credentials(name) for name in self.names]
        return names if len(names) > 1 else names[0]


def _kind(name: str) -> type[Source] | None:
    """The class for an address, None for a path. ValueError if there is no such address."""
    if LIKE_MQTT.match(name) and not os.path.exists(name):
        return Mqtt  # also without the colon or the slashes, so that no error shows a password in the name of a file
    scheme = "arm" if name == "arm" else scheme_of(name)
    if scheme and scheme not in SCHEMES:
        *others, last = (f"{each}://" for each in SCHEMES)
        raise ValueError(f"addresses begin with {', '.join(others)} or {last}, got {shown_address(name)}")
    return SCHEMES[scheme] if scheme else None


def _is_pipe(name: str) -> bool:
    return name == "-" or (os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name))


def open_source(
    spec: Spec | SourceAddress,
    signals: Sequence[str],
    *,
    time: str | None = None,
    rate: float | None = None,
    time_unit: str = "s",
    time_format: str | None = None,
    labels: Labels | None = None,
    follow: bool = False,
    whole_lines: bool = False,
    queue: int = QUEUE_SAMPLES,
    pace: float | Literal["fit"] | None = None,
    mqtt_password_file: str | os.PathLike | None = None,
    mqtt_ca: str | os.PathLike | None = None,
) -> Source:
    """Open the source that a path or an address stands for.

    Parameters
    ----------
    spec : str, path, a sequence of them, or SourceAddress
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
    labels : Labels, optional
        The codes of names, if a column names the signal of each sample. Blocks then have these codes as a last signal. The column
        "file" stands for the names of several files, "topic" for what the wildcards of an MQTT topic stand for.
    follow : bool
        Wait for more at the end of a text file that grows. If there are several files, the last one is followed. If each is a
        signal, all are followed, and new files of a folder or a pattern too.
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
    address = SourceAddress.of(spec)
    clock: dict[str, Any] = {"time": time, "rate": rate, "time_unit": time_unit, "time_format": time_format}
    files = address.files
    by_file = labels is not None and labels.column == FILE and bool(files)
    if labels is not None and (address.kind not in (None, Mqtt)):
        raise ValueError(f"{address.shown} has no column of names: leave --by out")
    if labels is not None and not by_file:
        signals, clock["labels"] = [*signals, labels.column], labels
    if follow and (not files or _is_parquet(files[-1])):
        raise ValueError(f"follow is for text files that grow, got {files[-1] if files else address.shown}; leave it out")
    if pace is not None:
        if address.is_live:
            raise ValueError(
                f"pace is for files and the arm, got {address.shown}, which comes when it is sent; leave it out"
            )
        check_pace(pace)
    if (mqtt_password_file is not None or mqtt_ca is not None) and not address.is_mqtt:
        raise ValueError(f"--mqtt-password-file and --mqtt-ca are for MQTT, got {address.shown}; leave them out")
    (name, *_) = address.names
    source: Source
    if address.is_mqtt:
        source = Mqtt(name, signals, **clock, queue=queue, password_file=mqtt_password_file, ca=mqtt_ca)
    elif address.kind is not None:
        source = address.kind.from_address(name, signals, clock, queue)
    elif address.is_pipe:
        source = Pipe(None if name == "-" else name, signals, **clock, whole_lines=whole_lines)
    elif follow and by_file:
        assert labels is not None
        source = Together(address.names, lambda path: _file(path, signals, clock, follow, whole_lines), labels)
    elif address.several or by_file:

        def opened(path: str, rows: int, last: bool) -> Source:
            """A file of several. It is whole if another one follows it."""
            return _file(path, signals, clock, follow and last, whole_lines and last, rows)

        source = Chain(files, opened, labels if by_file else None)
    else:
        source = _file(name, signals, clock, follow, whole_lines)
    return source if pace is None else Paced(source, pace)


def _file(
    path: str, signals: Sequence[str], clock: dict[str, Any], follow: bool, whole_lines: bool, first_row: int = 0
) -> Source:
    if _is_parquet(path):
        return ParquetFile(path, signals, **clock, first_row=first_row)
    return TextFile(path, signals, **clock, follow=follow, whole_lines=whole_lines, first_row=first_row)


def columns_of(spec: Spec | SourceAddress, time: str | None = None) -> tuple[str, ...]:
    """List the signals that a source has: all columns or keys that hold numbers, except the time.

    Parameters
    ----------
    spec : str, path, a sequence of them, or SourceAddress
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
    address = SourceAddress.of(spec)
    if address.kind is Arm:
        return Arm.names
    if not address.files:
        raise ValueError(
            f"all signals can be listed for files and the arm, got {address.shown}; name them: --signals a,b"
        )
    name = not_empty(address.files)[0]
    found = parquet_columns(name) if _is_parquet(name) else text_columns(name, time)
    signals = tuple(each for each in found if each != time)
    if not signals:
        raise ValueError(
            f"{name} has no column of numbers{(time and f' beside {time}') or ''}; name the signals: --signals a,b"
        )
    return signals


def _is_parquet(name: str) -> bool:
    return name.lower().endswith((".parquet", ".pq"))
