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


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """A folder with the pretended driver."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("the pretended driver needs Linux and a C compiler")
    folder = tmp_path_factory.mktemp("driver")
    command = [compiler, "-shared", "-fPIC", "-o", str(folder / "libcuda.so.1"), str(HERE / "pretended_driver.c")]
    subprocess.run(command, check=True)
    return folder


def told(driver, **variables):
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver), "PYTHONPATH": os.pathsep.join(sys.path), **variables}
    done = subprocess.run([sys.executable, str(CHILD)], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_argument_of_a_launch_arrives_in_any_thread(driver):
    answer = told(driver)
    assert answer["said"] == []
    assert answer["right"] == answer["found"] == answer["tasks"] > 20


def test_batches_are_halved_where_memory_is_short(driver):
    answer = told(driver, PRETENDED_MEMORY=str(36 * 2**20))  # a slot takes 16 MiB at least
    assert answer["said"] == []
    assert answer["right"] == answer["tasks"]


def test_too_little_memory_is_said_in_words(driver):
    answer = told(driver, PRETENDED_MEMORY=str(2**20))
    assert answer["found"] == 0
    assert all("the GPU has too little free memory" in words and "engine local" in words for words in answer["said"])
    assert len(answer["said"]) == 2


def test_a_failure_of_the_driver_is_said_in_words(driver):
    answer = told(driver, PRETENDED_FAILURE="1")
    assert answer["found"] == 0
    assert all(words.startswith("OSError: the GPU stopped answering (an illegal address") for words in answer["said"])
    assert len(answer["said"]) == 2


def test_learners_that_write_nothing_are_no_result(driver):
    answer = told(driver, PRETENDED_SILENCE="1")
    assert answer["found"] == 0
    assert all("raised an error on the GPU" in words for words in answer["said"])
    assert len(answer["said"]) == 2
