"""An interpreter in which this package finds only what Windows has: `python -m tests.without_posix FOLDER WORK …` does works of
`tests/test_platforms.py` there, and prints each result behind what the work prints, as JSON in a line of its own.

- Modules of this package cannot import what Windows lacks. Their `os`, `signal`, `select`, `socket` and `time` have only what it
  has, and they cannot open a folder. Other libraries keep all of this, because they were built for the system on which this runs.
- Nobody renames or removes a file that is open in this process, and nobody gives a file a name that Windows refuses.
- A text that is read or written without a named encoding is an error in this package.

Processes that multiprocessing spawns import this module again, so it is the same there.
"""

import builtins
import json
import os
import re
import sys
import warnings
from pathlib import Path
from types import ModuleType

MODULES = re.compile(
    r"crypt|curses|fcntl|grp|nis|posix|pty|pwd|readline|resource|spwd|syslog|termios|tty|_posixsubprocess"
)
LACKING = {  # patterns of names
    "os": r"""(get|set)(e|re|res)?(uid|gid) | (get|set)(groups|pgid|pgrp|sid|priority|loadavg) | initgroups | fork(pty)?
        | register_at_fork | wait | wait(id|3|4) | W[A-Z]{3,} | killpg | nice | sched_\w+ | [fl]?chown | [fl]chmod | chroot | fchdir
        | p?(read|write)v | pread | pwrite | sync | fdatasync | posix_\w+ | mkfifo | mknod | major | minor | makedev | f?statvfs
        | confstr | f?pathconf | sysconf | ctermid | uname | sendfile | openpty | ttyname | tc[gs]etpgrp | lockf | pipe2
        | \w+xattr | memfd_create | eventfd\w* | splice | copy_file_range | [gs]et_blocking | environb | getenvb
        | O_(ACCMODE|ASYNC|CLOEXEC|DIRECT|DIRECTORY|DSYNC|LARGEFILE|NDELAY|NOATIME|NOCTTY|NOFOLLOW|NONBLOCK|PATH|R?SYNC|TMPFILE)""",
    "signal": r"""(?!SIG(ABRT|FPE|ILL|INT|SEGV|TERM|_DFL|_IGN)$)SIG[A-Z_0-9]+ | alarm | pause | [gs]etitimer | pthread_\w+
        | sigpending | sigwait(info)? | sigtimedwait | siginterrupt""",
    "select": r"e?poll | kqueue | E?POLL\w*",
    "socket": r"AF_UNIX | SO_REUSEPORT | TCP_USER_TIMEOUT | send_fds | recv_fds",
    "time": r"tzset | clock_\w+ | CLOCK_\w+ | pthread_\w+",
}
REFUSED = re.compile(r'[<>:"|?*\x00-\x1f]|[. ]$')


def seen_from_windows(module: ModuleType) -> ModuleType:
    """A module without what Windows lacks."""
    lacking = re.compile(LACKING[module.__name__], re.VERBOSE)
    seen = ModuleType(module.__name__)

    def look_up(name: str) -> object:
        if lacking.fullmatch(name):
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r} on Windows")
        return open_no_folder if (module, name) == (os, "open") else getattr(module, name)

    seen.__getattr__ = look_up
    return seen


def open_no_folder(path, *arguments, **options):
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", os.fspath(path))
    return os.open(path, *arguments, **options)


def windows_import(name, globals=None, locals=None, fromlist=(), level=0):
    """`__import__`, as modules of this package see it."""
    if level == 0 and (globals or {}).get("__name__", "").partition(".")[0] == "trueonline":
        if MODULES.fullmatch(name.partition(".")[0]):
            raise ModuleNotFoundError(f"No module named {name!r} on Windows", name=name)
        if name in SEEN:
            return SEEN[name]
    return real_import(name, globals, locals, fromlist, level)


def refuse(event, arguments):
    """Raise the error of Windows if a file is renamed or removed while it is open, or gets a name that Windows does not know."""
    if event == "os.rename":
        places, new = arguments[:2], arguments[1:2]
    elif event in ("os.remove", "os.rmdir") and arguments[1] == -1:
        places, new = arguments[:1], ()
    elif event == "open" and isinstance(arguments[0], str | os.PathLike) and arguments[2] & os.O_CREAT:
        places, new = (), arguments[:1]
    else:
        return
    for place in places:
        path = os.path.realpath(os.fsdecode(place))
        if any(each == path or each.startswith(path + os.sep) for each in open_files()):
            raise PermissionError(
                13, "The process cannot access the file because it is being used by another process", path
            )
    for name in (os.path.basename(os.fsdecode(place)) for place in new):
        if REFUSED.search(name):
            raise OSError(22, "The filename, directory name, or volume label syntax is incorrect", name)


def open_files() -> list[str]:
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:  # the folder itself
            continue
    return found


real_import = builtins.__import__
SEEN = {name: seen_from_windows(real_import(name)) for name in LACKING}

if __name__ in (
    "__main__",
    "__mp_main__",
):  # here, and in the processes that are spawned here: never where tests are collected
    builtins.__import__ = windows_import
    sys.addaudithook(refuse)
    warnings.filterwarnings("error", category=EncodingWarning, module="trueonline")

if __name__ == "__main__":
    from tests import test_platforms

    for work in sys.argv[2:]:
        result = test_platforms.here(getattr(test_platforms, work), Path(sys.argv[1]) / work)
        print(f"\n{test_platforms.RESULT}{json.dumps(result)}", flush=True)
