"""The integrated switch without its CPU (section 3.4.1), and OpenFlow switched at the board's console."""

from __future__ import annotations

import os
import pty
import threading
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from loko.switch_model.device import load_profile, profile_text
from loko.switch_model.scenario import TABLE_1_FRAME_BYTES
from loko.units import PS_PER_NS
from loko_testbed.instruments.controller_endpoint import ControllerEndpoint
from loko_testbed.measure.bench.cost_model.fitted import fit
from loko_testbed.measure.bench.device_choice import form_of
from loko_testbed.measure.bench.equations import LinkTiming
from loko_testbed.measure.bench.inventory import ControllerPort, Hardware, InventoryPort
from loko_testbed.measure.bench.live.board_console import switch_openflow
from loko_testbed.measure.bench.part import NoFrameLength
from loko_testbed.measure.bench.procedures import dp_time, is_time
from loko_testbed.measure.bench.procedures.idle import FASTEST
from loko_testbed.measure.bench.virtual import VirtualDevice
from loko_testbed.reproduce.chart import BoxPanel
from loko_testbed.reproduce.figure_types.bench.compute import compute
from loko_testbed.reproduce.figure_types.bench.document import IntegratedSwitchFigure
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.simulation.options import Options
from loko_testbed.simulation.runner import RunError
from loko_testbed.tasks.progress import NoProgress

CHIP = load_profile("zodiac-fx").integrated_switch
TRANSIT_NS = CHIP.transit_ps.value // PS_PER_NS
JITTER_NS = CHIP.bridging_jitter_ps.value // PS_PER_NS


def test_frames_of_all_sizes_take_the_chips_time_uniformly() -> None:
    times = is_time.measure(VirtualDevice(seed=7).without_cpu(), samples=1_000, seed=1)
    assert tuple(times) == TABLE_1_FRAME_BYTES
    for of_size in times.values():
        shares = (np.sort(of_size.values) - (TRANSIT_NS - JITTER_NS)) / (2 * JITTER_NS)
        assert 0 <= shares[0] < shares[-1] <= 1
        # Kolmogorov and Smirnov: of uniform times, one set in 1,000 differs by more.
        assert np.abs(shares - np.linspace(0, 1, 1_000)).max() < 1.95 / np.sqrt(1_000)


def test_without_jitter_all_frames_take_the_same_time(tmp_path: Path) -> None:
    device = VirtualDevice(with_jitter(tmp_path, 0), seed=7).without_cpu()
    for of_size in is_time.measure(device, samples=20, seed=1).values():
        assert np.unique(of_size.values).tolist() == [TRANSIT_NS]
        assert of_size.left_out == 0


def test_the_longest_time_is_in_the_middle_of_what_footnote_1_allows() -> None:
    wire = LinkTiming()
    allowed_ns = [is_time.longest_that_suffices_ns(size, wire) for size in (is_time.FOOTNOTE_BYTES, 64)]
    assert sum(allowed_ns) / 2 == TRANSIT_NS + JITTER_NS


def test_the_argument_of_section_3_4_1_and_its_footnote() -> None:
    wire = LinkTiming()
    assert is_time.longest_that_suffices_ns(64, wire) == pytest.approx(3_400)
    assert is_time.longest_that_suffices_ns(48, wire) == pytest.approx(2_760)
    comparison = is_time.compare({48: 3_000.0, 64: 3_000.0}, {48: 60_000.0, 64: 61_000.0}, wire)
    assert comparison[48].switch_bps < is_time.PASSES * comparison[48].inner_link_bps
    assert comparison[64].switch_bps > is_time.PASSES * comparison[64].inner_link_bps
    assert not any(of_size.is_bottleneck for of_size in comparison.values())
    assert is_time.compare({64: 20_000.0}, {}, wire)[64].is_bottleneck


class Endpoint:
    """The controller's end of a board's connection. The board obeys its console, or does not."""

    def __init__(self, *, obeys: bool) -> None:
        self._obeys = obeys

    def accept(self, _timeout_s: float) -> int | None:
        return 1 if self._obeys else None

    def wait_closed(self, _timeout_s: float) -> bool:
        return self._obeys


def hardware(console: str | None) -> Hardware:
    return Hardware(
        kind="hardware",
        name="dut",
        ports={1: InventoryPort(interface="b1"), 2: InventoryPort(interface="b2")},
        controller=ControllerPort(interface="lo", listen="127.0.0.1:6653"),
        console=console,
    )


@pytest.mark.parametrize(("on", "word"), [(False, b"disable"), (True, b"enable")])
def test_openflow_is_switched_at_the_console(on: bool, word: bytes) -> None:
    near, far = pty.openpty()
    typed = bytearray()

    def read() -> None:
        while not typed.endswith(b"exit\r") or word not in typed:
            typed.extend(os.read(near, 1000))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    endpoint = cast(ControllerEndpoint, Endpoint(obeys=True))
    switch_openflow(hardware(os.ttyname(far)), endpoint, on=on)
    reader.join()
    assert bytes(typed).lstrip(b"\x7f").split(b"\r") == [b"", b"exit", b"openflow", word, b"exit", b""]
    os.close(near)
    os.close(far)


def test_without_a_console_it_is_asked_for_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    switch_openflow(hardware(None), cast(ControllerEndpoint, Endpoint(obeys=True)), on=False)
    (line,) = capsys.readouterr().err.splitlines()
    assert "type 'openflow' and 'disable'" in line
    with pytest.raises(RunError, match="dut: the board keeps its connection after 'disable'"):
        switch_openflow(hardware(None), cast(ControllerEndpoint, Endpoint(obeys=False)), on=False)


def test_a_console_that_is_not_there_is_said() -> None:
    with pytest.raises(RunError, match="console /dev/nothing: No such file"):
        switch_openflow(hardware("/dev/nothing"), cast(ControllerEndpoint, Endpoint(obeys=True)), on=True)


@pytest.mark.parametrize(("late_ns", "is_told"), [(0, True), (50, True), (8_000, False)])
def test_an_emulator_that_is_late_does_not_tell_the_transit(late_ns: int, is_told: bool) -> None:
    lone = {dp_time.PROCEDURE.key(FASTEST): {64: np.arange(60_000, 64_900, 49)}}
    through = {is_time.ALONE: {64: np.full(9, 2_070 + late_ns), NoFrameLength.CONTEXT: np.array([late_ns])}}
    numbers = fit({**lone, **through}, LinkTiming(), form_of("zodiac-fx")).numbers
    assert ("integrated_switch.transit_ps" in numbers) is is_told


def with_jitter(tmp_path: Path, jitter_ps: int) -> str:
    """Write a profile whose integrated switch has this jitter, and return its path."""
    path = tmp_path / "zodiac-fx.toml"
    text = profile_text("zodiac-fx", "integrated_switch", bridging_jitter_ps=jitter_ps)
    path.write_text(text, encoding="utf-8")
    return str(path)


def outcome_with(profile: str, tmp_path: Path) -> Outcome:
    """Compute figure 10d for a switch with this profile, in quick mode."""
    figure = experiments()["loko/fig10d"]
    assert isinstance(figure, IntegratedSwitchFigure)
    changed = figure.model_copy(update={"device": {"virtual": profile}})
    options = Options(mode="virtual", seed=1, out=tmp_path, jobs=1, quick=True)
    return compute(changed, options, NoProgress())[0]


def test_figure_10d_shows_where_the_longest_time_lies(tmp_path: Path) -> None:
    outcome = outcome_with(with_jitter(tmp_path, 500_000), tmp_path)
    (panel,) = outcome.chart.panels
    assert isinstance(panel, BoxPanel)
    (span,) = panel.spans
    assert (span.low, span.high) == pytest.approx((2.76, 3.40))
    assert "2.76 to 3.40 us" in span.label
    findings = outcome.findings
    assert findings["p_is_max_us"] == 2.57
    # Frames of 48 bytes take 69 x 80 ns on the link to the CPU, half of that on two links.
    assert findings["footnote_switch_over_twice_link"] == pytest.approx(2.76 / 2.57)
    assert outcome.chart.caption == "20000 packets of each size"
