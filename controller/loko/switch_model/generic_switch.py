"""The profile of a generic switch (`kind = "generic-switch"`): a time per frame, then a port's queues.

The simulator carries such switches (docs/devices.md); each part is there or not. What a port's queues
guarantee is in `loko.slicing`; what a server for all ports guarantees, in `loko.switch_model.service_curve`.
"""

from __future__ import annotations

from pydantic import Field

from loko.switch_model.quantity import Count, Factor, Section
from loko.switch_model.tolerance import Tolerant


class TableRule(Section):
    """Where entries with these matches and actions are kept. An empty list stands for all."""

    matches: list[str]
    actions: list[str]
    path: str
    """`hardware`, `software` or `refused`."""
    entries: Count | None = None
    """How many such entries fill the hardware table."""
    loses_one_in: Count | None = None
    """When such entries are deleted, one in this many does not give its room back."""
    source: str
    note: str


class GenericTable(Section):
    """The flow table."""

    entries: Count
    vlans: Count | None = None
    """VLANs of a switch without OpenFlow, which forwards by VLAN and destination address."""
    rules: list[TableRule]
    """The first rule that fits an entry applies."""
    misses_tagged: bool
    """Whether tagged frames never match an entry."""


class Knot(Section):
    """The shortest latency of frames of one length."""

    frame_bytes: int
    latency_ns: Count


class Pipeline(Section):
    """How long a switch chip works on a frame."""

    latency: list[Knot]
    spread_ns: Count
    busy: Section | None = None
    """How much longer frames take that arrive at a nearly full port."""
    tag_push: Section | None = None
    """The extra time of one in `one_in` frames that get a tag."""


class ForwardingServer(Section):
    """Server that forwards the frames of all ports one after another, with a buffer before it."""

    rate_bps: Count
    """Of frames with their FCS, of all ports together."""
    buffer_bytes: Count | None = None
    """Bytes of whole frames that it holds, with the one that it works on."""
    buffer_frames: Count | None = None
    """Size of the buffer in frames."""


class SharedBuffer(Section):
    """A memory that all queues share (dynamic threshold)."""

    pool_bytes: Count
    factor_percent: Count
    """The most that a queue may hold, in percent of the free memory."""
    reserved_bytes: Count | None = None
    """Of the memory, what is reserved for each queue of every port."""


class SoftwarePath(Section):
    """The CPU, which forwards what the chip cannot."""

    __pydantic_extra__: dict[str, Count | Factor] = Field(init=False)  # type: ignore[assignment]


class Writer(Section):
    """Entries are written to the chip one after another."""

    keeps_deleted: bool
    """Whether entries that are deleted while they wait keep their room forever."""


class OpenFlowAgent(Section):
    """How entries get from the agent to the chip."""

    barrier: str
    """Meaning of the reply to a barrier: the `agent` has processed all entries, or the `chip` has them."""
    throttle: Section | None = None
    settling: Section | None = None
    writer: Writer | None = None


class GenericSwitch(Tolerant):
    """All that the simulator knows of such a switch."""

    format: int
    kind: str
    name: str
    title: str
    ports: Section
    table: GenericTable
    forwarding: Section | None = None
    """A fixed time, in place of a pipeline."""
    pipeline: Pipeline | None = None
    cut_through: Section | None = None
    lookup: Section | None = None
    server: ForwardingServer | None = None
    software: SoftwarePath | None = None
    priorities: Section | None = None
    buffer: SharedBuffer | None = None
    agent: OpenFlowAgent | None = None
    """Without an agent, entries are in the chip at once."""

    @property
    def queues(self) -> int:
        """The number of queues of all ports, cabled or not; 0 without priorities."""
        return 0 if self.priorities is None else self.ports.count.value * self.priorities.queues.value

    @property
    def is_simple(self) -> bool:
        """Whether it is a server, a fixed latency, and ports: then it has a service curve."""
        others = (self.pipeline, self.cut_through, self.lookup, self.software, self.priorities, self.buffer)
        return self.server is not None and not any(others)
