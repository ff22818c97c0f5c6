"""Charts as data: the pictures of figures that are neither sweeps nor tables.

A chart consists of panels, which `loko_testbed.reproduce.plots` draws. Charts hold final values: quantiles,
means and errors are computed from the raw rows before a chart is made.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class _ChartModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ChartAxis(_ChartModel):
    """An axis: its name with the unit, such as ``processing time [us]``, its scale and its limits."""

    label: str
    log: bool = False
    low: float | None = None
    """Lower limit. Default: chosen to fit the values; 0 for boxes."""
    high: float | None = None
    linear_to: float | None = None
    """Makes the scale linear up to this magnitude, logarithmic beyond: for values with a few far outliers."""


class Reference(_ChartModel):
    """A straight reference line at a value of one axis, parallel to the other.

    Lines with the same label look alike.
    """

    label: str
    value: float
    axis: Literal["x", "y"] = "y"
    """The axis of `value`: with ``y`` the line is horizontal."""
    curve: str = ""
    """Label of the curve that the line belongs to, and whose colour it has."""


class FindingPlace(_ChartModel):
    """The place of a finding in a panel, at which pictures mark the number that the paper prints of it."""

    finding: str
    """Name of one of the figure's findings."""
    of: Literal["x", "y", "second", "cell"] = "y"
    """The axis that the finding is a value of; ``cell``: the colour of a heatmap's cell."""
    x: float | None = None
    """Position on the horizontal axis, or number of the place or column. None: the number is a line."""
    y: float | None = None
    """Position on the vertical axis, or number of the row."""
    scale: float = 1.0
    offset: float = 0.0
    """The value on the axis is `scale` times the finding plus `offset`."""
    words: str = ""
    """Words for the legend to follow the number, if it is not simply a value of the axis."""


class _PanelWithAxes(_ChartModel):
    """Common fields of panels with two axes."""

    title: str = ""
    x: ChartAxis
    y: ChartAxis
    findings: list[FindingPlace] = []
    """Where the panel shows which findings."""


class Span(_ChartModel):
    """A shaded range of the vertical axis over the whole width, for a value that is the same everywhere."""

    label: str
    low: float
    high: float


class BoxStatistics(_ChartModel):
    """The numbers of one box. `BoxPanel.whiskers` says which quantiles its whiskers end at."""

    whisker_low: float
    q1: float
    median: float
    q3: float
    whisker_high: float
    min: float
    max: float
    mean: float | None = None


class BoxGroup(_ChartModel):
    """The boxes of one colour: one for each place, or None where a place has no box."""

    label: str
    boxes: list[BoxStatistics | None]


class PlacedLine(_ChartModel):
    """A line or points on the second axis, with one value for each place of the boxes."""

    label: str
    y: list[float | None]
    dashed: bool = False
    """Whether the values are an end of a range rather than its middle."""
    joined: bool = True
    """Whether a line joins the values. False for categories, between which a line would mean nothing."""


class BoxPanel(_PanelWithAxes):
    """Boxes side by side at named places, optionally with lines on a second axis."""

    kind: Literal["boxes"] = "boxes"
    places: list[str]
    groups: list[BoxGroup] = Field(min_length=1)
    whiskers: str
    """The quantiles at which the whiskers end, such as ``5 % and 95 %``."""
    references: list[Reference] = []
    spans: list[Span] = []
    second: ChartAxis | None = None
    lines: list[PlacedLine] = []


class ChartCurve(_ChartModel):
    """A line through points; it has a gap where `y` is None."""

    label: str
    x: list[float]
    y: list[float | None]
    low: list[float] | None = None
    """Lower ends of the error bars; `high` has the upper ends."""
    high: list[float] | None = None
    marker: bool = True
    dashed: bool = False
    steps: bool = False
    """Whether the curve is drawn as steps, such as a distribution function."""
    curve: str = ""
    """Label of another curve that this one belongs to, and whose colour it has."""


class ScaledAxes(_ChartModel):
    """Axes above and on the right that show the values of the axes below and on the left, multiplied."""

    factor: float = Field(gt=0)
    x: str
    """Label of the axis above."""
    y: str
    """Label of the axis on the right."""


class LinePanel(_PanelWithAxes):
    """Curves over a numeric axis, including cumulative distributions (`ChartCurve.steps`)."""

    kind: Literal["lines"] = "lines"
    curves: list[ChartCurve] = Field(min_length=1)
    references: list[Reference] = []
    scaled: ScaledAxes | None = None


class Cloud(_ChartModel):
    """Points of one colour."""

    label: str
    x: list[float]
    y: list[float]


class ScatterPanel(_PanelWithAxes):
    """Clouds of points in the plane."""

    kind: Literal["scatter"] = "scatter"
    clouds: list[Cloud] = Field(min_length=1)
    diagonal: bool = False
    """Whether the line of equal numbers is drawn."""
    references: list[Reference] = []


class HeatPanel(_PanelWithAxes):
    """A grid of cells coloured by their values; cells that are None (not feasible) stay white."""

    kind: Literal["heatmap"] = "heatmap"
    value: ChartAxis
    """The axis of the colours."""
    x_values: list[float]
    y_values: list[float]
    x_names: list[str] = []
    """Names of the columns, for use in place of `x_values` where these are not numbers."""
    y_names: list[str] = []
    cells: list[list[float | None]]
    """One row for each of `y_values`, with one cell for each of `x_values`."""


class TimePanel(_PanelWithAxes):
    """Samples over time, each drawn as a dot: for more samples than lines could show."""

    kind: Literal["time"] = "time"
    clouds: list[Cloud] = Field(min_length=1)
    references: list[Reference] = []


class HistogramSeries(_ChartModel):
    """The counts of one colour, one for each bin between the panel's edges."""

    label: str
    counts: list[float]


class Overflow(_ChartModel):
    """A count that has no place on the axis, such as of packets that never arrived."""

    label: str
    count: float
    text: str
    """The count as text, with its unit."""


class ShareAnnotation(_ChartModel):
    """A share of what a histogram counts, shown beside the paper's value where the paper prints one."""

    name: str
    finding: str
    """Name of the figure's finding that holds this share in per cent."""
    text: str
    """The share as text, with its unit."""


class HistogramPanel(_PanelWithAxes):
    """One or more histograms over the same bins."""

    kind: Literal["histogram"] = "histogram"
    edges: list[float] = Field(min_length=2)
    histograms: list[HistogramSeries] = Field(min_length=1)
    overflow: Overflow | None = None
    """A column drawn beyond the end of the axis."""
    shares: list[ShareAnnotation] = []
    """Shares for which a paper may print a value; the first is that of `overflow`."""
    references: list[Reference] = []


class TimelineBar(_ChartModel):
    """A bar of a timeline: its row is filled from `begin` to `end`."""

    label: str
    """Bars with the same label look alike."""
    begin: float
    end: float


class TimelineInstant(_ChartModel):
    """An instant of a timeline."""

    label: str
    at: float


class TimelineRow(_ChartModel):
    """A row of a timeline: its name, its bars in the order of drawing, and instants below them."""

    name: str
    bars: list[TimelineBar] = Field(min_length=1)
    instants: list[TimelineInstant] = []


class TimelinePanel(_ChartModel):
    """Bars over time in named rows, from top to bottom."""

    kind: Literal["timeline"] = "timeline"
    title: str = ""
    x: ChartAxis
    rows: list[TimelineRow] = Field(min_length=1)


Panel = Annotated[
    BoxPanel | LinePanel | ScatterPanel | HeatPanel | TimePanel | HistogramPanel | TimelinePanel,
    Field(discriminator="kind"),
]


class Chart(_ChartModel):
    """The panels of a picture, filled in row by row."""

    panels: list[Panel] = Field(min_length=1)
    columns: int = Field(default=1, ge=1)
    caption: str = ""
    """How much was measured, such as ``100 packets a combination``; shown in the lower corner."""
