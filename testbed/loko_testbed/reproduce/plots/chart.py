"""Charts as Vega-Lite specifications: grids of panels of several kinds."""

from __future__ import annotations

from loko_testbed.reproduce.chart import Chart
from loko_testbed.reproduce.plots.annotations import annotations_of, caption_of
from loko_testbed.reproduce.plots.caption import picture
from loko_testbed.reproduce.plots.marks import INDEPENDENT, Spec
from loko_testbed.reproduce.plots.panels import panel_spec
from loko_testbed.reproduce.result import FigureResult


def chart_spec(result: FigureResult, chart: Chart, *, captioned: bool) -> Spec:
    """Return all panels of a chart, with title and claims if `captioned`."""
    others = annotations_of(result)
    columns = min(chart.columns, len(chart.panels))
    panels = [
        panel_spec(panel, others, columns=columns, name=f"zoom_{number}")
        for number, panel in enumerate(chart.panels)
    ]
    measured = f"{chart.caption}, " if chart.caption else ""
    footnote = f"{measured}{result.setting} mode{caption_of(others.bands)}"
    grid = {"concat": panels, "columns": columns, "spacing": 20, "resolve": INDEPENDENT}
    return picture(result, [grid], footnote, captioned=captioned)
