"""Models of REST's requests and answers: requests are read by them, answers are described by them.

Answers are put together as plain values (`loko.service.views`), since to check them costs more than a
decision. That they have these shapes is tested.
"""

from __future__ import annotations

import secrets
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from loko.admission.protection import Protection
from loko.schedule.timed_flow import TimedFlow
from loko.schedule.timing import Exclusive
from loko.service.breaks import ViolationCause
from loko.service.outcome import AdmissionMode, Disposition, FlowState, ReturnMode
from loko.switch_model.flow import FLOW_ID, AddressedDocument, FlowDocument, TrafficClass, UdpPort
from loko.switch_model.margin import GuaranteeKind
from loko.units import Quantity

_FlowName = Field(
    pattern=FLOW_ID,
    description="Your name for it; one is made up without any.",
    default_factory=lambda: f"flow-{secrets.token_hex(6)}",
)
_NodeName = Annotated[str, Field(min_length=1, max_length=64)]
_LONGEST_PERIOD_NS: Final = 10**12
_LEAST_FRAME_BYTES: Final = 64


def _whole(value: object) -> object:
    """Return a whole number written as 64.0 as an integer: to JSON Schema, it is one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_Whole = BeforeValidator(_whole)
_Port = Annotated[UdpPort, _Whole]
_FrameBytes = Annotated[int, Field(ge=_LEAST_FRAME_BYTES, le=1518), _Whole]


class FlowRequest(FlowDocument):
    """A flow that is asked for. Rate and burst count frames with their FCS, without preamble."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": "H1-H3",
                "source": "H1",
                "destination": "H3",
                "udp_source": 5000,
                "udp_destination": 6000,
                "rate_bps": 100000,
                "burst_bytes": 306,
                "frame_bytes": 306,
                "deadline_ns": 5000000,
            }
        },
    )

    id: str = _FlowName
    source: _NodeName
    destination: _NodeName
    udp_source: _Port
    udp_destination: _Port
    burst_bytes: Annotated[Quantity, Field(ge=_LEAST_FRAME_BYTES, description="At least `frame_bytes`.")]
    frame_bytes: _FrameBytes
    traffic_class: Annotated[TrafficClass, _Whole] = Field(
        1,
        description="Whose queue its frames wait in, where ports have one for each class; 1 is the highest."
        " Only where the service has several classes.",
    )
    path: list[_NodeName] | None = Field(
        None, min_length=1, max_length=256, description="Switches to cross; routed without."
    )
    deadline_ns: Quantity | None = Field(None, description="The guarantee must not exceed it.")
    protection: Protection | None = Field(
        None,
        description="Of a service with `--survive`, which has a default: backup paths, or second copies.",
    )


class SlotRequest(AddressedDocument):
    """A flow that a slot is asked for: one frame a period, counted with its FCS."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": "H1-H3",
                "source": "H1",
                "destination": "H3",
                "udp_source": 5000,
                "udp_destination": 6000,
                "frame_bytes": 306,
            }
        },
    )

    id: str = _FlowName
    source: _NodeName
    destination: _NodeName
    udp_source: _Port
    udp_destination: _Port
    frame_bytes: _FrameBytes
    period_ns: Annotated[int | None, _Whole] = Field(
        None,
        gt=0,
        le=_LONGEST_PERIOD_NS,
        description="How often it sends a frame: a whole multiple of the base period, which it is without.",
    )

    @property
    def timed(self) -> TimedFlow:
        """The flow that is meant."""
        return TimedFlow(
            self.id,
            self.source,
            self.destination,
            self.udp_source,
            self.udp_destination,
            self.frame_bytes,
            self.period_ns,
            None,
        )


class _ResponseModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


_Baseline = Field(
    None, description="Only of a baseline: that its guarantees and bounds hold for nothing here, and why."
)


class ConditionView(_ResponseModel):
    """One condition of all guarantees."""

    id: str = Field(description="Stable, such as `no-pause`.")
    text: str
    details: list[str] = Field(description="What it means here: numbers, devices.")


class HopView(_ResponseModel):
    """Share of one switch that a flow takes."""

    switch: str
    output_port: int
    delay_ns: float = Field(description="Bound on the delay at the switch.")
    burst_bytes: float = Field(description="Its burst where it enters the switch.")


class SendSlotView(_ResponseModel):
    """When a host sends the frames of a flow that has a slot."""

    slot: int
    offset_ns: int = Field(description="When in a base period the slot begins.")
    period_ns: int = Field(description="One frame so often: a whole multiple of the base period.")


class _FlowModel(_ResponseModel):
    """A flow, as it was asked for."""

    id: str
    source: str
    destination: str
    udp_source: int
    udp_destination: int
    rate_bps: float
    burst_bytes: float
    frame_bytes: int
    traffic_class: int = Field(description="Whose queue its frames wait in; 1 is the highest.")


class ViolationView(_ResponseModel):
    """Why a promise is broken. It is kept again when nothing of this kind is left."""

    cause: ViolationCause
    place: str = Field(description="The switch, or the cable as `s1:3-s2:3`.")
    text: str = Field(description="In words.")
    since_ms: int = Field(description="When it was noticed: milliseconds since 1970, UTC.")


class BackupPathView(_ResponseModel):
    """The path of a flow after a failure."""

    failure: str = Field(description="Such as `cable s1:3-s2:3`, or the name of a group.")
    path: list[str] = Field(description="Its switches.")


class SecondCopiesView(_ResponseModel):
    """The second copies of a duplicated flow's frames: the host sends both copies of each frame at once."""

    udp_source: int = Field(description="Their source port; in all else they are as the first copies.")
    path: list[str] = Field(description="The switches of their path.")
    remembered_frames: int = Field(
        description="So many of the latest frames must the receiver know, to drop the copy that comes later."
    )


class ReservedPathsView(_ResponseModel):
    """The paths of a flow that survives failures. The promise holds on all of them."""

    protection: Protection
    on_backup: bool = Field(description="It is in place, but not on its working path.")
    working: list[str] = Field(description="The switches of its path while nothing has failed.")
    backups: list[BackupPathView]
    second_copies: SecondCopiesView | None = Field(description="Of a duplicated flow; else null.")
    on_one_path: list[ViolationView] = Field(
        description="Of a duplicated flow: the faults of one of its paths, while the other has none."
    )


class FlowView(_FlowModel):
    """A flow that was granted."""

    state: FlowState
    guarantee_ns: float | None = Field(description="Bound on its delay, end to end; null if lost.")
    deadline_ns: float | None = Field(description="What was asked for; null if nothing.")
    promised_ns: float | None = Field(
        description="The guarantee that its requester was told; null if it is lost and that is not stored."
    )
    baseline: str | None = _Baseline
    waiting_for: list[str] = Field(description="Switches that have yet to confirm its state.")
    broken: list[ViolationView] = Field(description="Why its promise is broken; empty while it is kept.")
    path: list[HopView]
    send_slot: SendSlotView | None = Field(
        description="When it sends, if it has a slot; else as its bucket allows."
    )
    reserved: ReservedPathsView | None = Field(description="Of a service with `--survive`; else null.")


class FlowListView(_ResponseModel):
    """All flows, in the order of their requests."""

    flows: list[FlowView]


class ProtectionView(_ResponseModel):
    """The failures that flows survive, and whether they would survive the next one now."""

    failures: list[str] = Field(description="They are covered one at a time.")
    covered: bool = Field(description="The reserved paths cover the next failure.")
    uncovered: list[str] = Field(description="Why they do not, until that is repaired; empty if they do.")
    on_backup: list[str] = Field(description="The flows on backup paths.")
    on_one_path: list[str] = Field(description="The duplicated flows of which one path has a fault.")
    in_two_rounds: list[str] = Field(
        description="The flows that some failure moves in two round trips: an entry is not there beforehand."
    )
    returns: ReturnMode = Field(description="When flows leave backup paths after a repair.")


class ReturnView(_ResponseModel):
    """The flows that return to their working paths."""

    returning: list[str]


class EmulationView(_ResponseModel):
    """The faults that clients have caused in the emulated lab, and that last, and those that are possible."""

    pulled: list[str] = Field(description="Cables that are pulled out, as `s1:3-s2:3`.")
    restartable: list[str] = Field(description="Switches that can be rebooted.")


class RemovalView(_ResponseModel):
    """A flow that is gone but at switches that are away."""

    id: str
    state: FlowState
    waiting_for: list[str]


class ServiceView(_ResponseModel):
    """The served lab, and the options."""

    lab: str
    title: str
    scheme: str
    grants: AdmissionMode = Field(description="Whether flows are admitted, or get slots.")
    options: dict[str, str] = Field(description="What the guarantees depend on.")
    conditions: list[ConditionView] = Field(
        description="On which the guarantees hold, or a baseline's would."
    )
    baseline: str | None = _Baseline
    needs_token: bool
    measures: str | None = Field(description="What measures delays, in words.")
    emulates: bool = Field(description="Whether the boards are emulated, so that faults may be caused.")


class LimitingSwitchView(_ResponseModel):
    """First failure beyond a margin."""

    switch: str
    promise: GuaranteeKind


class MarginView(_ResponseModel):
    """How much longer every switch may take for everything, with all promises kept.

    It holds for the flows of now, while none leaves and no other comes.
    """

    slower_ppm: int | None = Field(description="In millionths of the planned times; null if it is not known.")
    limited_by: LimitingSwitchView | None = Field(description="What falls beyond; null if nothing does.")
    text: str = Field(description="The same in words, or why it is not known.")


class ScheduleView(_ResponseModel):
    """The cycle that all hosts keep. A base period begins at each multiple of its length of their clock."""

    scheme: str
    exclusive: Exclusive = Field(description="What a flow has for itself in its slot.")
    slots: int = Field(description="Of a base period.")
    base_period_ns: int
    slot_ns: int
    guard_ns: int = Field(description="How far a host may be off its slot, early or late.")
    frame_bytes: list[int] = Field(description="The sizes that the slots are planned for.")
    flows: int = Field(description="How many have a slot.")
    optimality_gap: int = Field(
        description="How many more a schedule of all might have in which all may be moved."
    )


class TransmissionView(SendSlotView):
    """A flow that a host sends, and when."""

    id: str
    destination: str
    udp_source: int
    udp_destination: int
    frame_bytes: int


class HostScheduleView(_ResponseModel):
    """Schedule of a host: its flows that are installed, with no switch of their paths away."""

    host: str
    base_period_ns: int
    slot_ns: int
    guard_ns: int
    sends: list[TransmissionView]


class ShareView(_ResponseModel):
    """One limit of a switch."""

    quantity: str
    used: float
    allowed: float
    unit: str
    fraction: float


class SwitchView(_ResponseModel):
    """A switch: its connection, and its use against its allocation."""

    name: str
    datapath_id: str
    state: str
    ready: bool
    complete: bool = Field(description="It holds exactly what it should.")
    delay_ns: float = Field(description="Bound on its delay.")
    baseline: str | None = _Baseline
    use: list[ShareView]
    foreign_entries: list[str] = Field(description="Entries of others in its table.")
    exceeds_planned_entries: bool
    down_ports: list[int] = Field(description="Where the lab has a cable and the switch reports no link.")
    unexpected_ports: list[int] = Field(description="Where it reports a link and the lab has no cable.")


class SwitchListView(_ResponseModel):
    """All switches."""

    switches: list[SwitchView]


class DrawnPlace(_ResponseModel):
    """A point of a drawing: x to the right, y downwards; switches are at least about one apart."""

    x: float
    y: float


class TopologySwitch(_ResponseModel):
    """A switch of the topology."""

    name: str
    profile: str
    ports: int
    wide: DrawnPlace = Field(description="Where a drawing that is wider than high has it.")
    upright: DrawnPlace = Field(description="Where a drawing for a narrow screen has it.")


class TopologyHost(_ResponseModel):
    """A host of the topology."""

    name: str
    mac: str
    ip: str


class CableEnd(_ResponseModel):
    """A port of a switch or host."""

    node: str
    port: int


class TopologyCable(_ResponseModel):
    """A cable, and its rate."""

    a: CableEnd
    b: CableEnd
    rate_bps: float


class TopologyView(_ResponseModel):
    """Switches, hosts and cables."""

    lab: str
    title: str
    switches: list[TopologySwitch]
    hosts: list[TopologyHost]
    links: list[TopologyCable]


class DelayHistogram(_ResponseModel):
    """How many of the latest packets had which delay; the last bin has all beyond it."""

    bin_ns: float
    counts: list[int]


class FlowDelaysView(_ResponseModel):
    """Measured delays of one flow. Quantiles and histogram are of its latest packets."""

    guarantee_ns: float
    baseline: str | None = _Baseline
    sent: int
    received: int
    lost: int
    late: int = Field(description="Received later than guaranteed.")
    min_ns: int | None
    p50_ns: int | None
    p99_ns: int | None
    max_ns: int | None
    histogram: DelayHistogram


class DelayListView(_ResponseModel):
    """Measured delays by flow."""

    flows: dict[str, FlowDelaysView]


class DelaySpanView(_ResponseModel):
    """Measurements of one span of time."""

    ago_ns: int = Field(description="How long ago it began.")
    sent: int
    received: int
    lost: int
    min_ns: int | None
    mean_ns: float | None
    max_ns: int | None


class DelayHistoryView(_ResponseModel):
    """The delays of one flow, span by span; spans without packets are left out."""

    guarantee_ns: float
    span_ns: int
    spans: list[DelaySpanView]
    baseline: str | None = _Baseline


class EventView(_ResponseModel):
    """Something that has happened."""

    number: int = Field(description="Higher than that of all before, also after a restart.")
    at_ms: int = Field(description="Milliseconds since 1970, UTC.")
    kind: str = Field(description="`flow`, `switch`, `refusal`, or `note`.")
    name: str = Field(description="Of the flow or switch.")
    text: str
    warning: bool


class EventListView(_ResponseModel):
    """The latest of what has happened, in order."""

    notes: list[EventView]


class ShareForecast(_ResponseModel):
    """One limit of a switch, now and with the flow."""

    quantity: str
    used: float
    would_use: float
    allowed: float
    unit: str


class SwitchForecast(_ResponseModel):
    """A switch of the path."""

    name: str
    use: list[ShareForecast]


class DryRunView(_FlowModel):
    """Answer to a dry run. Nothing is done or reserved."""

    guarantee_ns: float = Field(description="Bound on the delay from end to end.")
    baseline: str | None = _Baseline
    path: list[HopView]
    send_slot: SendSlotView | None = Field(description="When it would send, if it got a slot.")
    switches: list[SwitchForecast] = Field(description="Of its path, each once.")


class HealthView(_ResponseModel):
    """Whether every promise is kept, as far as the service can see, and every table is as it should be."""

    healthy: bool
    scheme: str
    baseline: str | None = _Baseline
    late: list[str] = Field(description="Switches that do not hold exactly what they should.")
    broken: dict[ViolationCause, int] = Field(description="Broken promises by cause; those that occur.")
    storage: str | None = Field(description="Why nothing can change now, as the disk takes nothing.")


class ErrorDetail(BaseModel):
    """An error. For a flow that does not fit, also the limit that it would exceed, and the switch."""

    model_config = ConfigDict(extra="forbid")

    code: str
    message: str
    switch: str | None = None
    disposition: Disposition | None = Field(
        None, description="What became of a request that was not carried out."
    )
    quantity: str | None = None
    used: float | None = None
    requested: float | None = None
    allowed: float | None = None
    unit: str | None = Field(None, description="Of the three numbers.")
    paths: int | None = Field(None, description="So many were tried.")
    suggestion: str | None = Field(None, description="What to do to be admitted.")
    hint: str | None = Field(None, description="Advice to whoever runs the network; empty if there is none.")
    would_fit: dict[str, Any] | None = Field(None, description="What to change of the request for that.")
    wait_ms: int | None = Field(None, description="The same request fits so much later.")


class ErrorBody(BaseModel):
    """The shape of all errors."""

    model_config = ConfigDict(extra="forbid")

    error: ErrorDetail
