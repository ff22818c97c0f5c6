"""Emulated hosts and cables beside the service: conforming traffic, exact delays, lost frames."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import switch_emulator
from hypothesis import given
from hypothesis import strategies as st

from loko.control.entries import flow_entry
from loko.control.messages import session_segments
from loko.document import InputError
from loko.service.delays import DelayObservation
from loko.service.faults import Fault, FaultKind
from loko.switch_model.flow import Flow, FlowDocument
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import load_lab
from loko.topology.network import shortest_path
from loko_testbed.live.emulation.boards import check_switches, power_up
from loko_testbed.live.emulation.cabled import CabledLab, cabled_network
from loko_testbed.live.sidecars.senders import UDP_SOURCE_OFFSET, ConformingSender, FlowsInPlace
from loko_testbed.live.sidecars.taps import LOST_AFTER_NS, Taps
from loko_testbed.simulation.senders import slot_ns

MS = 1_000_000
OFFSET = 50
FLOOR_ONE_ENTRY_NS = 240_000
"""Two switches and three cables take at least this long (docs/architecture.md, delay terms)."""


def a_flow(number: int = 1, **values: object) -> Flow:
    fields: dict[str, object] = {
        "id": f"f{number}",
        "source": "H1",
        "destination": "H3",
        "udp_source": 5000 + number,
        "udp_destination": 6000,
        "rate_bps": 100_000.0,
        "burst_bytes": 612.0,
        "frame_bytes": 306,
    }
    return FlowDocument.model_validate({**fields, **values}).flow


@given(
    rate_bps=st.integers(1000, 50_000_000),
    frames=st.integers(1, 20),
    frame_bytes=st.integers(64, 1518),
    waits_ns=st.lists(st.integers(0, 5 * MS), min_size=60, max_size=60),
)
def test_what_a_sender_sends_conforms_whatever_holds_it_up(
    rate_bps: int, frames: int, frame_bytes: int, waits_ns: list[int]
) -> None:
    flow = a_flow(rate_bps=float(rate_bps), burst_bytes=float(frames * frame_bytes), frame_bytes=frame_bytes)
    sender = ConformingSender(flow, bytes(frame_bytes - 4), number=1, sequence_offset=OFFSET, now_ns=7)
    sent: list[int] = []
    now_ns = 7
    for wait_ns in waits_ns:
        now_ns = max(now_ns, sender.next_ns) + wait_ns
        sequence, frame = sender.begin(now_ns)
        assert (sequence, len(frame)) == (len(sent), frame_bytes - 4)
        sent.append(now_ns)
    for first in range(len(sent)):
        for last in range(first, len(sent)):
            bits = (last - first + 1) * frame_bytes * 8
            allowed = flow.burst_bytes * 8 + rate_bps * (sent[last] - sent[first]) / 1e9
            assert bits <= allowed + 1e-6


def test_sender_uses_its_whole_burst_and_nearly_its_rate() -> None:
    flow = a_flow(rate_bps=1_000_000.0, burst_bytes=3060.0)
    sender = ConformingSender(flow, bytes(302), number=1, sequence_offset=OFFSET, now_ns=0)
    instants: list[int] = []
    while sender.next_ns < 20_000 * MS:
        instants.append(sender.next_ns)
        sender.begin(sender.next_ns)
    assert instants[:10] == [instants[0]] * 10
    assert len(instants) * 306 * 8 / 20 > 0.5 * flow.rate_bps


def test_taps_join_lose_and_ignore() -> None:
    taps = Taps()
    taps.watch({"a"})
    taps.sent("a", 1, 100)
    taps.sent("a", 2, 200)
    taps.sent("b", 1, 200)
    taps.received("a", 2, 250)
    taps.received("a", 2, 260)
    taps.received("a", 9, 270)
    assert list(taps.observations(300)) == [DelayObservation(flow="a", sent=2, lost=0, delays_ns=(50,))]
    assert list(taps.observations(100 + LOST_AFTER_NS)) == []
    assert list(taps.observations(201 + LOST_AFTER_NS)) == [
        DelayObservation(flow="a", sent=0, lost=1, delays_ns=())
    ]
    taps.received("a", 1, 500)
    assert list(taps.observations(10 * LOST_AFTER_NS)) == []


def test_frames_that_look_alike_are_told_apart_by_their_order() -> None:
    taps = Taps()
    taps.watch({"a"})
    for at_ns in (100, 200):
        taps.sent("a", b"same", at_ns)
    for at_ns in (130, 260):
        taps.received("a", b"same", at_ns)
    assert next(iter(taps.observations(300))).delays_ns == (30, 60)


def test_of_two_copies_the_first_counts_from_its_own_beginning() -> None:
    taps = Taps()
    taps.watch({"a"})
    for frame in (1, 2, 3):
        taps.sent("a", frame, 100)
        taps.sent("a", frame, 110, is_second=True)
    taps.sent("a", 4, 120, is_second=True)  # the first copy is left out
    taps.received("a", 1, 150)
    taps.received("a", 1, 155, is_second=True)
    taps.received("a", 2, 160, is_second=True)
    taps.received("a", 2, 170)
    taps.received("a", 4, 180, is_second=True)
    assert list(taps.observations(200)) == [
        DelayObservation(flow="a", sent=4, lost=0, delays_ns=(50, 50, 60))
    ]
    assert [seen.lost for seen in taps.observations(101 + LOST_AFTER_NS)] == [1]
    taps.received("a", 3, 300, is_second=True)
    assert list(taps.observations(10 * LOST_AFTER_NS)) == []


class Emulation:
    """A lab of two switches, its tables set up by OpenFlow sessions."""

    def __init__(self, *flows: Flow, lab: str = "two-switch") -> None:
        self.lab = load_lab(lab)
        self.cabled = CabledLab(self.lab, cabled_network(self.lab, free_control=False))
        tables = {name: [] for name in self.lab.switches}  # type: ignore[var-annotated]
        for flow in flows:
            for hop in shortest_path(self.lab, flow.source, flow.destination):
                tables[hop.switch].append(flow_entry(self.lab, flow, hop.output_port))
        for name, entries in tables.items():
            self.cabled.connected(name)
            for segment in session_segments(entries):
                self.cabled.advance(self.cabled.now_ns + 10 * MS)
                self.cabled.segment(name, segment)
        self.cabled.advance(self.cabled.now_ns + 10 * MS)

    def run(self, seconds: float) -> dict[str, DelayObservation]:
        end_ns = self.cabled.now_ns + round(seconds * 1e9)
        self.cabled.advance(end_ns)
        return {observation.flow: observation for observation in self.cabled.observations()}


def test_boards_answer_their_controller() -> None:
    emulation = Emulation(a_flow())
    said = dict(emulation.cabled.drain_outputs())
    assert set(said) == {"s1", "s2"}
    assert all(isinstance(output, switch_emulator.Output) for output in said["s1"])
    assert list(emulation.cabled.drain_outputs()) == []


def test_flow_arrives_with_the_delay_of_its_switches_and_nothing_is_lost() -> None:
    flow = a_flow()
    emulation = Emulation(flow)
    emulation.cabled.set_flows(FlowsInPlace([flow]))
    seen = emulation.run(5)["f1"]
    assert seen.lost == 0
    assert seen.sent > 100
    assert seen.sent - len(seen.delays_ns) <= 2, "frames are under way"
    assert FLOOR_ONE_ENTRY_NS <= min(seen.delays_ns) <= FLOOR_ONE_ENTRY_NS + 40_000
    assert max(seen.delays_ns) < 2 * MS


def test_a_pulled_cable_loses_frames_until_it_is_plugged_in_again() -> None:
    flow = a_flow()
    emulation = Emulation(flow)
    emulation.cabled.set_flows(FlowsInPlace([flow]))
    assert len(emulation.run(1)["f1"].delays_ns) > 10
    emulation.cabled.cause(Fault(FaultKind.PULL, "s2:3-s1:3"))
    emulation.run(1)
    assert emulation.run(2)["f1"].delays_ns == ()
    emulation.cabled.cause(Fault(FaultKind.PLUG, "s1:3-s2:3"))
    seen = emulation.run(1)["f1"]
    assert len(seen.delays_ns) > 10
    assert max(seen.delays_ns) < 2 * MS


def test_a_rebooted_board_ends_its_session_and_loses_its_table() -> None:
    emulation = Emulation(a_flow())
    assert len(emulation.cabled.flows("s1")) == 1
    dict(emulation.cabled.drain_outputs())
    emulation.cabled.cause(Fault(FaultKind.REBOOT, "s1"))
    emulation.run(0.1)
    said = dict(emulation.cabled.drain_outputs())
    assert next(output.data for output in said["s1"] if output.kind == "event") == b"close"
    assert emulation.cabled.flows("s1") == []
    assert len(emulation.cabled.flows("s2")) == 1


def test_the_flows_of_two_interfaces_of_a_host_leave_by_two_lines_and_arrive_where_they_name() -> None:
    near = a_flow(1, source="server:eth1", destination="H1")
    far = a_flow(2, source="server:eth2", destination="server:eth1")
    emulation = Emulation(near, far, lab="two-switch/server.yml")
    emulation.cabled.set_flows(FlowsInPlace([near, far]))
    seen = emulation.run(5)
    assert all(seen[name].lost == 0 and seen[name].sent > 100 for name in ("f1", "f2"))
    assert min(seen["f1"].delays_ns) < FLOOR_ONE_ENTRY_NS <= min(seen["f2"].delays_ns), "one switch, and two"


def test_same_delays_as_in_the_simulator_of_the_evaluation() -> None:
    """The emulation and the evaluation's network agree on the shortest delay through two idle switches."""
    from loko.topology.frame import frame_of  # noqa: PLC0415
    from loko_testbed.simulation.virtual import SEQUENCE_OFFSET, lab_network  # noqa: PLC0415

    flow = a_flow(burst_bytes=306.0)
    emulation = Emulation(flow)
    emulation.cabled.set_flows(FlowsInPlace([flow]))
    here = emulation.run(20)["f1"].delays_ns
    tables = {
        hop.switch: (flow_entry(emulation.lab, flow, hop.output_port),)
        for hop in shortest_path(emulation.lab, "H1", "H3")
    }
    network = lab_network(emulation.lab, tables, seed=1)
    network.add_source(
        "H1",
        flow=0,
        frame=frame_of(emulation.lab, flow),
        sequence_offset=SEQUENCE_OFFSET,
        shaper_rate_bps=flow.rate_bps,
        shaper_burst_bytes=flow.burst_bytes,
        offered_rate_bps=flow.rate_bps,
        burst_bytes=306,
        queue_bytes=3060,
        destination="H3",
    )
    result = network.run(duration_ns=20_000 * MS)
    there = result.received_ns - result.sent_ns
    assert abs(min(here) - int(there.min())) < 3000, "both within the phase of two main loops"


class SentFrames:
    """A network that notes when hosts begin to send frames, by their source port."""

    def __init__(self, network: switch_emulator.Network) -> None:
        self._network = network
        self.began_ns: dict[int, list[int]] = {}

    def send(self, host: str, frame: bytes, at_ns: int) -> int:
        udp_source = int.from_bytes(frame[UDP_SOURCE_OFFSET : UDP_SOURCE_OFFSET + 2], "big")
        self.began_ns.setdefault(udp_source, []).append(at_ns)
        return self._network.send(host, frame, at_ns)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)


def test_second_copies_keep_their_instants_while_first_copies_are_left_out() -> None:
    """Else one comes a frame time closer to the one before it, which their token bucket does not allow."""
    flow, second_port = a_flow(burst_bytes=3060.0), 4_000
    both, second = (flow.udp_source, second_port), (second_port,)
    sent = []
    for ports in ([both, both, both], [both, second, both]):
        lab = load_lab("two-switch")
        network = SentFrames(cabled_network(lab, free_control=False))
        cabled = CabledLab(lab, network)  # type: ignore[arg-type]
        for now_s, copies in enumerate(ports, 1):
            cabled.set_flows(FlowsInPlace([flow], {}, {flow.id: copies}))
            cabled.advance(now_s * 1_000 * MS)
        sent.append(network.began_ns)
    always, at_times = sent
    assert always[second_port] == at_times[second_port]
    frame_ns = slot_ns(flow.frame_bytes, 100_000_000)
    firsts = {at_ns + frame_ns for at_ns in at_times[flow.udp_source]}
    assert firsts < set(at_times[second_port]), "some are left out"
    assert [at_ns + frame_ns for at_ns in always[flow.udp_source]] == always[second_port]


def test_flow_without_an_entry_is_lost() -> None:
    emulation = Emulation()
    emulation.cabled.set_flows(FlowsInPlace([a_flow()]))
    seen = emulation.run(2)["f1"]
    assert seen.delays_ns == ()
    assert seen.lost > 0


def test_flows_come_and_go() -> None:
    first, second = a_flow(1), a_flow(2, source="H2")
    emulation = Emulation(first, second)
    emulation.cabled.set_flows(FlowsInPlace([first]))
    assert set(emulation.run(1)) == {"f1"}
    emulation.cabled.set_flows(FlowsInPlace([first, second]))
    assert set(emulation.run(1)) == {"f1", "f2"}
    emulation.cabled.set_flows(FlowsInPlace([second]))
    seen = emulation.run(1)
    assert set(seen) == {"f2"}
    assert seen["f2"].lost == 0
    emulation.cabled.set_flows(FlowsInPlace([]))
    assert emulation.run(1) == {}


def test_other_switches_are_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="is no board that can be emulated"):
        power_up(load_lab("two-switch-banana-pi"), free_control=False)
    with pytest.raises(InputError, match="s1: banana-pi-r1 cannot be emulated beside a service"):
        cabled_network(load_lab("two-switch-banana-pi"), free_control=False)
    with pytest.raises(InputError, match=r"s1: dell-s3048-on is emulated in OpenFlow 1\.0 only"):
        check_switches(load_lab("chip-ring"), OpenFlow.V1_3)
    chips = load_lab("chip-ring")
    switches = {
        name: replace(switch, datapath_id=switch.datapath_id | 1 << 60)
        for name, switch in chips.switches.items()
    }
    with pytest.raises(InputError, match="s1: datapath_id: that of an emulated switch begins with 00:00"):
        check_switches(replace(chips, switches=switches))


def test_chips_forward_as_their_profile_says() -> None:
    """Frames of 306 bytes wait for the wire twice, and take 3.6 to 4.2 us in each of two chips."""
    flow = a_flow(destination="H2", rate_bps=5e6, burst_bytes=306.0)
    emulation = Emulation(flow, lab="chip-ring")
    emulation.cabled.set_flows(FlowsInPlace([flow]))
    seen = emulation.run(5)["f1"]
    assert seen.lost == 0
    assert len(seen.delays_ns) > 200
    cables_ns = 2 * (8 + 306) * 8
    assert cables_ns + 2 * 3_600 <= min(seen.delays_ns) < max(seen.delays_ns) <= cables_ns + 2 * 4_200


def test_frames_of_no_flow_reach_their_host_and_leave_at_the_rate_of_the_line() -> None:
    from loko.topology.frame import frame_of  # noqa: PLC0415

    flow = a_flow()
    emulation = Emulation(flow)
    frame = frame_of(emulation.lab, flow)
    emulation.cabled.send("H1", frame)
    emulation.cabled.send("H1", frame)
    emulation.cabled.advance(emulation.cabled.now_ns + MS)
    assert emulation.cabled.take_frames("H3") == [frame, frame]
    assert emulation.cabled.take_frames("H3") == []
    assert len(emulation.cabled.flows("s1")) == 1
