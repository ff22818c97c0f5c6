"""Source routing by stacks of VLAN tags (predictability paper, section IV and fig. 15).

The sending host puts a tag for each switch of the path in front of a frame, the first switch's outermost. A
switch matches the outermost tag, removes it, and sends the frame out of the port that the tag stands for. So
a table has one entry per port, whatever flows there are, and never changes. The price is the length of the
tags: a frame of l bytes on a path of n switches leaves its host with l + 4 n bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import chain
from typing import Final

from loko.admission import Admitted, LokoAdmission, Refusal, ResourceDemand
from loko.control.entries import Fields, FlowEntry, Output, PopVlan
from loko.document import InputError
from loko.switch_model.allocation import Allocation
from loko.switch_model.calculus import NOTHING, TokenBucket
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import ActionType, MatchType, OpenFlow, PriorityOrder, Scenario
from loko.topology.frame_sizes import CrossableSwitches, sizes_by_switch
from loko.topology.lab import Lab
from loko.topology.lab_allocation import SplitsOf
from loko.topology.network import Hop, longest_path

TAG_BYTES: Final = 4
LONGEST_FRAME_BYTES: Final = 1518
"""The longest frame for which a board's cost is known, with FCS and all tags."""
_TAG: Final = struct.Struct("!HH")
_TAG_TYPE: Final = 0x8100
_ADDRESSES_BYTES: Final = 12
_FIRST_VID: Final = 2
"""VID of port 1. VID 1 is not used, as it is the default VLAN of many switches."""
_LAST_VID: Final = 4094


class ForwardingMode(Enum):
    """How switches know where a frame goes."""

    PER_FLOW = "per-flow"
    """By one entry per flow and visit to a switch."""
    VLAN_STACK = "vlan-stack"
    """By the tags that the sending host has put in front of the frame."""


def vid_of(port: int) -> int:
    """Return the VID that stands for an output port. Raises `InputError` if there are too many ports."""
    vid = port - 1 + _FIRST_VID
    if vid > _LAST_VID:
        raise InputError(f"port {port}: VLAN tags tell {_LAST_VID - _FIRST_VID + 1} ports apart, no more")
    return vid


def stack_of(path: Sequence[Hop]) -> tuple[int, ...]:
    """Return the VIDs that a host puts in front of frames for a path, the outermost first."""
    return tuple(vid_of(hop.output_port) for hop in path)


def tagged_frame(frame: bytes, path: Sequence[Hop]) -> bytes:
    """Return a frame, without FCS, with the tags that send it along a path."""
    tags = b"".join(_TAG.pack(_TAG_TYPE, vid) for vid in stack_of(path))
    return frame[:_ADDRESSES_BYTES] + tags + frame[_ADDRESSES_BYTES:]


def stack_entries(lab: Lab) -> dict[str, tuple[FlowEntry, ...]]:
    """Return the table of every switch of the lab: one entry for each port that a cable leads from."""
    tables = {}
    for name in lab.switches:
        ports = [port for port, _ in lab.outgoing_cables(name)]
        tables[name] = tuple(
            FlowEntry(
                priority=priority,
                match=Fields(dl_vlan=vid_of(port)),
                actions=(PopVlan(), Output(port)),
            )
            for priority, port in zip(range(len(ports), 0, -1), ports, strict=True)
        )
    return tables


def stack_scenario(lab: Lab, flows: Sequence[Flow], openflow: OpenFlow) -> Scenario:
    """Return the scenario of such tables: few entries, any of which may match, and frames with 0 to n tags.

    n is the longest path of the lab (`loko.topology.network.longest_path`). Raises `InputError` if there is
    no flow.
    """
    if not flows:
        raise InputError("no flows to plan for; list at least one")
    most_bytes = TAG_BYTES * longest_path(lab)
    sizes_of = {
        size: [
            tagged
            for tagged in range(size, size + most_bytes + 1, TAG_BYTES)
            if tagged <= LONGEST_FRAME_BYTES
        ]
        for size in {flow.frame_bytes for flow in flows}
    }
    sizes_at = {}
    if len(sizes_of) > 1:
        crossable = CrossableSwitches(lab)
        sizes_at = sizes_by_switch(
            lab,
            (
                (size, crossable.between(flow.source, flow.destination))
                for flow in flows
                for size in sizes_of[flow.frame_bytes]
            ),
        )
    return Scenario(
        entries=max(len(lab.outgoing_cables(name)) for name in lab.switches),
        match=MatchType.DL_VLAN,
        action=ActionType.STRIP_VLAN,
        packet_sizes_bytes=tuple(sorted(set(chain.from_iterable(sizes_of.values())))),
        priorities=PriorityOrder.DECREASING,
        openflow=openflow,
        sizes_at=sizes_at,
    )


class StackAdmission(LokoAdmission):
    """Loko's admission for flows whose frames carry a tag for each switch still ahead.

    At every switch a flow counts as it leaves its host, with all tags, as if no switch removed one. That is
    never too little, since frames only get shorter (docs/planning.md). Entries limit nothing.
    """

    def __init__(
        self,
        lab: Lab,
        allocations: Mapping[str, Allocation],
        control: TokenBucket = NOTHING,
        *,
        splits_of: SplitsOf | None = None,
    ) -> None:
        """Start empty, as `LokoAdmission` does, with allocations made for `stack_scenario`."""
        super().__init__(lab, allocations, control, entry_per_flow=False, splits_of=splits_of)
        self._most_tags = longest_path(lab)

    @property
    def scheme(self) -> str:
        """The allocation schemes in use, and the forwarding."""
        return f"{super().scheme}, {ForwardingMode.VLAN_STACK.value}"

    def check(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """Return what `request` would answer, without admitting anything."""
        sent = self._sent(flow, path)
        return sent if isinstance(sent, Refusal) else _told(flow, super().check(sent, path))

    def request(self, flow: Flow, path: Sequence[Hop] | None = None) -> Admitted | Refusal:
        """See `LokoAdmission.request`. Bursts in the answer are counted as the flow's own, without tags."""
        sent = self._sent(flow, path)
        return sent if isinstance(sent, Refusal) else _told(flow, super().request(sent, path))

    def demands(self, admitted: Admitted) -> Iterator[ResourceDemand]:
        """See `LokoAdmission.demands`."""
        factor = _growth(admitted.flow, len(admitted.path))
        bursts = tuple(burst_bytes * factor for burst_bytes in admitted.bursts_bytes)
        sent = tagged_flow(admitted.flow, len(admitted.path))
        return super().demands(admitted._replace(flow=sent, bursts_bytes=bursts))

    def _sent(self, flow: Flow, path: Sequence[Hop] | None) -> Flow | Refusal:
        """Return the flow with its tags, or why it cannot have them."""
        hops = self._register.route(flow, path).path
        tags = len(hops)
        if tags > self._most_tags:
            return _refusal(flow, hops[0], "tags", (0, tags, self._most_tags), "tags")
        if flow.frame_bytes + tags * TAG_BYTES > LONGEST_FRAME_BYTES:
            lengths = flow.frame_bytes, tags * TAG_BYTES, LONGEST_FRAME_BYTES
            return _refusal(flow, hops[0], "frame with its tags", lengths, "bytes")
        return tagged_flow(flow, tags)


def tagged_flow(flow: Flow, tags: int) -> Flow:
    """Return a flow as its host sends it, with this many tags in front of every frame."""
    factor = _growth(flow, tags)
    return flow._replace(
        rate_bps=flow.rate_bps * factor,
        burst_bytes=flow.burst_bytes * factor,
        frame_bytes=flow.frame_bytes + tags * TAG_BYTES,
    )


def _growth(flow: Flow, tags: int) -> float:
    return (flow.frame_bytes + tags * TAG_BYTES) / flow.frame_bytes


def _told(flow: Flow, answer: Admitted | Refusal) -> Admitted | Refusal:
    """Convert the answer for a flow with tags into one for the flow as requested."""
    if isinstance(answer, Refusal):
        return answer._replace(flow=flow)
    factor = _growth(flow, len(answer.path))
    bursts = tuple(burst_bytes / factor for burst_bytes in answer.bursts_bytes)
    return answer._replace(flow=flow, bursts_bytes=bursts)


def _refusal(
    flow: Flow, first: Hop, quantity: str, numbers: tuple[float, float, float], unit: str
) -> Refusal:
    used, requested, allowed = numbers
    return Refusal(flow, first.switch, quantity, used, requested, allowed, unit, "send shorter frames")
