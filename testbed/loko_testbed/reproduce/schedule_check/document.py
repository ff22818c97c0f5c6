"""A schedule and its flows as documents: what `loko schedule --json` prints, and what it was given."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from loko.document import InputError, read
from loko.switch_model.scenario import OpenFlow
from loko.topology.requests import RequestDocument


class _ScheduleModel(BaseModel):
    """Base of documents. Keys that no check needs are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class SendTimes(_ScheduleModel):
    """When a host sends: at an offset in a base period, and then once every period."""

    host: str
    offset_us: float
    period_us: float


class ScheduledSlot(_ScheduleModel):
    """A flow with its slot; `ports` are the output ports at the switches of `path`."""

    id: str
    slot: int
    path: list[str]
    ports: list[int]
    send: SendTimes
    guarantee_us: float


class Entry(_ScheduleModel):
    """A flow's entry in a switch."""

    nw_src: str
    nw_dst: str
    tp_src: int
    tp_dst: int
    output_port: int


class ScheduleDocument(_ScheduleModel):
    """A schedule: which flows send when and on which path, and the entries of the switches."""

    scheme: str
    exclusive: str
    slots: int
    base_period_us: float
    slot_us: float
    guard_us: float
    scheduled: list[ScheduledSlot]
    unscheduled: list[str]
    bound: int
    optimal: bool
    table_entries: int = Field(ge=1)
    openflow: OpenFlow = OpenFlow.V1_0
    entries: dict[str, list[Entry]]


class WantedFlow(_ScheduleModel):
    """A flow of the list for which the schedule was made."""

    id: str
    source: str
    destination: str
    udp_source: int
    udp_destination: int
    frame_bytes: int = Field(ge=64, le=1518)
    period_us: float | None = None


def load_schedule(path: Path) -> ScheduleDocument:
    """Read what `loko schedule --json` printed. Raises `InputError` in one line."""
    return _load(path, "schedule", ScheduleDocument)


def wanted_of(documents: Iterable[RequestDocument]) -> list[WantedFlow]:
    """Return the flows of a list that was read."""
    return [
        WantedFlow(
            id=document.id,
            source=document.source,
            destination=document.destination,
            udp_source=document.udp_source,
            udp_destination=document.udp_destination,
            frame_bytes=document.size_bytes,
            period_us=None if document.period_ns is None else document.period_ns / 1e3,
        )
        for document in documents
    ]


_DocumentModel = TypeVar("_DocumentModel", bound=BaseModel)


def _load(path: Path, what: str, model: type[_DocumentModel]) -> _DocumentModel:
    if not path.is_file():
        raise InputError(f"{what} '{path}': no such file")
    return read(path, model)
