"""Results on their way to the store."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any

import pyarrow as pa

from trueonline.study.storage.store import Store
from trueonline.study.storage.work import Work

THREADS = 4  # most of their time they wait for the disk
QUEUE = 16  # results that may wait to be written


class Writer:
    """Stores results in threads, so that nobody who computes waits for the disk.

    `stored` is called with each task whose result is stored, in the thread that calls `write`: when the next one is written, or at
    the end. The result of a long task (spawned) is stored at once. An error of writing is raised in that thread, too.
    """

    def __init__(self, store: Store, stored: Callable[[Work], None]) -> None:
        self._store, self._stored = store, stored
        self._threads = ThreadPoolExecutor(THREADS, "trueonline-writer")
        self._writing: dict[Future, Work] = {}

    def write(self, task: Work, table: pa.Table) -> None:
        """Store a result soon. Wait if too many are waiting."""
        self._writing[self._threads.submit(self._store_one, task, table)] = task
        self._settle(0 if task.spawned else QUEUE)

    def _store_one(self, task: Work, table: pa.Table) -> None:
        self._store.write(task, table)
        if task.spawned:  # hours of work; the others are flushed together
            self._store.flush()

    def _settle(self, left: int) -> None:
        """Tell of what is stored, and wait until no more than so many results are left."""
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
