"""Pictures as data: what is drawn of a figure that is neither a sweep nor a table.

A chart has panels; `evaluation.pictures` draws them. All values are finished: whatever is computed of the raw
rows (quantiles, means, errors) is computed before.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Element(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ChartAxis(_Element):
    """An axis: its name with the unit, such as ``processing time [us]``, and what it shows."""

    label: str
    log: bool = False
    low: float | None = None
    """Where it begins. Default: as the values want it; 0 for boxes."""
    high: float | None = None
    linear_to: float | None = None
    """Linear from 0 up to this size on both sides, beyond it logarithmic: where a few values are far out."""


class Reference(_Element):
    """A straight line that something is compared with, along the other axis.

    Those of one label look alike.
    """

    label: str
    value: float
    axis: Literal["x", "y"] = "y"
    """The axis on which `value` is: with ``y`` the line is horizontal."""


class Span(_Element):
    """A range of the vertical axis, over the whole width: of a value that is the same at all places."""

    label: str
    low: float
    high: float


class BoxStatistics(_Element):
    """One box. The ends of its whiskers are quantiles that the group names."""

    whisker_low: float
    q1: float
    median: float
    q3: float
    whisker_high: float
    min: float
    max: float
    mean: float | None = None


class BoxGroup(_Element):
    """The boxes of one colour, one for each place; None where there is none."""

    label: str
    boxes: list[BoxStatistics | None]


class PlacedLine(_Element):
    """Values at the places of boxes, on the second axis."""

    label: str
    y: list[float | None]
    dashed: bool = False
    """The end of a range and not its middle."""
    joined: bool = True
    """By a line: where the places are numbers. Between categories there is nothing to be read off."""


class BoxPanel(_Element):
    """Boxes at named places side by side, with lines on a second axis if wanted."""

    kind: Literal["boxes"] = "boxes"
    title: str = ""
    x: ChartAxis
    y: ChartAxis
    places: list[str]
    groups: list[BoxGroup] = Field(min_length=1)
    whiskers: str
    """What the whiskers reach to, such as ``5 % and 95 %``."""
    references: list[Reference] = []
    spans: list[Span] = []
    second: ChartAxis | None = None
    lines: list[PlacedLine] = []


class Curve(_Element):
    """A line through points; where `y` is None it is broken."""

    label: str
    x: list[float]
    y: list[float | None]
    low: list[float] | None = None
    """Lower ends of error bars, with `high` their upper ends."""
    high: list[float] | None = None
    marker: bool = True
    dashed: bool = False
    steps: bool = False
    """Drawn as stairs, such as a distribution function."""


class LinePanel(_Element):
    """Lines over a number. Also cumulative distributions, with `steps`."""

    kind: Literal["lines"] = "lines"
    title: str = ""
    x: ChartAxis
    y: ChartAxis
    curves: list[Curve] = Field(min_length=1)
    references: list[Reference] = []


class Cloud(_Element):
    """Points of one colour."""

    label: str
    x: list[float]
    y: list[float]


class ScatterPanel(_Element):
    """Points of two numbers each."""

    kind: Literal["scatter"] = "scatter"
    title: str = ""
    x: ChartAxis
    y: ChartAxis
    clouds: list[Cloud] = Field(min_length=1)
    diagonal: bool = False
    """Whether the line of equal numbers is drawn."""
    references: list[Reference] = []


class HeatPanel(_Element):
    """A number over two others as colour; what is None (not feasible) stays white."""

    kind: Literal["heatmap"] = "heatmap"
    title: str = ""
    x: ChartAxis
    y: ChartAxis
    value: ChartAxis
    """The axis of the colours."""
    x_values: list[float]
    y_values: list[float]
    x_names: list[str] = []
    """In place of the values, where these are not numbers."""
    y_names: list[str] = []
    cells: list[list[float | None]]
    """A row for each of `y_values`, in it a cell for each of `x_values`."""


class TimePanel(_Element):
    """Samples over time, each a dot: for many more than lines could show."""

    kind: Literal["time"] = "time"
    title: str = ""
    x: ChartAxis
    y: ChartAxis
    clouds: list[Cloud] = Field(min_length=1)
    references: list[Reference] = []


class Histogram(_Element):
    """Counts of one colour between the panel's edges."""

    label: str
    counts: list[float]


class Apart(_Element):
    """A count that has no place on the axis, such as of packets that never arrived."""

    label: str
    count: float
    told: str
    """The count in words, with its unit."""


class Share(_Element):
    """A share of what a histogram counts; what the paper prints of it is told beside it."""

    name: str
    finding: str
    """The finding of the figure that has it in per cent."""
    told: str
    """In words, with its unit."""


class HistogramPanel(_Element):
    """Counts between edges, which the histograms share."""

    kind: Literal["histogram"] = "histogram"
    title: str = ""
    x: ChartAxis
    y: ChartAxis
    edges: list[float] = Field(min_length=2)
    histograms: list[Histogram] = Field(min_length=1)
    apart: Apart | None = None
    """Drawn beyond the end of the axis, as it has no place on it."""
    shares: list[Share] = []
    """Those that a paper may print something of; the first is what stands apart."""
    references: list[Reference] = []


Panel = Annotated[
    BoxPanel | LinePanel | ScatterPanel | HeatPanel | TimePanel | HistogramPanel,
    Field(discriminator="kind"),
]


class Chart(_Element):
    """The panels of a picture, row by row."""

    panels: list[Panel] = Field(min_length=1)
    columns: int = Field(default=1, ge=1)
    caption: str = ""
    """How much was measured, such as ``100 packets a combination``: a line in the lower corner."""
