"""Marks of the paper's numbers: each stands where its finding does, and the legend has the paper's words."""

from __future__ import annotations

from typing import Any

import pytest
from sample_charts import BOXES, COUNTS, HEAT, LINES, SCATTER, chart_result

from loko_testbed.reproduce import plots as pictures
from loko_testbed.reproduce.chart import Chart, ChartAxis, FindingPlace, Panel
from loko_testbed.reproduce.facts import Fact
from loko_testbed.reproduce.finding_checks import BetweenCheck, ComparisonCheck, NearCheck
from loko_testbed.reproduce.plots.marks import Spec
from loko_testbed.reproduce.plots.theme import PAPER
from loko_testbed.reproduce.result import Printed, TableResult

FACT = Fact(reference="fig0/time", where="fig 0", role="calibration", text="a time", value=4.0)
ONE = Printed(finding="p_us", value=4, text="about 4 us", fact="fig0/time")
RANGE = ONE.model_copy(update={"high": 6, "text": "4 to 6 us"})


def spec_of(panel: Panel, place: FindingPlace, printed: Printed = ONE) -> Spec:
    """Return the picture of a panel with the place of one finding."""
    chart = Chart(panels=[panel.model_copy(update={"findings": [place]})])
    result = chart_result(chart).model_copy(update={"printed": [printed]})
    return pictures.specification(result, captioned=False)


def marks(part: Spec, rows: Any = ()) -> list[tuple[str, dict[str, Any], list[dict[str, Any]]]]:
    """Return the marks in the paper's colour: their types, encodings and rows."""
    rows = part["data"]["values"] if "data" in part else rows
    found = []
    if PAPER in (part.get("mark", {}).get(look) for look in ("color", "stroke")):
        found.append((part["mark"]["type"], part["encoding"], rows))
    for name in ("vconcat", "concat", "layer"):
        found += [mark for inner in part.get(name, []) for mark in marks(inner, rows)]
    return found


def words(spec: Spec) -> str:
    return str(spec).replace("\n", " ")


@pytest.mark.parametrize("panel", [BOXES, LINES, SCATTER, COUNTS], ids=lambda panel: panel.kind)
def test_a_number_without_a_position_is_a_line_across_the_panel(panel: Panel) -> None:
    spec = spec_of(panel, FindingPlace(finding="p_us"))
    ((kind, encoding, rows),) = marks(spec)
    assert (kind, [row[encoding["y"]["field"]] for row in rows]) == ("rule", [4])
    assert "x" not in encoding
    assert "paper: about 4 us" in words(spec)


@pytest.mark.parametrize(("of", "other"), [("x", "y"), ("y", "x")])
def test_a_number_with_a_position_is_a_point_there(of: str, other: str) -> None:
    spec = spec_of(LINES, FindingPlace(finding="p_us", of=of, scale=0.5, offset=1, **{other: 2}))  # type: ignore[arg-type]
    ((kind, encoding, (row,)),) = marks(spec)
    assert kind == "point"
    assert (row[encoding[of]["field"]], row[encoding[other]["field"]]) == (3, 2)


@pytest.mark.parametrize("of", ["y", "second"])
def test_at_boxes_a_number_stands_at_its_place_on_its_axis(of: str) -> None:
    spec = spec_of(BOXES, FindingPlace(finding="p_us", of=of, x=1))  # type: ignore[arg-type]
    ((kind, encoding, (row,)),) = marks(spec)
    assert (kind, row[encoding["x"]["field"]], row[encoding["y"]["field"]]) == ("point", 1, 4)
    title = {"y": BOXES.y, "second": BOXES.second}[of]
    assert title is not None
    assert encoding["y"]["title"] == title.label


def test_a_range_is_a_line_between_two_points() -> None:
    drawn = {kind: rows for kind, _, rows in marks(spec_of(LINES, FindingPlace(finding="p_us", x=2), RANGE))}
    assert [[row["y"] for row in rows] for rows in drawn.values()] == [[4, 6], [4, 6]]
    assert drawn.keys() == {"line", "point"}


def test_a_cell_of_a_heatmap_is_framed_and_the_scale_of_colours_says_so() -> None:
    spec = spec_of(HEAT, FindingPlace(finding="p_us", of="cell", x=2, y=0))
    ((kind, _, (row,)),) = marks(spec)
    assert (kind, row["x"], row["y"]) == ("rect", "3", "10")
    assert "framed, paper: about 4 us" in words(spec)


def test_an_axis_with_limits_reaches_to_what_is_printed_beyond_them() -> None:
    limited = LINES.model_copy(update={"y": ChartAxis(label="output", low=1, high=3)})
    for number in (0.5, 40):
        printed = ONE.model_copy(update={"value": number})
        ((_, encoding, _),) = marks(spec_of(limited, FindingPlace(finding="p_us"), printed))
        scale = encoding["y"]["scale"]
        assert scale["domainMin"] < number < scale["domainMax"]


def test_what_the_paper_does_not_print_is_not_marked() -> None:
    in_words = ONE.model_copy(update={"value": None})
    assert not marks(spec_of(LINES, FindingPlace(finding="p_us"), in_words))
    assert not marks(spec_of(LINES, FindingPlace(finding="another_us")))


def test_a_table_has_the_papers_number_below_ours() -> None:
    table = TableResult(
        columns=["case", "time"], rows=[["one", 4.5], ["two", 100_000]], findings=[["", "p_us"], ["", ""]]
    )
    result = chart_result(Chart(panels=[LINES])).model_copy(
        update={"chart": None, "table": table, "printed": [ONE]}
    )
    ((_, _, rows),) = marks(pictures.specification(result, captioned=False))
    assert ">100000<" in pictures.svg(result).decode()
    assert [(row["paper"], row["text"]) for row in rows] == [("paper about 4 us", "4.5")]
    (row,) = rows
    assert row["line"] < row["below"] < row["y2"]


def test_a_checks_own_number_is_the_papers_only_if_its_words_have_it() -> None:
    near = NearCheck(kind="near", finding="p_us", within=1)
    assert near.printed(FACT, "about 4 us") == Printed(
        finding="p_us", value=4, text="about 4 us", fact=FACT.reference
    )
    own = near.model_copy(update={"value": 880})
    mark = own.printed(FACT, "about 0.88 ms")
    assert mark is not None
    assert mark.value == 880
    assert own.printed(FACT, "constant") is None
    assert ComparisonCheck(kind="at_most", finding="p_us", value=0.1).printed(FACT, "none") is None


def test_a_range_is_the_papers_if_its_words_have_both_ends() -> None:
    between = BetweenCheck(kind="between", finding="p_us", low=7, high=10)
    mark = between.printed(FACT, "7 to 10 us")
    assert mark is not None
    assert (mark.value, mark.high) == (7, 10)
    assert between.printed(FACT, "up to 10 us") is None
