"""Doctests may write files: each runs in a folder of its own."""

import pytest


@pytest.fixture(autouse=True)
def _doctests_run_elsewhere(request, tmp_path, monkeypatch):
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)
