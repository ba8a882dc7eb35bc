"""Trials that end in every possible way, for the test of the harness itself. Not one of `KINDS`."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

from tests.hostile import FINE, REFUSED, PromiseError

PROMISE = "Every end of a trial is an outcome."
WAYS = ("fine", "refused", "skipped", "broken", "crashed", "hung")
TRIALS = len(WAYS)


def trial(rng: random.Random, folder: Path, shared: Path) -> str:
    (folder / "input").write_text("it")
    way = WAYS[int(folder.name)]
    if way == "broken":
        raise PromiseError("this promise does not hold")
    if way == "crashed":
        os.kill(os.getpid(), signal.SIGSEGV)
    if way == "hung":
        time.sleep(3600)
    return {"fine": FINE, "refused": REFUSED}.get(way, "there is a reason")
