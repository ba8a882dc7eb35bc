"""The outcome of a reproduction study as one HTML file: it opens from disk and asks the network for nothing.

>>> import pyarrow as pa
>>> from trueonline.lab.report import Chart, Section, build
>>> data = pa.table({"λ": [0.0, 0.9, 0.0, 0.9], "error": [0.5, 0.4, 0.5, 0.3], "method": ["old", "old", "new", "new"]})
>>> chart = Chart(data, x="λ", y="error", series="method", x_title="trace decay λ", y_title="RMS error")
>>> claim = {"claim": "new is better at λ = 0.9", "verdict": "holds", "numbers": {"old": 0.4, "new": 0.3}}
>>> build("report.html", [Section("fig1", "Figure 1", "A walk.", [chart], [claim], 0.1)], {"seed": "1"})
"""

from trueonline.lab.report.page import build
from trueonline.lab.report.parts import Chart, Section

__all__ = ["Chart", "Section", "build"]
