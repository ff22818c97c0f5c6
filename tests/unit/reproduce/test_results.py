"""Results on disk: each type's own fields, and only those."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sample_charts import LINES, chart_result, traffic_result

from loko.document import InputError
from loko_testbed.reproduce.chart import Chart
from loko_testbed.reproduce.result import (
    DelayQuantiles,
    FigureResult,
    PointResult,
    Series,
    TrafficResult,
    read_result,
    write_result,
)

_OF_TRAFFIC = {"series", "boards", "guarantee_ms", "floor_ms"}
_DELAYS = DelayQuantiles(min=1, p1=1, p25=1, p50=2, p75=3, p99=3, max=3)
_POINT = PointResult(
    x=1, packets=10, lost=1, loss=0.1, late=2, explained=0, guaranteed=True, delay_ms=_DELAYS
)
_SWEEP = traffic_result(
    None,
    series=[Series(label="H1->H3", flow=0, points=[_POINT])],
    boards={"s1": {"received": 20}},
    findings={"guarantee_ms": 4.1234567, "least_delay_ms": 0.5},
)


@pytest.mark.parametrize("result", [_SWEEP, chart_result(Chart(panels=[LINES]))])
def test_a_result_is_read_as_what_it_was_written(tmp_path: Path, result: FigureResult) -> None:
    path = write_result(result, tmp_path)
    again = read_result(path)
    assert again == result
    assert type(again) is type(result)
    first = path.read_bytes()
    assert write_result(again, tmp_path).read_bytes() == first


def test_only_traffic_has_series_boards_and_bounds(tmp_path: Path) -> None:
    sweep = json.loads(write_result(_SWEEP, tmp_path).read_bytes())
    assert sweep.keys() >= {"series", "boards", "guarantee_ms", "floor_ms"}
    assert (sweep["guarantee_ms"], sweep["floor_ms"]) == (4.123457, 0.5)
    other = json.loads(write_result(chart_result(Chart(panels=[LINES])), tmp_path).read_bytes())
    assert not other.keys() & _OF_TRAFFIC
    assert not FigureResult.model_fields.keys() & _OF_TRAFFIC


def test_broken_guarantees_are_those_of_the_counted_packets() -> None:
    assert _SWEEP.violations == 3
    assert _SWEEP.breaks_ours
    assert chart_result(Chart(panels=[LINES])).violations == 0


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ({"series": 3}, "series: Input should be a valid array"),
        ({"mode": 3}, "mode: Input should be a valid string"),
        ({"what": 1}, "what: Extra inputs"),
    ],
)
def test_damage_is_one_line_that_names_the_key(tmp_path: Path, damage: dict[str, int], told: str) -> None:
    path = write_result(_SWEEP, tmp_path)
    path.write_text(json.dumps(json.loads(path.read_bytes()) | damage))
    with pytest.raises(InputError, match=f"damaged result \\({told}") as refused:
        read_result(path)
    assert "\n" not in str(refused.value)


def test_a_result_with_empty_series_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    path = write_result(chart_result(Chart(panels=[LINES])), tmp_path)
    empty = {"series": [], "boards": {}, "guarantee_ms": None, "floor_ms": None}
    path.write_text(json.dumps(json.loads(path.read_bytes()) | empty))
    earlier = read_result(path)
    assert isinstance(earlier, TrafficResult)
    assert earlier.counted == []
