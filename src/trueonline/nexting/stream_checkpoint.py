"""Checkpoints of a run over a stream: reading one, and checking that it belongs to this run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trueonline.files import read_learner
from trueonline.nexting.sources import shown_address, without_credentials

KIND = "Predictor"
PARTS: dict[str, Any] = {"setup": dict, "source": dict, "position": dict, "cleaner": dict, "rows": int, "counted": dict}
PARTS |= {"times": dict | None, "written": float}  # the style of times is None until the first sample has come


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

    def check_same_run(self, path: Path, setup: dict[str, Any], source: dict[str, Any]) -> None:
        """ValueError unless the checkpoint is of the same predictions from the same source."""
        described = dict(self.about["source"])
        described["source"] = without_credentials(str(described.get("source")))  # earlier versions kept them
        for before, now in ((self.about["setup"], setup), (described, source)):
            differing = [name for name in now if before.get(name) != now[name]]
            if differing:
                changes = "; ".join(
                    f"{name} was {_shown(before.get(name))!r:.60} and is {_shown(now[name])!r:.60}" for name in differing
                )
                raise ValueError(
                    f"the checkpoint {path} is of another run: {changes}. Give the same options as before to resume, --fresh to "
                    "start from scratch, or another --checkpoint"
                )


def _shown(value: Any) -> Any:
    return shown_address(value) if isinstance(value, str) else value


def check_different_files(paths: dict[str, str | os.PathLike | None]) -> None:
    """ValueError if two of these paths are one file. The keys name the paths in the message."""
    places = {name: Path(path).resolve() for name, path in paths.items() if path is not None}
    names = list(places)
    for i, name in enumerate(names):
        for other in names[i + 1 :]:
            if places[name] == places[other]:
                raise ValueError(f"{name} and {other} are one file, {places[name]}; give them different names")
