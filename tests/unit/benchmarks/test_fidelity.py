"""The fidelity benchmark: its own account of the profile against the firmware, its tables, pages and ring."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks import page
from benchmarks.fidelity import campaign
from benchmarks.fidelity.corners import corners, few_corners, label, table
from benchmarks.fidelity.expected import ExpectedDevice
from benchmarks.fidelity.systems import FidelitySystem, Train, instants, systems
from benchmarks.fidelity.trial import CornerResult, FidelityBudget, trial
from benchmarks.ring import admitted, ring
from loko.switch_model.device import load_profile
from loko.topology.network import shortest_path

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


def test_a_trial_comes_back_from_its_file(profile, tmp_path):
    outcome = tried(few_corners()[0], profile, tmp_path)
    assert CornerResult.of_values(json.loads(json.dumps(outcome.as_values()))) == outcome


def test_the_page_shows_what_was_measured(profile, tmp_path):
    outcome = tried(few_corners()[0], profile, tmp_path)
    kinds = systems(Path("zodiac-fx"))
    trials = [CornerResult.of_values({**outcome.as_values(), "system": kind.name}) for kind in kinds]
    values = campaign.summary(trials, kinds, machine={"processor": "a machine"}, quick=True)
    results = tmp_path / "results" / "fidelity"
    results.mkdir(parents=True)
    (results / "fidelity.json").write_text(json.dumps(values), encoding="utf-8")
    docs = tmp_path / "docs"
    docs.mkdir()
    page.main(results.parent, docs)
    text = (docs / "fidelity.md").read_text(encoding="utf-8")
    assert "a machine" in text
    assert "$" not in text
    assert outcome.corner in text
    assert (docs / "images" / "fidelity-corners.svg").is_file()


def test_flows_of_the_ring_go_the_short_way_and_fit():
    lab = ring(7)
    plan, requests = admitted(lab, hops=2, seed=1)
    assert 0 < len(plan.accepted) <= requests
    for accepted in plan.accepted:
        assert len(shortest_path(lab, accepted.flow.source, accepted.flow.destination)) == 3
