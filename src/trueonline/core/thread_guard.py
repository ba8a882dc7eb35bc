"""One call at a time: a guard for objects that change when they are called, so that threads may share them.

A call waits until the calls of other threads have ended. A call from within a call of the same thread, such as that of a signal
handler or a schedule, does not wait.

A lock at every call would take a fifth of an `update`. So a call only marks that its thread is in the object. If it finds the mark
of another thread, it takes its own mark back and joins the queue, which is a lock. Of two threads that set their marks at the same
time, at least one sees the mark of the other. The head of the queue has a mark too, which says that it still waits.

Two calls that wait for each other would wait for ever: two learners whose schedules call each other, in two threads. A waiting
call looks for such a circle, and raises an error. A process that was forked has no other threads, but their marks. An object that
they were changing at that time is refused.

`MemoryLearner.update` and `predict` do without a mark. They look for marks, and then call a kernel that keeps Python's lock
(`specialise(…, undivided=True)`). Python gives other threads a turn only after calls, at jumps backwards and where functions begin,
so none has a turn between the look and the end of the kernel.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import wraps
from threading import RLock, get_ident
from typing import Any, TypeVar, cast

PAUSES = 1e-5, 1e-3  # seconds between two looks whether the call of another thread has ended: at first, and at most
WAITING: dict[int, dict[int, bool]] = {}  # thread → the users of the object that it waits for

Method = TypeVar("Method", bound=Callable[..., Any])


class ThreadGuarded:
    """An object with a guard. Its methods are `guarded` one by one."""

    _users: dict[int, bool]  # the threads in a call, and the head of the queue, which has False while it waits
    _queue: Any
    _process: int  # where the users are threads of

    def __new__(cls, *_: Any, **__: Any) -> Any:
        made = super().__new__(cls)
        made._users, made._queue = {}, RLock()  # a signal handler may come to a queue that its thread holds
        made._process = os.getpid()
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Protocols below 2 would not call `__new__`."""
        return super().__reduce_ex__(max(2, protocol))

    def __getstate__(self) -> dict[str, Any]:
        """All but the guard: a copy gets its own."""
        return {name: value for name, value in vars(self).items() if name not in ("_users", "_queue", "_process")}


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
        if self._process != os.getpid():
            _enter_child(self, me)
        before, queue = WAITING.get(me), self._queue
        WAITING[me] = users
        try:
            while not queue.acquire(timeout=PAUSES[1]):
                _refuse_circle(self, me)
            nested = me in users  # a signal handler, while its thread waits here
            users[me] = False  # calls that begin now go to the queue
            try:
                pause = PAUSES[0]
                while len(users) > 1:
                    time.sleep(pause)
                    pause = min(2.0 * pause, PAUSES[1])
                    _refuse_circle(self, me)
                users[me] = True
                WAITING.pop(me, None)
                return method(self, *arguments, **named)
            finally:
                if nested:
                    users[me] = False
                else:
                    users.pop(me, None)
                queue.release()
        finally:
            WAITING.pop(me, None)
            if before is not None:
                WAITING[me] = before

    return cast(Method, alone)


def _refuse_circle(guarded_object: ThreadGuarded, me: int) -> None:
    """RuntimeError if a call that this thread waits for waits for this thread, directly or through others."""
    ahead, seen = [guarded_object._users], set()
    while ahead:
        users = ahead.pop()
        seen.add(id(users))
        for thread, inside in list(users.items()):
            if inside and thread == me:
                raise RuntimeError(
                    f"a call of this {type(guarded_object).__name__} would wait for ever: another thread is in it, and waits for "
                    "an object that this thread is in. Objects that call each other, such as two learners whose schedules do, "
                    "belong in one thread"
                )
            awaited = WAITING.get(thread)
            if (
                awaited is not None and users.get(thread) and id(awaited) not in seen
            ):  # it is still in the call, and waits
                ahead.append(awaited)


def _enter_child(guarded_object: ThreadGuarded, me: int) -> None:
    """Forget the threads of the parent process. RuntimeError if one of them was changing the object."""
    users = guarded_object._users
    if any(inside for thread, inside in users.items() if thread != me):
        raise RuntimeError(
            f"the process was forked while another thread was in a call of this {type(guarded_object).__name__}, which may be half "
            'changed: fork when no call runs, or start processes by the method "spawn"'
        )
    for thread in [each for each in users if each != me]:
        del users[thread]
    WAITING.clear()
    guarded_object._queue, guarded_object._process = RLock(), os.getpid()
