"""How the tests run: the longest files first, one thread to each process, and doctests in folders of their own."""

import gc
import os
from importlib.util import find_spec
from pathlib import Path

import pytest

# Several processes run tests side by side: threads of the linear algebra would only wait for each other, and spin meanwhile.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Compiled kernels stay for the next run, but not among those of the user. The commands that tests start find them too.
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).parent / ".pytest_cache" / "kernels"))

collect_ignore = ["docs/conf.py", "docs/_ext"]  # they need what only `make docs` installs
if find_spec("numba_cuda") is None:  # there is none for macOS
    collect_ignore += ["src/trueonline/study/engines/cuda/compiler.py", "src/trueonline/study/engines/cuda/device.py"]

DOCS = Path(__file__).parent / "docs"

# Files in the order in which they are handed out. The first compiles the kernels of all methods. Those behind it take long and need
# few of these kernels. All others come last: they are short, and find the kernels on disk.
FIRST = (
    "test_catalog", "test_derive_refusals", "test_paper", "test_derive", "test_sweep_body", "test_processes", "test_compiler",
    "test_derive_diagonal", "test_derive_check", "test_off_policy_study", "test_survival", "test_batches", "test_engine",
    "test_predict", "test_horde", "test_platforms", "test_mqtt", "test_lsl", "test_control_studies",
    "test_atari_resuming", "test_train_command", "test_myoelectric", "test_predict_resuming",
    "test_learning_on", "test_alerts", "test_user_formats", "test_positions", "test_study", "test_sweep_file",
    "test_sweep_command", "test_page", "test_random_walk_page", "test_benchmarks_gpu",
)  # fmt: skip


def pytest_configure(config):
    if hasattr(config.option, "loadscopereorder"):  # pytest-xdist would begin with the files that have the most tests
        config.option.loadscopereorder = False


@pytest.hookimpl(tryfirst=True)  # before the tests are chosen by their marks
def pytest_collection_modifyitems(items):
    for item in items:
        if {"browser", "chromium"} & {*getattr(item, "fixturenames", ())} or DOCS in item.path.parents:
            item.add_marker("apart")
    places = {name: place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


def pytest_collection_finish():
    """What was imported stays: the garbage collector, and tests that ask it for all functions, need not pass over it each time."""
    import hypothesis  # noqa: F401  (which asks the collector, when it is first imported, for what refers to an object)

    gc.collect()
    gc.freeze()


def pytest_sessionfinish():
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _doctests_run_elsewhere(request, tmp_path, monkeypatch):
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)
