"""Flows: who sends what to whom, within which token bucket.

A flow is a named tuple, because whoever plans asks for millions of them; what comes from outside is read, and
checked, as a document.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple, Self

from pydantic import Field, RootModel, model_validator

from loko.calculus import TokenBucket
from loko.document import InputError, Strict, read

UdpPort = Annotated[int, Field(ge=1, le=65535)]
FiveTuple = tuple[str, str, int, int]
"""What tells UDP flows apart on the wire, in names of hosts: fields 1 to 4 of a flow."""


class Flow(NamedTuple):
    """A unidirectional UDP flow. Rate and burst count frames with their FCS, without preamble.

    Not checked: what does not come from our own code is a `FlowDocument` first.
    """

    id: str
    source: str
    destination: str
    udp_source: int
    udp_destination: int
    rate_bps: float
    burst_bytes: float
    """At least a frame."""
    frame_bytes: int

    @property
    def arrival(self) -> TokenBucket:
        """The token bucket that the sender keeps to."""
        return TokenBucket(rate_bps=self.rate_bps, burst_bytes=self.burst_bytes)


class FlowDocument(Strict):
    """A flow as people and programs write it down."""

    id: str
    source: str
    destination: str
    udp_source: UdpPort
    udp_destination: UdpPort
    rate_bps: float = Field(gt=0, allow_inf_nan=False)
    burst_bytes: float = Field(gt=0, allow_inf_nan=False)
    frame_bytes: int = Field(ge=64, le=1518)

    @model_validator(mode="after")
    def _holds_a_frame(self) -> Self:
        if self.burst_bytes < self.frame_bytes:
            raise ValueError(
                f"burst_bytes {self.burst_bytes:g} is below frame_bytes {self.frame_bytes}; allow a frame"
            )
        return self

    @property
    def flow(self) -> Flow:
        """The flow that is meant."""
        return Flow._make(getattr(self, name) for name in Flow._fields)


def refuse_doubles(flows: Sequence[Flow]) -> None:
    """Raises `InputError` if two flows have one id or one five-tuple."""
    ids: set[str] = set()
    tuples: dict[FiveTuple, str] = {}
    for flow in flows:
        if flow.id in ids:
            raise InputError(f"flow id '{flow.id}' is used twice; rename one")
        ids.add(flow.id)
        key = flow[1:5]
        if key in tuples:
            raise InputError(
                f"flows '{tuples[key]}' and '{flow.id}' have the same hosts and ports; change a port"
            )
        tuples[key] = flow.id


class _FlowsFile(RootModel[list[FlowDocument]]):
    """A list of flows."""

    @model_validator(mode="after")
    def _has_no_doubles(self) -> Self:
        refuse_doubles([one.flow for one in self.root])
        return self


def load_flows(path: str | Path) -> tuple[Flow, ...]:
    """Read a YAML or JSON list of flows. Raises `InputError` in one line."""
    if not Path(path).is_file():
        raise InputError(f"flows '{path}': no such file")
    return tuple(one.flow for one in read(Path(path), _FlowsFile).root)


def dump_flows(flows: Sequence[Flow]) -> list[dict[str, object]]:
    """The flows as plain values, as `load_flows` reads them."""
    return [flow._asdict() for flow in flows]
