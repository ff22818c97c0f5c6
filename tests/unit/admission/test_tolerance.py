"""Guarantees hold with the fastest senders, the slowest boards and the longest cables that are tolerated."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import switch_emulator
from filled_boards import (
    FRAME,
    LAB,
    admission,
    admitted_of,
    all_fit,
    carried,
    filled,
    flow,
    largest,
)

from loko.admission import Admission, Admitted, Refusal
from loko.admission.baselines import Epsilon, QJump
from loko.admission.packets import PacketAdmission, frame_server
from loko.admission.planning import plan
from loko.admission.port_queues.device import port_device
from loko.admission.schemes import VARIANTS, SchemeName, admission_of, variant_named
from loko.control.entries import switch_entries
from loko.control.messages import session_segments
from loko.document import PROFILES, InputError
from loko.switch_model.allocation import FIFTH_RATE, FULL_RATE, AllocationRule, allocate, frontier
from loko.switch_model.control_traffic import AS_PRINTED, interference
from loko.switch_model.device import Profile, deterministic, load_device, load_profile, profile_text
from loko.switch_model.quantity import Count
from loko.switch_model.scenario import EVALUATION, loko_scenario
from loko.switch_model.service_curve import service_curve
from loko.switch_model.tolerance import Tolerance
from loko.topology.frame import frame_of
from loko.topology.lab import Lab, load_lab
from loko_testbed.reproduce.figure_types.experiments import experiments
from loko_testbed.reproduce.figure_types.traffic.document import Sweep
from loko_testbed.reproduce.figure_types.traffic.setting import prepare
from loko_testbed.simulation.virtual import SEQUENCE_OFFSET

EXACT = LAB.as_printed()
ZODIAC = load_profile("zodiac-fx")
SLOW_PPM = ZODIAC.tolerance.board_clock_ppm.value
STRETCH = ZODIAC.tolerance.stretch


def ppm(board: int, sender: int, cable_ns: int = 0) -> Tolerance:
    return Tolerance(
        board_clock_ppm=Count(value=board, source="assumption"),
        sender_clock_ppm=Count(value=sender, source="assumption"),
        cable_ns=Count(value=cable_ns, source="assumption"),
    )


def test_the_stretch_covers_the_fastest_sender_on_the_slowest_board() -> None:
    assert ppm(0, 0).stretch == 1
    assert ppm(50, 0).stretch == pytest.approx(1 / (1 - 50e-6))
    assert ppm(0, 100).stretch == pytest.approx(1.0001 / 0.9999)  # also between two hosts
    assert ppm(300, 100).stretch == pytest.approx(1.0001 / 0.9997)
    assert 1.0002 <= STRETCH <= 1.0003


def test_a_profile_says_how_far_clocks_may_be_off_or_the_usual_is_assumed(tmp_path: Path) -> None:
    text = (PROFILES / "zodiac-fx.toml").read_text()
    path = tmp_path / "old.toml"
    path.write_text(text.split("[tolerance]")[0])
    assert load_profile(path).tolerance.stretch == STRETCH
    path = tmp_path / "worse.toml"
    path.write_text(profile_text("zodiac-fx", sender_clock_ppm=500))
    assert load_profile(path).tolerance.stretch == pytest.approx(1.0005 / 0.9995)
    for wrong, said in (
        (-1, "integer `-1`, expected u64"),
        (1_000_000, "sender_clock_ppm: choose 0 to 10000"),
    ):
        path.write_text(profile_text("zodiac-fx", sender_clock_ppm=wrong))
        with pytest.raises(InputError, match=said):
            load_profile(path)


@pytest.mark.parametrize("name", list(VARIANTS))
def test_every_scheme_promises_less_rate_by_what_clocks_may_be_off(name) -> None:
    choice = variant_named(name)
    chips = load_lab("chip-ring")

    def most(empty: Admission) -> float:
        return largest(lambda rate_bps: all_fit(empty, [flow(0, rate_bps)]), 2e9)

    labs = (chips, chips.as_printed()) if choice.scheme is SchemeName.PORTS else (LAB, EXACT)
    tolerant, exact = (most(admission(choice, lab)) for lab in labs)
    # Whole frames are counted in integer nanoseconds, of about 200 us.
    assert 0 < tolerant * STRETCH <= exact * (1 + 1e-5)


@pytest.mark.parametrize("scheme", [FULL_RATE, FIFTH_RATE, AllocationRule(name="other", rate_fraction=0.7)])
@pytest.mark.parametrize("reserves", [False, True])
def test_an_allocation_is_that_of_the_slowest_board_as_the_fastest_sender_counts(scheme, reserves) -> None:
    exact, tolerant = (
        allocate(
            service_curve(profile, EVALUATION), scheme, *([interference(profile, {}, 17)] if reserves else [])
        )
        for profile in (ZODIAC.with_exact_clocks(), ZODIAC)
    )
    assert tolerant.max_rate_bps <= exact.max_rate_bps / STRETCH
    assert tolerant.max_rate_bps == pytest.approx(exact.max_rate_bps / STRETCH, rel=1e-6)
    assert tolerant.delay_ns == pytest.approx(exact.delay_ns * STRETCH)
    # Capacity does not depend on clocks. (Without the growing share for others, the burst would be the same.)
    assert tolerant.max_burst_bytes == pytest.approx(exact.max_burst_bytes, abs=1e-3)
    splits = frontier(tolerant.service)
    assert splits.service_rate_bps == tolerant.service.rate_bps / STRETCH


def test_times_of_whole_frames_are_bounds_for_slow_and_for_fast_boards() -> None:
    exact, tolerant = (frame_server(board, EVALUATION) for board in (ZODIAC.with_exact_clocks(), ZODIAC))
    for name in ("service_ns", "idle_ns", "links_ns", "longest_wire_ns", "work_ns"):
        assert getattr(tolerant.times[FRAME], name) >= STRETCH * (getattr(exact.times[FRAME], name) - 3), name
    for name in ("least_service_ns", "least_idle_ns", "wire_ns", "least_work_ns"):
        assert getattr(tolerant.times[FRAME], name) <= (getattr(exact.times[FRAME], name) + 3) / STRETCH, name
    assert tolerant.first_work_ns() >= STRETCH * (exact.first_work_ns() - 3)
    assert tolerant.delay_ns(FRAME, 0) >= exact.delay_ns(FRAME, 0) + ZODIAC.tolerance.cable_ns.value


def test_least_times_of_ports_hold_for_chips_that_are_faster_than_senders() -> None:
    """Else flows would be charged with less jitter than such a chip causes."""
    exact = load_device("ideal-1g").with_exact_clocks()
    fast = Count(value=10_000, source="assumption", note="1 % fast")
    tolerance = exact.tolerance.model_copy(update={"board_clock_ppm": fast})
    faster = exact.model_copy(update={"tolerance": tolerance})
    plain, hurried = (port_device(each, frame_bytes=(1518,), cabled_ports=3) for each in (exact, faster))
    assert hurried.least_ns(1518) == pytest.approx(plain.least_ns(1518) / 1.01, rel=1e-12)
    least_ns = hurried.server.before_ns - hurried.server.spread_ns
    assert least_ns == pytest.approx((plain.server.before_ns - plain.server.spread_ns) / 1.01, rel=1e-12)


def test_qjump_takes_an_epoch_for_longer() -> None:
    exact, tolerant = (
        QJump.of(lab, EVALUATION, frame_bytes=FRAME, epsilon=Epsilon.PAPER) for lab in (EXACT, LAB)
    )
    assert tolerant.epoch_ns == pytest.approx(exact.epoch_ns * STRETCH)


# On emulated boards ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "flows"), [("full-rate", 6), ("optimised", 4), ("packet-granular", 2)])
def test_fast_senders_and_slow_boards_keep_to_what_was_promised(name, flows, tmp_path) -> None:
    """This fails if clocks are assumed to be exact: the excess accumulates over two minutes."""
    slow = tmp_path / "slow.toml"
    slow.write_text(profile_text("zodiac-fx", capacity_factor=1 - SLOW_PPM * 1e-6))
    lost, worst = carried(admitted_of(filled(variant_named(name), LAB, flows)), slow, seconds=120)
    assert (lost, worst <= 1) == (0, True)
    lost, worst = carried(admitted_of(filled(variant_named(name), EXACT, flows)), slow, seconds=120)
    assert lost or worst > 1


@pytest.mark.parametrize("name", ["loko/fig17a", "loko/fig18a"])
def test_the_papers_figures_admit_what_the_paper_admits(name) -> None:
    """The figure's controller, which admits the flows again, must know this: real clocks leave less rate."""
    figure = experiments()[name]
    assert isinstance(figure, Sweep)
    setting, choice = prepare(figure), variant_named(figure.allocation)
    assert setting.lab.is_as_printed
    flows = [admitted.flow for admitted in setting.admitted()]
    for lab, fits in ((setting.lab, True), (LAB, False)):
        planned = plan(lab, flows, admission_of(lab, choice, EVALUATION, traffic=AS_PRINTED))
        assert (not planned.refused) == fits


def test_what_is_not_the_papers_promises_for_real_clocks() -> None:
    ours = {"fig20beyond", "fig20splits", "fig19bmeasured", "attack", "fivelive", "ringlive"}
    for figure in experiments().values():
        if figure.paper == "loko" and figure.figure in ours:
            assert not figure.as_printed


def with_cables_of(cable_ns: int) -> Lab:
    """Return the lab with exact clocks, planned for cables of this delay."""
    switches = {
        name: replace(switch, profile=ZODIAC.model_copy(update={"tolerance": ppm(0, 0, cable_ns)}))
        for name, switch in LAB.switches.items()
    }
    return replace(LAB, switches=switches)


def alone(lab: Lab) -> Admitted:
    """Return a flow of lone frames, admitted under the strictest target possible."""

    def asked(target_ns: int) -> Admitted | Refusal | None:
        try:
            return PacketAdmission(lab, EVALUATION, dict.fromkeys(LAB.switches, target_ns)).check(
                flow(0, 1e4)
            )
        except InputError:  # not even one frame can meet it
            return None

    strictest = bisect_left(range(300_000, 500_000), True, key=lambda ns: isinstance(asked(ns), Admitted))
    answer = asked(300_000 + strictest)
    assert isinstance(answer, Admitted)
    return answer


def longest_behind_cables(admitted: Admitted, *, cable_ns: int) -> int:
    """Return the maximum time in ns from a lone frame's departure at its host to that at the switch.

    One frame arrives in each period of the timers, each time slightly later in the period.
    """
    period_ns = ZODIAC.cpu.timers.period_ns.value
    phase_ns = period_ns // 2
    network = switch_emulator.Network(seed=1)
    for name, switch in LAB.switches.items():
        config = {**switch.config, "timer_phase_ns": phase_ns, "loop_phase_ns": 0}
        network.add_board(name, profile=switch.profile.name, config=config)
    for name in LAB.hosts:
        network.add_host(name)
    for link in LAB.links:
        network.connect(link.a.node, link.a.port, link.b.node, link.b.port, propagation_ns=cable_ns)
    own = admitted.flow
    for name, entries in switch_entries(LAB, [admitted], entries=17).items():
        network.control(name, session_segments(entries))
    first_ns = (phase_ns - network.now_ns()) % period_ns + period_ns - 60_000
    network.add_pattern(
        own.source,
        flow=0,
        frame=frame_of(LAB, own),
        sequence_offset=SEQUENCE_OFFSET,
        shaper_rate_bps=math.ceil(own.rate_bps),
        shaper_burst_bytes=own.burst_bytes,
        instants_ns=first_ns + np.arange(500, dtype=np.int64) * (period_ns + 40),
        destination=own.destination,
    )
    result = network.run(duration_ns=502 * period_ns, drain_ns=period_ns)
    assert (result.received_ns >= 0).all()
    return int((result.received_ns - result.sent_ns).max()) - cable_ns  # the receiver's own is not promised


def test_a_promise_contains_the_cable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame meets the timers at the worst time, behind 100 m of cable; without the cable the bound fails.

    Nothing else is reserved: the board sends no echo request while these frames pass.
    """
    monkeypatch.setattr("loko.switch_model.control_traffic.silences_keepalive", lambda _: True)
    cable_ns = ZODIAC.tolerance.cable_ns.value
    told, untold = alone(with_cables_of(cable_ns)), alone(with_cables_of(0))
    assert told.guarantee_ns == untold.guarantee_ns + cable_ns
    assert untold.guarantee_ns < longest_behind_cables(untold, cable_ns=cable_ns) <= told.guarantee_ns
    assert longest_behind_cables(untold, cable_ns=0) <= untold.guarantee_ns


def test_cables_are_no_jitter() -> None:
    told, untold = (
        frame_server(deterministic(with_cables_of(cable_ns).switches["s1"].profile), EVALUATION)
        for cable_ns in (556, 0)
    )
    assert told.delay_ns(FRAME, 1000) == untold.delay_ns(FRAME, 1000) + 556
    assert told.jitter_ns(FRAME, 1000) == untold.jitter_ns(FRAME, 1000)


@pytest.mark.parametrize("entries", [1, 17])
@pytest.mark.parametrize("size", [64, 306, 1518])
def test_lokos_own_bound_has_room_for_a_cable_beside_the_link(size, entries) -> None:
    """Section 14 of docs/model.md: of l/R, the link takes l + 8 bytes; at least 1040 ns remain."""
    service = service_curve(ZODIAC, loko_scenario(entries=entries, packet_sizes_bytes=(size,)))
    wire_ns = ZODIAC.wire_ns(ZODIAC.ports.preamble_bytes.value + size)
    assert service.packetisation_ns - wire_ns >= 1040 - 1e-6 > ZODIAC.tolerance.cable_ns.value


def test_profiles_of_other_kinds_have_clocks_too() -> None:
    banana = load_lab("two-switch-banana-pi")
    for switch in banana.switches.values():
        assert not isinstance(switch.profile, Profile)
        assert switch.profile.tolerance.stretch > 1
    for switch in banana.as_printed().switches.values():
        assert switch.profile.tolerance.stretch == 1
    assert deterministic(EXACT.switches["s1"].profile).tolerance.cable_ns.value == 0
