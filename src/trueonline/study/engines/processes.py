"""Tasks that hold the interpreter, each in a process of its own.

A process that was killed is started again and resumes from its checkpoint. No process outlives this one.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import connection
from pathlib import Path
from typing import Any

from trueonline.platforms import ctrl_c_postponed, ending_in_words, was_killed
from trueonline.study.storage.work import Beat, Work

MAX_ATTEMPTS = 6  # a task that was killed this often would be killed again
BEAT_SECONDS = 1.0  # seconds between two beats of a process, at least
SPAWN_CONTEXT = multiprocessing.get_context("spawn")  # never forked: a fork would inherit locks of this process


def run(
    tasks: Sequence[Work],
    done: Callable[[Work, Any], None],
    moved: Callable[[Work, int, bool], None],
    scratch: Callable[[Work], Path],
    processes: int,
) -> None:
    """Run tasks, some at a time. `moved` is called with a task, its finished steps, and whether it just started or resumed.

    An error of a task is raised here, after the other processes were stopped. Results that have arrived by then are kept.
    """
    waiting, running = deque((task, 1) for task in tasks), list[Process]()
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                task, life = waiting.popleft()
                with ctrl_c_postponed():
                    running.append(Process(task, scratch(task), life))
            ready = connection.wait([end for process in running for end in (process.pipe, process.ended)])
            for process in [process for process in running if process.pipe in ready or process.ended in ready]:
                match process.hear():
                    case "at", steps:
                        moved(process.task, steps, process.first_news())
                    case "result", table:
                        running.remove(process)
                        process.stop()
                        done(process.task, table)
                    case "error", error:
                        raise error
                    case "death", code:
                        running.remove(process)
                        process.stop()
                        process.check_death(code)
                        waiting.appendleft((process.task, process.life + 1))
    except BaseException:
        for process in running:
            if (table := process.finished()) is not None:
                with suppress(Exception):
                    done(process.task, table)
        raise
    finally:
        for process in running:  # Ctrl-C or an error: the tasks have checkpoints
            process.stop()


class Process:
    """A process at work on a task."""

    def __init__(self, task: Work, scratch: Path, life: int) -> None:
        self.task, self.life, self.heard = task, life, False
        self.pipe, theirs = SPAWN_CONTEXT.Pipe(duplex=False)
        # A daemon: if this process ends without reaching a `finally`, it does not wait for its children.
        self.process = SPAWN_CONTEXT.Process(target=_live, args=(task, scratch, theirs), name=task.name, daemon=True)
        self.process.start()
        self.ended = self.process.sentinel
        theirs.close()

    def hear(self) -> tuple[str, Any]:
        """The next message. Call it when the pipe or the sentinel is ready."""
        try:
            if self.pipe.poll():
                return self.pipe.recv()
        except (EOFError, OSError):  # also if the process was killed while sending
            pass
        self.process.join()
        return "death", self.process.exitcode

    def finished(self) -> Any | None:
        """The result, if it has arrived."""
        with suppress(OSError):  # on Windows, if the process has closed its end
            while self.pipe.poll():
                match self.hear():
                    case "result", table:
                        return table
                    case "error" | "death", _:
                        return None
        return None

    def first_news(self) -> bool:
        first, self.heard = not self.heard, True
        return first

    def check_death(self, code: int) -> None:
        """Raise an error unless it makes sense to start the task again, as after a signal (out of memory, a crash, a kill)."""
        if not was_killed(code):
            raise ValueError(
                f"the process of the task {self.task.name} ended without a result, with exit code {code}; see what it "
                'printed. If it could not import your script: a script needs the guard if __name__ == "__main__"'
            )
        if self.life == MAX_ATTEMPTS:
            raise ValueError(
                f"the process of the task {self.task.name} was killed {MAX_ATTEMPTS} times, last with exit code {code} "
                f"({ending_in_words(code)}); if memory ran out, run fewer at a time; run the same command again to resume"
            )

    def stop(self) -> None:
        """Kill the process. Its checkpoint is complete at any moment."""
        self.process.kill()
        self.process.join()
        self.process.close()
        self.pipe.close()


def _live(task: Work, scratch: Path, pipe: Any) -> None:
    """Compute the task, in its process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where the wait for Ctrl-C is not inherited
    threading.Thread(target=_die_with_parent, daemon=True).start()
    try:
        _send(pipe, "result", computed(task, scratch, _beat(pipe)))
    except BaseException as error:
        _send(pipe, "error", _portable(error))


def computed(task: Work, scratch: Path, beat: Beat) -> Any:
    """The result of a task. Another study in the same folder may store it first, and remove the checkpoints."""
    try:
        return task.compute(scratch, beat)
    except FileNotFoundError:
        if not (scratch.parents[1] / f"{task.name}.parquet").exists():
            raise
        return task.compute(None, beat)


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "this process was spawned"
    connection.wait([parent.sentinel])
    os._exit(1)


def _send(pipe: Any, word: str, news: Any) -> None:
    try:
        pipe.send((word, news))
    except BrokenPipeError:  # the parent is gone
        os._exit(1)


def _beat(pipe: Any) -> Beat:
    """A beat that sends the number of steps, at most once in BEAT_SECONDS seconds."""
    sent = -BEAT_SECONDS

    def beat(steps: int) -> None:
        nonlocal sent
        now = time.monotonic()
        if now - sent >= BEAT_SECONDS:
            _send(pipe, "at", int(steps))
            sent = now

    return beat


def _portable(error: BaseException) -> Exception:
    """The error if its class is a builtin, otherwise the nearest builtin error: classes of a script have other names here.

    The traceback would be lost on the way, so it is added as a note.
    """
    if type(error).__module__ == "builtins" and isinstance(error, Exception):
        portable = error
    else:
        kind = next((kind for kind in (ValueError, OSError, ImportError) if isinstance(error, kind)), None)
        portable = kind(str(error)) if kind else RuntimeError(f"{type(error).__name__}: {error}")
    portable.add_note("In the process of the task:\n" + "".join(traceback.format_exception(error)))
    return portable
