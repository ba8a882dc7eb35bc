"""The examples of the gallery run, and each draws one picture."""

import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.apart

GALLERY = Path(__file__).parents[1] / "examples" / "gallery"
EXAMPLES = sorted(GALLERY.glob("*/plot_*.py"))


def test_the_gallery_is_not_empty():
    assert len(EXAMPLES) >= 12


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
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
