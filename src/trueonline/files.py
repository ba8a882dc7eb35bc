"""Atomic, checksummed files. To read one runs no code in it.

A saved file is a zip archive, which `numpy.load` can open. Its first member, `about.json`, lists the other members with types and
shapes, and has a checksum of everything. A reader allocates nothing before the sizes fit, and returns nothing before the checksum
fits. A *seal* is the checksum inside a small file of another format: that of the file in which the seal itself is zeros.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import math
import os
import re
import secrets
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from filelock import FileLock, Timeout

from trueonline.platforms import narrow_rights, rename_over, sync_folder

FORMAT = "trueonline learner"
VERSION = 4  # 4: a list of members, and a digest; 3: a memory's header holds the memory alone
ABOUT = "about.json"
NUMBERS = re.compile(r"[<>|][biufcU][1-9]\d{0,6}")  # the types that members may have: no object, nothing structured
HEADER = 2**16  # bytes before the numbers of a member, at most
BLOCK = 2**20  # bytes that are read at a time
LOCK_SECONDS = 0.1  # seconds for a lock: its holder may just be removing it
# The errors that a damaged archive may raise when it is read (a RuntimeError, if the archive seems to be encrypted).
DAMAGED = (
    *(OSError, ValueError, KeyError, EOFError, AttributeError, TypeError, RuntimeError, MemoryError, OverflowError),
    *(zipfile.BadZipFile, zlib.error),
)
UNSEALED = b"trueonline seal " + b"0" * 64
SEALED = re.compile(rb"trueonline seal [0-9a-f]{64}")


def write_whole(path: str | os.PathLike, write: Callable[[IO[bytes]], Any]) -> None:
    """Write a file atomically: a crash leaves the old file or the new one, because the new one is flushed and then renamed.

    A new file gets the mode that the umask allows. A file that is replaced keeps a narrower mode.
    """
    write_renamed(path, write)
    sync_folder(Path(path).parent)


def write_renamed(path: str | os.PathLike, write: Callable[[IO[bytes]], Any]) -> None:
    """The same for one of many files. If the machine crashes before `sync_folder` is called, the old file may be back."""
    target = Path(path)
    check_folder(target)
    beside = place_beside(target)
    try:
        with open_beside(beside, target) as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        rename_over(beside, target)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(target)) from None
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def place_beside(target: Path) -> Path:
    """The name of a temporary file that will replace another file. `sweep_up` knows such names."""
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")


def open_beside(beside: Path, target: Path) -> IO[bytes]:
    """Open a temporary file that will replace `target`, with a mode no wider than that of `target`."""
    file = open(beside, "x+b")  # noqa: SIM115  (the caller closes it)
    if target.exists():
        narrow_rights(file, target)
    return file


def check_folder(path: str | os.PathLike) -> None:
    """FileNotFoundError if there is no folder for a file."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such folder", str(folder))


class Lock:
    """Keeps other processes from writing a file while this one does: they get a ValueError. kill -9 releases it."""

    def __init__(self, path: str | os.PathLike) -> None:
        target = Path(path)
        check_folder(target)
        self._place = target.with_name(f".{target.name}.lock")
        if os.path.lexists(self._place) and self._place.lstat().st_size:  # a link has a size too
            raise ValueError(
                f"{self._place} is not a lock of this package: move it away, or name another file than {path}"
            )
        # Without a fallback: a lock that is only a file would stay after kill -9. Any thread may release it.
        self._lock = FileLock(self._place, thread_local=False, fallback_to_soft=False)
        try:
            self._lock.acquire(timeout=LOCK_SECONDS, poll_interval=LOCK_SECONDS / 10)
        except Timeout:
            raise ValueError(f"another run is writing {path}; stop it first, or name another file") from None

    def release(self) -> None:
        with suppress(OSError):  # Windows removes no open file; there it goes with the lock
            self._place.unlink(missing_ok=True)
        self._lock.release()


def sweep_up(path: str | os.PathLike) -> None:
    """Remove the temporary files of writers that were killed. Call it for a file that has one writer at a time."""
    target = Path(path)
    for beside in target.parent.glob(f".{glob.escape(target.name)}.????????.part"):
        beside.unlink(missing_ok=True)


# --- Saved learners, agents, hordes and checkpoints -----------------------------------------------


def write_learner(path: str | os.PathLike, kind: str, settings: dict, arrays: Mapping[str, np.ndarray]) -> None:
    """Write the class's name, the settings and the arrays to one file.

    Arrays are asked for one at a time, and each of them three times. So a mapping may make them when they are asked for.
    """
    members = {name: [(part := np.asarray(array)).dtype.str, list(part.shape)] for name, array in arrays.items()}
    for described in members.values():
        _kind(described)
    about = {"format": FORMAT, "version": VERSION, "class": kind, "settings": settings, "members": members}
    about = json.loads(json.dumps(about))  # as a reader will find it
    about["digest"] = _digest(about, arrays)

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            # Members have no date, so that the same state gives the same bytes.
            archive.writestr(zipfile.ZipInfo(ABOUT), json.dumps(about))
            for name, part in arrays.items():
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asarray(part, order="C"), allow_pickle=False)

    write_whole(path, write)


def read_learner(path: str | os.PathLike) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    """The class's name, the settings and the arrays of a saved file. ValueError if it is not one, or not as it was written."""
    try:
        with open(path, "rb") as raw, zipfile.ZipFile(raw) as archive:
            members = _members(archive, os.fstat(raw.fileno()).st_size)
            about = json.loads(archive.read(ABOUT)) if ABOUT in members else {}
            _check_about(path, about, "about.npy" in members)
            listed = {f"{name}.npy": _kind(described) for name, described in about["members"].items()}
            if {ABOUT, *listed} != members.keys():
                raise ValueError("its members are not those on its list")
            arrays = {name[:-4]: _array(archive, members[name], *kind) for name, kind in listed.items()}
            digest = about.pop("digest", None)
            if digest != _digest(about, arrays):
                raise ValueError("its content has changed since it was written")
    except FileNotFoundError:
        raise
    except RefusalError as refusal:
        raise ValueError(str(refusal)) from None
    except DAMAGED as error:
        raise ValueError(f"{path} is not a saved learner, or is damaged ({_why(error)})") from None
    return about["class"], about["settings"], arrays


def looks_saved(path: str | os.PathLike, kind: str) -> bool:
    """Whether a file begins like a saved file of a class, although it may be damaged."""
    with open(path, "rb") as file:
        begin = file.read(HEADER)
    return begin.startswith(b"PK") and f'"class": {json.dumps(kind)}'.encode() in begin


class RefusalError(ValueError):
    """A refusal that already says all that the user needs."""


def _why(error: BaseException) -> str:
    return str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}".removesuffix(": ")


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """The members by name. ValueError if one is compressed, stands twice, or claims more bytes than the file has."""
    entries = archive.infolist()
    members = {entry.filename: entry for entry in entries}
    plain = all(entry.compress_type == zipfile.ZIP_STORED and entry.file_size == entry.compress_size for entry in entries)
    if len(members) < len(entries) or not plain or sum(entry.file_size for entry in entries) > size:
        raise ValueError("its zip directory is not one that this package writes")
    return members


def _check_about(path: str | os.PathLike, about: Any, old: bool) -> None:
    """ValueError unless this is the description of a saved file of this version."""
    if old:
        about = {"format": FORMAT, "version": f"{VERSION - 1} or lower"}
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise RefusalError(f"{path} is not a saved learner")
    if about.get("version") != VERSION:
        raise RefusalError(
            f"{path} has version {about.get('version')} of the format, this package reads version {VERSION}; "
            "install the trueonline that wrote it"
        )
    kinds = {"class": str, "settings": dict, "members": dict, "digest": str}
    if any(not isinstance(about.get(name), kind) for name, kind in kinds.items()):
        raise RefusalError(f"{path} is damaged: it does not say what it holds")


def _kind(described: Any) -> tuple[np.dtype, tuple[int, ...]]:
    """Type and shape of a member, as the list has them."""
    name, shape = described
    if not NUMBERS.fullmatch(name) or any(type(length) is not int or length < 0 for length in shape):
        raise ValueError(f"a member must hold numbers or text, got the type {name!r} and the shape {shape}")
    return np.dtype(name), tuple(shape)


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """The numbers of a member: they follow NumPy's header, which says what is known already."""
    before = member.file_size - math.prod(shape) * dtype.itemsize
    if not 0 < before <= HEADER:
        raise ValueError(f"{member.filename} does not have the length of its shape")
    array = np.empty(shape, dtype)
    numbers = array.reshape(-1).view(np.uint8).data
    with archive.open(member) as file:
        file.read(before)
        for at in range(0, len(numbers), BLOCK):
            block = file.read(min(BLOCK, len(numbers) - at))
            numbers[at : at + len(block)] = block
        file.read(1)  # the end, where the checksum is compared
    return array


def _digest(about: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 over the description, which has the types and shapes of all arrays, and over their numbers."""
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(about["members"]):
        digest.update(np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def packed(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Arrays as one array of bytes: a description, and the numbers. A file with thousands of members would be slow."""
    parts = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    described = json.dumps([[name, part.dtype.str, list(part.shape)] for name, part in parts.items()]).encode()
    content = b"".join([len(described).to_bytes(8, "little"), described, *(part.tobytes() for part in parts.values())])
    return np.frombuffer(content, np.uint8)


def unpacked(array: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays that `packed` put into one. ValueError if it did not make this one."""
    content, arrays = np.asarray(array, np.uint8).tobytes(), {}
    try:
        at = 8 + int.from_bytes(content[:8], "little")
        for name, *described in json.loads(content[8:at]):
            dtype, shape = _kind(described)
            arrays[name] = np.frombuffer(content, dtype, math.prod(shape), at).reshape(shape).copy()
            at += arrays[name].nbytes
    except (ValueError, TypeError, UnicodeDecodeError) as error:
        raise ValueError(f"it does not hold packed arrays ({_why(error)})") from None
    if at != len(content):
        raise ValueError("it does not hold packed arrays (it is too long)")
    return arrays


# --- Seals ----------------------------------------------------------------------------------------


def seal(content: bytes) -> bytes:
    """The content with its checksum in the place of the last `UNSEALED`."""
    before, _, after = content.rpartition(UNSEALED)
    return before + UNSEALED[:-64] + hashlib.sha256(content).hexdigest().encode() + after


def is_sealed(content: bytes) -> bool:
    """Whether the checksum of content that `seal` returned still fits.

    >>> sealed = seal(b"1, 2, 3; " + UNSEALED)
    >>> is_sealed(sealed), is_sealed(sealed.replace(b"2", b"4", 1))
    (True, False)
    """
    seals = list(SEALED.finditer(content))
    return bool(seals) and content == seal(content[: seals[-1].start()] + UNSEALED + content[seals[-1].end() :])


def write_json(path: str | os.PathLike, value: Any) -> None:
    """Write a value as sealed JSON."""
    content = json.dumps({"value": value, "seal": UNSEALED.decode()}).encode()
    write_whole(path, lambda file: file.write(seal(content)))


def read_json(path: str | os.PathLike) -> Any:
    """The value in a file of `write_json`. None if there is no such file, or if its checksum does not fit."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return None
    return json.loads(content)["value"] if is_sealed(content) else None
