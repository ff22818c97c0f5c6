"""A flow manager with its store and emulated boards, in virtual time, that can be killed at any step."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from board_end import BoardEnd

from loko.admission import Admission, LokoAdmission
from loko.admission.protection import ProtectedAdmission, Protection, failures_of
from loko.control.dialect import DIALECTS
from loko.control.driver import OWN_MARK, Driver
from loko.control.entries import match_of, padding_entries
from loko.control.versions import CODECS
from loko.control.wire import WireRequest
from loko.schedule.timed_flow import TimedFlow
from loko.service.admitter import Admitter, Decide, SchemeAdmitter
from loko.service.flow_manager import FlowManager, ManagedFlow
from loko.service.migration import Migration
from loko.service.outcome import (
    Delete,
    Effects,
    Event,
    FlowState,
    Insert,
    RequestOutcome,
    ReturnMode,
    Rewrite,
    UpdateState,
    Write,
)
from loko.service.protected_admitter import ProtectedAdmitter
from loko.service.slots import ServedSchedule, SlotAdmitter
from loko.service.store import Store
from loko.switch_model.allocation import scheme_named
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import OpenFlow, loko_scenario
from loko.topology.lab import Lab, load_lab
from loko.topology.lab_allocation import allocations_of
from loko.topology.network import Hop, visits

STEP_NS = 1_000_000
LONG_STEP_NS = 50_000_000
RECONNECTION_NS = 2_000_000_000
LAB = load_lab("two-switch")
HOSTS = tuple(LAB.hosts)
OPTIONS = {"entries": "17"}
FULL = "the disk is full"
CONDITIONS = ("flows-conform", "as-profiled")


class KilledError(Exception):
    """The service was killed at this point."""


def flow(number: int, source: str = "H1", destination: str = "H3", **values: float) -> Flow:
    fields = {"rate_bps": 20_000.0, "burst_bytes": 100.0, "frame_bytes": 64, **values}
    return Flow(
        id=f"f{number}",
        source=source,
        destination=destination,
        udp_source=1 + number,
        udp_destination=6000,
        **fields,  # type: ignore[arg-type]
    )


class ServedBoards:
    """`step` simulates one millisecond.

    If `fuse` is set, the service is killed after this many effects; only what was already written in a
    transaction survives.
    """

    def __init__(
        self,
        path: Path,
        *,
        lab: Lab = LAB,
        safe: bool = False,
        entries: int = 17,
        capacity: int = 128,
        delete_foreign_entries: bool = False,
        padding: int = 0,
        openflow: OpenFlow = OpenFlow.V1_0,
        compare_ns: int = 0,
        reroute_ns: int | None = None,
        survive: Sequence[str] = (),
        protection: Protection = Protection.BACKUP,
        returns: ReturnMode = ReturnMode.AUTOMATIC,
    ) -> None:
        self.reroute_ns = reroute_ns
        self.survive, self.protection, self.returns = survive, protection, returns
        self.padding, self.compare_ns = padding, compare_ns
        self.openflow, self.wire = openflow, CODECS[openflow]
        self.lab, self.path, self.entries, self.capacity = lab, path, entries, capacity
        self.delete_foreign_entries = delete_foreign_entries
        self.now_ns = 3_000_000_000
        config = {"fail_state": "safe" if safe else "secure"}
        self.config = {name: {**switch.config, **config} for name, switch in lab.switches.items()}
        self.boards = {
            name: BoardEnd(dict(values), openflow=openflow) for name, values in self.config.items()
        }
        self.plugged = dict.fromkeys(lab.switches, True)
        self.due = dict.fromkeys(lab.switches, self.now_ns)
        self.fuse: int | None = None
        self.full = False
        self.migration: Migration | None = None  # to be carried out at the next start
        self.answers: dict[int, RequestOutcome] = {}
        self.log: list[Event] = []
        self.sent: list[tuple[str, list[WireRequest]]] = []  # each segment to a switch
        self._happened = 0  # counts what was sent, heard or written
        self.store: Store | None = None
        self.unwritten: list[Write] = []  # writes that are lost if the service is killed
        self.start()

    def start(self) -> None:
        """Start the service from the stored state."""
        self.store = Store(self.path, lab=self.lab.name, options=OPTIONS, migration=self.migration)
        self.close_store = weakref.finalize(self, self.store.close)  # else Python 3.13 warns
        self.migration = None
        self.grant_anew(self.store)
        self.manager = FlowManager(
            self.lab,
            self.admitter,
            {
                name: Driver(
                    capacity=self.capacity,
                    own_mark=OWN_MARK,
                    dialect=DIALECTS[self.openflow],
                    delete_foreign_entries=self.delete_foreign_entries,
                    compare_ns=self.compare_ns,
                )
                for name in self.lab.switches
            },
            now_ns=self.now_ns,
            stored=self.store.load(),
            backlogs=self.store.backlogs(),
            last_number=self.store.last_number(),
            padding=padding_entries(self.lab, self.padding),
            openflow=self.openflow,
            conditions=CONDITIONS,
            reroute_ns=self.reroute_ns,
            returns=self.returns,
        )
        self.answers = {}
        self.unwritten = []
        self.carry()

    def grant_anew(self, _store: Store) -> None:
        """Create a new admission control or scheduler that has granted nothing."""
        scenario = loko_scenario(
            entries=self.entries,
            packet_sizes_bytes=(64, 306),
            openflow=self.openflow,
            match=match_of(self.lab),
        )
        allocations = allocations_of(self.lab, scheme_named("full-rate"), scenario)

        def make() -> LokoAdmission:
            return LokoAdmission(self.lab, allocations, padding=self.padding)

        self.admitter: Admitter
        if self.survive:
            protected = ProtectedAdmission(self.lab, make, failures_of(self.lab, self.survive))
            self.admission: Admission = protected.working
            self.admitter = ProtectedAdmitter(self.lab, protected, self.protection)
        else:
            self.admission = make()
            self.admitter = SchemeAdmitter(self.lab, self.admission)

    def decision(
        self, wanted: Flow, path: Sequence[Hop] | None = None, deadline_ns: float | None = None
    ) -> Decide:
        """Return the function that decides on a flow."""
        assert isinstance(self.admitter, SchemeAdmitter)
        return self.admitter.decision(wanted, path, deadline_ns)

    def kill(self) -> None:
        """Leave the state that kill -9 would leave: only the disk survives, and the connections end."""
        self.close_store()
        self.fuse = None
        for name, end in self.boards.items():
            end.close()
            self.due[name] = self.now_ns + RECONNECTION_NS

    def reboot(self, name: str) -> None:
        """Power-cycle a board."""
        self.boards[name] = BoardEnd(dict(self.config[name]), start_ns=self.now_ns, openflow=self.openflow)
        self.manager.disconnected(self.now_ns, name)
        self.due[name] = self.now_ns + RECONNECTION_NS

    def unplug(self, name: str, *, plugged: bool = False) -> None:
        """Unplug a board's control cable, or plug it in again."""
        self.plugged[name] = plugged
        if not plugged and self.boards[name].is_open:
            self.boards[name].close()
            self.manager.disconnected(self.now_ns, name)
        self.due[name] = self.now_ns + RECONNECTION_NS

    def carry(self) -> None:
        """Apply the effects; each is a step at which the service may be killed."""
        while effects := self.manager.effects():
            self._happened += 1
            self._carry(effects)

    def _carry(self, effects: Effects) -> None:
        self.log += effects.events
        for switch, requests in effects.sends:
            self._burn()
            self.sent.append((switch, requests))
            if self.boards[switch].is_open:
                self.boards[switch].send(self.wire.segment(requests))
        for switch in effects.closes:
            self.boards[switch].close()
            self.due[switch] = self.now_ns + RECONNECTION_NS
        for ticket, outcome in effects.answers:
            self._burn()
            self.answers[ticket] = outcome
        self.unwritten += effects.writes
        if any(isinstance(write, Insert | UpdateState | Rewrite | Delete) for write in effects.writes):
            self._burn()
            self._write()

    def _write(self) -> None:
        """Write a transaction, or note that the disk takes none if it is `full`."""
        assert self.store is not None
        writes, self.unwritten = self.unwritten, []
        if self.full:
            self.unwritten = self.manager.failed(self.now_ns, writes, FULL)
        else:
            self.store.write(writes)
            self.manager.stored(self.now_ns, writes)

    def _burn(self) -> None:
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse < 0:
                raise KilledError

    def step(self, duration_ns: int = STEP_NS) -> None:
        self.now_ns += duration_ns
        for name, end in self.boards.items():
            was_open = end.is_open
            self._hear(name, end.wait(self.now_ns - end.now_ns))
            if was_open and not end.is_open:
                self.manager.disconnected(self.now_ns, name)
                self.due[name] = self.now_ns + RECONNECTION_NS
            if not end.is_open and self.plugged[name] and self.now_ns >= self.due[name]:
                introduction = end.open()
                self.now_ns = max(self.now_ns, end.now_ns)
                self.manager.connected(self.now_ns, name)
                self._hear(name, introduction)
        self.manager.tick(self.now_ns)
        self.carry()
        if not self.full and any(isinstance(write, Delete) for write in self.unwritten):
            self._write()
            self.carry()

    def _hear(self, name: str, messages: list[bytes]) -> None:
        for message in messages:
            self._happened += 1
            if (reply := self.wire.decode(message)) is not None:
                self.manager.reply(self.now_ns, name, reply)
                self.carry()

    def run(self, duration_ms: int) -> None:
        """Let time pass, in long steps when nothing has been sent, heard or written for as long."""
        end_ns, quiet_ns = self.now_ns + duration_ms * STEP_NS, 0
        while self.now_ns < end_ns:
            before = self._happened
            duration_ns = min(STEP_NS if quiet_ns < LONG_STEP_NS else LONG_STEP_NS, end_ns - self.now_ns)
            self.step(duration_ns)
            quiet_ns = quiet_ns + duration_ns if self._happened == before else 0

    def settle(self, most: int = 6000) -> None:
        """Run until every connected switch has the intended entries and no flow is waiting for them."""
        for _ in range(most):
            names = [name for name in self.boards if self.plugged[name]]
            if all(self.boards[name].is_open and self.manager.drivers[name].complete for name in names):
                away = set(self.boards) - set(names)
                states = self.manager.flows.values()
                if all(
                    state.state in {FlowState.INSTALLED, FlowState.LOST}
                    or set() < state.unconfirmed_switches <= away
                    for state in states
                ):
                    return
            self.step(STEP_NS if any(end.is_open for end in self.boards.values()) else 100_000_000)
        raise AssertionError([(str(d.phase), n) for n, d in self.manager.drivers.items()] + self.log[-5:])

    def ask(self, ticket: int, most: int = 6000) -> RequestOutcome:
        self.carry()
        for _ in range(most):
            if ticket in self.answers:
                return self.answers[ticket]
            self.step()
        raise AssertionError(f"no answer: {self.log[-5:]}")

    def request(
        self, wanted: Flow, path: Sequence[Hop] | None = None, deadline_ns: float | None = None
    ) -> RequestOutcome:
        return self.ask(self.begin(wanted, path, deadline_ns))

    def begin(self, wanted: Flow, path: Sequence[Hop] | None = None, deadline_ns: float | None = None) -> int:
        """Request a flow; return the ticket for the answer."""
        return self.manager.request(
            self.now_ns, wanted, self.decision(wanted, path, deadline_ns), deadline_ns
        )

    def release(self, flow_id: str) -> RequestOutcome:
        return self.ask(self.manager.release(self.now_ns, flow_id))

    def tables(self) -> dict[str, list[tuple[int, bytes]]]:
        """Return the cookie and actions of every entry; with OpenFlow 1.3 its instructions."""
        return {name: sorted(self._entries(end)) for name, end in self.boards.items()}

    def _entries(self, end: BoardEnd) -> Iterator[tuple[int, bytes]]:
        if self.openflow is OpenFlow.V1_3:
            for entry in end.board.flows13():
                yield int.from_bytes(entry.head[8:16], "big"), entry.instructions
        else:
            for flow in end.board.flows():
                yield flow.cookie, b"".join(flow.actions)

    def promised(self) -> dict[str, list[tuple[int, bytes]]]:
        """Return what the tables should contain."""
        filling = [(OWN_MARK << 48 | 1 << 47 | number, self._output(1)) for number in range(self.padding)]
        tables: dict[str, list[tuple[int, bytes]]] = {name: list(filling) for name in self.boards}
        for promise in self.manager.flows.values():
            if promise.state is FlowState.INSTALLED:
                for copy, path in enumerate(promise.paths):
                    for visit in visits(self.lab, promise.flow.source, path):
                        output = self._output(visit.output_port)
                        cookie = OWN_MARK << 48 | copy << 46 | visit.number << 32 | promise.number
                        tables[visit.switch].append((cookie, output))
                for hop in self.preinstalled(promise):
                    tables[hop.switch].append(
                        (OWN_MARK << 48 | promise.number, self._output(hop.output_port))
                    )
        return {name: sorted(entries) for name, entries in tables.items()}

    def preinstalled(self, promise: ManagedFlow) -> Iterator[Hop]:
        """Yield the hops off its path at which a flow has entries, each switch once."""
        if not isinstance(self.admitter, ProtectedAdmitter):
            return
        reserved = self.admitter.reserved_paths(promise.flow.id)
        seen = {hop.switch for hop in promise.path}
        beforehand = self.admitter.preinstalled().get(promise.flow.id, ())
        for hop in (*(reserved.working if reserved else ()), *beforehand):
            if hop.switch not in seen:
                seen.add(hop.switch)
                yield hop

    def _output(self, port: int) -> bytes:
        if self.openflow is OpenFlow.V1_3:
            return bytes([0, 4, 0, 24, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, port, 255, 255, 0, 0, 0, 0, 0, 0])
        return bytes([0, 0, 0, 8, 0, port, 0xFF, 0xFF])

    def events(self) -> list[str]:
        return [event for end in self.boards.values() for event in end.events]


def timed(wanted: Flow) -> TimedFlow:
    """Return the flow for a schedule, with one frame per base period."""
    return TimedFlow(*wanted[:5], wanted.frame_bytes, None, None)


class ServedSlots(ServedBoards):
    """With time slots: the service starts with the flows of a schedule."""

    def __init__(self, path: Path, schedule: ServedSchedule, *, openflow: OpenFlow = OpenFlow.V1_0) -> None:
        self.schedule = schedule
        super().__init__(path, openflow=openflow)

    def grant_anew(self, store: Store) -> None:
        """Create a scheduler that has given no slots; the store starts with the flows of the schedule."""
        self.admitter = self.slots = SlotAdmitter(self.lab, self.schedule, openflow=self.openflow)
        store.begin(self.schedule.digest, self.slots.initial_flows)

    def begin(self, wanted: Flow, path: Sequence[Hop] | None = None, deadline_ns: float | None = None) -> int:
        """Request a slot; return the ticket for the answer."""
        assert path is None
        assert deadline_ns is None
        timed_flow = timed(wanted)
        return self.manager.request(
            self.now_ns, self.slots.on_the_wire(timed_flow), self.slots.decision(timed_flow)
        )

    def send_slots(self) -> dict[str, tuple[int, tuple[Hop, ...]]]:
        """Return the slot and the path of each flow."""
        slots = {name: self.slots.send_slot(name) for name in self.manager.flows}
        return {
            name: (send_slot.slot, self.manager.flows[name].path)
            for name, send_slot in slots.items()
            if send_slot is not None
        }


def renamed(lab: Lab, name: str) -> Lab:
    """Return the same lab with another name."""
    return replace(lab, name=name)
