"""Carries a case's traffic through the simulator and judges every packet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import switch_emulator

from evaluation.adversary.case import Case
from evaluation.adversary.release import Instants
from evaluation.virtual import SEQUENCE_OFFSET, frame_of, lab_network
from loko.control_traffic import ControlTraffic, Message, MessageRate
from loko.controller import messages, messages13
from loko.entries import switch_entries
from loko.lab import Lab
from loko.ring import Setting
from loko.scenario import OpenFlow

DRAIN_NS: Final = 1_000_000_000
"""Longer than any queue needs to empty."""

_REQUESTS: Final = {
    OpenFlow.V1_0: {
        Message.ECHO: messages.echo_request,
        Message.BARRIER: messages.barrier_request,
        Message.FEATURES: messages.features_request,
        Message.TABLE_STATISTICS: messages.table_stats_request,
        Message.HEARTBEAT: messages.table_stats_request,
        Message.FLOW_STATISTICS: messages.flow_stats_request,
    },
    OpenFlow.V1_3: {
        Message.ECHO: messages13.echo_request,
        Message.BARRIER: messages13.barrier_request,
        Message.FEATURES: messages13.features_request,
        Message.TABLE_STATISTICS: messages13.table_stats_request,
        Message.HEARTBEAT: messages13.aggregate_request,
        Message.FLOW_STATISTICS: messages13.flow_stats_request,
    },
}
SENDABLE: Final = tuple(_REQUESTS[OpenFlow.V1_0])
"""Messages of a controller that a run can contain."""


@dataclass(frozen=True, kw_only=True)
class FlowVerdict:
    """What became of a flow's packets. All that the guarantee forbids is 0, and `worst` at most 1."""

    flow: str
    sent: int
    lost: int
    wrong: int
    """Copies, frames at another host or with other bytes, and frames that broke the token bucket."""
    worst: float
    """The longest delay over the guarantee."""

    @property
    def kept(self) -> bool:
        """Whether the guarantee was kept."""
        return not self.lost and not self.wrong and self.worst <= 1


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a run showed."""

    packets: int
    flows: tuple[FlowVerdict, ...]
    fullest: int
    """Units of a receive ring that were taken at once, at most."""
    events: tuple[str, ...]
    """What the boards complained of."""

    @property
    def broken(self) -> tuple[FlowVerdict, ...]:
        """The flows whose guarantee was not kept."""
        return tuple(flow for flow in self.flows if not flow.kept)

    @property
    def worst(self) -> float:
        """The longest delay over its guarantee."""
        return max((flow.worst for flow in self.flows), default=0.0)

    @property
    def lost(self) -> int:
        """Packets that never arrived."""
        return sum(flow.lost for flow in self.flows)


@dataclass(frozen=True, kw_only=True)
class RandomBursts:
    """The paper's generator (section 6.1) before each bucket: bursts at random instants."""

    load: float
    """Mean offered rate over that of the bucket. Far above 1, the flow sends all that it may."""
    queue_frames: int = 200


def network_of(
    case: Case, *, seed: int, settings: Mapping[str, Mapping[str, Setting]] | None = None
) -> switch_emulator.Network:
    """The case's lab with its flow tables. `settings` adds to the switches' configuration."""
    tables = switch_entries(case.lab, case.admitted, entries=case.entries)
    return lab_network(
        case.lab,
        tables,
        seed=seed,
        profile_of=case.profile_of,
        settings=settings or {},
        openflow=case.openflow,
    )


def add_bursts(
    network: switch_emulator.Network,
    case: Case,
    bursts: RandomBursts,
    *,
    only: frozenset[int] | None = None,
) -> None:
    """Let every flow's host send random bursts, or those of some flows only."""
    for number, flow in enumerate(case.flows):
        if only is not None and number not in only:
            continue
        network.add_source(
            flow.source,
            flow=number,
            frame=frame_of(case.lab, flow),
            sequence_offset=SEQUENCE_OFFSET,
            shaper_rate_bps=math.floor(flow.rate_bps),
            shaper_burst_bytes=flow.burst_bytes,
            offered_rate_bps=max(1.0, bursts.load * flow.rate_bps),
            burst_bytes=flow.burst_bytes,
            queue_bytes=bursts.queue_frames * flow.frame_bytes,
            observed=False,
            destination=flow.destination,
        )


def add_releases(
    network: switch_emulator.Network,
    case: Case,
    releases: Sequence[Instants],
    *,
    observed: bool,
    only: frozenset[int] | None = None,
) -> None:
    """Let every flow's host offer frames at these instants, or those of some flows only."""
    for number, (flow, instants_ns) in enumerate(zip(case.flows, releases, strict=True)):
        if only is not None and number not in only:
            continue
        network.add_pattern(
            flow.source,
            flow=number,
            frame=frame_of(case.lab, flow),
            sequence_offset=SEQUENCE_OFFSET,
            shaper_rate_bps=math.floor(flow.rate_bps),
            shaper_burst_bytes=flow.burst_bytes,
            instants_ns=instants_ns,
            observed=observed,
            destination=flow.destination,
        )


def add_control(
    network: switch_emulator.Network,
    lab: Lab,
    control: ControlTraffic,
    *,
    duration_ns: int,
    first_ns: Mapping[str, int],
    openflow: OpenFlow = OpenFlow.V1_0,
) -> None:
    """Let the controller send all that it may: a burst of each message, again as soon as allowed."""
    for switch in lab.switches:
        planned: list[tuple[int, bytes]] = []
        for message, rate in control.items():
            request = _REQUESTS[openflow][message](1)
            planned += [(at_ns, request) for at_ns in _bursts_ns(rate, first_ns[switch], duration_ns)]
        network.plan_control(switch, sorted(planned))


def _bursts_ns(rate: MessageRate, first_ns: int, duration_ns: int) -> list[int]:
    period_ns = math.ceil(rate.burst * 1e9 / rate.per_s)
    return [at_ns for at_ns in range(first_ns, duration_ns, period_ns) for _ in range(rate.burst)]


def judged(case: Case, result: switch_emulator.RunResult) -> Verdict:
    """Compare what arrived with what was guaranteed."""
    flows = []
    for number, seen in result.flows.items():
        admitted = case.admitted[number]
        wrong = sum(seen[what] for what in ("duplicates", "misdelivered", "corrupted", "nonconforming"))
        flows.append(
            FlowVerdict(
                flow=admitted.flow.id,
                sent=seen["sent"],
                lost=seen["sent"] - seen["received"],
                wrong=wrong,
                worst=seen["max_delay_ns"] / admitted.guarantee_ns,
            )
        )
    return Verdict(
        packets=result.packets,
        flows=tuple(flows),
        fullest=max(board["ring_units_peak"] for board in result.boards.values()),
        events=tuple(f"{event.board}, {event.at_ns} ns: {event.text}" for event in result.events),
    )
