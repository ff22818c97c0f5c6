"""The values that go into and out of the flow manager."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from loko.admission import Refusal, Usage
from loko.admission.protection import Protection
from loko.control.wire import WireRequest
from loko.service.breaks import StoredViolation
from loko.switch_model.flow import Flow
from loko.topology.network import Hop


class AdmissionMode(StrEnum):
    """How the service grants flows."""

    ADMISSION = "admission"
    SLOTS = "slots"


class ReturnMode(StrEnum):
    """When flows leave their backup paths after a repair: revertive or not (RFC 4427)."""

    AUTOMATIC = "automatic"
    """When their working path has been intact for a while."""
    BY_CALL = "by-call"
    """When a client says so."""


class FlowState(StrEnum):
    """How far a flow's installation or removal has come. Each change is on disk before anything follows."""

    ACCEPTED = "accepted"
    """Admitted; its entries are being installed. Nobody was told, so a restart takes it back."""
    INSTALLED = "installed"
    """Every switch of its path has confirmed its entry: the requester was told, and a restart restores it."""
    REMOVING = "removing"
    """Its entries are being removed, upstream first. It counts until every switch has confirmed."""
    LOST = "lost"
    """It has neither room nor entries. It is shown until it is granted again or released."""


class SendSlot(NamedTuple):
    """When a flow with a slot sends."""

    slot: int
    period_ns: int
    """Time between two uses of the slot: a whole multiple of the base period."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromisedGuarantee:
    """Promise to the requester of a flow, and the profiles and conditions behind it."""

    guarantee_ns: float
    """The bound on its delay from end to end."""
    deadline_ns: float | None
    """Deadline of the requester; None if it stated none."""
    profiles: Mapping[str, str]
    """By switch of its paths, the digest of the profile from which the bound was computed."""
    conditions: tuple[str, ...]
    """Ids of the conditions on which the guarantee holds (`loko.topology.conditions`)."""


@dataclass(frozen=True, slots=True)
class SecondCopies:
    """The second copies of a flow's frames, which differ from the first in their source port."""

    path: tuple[Hop, ...]
    udp_source: int

    def of(self, flow: Flow) -> Flow:
        """Return the second copies of a flow as the flow that they are to switches."""
        return flow._replace(udp_source=self.udp_source)


@dataclass(frozen=True, slots=True)
class ReservedPaths:
    """The paths of a flow that survives failures. Its present path is one of them."""

    working: tuple[Hop, ...]
    """Its path while nothing has failed."""
    backups: Mapping[str, tuple[Hop, ...]]
    """By the name of a failure that hits the working path, its path then."""
    protection: Protection = Protection.BACKUP
    """Its protection, as requested."""
    second_copies: SecondCopies | None = None
    """None if it is not duplicated, or no failure hits its path."""

    @property
    def paths(self) -> tuple[tuple[Hop, ...], ...]:
        """All these paths."""
        copies = () if self.second_copies is None else (self.second_copies.path,)
        return (self.working, *self.backups.values(), *copies)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFlow:
    """A flow as it is on disk."""

    number: int
    """Never used twice; part of the cookie of its entries."""
    flow: Flow
    path: tuple[Hop, ...]
    state: FlowState
    send_slot: SendSlot | None = None
    """When it sends, if it has a slot."""
    promise: PromisedGuarantee | None = None
    """None if it was granted by a version of the service that did not store it."""
    broken: StoredViolation | None = None
    """Why its promise is broken, if that outlasts a restart."""
    reserved: ReservedPaths | None = None
    """None if nothing is reserved for failures."""

    @property
    def second_copies(self) -> SecondCopies | None:
        """Its second copies, if it is duplicated."""
        return None if self.reserved is None else self.reserved.second_copies

    @property
    def protection(self) -> Protection:
        """Its protection; if nothing is reserved for it, its host sends every frame once."""
        return Protection.BACKUP if self.reserved is None else self.reserved.protection

    @property
    def sent(self) -> tuple[Flow, ...]:
        """The flows that it is on the wire: itself, and its second copies, if any."""
        copies = self.second_copies
        return (self.flow,) if copies is None else (self.flow, copies.of(self.flow))


@dataclass(frozen=True, slots=True)
class Insert:
    """Write a new flow."""

    stored: StoredFlow


@dataclass(frozen=True, slots=True)
class UpdateState:
    """Write a flow's new state."""

    number: int
    state: FlowState


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Write all of a flow that is there anew."""

    stored: StoredFlow


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a flow."""

    number: int


@dataclass(frozen=True, slots=True)
class WriteBacklogs:
    """Write what released flows may have left at servers, by name; None where nothing is left."""

    backlogs: Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that the log and watching clients should be told."""

    kind: str
    """`flow`, `switch`, `refusal` of a request for a flow, or `note`."""
    name: str
    """Name of the flow or switch."""
    text: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """Write down something that has happened: its number, and when, in milliseconds since 1970."""

    number: int
    at_ms: int
    event: Event


Write = Insert | UpdateState | Rewrite | Delete | WriteBacklogs | LoggedEvent


@dataclass(frozen=True, slots=True)
class Granted:
    """The flow is installed; `is_new` unless the same request was granted before."""

    flow_id: str
    is_new: bool


@dataclass(frozen=True, slots=True)
class Released:
    """The flow is removed everywhere; or, if `waiting_for`, everywhere but at switches that are away."""

    flow_id: str
    waiting_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """The flow does not fit."""

    refusal: Refusal


@dataclass(frozen=True, slots=True)
class EntryRejected:
    """A switch did not take the flow's entry, so it was taken back."""

    flow_id: str
    switch: str
    reason: str


class Disposition(StrEnum):
    """Disposition of a request that was not carried out."""

    NOTHING = "nothing"
    """Nothing of it was begun."""
    TAKEN_BACK = "taken-back"
    """Its flow was not granted: what was begun of it is undone, also by a restart. Then its id is free."""
    CONTINUES = "goes-on"
    """Its flow is being removed, also by a restart."""
    UNKNOWN = "unknown"
    """The disk did not answer: whether the flow is there shows when the service is back."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A switch of the path is away or fell silent."""

    flow_id: str
    switch: str
    reason: str
    disposition: Disposition = Disposition.NOTHING


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The service ended before the request was carried out."""

    flow_id: str
    reason: str
    disposition: Disposition


@dataclass(frozen=True, slots=True)
class NotStored:
    """The disk takes nothing, so nothing can be promised or released; what is installed is kept."""

    flow_id: str
    reason: str
    disposition: Disposition


@dataclass(frozen=True, slots=True)
class Conflict:
    """The id, or the hosts and ports, are in use, or the flow is in a state that forbids the request."""

    flow_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class UnknownFlow:
    """There is no such flow."""

    flow_id: str


@dataclass(frozen=True, slots=True)
class InvalidRequest:
    """The request makes no sense in this lab."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """The flow would be granted if it were requested now; nothing was done."""

    values: Mapping[str, Any]
    """Decision: guarantee, path, slot."""
    before: Mapping[str, Usage]
    """Present usage, by switch of the flow's path."""
    after: Mapping[str, Usage]
    """Usage with the flow, by switch of its path."""


RequestOutcome = (
    Granted
    | Released
    | Refused
    | EntryRejected
    | Unavailable
    | Interrupted
    | NotStored
    | Conflict
    | UnknownFlow
    | InvalidRequest
)


@dataclass(slots=True)
class Effects:
    """Effects to carry out at once; but `writes` go into the next transaction, in order.

    What depends on a write is an effect of `FlowManager.stored`.
    """

    writes: list[Write] = field(default_factory=list)
    sends: list[tuple[str, list[WireRequest]]] = field(default_factory=list)
    """Pairs of a switch and what goes to it in one write."""
    closes: list[str] = field(default_factory=list)
    """Switches whose connection is to be closed."""
    answers: list[tuple[int, RequestOutcome]] = field(default_factory=list)
    """Tickets, with the outcome of their requests."""
    events: list[Event] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any((self.writes, self.sends, self.closes, self.answers, self.events))
