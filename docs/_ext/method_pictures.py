"""A picture for the page of each linear method, drawn from its learners before each build: `docs/methods/pictures/PAGE.svg`.

On the left is the trace of a feature that is seen again and again. On the right is how far one outcome moves a prediction, after
one visit and after more. Both show the learner itself, beside true online TD(λ).
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from made_pages import write_if_changed
from sphinx.errors import ExtensionError

from trueonline import catalog
from trueonline.look import figure, look

PICTURES = Path(__file__).parents[1] / "methods" / "pictures"
VISITS = (2, 4, 5, 6, 7, 13, 16, 18)  # steps at which the feature is seen
STEPS, MOST = 24, 10
SETTINGS = {"n_features": 2, "step_size": 0.25}
RATIOS = {5: 2.0, 16: 0.0}  # of off-policy methods, where it is not 1


def write_pictures(app: Any, config: Any) -> None:
    """Draw the pictures of all pages."""
    pages: dict[str, list[catalog.Method]] = {}
    for row in catalog.METHODS.values():
        if row.group in ("prediction", "off-policy") and row.rule is not None and "expected" not in str(row.rule):
            pages.setdefault(row.page, []).append(row)
    for page, rows in pages.items():
        chosen = [row for row in rows if row.name not in ("provisional_q", "off_policy", "true_online_off_policy")]
        if f"pictures/{Path(page).stem}.svg" not in (PICTURES.parent / page).read_text(encoding="utf-8"):
            raise ExtensionError(f"docs/methods/{page} does not show its picture, pictures/{Path(page).stem}.svg")
        write_if_changed(PICTURES / f"{Path(page).stem}.svg", draw(chosen))


def draw(rows: list[catalog.Method]) -> str:
    """The picture of some methods, as SVG."""
    ours = catalog.METHODS["true_online"]
    with_ratios = any(row.group == "off-policy" for row in rows)
    shown = rows if ours in rows or with_ratios else [ours, *rows]
    with look():
        drawing, ((left, right),) = figure(1, 2, width=7.4, height=2.9)
        alike = len({row.look.colour for row in shown}) < len(shown)  # colours are those of groups
        for row, colour in zip(shown, (catalog.VERMILION, catalog.GREEN, catalog.BLUE, catalog.PINK), strict=False):
            style = {"color": colour if alike else row.look.colour, "label": row.title, "linewidth": 1.6}
            style |= {"dashes": row.look.dashes} if row.look.dashes else {}
            style |= {"linewidth": 4.0, "alpha": 0.4} if row is ours and row not in rows else {}
            left.plot(range(STEPS), traces(row, with_ratios), **style)
            right.plot(
                range(1, MOST + 1), [moved(row, n) for n in range(1, MOST + 1)], marker=row.look.marker, ms=3.5, **style
            )
        for step in VISITS:
            left.axvline(step, color="#BBBBBB", linewidth=0.7, zorder=0)
        if with_ratios:
            for step, ratio in RATIOS.items():
                left.text(
                    step,
                    1.0,
                    f"ρ = {ratio:g}",
                    transform=left.get_xaxis_transform(),
                    ha="center",
                    va="bottom",
                    fontsize=8,
                )
        right.axhline(1.0, color="#999999", linewidth=0.9, zorder=0)
        left.set(xlabel="step (grey lines: the feature is seen)", ylabel="share of an error that it gets")
        right.set(xlabel="visits before the outcome", ylabel="part of the way to the outcome", xticks=range(1, MOST + 1))
        right.set_ylim(0.0, None)
        left.set_title("the trace", pad=14 if with_ratios else 6)
        right.set_title("the step", pad=14 if with_ratios else 6)
        drawing.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=3, handlelength=3.5)
        file = io.BytesIO()
        drawing.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue().decode()


def _learner(row: catalog.Method, lam: float, discount: float) -> Any:
    settings = {**SETTINGS, **row.settings, **row.options}
    if row.name == "swift_td":
        settings |= {"bound": 1.0, "meta_step_size": 0.0}
    return row.resolve("learner")(trace_decay=lam, discount=discount, **settings)


def traces(row: catalog.Method, with_ratios: bool) -> list[float]:
    """How much of an error the feature's weight would get after each step, with γλ = 0.9."""
    found = []
    for last in range(STEPS):  # the change of the weight by one reward says it for every kind of trace
        learner = _learner(row, 0.9, 1.0)
        learner.start([float(0 in VISITS), 0.0])
        for step in range(last + 1):
            ratio = {"ratio": RATIOS.get(step, 1.0)} if with_ratios else {}
            learner.update(float(step == last), [float(step + 1 in VISITS), 0.0] if step < last else None, **ratio)
        found.append(float(learner.weights[0]))
    return found


def moved(row: catalog.Method, visits: int) -> float:
    """The prediction after an episode of some steps in one state that ends with a reward of 1, with λ = 1."""
    learner = _learner(row, 1.0, 1.0)
    learner.start([1.0, 0.0])
    for step in range(visits):
        learner.update(float(step == visits - 1), [1.0, 0.0] if step < visits - 1 else None)
    return float(learner.weights[0])


def setup(app: Any) -> dict[str, bool]:
    app.connect("config-inited", write_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
