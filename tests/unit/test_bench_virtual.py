"""The bench around an emulated board: what it measures is what the profile says."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from evaluation.bench import buffer, campaign, data_plane, throughput
from evaluation.bench.cases import Table, all_cases, flow_mods, frame, number_of, tables
from evaluation.bench.equations import throughput_bps
from evaluation.bench.findings import find, read_samples
from evaluation.bench.profile_document import action_offsets, form_of, measured_profile, quantities
from evaluation.bench.store import SampleStore
from evaluation.bench.virtual import VirtualDevice
from evaluation.runner import RunError
from loko.device import load_profile
from loko.scenario import Action, Match, Priorities, Scenario, UsedEntry
from loko.service import processing

PROFILE = load_profile("zodiac-fx")


@pytest.fixture
def device() -> VirtualDevice:
    return VirtualDevice(seed=7)


def test_table_1_has_as_many_combinations_as_the_paper_says() -> None:
    assert all_cases() == 12_096
    assert sum(len(sizes) for _, sizes in tables()) == 12_096


def test_numbers_survive_every_action(device: VirtualDevice) -> None:
    for action in Action:
        device.load(flow_mods(Table(entries=1, match=Match.PORT, action=action)))
        passage = device.send([5_000_000] * 3, [frame(306, number) for number in range(3)])
        assert (passage.left_ns > passage.entered_ns).all(), action


def test_a_foreign_frame_has_no_number() -> None:
    assert number_of(frame(64, 17)) == 17
    assert number_of(bytes(60)) is None


@pytest.mark.parametrize("match", list(Match))
@pytest.mark.parametrize(("used", "priorities"), list(itertools.product(UsedEntry, Priorities)))
def test_processing_times_are_the_profile_s(
    device: VirtualDevice, match: Match, used: UsedEntry, priorities: Priorities
) -> None:
    table = Table(entries=33, match=match, action=Action.SET_NW_SRC, used_entry=used, priorities=priorities)
    samples = data_plane.measure(device, table, (306,), samples=60, seed=1)[306]
    (case,) = Scenario(
        entries=33,
        match=match,
        action=Action.SET_NW_SRC,
        used_entry=used,
        priorities=priorities,
        packet_sizes_bytes=(306,),
    ).cases()
    expected_ns = processing(PROFILE, case).switch_ns
    assert np.median(samples.times_ns) == pytest.approx(expected_ns, abs=PROFILE.cpu.loop_ps.value / 4000)
    assert samples.disturbed == 0


def test_frames_that_do_not_come_out_are_said(device: VirtualDevice) -> None:
    table = Table(entries=1, match=Match.PORT, action=Action.OUTPUT)
    device.load([])
    device.load = lambda _: None  # the table stays empty
    with pytest.raises(RunError, match="did not come out"):
        data_plane.measure(device, table, (64,), samples=5, seed=1)


def test_the_buffer_rule_of_section_3_5(device: VirtualDevice) -> None:
    found = {size: buffer.capacity(device, size).frames for size in (64, 306, 1516)}
    assert found == {64: 25, 306: 9, 1516: 3}


def test_throughput_is_equation_6(device: VirtualDevice) -> None:
    table = Table(entries=17, match=Match.FIVE_TUPLE, action=Action.OUTPUT)
    samples = data_plane.measure(device, table, (306,), samples=60, seed=1)[306]
    expected_bps = throughput_bps(306, float(np.median(samples.times_ns)), device.wire)
    found_bps = throughput.maximum_bps(device, table, 306, precision_bps=50_000)
    assert found_bps == pytest.approx(expected_bps, rel=0.01)


def test_an_interrupted_campaign_goes_on_where_it_was(tmp_path: Path, device: VirtualDevice) -> None:
    scenario = Scenario(entries=1, match=Match.PORT, action=Action.OUTPUT, packet_sizes_bytes=(64, 306))
    todo = campaign.parts(("dp-time",), samples=5, scenario=scenario)

    class StoppedError(Exception):
        pass

    def interrupt(part: campaign.Part) -> None:
        raise StoppedError

    with SampleStore(tmp_path / "samples", {"seed": 1}) as store:
        with pytest.raises(StoppedError):
            campaign.run(device, todo, store, seed=1, on_part=interrupt)
        first = dict(read_samples(store))
        assert len(first) == 1
        campaign.run(device, todo, store, seed=1, on_part=lambda _: None)
        everything = read_samples(store)
    assert len(everything) == len(todo) == 4
    ((name, sizes),) = first.items()
    assert {size: times.tolist() for size, times in sizes.items()} == {
        size: times.tolist() for size, times in everything[name].items()
    }


def test_samples_of_another_campaign_are_not_mixed_in(tmp_path: Path) -> None:
    with SampleStore(tmp_path / "samples", {"seed": 1}) as store:
        store.keep("a", {64: (np.array([1, 2]), 0)})
    with SampleStore(tmp_path / "samples", {"seed": 2}) as store:
        assert store.parts() == set()


def test_the_circle_closes(tmp_path: Path) -> None:
    """A campaign that knows nothing of the profile finds its numbers."""
    device = VirtualDevice(seed=5)
    todo = campaign.parts(("dp-time", "cp-time", "interference"), samples=40)
    # All tables that tell the fields apart, and every ninth of Table 1.
    kept = [
        part for place, part in enumerate(todo) if place < 26 or part.procedure != "dp-time" or not place % 9
    ]
    with SampleStore(tmp_path / "samples", {}) as store:
        campaign.run(device, kept, store, seed=5, on_part=lambda _: None)
        samples = read_samples(store)
    form = form_of("zodiac-fx")
    findings = find(samples, device.wire, action_offsets(form), PROFILE.integrated_switch.transit_ps.value)
    true = {name: number["value"] for name, number in quantities(form)}
    true["cpu.control.segment_ps"] += true["cpu.control.interrupt_ps"]
    assert findings.costs.unidentified == ()
    for name, found in findings.costs.estimates.items():
        if name in _LONG_REPLIES:
            continue
        # 1 %, or what so few samples can tell, whichever is more.
        allowed_ps = max(0.01 * abs(true[name]), 4 * found.error_ps)
        assert found.value_ps == pytest.approx(true[name], abs=allowed_ps), name
    assert findings.loop_ns == pytest.approx(PROFILE.cpu.loop_ps.value / 1000, rel=0.02)
    assert measured_profile(form, findings, name="m", title="m").measured


_LONG_REPLIES = {
    "cpu.control.description_ps",
    "cpu.control.flow_statistics_ps",
    "cpu.control.flow_statistics_entry_ps",
    "cpu.control.flow_statistics_action_ps",
}
