"""At an emulated board, the bench measures what the profile says."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from loko.switch_model.device import load_profile, profile_text
from loko.switch_model.scenario import (
    TABLE_1_MATCHES,
    ActionType,
    MatchType,
    PriorityOrder,
    Scenario,
    UsedEntry,
)
from loko.switch_model.service_curve import processing
from loko_testbed.instruments.numbered_frame import frame, frames, number_of, numbers_of
from loko_testbed.measure.bench import campaign
from loko_testbed.measure.bench.cases import TableCase, flow_mods, tables
from loko_testbed.measure.bench.equations import throughput_bps
from loko_testbed.measure.bench.part import Key, MeasurementPart, NoFrameLength, SampleSet, counts
from loko_testbed.measure.bench.procedures import (
    backlog,
    buffer,
    cp_time,
    dp_time,
    housekeeping,
    idle,
    table,
    throughput,
)
from loko_testbed.measure.bench.procedures.backlog import busy, timers
from loko_testbed.measure.bench.store import SampleStore
from loko_testbed.measure.bench.virtual import VirtualDevice
from loko_testbed.simulation.runner import RunError

PROFILE = load_profile("zodiac-fx")


@pytest.fixture
def device() -> VirtualDevice:
    return VirtualDevice(seed=7)


def test_table_1_has_as_many_combinations_as_the_paper_says() -> None:
    assert sum(len(sizes) for _, sizes in tables()) == 12_096


def test_numbers_survive_every_action(device: VirtualDevice) -> None:
    for action in ActionType:
        device.load(flow_mods(TableCase(entries=1, match=MatchType.PORT, action=action)))
        passage = device.send([5_000_000] * 3, [frame(306, number) for number in range(3)])
        assert (passage.left_ns > passage.entered_ns).all(), action


def test_a_foreign_frame_has_no_number() -> None:
    assert number_of(frame(64, 17)) == 17
    assert number_of(bytes(60)) is None


def test_many_numbers_are_read_as_each_alone() -> None:
    every = [frame(64, 17), bytes(60), frame(306, 2**32 - 1)]
    tails = np.array([int.from_bytes(data[-8:], "big") for data in every], dtype=np.uint64)
    numbered, numbers = numbers_of(tails)
    assert numbered.tolist() == [True, False, True]
    assert numbers.tolist() == [17, 2**32 - 1]
    assert frames(306, 3) == [frame(306, number) for number in range(3)]


def test_frames_wait_for_those_in_front_of_them(device: VirtualDevice) -> None:
    device.load(flow_mods(TableCase(entries=1, match=MatchType.PORT, action=ActionType.OUTPUT)))
    wire, begun_ns = device.wire, device.now_ns
    sizes = [1516, 64, 306, 64]
    passage = device.send([0, 0, 1_000_000, 500], [frame(size, at) for at, size in enumerate(sizes)])
    preamble_ns, gap_ns = wire.preamble_ns, wire.time_ns(wire.gap_bytes)
    taken_ns = [preamble_ns + wire.time_ns(size) + gap_ns for size in sizes]
    waits_ns = [0, taken_ns[0], 1_000_000, taken_ns[2]]
    assert passage.entered_ns.tolist() == [
        begun_ns + preamble_ns + sum(waits_ns[: place + 1]) for place in range(len(sizes))
    ]
    assert (passage.left_ns > passage.entered_ns).all()


@pytest.mark.parametrize("match", TABLE_1_MATCHES)
@pytest.mark.parametrize(("used", "priorities"), list(itertools.product(UsedEntry, PriorityOrder)))
def test_processing_times_are_the_profile_s(
    device: VirtualDevice, match: MatchType, used: UsedEntry, priorities: PriorityOrder
) -> None:
    table = TableCase(
        entries=33, match=match, action=ActionType.SET_NW_SRC, used_entry=used, priorities=priorities
    )
    ((_, samples),) = dp_time.measure(device, 1, table=table, sizes=(306,), samples=60)
    (case,) = Scenario(
        entries=33,
        match=match,
        action=ActionType.SET_NW_SRC,
        used_entry=used,
        priorities=priorities,
        packet_sizes_bytes=(306,),
    ).cases()
    expected_ns = processing(PROFILE, case).switch_ns
    assert np.median(samples.values) == pytest.approx(expected_ns, abs=PROFILE.cpu.loop_ps.value / 4000)
    assert samples.left_out == 0


def test_frames_that_do_not_come_out_are_said(device: VirtualDevice) -> None:
    table = TableCase(entries=1, match=MatchType.PORT, action=ActionType.OUTPUT)
    device.load([])
    device.load = lambda _: None  # the table stays empty
    with pytest.raises(RunError, match="did not come out"):
        list(dp_time.measure(device, 1, table=table, sizes=(64,), samples=5))


def test_the_buffer_rule_of_section_3_5(device: VirtualDevice) -> None:
    frames_held = {size: buffer.capacity(device, size).frames for size in (64, 306, 1516)}
    assert frames_held == {64: 25, 306: 9, 1516: 3}


def test_throughput_is_equation_6(device: VirtualDevice) -> None:
    table = TableCase(entries=17, match=MatchType.FIVE_TUPLE, action=ActionType.OUTPUT)
    ((_, samples),) = dp_time.measure(device, 1, table=table, sizes=(306,), samples=60)
    expected_bps = throughput_bps(306, float(np.median(samples.values)), device.wire)
    found_bps = throughput.maximum_bps(device, table, 306, precision_bps=50_000)
    assert found_bps == pytest.approx(expected_bps, rel=0.01)


def test_an_interrupted_campaign_goes_on_where_it_was(tmp_path: Path, device: VirtualDevice) -> None:
    scenario = Scenario(
        entries=1, match=MatchType.PORT, action=ActionType.OUTPUT, packet_sizes_bytes=(64, 306)
    )
    todo = campaign.parts((dp_time.PROCEDURE,), samples=5, scenario=scenario)

    keys = [part.key for part in todo]

    class StoppedError(Exception):
        pass

    def interrupt(part: MeasurementPart) -> None:
        raise StoppedError

    store = SampleStore(tmp_path / "samples", {"seed": 1})
    with pytest.raises(StoppedError):
        campaign.run(device, todo, store, seed=1, on_part=interrupt)
    first = dict(store.samples(keys))
    assert len(first) == 1
    campaign.run(device, todo, store, seed=1, on_part=lambda _: None)
    everything = store.samples(keys)
    assert len(everything) == len(todo) == 4
    ((name, sizes),) = first.items()
    assert {size: times.tolist() for size, times in sizes.items()} == {
        size: times.tolist() for size, times in everything[name].items()
    }


class Silent(VirtualDevice):
    """Falls silent at its third table, until it is power-cycled or `for_good`."""

    def __init__(self, *, for_good: bool) -> None:
        self.for_good = for_good
        self.loads = 0
        self.revivals = 0
        super().__init__(seed=1)

    def load(self, messages: Sequence[bytes]) -> None:
        self.loads += 1
        if self.loads == 3 or (self.for_good and self.loads > 3):
            raise RunError("the switch sends no message")
        super().load(messages)

    def revive(self) -> bool:
        self.revivals += 1
        return True


def test_a_switch_that_falls_silent_is_revived_once(tmp_path: Path, device: VirtualDevice) -> None:
    scenario = Scenario(
        entries=1, match=MatchType.PORT, action=ActionType.OUTPUT, packet_sizes_bytes=(64, 306)
    )
    todo = campaign.parts((dp_time.PROCEDURE,), samples=5, scenario=scenario)
    for bench in (silent := Silent(for_good=False)), device:
        store = SampleStore(tmp_path / bench.__class__.__name__, {})
        campaign.run(bench, todo, store, seed=1, on_part=lambda _: None)
        keys = {part.key for part in todo}
        assert store.complete_among(keys) == keys
    assert silent.revivals == 1
    store = SampleStore(tmp_path / "for good", {})
    with pytest.raises(RunError, match="no message"):
        campaign.run(gone := Silent(for_good=True), todo, store, seed=1, on_part=lambda _: None)
    assert gone.revivals == 1


def test_samples_of_another_campaign_are_not_mixed_in(tmp_path: Path) -> None:
    key = Key("a", ("b",))
    part = MeasurementPart(
        key, lambda *_: {NoFrameLength.CONTEXT: counts(3), 64: SampleSet(np.array([1, 2]), 5)}
    )
    store = SampleStore(tmp_path, {"seed": 1})
    campaign.run(VirtualDevice(seed=1), [part], store, seed=1, on_part=lambda _: None)
    assert [(size, times.tolist(), left_out) for _, size, times, left_out in store.rows([key])] == [
        (-1, [3], 0),
        (64, [1, 2], 5),
    ]
    another = SampleStore(tmp_path, {"seed": 2})
    assert another.complete_among([key]) == set()
    assert not another.samples([key])


def test_a_part_gives_the_same_samples_whatever_was_measured_before() -> None:
    todo = campaign.parts((idle.PROCEDURE, table.PROCEDURE, cp_time.PROCEDURE), samples=3)[-3:]
    alone = VirtualDevice(seed=1)
    alone.begin(9)
    (wanted,) = todo[-1].measure(alone, 9).values()
    after = VirtualDevice(seed=1)
    for part in todo:
        after.begin(9)
        (again,) = part.measure(after, 9).values()
    assert again[0].tolist() == wanted[0].tolist()


def test_the_table_is_filled_until_the_switch_refuses(device: VirtualDevice, tmp_path: Path) -> None:
    assert table.entries(device) == 128
    smaller = tmp_path / "smaller.toml"
    smaller.write_text(profile_text("zodiac-fx", entries=77))
    assert table.entries(VirtualDevice(str(smaller))) == 77


def test_the_firmware_s_jobs_show_if_they_are_on(device: VirtualDevice) -> None:
    trains = [busy(backlog.measure(device).values) for _ in range(3)]
    known = timers([train for train in trains if train])
    assert known is not None
    assert known.cost_ns == pytest.approx(PROFILE.cpu.timers.cost_ps.value / 1000, rel=0.001)
    assert known.period_ns == pytest.approx(PROFILE.cpu.timers.period_ns.value, rel=0.001)
    on = [busy(backlog.measure(device.with_housekeeping()).values) for _ in range(3)]
    numbers = housekeeping.numbers([train for train in on if train], known)
    costs = PROFILE.cpu.housekeeping
    assert {name.rsplit(".", 1)[1]: round(number.value) for name, number in numbers.items()} == {
        "port_counters_ps": costs.port_counters_ps.value,
        "link_status_ps": costs.link_status_ps.value,
        "flow_timeouts_ps": costs.flow_timeouts_ps.value,
    }
