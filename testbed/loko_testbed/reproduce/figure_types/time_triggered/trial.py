"""One trial of a case: the flows, the cross traffic, and the times of each frame, in any mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loko.switch_model.flow import Flow
from loko.topology.lab import Lab
from loko.units import NS_PER_US
from loko_testbed.reproduce.figure_types.time_triggered.document import TimeTriggeredCase, TimeTriggeredFigure
from loko_testbed.simulation.runner import Stall
from loko_testbed.simulation.traffic import RandomBursts, Sender, flow_of

_FIRST_PORT: Final = 5000
_DESTINATION_PORT: Final = 6000
"""The destination port of all flows: where one machine plays all hosts, a single socket receives them."""
NEVER: Final = -1
_FIRST_CROSS: Final = 100
"""Numbers of the flows of cross traffic begin here."""
_MANY_FRAMES: Final = 1_000_000
"""Length in frames of the queue of a host that sends cross traffic: more than ever wait in it."""


class SlotTrial(NamedTuple):
    """A case with everything that its result depends on."""

    figure: TimeTriggeredFigure
    case: TimeTriggeredCase
    packets: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotFrameTimes:
    """All frames of a case, one row each. Instants are in ns since a common moment."""

    flow: NDArray[np.int64]
    due_ns: NDArray[np.int64]
    """When the frame's slot begins."""
    begun_ns: NDArray[np.int64]
    """When the sending program handed the frame over."""
    done_ns: NDArray[np.int64]
    """When the frame was on its way to the network."""
    received_ns: NDArray[np.int64]
    """When the receiving program had the frame; `NEVER` if it was lost."""
    stalls: tuple[Stall, ...] = ()
    """Periods in which the machine kept the source or the destination from running."""
    scheduling: str = ""
    """How the source was scheduled."""
    cross_percent: float | None = None
    """The share of the cable between the switches that cross traffic took, if measured."""

    @property
    def came(self) -> NDArray[np.bool_]:
        """Mask of the frames that were received."""
        return np.asarray(self.received_ns != NEVER)

    @property
    def stalled(self) -> NDArray[np.bool_]:
        """Mask of the frames with a stall between the beginning of their slot and their arrival."""
        if not self.stalls:
            return np.zeros(len(self.due_ns), dtype=np.bool_)
        begins = np.array(sorted(stall.start_ns for stall in self.stalls), dtype=np.int64)
        by_begin = sorted(self.stalls, key=lambda stall: stall.start_ns)
        ends = np.maximum.accumulate(
            np.array([stall.start_ns + stall.duration_ns for stall in by_begin], dtype=np.int64)
        )
        until = np.maximum(self.done_ns, self.received_ns)
        begun_before = np.searchsorted(begins, until, side="right")
        latest_end = np.concatenate([[np.iinfo(np.int64).min], ends])[begun_before]
        return np.asarray(latest_end >= self.due_ns)


def flows_of(lab: Lab, case: TimeTriggeredCase, frame_bytes: int) -> list[Flow]:
    """Return the flows of a case: from the i-th host at the first switch to the i-th at the second."""
    sources, destinations = hosts_of(lab)
    return [
        Flow(
            id=f"F{number + 1}",
            source=sources[number],
            destination=destinations[number],
            udp_source=_FIRST_PORT + number,
            udp_destination=_DESTINATION_PORT,
            rate_bps=1,
            burst_bytes=frame_bytes,
            frame_bytes=frame_bytes,
        )
        for number in range(case.flows)
    ]


def hosts_of(lab: Lab) -> tuple[list[str], list[str]]:
    """Return the hosts at the first and at the second switch, in the lab's order."""
    first = next(iter(lab.switches))
    near = {
        end.node
        for link in lab.links
        for end, other in ((link.a, link.b), (link.b, link.a))
        if other.node == first and end.node in lab.hosts
    }
    return [name for name in lab.hosts if name in near], [name for name in lab.hosts if name not in near]


def cross_of(trial: SlotTrial, lab: Lab, trunk_bps: float, *, overhead_bytes: int) -> list[Sender]:
    """Return the cross traffic of a case: bursts at random instants from all hosts that send nothing else.

    Each host and each length has the same share of the load on the cable between the switches, which counts
    `overhead_bytes` for each frame beside its own length.
    """
    figure, case = trial.figure, trial.case
    if case.cross_percent == 0:
        return []
    sources, destinations = hosts_of(lab)
    pairs = list(zip(sources, destinations, strict=True))[case.flows :]
    share_bps = trunk_bps * case.cross_percent / 100 / len(pairs) / len(figure.cross_frame_bytes)
    senders: list[Sender] = []
    for source, destination in pairs:
        for length in figure.cross_frame_bytes:
            rate_bps = share_bps * length / (length + overhead_bytes)
            flow = flow_of(
                _FIRST_CROSS + len(senders),
                source,
                destination,
                rate_bps=rate_bps,
                burst_bytes=length,
                frame_bytes=length,
            )
            sends = RandomBursts(
                bucket=None,
                offered_rate_bps=rate_bps,
                burst_bytes=length * case.cross_burst_frames,
                queue_bytes=length * _MANY_FRAMES,
            )
            senders.append(Sender.of(_FIRST_CROSS + len(senders), flow, sends, observed=False))
    return senders


def offset_ns(figure: TimeTriggeredFigure, case: TimeTriggeredCase, number: int) -> int:
    """Return the offset of a flow's slot from the beginning of each period."""
    return round(figure.slot_us * NS_PER_US) * (number if case.adjacent else 0)
