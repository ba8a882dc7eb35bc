"""The examples that the documentation names run, with smaller numbers where they take minutes, and those of the gallery."""

import runpy
import sys
from importlib import import_module
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the examples draw")
pytest.importorskip("pyarrow", reason="sweeps return tables")

pytestmark = pytest.mark.apart
EXAMPLES = Path(__file__).parents[1] / "examples"
SMALLER = {
    "careful_walk": {"STEP_SIZES": [0.1], "TRACE_DECAYS": [0.9], "TARGETS": [0.6], "RUNS": 2, "STEPS": 50},
    "step_size_adaptation": {"STEP_SIZES": [0.1], "RUNS": 2, "STEPS": 1000},
    "stream_to_alert": {},
}


@pytest.mark.parametrize("name", SMALLER)
def test_an_example_runs(name, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = import_module(name)
    for number, smaller in SMALLER[name].items():
        monkeypatch.setattr(example, number, smaller)
    monkeypatch.setattr(sys, "argv", [name, str(tmp_path)])
    example.main(*[tmp_path / "picture.png"] * (name != "stream_to_alert"))
    assert list(tmp_path.glob("*.png"))


GALLERY = sorted(EXAMPLES.glob("gallery/*/plot_*.py"))


def test_the_gallery_is_not_empty():
    assert len(GALLERY) >= 12


@pytest.mark.parametrize("example", GALLERY, ids=lambda path: path.stem)
def test_an_example_of_the_gallery_draws_one_picture(example, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    from matplotlib import pyplot as plt

    plt.switch_backend("Agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    try:
        runpy.run_path(str(example))
        assert len(plt.get_fignums()) == 1
    finally:
        plt.close("all")
