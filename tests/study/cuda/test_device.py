"""The file that talks to CUDA's driver, with a driver that only pretends: every argument of a launch has to arrive."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba_cuda", reason="the engine cuda needs numba-cuda, which is not installed")
HERE = Path(__file__).parent
CHILD = HERE / "device_child.py"


WAYS = {  # in the order of the memory that they take, because the driver keeps it
    "the GPU has too little free memory": {"PRETENDED_MEMORY": str(2**20)},
    "batches are halved where memory is short": {"PRETENDED_MEMORY": str(36 * 2**20)},  # a slot takes 16 MiB at least
    "every argument of a launch arrives, in any thread": {},
    "OSError: the GPU stopped answering (an illegal address": {"PRETENDED_FAILURE": "1", "PRETENDED_MEMORY": str(2**32)},
    "raised an error on the GPU": {"PRETENDED_SILENCE": "1", "PRETENDED_MEMORY": str(2**34)},  # what was not written
}


def test_what_is_learned_and_said_with_each_driver(tmp_path):
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("the pretended driver needs Linux and a C compiler")
    command = [compiler, "-shared", "-fPIC", "-o", str(tmp_path / "libcuda.so.1"), str(HERE / "pretended_driver.c")]
    subprocess.run(command, check=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(CHILD), *map(json.dumps, WAYS.values())]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    little, *whole, lost, silent = json.loads(done.stdout)
    for answer in whole:
        assert answer["said"] == []
        assert answer["right"] == answer["found"] == answer["tasks"] > 20
    for words, answer in zip([[*WAYS][at] for at in (0, 3, 4)], (little, lost, silent), strict=True):
        assert answer["found"] == 0
        assert len(answer["said"]) == 2
        assert all(words in each for each in answer["said"])
    assert all("engine local" in each for each in little["said"])
