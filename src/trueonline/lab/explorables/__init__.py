"""Interactive pages that explain the ideas behind true online TD(λ) in a browser.

The pages are plain HTML, CSS and JavaScript in the folder `pages`. They need no server and no network, and open from a file.
`trueonline learn` opens them.
"""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "pages"
INDEX = FOLDER / "index.html"


@dataclass(frozen=True)
class Explorable:
    """One explorable page.

    Parameters
    ----------
    name : str
        The name in the command and in file names.
    title : str
        The heading.
    sentence : str
        The subject of the page, in one sentence.
    """

    name: str
    title: str
    sentence: str

    @property
    def path(self) -> Path:
        """The file of the page."""
        return FOLDER / f"{self.name}.html"

    @property
    def still(self) -> Path:
        """A picture of the page, for readers without JavaScript."""
        return FOLDER / "stills" / f"{self.name}.svg"


# In the order in which a newcomer would read them.
PAGES = (
    Explorable("traces", "The traces", "The eligibility trace, and why the dutch trace does not overshoot."),
    Explorable(
        "forward_backward",
        "Forward and backward",
        "How one small update with a trace equals redoing every update from the start.",
    ),
    Explorable("random_walk", "The random walk", "Watch three methods learn, and see which settings of α and λ work."),
    Explorable("memory", "The memory", "How a step with millions of weights touches only a few of them."),
    Explorable(
        "off_policy",
        "Off-policy learning",
        "Why TD diverges when it learns about one way of acting from another, and what other methods do.",
    ),
    Explorable(
        "step_sizes", "Step-sizes", "What step-size adaptation does to each feature, and what an outlier does to it."
    ),
)


def find(name: str | None) -> Path:
    """The file of a page, or that of the index. ValueError if there is no page of this name."""
    files = {None: INDEX} | {page.name: page.path for page in PAGES}
    if name not in files:
        raise ValueError(f"unknown page {name!r}; known are {', '.join(page.name for page in PAGES)}")
    return files[name]


def listing() -> str:
    """A line for the index and for each page: name, title and file."""
    rows = [("", "all pages", INDEX)] + [(page.name, page.title, page.path) for page in PAGES]
    return "\n".join(f"{name:<18}{title:<22}{path}" for name, title, path in rows)


def show(path: Path) -> bool:
    """Open a file in the browser, and tell whether that worked."""
    try:
        return webbrowser.open(path.as_uri())
    except webbrowser.Error:
        return False
