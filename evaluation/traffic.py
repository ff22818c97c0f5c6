"""What each sender of an experiment's point does: pure arithmetic on the controller's allocation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from evaluation.figure import LabFigure, lab_of
from evaluation.kinds.sweep.document import Sweep
from evaluation.senders import Senders
from loko.allocation import Allocation
from loko.control_traffic import AS_PRINTED, ControlTraffic, Message, MessageRate
from loko.document import InputError
from loko.flow import Flow
from loko.lab import Lab
from loko.lab_allocation import allocations_of
from loko.network import Hop, RoutedFlow, shortest_path
from loko.scenario import of_lokos_tables
from loko.schemes import schemes_of
from loko.split import Split, echo_traffic, split

_UDP_SOURCE: Final = 5000
_UDP_DESTINATION: Final = 6000


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowTraffic:
    """One flow's sender: bursts at line rate, exponentially separated, through a token bucket (section 6.1).

    Rates count the frame with its FCS, without preamble. The token bucket holds `shaper_burst_bytes` and
    fills at `shaper_rate_bps`; before it stands a queue of `queue_bytes`, after it the sender's tap.
    """

    flow: int
    """Number of the flow, from 0; its place in the records."""
    source: str
    """Name of the sending host in the lab."""
    destination: str
    udp_source: int
    udp_destination: int
    frame_bytes: int
    """Every frame's size, with FCS."""
    shaper_rate_bps: int
    """m_r x r of equation 8."""
    shaper_burst_bytes: int
    """m_b x b of equation 8, at least one frame."""
    offered_rate_bps: int
    """Mean rate at which the generator hands frames to the shaper's queue."""
    offered_burst_bytes: int
    """Size of each burst that the generator hands over at once, at least one frame."""
    queue_bytes: int
    """Room before the shaper. What does not fit was never sent and is not a loss."""
    observed: bool
    """Whether its packets are recorded."""
    shaper_latency_ns: int = 0
    """How much later than it could a frame leaves that had to wait for tokens."""

    @classmethod
    def conforming(cls, number: int, flow: Flow, how: Senders) -> FlowTraffic:
        """A flow's sender whose shaper is the flow's token bucket."""
        return cls(
            flow=number,
            source=flow.source,
            destination=flow.destination,
            udp_source=flow.udp_source,
            udp_destination=flow.udp_destination,
            frame_bytes=flow.frame_bytes,
            shaper_rate_bps=int(flow.rate_bps),
            shaper_burst_bytes=int(flow.burst_bytes),
            offered_rate_bps=int(flow.rate_bps * how.offered_load),
            offered_burst_bytes=how.burst_bytes(flow.burst_bytes, flow.frame_bytes),
            queue_bytes=how.queue_frames * flow.frame_bytes,
            shaper_latency_ns=how.shaper_latency_ns,
            observed=True,
        )

    @property
    def label(self) -> str:
        """The direction, as the figures name it."""
        return f"{self.source}->{self.destination}"

    def as_flow(self) -> Flow:
        """The flow as the controller knows it, such as to fill the tables. Its bucket is the shaper's."""
        return Flow(
            id=f"flow-{self.flow}",
            source=self.source,
            destination=self.destination,
            udp_source=self.udp_source,
            udp_destination=self.udp_destination,
            rate_bps=float(self.shaper_rate_bps),
            burst_bytes=float(self.shaper_burst_bytes),
            frame_bytes=self.frame_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What Loko computes for a sweep: the same for all its points."""

    sweep: Sweep
    lab: Lab
    paths: tuple[tuple[Hop, ...], ...]
    """Of each flow of the sweep: the switches that its guarantee counts and its entries stand in."""
    allocation: Allocation
    shares: Split
    guarantee_ns: float
    """End-to-end bound of every observed flow: D for each switch on its path."""
    floor_ns: float
    """Delay between the taps when every switch is idle (docs/architecture.md, delay terms)."""

    def admitted(self) -> tuple[RoutedFlow, ...]:
        """The flows as Loko admits them, whatever is sent."""
        return tuple(
            RoutedFlow(sender.as_flow(), self.paths[sender.flow]) for sender in senders(self, (1.0, 1.0))
        )


def allocation_of(
    figure: LabFigure, lab: Lab, scheme: str, control: ControlTraffic | None = AS_PRINTED
) -> Allocation:
    """What admission may use of each switch in the scenario of section 6. The switches are of one kind.

    As the paper prints it; with `control`, the CPU time of that control traffic and of the boards' own
    interruptions is taken out.
    Raises `InputError` if the switches are allocated differently.
    """
    profiles = {switch.profile.name for switch in lab.switches.values()}
    if len(profiles) != 1:
        raise InputError(
            f"{lab.path}: the evaluation needs switches of one profile, not {', '.join(profiles)}"
        )
    scenario = of_lokos_tables(entries=figure.entries, packet_sizes_bytes=(figure.frame_bytes,))
    schemes = schemes_of(lab, scheme, scenario, traffic=control)
    one, *others = allocations_of(lab, schemes, scenario, control).values()
    if any(other != one for other in others):
        raise InputError(
            f"{lab.path}: '{scheme}' allocates its switches differently; the figure needs equal ones"
        )
    return one


def _shares(sweep: Sweep, lab: Lab) -> tuple[Allocation, Split]:
    """The allocation and equation 8, with what is reserved for control traffic."""
    reserved = sweep.reserved
    if reserved is not None and reserved.charge == "measured":
        control = {Message.ECHO: MessageRate(per_s=reserved.echoes_per_s)}
        allocation = allocation_of(sweep, lab, sweep.allocation, control)
        return allocation, split(allocation, ratio=sweep.split)
    allocation = allocation_of(sweep, lab, sweep.allocation)
    echoes = echo_traffic(reserved.echoes_per_s if reserved is not None else 0)
    return allocation, split(allocation, ratio=sweep.split, control=echoes)


def prepare(sweep: Sweep) -> Setting:
    """Allocate, split by equation 8 and bound the delay. Raises `InputError` if it is not feasible."""
    lab = lab_of(sweep)
    allocation, shares = _shares(sweep, lab)
    if not shares.feasible:
        raise InputError(f"{sweep.name}: not feasible: {shares.reason}")
    paths = tuple(shortest_path(lab, flow.source, flow.destination) for flow in sweep.flows)
    hops = {len(path) for path in paths}
    if len(hops) != 1:
        raise InputError(f"{sweep.name}: flows cross different numbers of switches; split the figure")
    count = hops.pop()
    service = allocation.service
    wire_ns = service.profile.wire_ns(service.profile.ports.preamble_bytes.value + sweep.frame_bytes)
    return Setting(
        sweep=sweep,
        lab=lab,
        paths=paths,
        allocation=allocation,
        shares=shares,
        guarantee_ns=count * allocation.delay_ns,
        floor_ns=count * (wire_ns + service.processing_ns),
    )


def traffic(setting: Setting, x: float, how: Senders | None = None) -> tuple[FlowTraffic, ...]:
    """The senders at x: `senders` with the multipliers of that point."""
    return senders(setting, setting.sweep.multipliers(x), how)


def senders(
    setting: Setting, multipliers: tuple[float, float], how: Senders | None = None
) -> tuple[FlowTraffic, ...]:
    """Equation 8 times the multipliers m_r and m_b. Flows without a share send nothing.

    `how` replaces the experiment's description of the senders.
    """
    sweep = setting.sweep
    rate_multiplier, burst_multiplier = multipliers
    how = sweep.senders if how is None else how
    found = []
    for number, flow in enumerate(sweep.flows):
        bucket = setting.shares.first if flow.share == 1 else setting.shares.second
        if bucket.rate_bps == 0:
            continue
        burst_bytes = int(burst_multiplier * bucket.burst_bytes)
        rate_bps = rate_multiplier * bucket.rate_bps
        found.append(
            FlowTraffic(
                flow=number,
                source=flow.source,
                destination=flow.destination,
                udp_source=_UDP_SOURCE + number,
                udp_destination=_UDP_DESTINATION + number,
                frame_bytes=sweep.frame_bytes,
                shaper_rate_bps=int(rate_bps),
                shaper_burst_bytes=burst_bytes,
                offered_rate_bps=int(rate_bps * how.offered_load),
                offered_burst_bytes=how.burst_bytes(burst_bytes, sweep.frame_bytes),
                queue_bytes=how.queue_frames * sweep.frame_bytes,
                shaper_latency_ns=how.shaper_latency_ns,
                observed=flow.label in sweep.observed,
            )
        )
    return tuple(found)
