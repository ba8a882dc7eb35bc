"""Files of CSV or JSON lines, plain or gzipped, which may grow while they are read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trueonline.streams.sources.clock import Clock
from trueonline.streams.sources.labels import Labels
from trueonline.streams.sources.positions import checked_skipped, whole_numbers
from trueonline.streams.sources.replayable_file import FileReader, ReplayableFile
from trueonline.streams.sources.rotation import earlier_parts
from trueonline.streams.sources.text import Text
from trueonline.streams.sources.text_reader import TextReader


class TextFile(ReplayableFile):
    """A file of CSV or JSON lines, plain or gzipped.

    A followed file is a log that may be rotated. If another file takes its name, the old one is read to its end, and then the
    new one from its beginning, once there is something in it. That is counted as `replaced`. If the file is emptied, what was
    not read yet comes from the copy of it that logrotate's `copytruncate` makes (see `rotation`), and then the file is read from
    its beginning. Without such a copy, that is counted as `truncated`.

    Every look compares up to 4 KiB before the place of reading with what was read there. So a file that was emptied and has grown
    again between two looks is noticed, unless that is the same as before. A writer that continues at its old place after the file
    was emptied leaves zeros before that place. The file is then read from that place on, and counted as `truncated`.

    A file that is not followed and changes or becomes shorter while it is read, or whose compressed part breaks off, ends
    with its last whole line and is counted as `truncated`.

    A position in a followed file is looked for in the rotated parts of the log too. If it is nowhere, reading begins with the
    file that is there, and `lost` says what is missing.

    A position holds a hash of up to 4 KiB before it. `seek` refuses a file that has something else there. It also reads the
    samples that the position leaves out after that place, and refuses others.

    Parameters
    ----------
    path : str or path
        The file.
    signals : sequence of str
        The columns, or the keys of the objects, to read.
    time : str, optional
        The column with the times.
    rate : float, optional
        Samples per second, to make times from if there is no such column.
    time_unit : {"s", "ms", "us", "ns"}
        The unit of the times.
    time_format : str, optional
        The form of the times, as `datetime.strptime` knows it, such as "%d.%m.%Y %H:%M".
    labels : Labels, optional
        The codes of the last of the signals, which is a column of names.
    follow : bool
        Wait for more at the end of the file, and take whole lines only.
    whole_lines : bool
        Leave a last line without a line break. A later reading that resumes from this one's position finds it whole.
    first_row : int
        The number of the first row, for times from `rate`, if other files come before this one.
    """

    kind = "text"

    def __init__(
        self,
        path: str | os.PathLike,
        signals: Sequence[str],
        *,
        time: str | None = None,
        rate: float | None = None,
        time_unit: str = "s",
        time_format: str | None = None,
        labels: Labels | None = None,
        follow: bool = False,
        whole_lines: bool = False,
        first_row: int = 0,
    ) -> None:
        self.follow, self.whole_lines = follow, whole_lines
        self._parts: Sequence[Path] = ()  # of a rotated log, to be read before the file
        super().__init__(path, signals, Clock(time, rate, time_unit, time_format, first_row, labels))

    def seek(self, position: dict[str, Any]) -> None:
        if not self.follow:
            super().seek(position)
            return
        self._check(position)
        parts = earlier_parts(self.path)
        ways = [parts[at:] for at in range(len(parts), -1, -1)]  # the file alone, then with more and more parts before it
        ways.sort(key=lambda way: _inode((way or [self.path])[0]) != position.get("inode"))
        for way in ways:
            try:
                self._seek_from(way, position)
            except ValueError:  # it is another file
                continue
            return
        replaced = {"offset": 0, "cut": False, "skip": 0, "replaced": position["replaced"] + 1}
        self._seek_from([], {**position, **replaced})
        self.lost = (
            f"what was written to {self.path} after byte {position['offset']:,}, before it was replaced, because no rotated part "
            f"of it is there. The new {self.path} is read from its beginning"
        )

    def _seek_from(self, parts: Sequence[Path], position: dict[str, Any]) -> None:
        self._parts = parts
        try:
            super().seek(position)
        finally:
            self._parts = ()

    def _check(self, position: dict[str, Any]) -> None:
        """ValueError if a position is damaged."""
        numbers = ("offset", "row", "malformed", "unterminated", "truncated", "replaced", "skip")
        whole_numbers(position, self.kind, *numbers)
        if type(position.get("cut")) is not bool:
            raise ValueError(f"the position is damaged: cut must be true or false, got {position.get('cut')!r:.80}")
        if position["skip"]:
            checked_skipped(position, self.signals)

    def _opened(self, position: dict[str, Any] | None) -> FileReader:
        if position is not None:
            self._check(position)
        text = Text(str(self.path), self.signals, self._clock)
        reader = TextReader(self.path, text, self.follow, self.whole_lines, self._parts)
        try:
            if position is not None:
                reader.resume(position)
            elif not self.follow:
                reader.read_first_line()
        except BaseException:
            reader.close()
            raise
        return reader


def _inode(path: Path) -> int | None:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None
