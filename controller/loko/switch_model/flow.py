"""Flows: who sends what to whom, within which token bucket.

A flow is a named tuple because planning may request millions of them. Flows from outside are read, and
checked, as documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Final, NamedTuple, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from loko.document import InputError, StrictModel
from loko.switch_model.calculus import TokenBucket
from loko.units import Quantity

UdpPort = Annotated[int, Field(ge=1, le=65535)]
TrafficClass = Annotated[int, Field(ge=1, le=7)]
"""Of the eight queues that IEEE 802.1Q gives a port, other traffic has one."""
FLOW_ID: Final = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$"
"""Pattern of a flow's id: a part of URLs and of names of files."""


def _id(text: str) -> str:
    if not re.fullmatch(FLOW_ID, text):
        raise ValueError(
            f"'{text}': give 1 to 64 letters, digits, dots, colons, hyphens or underscores; the first is a"
            " letter or digit"
        )
    return text


FlowId = Annotated[str, AfterValidator(_id), WithJsonSchema({"type": "string", "pattern": FLOW_ID})]
FiveTuple = tuple[str, str, int, int]
"""Key of a UDP flow on the wire, with hosts by name: fields 1 to 4 of a flow."""


class Flow(NamedTuple):
    """A unidirectional UDP flow. Rate and burst count frames with their FCS, without preamble.

    Its values are not checked: a flow from outside our own code is a `FlowDocument` first.
    """

    id: str
    source: str
    destination: str
    udp_source: int
    udp_destination: int
    rate_bps: float
    burst_bytes: float
    """At least one frame."""
    frame_bytes: int
    traffic_class: int = 1
    """Whose queue its frames wait in, where ports have one for each class; 1 is the highest."""

    @property
    def arrival(self) -> TokenBucket:
        """The token bucket that the sender keeps to."""
        return TokenBucket(rate_bps=self.rate_bps, burst_bytes=self.burst_bytes)


class AddressedDocument(StrictModel):
    """The fields that all documents of a flow share: its id, and who sends to whom."""

    id: FlowId
    source: str
    destination: str
    udp_source: UdpPort
    udp_destination: UdpPort


class FlowDocument(AddressedDocument):
    """A flow as people and programs write it down."""

    rate_bps: Quantity
    burst_bytes: Quantity
    frame_bytes: int = Field(ge=64, le=1518)
    traffic_class: TrafficClass = 1

    @model_validator(mode="after")
    def _holds_a_frame(self) -> Self:
        if self.burst_bytes < self.frame_bytes:
            raise ValueError(
                f"burst_bytes {self.burst_bytes:.15g} is below frame_bytes {self.frame_bytes}; allow a frame"
            )
        return self

    @property
    def flow(self) -> Flow:
        """The flow that the document describes."""
        return Flow._make(getattr(self, name) for name in Flow._fields)


class DuplicateFlowError(InputError):
    """Two flows have the same id, or the same hosts and ports."""


def duplicates(flows: Iterable[tuple[str | None, FiveTuple | None]]) -> Iterator[tuple[int, str | None]]:
    """Yield the index of each flow, given as its id and its five-tuple, that repeats an earlier one.

    With it comes the id of the earlier flow that has the same hosts and ports; None if the id itself is used
    twice. An id or a five-tuple that is None repeats nothing.
    """
    ids: set[str] = set()
    tuples: dict[FiveTuple, str] = {}
    for place, (flow_id, five_tuple) in enumerate(flows):
        if flow_id in ids:
            yield place, None
        elif five_tuple in tuples:
            yield place, tuples[five_tuple]
        if flow_id is not None:
            ids.add(flow_id)
            if five_tuple is not None:
                tuples.setdefault(five_tuple, flow_id)


def refuse_duplicates(flows: Sequence[Flow]) -> None:
    """Raise `DuplicateFlowError` if two flows have the same id or the same five-tuple."""
    for place, other in duplicates((flow.id, flow[1:5]) for flow in flows):
        flow_id = flows[place].id
        if other is None:
            raise DuplicateFlowError(f"flow id '{flow_id}' is used twice; rename one")
        raise DuplicateFlowError(
            f"flows '{other}' and '{flow_id}' have the same hosts and ports; change a port"
        )


def dump_flows(flows: Sequence[Flow]) -> list[dict[str, object]]:
    """Return the flows as plain values, as `loko.topology.requests.load_flows` reads them."""
    return [flow._asdict() for flow in flows]
