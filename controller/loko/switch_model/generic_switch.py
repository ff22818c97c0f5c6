"""The profile of a generic switch (`kind = "generic-switch"`): a time per frame, then a port's queues.

The simulator carries such switches (docs/devices.md); each part is there or not. What a port's queues
guarantee is in `loko.slicing`; what a server for all ports guarantees, in `loko.switch_model.service_curve`.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from loko.document import StrictModel
from loko.switch_model.quantity import Count, Factor, Source
from loko.switch_model.tolerance import Tolerant

MatchKind = Literal[
    "port", "dl-dst", "dl-vlan", "dl-vlan-pcp", "masked-nw-dst", "tp-dst", "five-tuple", "all", "other"
]
ActionKind = Literal[
    "output",
    "enqueue",
    "set-dl-src",
    "set-dl-dst",
    "set-vlan-id",
    "set-vlan-pcp",
    "strip-vlan",
    "set-nw-src",
    "set-nw-dst",
    "set-nw-tos",
    "set-tp-src",
    "set-tp-dst",
]


class GenericPorts(StrictModel):
    """The front ports and their rate."""

    count: Count
    link_rate_bps: Count


class TableRule(StrictModel):
    """Where entries with these matches and actions are kept. An empty list stands for all."""

    matches: list[MatchKind] = Field(default=[])
    actions: list[ActionKind] = Field(default=[])
    path: Literal["hardware", "software", "refused"] = "hardware"
    entries: Count | None = None
    """How many such entries fill the hardware table."""
    loses_one_in: Count | None = None
    """When such entries are deleted, one in this many does not give its room back."""
    source: Source
    note: str = ""


class GenericTable(StrictModel):
    """The flow table."""

    entries: Count
    rules: list[TableRule] = Field(default=[])
    """The first rule that fits an entry applies."""
    misses_tagged: bool = False
    """Whether tagged frames never match an entry."""


class ForwardingLatency(StrictModel):
    """Time from the arrival of a frame's last bit (with cut-through, its header's) until it is queued."""

    latency_ns: Count


class CutThrough(StrictModel):
    """Forwarding before the whole frame has arrived."""

    header_bytes: Count
    """How much of a frame must have arrived before it is looked up."""


class Knot(StrictModel):
    """The shortest latency of frames of one length."""

    frame_bytes: Annotated[int, Field(ge=1)]
    latency_ns: Count


class BusyPort(StrictModel):
    """How much longer frames take that arrive at a nearly full port."""

    load_percent: Count
    rise_ns: Count
    least_rise_ns: Count


class TagPush(StrictModel):
    """The extra time of one in `one_in` frames that get a tag."""

    one_in: Count
    extra_ns: Count


class Pipeline(StrictModel):
    """How long a switch chip works on a frame."""

    latency: Annotated[list[Knot], Field(min_length=1)]
    spread_ns: Count
    busy: BusyPort | None = None
    tag_push: TagPush | None = None


class Lookup(StrictModel):
    """A look-up that all ports share."""

    frames_per_s: Count
    waiting_frames: Count


class ForwardingServer(StrictModel):
    """Server that forwards the frames of all ports one after another, with a buffer before it."""

    rate_bps: Count
    """Of frames with their FCS, of all ports together."""
    buffer_bytes: Count | None = None
    """Bytes of whole frames that it holds, with the one that it works on."""
    buffer_frames: Count | None = None
    """Size of the buffer in frames."""

    @model_validator(mode="after")
    def _has_one_buffer(self) -> Self:
        if (self.buffer_bytes is None) == (self.buffer_frames is None):
            raise ValueError("give either buffer_bytes or buffer_frames")
        return self


class SoftwarePath(StrictModel):
    """The CPU, which forwards what the chip cannot."""

    entries: Count
    waiting_frames: Count
    least_ns: Count
    most_ns: Count
    exponent: Factor
    short_frame_bytes: Count | None = None
    """Frames up to this length are forwarded there, unless an entry matches the port alone."""


class PriorityQueues(StrictModel):
    """Strict priority before each port; the first queue is the lowest."""

    queues: Count
    limit_frames: Count
    check_ns: Count


class SharedBuffer(StrictModel):
    """A memory that all queues share."""

    pool_bytes: Count
    factor_percent: Count


class Throttle(StrictModel):
    """The agent's time for a FLOW_MOD; messages that arrive meanwhile wait."""

    first_ns: Count
    each_ns: Count
    """Added for each entry that is in the table."""


class SettlingTime(StrictModel):
    """Handling of an entry that arrives while the previous one is still settling."""

    least_ns: Count
    most_ns: Count
    lost_percent: Count
    """Percentage of the entries that come too early which never reach the chip."""
    listed_percent: Count
    """Percentage of these lost entries that are reported nevertheless."""


class Writer(StrictModel):
    """Entries are written to the chip one after another."""

    write_ns: Count
    waiting_entries: Count
    keeps_deleted: bool = False
    """Whether entries that are deleted while they wait keep their room forever."""


class OpenFlowAgent(StrictModel):
    """How entries get from the agent to the chip."""

    barrier: Literal["agent", "chip"] = "agent"
    """Meaning of the reply to a barrier: the agent has processed all entries, or the chip has them."""
    throttle: Throttle | None = None
    settling: SettlingTime | None = None
    writer: Writer | None = None


class GenericSwitch(Tolerant):
    """All that the simulator knows of such a switch."""

    format: Literal[1]
    kind: Literal["generic-switch"]
    name: str
    title: str
    ports: GenericPorts
    table: GenericTable
    forwarding: ForwardingLatency | None = None
    """A fixed time, in place of a pipeline."""
    pipeline: Pipeline | None = None
    cut_through: CutThrough | None = None
    lookup: Lookup | None = None
    server: ForwardingServer | None = None
    software: SoftwarePath | None = None
    priorities: PriorityQueues | None = None
    buffer: SharedBuffer | None = None
    agent: OpenFlowAgent | None = None
    """Without an agent, entries are in the chip at once."""

    @model_validator(mode="after")
    def _forwards(self) -> Self:
        if (self.forwarding is None) == (self.pipeline is None):
            raise ValueError("give either [forwarding], a fixed time, or [pipeline]")
        if self.pipeline is None and (self.table.rules or self.table.misses_tagged):
            raise ValueError(
                "table: rules and misses_tagged are of a chip's table: add [pipeline], or leave them out"
            )
        return self

    @property
    def is_simple(self) -> bool:
        """Whether it is a server, a fixed latency, and ports: then it has a service curve."""
        others = (self.pipeline, self.cut_through, self.lookup, self.software, self.priorities, self.buffer)
        return self.server is not None and not any(others)
