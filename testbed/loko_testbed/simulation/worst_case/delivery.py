"""Transmits what a case's hosts send, with the runner of figures, and judges every packet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from loko.switch_model.flow import Flow
from loko_testbed.simulation.runner import RunRecords
from loko_testbed.simulation.traffic import Bucket, Instants, RandomBursts, Releases, Sender
from loko_testbed.simulation.virtual import PoweredLab, VirtualRunner
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet
from loko_testbed.simulation.worst_case.other_traffic import OtherTraffic

DRAIN_NS: Final = 1_000_000_000
"""Longer than any queue takes to empty."""
_QUEUE_FRAMES: Final = 200
"""Frames that fit before each bucket in the paper's generator."""


@dataclass(frozen=True, kw_only=True)
class FlowResult:
    """Delivery of a flow's packets. A kept guarantee means no `lost`, no `wrong`, and `worst` <= 1."""

    flow: str
    sent: int
    lost: int
    wrong: int
    """Duplicates, frames at the wrong host or with wrong bytes, and frames that broke the token bucket."""
    worst: float
    """The longest delay over the guarantee."""

    @property
    def kept(self) -> bool:
        """Whether the guarantee was kept."""
        return not self.lost and not self.wrong and self.worst <= 1


@dataclass(frozen=True, kw_only=True)
class DeliveryResult:
    """The result of a run."""

    packets: int
    flows: tuple[FlowResult, ...]
    fullest: int
    """Largest number of units of a receive ring in use at once."""
    events: tuple[str, ...]
    """Complaints of the boards."""

    @property
    def broken(self) -> tuple[FlowResult, ...]:
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


def runner_of(case: AdmittedSet, others: OtherTraffic | None = None) -> VirtualRunner:
    """Return the runner that transmits a case's flows, and other traffic beside them, through its lab."""
    others = others or OtherTraffic(lab=case.lab)
    return VirtualRunner(
        others.lab,
        case.admitted,
        entries=case.entries,
        profile_of=case.profile_of,
        openflow=case.openflow,
        other_entries=others.entries,
    )


def transmit(
    case: AdmittedSet,
    traffic: Sequence[Sender],
    *,
    seed: int,
    duration_ns: int,
    others: OtherTraffic | None = None,
    capture: Callable[[PoweredLab], None] | None = None,
) -> RunRecords:
    """Transmit this traffic, and other traffic beside it, and return the records.

    After the run, `capture` may take what was captured of it.
    """
    with runner_of(case, others) as runner:
        powered = runner.powered(seed=seed, is_captured=capture is not None)
    beside = () if others is None else others.senders
    records = powered.run([*traffic, *beside], duration_ns=duration_ns, drain_ns=DRAIN_NS)
    if capture is not None:
        capture(powered)
    return records


def random_burst_senders(case: AdmittedSet, *, load: float, observed: bool = False) -> list[Sender]:
    """Return senders that send as the paper's generator does (section 6.1), each before its bucket.

    `load` is the mean offered rate over the bucket's. Far above 1, a flow sends all that it may.
    """
    return [
        Sender.of(
            number,
            flow,
            RandomBursts(
                bucket=_bucket(flow),
                offered_rate_bps=max(1.0, load * flow.rate_bps),
                burst_bytes=flow.burst_bytes,
                queue_bytes=_QUEUE_FRAMES * flow.frame_bytes,
            ),
            observed=observed,
        )
        for number, flow in enumerate(case.flows)
    ]


def timed_senders(case: AdmittedSet, releases: Sequence[Instants], *, observed: bool = False) -> list[Sender]:
    """Return senders that offer frames at these instants. Their buckets delay what comes too early."""
    return [
        Sender.of(number, flow, Releases(instants_ns=instants_ns, bucket=_bucket(flow)), observed=observed)
        for number, (flow, instants_ns) in enumerate(zip(case.flows, releases, strict=True))
    ]


def _bucket(flow: Flow) -> Bucket:
    return Bucket(rate_bps=math.floor(flow.rate_bps), burst_bytes=flow.burst_bytes)


def judge_delivery(case: AdmittedSet, records: RunRecords) -> DeliveryResult:
    """Compare what arrived of the admitted flows with what was guaranteed."""
    flows = []
    for number, seen in records.flows.items():
        if number >= len(case.admitted):
            continue
        admitted = case.admitted[number]
        wrong = sum(seen[what] for what in ("duplicates", "misdelivered", "corrupted", "nonconforming"))
        flows.append(
            FlowResult(
                flow=admitted.flow.id,
                sent=seen["sent"],
                lost=seen["sent"] - seen["received"],
                wrong=wrong,
                worst=seen["max_delay_ns"] / admitted.guarantee_ns,
            )
        )
    return DeliveryResult(
        packets=sum(flow.sent for flow in flows),
        flows=tuple(flows),
        fullest=max(board["ring_units_peak"] for board in records.boards.values()),
        events=records.events,
    )
