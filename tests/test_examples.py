"""The examples that the documentation names run, with smaller numbers where they take minutes."""

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
