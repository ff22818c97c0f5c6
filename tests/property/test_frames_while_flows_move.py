"""The flow manager and its boards in one virtual time: what moves and returns do to every frame."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from board_end import ECHO_REPLY, ECHO_REQUEST, FEATURES_REQUEST, HELLO, TRIP_NS
from triangle import DIRECT, triangle

from loko.admission.protection import ProtectedAdmission, failures_of
from loko.admission.schemes import admission_of, variant_of
from loko.control.driver import OWN_MARK, Driver
from loko.control.entries import match_of
from loko.control.versions import CODECS, WIRE_VERSIONS
from loko.service.faults import Fault, FaultKind
from loko.service.flow_manager import FlowManager
from loko.service.outcome import Granted, ReturnMode
from loko.service.protected_admitter import ProtectedAdmitter
from loko.switch_model.control_traffic import CHANGES_PER_S, served_traffic
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import OpenFlow, loko_scenario
from loko.topology.lab import Lab
from loko_testbed.live.emulation.cabled import CabledLab, cabled_network

MS, S = 1_000_000, 1_000_000_000
WIRE, VERSION = CODECS[OpenFlow.V1_0], bytes([WIRE_VERSIONS[OpenFlow.V1_0]])
FRAME_BYTES = 306


class CabledService:
    """A flow manager with the boards of a lab, whose hosts go on sending whatever happens."""

    def __init__(self, lab: Lab) -> None:
        self.cabled = CabledLab(lab, cabled_network(lab, free_control=False))
        scenario = loko_scenario(entries=30, packet_sizes_bytes=(FRAME_BYTES,), match=match_of(lab))
        choice = variant_of(lab, "loko", None)
        traffic = served_traffic(CHANGES_PER_S, {}, compare_s=1)
        protected = ProtectedAdmission(
            lab,
            lambda: admission_of(lab, choice, scenario, traffic=traffic, padding=0),
            failures_of(lab, ["cables=1"]),
        )
        self.admitter = ProtectedAdmitter(lab, protected)
        drivers = {
            name: Driver(capacity=128, own_mark=OWN_MARK, pace_ns=round(S / 2 / CHANGES_PER_S), compare_ns=S)
            for name in lab.switches
        }
        self.manager = FlowManager(lab, self.admitter, drivers, now_ns=0, returns=ReturnMode.BY_CALL)
        self.granted: list[Flow] = []
        self.delays_ns: dict[str, list[int]] = {}
        self.lost = 0

    def run(self, duration_ns: int) -> None:
        """Let this time pass, in steps of a millisecond."""
        end_ns = self.cabled.now_ns + duration_ns
        while self.cabled.now_ns < end_ns:
            now_ns = self.cabled.now_ns + MS
            self.cabled.advance(now_ns)
            for name, outputs in list(self.cabled.drain_outputs()):
                for output in outputs:
                    if output.kind == "controller":
                        self._hear(name, output.data)
                    elif output.data == b"connect":
                        self._connect(name)
            now_ns = self.cabled.now_ns
            self.manager.tick(now_ns)
            while effects := self.manager.effects():
                for switch, requests in effects.sends:
                    self.cabled.segment(switch, WIRE.segment(requests))
                for _, outcome in effects.answers:
                    if isinstance(outcome, Granted):
                        self.granted.append(self.manager.flows[outcome.flow_id].flow)
                        self.cabled.set_flows(self.granted)
                self.manager.stored(now_ns, effects.writes)
            for seen in self.cabled.observations():
                self.lost += seen.lost
                self.delays_ns.setdefault(seen.flow, []).extend(seen.delays_ns)

    def _connect(self, name: str) -> None:
        """Open a session as the framework does."""
        self.cabled.connected(name)
        for data in (HELLO, FEATURES_REQUEST):
            self.cabled.segment(name, VERSION + data)
            self.cabled.advance(self.cabled.now_ns + TRIP_NS)
        self.manager.connected(self.cabled.now_ns, name)

    def _hear(self, name: str, data: bytes) -> None:
        if data[1] == ECHO_REQUEST:
            self.cabled.segment(name, VERSION + bytes([ECHO_REPLY]) + data[2:8])
        elif (reply := WIRE.decode(data)) is not None:
            self.manager.reply(self.cabled.now_ns, name, reply)

    def request(self, flow: Flow) -> None:
        self.manager.request(self.cabled.now_ns, flow, self.admitter.decision(flow))
        self.run(200 * MS)


def refuse_late_frames(service: CabledService) -> None:
    for flow in service.granted:
        promised_ns = service.manager.flows[flow.id].promised.guarantee_ns
        assert max(service.delays_ns[flow.id]) <= promised_ns


@pytest.mark.parametrize("seed", range(3))
def test_no_frame_is_late_whatever_moves_and_none_is_lost_by_a_return(seed: int, tmp_path: Path) -> None:
    choice = random.Random(seed)
    lab = triangle(tmp_path)
    service = CabledService(lab)
    service.run(4 * S)
    for number in range(1, 40):
        source, destination = choice.sample(sorted(lab.hosts), 2)
        rate_bps = choice.choice((2e4, 1e5, 4e5))
        service.request(
            Flow(f"f{number}", source, destination, number, 6000, rate_bps, float(FRAME_BYTES), FRAME_BYTES)
        )
    assert len(service.granted) > 3
    service.run(S)
    assert service.lost == 0
    across = {flow.id for flow in service.granted if {flow.source, flow.destination} == {"H1", "H2"}}
    assert across
    service.cabled.cause(Fault(FaultKind.PULL, DIRECT))
    service.run(3 * S)
    assert across <= set(service.manager.on_backup)
    assert not any(service.manager.flows[name].breaks for name in across)
    service.cabled.cause(Fault(FaultKind.PLUG, DIRECT))
    service.run(3 * S)
    lost = service.lost
    assert lost > 0
    refuse_late_frames(service)
    assert set(service.manager.return_flows(service.cabled.now_ns)) >= across
    service.run(5 * S)
    assert service.manager.on_backup == ()
    assert service.manager.uncovered() == ()
    assert service.lost == lost, "a return loses nothing"
    refuse_late_frames(service)
