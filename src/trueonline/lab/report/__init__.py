"""The outcome of some experiments as one HTML file: it opens from disk and asks the network for nothing.

>>> from trueonline.lab.claims import HOLDS, Claim
>>> from trueonline.lab.report import Section, build
>>> claim = Claim("new is better at λ = 0.9", HOLDS, {"old": 0.4, "new": 0.3})
>>> build("report.html", [Section("fig1", "Figure 1", "A walk.", [claim], 0.1)], {"seed": "1"})
"""

from trueonline.lab.report.page import Opening, Section, build

__all__ = ["Opening", "Section", "build"]
