"""A GPU as far as it can be seen without one: whose turn it is. The driver says yes to everything."""

import threading

import pytest

driver = pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
device = pytest.importorskip("trueonline.study.cuda.device", reason="numba-cuda is not installed")


@pytest.fixture
def current(monkeypatch):
    """The threads that have made the context theirs."""
    threads, yes = [], driver.CUresult.CUDA_SUCCESS
    answers = {
        "cuInit": lambda flags: (yes,),
        "cuDeviceGetCount": lambda: (yes, 1),
        "cuDeviceGet": lambda number: (yes, number),
        "cuDevicePrimaryCtxRetain": lambda number: (yes, "context"),
        "cuCtxSetCurrent": lambda context: threads.append(threading.get_ident()) or (yes,),
        "cuDeviceGetAttribute": lambda which, number: (yes, 9),
        "cuStreamCreate": lambda flags: (yes, object()),
        "cuStreamSynchronize": lambda stream: (yes,),
    }
    for name, answer in answers.items():
        monkeypatch.setattr(driver, name, answer)
    return threads


def test_a_gpu_is_used_by_one_thread_at_a_time_and_each_makes_it_its_own(current):
    gpu = device.Gpu()
    inside, most = [], []

    def use():
        for _ in range(20):
            with gpu.turn():
                inside.append(threading.get_ident())
                assert current[-1] == threading.get_ident()
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 60


def test_batches_that_nobody_collects_leave_their_places_to_others(current):
    gpu = device.Gpu()
    for _ in range(3):
        with gpu.turn():
            gpu._slots.pop(0)
    assert len(gpu._slots) == 2
