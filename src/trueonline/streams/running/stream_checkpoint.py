"""Checkpoints of a run over a stream: reading one, and checking that it belongs to this run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trueonline.files import read_learner
from trueonline.streams.sources import shown_address, without_credentials
from trueonline.streams.sources.file_chain import MAX_NAMED_FILES
from trueonline.words import listed

KIND = "Predictor"
PARTS: dict[str, Any] = {
    "setup": dict,
    "source": dict,
    "position": dict,
    "cleaner": dict,
    "rows": int,
    "counted": dict,
    "times": dict | None,  # their style; None until the first sample has come
    "written": float,
    "ended": bool,  # whether nothing of the source is left to be read
    "earlier": dict,  # samples and counts of the sources before this one
    "alerts": dict,
    "not_published": int,
}


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The description in a checkpoint, and its arrays."""

    about: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read a checkpoint. ValueError if it is damaged, or something else."""
        try:
            kind, about, arrays = read_learner(path)
            if kind != KIND:
                raise ValueError(f"{path} holds a {kind}, not a checkpoint of predictions")
            wrong = [name for name, kind in PARTS.items() if not isinstance(about.get(name), kind)]
            if wrong:
                raise ValueError(f"{path} is damaged: its {', '.join(wrong)} cannot be used")
        except ValueError as error:
            raise ValueError(f"{error}; name another --checkpoint, or start from scratch with --fresh") from None
        return cls(about, arrays)

    def resumes(self, path: str | os.PathLike, setup: dict[str, Any], source: dict[str, Any]) -> bool:
        """Whether a run resumes in the same source. If not, learning continues with another source.

        The same files with more files after them are the same source. ValueError if the settings of the predictions differ, or
        if the source is another one and the old one was not read to its end.
        """
        described = dict(self.about["source"])
        before, now = _names(described.pop("source", "")), _names(source["source"])
        same = now[: len(before)] == before
        differing = _differing(self.about["setup"], setup)
        if same:
            differing += _differing(described, {name: value for name, value in source.items() if name != "source"})
        elif not differing and self.about["ended"]:
            return False
        elif not differing:
            raise ValueError(
                f"the checkpoint {path} is of a run over {_shown_source(before)}, which was not read to its end. Give that source "
                f"again to finish it (without --follow, if it had that), and then {_shown_source(now)} to continue from what was "
                "learned; or --fresh to start from scratch, or another --checkpoint"
            )
        else:
            differing.append(f"source was {_shown_source(before)!r:.60} and is {_shown_source(now)!r:.60}")
        if differing:
            raise ValueError(
                f"the checkpoint {path} is of another run: {'; '.join(differing)}. Give the same options as before to resume, "
                "--fresh to start from scratch, or another --checkpoint"
            )
        return True

    @property
    def source(self) -> str:
        """The source, as it may be shown."""
        return _shown_source(_names(self.about["source"].get("source", "")))


def _shown_source(names: list[str]) -> str:
    return listed(map(shown_address, names), most=MAX_NAMED_FILES)


def checked_earlier(earlier: dict[str, Any], samples: int) -> dict[str, Any]:
    """Samples and counts of earlier sources. ValueError if there are more of them than `samples` in all."""
    before, counters = earlier.get("samples"), earlier.get("counters")
    counts = [*counters.values()] if isinstance(counters, dict) else [None]
    if type(before) is not int or not 0 <= before <= samples or any(type(count) is not int for count in counts):
        raise ValueError(f"the checkpoint is damaged: its counts of earlier sources are impossible, {str(earlier)[:80]}")
    return earlier


def _names(source: Any) -> list[str]:
    """The names of a source, one or several."""
    names = source if isinstance(source, list | tuple) else [source]
    return [without_credentials(str(name)) for name in names]  # earlier versions kept them


def _differing(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    return [
        f"{name} was {_shown(before.get(name))!r:.60} and is {_shown(now[name])!r:.60}"
        for name in now
        if before.get(name) != now[name]
    ]


def _shown(value: Any) -> Any:
    return shown_address(value) if isinstance(value, str) else value


def check_different_files(paths: Iterable[tuple[str, str | os.PathLike | None]]) -> None:
    """ValueError if two of these paths are one file. Each comes with the name that a message gives it."""
    places: dict[Path, str] = {}
    for name, path in paths:
        place = None if path is None else Path(path).resolve()
        if place in places:
            raise ValueError(f"{places[place]} and {name} are one file, {place}; give them different names")
        if place is not None:
            places[place] = name
