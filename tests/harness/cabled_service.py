"""A flow manager and its boards in one virtual time, with senders that go on whatever happens to cables."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random

from board_end import ECHO_REPLY, ECHO_REQUEST, FEATURES_REQUEST, HELLO, TRIP_NS

from loko.admission.protection import ProtectedAdmission, Protection, failures_of
from loko.admission.schemes import admission_of, default_scheme, variant_of
from loko.control.driver import driver_of
from loko.control.entries import match_of
from loko.control.versions import CODECS, WIRE_VERSIONS
from loko.service.faults import Fault, FaultKind, cable_named
from loko.service.flow_manager import FlowManager
from loko.service.outcome import Granted, ReturnMode
from loko.service.protected_admitter import ProtectedAdmitter
from loko.switch_model.control_traffic import CHANGES_PER_S, served_traffic
from loko.switch_model.device import has_shared_server
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import OpenFlow, loko_scenario
from loko.topology.lab import Lab
from loko.units import BITS_NS_PER_BYTE_S
from loko_testbed.live.emulation.cabled import CabledLab, cabled_network
from loko_testbed.live.sidecars.senders import FlowsInPlace
from loko_testbed.simulation.worst_case.random_cases import random_lab

MS, S = 1_000_000, 1_000_000_000
FRAME_BYTES = 306
CHANGE_NS = round(S / CHANGES_PER_S)
WIRE, VERSION = CODECS[OpenFlow.V1_0], bytes([WIRE_VERSIONS[OpenFlow.V1_0]])


class CabledService:
    """A flow manager with the boards of a lab, whose hosts go on sending whatever happens."""

    def __init__(self, lab: Lab, *, entries: int = 30, survive: str = "cables=1", classes: int = 1) -> None:
        self.lab, self._classes = lab, classes
        self._boards = [name for name, switch in lab.switches.items() if has_shared_server(switch.profile)]
        self.cabled = CabledLab(lab, cabled_network(lab, free_control=False))
        self.entries = entries
        scenario = loko_scenario(entries=entries, packet_sizes_bytes=(FRAME_BYTES,), match=match_of(lab))
        choice = variant_of(lab, default_scheme(lab), None)
        traffic = served_traffic(CHANGES_PER_S, {}, compare_s=1)
        protected = ProtectedAdmission(
            lab,
            lambda: admission_of(lab, choice, scenario, traffic=traffic, padding=0, classes=classes),
            failures_of(lab, [survive]),
        )
        self.admitter = ProtectedAdmitter(lab, protected)
        pace_ns = CHANGE_NS // 2
        drivers = {
            name: driver_of(switch, pace_ns=pace_ns, compare_ns=S) for name, switch in lab.switches.items()
        }
        self.manager = FlowManager(lab, self.admitter, drivers, now_ns=0, returns=ReturnMode.BY_CALL)
        self.granted: list[Flow] = []
        self.copies: dict[str, tuple[int, ...]] = {}
        """By flow, the source ports of the copies of its frames."""
        self.sent: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.late: Counter[str] = Counter()
        self.worst: defaultdict[str, float] = defaultdict(float)
        """By flow, the longest delay over its guarantee."""
        self.longest_table = 0
        for name in lab.switches.keys() - set(self._boards):  # a board asks for its session
            self._connect(name)

    @property
    def now_ns(self) -> int:
        return self.cabled.now_ns

    def run(self, duration_ns: int) -> None:
        """Let this time pass, in steps of a millisecond."""
        end_ns = self.now_ns + duration_ns
        while self.now_ns < end_ns:
            self.cabled.advance(min(self.now_ns + MS, end_ns))
            for name, outputs in list(self.cabled.drain_outputs()):
                for output in outputs:
                    if output.kind == "controller":
                        self._hear(name, output.data)
                    elif output.data == b"connect":
                        self._connect(name)
            self.manager.tick(self.now_ns)
            self.carry()
            for seen in self.cabled.observations():
                promised_ns = self.manager.flows[seen.flow].promised.guarantee_ns
                self.sent[seen.flow] += seen.sent
                self.lost[seen.flow] += seen.lost
                self.late[seen.flow] += sum(delay_ns > promised_ns for delay_ns in seen.delays_ns)
                worst = max(seen.delays_ns, default=0) / promised_ns
                self.worst[seen.flow] = max(self.worst[seen.flow], worst)
            tables = [len(self.cabled.flows(name)) for name in self._boards]
            self.longest_table = max([self.longest_table, *tables])

    def carry(self) -> None:
        """Carry out what the flow manager wants."""
        while effects := self.manager.effects():
            for switch, requests in effects.sends:
                self.cabled.segment(switch, WIRE.segment(requests))
            for _, outcome in effects.answers:
                if isinstance(outcome, Granted):
                    managed = self.manager.flows[outcome.flow_id]
                    self.granted.append(managed.flow)
                    self.copies[managed.flow.id] = managed.sent_ports
                    self.cabled.set_flows(FlowsInPlace(self.granted, copies=self.copies))
            self.manager.stored(self.now_ns, effects.writes)

    def _connect(self, name: str) -> None:
        """Open a session as the framework does."""
        self.cabled.connected(name)
        for data in (HELLO, FEATURES_REQUEST):
            self.cabled.segment(name, VERSION + data)
            self.cabled.advance(self.now_ns + TRIP_NS)
        self.manager.connected(self.now_ns, name)

    def _hear(self, name: str, data: bytes) -> None:
        if data[1] == ECHO_REQUEST:
            self.cabled.segment(name, VERSION + bytes([ECHO_REPLY]) + data[2:8])
        elif (reply := WIRE.decode(data)) is not None:
            self.manager.reply(self.now_ns, name, reply)

    def request(self, flow: Flow, protection: Protection = Protection.BACKUP) -> None:
        self.manager.request(self.now_ns, flow, self.admitter.decision(flow, protection=protection))
        self.run(200 * MS)

    def request_random(
        self,
        choice: Random,
        requests: int,
        *,
        most_frames: int = 1,
        protections: Sequence[Protection] = (Protection.BACKUP,),
    ) -> None:
        """Request random flows between the hosts, with protections and classes in turn; some are refused."""
        for number in range(1, requests + 1):
            source, destination = choice.sample(sorted(self.lab.hosts), 2)
            rate_bps, frames = choice.choice((1e4, 5e4, 2e5)), choice.choice((1, 1, most_frames))
            sent = (rate_bps, float(frames * FRAME_BYTES), FRAME_BYTES)
            traffic_class = 1 + number // len(protections) % self._classes
            flow = Flow(f"f{number}", source, destination, number, 6000, *sent, traffic_class)
            self.request(flow, protections[number % len(protections)])

    def pull(self, cable: str) -> None:
        self.cabled.cause(Fault(FaultKind.PULL, cable))

    def plug(self, cable: str) -> None:
        self.cabled.cause(Fault(FaultKind.PLUG, cable))

    def across(self, cable: str) -> list[str]:
        """Return the flows whose present path, or one of two, crosses a cable."""
        return [name for name, managed in self.manager.flows.items() if cable in managed.cables]

    def is_covered(self, cable: str) -> bool:
        """Return whether flows cross a cable, all of which have a reserved or second path without it."""
        ends = cable_named(self.lab, cable).ends
        flows = [self.manager.flows[name] for name in self.across(cable)]
        paths = (
            self.admitter.path_without(managed.flow.id, managed.path, ends, frozenset())
            for managed in flows
            if managed.second_copies is None
        )
        return bool(flows) and None not in paths

    def is_duplicated(self, name: str) -> bool:
        return self.manager.flows[name].second_copies is not None

    def most_lost(self, name: str, outage_ns: int) -> int:
        """Return how many frames of a flow an outage may cost, as plans state it."""
        managed = self.manager.flows[name]
        sent_ns = managed.promised.guarantee_ns + outage_ns
        flow = managed.flow
        return int((flow.burst_bytes + flow.rate_bps * sent_ns / BITS_NS_PER_BYTE_S) // flow.frame_bytes)


@dataclass
class PulledCables:
    """Fate of all packets while cables were pulled and plugged in again."""

    seed: int
    switches: int
    flows: int
    in_two_rounds: int
    pulls: int = 0
    moves: int = 0
    packets: int = 0
    lost: int = 0
    most_lost: int = 0
    """As many may be lost by what is stated."""
    late: int = 0
    worst: float = 0.0
    """The longest delay over its guarantee."""
    slowest: float = 0.0
    """The longest time from a report to a kept promise, over what is stated for that."""
    broken: list[str] = field(default_factory=list)
    """Deviations from what is stated, in words."""


def pull_cables(
    seed: int,
    *,
    requests: int = 40,
    pulls: int = 4,
    protections: Sequence[Protection] = (Protection.BACKUP,),
) -> PulledCables:
    """Pull cables of a random lab at random and adversarial instants, while all hosts send all they may."""
    choice, service, found = _begin(seed, requests, protections)
    allowed: Counter[str] = Counter()
    for cable in _pulls(choice, service, pulls):
        _fail(choice, service, cable, found, allowed)
    return _judge(service, found, allowed)


def pull_beside_copies(
    seed: int, *, requests: int = 40, pulls: int = 12, has_second_copies: bool = True
) -> PulledCables:
    """Pull cables in the same way, but one as soon as what was sent before the last repair has arrived.

    All flows are duplicated. For comparison, hosts may leave the second copies out.
    """
    choice, service, found = _begin(seed, requests, [Protection.DUPLICATE])
    if not has_second_copies:
        service.copies.update({flow.id: (flow.udp_source,) for flow in service.granted})
    for cable in _pulls(choice, service, pulls):
        across = service.across(cable)
        _reach_instant(choice, service, across)
        service.pull(cable)
        found.pulls += 1
        service.run(choice.choice((choice.randint(1, 100), 2_500)) * MS)
        dead = service.manager.cables.dead
        if dead in ((), (cable,)):  # else the last repair is yet to be reported
            on_one_path = service.manager.on_one_path
            if on_one_path != (tuple(across) if dead else ()) or service.manager.broken():
                found.broken.append(f"{cable} is out, reported: {dead}, on one path: {on_one_path}")
        service.plug(cable)
        service.run(max(math.ceil(service.manager.flows[name].promised.guarantee_ns) for name in across))
    service.run(2 * S)
    return _judge(service, found, Counter())


def _begin(
    seed: int, requests: int, protections: Sequence[Protection]
) -> tuple[Random, CabledService, PulledCables]:
    """Return a service whose flows cross a cable that may fail."""
    attempts = (_served(Random(f"{seed} {attempt}"), requests, protections) for attempt in count())
    choice, service = next(found for found in attempts if next(_pulls(*found, 1), None))
    service.run(S)
    found = PulledCables(
        seed, len(service.lab.switches), len(service.granted), len(service.manager.in_two_rounds)
    )
    return choice, service, found


def _judge(service: CabledService, found: PulledCables, allowed: Counter[str]) -> PulledCables:
    """Compare the fate of all packets with what is stated."""
    service.run(S)
    for name, lost in service.lost.items():
        if lost > allowed[name]:
            found.broken.append(f"{name} lost {lost} frames, stated {allowed[name]}")
    if service.longest_table > service.entries:
        found.broken.append(f"a table had {service.longest_table} of {service.entries} entries")
    found.packets, found.lost = service.sent.total(), service.lost.total()
    found.late, found.most_lost = service.late.total(), allowed.total()
    found.worst = max(service.worst.values(), default=0.0)
    return found


def _served(choice: Random, requests: int, protections: Sequence[Protection]) -> tuple[Random, CabledService]:
    """Return a service with flows in a random lab, whose boards report links only when they are asked."""
    lab = random_lab(choice, choice.choice(("ring", "cycles")), most_switches=5)
    unchecked = {
        name: replace(switch, config={**switch.config, "ofchecks": False})
        for name, switch in lab.switches.items()
    }
    service = CabledService(replace(lab, switches=unchecked), entries=choice.choice((3, 4, 5, 17)))
    service.run(4 * S)
    service.request_random(choice, requests, most_frames=3, protections=protections)
    return choice, service


def _pulls(choice: Random, service: CabledService, most: int) -> Iterator[str]:
    """Yield cables between switches whose flows all have another path without it."""
    cables = [
        link.name for link in service.lab.links if {link.a.node, link.b.node} <= set(service.lab.switches)
    ]
    for _ in range(most):
        used = [cable for cable in cables if service.is_covered(cable)]
        if used:
            yield choice.choice(used)


def _fail(
    choice: Random, service: CabledService, cable: str, found: PulledCables, allowed: Counter[str]
) -> None:
    """Pull a cable, wait until all flows have moved, plug it in, and let them return."""
    across = service.across(cable)
    _reach_instant(choice, service, across)
    pulled_ns = service.now_ns
    service.pull(cable)
    found.pulls += 1
    _await_moves(service, across, pulled_ns, found, allowed)
    service.run(choice.randint(0, 500) * MS)
    service.plug(cable)
    service.run(2 * S)
    returning = service.manager.return_flows(service.now_ns)
    service.carry()
    if returning and choice.random() < 0.4:  # while they return, or just after
        service.run(choice.randint(0, 120_000_000))
        again = [name for name in across if cable in service.manager.flows[name].cables or name in returning]
        pulled_ns = service.now_ns
        service.pull(cable)
        found.pulls += 1
        _await_moves(service, again, pulled_ns, found, allowed)
        service.plug(cable)
        service.run(2 * S)
        service.manager.return_flows(service.now_ns)
    service.run(2 * S)
    if left := service.manager.on_backup:
        found.broken.append(f"{', '.join(left)} did not return")


def _reach_instant(choice: Random, service: CabledService, across: Sequence[str]) -> None:
    """Let time pass until a random instant, or until just after a burst of a flow has begun."""
    service.run(choice.randint(0, 1_200_000_000))
    if choice.random() < 0.5:
        name = choice.choice(across)
        begins_ns = service.cabled.next_ns(name)
        guarantee_ns = service.manager.flows[name].promised.guarantee_ns
        service.run(max(0, begins_ns - service.now_ns) + round(choice.random() * guarantee_ns))


def _await_moves(
    service: CabledService,
    across: Sequence[str],
    pulled_ns: int,
    found: PulledCables,
    allowed: Counter[str],
) -> None:
    """Let time pass until all promises are kept again, and note how long that took."""
    manager = service.manager
    reported_ns: dict[str, int] = {}
    moving = [name for name in across if not service.is_duplicated(name)]
    waiting = set(moving)
    while waiting and service.now_ns < pulled_ns + 10 * S:
        service.run(MS)
        for name in sorted(waiting):
            managed = manager.flows[name]
            if managed.breaks and name not in reported_ns:
                reported_ns[name] = service.now_ns
            if name in reported_ns and not managed.breaks:
                waiting.discard(name)
                found.moves += 1
                allowed[name] += service.most_lost(name, service.now_ns - pulled_ns)
                # Each switch makes one change of each flow, after what is under way; then comes the barrier.
                stated_ns = (1 + len(moving) * (1 + bool(manager.in_two_rounds))) * CHANGE_NS
                slowness = (service.now_ns - reported_ns[name]) / stated_ns
                found.slowest = max(found.slowest, slowness)
                if slowness > 1:
                    found.broken.append(f"{name} moved {slowness:.2f} times as slowly as stated")
    if waiting:
        found.broken.append(f"{', '.join(sorted(waiting))} did not move")
