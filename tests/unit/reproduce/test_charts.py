"""Every panel of a chart is drawn reproducibly, and survives being written and read back."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from html import unescape
from pathlib import Path

import pytest
from pydantic import ValidationError
from sample_charts import BOXES, LINES, PANELS, chart_result

from loko_testbed.reproduce import plots as pictures
from loko_testbed.reproduce.chart import Chart
from loko_testbed.reproduce.report import render
from loko_testbed.reproduce.result import read_result, write_result


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.kind)
def test_each_panel_is_drawn_the_same_way_twice(panel) -> None:
    result = chart_result(Chart(panels=[panel]))
    first = pictures.svg(result)
    assert first == pictures.svg(result)
    assert ET.fromstring(first).tag.endswith("svg")


def test_a_picture_changes_with_what_it_shows() -> None:
    plain = pictures.svg(chart_result(Chart(panels=[LINES])))
    moved = LINES.model_copy(update={"references": []})
    assert pictures.svg(chart_result(Chart(panels=[moved]))) != plain


def test_panels_side_by_side() -> None:
    beside = chart_result(Chart(panels=[BOXES, LINES], columns=2))
    below = chart_result(Chart(panels=[BOXES, LINES]))
    wide, tall = (ET.fromstring(pictures.svg(result)).get("viewBox").split() for result in (beside, below))
    assert wide[2] == tall[2]
    assert float(wide[3]) < float(tall[3])


def test_a_chart_and_findings_are_read_back_as_written(tmp_path: Path) -> None:
    result = chart_result(Chart(panels=PANELS), findings={"p_us": 50.5, "error_percent": 4.0})
    path = write_result(result, tmp_path)
    assert read_result(path) == result
    assert json.loads(path.read_text())["findings"] == {"p_us": 50.5, "error_percent": 4.0}


def test_a_chart_holds_no_value_that_json_lacks() -> None:
    with pytest.raises(ValidationError):
        type(LINES.curves[0])(label="x", x=[1.0], y=[float("nan")])


def test_the_report_shows_charts_with_their_numbers() -> None:
    page = unescape(render([chart_result(Chart(panels=[BOXES]), findings={"p_fx_us": 50.25})]))
    assert page.count('class="marks"') == 1
    assert "p_fx_us" in page
    assert "50.25" in page
    assert "No guarantee of Loko's was put to the test." in page
