"""The trials of `python -m tests.hostile` take minutes and are apart from the tests (`tests/test_hostile.py` tries a few)."""

import pytest

collect_ignore = ["hostile"]


@pytest.fixture
def computed(monkeypatch):
    """The names of the tasks of sweeps that this process computes."""
    from trueonline import study

    names, compute = [], study.Task.compute

    def counting(task):
        names.append(task.name)
        return compute(task)

    monkeypatch.setattr(study.Task, "compute", counting)
    return names
