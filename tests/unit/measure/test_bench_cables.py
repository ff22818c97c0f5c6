"""A cable pulled during a measurement gives one line and no wrong samples, and the bench can resume."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from loko.switch_model.scenario import ActionType, MatchType
from loko_testbed.instruments.numbered_frame import frame
from loko_testbed.instruments.numbered_table import IN_PORT, OUT_PORT
from loko_testbed.measure.bench import campaign
from loko_testbed.measure.bench.cables import UnpluggedError
from loko_testbed.measure.bench.cases import TableCase, flow_mods
from loko_testbed.measure.bench.device import BenchDevice
from loko_testbed.measure.bench.part import Design, Key, MeasurementPart, Procedure
from loko_testbed.measure.bench.procedures import PROCEDURES, cp_time, dp_time, table, throughput
from loko_testbed.measure.bench.simulated_switch import SimulatedSwitch
from loko_testbed.measure.bench.store import SampleStore
from loko_testbed.measure.bench.virtual import VirtualDevice

SAMPLES = 3
FIRST = campaign.parts((dp_time.PROCEDURE,), samples=SAMPLES, design=Design.REDUCED)[0]
"""This part is complete before the cable is pulled."""
SHORT = Key("dp-time", ("short",))
WITHOUT_FRAMES = {cp_time.PROCEDURE, table.PROCEDURE}
"""They send no frames through the ports, but notice a pulled cable all the same."""


def part_of(procedure: Procedure) -> MeasurementPart:
    return campaign.parts((procedure,), samples=SAMPLES, design=Design.REDUCED)[-1]


def no_link(port: int, part: Key) -> str:
    return f"the cable of port {port} had no link while '{part}' was measured"


def measure(path: Path, device: BenchDevice, todo: list[MeasurementPart], on_part=lambda part: None) -> None:
    store = SampleStore(path, {"seed": 1})
    campaign.run(device, todo, store, seed=1, on_part=on_part)


def kept(path: Path, todo: list[MeasurementPart]) -> tuple[set[Key], dict[tuple[Key, int], list[int]]]:
    keys = {part.key for part in todo}
    store = SampleStore(path, {"seed": 1})
    samples = {(part, size): times.tolist() for part, size, times, _ in store.rows(keys)}
    return store.complete_among(keys), samples


@pytest.mark.parametrize("port", [IN_PORT, OUT_PORT])
@pytest.mark.parametrize("procedure", PROCEDURES, ids=lambda procedure: procedure.name)
def test_a_cable_that_is_pulled_in_a_part(procedure, port, tmp_path):
    todo = [FIRST, part_of(procedure)]
    device = VirtualDevice()

    def pull(part: MeasurementPart) -> None:
        if part is FIRST:
            device.cables.unplug(port, after_frames=0 if procedure in WITHOUT_FRAMES else 5)

    with pytest.raises(UnpluggedError) as error:
        measure(tmp_path / "pulled", device, todo, pull)
    assert str(error.value) == (
        f"zodiac-fx: {no_link(port, todo[1].key)}, so that does not count: plug it in and run the command"
        " again; what was measured before is kept"
    )
    assert kept(tmp_path / "pulled", todo)[0] == {FIRST.key}
    device.cables.plug(port)
    measure(tmp_path / "pulled", device, todo)
    measure(tmp_path / "undisturbed", VirtualDevice(), todo)
    assert kept(tmp_path / "pulled", todo) == kept(tmp_path / "undisturbed", todo)


def test_a_cable_that_is_plugged_in_again_at_once(tmp_path):
    device = VirtualDevice()

    def measured(device: VirtualDevice, _: int) -> dict[int, tuple[np.ndarray, int]]:
        device.cables.unplug(OUT_PORT)
        device.cables.plug(OUT_PORT)
        return {64: (np.array([1], dtype=np.int64), 0)}

    part = MeasurementPart(SHORT, measured)
    with pytest.raises(UnpluggedError, match=no_link(OUT_PORT, SHORT)):
        measure(tmp_path / "samples", device, [part])
    assert kept(tmp_path / "samples", [part]) == (set(), {})


def test_what_a_procedure_makes_of_lost_frames_is_not_told(tmp_path):
    device = VirtualDevice()

    def measured(device: VirtualDevice, _: int) -> dict[int, tuple[np.ndarray, int]]:
        device.cables.unplug(IN_PORT)
        raise IndexError("no frame has come out")

    with pytest.raises(UnpluggedError, match="the cable of port 1 had no link"):
        measure(tmp_path / "samples", device, [MeasurementPart(SHORT, measured)])


def test_refusals_of_a_switch_do_not_hide_a_cable(tmp_path):
    device = VirtualDevice()
    device.cables.unplug(IN_PORT)
    store = SampleStore(tmp_path / "samples", {})
    with pytest.raises(UnpluggedError):
        campaign.run(device, [FIRST], store, seed=1, on_part=print, on_refusal=print)


@pytest.mark.parametrize("port", [IN_PORT, OUT_PORT])
@pytest.mark.parametrize("after_frames", [0, 5])
def test_a_switch_of_another_kind(port, after_frames, tmp_path):
    todo = [throughput.forwarding_rate((512,))]
    device = SimulatedSwitch("banana-pi-r1")
    device.cables.unplug(port, after_frames=after_frames)
    with pytest.raises(UnpluggedError, match=no_link(port, todo[0].key)):
        measure(tmp_path / "samples", device, todo)
    assert kept(tmp_path / "samples", todo)[0] == set()
    device.cables.plug(port)
    measure(tmp_path / "samples", device, todo)
    measure(tmp_path / "undisturbed", SimulatedSwitch("banana-pi-r1"), todo)
    assert kept(tmp_path / "samples", todo) == kept(tmp_path / "undisturbed", todo)


def test_frames_of_a_simulated_switch_are_lost_with_its_cable():
    switch = SimulatedSwitch("banana-pi-r1")
    switch.load(flow_mods(TableCase(entries=1, match=MatchType.FIVE_TUPLE, action=ActionType.OUTPUT)))
    frames = [frame(512, number) for number in range(20)]
    whole = switch.send([1_000_000] * 20, frames)
    switch.cables.unplug(OUT_PORT, after_frames=10)
    cut = switch.send([1_000_000] * 20, frames)
    assert 0 < np.count_nonzero(cut.left_ns >= 0) < np.count_nonzero(whole.left_ns >= 0)
