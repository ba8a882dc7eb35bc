"""One look for all pictures: the same colour, dash and name for the same method everywhere.

The colours are Okabe and Ito's, which colour-blind people can tell apart; dashes and markers differ too.
"""

from __future__ import annotations

from typing import Any

from trueonline.report.look import RC, figure, look

__all__ = ["COLOURS", "DASHES", "MARKERS", "NAMES", "RC", "figure", "line", "look"]

NAMES = {
    "accumulate": "accumulate TD(λ)",
    "replace": "replace TD(λ)",
    "true_online": "true online TD(λ)",
    "online": "online λ-return",
    "offline": "offline λ-return",
    "td0": "TD(0)",
    "accumulate_sarsa": "accumulate Sarsa(λ)",
    "replace_sarsa": "replace Sarsa(λ)",
    "true_online_sarsa": "true online Sarsa(λ)",
    "clearing_sarsa": "replace Sarsa(λ), clearing",
    "random": "random play",
    "off_policy": "off-policy TD(λ)",
    "true_online_off_policy": "true online off-policy TD(λ)",
    "gtd": "GTD(λ)",
    "true_online_gtd": "true online GTD(λ)",
    "emphatic": "emphatic TD(λ)",
    "true_online_emphatic": "true online emphatic TD(λ)",
}
COLOURS = {
    "accumulate": "#D55E00",
    "replace": "#0072B2",
    "true_online": "#009E73",
    "online": "#CC79A7",
    "offline": "#000000",
    "td0": "#7F7F7F",
}
COLOURS |= {f"{name}_sarsa": COLOURS[name] for name in ("accumulate", "replace", "true_online")}
COLOURS |= {"clearing_sarsa": "#56B4E9", "random": "#7F7F7F"}
DASHES: dict[str, tuple[int, ...]] = {
    "accumulate": (6, 2),
    "replace": (2, 2),
    "true_online": (),
    "online": (),
    "offline": (1, 1),
    "td0": (8, 2, 1, 2),
    "clearing_sarsa": (2, 1),
    "random": (1, 2),
}
DASHES |= {f"{name}_sarsa": DASHES[name] for name in ("accumulate", "replace", "true_online")}
MARKERS = {
    "accumulate": "s",
    "replace": "^",
    "true_online": "o",
    "online": "D",
    "offline": "v",
    "td0": "x",
    "clearing_sarsa": "v",
}
MARKERS |= {f"{name}_sarsa": MARKERS[name] for name in ("accumulate", "replace", "true_online")}

# Off-policy methods: the true online form has the colour and the marker of its counterpart, and a whole line.
for _name, _colour, _marker in (("off_policy", "#D55E00", "s"), ("gtd", "#0072B2", "o"), ("emphatic", "#009E73", "D")):
    for _form, _dash in ((_name, (4, 2)), (f"true_online_{_name}", ())):
        COLOURS[_form], DASHES[_form], MARKERS[_form] = _colour, _dash, _marker


def line(axes: Any, x: Any, y: Any, method: str, **options: Any) -> None:
    """A line in the method's own style."""
    dashes = {"dashes": DASHES[method]} if DASHES[method] else {}
    axes.plot(x, y, color=COLOURS[method], label=NAMES[method], **{"linewidth": 1.6, **dashes, **options})
