"""The flow manager joins grants, switches' tables and promises. Events and `now` in, effects out.

It does no I/O. What depends on a write follows only when `stored` says that it is on disk. So whenever the
process ends, the disk knows every flow that a switch or a requester has heard of; and if the disk takes
nothing, `failed` takes back what was begun, and all other flows go on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from loko.admission import Refusal, ResourceShare
from loko.admission.protection import Protection, failure_of_switch
from loko.admission.protection.replacement import last_common_hop, may_replace
from loko.admission.routing import Ends, leaves_by
from loko.control.driver import OWN_MARK, Driver, Segment, SessionPhase
from loko.control.entries import FlowEntry, hop_entries, left_entries, path_entries
from loko.control.notices import Diagnostic, Failed, Installed, LinkChanged, Rejected, Removed
from loko.control.versions import CODECS
from loko.control.wire import WireEntry, WireReply
from loko.document import InputError
from loko.lazy_mapping import LazyMapping
from loko.service.admitter import AdmittedFlow, Admitter, Decide
from loko.service.breaks import StoredViolation, Violation, ViolationCause, Violations
from loko.service.cables import Cables
from loko.service.outcome import (
    Conflict,
    Delete,
    Disposition,
    DryRun,
    Effects,
    EntryRejected,
    Event,
    FlowState,
    Granted,
    Insert,
    Interrupted,
    InvalidRequest,
    NotStored,
    PromisedGuarantee,
    Refused,
    Released,
    RequestOutcome,
    ReturnMode,
    Rewrite,
    SecondCopies,
    StoredFlow,
    Unavailable,
    UnknownFlow,
    UpdateState,
    Write,
    WriteBacklogs,
)
from loko.service.promises import Grounds, NotAdmitted, RestoredFlow, is_kept, limit_ns, restore
from loko.service.protected_admitter import ProtectedAdmitter
from loko.service.source_ports import SourcePort, free_port, from_free_port, stored_ports
from loko.switch_model.flow import DuplicateFlowError, FiveTuple, Flow
from loko.switch_model.scenario import OpenFlow
from loko.topology.lab import Lab
from loko.topology.network import Hop, RoutedFlow

_PADDING_MARK: Final = 1 << 47
"""The bit of a cookie that marks a padding entry, which belongs to no flow."""
_SECOND_COPY_MARK: Final = 1 << 46
"""The bit of a cookie that marks an entry for second copies."""
_VISIT: Final = 32
"""Bits of the flow's number in a cookie. Above them is the number of the visit to the switch."""
TIMEOUT_NS: Final = 30_000_000_000
"""Time for all switches to confirm a flow, after which it is taken back."""
_NEXT_TRY_NS: Final = 200_000_000
"""Time until a path for a lost flow is looked for again, or one is tried that a flow could not take."""
_NEXT_SEARCH_NS: Final = 10_000_000_000
"""Time until another path for a flow that still has one is looked for again."""
SWITCH_FAILED_NS: Final = 5_000_000_000
"""Time without a session after which a switch counts as failed, although its cables have links."""
WAIT_TO_RESTORE_NS: Final = 5_000_000_000
"""Time for which a working path is intact until flows return to it (RFC 4427), so that no loose plug moves
them to and fro."""


_WITHOUT_ENTRIES: Final = frozenset({FlowState.REMOVING, FlowState.LOST})
"""The states in which a flow is to have no entries."""


@dataclass(slots=True, eq=False)
class ManagedFlow:
    """A flow that was granted, and how far the switches have confirmed it."""

    number: int
    grant: AdmittedFlow
    state: FlowState
    """As on disk, except while its removal goes on although the disk takes nothing."""
    since_ns: int
    entries: Sequence[tuple[str, WireEntry]]
    """The flow's entries, each with its switch: visit by visit, then those at switches off its path, which
    it has for paths that it may take, or has just left."""
    cables: frozenset[str]
    """The cables that its path crosses, or one of its two, by the names of `Cables`."""
    promised: PromisedGuarantee
    """Guarantee that its requester was told."""
    unconfirmed: set[tuple[str, int]]
    """The entries, by switch and cookie, that a switch has yet to confirm as installed or removed."""
    second_copies: SecondCopies | None = None
    """Where its frames take a second path, if it is duplicated."""
    may_have_sent: bool = False
    """Whether its host was told of the flow, so that frames of it may be on their way."""
    retained_entries: list[tuple[str, WireEntry]] = field(default_factory=list)
    """If the flow is being removed: entries that must stay for now, for frames on their way."""
    drained_ns: int = 0
    """If the flow is being removed: when no frame is on its way any more, if none was sent since then."""
    ingress_removed_ns: int | None = None
    """When its first switch had lost its entry: no frame of the flow has entered the network since."""
    tickets: list[int] = field(default_factory=list)
    on_disk: FlowState | None = None
    """The state that is on disk; None before the flow is."""
    is_leaving: bool = False
    """Whether its removal is being written. Nothing of it has begun."""
    taken_back: RequestOutcome | None = None
    """If it is taken back: what its requesters are told once that is certain."""
    breaks: Violations = field(default_factory=Violations)
    """Why its packets are not delivered as promised, as far as is known; empty while they are."""
    requested_flow: Flow | None = None
    """The flow, if it is granted under other ports, because another path of it is granted, too."""
    successor: ManagedFlow | None = None
    """If it is being moved: the flow on its new path, while both are granted."""
    former: ManagedFlow | None = None
    """If it was moved, or is about to be: the flow on its former path, while both are granted, and a reserved
    path until its end is on disk."""
    flow_after_swap: Flow | None = None
    """While it is being written that its successor has taken its place: what it is called after that.

    They exchange their ids, which nobody else can have."""
    pending_replacements: list[tuple[str, WireEntry, WireEntry]] = field(default_factory=list)
    """If it was moved: the entries of its former path that are still to be exchanged for its own."""
    last_replaced: tuple[str, int] | None = None
    """The latest that was exchanged, by switch and cookie."""
    needs_path: bool = False
    """Whether it has lost its path, and another is looked for."""
    search_ns: int = 0
    """When a path is looked for again."""
    next_path: tuple[Hop, ...] = ()
    """The reserved path that it is to take, for which it has its entries off its present path."""
    keeps_fork: bool = False
    """After a restart during a move: whether frames go on taking the former path, until all other switches
    of its path have confirmed its entries."""
    return_ns: int | None = None
    """If it is on a backup path: when it returns to its working path; None if it does not by itself."""
    pending_grant: tuple[AdmittedFlow, PromisedGuarantee] | None = None
    """Grant and promise on the new path, until they are on disk."""

    @property
    def flow(self) -> Flow:
        """The requested flow."""
        return self.requested_flow or self.grant.flow

    @property
    def path(self) -> tuple[Hop, ...]:
        """The path of the flow."""
        return self.grant.path

    @property
    def paths(self) -> tuple[tuple[Hop, ...], ...]:
        """The paths that its frames take: one, or both if it is duplicated."""
        return (self.path,) if self.second_copies is None else (self.path, self.second_copies.path)

    @property
    def switches(self) -> tuple[str, ...]:
        """The switches on its paths, in order, each once."""
        return tuple(dict.fromkeys(hop.switch for path in self.paths for hop in path))

    @property
    def unconfirmed_switches(self) -> set[str]:
        """The switches that have yet to confirm an entry."""
        return {switch for switch, _ in self.unconfirmed}

    @property
    def is_in_place(self) -> bool:
        """Whether its host may send: it is installed, and its promise is kept."""
        return self.state is FlowState.INSTALLED and not self.breaks

    @property
    def waits_for_other(self) -> bool:
        """Whether it must not be forgotten yet, as entries for the same frames are to go before its own."""
        if self.former is not None and self.may_have_sent:
            return True
        return self.successor is not None and not self.successor.may_have_sent

    @property
    def takes_path(self) -> bool:
        """Whether it is being written that it has another path."""
        return self.former is not None and self.former.on_disk is None

    @property
    def crosses_dead_cable(self) -> bool:
        """Whether a cable of its path is dead."""
        return any(found.cause is ViolationCause.LINK_DOWN for found in self.breaks)

    def is_lost(self, flow: Flow) -> bool:
        """Return whether this flow is lost, so that a request for it grants it again."""
        return self.state is FlowState.LOST and self.flow == flow and not self.is_leaving

    def await_all(self, switch: str | None = None) -> None:
        """Mark the entries at a switch, or at all of them, as unconfirmed."""
        self.unconfirmed |= {(name, entry.cookie) for name, entry in self.entries if switch in (None, name)}

    @property
    def sent_ports(self) -> tuple[int, ...]:
        """The source ports of the copies of each frame that the host of a duplicated flow may send.

        None is sent where a switch may lack its entry: it would ask the controller about each frame.
        """
        if self.second_copies is None:
            return (self.flow.udp_source,)
        ports = zip((self.flow.udp_source, self.second_copies.udp_source), self.paths, strict=True)
        without_entry = {
            found.place
            for found in (*self.breaks, *self.breaks.on_one_path)
            if found.cause in {ViolationCause.SWITCH_AWAY, ViolationCause.ENTRY_MISSING}
        }
        return tuple(port for port, path in ports if without_entry.isdisjoint(hop.switch for hop in path))

    @property
    def ingress_entries(self) -> Sequence[tuple[str, WireEntry]]:
        """The entries by which frames enter the network, all at one switch: of each path the first."""
        first = self.entries[0]
        return [first] if self.second_copies is None else [first, self.entries[len(self.path)]]

    def is_first(self, switch: str, cookie: int) -> bool:
        """Return whether frames enter the network by this entry."""
        return any((name, entry.cookie) == (switch, cookie) for name, entry in self.ingress_entries)


class FlowManager:
    """All flows of a lab. Every call may add to the effects; `effects()` returns them."""

    def __init__(
        self,
        lab: Lab,
        admitter: Admitter,
        drivers: Mapping[str, Driver],
        *,
        now_ns: int,
        stored: Sequence[StoredFlow] = (),
        backlogs: Mapping[str, float] = MappingProxyType({}),
        last_number: int = 0,
        padding: Sequence[FlowEntry] = (),
        grace_ns: int = 0,
        openflow: OpenFlow = OpenFlow.V1_0,
        utc_less_now_ns: int = 0,
        conditions: Sequence[str] = (),
        reroute_ns: int | None = None,
        returns: ReturnMode = ReturnMode.AUTOMATIC,
    ) -> None:
        """Load the stored flows. Raises `InputError` with a line for each promise that cannot be kept.

        It is not known how long ago they were stored, so the `backlogs` of released flows count as if no time
        had passed. `padding` are put into every table before any flow's entry, and stay there
        (`loko.control.entries.padding_entries`). After a flow is released, its host may go on sending for
        `grace_ns`. The switches' sessions speak `openflow`; `drivers` and `admitter` must be made for it.
        What is to be added to `now_ns` to get nanoseconds since 1970 is `utc_less_now_ns`. Guarantees hold on
        the `conditions` with these ids. A flow moves to another path if a cable of its own has been dead for
        `reroute_ns`; without it, flows wait for the cable. Flows of a `ProtectedAdmitter` move to their
        backup paths at once, and return by themselves unless `returns` by call.
        """
        self.lab = lab
        self.admitter = admitter
        self.drivers = drivers
        self.openflow = openflow
        self.cables = Cables(lab)
        self._utc_less_now_ns = utc_less_now_ns
        self._reroute_ns = reroute_ns
        self.protected = admitter if isinstance(admitter, ProtectedAdmitter) else None
        """The admitter, if flows survive failures."""
        self.returns = returns
        self._preinstalled: Mapping[str, Sequence[Hop]] = {}
        self._away_since_ns = dict.fromkeys(drivers, now_ns)
        self._ends_of: Mapping[str, Ends] = LazyMapping(lambda name: failure_of_switch(lab, name).dead_ends)
        self._entry_of = CODECS[openflow].entry_of
        self._flows: dict[str, ManagedFlow] = {}
        self._by_number: dict[int, ManagedFlow] = {}
        self._removing: dict[int, ManagedFlow] = {}
        self._lost_flows: dict[int, ManagedFlow] = {}
        self._now_ns = now_ns
        self._grace_ns = grace_ns
        self._ticket = 0
        self._last_number = max([last_number, *(flow.number for flow in stored)])
        self._effects = Effects()
        self._interrupted: str | None = None
        self._was_ready = dict.fromkeys(drivers, False)
        self._padding = [
            self._entry_of(entry, cookie=OWN_MARK << 48 | _PADDING_MARK | number)
            for number, entry in enumerate(padding)
        ]
        for driver in drivers.values():
            for entry in self._padding:
                driver.ensure(entry)
        self._grounds = Grounds.of(lab, conditions)
        admitter.advance(now_ns)
        without_path = self._restore(stored)
        try:
            admitter.restore_backlogs(backlogs, now_ns=now_ns)
        except (KeyError, ValueError):
            raise InputError("what released flows have left does not fit this lab any more") from None
        self._backlogged = set(backlogs)
        for stored_flow, gap in without_path:  # after all that counts, so that it takes nothing from it
            self._restore_lost(stored_flow, gap)
        for managed in self._flows.values():
            if managed.state is FlowState.REMOVING and managed.number not in self._removing:
                # Its frames may wait behind those of released flows, so this needs their residual backlogs.
                self._remove_entries(now_ns, managed)

    @property
    def flows(self) -> Mapping[str, ManagedFlow]:
        """The flows by id, in the order of their requests."""
        return self._flows

    @property
    def due_ns(self) -> int | None:
        """When `tick` next has something to do for a flow that is being removed; None if it has not."""
        ahead = (
            managed.drained_ns for managed in self._removing.values() if managed.drained_ns > self._now_ns
        )
        return min(ahead, default=None)

    def broken(self) -> Counter[ViolationCause]:
        """Return how many promises are broken, by cause; one may be so for several."""
        return Counter(
            cause for managed in self._flows.values() for cause in {found.cause for found in managed.breaks}
        )

    def is_unexpected_link(self, switch: str, port: int) -> bool:
        """Return whether nothing should be plugged in at a port of a switch."""
        return port != self.lab.control_port and self.cables.at(switch, port) is None

    def utc_ms(self, at_ns: int) -> int:
        """Return an instant of the flow manager's clock in milliseconds since 1970."""
        return (at_ns + self._utc_less_now_ns) // 1_000_000

    def effects(self) -> Effects:
        """Return, and forget, what is to be done since the last call."""
        taken, self._effects = self._effects, Effects()
        return taken

    # Requests of clients.

    def request(
        self,
        now_ns: int,
        flow: Flow,
        decide: Decide,
        deadline_ns: float | None = None,
        protection: Protection | None = None,
    ) -> int:
        """Install a flow if it is granted. Return the ticket of the answer, which may follow at once.

        `decide` keeps any deadline; it is stored with the promise. It also sees to the `protection`, which a
        flow that is there already must have.
        """
        self._ticket += 1
        self._advance(now_ns)
        known = self._flows.get(flow.id)
        if known is not None:
            if known.is_lost(flow):
                self._ask_for_lost(known, decide, deadline_ns)
            else:
                self._ask_again(known, flow, protection)
            return self._ticket
        answer = self._decide(flow, decide)
        if isinstance(answer, RequestOutcome):
            self._answer(answer)
        else:
            managed = self._accept(now_ns, answer, self._promise(answer, deadline_ns))
            managed.tickets.append(self._ticket)
        return self._ticket

    def dry_run(self, now_ns: int, flow: Flow, decide: Decide) -> DryRun | RequestOutcome:
        """Say what would become of a request, and do nothing."""
        self._advance(now_ns)
        known = self._flows.get(flow.id)
        if known is not None and not known.is_lost(flow):
            return Conflict(flow.id, "there is a flow with this id; choose another id")
        answer = self._decide(flow, decide) if known is None else self._decide_again(known, decide)
        if isinstance(answer, RequestOutcome):
            return answer
        usage = self.admitter.usage
        names = dict.fromkeys(hop.switch for path in self._paths(answer) for hop in path)
        after = {name: usage(name) for name in names}
        values = {**answer.flow._asdict(), **self.admitter.values(answer)}
        self.admitter.cancel(flow.id)
        return DryRun(values=values, before={name: usage(name) for name in names}, after=after)

    def release(self, now_ns: int, flow_id: str) -> int:
        """Remove a flow whose host has stopped sending it. Return the ticket of the answer."""
        self._ticket += 1
        self._advance(now_ns)
        managed = self._flows.get(flow_id)
        if managed is None:
            self._answer(UnknownFlow(flow_id))
        elif managed.state is FlowState.ACCEPTED or managed.pending_grant is not None:
            self._answer(Conflict(flow_id, "it is being installed; try again when that is answered"))
        elif managed.flow_after_swap is not None or managed.takes_path:
            self._answer(Conflict(flow_id, "it is being moved to another path; try again in a moment"))
        elif managed.state is FlowState.LOST:
            managed.tickets.append(self._ticket)
            self._withdraw(managed)
        else:
            if managed.state is FlowState.INSTALLED:
                self._withdraw(managed)
                self._give_up_move(managed)
            managed.tickets.append(self._ticket)
            self._poll(now_ns, managed)
            self._review_removal(now_ns, managed)
        return self._ticket

    # Events of switches.

    def connected(self, now_ns: int, switch: str) -> None:
        """Note that a switch has introduced itself; an older connection of it is gone."""
        if self.drivers[switch].phase is not SessionPhase.AWAY:
            self.disconnected(now_ns, switch)
        self._log_switch(switch, "connected; comparing its table")
        self._process(now_ns, switch, self.drivers[switch].connected(now_ns))

    def disconnected(self, now_ns: int, switch: str) -> None:
        """Note that the connection of a switch is gone."""
        self.drivers[switch].disconnected()
        self._log_switch(switch, "disconnected", warning=True)
        self._lost(now_ns, switch, "the switch has disconnected")

    def reply(self, now_ns: int, switch: str, reply: WireReply) -> None:
        """Take in an answer of a switch."""
        self._process(now_ns, switch, self.drivers[switch].reply(now_ns, reply))

    def tick(self, now_ns: int) -> None:
        """Let time pass. Call it several times a second, and at `due_ns`."""
        self._advance(now_ns)
        for switch in self.drivers:
            self._process(now_ns, switch, self.drivers[switch].poll(now_ns))
        for managed in list(self._flows.values()):
            late = managed.on_disk is not None and now_ns - managed.since_ns > TIMEOUT_NS
            if managed.state is FlowState.ACCEPTED and late and managed.unconfirmed_switches:
                silent = min(managed.unconfirmed_switches)
                reason = "no confirmation in time"
                self._take_back(managed, Unavailable(managed.flow.id, silent, reason, Disposition.TAKEN_BACK))
        for managed in list(self._removing.values()):
            self._review_removal(now_ns, managed)
        if self.protected is None:
            self._move_one(now_ns)
        else:
            self._move_protected(now_ns)
        self._write_backlogs(
            server for server in list(self._backlogged) if self.admitter.residual_backlog(server) is None
        )

    def interrupt(self, now_ns: int, reason: str) -> None:
        """Tell all who wait that the service ends. Nothing may be requested after this."""
        self._advance(now_ns)
        self._interrupted = reason
        for managed in list(self._flows.values()):
            if managed.state is FlowState.ACCEPTED:
                self._take_back(managed, Interrupted(managed.flow.id, reason, Disposition.TAKEN_BACK))
            elif managed.state is FlowState.REMOVING:
                self._leave_to_restart(managed)

    # The disk.

    def stored(self, now_ns: int, writes: Iterable[Write]) -> None:
        """Note that these writes are on disk, and go on with what depends on them."""
        self._advance(now_ns)
        for write in writes:
            match write:
                case Insert(stored=StoredFlow(number=number)):
                    managed = self._by_number.get(number)
                    if managed is not None and managed.state is FlowState.ACCEPTED:
                        self._begin_installation(now_ns, managed)
                    elif managed is not None and managed.successor is not None:
                        self._take_path(now_ns, managed.successor, managed)
                case UpdateState(number=number, state=state):
                    if (managed := self._by_number.get(number)) is not None:
                        managed.on_disk = state
                        self._state_stored(now_ns, managed, state)
                case Rewrite(stored=StoredFlow(number=number, state=state)):
                    managed = self._by_number.get(number)
                    if managed is not None and managed.flow_after_swap is None:
                        managed.on_disk = state
                        if managed.pending_grant is not None:
                            self._install_again(now_ns, managed, *managed.pending_grant)
                        elif state is FlowState.INSTALLED and managed.state is FlowState.ACCEPTED:
                            assert managed.former is not None
                            self._swap_paths(now_ns, managed.former, managed)
                case Delete(number=number):
                    if (left := self._by_number.pop(number, None)) is not None:
                        self._forget_former_path(now_ns, left)

    def _state_stored(self, now_ns: int, managed: ManagedFlow, state: FlowState) -> None:
        """Go on with a flow whose new state is on disk."""
        if managed.state is FlowState.LOST:
            self._forget_lost(managed)
        elif state is FlowState.REMOVING:
            self._begin_removal(now_ns, managed)
        elif not managed.is_leaving:
            self._grant(now_ns, managed)

    def failed(self, now_ns: int, writes: Iterable[Write], reason: str) -> list[Write]:
        """Note that the disk took none of these writes: take back what they would have begun.

        Installed flows stay, and removals go on; a restart would do the same. Return the writes to try again,
        before all others.
        """
        self._advance(now_ns)
        again: list[Write] = []
        for write in writes:
            match write:
                case Insert(stored=StoredFlow(number=number)):
                    if (managed := self._by_number.get(number)) is not None:
                        self._drop(managed)
                        self._answer_all(managed, NotStored(managed.flow.id, reason, Disposition.NOTHING))
                case UpdateState(number=number, state=state):
                    if (managed := self._by_number.get(number)) is not None:
                        self._undo_state(now_ns, managed, state, reason)
                case Rewrite(stored=StoredFlow(number=number, state=state)):
                    managed = self._by_number.get(number)
                    if managed is not None and not self._undo_rewrite(managed, state, reason):
                        again.append(write)
                case _:
                    again.append(write)
        return again

    def _undo_state(self, now_ns: int, managed: ManagedFlow, state: FlowState, reason: str) -> None:
        """Undo what a change of state would have begun."""
        flow_id = managed.flow.id
        if managed.state is FlowState.LOST:
            managed.is_leaving = False
            self._answer_all(managed, NotStored(flow_id, reason, Disposition.NOTHING))
        elif state is FlowState.INSTALLED:
            if not managed.is_leaving:
                managed.taken_back = NotStored(flow_id, reason, Disposition.TAKEN_BACK)
                self._begin_removal(now_ns, managed)
        elif managed.is_leaving and managed.on_disk is FlowState.INSTALLED:
            managed.is_leaving, managed.taken_back = False, None
            became = Disposition.NOTHING if managed.state is FlowState.INSTALLED else Disposition.UNKNOWN
            managed.state, managed.may_have_sent = FlowState.INSTALLED, True
            self._answer_all(managed, NotStored(flow_id, reason, became))
        elif managed.is_leaving:
            self._begin_removal(now_ns, managed)

    def _undo_rewrite(self, managed: ManagedFlow, state: FlowState, reason: str) -> bool:
        """Undo what would have followed from a flow's new terms. Return whether anything would have."""
        if state is FlowState.INSTALLED and managed.pending_grant is not None:
            managed.pending_grant = None
            self.admitter.cancel(managed.flow.id)
            self._answer_all(managed, NotStored(managed.flow.id, reason, Disposition.NOTHING))
            return True
        if managed.takes_path:  # undone with the other write of the two
            managed.search_ns = self._now_ns + _NEXT_TRY_NS
            return True
        if managed.flow_after_swap is not None or (
            managed.former is not None and managed.state is FlowState.ACCEPTED
        ):
            managed.flow_after_swap = None
            if managed.former is not None:  # the other write of the two
                self._give_up_move(managed.former)
            return True
        return False

    # How requests are carried out.

    def _decide(self, flow: Flow, decide: Decide) -> AdmittedFlow | RequestOutcome:
        """Grant a flow, or say why not."""
        self.admitter.avoid(self._dead_ends(self._now_ns))
        try:
            answer = decide()
        except DuplicateFlowError as error:
            return Conflict(flow.id, str(error))
        except InputError as error:
            return InvalidRequest(str(error))
        if isinstance(answer, Refusal):
            return Refused(answer)
        if (obstacle := self._obstacle(answer)) is not None:
            self.admitter.cancel(flow.id)
            return obstacle
        return answer

    def _ask_again(self, known: ManagedFlow, flow: Flow, protection: Protection | None) -> None:
        reserved = self.admitter.reserved_paths(flow.id)
        if known.flow != flow or known.requested_flow is not None:
            self._answer(
                Conflict(flow.id, "this id belongs to another flow; choose another id, or delete it")
            )
        elif known.state is FlowState.REMOVING or known.is_leaving:
            self._answer(Conflict(flow.id, "it is being removed; try again when that is done"))
        elif reserved is not None and protection not in {None, reserved.protection}:
            text = f"its protection is '{reserved.protection}'; release it, and request it again"
            self._answer(Conflict(flow.id, text))
        elif known.state is FlowState.ACCEPTED:
            known.tickets.append(self._ticket)
        else:
            self._answer(Granted(flow.id, is_new=False))

    def _ask_for_lost(self, known: ManagedFlow, decide: Decide, deadline_ns: float | None) -> None:
        """Grant a flow again that has lost its room, as if it were new."""
        if known.pending_grant is not None:
            known.tickets.append(self._ticket)
            return
        answer = self._decide_again(known, decide)
        if isinstance(answer, RequestOutcome):
            self._answer(answer)
        else:
            known.tickets.append(self._ticket)
            self._regrant(known, answer, self._promise(answer, deadline_ns))

    def _obstacle(self, grant: AdmittedFlow) -> RequestOutcome | None:
        """Return why a granted flow cannot be installed now; None if it can."""
        flow = grant.flow
        dead = self.cables.first_dead(flow.source, grant.path)
        if dead is not None:
            return Unavailable(flow.id, grant.path[0].switch, self.cables.text(dead))
        for hop in (hop for path in self._paths(grant) for hop in path):
            driver = self.drivers[hop.switch]
            if not driver.ready:
                return Unavailable(
                    flow.id, hop.switch, "the switch is not connected, or its table is not known yet"
                )
            if (lost := self._lost_flow_at(hop.switch)) is not None:
                return Unavailable(flow.id, hop.switch, f"an entry of lost flow '{lost}' is being removed")
            if missing := sum(not driver.holds(entry.cookie) for entry in self._padding):
                return Unavailable(
                    flow.id, hop.switch, f"{missing} of its {len(self._padding)} padding entries are missing"
                )
        return self._refuse_if_full(grant)

    def _refuse_if_full(self, grant: AdmittedFlow) -> Refused | None:
        """Refuse a granted flow if the entries of others leave no place for its own."""
        too_many: dict[str, int] = {}
        first: ResourceShare | None = None
        own = Counter(hop.switch for path in self._paths(grant) for hop in path)
        is_moved = self.protected is not None and self.protected.reserved_paths(grant.flow.id) is None
        for switch in own:
            foreign = len(self.drivers[switch].foreign_entries)
            # After several failures, a table may hold more of the flows than any state has that is admitted.
            held = 0 if is_moved or not self.on_backup else self._entries_held(switch) + own[switch]
            if foreign or held:
                entries = self.admitter.usage(switch).share("entries")
                entries = entries._replace(used=max(entries.used, held) + foreign)
                if entries.used > entries.allowed:
                    too_many[switch] = math.ceil(entries.used - entries.allowed)
                    first = first or entries
        if first is None:
            return None
        limiting = next(iter(too_many))
        return Refused(
            Refusal(
                flow=grant.flow,
                switch=limiting,
                quantity=first.quantity,
                used=first.used - own[limiting],
                requested=own[limiting],
                allowed=first.allowed,
                unit=first.unit,
                advice="remove entries of others, "
                + ", ".join(f"{count} at {switch}" for switch, count in too_many.items()),
            )
        )

    def _accept(
        self,
        now_ns: int,
        grant: AdmittedFlow,
        promised: PromisedGuarantee,
        requested_flow: Flow | None = None,
    ) -> ManagedFlow:
        """Have a granted flow written, so that it is installed after that."""
        self._last_number += 1
        managed = ManagedFlow(
            number=self._last_number,
            grant=grant,
            state=FlowState.ACCEPTED,
            since_ns=now_ns,
            entries=(),
            cables=frozenset(),
            promised=promised,
            unconfirmed=set(),
            requested_flow=requested_flow,
        )
        self._note_paths(managed)
        managed.await_all()
        self._register(managed)
        self._effects.writes.append(Insert(self._stored_form(managed)))
        return managed

    def _begin_installation(self, now_ns: int, managed: ManagedFlow) -> None:
        """Have the switches take the flow's entries, as the flow is on disk."""
        managed.on_disk = FlowState.ACCEPTED
        managed.since_ns = now_ns
        if not managed.is_leaving:
            self._install_entries(now_ns, managed)
            self._poll(now_ns, managed)
            if managed.former is not None and not managed.unconfirmed:
                self._begin_swap(managed.former, managed)

    def _install_entries(self, now_ns: int, managed: ManagedFlow) -> None:
        """Have the switches take the entries of a flow that is granted now, for which others may give way."""
        exchanged = self._update_preinstalled(now_ns, managed)
        for switch, entry in managed.entries:
            key = switch, entry.cookie
            if key in managed.unconfirmed and key not in exchanged:
                self.drivers[switch].ensure(entry)

    def _grant(self, now_ns: int, managed: ManagedFlow) -> None:
        """Say that a flow is installed, as that is on disk."""
        managed.state = FlowState.INSTALLED
        managed.may_have_sent = True
        self._answer_all(managed, Granted(managed.flow.id, is_new=True))
        self._log_flow(managed, "is installed")
        self._break_by_dead_cables(now_ns, managed)

    def _withdraw(self, managed: ManagedFlow) -> None:
        """Have it written that a flow is to be removed, unless that is so already."""
        if not managed.is_leaving:
            managed.is_leaving = True
            self._effects.writes.append(UpdateState(managed.number, FlowState.REMOVING))

    def _begin_removal(self, now_ns: int, managed: ManagedFlow) -> None:
        """Begin to remove a flow, unless it has begun, and say so to those whose flow is taken back."""
        if managed.number in self._removing:
            return
        for switch, former, entry in managed.pending_replacements:
            self.drivers[switch].replace(former, entry)
        managed.pending_replacements = []
        managed.state, managed.is_leaving = FlowState.REMOVING, False
        managed.since_ns = now_ns
        managed.breaks = Violations()
        managed.await_all()
        self._remove_entries(now_ns, managed)
        self._log_flow(managed, "is being removed")
        if managed.taken_back is not None:
            self._answer_all(managed, managed.taken_back)
        self._poll(now_ns, managed)
        self._review_removal(now_ns, managed)
        self._leave_to_restart(managed)

    def _leave_to_restart(self, managed: ManagedFlow) -> None:
        """Tell who waits for a removal that it goes on, if the service ends."""
        if self._interrupted is not None:
            self._answer_all(managed, Interrupted(managed.flow.id, self._interrupted, Disposition.CONTINUES))

    def _remove_entries(self, now_ns: int, managed: ManagedFlow) -> None:
        """Let the entries go at once if the flow has not sent, otherwise upstream first (`_retire`)."""
        self._removing[managed.number] = managed
        left = managed.former
        if self.protected is not None and left is not None and left.number in self._removing:
            left.unconfirmed.clear()  # its host has stopped, so nothing takes that path any more
            left.drained_ns = now_ns + self._grace_ns + self.admitter.drain_time_ns(left.flow.id)
        if managed.may_have_sent:
            managed.retained_entries = list(managed.entries)
            managed.drained_ns = now_ns + self._grace_ns + self.admitter.drain_time_ns(managed.flow.id)
        else:
            self._uninstall(managed, managed.entries)

    def _uninstall(self, managed: ManagedFlow, entries: Sequence[tuple[str, WireEntry]]) -> None:
        managed.retained_entries = [entry for entry in managed.retained_entries if entry not in entries]
        for switch, entry in entries:
            self.drivers[switch].remove(entry)

    def _retire(self, now_ns: int, managed: ManagedFlow) -> None:
        """Remove entries that no frame needs any more.

        The first switch loses its entry, or both of a duplicated flow, once all that was sent has arrived. If
        the host has gone on sending, its frames end there, and those past the first switch arrive before the
        others lose their entries. If the first switch is away, the others do not wait for it.
        """
        if not managed.retained_entries or now_ns < managed.drained_ns:
            return
        if self.protected is not None and managed.former is not None:
            return  # frames may be on the path that it has left, whose entries are among its own
        ingress = managed.ingress_entries
        first = {(switch, entry.cookie) for switch, entry in ingress}
        if len(managed.retained_entries) == len(managed.entries):
            self._uninstall(managed, ingress)
        is_away = managed.successor is None and not self.drivers[ingress[0][0]].ready
        if first.isdisjoint(managed.unconfirmed) or is_away:
            self._uninstall(managed, managed.retained_entries)
        self._poll(now_ns, managed)

    def _take_back(self, managed: ManagedFlow, outcome: RequestOutcome) -> None:
        """Remove a flow that was not granted. Its requesters are told once that is certain."""
        if managed.former is not None and managed.former.flow_after_swap is not None:
            return  # it takes the place of its former self, and is broken then
        if not managed.is_leaving:
            managed.taken_back = outcome
            self._withdraw(managed)

    def _review_removal(self, now_ns: int, managed: ManagedFlow) -> None:
        """Go on with a removal, and answer it once only switches that are away are missing."""
        if managed.state is FlowState.REMOVING:
            self._retire(now_ns, managed)
        if managed.number not in self._removing or managed.waits_for_other:
            return  # it is not, or no longer, being removed
        flow_id = managed.flow.id
        if not managed.unconfirmed_switches:
            if now_ns >= managed.drained_ns:
                self._forget(now_ns, managed)
        elif not any(self.drivers[switch].ready for switch in managed.unconfirmed_switches):
            self._answer_all(managed, Released(flow_id, tuple(sorted(managed.unconfirmed_switches))))

    def _forget(self, now_ns: int, managed: ManagedFlow) -> None:
        """Release a flow that is gone everywhere, with no frame in flight, and store its residual backlog."""
        flow_id = managed.flow.id
        self._effects.writes.append(Delete(managed.number))
        if managed.may_have_sent:
            self._release(now_ns, managed)
            del self._flows[flow_id]
            if self.protected is None or managed.successor is None:
                del self._by_number[managed.number]
                self._unlink(managed)
        else:
            self._drop(managed)
        del self._removing[managed.number]
        self._log_flow(managed, "is removed")
        self._answer_all(managed, Released(flow_id))
        self._update_preinstalled(now_ns)

    def _forget_former_path(self, now_ns: int, left: ManagedFlow) -> None:
        """Have switches lose the entries of a path that a flow has left, as that is on disk.

        Until then a restart would have frames take that path (`_await_fork`).
        """
        managed = left.successor
        self._unlink(left)
        if managed is not None:
            self._hold(now_ns, managed)
            self._move_protected(now_ns)

    def _release(self, now_ns: int, managed: ManagedFlow) -> None:
        """Give back the room of a flow that has sent."""
        servers = self.admitter.servers(managed.grant)
        self.admitter.release(managed.flow.id, now_ns=now_ns, sent_until_ns=managed.ingress_removed_ns)
        self._write_backlogs(servers)

    def _forget_lost(self, managed: ManagedFlow) -> None:
        """Forget a flow that is neither granted nor installed."""
        self._effects.writes.append(Delete(managed.number))
        del self._flows[managed.flow.id], self._by_number[managed.number]
        del self._lost_flows[managed.number]
        self._log_flow(managed, "is removed")
        self._answer_all(managed, Released(managed.flow.id))

    def _drop(self, managed: ManagedFlow) -> None:
        """Forget a flow that has sent nothing."""
        self.admitter.cancel(managed.flow.id)
        del self._flows[managed.flow.id], self._by_number[managed.number]
        self._unlink(managed)

    def _write_backlogs(self, servers: Iterable[str]) -> None:
        backlogs = {server: self.admitter.residual_backlog(server) for server in servers}
        written = {
            server: backlog
            for server, backlog in backlogs.items()
            if backlog is not None or server in self._backlogged
        }
        if written:
            self._effects.writes.append(WriteBacklogs(written))
        for server, backlog in written.items():
            if backlog is None:
                self._backlogged.discard(server)
            else:
                self._backlogged.add(server)

    # Switches.

    def _poll(self, now_ns: int, managed: ManagedFlow) -> None:
        for switch in dict.fromkeys((*managed.switches, *(name for name, _ in managed.entries))):
            self._process(now_ns, switch, self.drivers[switch].poll(now_ns))

    def _process(self, now_ns: int, switch: str, segments: Iterable[Segment]) -> None:
        """Handle a driver's notices, then queue its segments for sending."""
        driver = self.drivers[switch]
        for notice in driver.notices():
            match notice:
                case Installed(cookie=cookie):
                    self._installed(now_ns, switch, cookie)
                case Removed(cookie=cookie):
                    self._removed(now_ns, switch, cookie)
                case Rejected(cookie=cookie, reason=reason):
                    self._rejected(now_ns, switch, cookie, reason)
                case LinkChanged(port=port, is_up=is_up):
                    self._link_changed(now_ns, switch, port, is_up=is_up)
                case Diagnostic(text=text, warning=warning):
                    self._log_switch(switch, text, warning=warning)
                case Failed(reason=reason):
                    self._effects.closes.append(switch)
                    self._log_switch(switch, f"{reason}; closing its connection", warning=True)
                    self._lost(now_ns, switch, reason)
        self._effects.sends += [(switch, segment) for segment in segments]
        if driver.ready and not self._was_ready[switch]:
            self._was_ready[switch] = True
            self._away_since_ns.pop(switch, None)
            self._log_switch(switch, "table compared; keeping it")
            self._returned(now_ns, switch)

    def _flow_of(self, cookie: int) -> ManagedFlow | None:
        return None if cookie & _PADDING_MARK else self._by_number.get(cookie & ((1 << _VISIT) - 1))

    def _installed(self, now_ns: int, switch: str, cookie: int) -> None:
        managed = self._flow_of(cookie)
        confirmed = (switch, cookie)
        if managed is None or managed.state in _WITHOUT_ENTRIES or confirmed not in managed.unconfirmed:
            return
        managed.unconfirmed.discard(confirmed)
        if switch not in managed.unconfirmed_switches:
            self._mend(managed, ViolationCause.SWITCH_AWAY, switch)
            self._mend(managed, ViolationCause.ENTRY_MISSING, switch)
        self._exchange(now_ns, managed)
        self._go_on_moving(now_ns, managed, confirmed)
        self._review_installation(managed)

    def _review_installation(self, managed: ManagedFlow) -> None:
        """Go on with a flow once all switches have confirmed it, but for those off its path that are away."""
        awaited = (name in managed.switches or self.drivers[name].ready for name, _ in managed.unconfirmed)
        if managed.state is not FlowState.ACCEPTED or managed.is_leaving or any(awaited):
            return
        if managed.former is None:
            self._effects.writes.append(UpdateState(managed.number, FlowState.INSTALLED))
        else:
            self._begin_swap(managed.former, managed)

    def _removed(self, now_ns: int, switch: str, cookie: int) -> None:
        managed = self._flow_of(cookie)
        if managed is not None and managed.state in _WITHOUT_ENTRIES:
            managed.unconfirmed.discard((switch, cookie))
            if managed.may_have_sent and managed.is_first(switch, cookie):
                managed.ingress_removed_ns = now_ns
                managed.drained_ns = now_ns + self.admitter.drain_time_ns(managed.flow.id)
            self._review_removal(now_ns, managed)

    def _rejected(self, now_ns: int, switch: str, cookie: int, reason: str) -> None:
        managed = self._flow_of(cookie)
        if managed is None and cookie & _PADDING_MARK:
            self._log_switch(switch, f"does not take a padding entry: {reason}; trying again", warning=True)
        if managed is None or managed.state in _WITHOUT_ENTRIES:
            return
        text = f"{switch} does not take its entry: {reason}"
        if managed.state is FlowState.ACCEPTED:
            self._log_flow(managed, f"is taken back: {text}", warning=True)
            self._take_back(managed, EntryRejected(managed.flow.id, switch, reason))
        else:
            managed.unconfirmed.add((switch, cookie))
            self._log_flow(managed, f"{text}; trying again", warning=True)
            self._break(now_ns, managed, ViolationCause.ENTRY_MISSING, switch, text)

    def _lost(self, now_ns: int, switch: str, reason: str) -> None:
        self._was_ready[switch] = False
        self._away_since_ns.setdefault(switch, now_ns)
        for managed in list(self._flows.values()):
            is_on_path = switch in managed.switches
            if not is_on_path and all(name != switch for name, _ in managed.entries):
                continue
            if managed.state is FlowState.ACCEPTED and not is_on_path:
                managed.await_all(switch)
                self._review_installation(managed)
            elif managed.state is FlowState.ACCEPTED:
                outcome = Unavailable(managed.flow.id, switch, reason, Disposition.TAKEN_BACK)
                self._take_back(managed, outcome)
            elif managed.state is FlowState.INSTALLED:
                managed.await_all(switch)
                if is_on_path:
                    self._break(now_ns, managed, ViolationCause.SWITCH_AWAY, switch, reason)
            else:
                self._review_removal(now_ns, managed)

    def _returned(self, now_ns: int, switch: str) -> None:
        """A switch's table is known again: what is missing there is missing for another reason now."""
        for managed in self._flows.values():
            is_missing = switch in managed.switches and switch in managed.unconfirmed_switches
            if managed.state is FlowState.INSTALLED and is_missing:
                text = f"{switch} has lost its entry; installing it again"
                self._break(now_ns, managed, ViolationCause.ENTRY_MISSING, switch, text)
                self._mend(managed, ViolationCause.SWITCH_AWAY, switch)

    def _link_changed(self, now_ns: int, switch: str, port: int, *, is_up: bool) -> None:
        change = self.cables.report(switch, port, is_up=is_up)
        if self.cables.at(switch, port) is None:
            if is_up and self.is_unexpected_link(switch, port):
                text = f"port {port} has a link, but the lab has no cable there"
                self._log_switch(switch, text, warning=True)
            return
        if change is None:
            return
        text = self.cables.text(change.cable) if change.is_dead else f"cable {change.cable} has a link again"
        self._log_switch(switch, text, warning=change.is_dead)
        for managed in list(self._flows.values()):
            if change.cable not in managed.cables:
                continue
            if not change.is_dead:
                self._mend(managed, ViolationCause.LINK_DOWN, change.cable)
                if not managed.crosses_dead_cable:
                    self._give_up_move(managed)
            elif managed.state is FlowState.INSTALLED:
                self._break(now_ns, managed, ViolationCause.LINK_DOWN, change.cable, text)
            elif managed.state is FlowState.ACCEPTED:
                self._take_back(managed, Unavailable(managed.flow.id, switch, text, Disposition.TAKEN_BACK))
        if self.protected is not None:
            self._move_protected(now_ns)

    # Flows that survive failures.

    @property
    def in_two_rounds(self) -> tuple[str, ...]:
        """The flows that some failure moves in two round trips, as not all entries are there beforehand."""
        return () if self.protected is None else self.protected.moved_in_two_rounds(self._preinstalled)

    @property
    def on_one_path(self) -> tuple[str, ...]:
        """The duplicated flows of which one path has a fault, so that only one copy of each frame arrives."""
        return tuple(name for name, managed in self._flows.items() if managed.breaks.on_one_path)

    @property
    def on_backup(self) -> tuple[str, ...]:
        """The flows that are in place, but not on their working paths."""
        return tuple(managed.flow.id for managed in self._flows.values() if self.is_on_backup(managed))

    def is_on_backup(self, managed: ManagedFlow) -> bool:
        """Return whether a flow is in place, but not on its working path."""
        return managed.state is FlowState.INSTALLED and self._working_path(managed) is not None

    def may_send(self, managed: ManagedFlow) -> bool:
        """Return whether the host of a flow may send: it is in place, or moves away from a dead cable.

        Its frames meanwhile are lost at that cable, or take a path that has all its entries: while it moves,
        the one that it gets or the one that it leaves.
        """
        if self.protected is None or managed.state is not FlowState.INSTALLED:
            return managed.is_in_place
        causes, left = {found.cause for found in managed.breaks}, managed.former
        if left is None:
            return causes <= {ViolationCause.LINK_DOWN}
        paths = (managed.path, left.path) if left.unconfirmed else (managed.path,)
        reached = {hop.switch for path in paths for hop in path}
        return causes <= {ViolationCause.LINK_DOWN, ViolationCause.ENTRY_MISSING} and all(
            self.drivers[switch].holds(entry.cookie) for switch, entry in managed.entries if switch in reached
        )

    def uncovered(self) -> tuple[str, ...]:
        """Say why the reserved paths do not cover the next failure; empty if they do."""
        away = (f"{switch} is away" for switch in self._away_since_ns)
        backup = (f"flow '{flow_id}' is on its backup path" for flow_id in self.on_backup)
        entries = (
            f"flow '{managed.flow.id}' lacks its entry at {switch}"
            for managed in self._flows.values()
            if managed.state is FlowState.INSTALLED
            for switch in sorted(managed.unconfirmed_switches - self._away_since_ns.keys())
        )
        return (*map(self.cables.text, self.cables.dead), *away, *backup, *entries)

    def return_flows(self, now_ns: int) -> tuple[str, ...]:
        """Let the flows on backup paths return whose working paths are intact. Return their ids."""
        self._advance(now_ns)
        dead_ends = self._dead_ends(now_ns)
        returning = []
        for flow_id in self.on_backup:
            managed = self._flows[flow_id]
            path = self._working_path(managed)
            if path is not None and not leaves_by(dead_ends, managed.flow.source, path):
                managed.return_ns = now_ns
                returning.append(flow_id)
        self._move_protected(now_ns)
        return tuple(returning)

    def _working_path(self, managed: ManagedFlow) -> tuple[Hop, ...] | None:
        """Return the working path of a flow that is on another; else None."""
        if self.protected is None:
            return None
        return self.protected.working_path(managed.flow.id, managed.path)

    def _dead_ends(self, now_ns: int) -> Ends:
        """Return the ends of all cables that are dead, or whose switch has failed."""
        failed = (
            self._ends_of[switch]
            for switch, since_ns in self._away_since_ns.items()
            if now_ns - since_ns >= SWITCH_FAILED_NS
        )
        return self.cables.dead_ends.union(*failed)

    def _move_protected(self, now_ns: int) -> None:
        """Have flows take the reserved paths that failures or repairs make them take."""
        dead_ends = self._dead_ends(now_ns)
        for managed in list(self._flows.values()):
            if managed.state is not FlowState.INSTALLED or managed.is_leaving or managed.former is not None:
                continue
            path = self._path_to_take(now_ns, managed, dead_ends)
            if self._has_entries_for(now_ns, managed, path or ()) and path and managed.search_ns <= now_ns:
                self._begin_protected_move(now_ns, managed, path)

    def _has_entries_for(self, now_ns: int, managed: ManagedFlow, path: tuple[Hop, ...]) -> bool:
        """Return whether a flow could take a path by one change; otherwise see to its further entries."""
        ahead = {hop.switch for hop in path} - set(managed.switches)
        if managed.next_path != path:
            missing = ahead - {switch for switch, _ in managed.entries}
            if not all(map(self._has_place, missing)):
                return False
            managed.next_path = path
            self._hold(now_ns, managed)
        return managed.former is None and managed.unconfirmed_switches.isdisjoint(ahead)

    def _has_place(self, switch: str) -> bool:
        """Return whether the table of a switch has a place that no entry takes or is about to."""
        foreign = len(self.drivers[switch].foreign_entries)
        return self._entries_held(switch) + foreign < self.admitter.usage(switch).share("entries").allowed

    def _entries_held(self, switch: str) -> int:
        """Return how many entries of flows the table of a switch may have by now."""
        return self.drivers[switch].most_entries - len(self._padding)

    def _path_to_take(self, now_ns: int, managed: ManagedFlow, dead_ends: Ends) -> tuple[Hop, ...] | None:
        """Return the path to which a flow is to move now; None if it stays where it is."""
        assert self.protected is not None
        flow = managed.flow
        if leaves_by(dead_ends, flow.source, managed.path):
            return self.protected.path_without(flow.id, managed.path, dead_ends, self.cables.reporting)
        working = self._working_path(managed)
        if working is None or leaves_by(dead_ends, flow.source, working):
            managed.return_ns = None
            return None
        if managed.return_ns is None and self.returns is ReturnMode.AUTOMATIC:
            managed.return_ns = now_ns + WAIT_TO_RESTORE_NS
        return working if managed.return_ns is not None and managed.return_ns <= now_ns else None

    def _begin_protected_move(self, now_ns: int, managed: ManagedFlow, path: tuple[Hop, ...]) -> None:
        protected, flow_id = self.protected, managed.flow.id
        assert protected is not None
        second = self._second_flow(managed)
        answer = self._decide(second, lambda: protected.grant_second_path(flow_id, second, path))
        if isinstance(answer, RequestOutcome):
            managed.search_ns = now_ns + _NEXT_TRY_NS
            return
        self._last_number += 1
        left = ManagedFlow(
            number=self._last_number,
            grant=answer,
            state=FlowState.REMOVING,
            since_ns=now_ns,
            entries=(),
            cables=managed.cables,
            promised=managed.promised,
            unconfirmed=set(),
            may_have_sent=True,
            requested_flow=managed.flow._replace(id=second.id),
            successor=managed,
        )
        managed.former = left
        self._register(left)
        stored = self._stored_form(managed)
        former = replace(self._stored_form(left), path=managed.path)
        self._effects.writes += [Rewrite(replace(stored, path=answer.path)), Insert(former)]

    def _take_path(self, now_ns: int, managed: ManagedFlow, left: ManagedFlow) -> None:
        """Let a flow take another of its reserved paths, as that is on disk, by one exchange of an entry.

        Until that is confirmed and nothing is under way on the path that it has left, both paths count.
        """
        managed.grant, left.grant = self._exchange_grants(managed.flow, left.grant.flow)
        managed.cables = self.cables.of(managed.flow.source, managed.path)
        managed.next_path = ()
        was_broken = bool(managed.breaks)
        managed.breaks.clear_places()
        self._await_fork(managed, left)
        names = "-".join(hop.switch for hop in managed.path)
        self._log_flow(managed, f"gets the path {names}")
        self._hold(now_ns, managed)
        self._begin_promise(now_ns, managed, "its entry is being exchanged" if was_broken else None)

    def _await_fork(self, managed: ManagedFlow, left: ManagedFlow) -> None:
        """Keep the path that a flow has left until the switch where the paths part has changed."""
        fork = managed.path[last_common_hop(left.path, managed.path)].switch
        left.on_disk = FlowState.REMOVING
        left.unconfirmed = {(fork, entry.cookie) for switch, entry in managed.entries if switch == fork}
        self._removing[left.number] = left

    def _go_on_moving(self, now_ns: int, managed: ManagedFlow, confirmed: tuple[str, int]) -> None:
        """Go on with the move of a flow between reserved paths, as a switch has confirmed an entry."""
        left = managed.former
        if managed.next_path and managed.unconfirmed_switches.isdisjoint(
            hop.switch for hop in managed.next_path
        ):
            self._move_protected(now_ns)
        elif managed.keeps_fork and left is not None:
            waiting = managed.unconfirmed - left.unconfirmed
            if not any(switch in managed.switches for switch, _ in waiting):
                managed.keeps_fork = False
                self._hold(now_ns, managed)
        elif self.protected is not None and left is not None and confirmed in left.unconfirmed:
            left.unconfirmed.discard(confirmed)
            left.ingress_removed_ns = now_ns
            left.drained_ns = now_ns + self.admitter.drain_time_ns(left.flow.id)
            self._log_flow(managed, "has left its former path")

    # Entries off the paths of flows that survive failures.

    def _entries_to_hold(self, managed: ManagedFlow) -> list[tuple[str, WireEntry]]:
        """Return the entries that a flow is to have at present.

        Off its path these are, in this order where they differ, those of the path that it has left, of the
        one that it is to take, of its working path, and what is preinstalled of its backup paths.
        """
        routed = RoutedFlow(managed.flow, managed.path)
        reserved = None if self.protected is None else self.protected.reserved_paths(managed.flow.id)
        if reserved is None or not reserved.backups:
            return self._path_entries(managed)
        left = () if managed.former is None or managed.takes_path else managed.former.path
        hops = {hop.switch: hop for hop in managed.path}
        if managed.keeps_fork and left:
            fork = left[last_common_hop(left, managed.path)]
            hops[fork.switch] = fork
        preinstalled = self._preinstalled.get(managed.flow.id, ())
        for hop in (*left, *managed.next_path, *reserved.working, *preinstalled):
            hops.setdefault(hop.switch, hop)
        return [
            (switch, self._entry_of(entry, cookie=OWN_MARK << 48 | managed.number))
            for switch, entry in hop_entries(self.lab, routed, hops.values())
        ]

    def _hold(
        self, now_ns: int, managed: ManagedFlow, added: Mapping[str, WireEntry] = MappingProxyType({})
    ) -> set[str]:
        """Have switches hold exactly the entries that a flow is to have at present.

        Where one gives way to an entry of another flow that is `added`, by switch, they are exchanged, so
        that no table is longer than planned in between. Return the switches where that is so.
        """
        wanted = self._entries_to_hold(managed)
        if managed.state is FlowState.REMOVING:
            wanted = [found for found in managed.entries if found in wanted or found[0] not in added]
        if wanted == managed.entries:
            return set()
        held, managed.entries = dict(managed.entries), wanted
        changed = {(switch, entry.cookie): entry for switch, entry in wanted if held.get(switch) != entry}
        managed.unconfirmed |= changed.keys()
        gone = held.keys() - dict(wanted).keys()
        managed.unconfirmed -= {(switch, held[switch].cookie) for switch in gone}
        managed.retained_entries = [found for found in managed.retained_entries if found in wanted]
        if managed.on_disk is None:
            return set()
        exchanged = {switch for switch in gone if switch in added}
        for (switch, _), entry in changed.items():
            if switch in held:
                self.drivers[switch].replace(held[switch], entry)
            else:
                self.drivers[switch].ensure(entry)
        for switch in gone:
            if switch in exchanged:
                self.drivers[switch].replace(held[switch], added[switch])
            else:
                self.drivers[switch].remove(held[switch])
        for switch in dict.fromkeys((*(switch for switch, _ in changed), *sorted(gone))):
            self._process(now_ns, switch, self.drivers[switch].poll(now_ns))
        return exchanged

    def _update_preinstalled(self, now_ns: int, added: ManagedFlow | None = None) -> set[tuple[str, int]]:
        """Have switches hold what is to be preinstalled, now that a flow has come or gone.

        Return the entries of a flow that is `added`, by switch and cookie, which have taken the place of
        another.
        """
        if self.protected is None:
            return set()
        before, self._preinstalled = self._preinstalled, self.protected.preinstalled()
        waiting: dict[str, list[WireEntry]] = {}
        if added is not None:
            added.entries = self._entries_to_hold(added)
            added.await_all()
            for switch, entry in added.entries:
                waiting.setdefault(switch, []).append(entry)
        exchanged: set[tuple[str, int]] = set()
        for flow_id in dict.fromkeys((*before, *self._preinstalled)):
            managed = self._flows.get(flow_id)
            if managed is None or managed is added or before.get(flow_id) == self._preinstalled.get(flow_id):
                continue
            first = {switch: entries[0] for switch, entries in waiting.items() if entries}
            for switch in self._hold(now_ns, managed, first):
                exchanged.add((switch, waiting[switch].pop(0).cookie))
        return exchanged

    # Flows that get another path.

    def _move_one(self, now_ns: int) -> None:
        """Go on with moving flows: at each call with at most one, as to look for a path takes time."""
        sought = [
            managed
            for managed in self._lost_flows.values()
            if managed.needs_path and managed.pending_grant is None and not managed.is_leaving
        ]
        if self._reroute_ns is not None and self.cables.dead_ends:
            moving = self._flows.values()
            sought += (found for found in moving if self._must_move(now_ns, found, self._reroute_ns))
        managed = min(sought, key=lambda found: found.search_ns, default=None)  # each gets its turn
        if managed is None or managed.search_ns > now_ns:
            return
        if managed.state is FlowState.LOST:
            managed.search_ns = now_ns + _NEXT_TRY_NS
            self._regrant_lost(managed)
        else:
            managed.search_ns = now_ns + _NEXT_SEARCH_NS
            self._try_to_move(now_ns, managed)

    def _must_move(self, now_ns: int, managed: ManagedFlow, reroute_ns: int) -> bool:
        """Return whether a flow is to move: a cable of its path is dead for long, and empty behind that."""
        if managed.state is not FlowState.INSTALLED or managed.is_leaving or managed.successor is not None:
            return False
        dead_ns = max(reroute_ns, self.admitter.drain_time_ns(managed.flow.id))
        causes = (found for found in managed.breaks if found.cause is ViolationCause.LINK_DOWN)
        return any(now_ns - found.since_ns >= dead_ns for found in causes)

    def _try_to_move(self, now_ns: int, managed: ManagedFlow) -> None:
        """Begin to move a flow if it gets what it was promised on a path without dead cables.

        There it is granted under another id, beside its former self, until the switches have its entries.
        So it never gives up its room before it has another.
        """
        second = self._second_flow(managed)
        answer = self._decide(second, self._move_decision(second, managed.promised))
        if isinstance(answer, RequestOutcome):
            return
        if not may_replace(managed.path, answer.path, self.cables.dead_ends):
            self.admitter.cancel(second.id)
            return
        self._begin_move(now_ns, managed, answer, self._renewed_promise(managed, answer))

    def _second_flow(self, managed: ManagedFlow) -> Flow:
        """Return a flow under a free id and port, to count another path of it beside its own."""
        second = managed.flow._replace(id=self._temporary_id(managed.flow.id, self._last_number + 1))
        return second._replace(udp_source=self._free_port(second))

    def _begin_move(
        self, now_ns: int, managed: ManagedFlow, answer: AdmittedFlow, promised: PromisedGuarantee
    ) -> None:
        """Have the entries of another path of a flow installed, which is granted as its second flow."""
        flow = managed.flow._replace(id=answer.flow.id)
        successor = self._accept(now_ns, answer, promised, requested_flow=flow)
        successor.former, managed.successor = managed, successor
        successor.unconfirmed -= _shared(managed, successor)
        names = "-".join(hop.switch for hop in answer.path)
        self._log_flow(managed, f"is being moved to {names}, for now as flow {flow.id}")

    def _give_up_move(self, managed: ManagedFlow) -> None:
        """Take back the new path of a flow whose entries are not yet in use."""
        if (successor := managed.successor) is not None and successor.state is FlowState.ACCEPTED:
            reason = "its flow stays where it is, or is removed"
            outcome = Unavailable(successor.flow.id, successor.path[0].switch, reason, Disposition.TAKEN_BACK)
            self._take_back(successor, outcome)

    def _begin_swap(self, managed: ManagedFlow, successor: ManagedFlow) -> None:
        """Have it written that a flow has its new path, and leaves the former under the id of that."""
        is_needed = managed.crosses_dead_cable
        if managed.state is not FlowState.INSTALLED or managed.is_leaving or not is_needed:
            self._give_up_move(managed)
            return
        managed.flow_after_swap = successor.flow
        before, after = self._stored_form(managed), self._stored_form(successor)
        former = replace(before, flow=after.flow, state=FlowState.REMOVING, reserved=None)
        moved = replace(after, flow=before.flow, state=FlowState.INSTALLED, reserved=before.reserved)
        self._effects.writes += [Rewrite(former), Rewrite(moved)]

    def _swap_paths(self, now_ns: int, managed: ManagedFlow, successor: ManagedFlow) -> None:
        """Exchange a flow's paths, as that is on disk, and have the switches exchange its entries."""
        flow, alias = managed.flow, successor.flow
        successor.grant, managed.grant = self._exchange_grants(flow, successor.grant.flow)
        del self._flows[flow.id], self._flows[alias.id]
        managed.requested_flow, managed.flow_after_swap, successor.requested_flow = alias, None, None
        self._register(managed)
        self._register(successor)
        managed.state, managed.since_ns, managed.on_disk = FlowState.REMOVING, now_ns, FlowState.REMOVING
        was_broken, managed.breaks = bool(managed.breaks), Violations()
        successor.state, successor.may_have_sent, successor.on_disk = (
            FlowState.INSTALLED,
            True,
            FlowState.INSTALLED,
        )
        names = "-".join(hop.switch for hop in successor.path)
        self._log_flow(successor, f"gets the path {names}; its switches exchange its entries")
        self._supersede(managed, successor)
        self._begin_promise(now_ns, successor, "its entry is being installed" if was_broken else None)
        self._exchange(now_ns, successor)

    def _begin_promise(self, now_ns: int, managed: ManagedFlow, waiting: str | None) -> None:
        """Break the promise to a flow on another path where that does not hold yet.

        If the promise was broken on the path before, `waiting` says why it stays so at switches that have not
        confirmed an entry.
        """
        for switch in managed.switches:
            if not self.drivers[switch].ready:
                self._break(
                    now_ns, managed, ViolationCause.SWITCH_AWAY, switch, "the switch is not connected"
                )
            elif waiting is not None and switch in managed.unconfirmed_switches:
                managed.breaks.add(Violation(ViolationCause.ENTRY_MISSING, switch, waiting, now_ns))
        self._break_by_dead_cables(now_ns, managed)

    def _exchange_grants(self, flow: Flow, beside: Flow) -> tuple[AdmittedFlow, AdmittedFlow]:
        """Exchange the ids and ports of two grants, and return them: now of `flow` and of `beside`."""
        spare = beside._replace(id="", udp_source=self._free_port(beside))
        self.admitter.rename(beside.id, spare)
        leaving = self.admitter.rename(flow.id, beside)
        return self.admitter.rename(spare.id, flow), leaving

    def _supersede(self, managed: ManagedFlow, successor: ManagedFlow) -> None:
        """Note which entries of a former path give way to those of the new one, from the last to the first.

        Frames take the former path until its last switch before the paths part has exchanged its entry.
        """
        shared = _shared(managed, successor)
        former = dict(managed.entries)
        successor.pending_replacements = [
            (switch, former[switch], entry)
            for switch, entry in reversed(successor.entries)
            if (switch, entry.cookie) in shared
        ]
        fork = successor.path[last_common_hop(managed.path, successor.path)].switch
        managed.entries = sorted(managed.entries, key=lambda entry: entry[0] != fork)
        managed.retained_entries = [entry for entry in managed.entries if entry[0] not in successor.switches]
        managed.drained_ns, managed.ingress_removed_ns = 0, None
        managed.await_all()
        self._removing[managed.number] = managed
        successor.unconfirmed = {
            (switch, entry.cookie)
            for switch, entry in successor.entries
            if not self.drivers[switch].holds(entry.cookie)
        }
        successor.former, managed.successor = managed, successor

    def _exchange(self, now_ns: int, successor: ManagedFlow) -> None:
        """Have the next switch exchange its entry once the one behind it has."""
        while successor.pending_replacements and successor.last_replaced not in successor.unconfirmed:
            switch, former, entry = successor.pending_replacements.pop(0)
            successor.last_replaced = switch, entry.cookie
            self.drivers[switch].replace(former, entry)
            self._process(now_ns, switch, self.drivers[switch].poll(now_ns))

    def _unlink(self, managed: ManagedFlow) -> None:
        """Note that one of a flow's two paths is gone."""
        for other in (managed.former, managed.successor):
            if other is not None:
                other.former = None if other.former is managed else other.former
                other.successor = None if other.successor is managed else other.successor

    def _temporary_id(self, flow_id: str, number: int) -> str:
        """Return a free id for one of a flow's two paths."""
        alias = f"{flow_id[:40]}:{number}"
        while alias in self._flows:
            alias += ":"
        return alias

    def _free_port(self, flow: Flow) -> int:
        """Return a port that no flow between these hosts has, to count a flow's two paths side by side."""
        taken = set[SourcePort]()
        for managed in self._flows.values():
            taken |= {managed.flow[1:4], managed.grant.flow[1:4]}
            if managed.second_copies is not None:
                taken.add(managed.second_copies.of(managed.flow)[1:4])
        return free_port(flow, taken)

    def _renewed_promise(self, managed: ManagedFlow, grant: AdmittedFlow) -> PromisedGuarantee:
        """Return what a flow is promised with another grant, which is no worse than its requester needs."""
        promised = self._promise(grant, managed.promised.deadline_ns)
        if is_kept(managed.promised, promised.guarantee_ns):
            promised = replace(promised, guarantee_ns=managed.promised.guarantee_ns)
        return promised

    def _promise(self, grant: AdmittedFlow, deadline_ns: float | None) -> PromisedGuarantee:
        guarantee_ns, reserved = self.admitter.promised_ns(grant), self.admitter.reserved_paths(grant.flow.id)
        return self._grounds.promise(grant, deadline_ns, guarantee_ns, reserved)

    def _regrant_lost(self, managed: ManagedFlow) -> None:
        """Grant a lost flow again, if that is possible now."""
        answer = self._decide_again(managed, self._move_decision(managed.flow, managed.promised))
        if isinstance(answer, RequestOutcome):
            return
        self._regrant(managed, answer, self._renewed_promise(managed, answer))

    def _move_decision(self, flow: Flow, promised: PromisedGuarantee) -> Decide:
        return lambda: self.admitter.move(flow, limit_ns(promised))

    def _decide_again(self, managed: ManagedFlow, decide: Decide) -> AdmittedFlow | RequestOutcome:
        """Grant a flow on a path that it may get now, or say why not."""
        if managed.state is FlowState.LOST and managed.unconfirmed:
            switch = min(managed.unconfirmed_switches)
            return Unavailable(managed.flow.id, switch, "its former entry has yet to be removed there")
        return self._decide(managed.flow, decide)

    def _regrant(self, managed: ManagedFlow, grant: AdmittedFlow, promised: PromisedGuarantee) -> None:
        """Have it written that a lost flow is granted again."""
        managed.pending_grant = grant, promised
        terms = replace(
            self._stored_form(managed),
            path=grant.path,
            state=FlowState.INSTALLED,
            promise=promised,
            broken=None,
        )
        self._effects.writes.append(Rewrite(terms))

    def _install_again(
        self, now_ns: int, managed: ManagedFlow, grant: AdmittedFlow, promised: PromisedGuarantee
    ) -> None:
        """Have the switches take the entries of a flow that is granted again, as that is on disk."""
        managed.grant, managed.promised, managed.pending_grant = grant, promised, None
        managed.state, managed.needs_path, managed.may_have_sent = FlowState.INSTALLED, False, True
        del self._lost_flows[managed.number]
        self._note_paths(managed)
        managed.await_all()
        names = "-".join(hop.switch for hop in grant.path)
        self._log_flow(managed, f"is granted again, by {names}")
        for switch in managed.switches:
            text = "its entry is being installed"
            managed.breaks.add(Violation(ViolationCause.ENTRY_MISSING, switch, text, now_ns))
        self._break_by_dead_cables(now_ns, managed)
        self._install_entries(now_ns, managed)
        self._answer_all(managed, Granted(managed.flow.id, is_new=False))
        self._poll(now_ns, managed)

    def _lost_flow_at(self, switch: str) -> str | None:
        """Return a lost flow of which a switch may still have an entry, if any."""
        lost = (managed for managed in self._lost_flows.values() if switch in managed.unconfirmed_switches)
        return next((managed.flow.id for managed in lost), None)

    def _stored_form(self, managed: ManagedFlow) -> StoredFlow:
        broken: StoredViolation | None = None
        if (found := managed.breaks.lasting) is not None:
            broken = StoredViolation(found.cause, found.place, found.text, self.utc_ms(found.since_ns))
        return StoredFlow(
            number=managed.number,
            flow=managed.flow,
            path=managed.path,
            state=managed.state,
            send_slot=self.admitter.send_slot(managed.flow.id),
            promise=managed.promised,
            broken=broken,
            reserved=self.admitter.reserved_paths(managed.flow.id),
        )

    # Broken promises.

    def _break(self, now_ns: int, managed: ManagedFlow, cause: ViolationCause, place: str, text: str) -> None:
        """Note that a promise is broken, and say so unless that is known."""
        if managed.breaks.add(Violation(cause, place, text, now_ns)):
            what = f"is broken at {place}" if managed.breaks else "is on one path"
            self._log_flow(managed, f"{what}: {text}", warning=True)

    def _break_by_dead_cables(self, now_ns: int, managed: ManagedFlow) -> None:
        for cable in sorted(managed.cables):
            if self.cables.is_dead(cable):
                self._break(now_ns, managed, ViolationCause.LINK_DOWN, cable, self.cables.text(cable))

    def _mend(self, managed: ManagedFlow, cause: ViolationCause, place: str | None = None) -> None:
        """Note that a promise is no longer broken for this cause, and say so if it is kept again."""
        was_broken = bool(managed.breaks)
        if managed.breaks.clear(cause, place) and not managed.breaks:
            if was_broken:
                paths = ", on one path" if managed.breaks.on_one_path else ""
                self._log_flow(managed, f"is kept again{paths}")
            elif not managed.breaks.on_one_path:
                self._log_flow(managed, "is on both paths again")

    # Bookkeeping.

    def _advance(self, now_ns: int) -> None:
        self._now_ns = now_ns
        self.admitter.advance(now_ns)

    def _restore(self, stored: Sequence[StoredFlow]) -> list[tuple[StoredFlow, tuple[str, str] | None]]:
        """Take up the stored flows. Raises `InputError` for promises that break, unless that is known.

        Return those that have no path, with the cable that the lab lacks, if any (`Cables.missing_cable`).
        """
        problems: list[str] = []
        others: set[str] = set()
        lost: list[tuple[StoredFlow, tuple[str, str] | None]] = []
        gaps = {flow.number: self.cables.missing_cable(flow.flow, flow.path) for flow in stored}
        own: dict[FiveTuple, int] = {}
        for known in sorted(stored, key=lambda known: known.state is not FlowState.INSTALLED):
            is_removed = self.protected is not None and known.state is FlowState.REMOVING
            if (known.state is FlowState.INSTALLED or is_removed) and gaps[known.number] is None:
                own.setdefault(known.flow[1:5], known.number)
        ids = {flow.number: flow.flow.id for flow in stored}
        names = {flow.flow[1:5]: flow.flow.id for flow in stored if flow.state is not FlowState.REMOVING}
        beside = _beside(stored, own)
        if self.protected is not None:
            self.protected.keep_ports(stored_ports(stored) | {flow[1:4] for flow in beside.values()})
        for stored_flow in stored:
            gap = gaps[stored_flow.number]
            if stored_flow.state is FlowState.LOST or gap is not None:
                lost.append((stored_flow, gap))
                continue
            flow = beside.get(stored_flow.number, stored_flow.flow)
            if flow != stored_flow.flow and self.protected is not None:
                self.protected.expect_second_path(flow.id, ids[own[stored_flow.flow[1:5]]])
            found = restore(self.admitter, replace(stored_flow, flow=flow), self._grounds)
            found = replace(found, stored=stored_flow)
            if found.admitted is None or (found.problem is not None and stored_flow.broken is None):
                name = names.get(stored_flow.flow[1:5], stored_flow.flow.id)  # its user's, during a move
                problems.append(
                    f"stored flow '{name}' {found.problem}; serve as before, or add --migrate to see what"
                    " would become of it"
                )
            elif not problems:
                self._adopt(found, found.admitted)
                if stored_flow.promise is not None:
                    others |= self._grounds.added_conditions(stored_flow.promise)
        if problems:
            raise InputError(*problems)
        self._restore_moves(own)
        if others:
            text = f"former promises rest on further conditions: {', '.join(sorted(others))}"
            self._effects.events.append(Event(kind="note", name="promises", text=text, warning=True))
        return lost

    def _restore_moves(self, own: Mapping[FiveTuple, int]) -> None:
        """Go on with moves: `own` has by five-tuple the number of each flow's path that is in use."""
        for managed in list(self._flows.values()):
            if managed.requested_flow is None:
                continue
            other = self._by_number[own[managed.flow[1:5]]]
            if self.protected is not None:
                managed.successor, other.former = other, managed
                other.keeps_fork = True
                self._await_fork(other, managed)
            elif managed.may_have_sent:
                self._supersede(managed, other)
                for switch, _, entry in other.pending_replacements:
                    self.drivers[switch].remove(entry)  # for now: it may be there already
                self._exchange(self._now_ns, other)
            else:
                managed.former, other.successor = other, managed
        self._update_preinstalled(self._now_ns)
        for managed in self._flows.values():
            if self.protected is not None and managed.successor is None:
                self._hold(self._now_ns, managed)
            if managed.state is FlowState.INSTALLED:
                waiting = {switch for switch, _, _ in managed.pending_replacements}
                for switch, entry in managed.entries:
                    if switch not in waiting:  # it wants the entry of the former path until then
                        self.drivers[switch].ensure(entry)

    def _restore_lost(self, stored: StoredFlow, gap: tuple[str, str] | None) -> None:
        """Show a flow without room, or grant it again if it only lacked a cable that the lab has again."""
        if stored.state in {FlowState.ACCEPTED, FlowState.REMOVING}:  # nobody was told of it, or needs it
            self._effects.writes.append(Delete(stored.number))
            self._leave_entries(stored)
            return
        if stored.state is FlowState.INSTALLED:
            assert gap is not None
            broken = StoredViolation(ViolationCause.CABLE_REMOVED, *gap, self.utc_ms(self._now_ns))
            stored = replace(stored, state=FlowState.LOST, broken=broken)
            self._effects.writes.append(Rewrite(stored))
        elif (
            gap is None and stored.broken is not None and stored.broken.cause is ViolationCause.CABLE_REMOVED
        ):
            former = replace(stored, state=FlowState.INSTALLED, broken=None)
            found = restore(self.admitter, former, self._grounds)
            if found.admitted is not None and found.problem is None:
                self._effects.writes.append(Rewrite(former))
                self._adopt(found, found.admitted)
                self._install_entries(self._now_ns, self._by_number[stored.number])
                return
            if found.admitted is not None:
                self.admitter.cancel(stored.flow.id)
        self._keep_lost(stored)

    def _leave_entries(self, stored: StoredFlow) -> set[tuple[str, int]]:
        """Have the switches of a flow's former paths lose its entries. Return these, by switch and cookie."""
        leaving, path = set(), stored.path
        if (reserved := stored.reserved) is not None and reserved.backups:
            paths = (path, *reserved.paths)
            path = tuple({hop.switch: hop for of_path in paths for hop in of_path}.values())
        routed = [(stored.number, RoutedFlow(stored.flow, path))]
        if (second := stored.second_copies) is not None:
            copies = RoutedFlow(second.of(stored.flow), second.path)
            routed.append((stored.number | _SECOND_COPY_MARK, copies))
        for number, left in routed:
            for switch, entry in left_entries(self.lab, left):
                wire_entry = self._entry_of(entry, cookie=OWN_MARK << 48 | number)
                self.drivers[switch].remove(wire_entry)
                leaving.add((switch, wire_entry.cookie))
        return leaving

    def _keep_lost(self, stored: StoredFlow) -> None:
        is_cut = stored.broken is not None and stored.broken.cause is ViolationCause.CABLE_REMOVED
        grant = NotAdmitted(stored.flow)
        managed = ManagedFlow(
            number=stored.number,
            grant=grant,
            state=FlowState.LOST,
            since_ns=0,
            entries=(),
            cables=frozenset(),
            promised=stored.promise or self._grounds.promise(grant, None),
            unconfirmed=self._leave_entries(stored),
            on_disk=FlowState.LOST,
            needs_path=is_cut and self._reroute_ns is not None,
        )
        self._register(managed)
        self._lost_flows[managed.number] = managed
        self._break_as_stored(managed, stored)

    def _break_as_stored(self, managed: ManagedFlow, stored: StoredFlow) -> None:
        if (known := stored.broken) is not None:
            since_ns = known.since_ms * 1_000_000 - self._utc_less_now_ns
            managed.breaks.add(Violation(known.cause, known.place, known.text, since_ns))
            self._log_flow(managed, f"is broken at {known.place}: {known.text}", warning=True)

    def _adopt(self, found: RestoredFlow, grant: AdmittedFlow) -> None:
        stored, holds = found.stored, found.problem is None
        is_left = self.protected is not None and stored.flow != grant.flow
        promised = self._promise(grant, None)
        if (before := stored.promise) is not None:
            told = replace(promised, guarantee_ns=before.guarantee_ns, deadline_ns=before.deadline_ns)
            promised = told if holds else before
        managed = ManagedFlow(
            number=stored.number,
            grant=grant,
            state=stored.state,
            since_ns=0,
            entries=(),
            cables=frozenset(),
            promised=promised,
            unconfirmed=set(),
            requested_flow=None if stored.flow == grant.flow else stored.flow,
            may_have_sent=stored.state is not FlowState.ACCEPTED,
            on_disk=stored.state,
        )
        self._note_paths(managed)
        if is_left:
            managed.entries = ()
        managed.await_all()
        self._register(managed)
        if managed.state is FlowState.REMOVING:
            for switch, entry in managed.entries:
                self.drivers[switch].ensure(entry)
        if stored.state is FlowState.INSTALLED:
            restated = replace(
                stored,
                promise=promised,
                broken=None if holds else stored.broken,
                reserved=self.admitter.reserved_paths(stored.flow.id),
            )
            if restated != stored:
                self._effects.writes.append(Rewrite(restated))
            if stored.broken is not None and holds:
                self._log_flow(managed, "gets the guarantee again that was promised")
            if managed.second_copies is not None and stored.second_copies is None and not is_left:
                port = managed.second_copies.udp_source
                text = (
                    f"a failure may hit its path now: its host must send second copies from UDP port {port}"
                )
                self._log_flow(managed, text, warning=True)
            self._break_as_stored(managed, restated)
            for switch in managed.switches:
                text = "the switch has not connected since the service began"
                managed.breaks.add(Violation(ViolationCause.SWITCH_AWAY, switch, text, self._now_ns))
            return
        if stored.state is FlowState.ACCEPTED:
            self._log_flow(managed, "was not confirmed before the restart; taking it back")
            managed.state = FlowState.REMOVING
            self._effects.writes.append(UpdateState(stored.number, FlowState.REMOVING))

    def _register(self, managed: ManagedFlow) -> None:
        self._flows[managed.flow.id] = managed
        self._by_number[managed.number] = managed

    def _paths(self, grant: AdmittedFlow) -> tuple[tuple[Hop, ...], ...]:
        """Return the paths that the frames of a granted flow take: one, or both if it is duplicated."""
        reserved = self.admitter.reserved_paths(grant.flow.id)
        second = None if reserved is None else reserved.second_copies
        return (grant.path,) if second is None else (grant.path, second.path)

    def _note_paths(self, managed: ManagedFlow) -> None:
        """Note which switches and cables a flow needs on the paths for which it is granted."""
        reserved, source = self.admitter.reserved_paths(managed.flow.id), managed.flow.source
        managed.second_copies = None if reserved is None else reserved.second_copies
        cables = [self.cables.of(source, path) for path in managed.paths]
        managed.cables = frozenset[str]().union(*cables)
        places = [
            crossed | {hop.switch for hop in path}
            for crossed, path in zip(cables, managed.paths, strict=True)
        ]
        managed.breaks = Violations() if managed.second_copies is None else Violations(*places)
        managed.entries = self._path_entries(managed)

    def _path_entries(self, managed: ManagedFlow) -> list[tuple[str, WireEntry]]:
        """Return the entries of a flow's path, and then those of its second copies, if it has any."""
        flow, second = managed.flow, managed.second_copies
        entries = self._entries(managed.number, RoutedFlow(flow, managed.path))
        if second is not None:
            copies = RoutedFlow(second.of(flow), second.path)
            entries += self._entries(managed.number | _SECOND_COPY_MARK, copies)
        return entries

    def _entries(self, number: int, routed: RoutedFlow) -> list[tuple[str, WireEntry]]:
        """Return a flow's entries, each with its own cookie, which identifies it at its switch."""
        return [
            (visit.switch, self._entry_of(entry, cookie=OWN_MARK << 48 | visit.number << _VISIT | number))
            for visit, entry in path_entries(self.lab, routed)
        ]

    def _answer(self, outcome: RequestOutcome) -> None:
        self._effects.answers.append((self._ticket, outcome))

    def _answer_all(self, managed: ManagedFlow, outcome: RequestOutcome) -> None:
        self._effects.answers += [(ticket, outcome) for ticket in managed.tickets]
        managed.tickets.clear()

    def _log_flow(self, managed: ManagedFlow, text: str, *, warning: bool = False) -> None:
        self._effects.events.append(Event(kind="flow", name=managed.flow.id, text=text, warning=warning))

    def _log_switch(self, switch: str, text: str, *, warning: bool = False) -> None:
        self._effects.events.append(Event(kind="switch", name=switch, text=text, warning=warning))


def _beside(stored: Sequence[StoredFlow], own: Mapping[FiveTuple, int]) -> dict[int, Flow]:
    """Return stored flows by number, under free ports, that are another path of a flow than its `own`."""
    ports, beside = stored_ports(stored), dict[int, Flow]()
    for known in stored:
        flow, number = known.flow, known.number
        if own.get(flow[1:5], number) != number:
            beside[number] = from_free_port(flow, ports)
    return beside


def _shared(managed: ManagedFlow, successor: ManagedFlow) -> set[tuple[str, int]]:
    """Return a successor's entries, by switch and cookie, at switches where its former self has one."""
    return {(switch, entry.cookie) for switch, entry in successor.entries if switch in managed.switches}
