"""A store's content as a document: what `loko store export` writes, and the check of all that is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from loko.admission.protection import Protection
from loko.document import StrictModel
from loko.service.breaks import StoredViolation, ViolationCause
from loko.service.outcome import (
    Event,
    FlowState,
    LoggedEvent,
    PromisedGuarantee,
    ReservedPaths,
    SecondCopies,
    SendSlot,
    StoredFlow,
)
from loko.switch_model.flow import FlowDocument, UdpPort
from loko.topology.network import HopDocument

MOST_FLOWS: Final = 1 << 32
"""Numbers of flows are below it: they are a part of their entries' cookies."""

BEGUN: Final = "begun-with"
"""The circumstance that names the document whose flows were taken up at the beginning."""


class SendSlotDocument(StrictModel):
    """When a flow with a slot sends."""

    slot: int = Field(ge=0)
    period_ns: int = Field(gt=0)


class PromiseDocument(StrictModel):
    """See `loko.service.outcome.PromisedGuarantee`."""

    guarantee_ns: float = Field(gt=0, allow_inf_nan=False)
    deadline_ns: float | None = Field(gt=0, allow_inf_nan=False)
    profiles: dict[str, str]
    conditions: list[str]

    @property
    def promised(self) -> PromisedGuarantee:
        """The promise that the document describes."""
        return PromisedGuarantee(**{**dict(self), "conditions": tuple(self.conditions)})


class BrokenDocument(StrictModel):
    """See `loko.service.breaks.StoredViolation`."""

    cause: ViolationCause = Field(strict=False)
    place: str
    text: str
    since_ms: int


class SecondCopiesDocument(StrictModel):
    """See `loko.service.outcome.SecondCopies`."""

    path: list[HopDocument] = Field(min_length=1)
    udp_source: UdpPort


class ReservedPathsDocument(StrictModel):
    """See `loko.service.outcome.ReservedPaths`."""

    working: list[HopDocument] = Field(min_length=1)
    backups: dict[str, list[HopDocument]]
    protection: Protection = Field(Protection.BACKUP, strict=False)
    second_copies: SecondCopiesDocument | None = None

    @property
    def reserved(self) -> ReservedPaths:
        """The paths that the document describes."""
        second = self.second_copies
        return ReservedPaths(
            tuple(hop.hop for hop in self.working),
            {name: tuple(hop.hop for hop in path) for name, path in self.backups.items()},
            self.protection,
            None
            if second is None
            else SecondCopies(tuple(hop.hop for hop in second.path), second.udp_source),
        )


class StoredFlowDocument(StrictModel):
    """A flow as it is stored."""

    renamed_keys: ClassVar[Mapping[str, str]] = {"turn": "send_slot"}

    number: int = Field(ge=1, lt=MOST_FLOWS)
    state: FlowState = Field(strict=False)
    flow: FlowDocument
    path: list[HopDocument] = Field(min_length=1)
    send_slot: SendSlotDocument | None
    promise: PromiseDocument | None
    broken: BrokenDocument | None
    reserved: ReservedPathsDocument | None = None

    @property
    def stored(self) -> StoredFlow:
        """The flow that the document describes."""
        send_slot, promise, broken = self.send_slot, self.promise, self.broken
        return StoredFlow(
            number=self.number,
            flow=self.flow.flow,
            path=tuple(hop.hop for hop in self.path),
            state=self.state,
            send_slot=None if send_slot is None else SendSlot(send_slot.slot, send_slot.period_ns),
            promise=None if promise is None else promise.promised,
            broken=None if broken is None else StoredViolation(**dict(broken)),
            reserved=None if self.reserved is None else self.reserved.reserved,
        )


class NoteDocument(StrictModel):
    """Something that has happened."""

    number: int
    at_ms: int
    kind: str
    name: str
    text: str
    warning: bool

    @property
    def noted(self) -> LoggedEvent:
        """Return the note that the document describes."""
        what = Event(kind=self.kind, name=self.name, text=self.text, warning=self.warning)
        return LoggedEvent(self.number, self.at_ms, what)


class StoreDocument(StrictModel):
    """All that a store holds."""

    renamed_keys: ClassVar[Mapping[str, str]] = {"debts": "residual_backlogs"}

    version: Literal[2]
    circumstances: dict[str, str]
    """The lab, and the options under which its flows were granted."""
    last_number: int = Field(ge=0, lt=MOST_FLOWS)
    """The highest number ever given to a flow."""
    flows: list[StoredFlowDocument]
    residual_backlogs: dict[str, float]
    notes: list[NoteDocument]

    @property
    def options(self) -> dict[str, str]:
        """The circumstances under which flows were granted: all that must be the same to serve them."""
        return {name: value for name, value in self.circumstances.items() if name != BEGUN}

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        numbers = [flow.number for flow in self.flows]
        if max(numbers, default=0) > self.last_number:
            raise ValueError(f"last_number {self.last_number} is below {max(numbers)}, the number of a flow")
        for what, values in (("number", numbers), ("id", [flow.flow.id for flow in self.flows])):
            if len(set(values)) < len(values):
                raise ValueError(f"flows: two have the same {what}")
        for server, amount in self.residual_backlogs.items():
            if not 0 <= amount < float("inf"):
                raise ValueError(f"residual_backlogs: {amount} at {server} is not a finite amount")
        return self


def flow_row(stored: StoredFlow) -> tuple[object, ...]:
    """Return the row of a flow in the table `flows`."""
    details = {
        "flow": stored.flow._asdict(),
        "path": [asdict(hop) for hop in stored.path],
        "send_slot": None if stored.send_slot is None else stored.send_slot._asdict(),
        "promise": None if stored.promise is None else asdict(stored.promise),
        "broken": None if stored.broken is None else asdict(stored.broken),
        **({} if stored.reserved is None else {"reserved": asdict(stored.reserved)}),
    }
    return stored.number, stored.flow.id, stored.state.value, json.dumps(details)


def note_row(noted: LoggedEvent) -> tuple[object, ...]:
    """Return the row of something that has happened in the table `notes`."""
    what = noted.event
    return noted.number, noted.at_ms, what.kind, what.name, what.text, int(what.warning)
