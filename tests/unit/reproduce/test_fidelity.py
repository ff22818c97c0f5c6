"""The study of fidelity: its own account of the profile against the firmware, its tables, its numbers."""

from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import pytest

from loko.switch_model.device import load_profile
from loko.topology.network import shortest_path
from loko_testbed.reproduce.studies import fidelity, live_accuracy
from loko_testbed.reproduce.studies.fidelity_bench.corners import corners, few_corners, label, table
from loko_testbed.reproduce.studies.fidelity_bench.expected import ExpectedDevice
from loko_testbed.reproduce.studies.fidelity_bench.systems import FidelitySystem, Train, instants, systems
from loko_testbed.reproduce.studies.fidelity_bench.trial import CornerResult, FidelityBudget, trial
from loko_testbed.reproduce.studies.scale import admitted, ring

EFFORT = FidelityBudget(lone_s=0.05, overload_s=0.1, bursts=2)


@pytest.fixture(scope="module")
def profile():
    return load_profile("zodiac-fx")


def virtual() -> FidelitySystem:
    return next(kind for kind in systems(Path("zodiac-fx")) if kind.name == "virtual")


def tried(corner, profile, folder) -> CornerResult:
    with virtual().at(corner, folder) as bench:
        return trial("virtual", bench, corner, ExpectedDevice.of(profile, corner), EFFORT)


@pytest.mark.parametrize("corner", corners(), ids=label)
def test_the_firmware_keeps_to_the_profile_to_the_nanosecond(corner, profile, tmp_path):
    outcome = tried(corner, profile, tmp_path)
    errors = [error for lone in outcome.lone for error in lone.errors_ns]
    assert len(errors) == sum(lone.sent for lone in outcome.lone) > 0
    assert max(map(abs, errors)) <= 1
    assert abs(outcome.overload.error) < 1e-2
    assert all(burst.passed == burst.expected for burst in outcome.bursts)


def test_a_board_that_is_slower_than_its_profile_shows(profile, tmp_path):
    corner = corners()[0]
    with virtual().at(corner, tmp_path) as bench:
        # The expected times are those of another corner.
        other = ExpectedDevice.of(profile, corners()[4])
        outcome = trial("virtual", bench, corner, other, EFFORT)
    assert min(abs(error) for lone in outcome.lone for error in lone.errors_ns) > 1_000


def test_corners_are_all_combinations_of_extremes():
    every = corners()
    assert len(every) == len(set(map(label, every))) == 2 * 2 * 2 + 2 * 2 * 4 * 2
    assert set(few_corners()) <= set(every)
    for corner in every:
        assert len(table(corner)) == corner.entries


def test_a_device_holds_what_the_paper_counts(profile):
    held = {
        corner.frame_bytes: ExpectedDevice.of(profile, corner).capacity_frames
        for corner in corners()
        if corner.entries > 1
    }
    assert held == {64: 25, 1516: 3}  # section 3.5


def test_irregular_trains_prefer_no_phase():
    train = Train(count=1_000, interval_ns=1_000_000, spread_ns=500_000)
    gaps = [after - before for before, after in pairwise(instants(train, 0))]
    assert min(gaps) >= 750_000
    assert max(gaps) <= 1_250_000
    assert abs(sum(gaps) / len(gaps) - 1_000_000) < 5_000


def test_what_is_shown_is_what_was_measured(profile, tmp_path):
    outcome = asdict(tried(few_corners()[0], profile, tmp_path))
    rows = [{"title": f"the {kind}", **outcome, "system": kind} for kind in fidelity._SYSTEMS]
    shown = fidelity.show(rows)
    assert shown.findings["virtual_max_ns"] == shown.findings["mininet_max_ns"] <= 1
    assert [note.where for note in shown.notes] == [outcome["corner"]]
    assert [row[0] for row in shown.table.rows if row[1] == "all corners"] == [row["title"] for row in rows]


def test_flows_of_the_ring_go_the_short_way_and_fit():
    lab = ring(7)
    plan, requests = admitted(lab, hops=2, seed=1)
    assert 0 < len(plan.accepted) <= requests
    for accepted in plan.accepted:
        assert len(shortest_path(lab, accepted.flow.source, accepted.flow.destination)) == 3


def test_a_live_accuracy_of_no_packet_is_shown():
    errors = {"count": 0, "p50": 0, "p99": 0, "p999": 0, "max": 0}
    row = {"rate_pps": 1000, "error_ns": {**errors, "p50": 250}, "error_in_stalls_ns": errors, "stalls": 3}
    shown = live_accuracy.show([row])
    assert shown.findings["rate_1000_p50_us"] == 0.25
    assert [cells[-1] for cells in shown.table.rows] == ["3", "3"]
