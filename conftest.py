"""How the tests run: the longest files first, one thread to each process, and doctests in folders of their own."""

import os
from importlib.util import find_spec

import pytest

# Several processes run tests side by side: threads of the linear algebra would only wait for each other, and spin meanwhile.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

collect_ignore = ["docs/conf.py", "docs/_ext"]  # they need what only `make docs` installs
if find_spec("numba_cuda") is None:  # there is none for macOS
    collect_ignore += ["src/trueonline/study/cuda/compiler.py", "src/trueonline/study/cuda/device.py"]

# Files that take long, in the order in which they are handed out. Those that compile different kernels come first, and side by
# side: the others, and the commands that tests start, then find them on disk. All that is not named here is short.
FIRST = (
    "test_agents_exact", "test_agent_mistakes", "test_agent_saving", "test_agent_inputs", "test_agent_reductions",
    "test_derive", "test_derive_refusals", "test_step_sizes", "test_provisional", "test_exact", "test_run",
    "test_off_policy_study", "test_family",
    "test_differential", "test_batches", "test_sweep_body", "test_compiler",
    "test_horde", "test_catalog", "test_sweep_file",
    "test_atari_resuming", "test_atari_screens", "test_atari_published", "test_atari_runs",
    "test_processes", "test_platforms", "test_paper", "test_survival", "test_predict", "test_predict_resuming",
    "test_predict_options", "test_study",
    "test_mqtt", "test_lsl",
    "test_page", "test_feed", "test_live_command",
    "test_control_studies", "test_text_files", "test_positions", "test_cleaning", "test_csv", "README",
    "test_asterix_command", "test_train_command", "test_sweep_command",
    "test_myoelectric", "test_verification", "test_cli", "test_training", "test_training_resuming", "test_evaluation",
    "test_report", "nexting", "derive",
)  # fmt: skip


def pytest_configure(config):
    if hasattr(config.option, "loadscopereorder"):  # pytest-xdist would begin with the files that have the most tests
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(items):
    places = {name: place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


@pytest.fixture(autouse=True)
def _doctests_run_elsewhere(request, tmp_path, monkeypatch):
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)
