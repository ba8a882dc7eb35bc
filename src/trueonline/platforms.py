"""What differs between operating systems. No other module of this package asks where it runs.

The questions are about features, such as owners of files, not about the name of a system. If a feature is missing, a function
does the nearest thing, and its docstring says what that is.
"""

from __future__ import annotations

import errno
import io
import os
import select
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, Queue
from typing import IO

# Whether a file has an owner, and bits that say what others may do. Windows has lists of rights, which Python does not read.
HAS_OWNERS = hasattr(os, "geteuid")
# Windows waits for 63 things at most, and each child process has two: its pipe and its end.
MAX_CHILDREN = sys.maxsize if hasattr(select, "poll") else 30
PAUSES = (0.01, 0.03, 0.1, 0.3, 0.6)  # seconds between attempts to rename
FIRST_FATAL_CODE = 0xC0000000  # Windows ends a process with such a code if, for example, it used memory of others


# --- Files and folders ----------------------------------------------------------------------------


def rename_over(source: Path, target: Path) -> None:
    """Give a file the name of another one, which it replaces.

    Windows does not rename a file that is open anywhere. A virus scanner opens new files for a moment, so it is tried for a second.
    """
    for pause in () if HAS_OWNERS else PAUSES:
        try:
            os.replace(source, target)
            return
        except PermissionError:
            time.sleep(pause)
    os.replace(source, target)


def sync_folder(folder: Path) -> None:
    """Make new names in a folder survive a crash. Windows opens no folder, and has a journal for names."""
    if HAS_OWNERS:
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def narrow_rights(file: IO[bytes], target: Path) -> None:
    """Give an open file no more rights than another file has. On Windows a file has the rights that its folder gives it."""
    if HAS_OWNERS:
        os.fchmod(file.fileno(), os.fstat(file.fileno()).st_mode & target.stat().st_mode & 0o777)


def user_number() -> int:
    """A number that tells this user's temporary files from those of others. On Windows each user has a folder for them."""
    return os.getuid() if HAS_OWNERS else 0


# --- Folders that nobody else can change ----------------------------------------------------------
#
# What lies in such a folder may be run. So neither the folder nor one above it may be another user's, or open to others. Each is
# opened inside the one above it and looked at while it is open, so nobody can exchange a folder after it was checked. On Windows,
# where Python reads no rights, these are the folders in the user's home.


def make_own(folder: Path) -> None:
    """Make a folder, or take the one that is there. OSError if somebody else could change it, or if it cannot be written."""
    with _opened(folder) as at:
        if not (os.access(folder, os.W_OK) if at is None else os.access(".", os.W_OK, dir_fd=at)):
            raise PermissionError(errno.EACCES, "it cannot be written", str(folder))


def read_own(folder: Path, name: str) -> bytes:
    """The content of a file in a folder of `make_own`. OSError if there is none, or if somebody else could change it."""
    with _opened(folder) as at:
        if at is None:
            return (folder / name).read_bytes()
        with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=at), "rb") as file:
            _check_owner(os.fstat(file.fileno()), folder / name)
            return file.read()


def write_own(folder: Path, name: str, content: bytes) -> None:
    """Write a file to a folder of `make_own`: beside its place, and then renamed. OSError if that fails."""
    beside = f"{name}.{os.getpid()}-{threading.get_ident()}.part"
    with _opened(folder) as at:
        if at is None:
            (folder / beside).write_bytes(content)
            return rename_over(folder / beside, folder / name)
        try:
            with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=at), "wb") as file:
                file.write(content)
            os.replace(beside, name, src_dir_fd=at, dst_dir_fd=at)
        except OSError:
            with suppress(OSError):
                os.unlink(beside, dir_fd=at)
            raise


@contextmanager
def _opened(folder: Path) -> Iterator[int | None]:
    """Open a folder that nobody else can change. None on Windows, which opens no folders."""
    path = Path(os.path.realpath(folder.parent)) / folder.name
    if not HAS_OWNERS:
        path.mkdir(parents=True, exist_ok=True)
        if not path.resolve().is_relative_to(Path.home().resolve()):
            raise PermissionError(errno.EPERM, "it is outside the user's home", str(folder))
        yield None
        return
    flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW
    at = os.open(path.anchor, flags)
    try:
        for part in path.parts[1:]:
            _check_owner(os.fstat(at), folder, above=True)
            try:
                inner = os.open(part, flags, dir_fd=at)
            except FileNotFoundError:
                with suppress(FileExistsError):  # another process was faster
                    os.mkdir(part, 0o700, dir_fd=at)
                inner = os.open(part, flags, dir_fd=at)
            os.close(at)
            at = inner
        _check_owner(os.fstat(at), folder)
        yield at
    finally:
        os.close(at)


def _check_owner(found: os.stat_result, path: Path, above: bool = False) -> None:
    """Check that nobody else can change what was opened. A folder above may be root's, who lets others write to a sticky one."""
    closed = not found.st_mode & 0o022 or (above and found.st_mode & stat.S_ISVTX and found.st_uid == 0)
    if not closed or found.st_uid not in ((0, os.geteuid()) if above else (os.geteuid(),)):
        raise PermissionError(errno.EPERM, "somebody else could change it", str(path))


# --- Bytes as they arrive -------------------------------------------------------------------------


def incoming(number: int, close: Callable[[], None]) -> Polled | Fetched:
    """The bytes that arrive at a file descriptor. Windows cannot say whether a pipe has some, so a thread waits for them.

    `read` returns at most `size` bytes that have arrived, none at the end, and None if nothing arrives within some seconds.
    `close` closes the descriptor, as soon as nobody waits for it.
    """
    return Polled(number, close) if hasattr(select, "poll") else Fetched(number, close)


class Polled:
    """Asks the system whether there is something to read."""

    def __init__(self, number: int, close: Callable[[], None]) -> None:
        self._number, self.close = number, close
        self._ready = select.poll()
        self._ready.register(number, select.POLLIN)

    def read(self, size: int, seconds: float) -> bytes | None:
        if not self._ready.poll(1000.0 * seconds):
            return None
        try:
            return os.read(self._number, size)
        except BlockingIOError:
            return None


class Fetched:
    """Reads in a thread, two pieces ahead at most. A thread that is waiting when it shall end closes the descriptor later."""

    def __init__(self, number: int, close: Callable[[], None]) -> None:
        self._number, self._close = number, close
        self._pieces: Queue[bytes | OSError] = Queue(1)
        self._lock = threading.Lock()
        self._begun = self._closed = False
        self._idle = True  # whether the thread does not use the descriptor

    def read(self, size: int, seconds: float) -> bytes | None:
        if not self._begun:
            self._begun, self._idle = True, False
            threading.Thread(target=self._fetch, args=(size,), name="trueonline-pipe", daemon=True).start()
        try:
            piece = self._pieces.get(timeout=max(seconds, 0.0))
        except Empty:
            return None
        if isinstance(piece, OSError):
            raise piece
        return piece

    def _fetch(self, size: int) -> None:
        try:
            piece = None
            while not self._closed and piece != b"":
                piece = os.read(self._number, size)
                self._pieces.put(piece)
        except OSError as error:
            self._pieces.put(error)
        with self._lock:
            self._idle = True
            if self._closed:
                self._close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._idle:
                self._close()
        with suppress(Empty):  # the thread may wait for room
            while True:
                self._pieces.get_nowait()


# --- Processes and signals ------------------------------------------------------------------------


@contextmanager
def ctrl_c_postponed() -> Iterator[None]:
    """Let Ctrl-C, which reaches every process of a terminal, wait until the block ends, and so until all children are known.

    A child that starts meanwhile inherits the wait. On Windows it does not, and must ignore Ctrl-C by itself.
    """
    if hasattr(signal, "pthread_sigmask"):
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()  # otherwise the first child starts it, which ends the wait
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    elif threading.current_thread() is threading.main_thread():
        pressed = threading.Event()
        handler = signal.signal(signal.SIGINT, lambda number, frame: pressed.set())
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, handler)
            if pressed.is_set():
                signal.raise_signal(signal.SIGINT)
    else:  # Python tells only the main thread of Ctrl-C
        yield


def was_killed(code: int) -> bool:
    """Whether a process with this exit code was ended from outside, or crashed.

    >>> [was_killed(code) for code in (-9, 0xC0000005, 0, 1)]
    [True, True, False, False]
    """
    return code < 0 or code >= FIRST_FATAL_CODE


def ending_in_words(code: int) -> str:
    """The signal or status that ended a process that was killed.

    >>> ending_in_words(-9), ending_in_words(0xC0000005)
    ('Killed', 'status 0xC0000005')
    """
    return f"status 0x{code:X}" if code >= 0 else signal.strsignal(-code) or "unknown signal"


# --- Sockets --------------------------------------------------------------------------------------


def claim_port(listener: socket.socket) -> None:
    """Let a socket bind to a port right after another one has left it, but never beside another one.

    The option for that lets two programs share a port on Windows, which has another option against it.
    """
    exclusive: int | None = getattr(socket, "SO_EXCLUSIVEADDRUSE", None)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR if exclusive is None else exclusive, 1)


def limit_silence(listener: socket.socket, seconds: float) -> None:
    """Close connections that accept nothing for so long. Only Linux can."""
    option: int | None = getattr(socket, "TCP_USER_TIMEOUT", None)
    if option is not None:
        listener.setsockopt(socket.IPPROTO_TCP, option, int(1000 * seconds))


# --- Standard output ------------------------------------------------------------------------------


def is_broken_pipe(error: Exception) -> bool:
    """Whether an error says that nobody reads a pipe any more. Windows calls that an invalid argument."""
    invalid = isinstance(error, OSError) and error.errno == errno.EINVAL and error.filename is None
    return isinstance(error, BrokenPipeError) or (invalid and not HAS_OWNERS)


def print_any_character() -> None:
    """Let standard output and standard error take every character, such as λ, which the usual encoding of Windows lacks.

    A terminal with such an encoding shows a question mark. A file or a pipe gets UTF-8, as all files of this package are.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8", errors=stream.errors, newline="\n")
