"""The trials of `python -m tests.hostile` take minutes and are apart from the tests (`tests/test_hostile.py` tries a few)."""

import gc
from types import FunctionType, SimpleNamespace

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


@pytest.fixture(scope="module")
def small_heap():
    """Identities look at all objects that are alive, again and again. What tests before have left is looked through once."""
    from trueonline.core.compiling import identity

    gc.collect()
    functions = [each for each in gc.get_objects() if type(each) is FunctionType]
    left = [each for each in functions if identity._file_owner(each.__code__.co_filename) is None]
    gc.freeze()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            identity, "gc", SimpleNamespace(get_objects=lambda: [*left, *gc.get_objects()], get_freeze_count=int)
        )
        yield
    gc.unfreeze()
