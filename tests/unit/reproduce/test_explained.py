"""Explanatory drawings have the model's numbers, and the pages show them as they are drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from loko.switch_model.device import load_profile
from loko.switch_model.scenario import ActionType, MatchType, Scenario
from loko.switch_model.service_curve import service_curve
from loko_testbed.reproduce.plots.explained import ENTRIES, FRAME_BYTES, main, way

IMAGES = Path(__file__).resolve().parents[3] / "docs/images"


def test_between_arrival_and_departure_lies_the_processing_time():
    profile = load_profile("zodiac-fx")
    scenario = Scenario(
        entries=ENTRIES,
        match=MatchType.FIVE_TUPLE,
        action=ActionType.OUTPUT,
        packet_sizes_bytes=(FRAME_BYTES,),
    )
    longest = service_curve(profile, scenario).longest
    stages = way(profile, longest.case)
    assert stages[-1].begin_ns - stages[0].end_ns == pytest.approx(longest.switch_ns)
    assert [stage.begin_ns for stage in stages[1:]] == [stage.end_ns for stage in stages[:-1]]
    assert stages[0].end_ns == (8 + FRAME_BYTES) * 80


def test_the_pages_show_what_is_drawn(tmp_path):
    main(tmp_path)
    for drawn in tmp_path.glob("*.svg"):
        assert drawn.read_bytes() == (IMAGES / drawn.name).read_bytes(), "run 'make drawings'"
