"""What notebooks show. Every piece is parsed: it must be well-formed, and a hostile name must stay text."""

import base64
import inspect
import sys
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import trueonline as to
from trueonline import catalog, notebook
from trueonline.checks.verification import Report, Row
from trueonline.core.transition import asked
from trueonline.study.summary import show_in_notebooks

HOSTILE = "<script>alert(1)</script>\"'&"


def parsed(html):
    """The elements of a piece of HTML, all of which is well-formed XML."""
    return ET.fromstring(f"<div>{html}</div>")


def texts(html):
    return [text.strip() for text in parsed(html).itertext() if text.strip()]


def learned(n_features=5, **options):
    learner = to.TrueOnlineTD(n_features=n_features, step_size=0.5, trace_decay=0.9, discount=1.0, **options)
    learner.run([0, 1, 2], rewards=[0.0, 1.0])
    return learner


def test_a_learner_shows_its_settings_its_weights_and_its_trace():
    learner = learned()
    shown = texts(learner._repr_html_())
    assert shown[0] == "TrueOnlineTD"
    pairs = dict(zip(shown[1::2], shown[2::2], strict=False))
    assert pairs | {"n_features": "5", "step_size": "0.5", "trace_decay": "0.9", "discount": "1", "steps": "2"} == pairs
    assert f"weights: 0 to {learner.weights.max():.4g}, a bar for each feature" in shown
    pictures = parsed(learner._repr_html_()).findall(".//svg")
    assert [len(picture.findall(".//rect")) for picture in pictures] == [5, 5]
    heights = [float(bar.get("height")) for bar in pictures[0].iter("rect")]
    assert np.allclose(np.array(heights) / max(heights), learner.weights / learner.weights.max(), atol=1e-3)


# Methods whose learner is a class of the package: a function that makes learners has no class to look at.
CLASSES = [
    row for row in catalog.METHODS.values() if row.group != "nonlinear" and isinstance(row.resolve("learner"), type)
]


@pytest.mark.parametrize("row", CLASSES, ids=lambda row: row.name)
def test_every_class_of_the_catalogue_is_described(row):
    options = {"n_actions": 2, "step_size": 0.1, "trace_decay": 0.5, "discount": 0.9, "second_step_size": 0.1}
    if "beta" not in asked(row.resolve("rule")):
        del options["second_step_size"]
    accepted = inspect.signature(row.resolve("learner")).parameters
    learner = row.resolve("learner")(n_features=4, **{name: value for name, value in options.items() if name in accepted})
    assert {"n_features", "steps", "weights: all 0", "trace: all 0"} <= set(texts(learner._repr_html_()))


def test_weights_that_are_not_finite_are_counted_and_not_drawn():
    html = notebook.bars("weights", np.array([1.0, np.nan, -2.0, np.inf]), "#000000")
    assert "weights: -2 to 1, a bar for each feature; 2 not finite, not drawn" in texts(html)
    assert [float(bar.get("height")) > 0.0 for bar in parsed(html).iter("rect")] == [True, False, True, False]
    html = notebook.bars("weights", np.array([np.nan, np.inf, 0.0]), "#000000")
    assert texts(html) == ["weights: 2 of 3 not finite, nothing to draw"]


@pytest.mark.parametrize("values", [[5e-324, 0.0, -5e-324], [1e308, 0.0, -1e308], [1e-310, 0.0, -1e-310]])
def test_the_smallest_and_the_largest_floats_are_drawn(values):
    bars = [float(bar.get("height")) for bar in parsed(notebook.bars("trace", np.array(values), "#000000")).iter("rect")]
    assert bars == [29.0, 0.0, 29.0]


def test_a_bar_of_many_features_spans_their_range():
    values = np.zeros(1000)
    values[500], values[501] = 3.0, -1.0
    html = notebook.bars("trace", values, "#000000")
    bars = [float(bar.get("height")) for bar in parsed(html).iter("rect")]
    assert len(bars) == notebook.BARS
    assert max(bars) == pytest.approx(notebook.HEIGHT - 2)
    assert sum(bar > 0.0 for bar in bars) == 1
    assert "9 features to a bar" in texts(html)[0]


def test_a_huge_learner_is_described_without_copying_its_weights():
    class Untouched(to.TrueOnlineTD):
        weights = trace = property(lambda self: pytest.fail("copied"))

    html = Untouched(n_features=20_000_000, step_size=0.1, trace_decay=0.9, discount=0.9)._repr_html_()
    assert "20,000,000 weights are too many for a picture." in texts(html)


def test_a_learner_that_cannot_be_described_shows_its_text():
    class Odd(to.TrueOnlineTD):
        trace = property(lambda self: 1 / 0)

    assert Odd(n_features=2, step_size=0.1, trace_decay=0.9, discount=0.9)._repr_html_() is None


@pytest.mark.parametrize(("error", "verdict"), [(1e-14, "exact"), (0.5, "not exact"), (float("inf"), "not exact")])
def test_a_report_shows_whether_it_is_exact(error, verdict):
    rows = (Row("dense", error, error, 5), Row(HOSTILE, 0.0, 0.0, 5))
    html = Report(HOSTILE, "OnlineLambdaReturn", 50, 1e-10, rows)._repr_html_()
    assert f"against OnlineLambdaReturn: {verdict} (" in texts(html)[0]
    assert texts(html)[0].startswith(HOSTILE)
    assert texts(html)[4:7] == ["dense", "5", f"{error:.1e}"]
    assert HOSTILE in texts(html)
    assert not parsed(html).findall(".//script")


def test_a_summary_shows_the_best_parameters_and_a_picture():
    options = {"step_sizes": (0.1, 0.3), "trace_decays": (0.8,), "runs": 3, "steps": 30}
    table = to.sweep(to.problems.random_walk(), methods=("accumulate", "true_online"), **options)
    summary = to.study.Summary(table)
    best = summary.best.to_pylist()
    html = summary._repr_html_()
    shown = texts(html)
    assert shown[0] == "Best parameters of each method (mean error over 3 runs)"
    assert [row["method"] for row in best] == ["accumulate", "true_online"]
    assert all(f"{row['error']:.4g}" in shown for row in best)
    (picture,) = parsed(html).iter("img")
    assert picture.get("src").startswith("data:image/svg+xml;base64,")
    assert str(summary).splitlines()[1] == (
        f"true_online: error {best[1]['error']:.4g} ± {best[1]['half_width']:.3g} with step_size {best[1]['step_size']:g}, "
        "trace_decay 0.8"
    )


def test_a_notebook_shows_the_table_of_a_sweep_as_its_summary_and_other_tables_as_before(monkeypatch):
    shown = {}
    formatter = SimpleNamespace(for_type=shown.__setitem__)
    shell = SimpleNamespace(display_formatter=SimpleNamespace(formatters={"text/html": formatter}))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    show_in_notebooks()
    table = to.sweep(
        to.problems.random_walk(), methods=("true_online",), step_sizes=(0.1,), trace_decays=(0.8,), runs=2, steps=30
    )
    assert texts(shown[pa.Table](table))[0] == "Best parameters of each method (mean error over 2 runs)"
    assert shown[pa.Table](pa.table({"error": [1.0]})) is None


def swept(errors, **labels):
    """The table of a sweep with given errors, one for each step-size."""
    count = len(errors)
    columns = {"method": ["true_online"] * count, "step_size": [0.1 * (i + 1) for i in range(count)]}
    columns |= {"trace_decay": [0.5] * count, "run": [0] * count, "error": errors}
    return pa.table({name: [value] * count for name, value in labels.items()} | columns)


@pytest.mark.parametrize("error", [np.nan, np.inf])
def test_a_summary_says_that_everything_diverged(error):
    html = to.study.Summary(swept([error, error]))._repr_html_()
    (picture,) = parsed(html).iter("img")
    drawn = base64.b64decode(picture.get("src").partition(",")[2]).decode()
    assert "every method diverged" in drawn


def test_labels_of_a_summary_may_hold_any_character_and_nothing_is_no_results():
    assert texts(to.study.Summary(swept([0.5])[:0])._repr_html_()) == ["No results"]
    summary = to.study.Summary(swept([0.5, 0.25], **{'a "b" <c>': HOSTILE}))
    assert str(summary).startswith(HOSTILE)
    assert {'a "b" <c>', HOSTILE} <= set(texts(summary._repr_html_()))
