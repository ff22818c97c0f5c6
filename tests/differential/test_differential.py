"""The specification's switch does what Open vSwitch does, and the comparison would notice if it did not."""

from __future__ import annotations

from pathlib import Path
from random import Random

import compare
import pytest
from drawn_trials import draw
from emulated import EmulatedSwitch
from open_vswitch import missing
from steps import NOT_DRAWN, NOT_DRAWN_13

PAGE = Path(__file__).parents[2] / "docs" / "robustness.md"
needs_open_vswitch = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@needs_open_vswitch
@pytest.mark.parametrize("version", compare.VERSIONS.values(), ids=compare.VERSIONS)
@pytest.mark.parametrize("trial", range(4))
def test_both_switches_do_the_same(trial: int, version: int) -> None:
    """More of them: `make differential`."""
    assert compare.first_difference(draw(Random(trial), version, compare.STEPS), version) is None


@needs_open_vswitch
def test_a_lost_frame_is_found_and_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    departures = EmulatedSwitch.departures

    def without_port_2(self: EmulatedSwitch) -> list[tuple[int, bytes]]:
        return [(port, frame) for port, frame in departures(self) if port != 2]

    monkeypatch.setattr(EmulatedSwitch, "departures", without_port_2)
    steps = draw(Random(2), 1, compare.STEPS)
    difference = compare.first_difference(steps, 1)
    assert difference is not None
    reduced = compare.reduced(steps[: difference.step + 1], 1)
    assert len(reduced) <= 3
    assert compare.first_difference(reduced, 1) is not None


@pytest.mark.parametrize("reasons", [NOT_DRAWN, NOT_DRAWN_13], ids=compare.VERSIONS)
def test_the_page_tells_what_is_not_compared(reasons: dict[str, str]) -> None:
    rows = [f"| {name} | {reason} |" for name, reason in reasons.items()]
    assert [row for row in PAGE.read_text().splitlines() if row in rows] == rows
