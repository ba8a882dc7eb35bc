"""Files that appear whole or not at all, and are read without running anything that is in them."""

from __future__ import annotations

import errno
import fcntl
import glob
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

FORMAT = "trueonline learner"
VERSION = 3  # 2: a memory's header held the learner's place too
# What reading an archive may end in where some of its bytes are others (a RuntimeError is one that seems to be encrypted).
DAMAGED = (
    *(OSError, ValueError, KeyError, EOFError, AttributeError, TypeError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
)


def write_whole(path: str | os.PathLike, write: Callable[[IO[bytes]], Any]) -> None:
    """Write beside the place, flush, and rename: a crash leaves the old file or the new one."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such folder", str(target.parent))
    handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, target)
    except OSError as error:
        Path(beside).unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(target)) from None
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class Lock:
    """Keeps other processes from writing a file while this one does: they get a ValueError. kill -9 releases it."""

    def __init__(self, path: str | os.PathLike) -> None:
        target = Path(path)
        self._place = target.with_name(f".{target.name}.lock")
        while True:
            self._file = open(self._place, "wb")  # noqa: SIM115  (open for as long as this is held)
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._file.close()
                raise ValueError(f"another run is writing {path}; stop it first, or name another file") from None
            if self._place.exists() and os.path.samestat(os.fstat(self._file.fileno()), os.stat(self._place)):
                return
            self._file.close()  # its holder removed it between the opening and the lock

    def release(self) -> None:
        self._place.unlink(missing_ok=True)
        self._file.close()


def sweep_up(path: str | os.PathLike) -> None:
    """Remove what writers of this file left beside it when they were killed. For a file that has one writer at a time."""
    target = Path(path)
    for beside in target.parent.glob(f".{glob.escape(target.name)}.????????.part"):
        beside.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_learner(path: str | os.PathLike, kind: str, settings: dict, arrays: dict[str, np.ndarray]) -> None:
    about = json.dumps({"format": FORMAT, "version": VERSION, "class": kind, "settings": settings})
    write_whole(path, lambda file: np.savez(file, about=np.array(about), **arrays))  # type: ignore[arg-type]


def read_learner(path: str | os.PathLike) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    """The class's name, the settings and the arrays of a saved learner; ValueError when the file is not one."""
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(str(arrays.pop("about")))
    except FileNotFoundError:
        raise
    except DAMAGED as error:
        why = (
            "no archive" if "pickle" in str(error) else f"{type(error).__name__}: {error}"
        )  # NumPy would advise to unpickle
        raise ValueError(f"{path} is not a saved learner, or is damaged ({why})") from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ValueError(f"{path} is not a saved learner")
    if not isinstance(about.get("class"), str) or not isinstance(about.get("settings"), dict):
        raise ValueError(f"{path} is damaged: it does not say what it holds")
    if about.get("version") != VERSION:
        raise ValueError(
            f"{path} has version {about.get('version')} of the format, this package reads version {VERSION}; "
            "install the trueonline that wrote it"
        )
    return about["class"], about["settings"], arrays
