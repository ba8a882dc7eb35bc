"""One call at a time: a guard for objects that change when they are called, so that threads may share them.

A call waits until the calls of other threads have ended. A call from within a call of the same thread, such as that of a signal
handler or a schedule, does not wait.

A lock at every call would take a fifth of an `update`. So a call only marks that its thread is in the object. If it finds the mark
of another thread, it takes its own mark back and joins the queue, which is a lock. Of two threads that set their marks at the same
time, at least one sees the mark of the other. The head of the queue has a mark too, which says that it still waits.
`MemoryLearner.update` has the first half of `guarded` in itself, which spares it a call.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from threading import RLock, get_ident
from typing import Any, TypeVar, cast

PAUSES = 1e-5, 1e-3  # seconds between two looks whether the call of another thread has ended: at first, and at most

Method = TypeVar("Method", bound=Callable[..., Any])


class ThreadGuarded:
    """An object with a guard. Its methods are `guarded` one by one."""

    _users: dict[int, bool]  # the threads in a call, and the head of the queue, which has False while it waits
    _queue: Any

    def __new__(cls, *_: Any, **__: Any) -> Any:
        made = super().__new__(cls)
        made._users, made._queue = {}, RLock()  # a signal handler may come to a queue that its thread holds
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Protocols below 2 would not call `__new__`."""
        return super().__reduce_ex__(max(2, protocol))

    def __getstate__(self) -> dict[str, Any]:
        """All but the guard: a copy gets its own."""
        return {name: value for name, value in vars(self).items() if name not in ("_users", "_queue")}


def guarded(method: Method) -> Method:
    """A method that waits until no other thread is in a call of the object."""

    @wraps(method)
    def alone(self: Any, *arguments: Any, **named: Any) -> Any:
        users, me = self._users, get_ident()
        if not users:
            users[me] = True
            try:
                if len(users) == 1:
                    return method(self, *arguments, **named)
            finally:
                del users[me]
        elif users.get(me):
            return method(self, *arguments, **named)
        with self._queue:
            nested = me in users  # a signal handler, while its thread waits here
            users[me] = False  # calls that begin now go to the queue
            try:
                pause = PAUSES[0]
                while len(users) > 1:
                    time.sleep(pause)
                    pause = min(2.0 * pause, PAUSES[1])
                users[me] = True
                return method(self, *arguments, **named)
            finally:
                if nested:
                    users[me] = False
                else:
                    users.pop(me, None)

    return cast(Method, alone)
