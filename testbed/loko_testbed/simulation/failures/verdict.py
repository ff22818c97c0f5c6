"""The cost of a failure: each packet of a run beside the statements of the plan for that failure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from loko_testbed.simulation.failures.protected_lab import Cut, ProtectedLab
from loko_testbed.simulation.runner import LOST, RunRecords

_WRONG = ("duplicates", "misdelivered", "corrupted", "nonconforming")


class Fate(StrEnum):
    """The effect of a failure on a flow."""

    STAYS = "stays"
    """It does not cross what fails."""
    MOVES = "moves"
    """It gets its backup path. What is sent meanwhile is lost."""
    DUPLICATED = "duplicated"
    """Every frame is sent twice; the receiver drops the copy that comes later."""
    ENDS = "ends"
    """Its source or destination fails with a switch."""


@dataclass(frozen=True, kw_only=True)
class FlowVerdict:
    """Delivery of a flow's frames in a run with a failure."""

    flow: str
    traffic_class: int
    fate: Fate
    sent: int
    """Frames; the two copies of a frame count once."""
    lost: int
    """Frames of which no copy arrived."""
    most_lost: int | None
    """As many may be lost by the plan; None if the flow ends, which has no bound."""
    lost_outside: int
    """Lost frames that were sent more than the guarantee before the failure, or after the stated outage."""
    late: int
    """Frames, or second copies, that took longer than the guarantee."""
    eliminated: int
    """Second copies that arrived beside the first, for the receiver to drop."""
    wrong: int
    """Packets delivered twice, at the wrong host or with wrong bytes, or that broke the token bucket."""
    worst: float
    """The longest delay over the guarantee."""

    @property
    def lost_beyond(self) -> int:
        """Lost frames that the plan does not allow for."""
        excess = 0 if self.most_lost is None else max(0, self.lost - self.most_lost)
        return max(excess, self.lost_outside)

    @property
    def kept(self) -> bool:
        """Whether all is as the plan states."""
        return not (self.lost_beyond or self.late or self.wrong)


@dataclass(frozen=True, kw_only=True)
class FailureVerdict:
    """A run with a failure."""

    failure: str
    at_ns: int
    outage_ns: float
    """Time from the failure until all flows have moved, by the plan."""
    packets: int
    """Packets that were sent; both copies of a frame count."""
    flows: tuple[FlowVerdict, ...]
    events: tuple[str, ...]
    """Complaints of the boards."""

    @property
    def broken(self) -> tuple[FlowVerdict, ...]:
        """The flows that fared worse than the plan states."""
        return tuple(flow for flow in self.flows if not flow.kept)

    @property
    def worst(self) -> float:
        """The longest delay over its guarantee."""
        return max((flow.worst for flow in self.flows), default=0.0)

    @property
    def lost(self) -> int:
        """Frames that were lost, of all flows that go on."""
        return sum(flow.lost for flow in self.flows if flow.fate is not Fate.ENDS)

    @property
    def most_lost(self) -> int:
        """As many may be lost by the plan, of all flows that go on."""
        return sum(flow.most_lost or 0 for flow in self.flows)


def judge(protected: ProtectedLab, cut: Cut, records: RunRecords) -> FailureVerdict:
    """Compare what arrived with what the plan states for the failure."""
    recovery = protected.recovery(cut.failure)
    outages_ns = {} if recovery is None else recovery.outages_ns
    flows = []
    for number, (flow_id, flow) in enumerate(protected.plan.flows.items()):
        numbers = [number, *([protected.second_copy_of[number]] if flow.duplicate is not None else [])]
        copies = [_Copy.of(records, each) for each in numbers]
        # When the run ends, one of the two copies of a last frame may still wait at its host.
        common = min(len(copy.sent_ns) for copy in copies)
        sent_ns = np.min([copy.sent_ns[:common] for copy in copies], axis=0)
        arrivals = np.sum([copy.arrived[:common] for copy in copies], axis=0)
        delays_ns = np.concatenate([copy.delays_ns for copy in copies])
        lost_ns = sent_ns[arrivals == 0]
        if cut.failure.name in flow.ends_with:
            fate, most_lost, until_ns = Fate.ENDS, None, math.inf
        elif flow.duplicate is not None:
            fate, most_lost, until_ns = Fate.DUPLICATED, 0, -math.inf
        elif flow_id in outages_ns:
            fate, most_lost = Fate.MOVES, flow.most_lost_frames(outages_ns[flow_id])
            until_ns = cut.at_ns + outages_ns[flow_id]
        else:
            fate, most_lost, until_ns = Fate.STAYS, 0, -math.inf
        since_ns = cut.at_ns - flow.working.guarantee_ns
        flows.append(
            FlowVerdict(
                flow=flow_id,
                traffic_class=flow.working.flow.traffic_class,
                fate=fate,
                sent=common,
                lost=len(lost_ns),
                most_lost=most_lost,
                lost_outside=int(np.sum((lost_ns < since_ns) | (lost_ns > until_ns))),
                late=int(np.sum(delays_ns > flow.guarantee_ns)),
                eliminated=int(np.sum(arrivals > 1)),
                wrong=sum(records.flows[each][what] for each in numbers for what in _WRONG),
                worst=float(delays_ns.max(initial=0)) / flow.guarantee_ns,
            )
        )
    return FailureVerdict(
        failure=cut.failure.name,
        at_ns=cut.at_ns,
        outage_ns=max(outages_ns.values(), default=0.0),
        packets=len(records),
        flows=tuple(flows),
        events=records.events,
    )


@dataclass(frozen=True)
class _Copy:
    """The frames of one flow of the records, in order of their sequence numbers."""

    sent_ns: NDArray[np.int64]
    arrived: NDArray[np.bool_]
    delays_ns: NDArray[np.int64]
    """Of the frames that arrived."""

    @classmethod
    def of(cls, records: RunRecords, number: int) -> _Copy:
        rows = records.flow == number
        sent_ns, received_ns = records.sent_ns[rows], records.received_ns[rows]
        arrived = received_ns != LOST
        return cls(sent_ns, arrived, received_ns[arrived] - sent_ns[arrived])
