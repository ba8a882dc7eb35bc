"""A queue of results for the store, and the thread pool that writes them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any

import pyarrow as pa

from trueonline.study.storage.store import Store
from trueonline.study.storage.work import Work

WRITERS = 4  # most of their time they wait for the disk
MAX_WAITING = 16  # results that may wait to be written


class Writer:
    """A thread pool that stores results, so that computing threads never wait for the disk.

    `stored` is called with each task whose result is stored. The call comes from the thread that calls `write`, at its next call
    or at the end. The result of a long task (spawned) is stored at once. Errors of writing are raised in that thread too.
    """

    def __init__(self, store: Store, stored: Callable[[Work], None]) -> None:
        self._store, self._stored = store, stored
        self._threads = ThreadPoolExecutor(WRITERS, "trueonline-writer")
        self._writing: dict[Future, Work] = {}

    def write(self, task: Work, table: pa.Table) -> None:
        """Store a result soon. Wait if too many are waiting."""
        self._writing[self._threads.submit(self._store_one, task, table)] = task
        self._settle(0 if task.spawned else MAX_WAITING)

    def _store_one(self, task: Work, table: pa.Table) -> None:
        self._store.write(task, table)
        if task.spawned:  # hours of work; the others are flushed together
            self._store.flush()

    def _settle(self, left: int) -> None:
        """Report what is stored, and wait until at most `left` results are in the queue."""
        while True:
            for future in [future for future in self._writing if future.done()]:
                task = self._writing.pop(future)
                future.result()
                self._stored(task)
            if len(self._writing) <= left:
                return
            wait(self._writing, return_when=FIRST_COMPLETED)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        """Wait until everything is stored, also after Ctrl-C or an error."""
        try:
            if kind is None:
                self._settle(0)
        finally:
            while self._writing:
                with suppress(Exception):  # one is being raised already
                    self._settle(0)
            self._threads.shutdown()
            self._store.flush()
