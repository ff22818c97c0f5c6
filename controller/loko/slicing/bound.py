"""Deterministic bounds on the delay of a token-bucket flow in a slice, proved in docs/slicing.md, section 4.

A bound is from a frame's last bit in to its first bit out. This goes beyond the paper, which only has
equation 1, a mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from loko.slicing.document import (
    CodelDrops,
    HtbPort,
    HtbQueue,
    LateDrops,
    Port,
    SliceFlow,
    TrtcmPort,
    TrtcmQueue,
)
from loko.slicing.lengths import MAX_FRAME_BYTES, MIN_FRAME_BYTES, Scheduler, counted, on_wire
from loko.units import NS_PER_S, NS_PER_US


@dataclass(frozen=True, slots=True)
class SliceBound:
    """A bound on the delay: no frame of the queue's flow is later."""

    delay_us: float
    lossy_because: str | None = None
    """Why frames may be lost instead, in one line; None if none is."""


@dataclass(frozen=True, slots=True)
class NoSliceBound:
    """Why there is no bound, and how to get one, in one line."""

    because: str


def delay_bound(port: Port, queue: HtbQueue | TrtcmQueue) -> SliceBound | NoSliceBound:
    """Return the bound on the delay of a queue's flow, or why there is none."""
    if isinstance(port, HtbPort):
        assert isinstance(queue, HtbQueue)  # a port of one kind has queues of that kind
        return _with_drops(port, queue, _Htb(port, queue).bound())
    assert isinstance(queue, TrtcmQueue)
    return _trtcm(port, queue)


def _with_drops(
    port: HtbPort, queue: HtbQueue, proved: SliceBound | NoSliceBound
) -> SliceBound | NoSliceBound:
    """Return theorem 3's bound: how a class's bound changes if its queue also drops while it has room."""
    waits_us = proved.delay_us - port.latency_us if isinstance(proved, SliceBound) else None
    if isinstance(queue.drops, LateDrops):
        if waits_us is not None and waits_us <= queue.drops.after_us:
            return proved
        because = proved.because if isinstance(proved, NoSliceBound) else f"it may wait {waits_us:.0f} us"
        return SliceBound(
            port.latency_us + queue.drops.after_us,
            lossy_because=f"nothing says that all of its flow comes in time: {because}",
        )
    if isinstance(queue.drops, CodelDrops) and waits_us is not None and waits_us > queue.drops.target_us:
        return NoSliceBound(
            "CoDel may drop what waits longer than its target; raise target_us, or leave out drops"
        )
    return proved


class _Htb:
    """Theorem 1, for one queue. Times are in ns; bytes are those that HTB counts."""

    def __init__(self, port: HtbPort, queue: HtbQueue) -> None:
        self._port, self._queue = port, queue
        self._rate = _per_ns(queue.rate_bps)
        self._late_ns = port.dequeue.timer_us * NS_PER_US

    def bound(self) -> SliceBound | NoSliceBound:
        """Return the theorem's bound, or why it gives none."""
        queue, flow, wait_ns = self._queue, self._queue.flow, self._wait_ns(self._port.queues)
        if flow is None:
            return NoSliceBound("nothing is said of what is sent; give the queue a flow")
        if wait_ns is None:
            return NoSliceBound(
                "the rates of all queues take the whole link, preambles and gaps counted; leave some free"
            )
        if (why := self._unproved() or self._too_little(flow)) is not None:
            return NoSliceBound(why)
        length = counted(Scheduler.HTB, flow.frame_bytes)
        rate, burst = _of(flow, Scheduler.HTB)
        unpaid = burst + self._rate * wait_ns - queue.burst_bytes + self._group(length) - length
        delay_ns = wait_ns + (self._late_ns + unpaid / self._rate if unpaid > 0 else 0.0)
        if (burst + rate * delay_ns) / length + 1 > queue.limit_frames:
            return NoSliceBound("its queue can overflow; raise limit_frames, or lower the flow's burst_bytes")
        return SliceBound(self._port.latency_us + delay_ns / NS_PER_US)

    def _group(self, length: int) -> int:
        """Return the level in bytes at which a class wakes, for frames of this length."""
        return (self._port.dequeue.group_frames - 1) * length

    def _too_little(self, flow: SliceFlow) -> str | None:
        """Return why the class may serve less than its flow needs; None if it always serves enough."""
        if _of(flow, Scheduler.HTB)[0] > self._rate * (1 + 1e-12):
            return "its flow sends more than the class is assured; raise rate_bps, or lower the flow's"
        others_ns = self._wait_ns([other for other in self._port.queues if other is not self._queue])
        assert others_ns is not None  # less work than that of all queues, which the link can carry
        group = self._group(counted(Scheduler.HTB, flow.frame_bytes))
        needed = group + self._rate * (self._late_ns + others_ns)
        if self._queue.burst_bytes >= needed:
            return None
        return (
            "its bucket overflows while the class sleeps or waits, which costs it rate;"
            f" raise burst_bytes to {int(needed) + 1}"
        )

    def _unproved(self) -> str | None:
        """Return why the theorem does not cover the class; None if it does."""
        queue = self._queue
        alone = queue.ceiling_bps == queue.rate_bps and queue.ceiling_burst_bytes == queue.burst_bytes
        unlimited = (
            self._port.dequeue.group_frames == 1
            and queue.ceiling_bps >= self._port.link_rate_bps
            and queue.ceiling_burst_bytes >= queue.burst_bytes
        )
        if alone or unlimited:
            return None
        return (
            "nothing is proved of a class whose ceiling is above its rate and below the link's; set ceil_bps"
            " to its rate and cburst_bytes to its burst"
            + (", or ceil_bps to the link's rate" if self._port.dequeue.group_frames == 1 else "")
        )

    def _wait_ns(self, queues: Iterable[HtbQueue]) -> float | None:
        """Return the longest time for which the link carries what these classes may send without borrowing.

        None if they may take the whole link.
        """
        work_ns, load = self._wire_ns(MAX_FRAME_BYTES), 0.0
        for queue in queues:
            longest = MAX_FRAME_BYTES if queue.flow is None else queue.flow.frame_bytes
            shortest = MIN_FRAME_BYTES if queue.flow is None else queue.flow.frame_bytes
            per_byte_ns = self._wire_ns(shortest) / counted(Scheduler.HTB, shortest)
            work_ns += (queue.burst_bytes + counted(Scheduler.HTB, longest)) * per_byte_ns
            load += _per_ns(queue.rate_bps) * per_byte_ns
        return work_ns / (1 - load) if load < 1 else None

    def _wire_ns(self, frame_bytes: int) -> float:
        return on_wire(frame_bytes) * 8 * NS_PER_S / self._port.link_rate_bps


def _trtcm(port: TrtcmPort, queue: TrtcmQueue) -> SliceBound | NoSliceBound:
    """Return the bound by theorem 2, or why there is none."""
    flows = _flows(port.queues)
    if isinstance(flows, NoSliceBound) or queue.flow is None:
        return flows if isinstance(flows, NoSliceBound) else NoSliceBound("it has no flow")
    poll_ns, group = port.dequeue.poll_us * NS_PER_US, port.dequeue.group_frames
    frames = sum(flow.burst_bytes // flow.frame_bytes for flow in flows)
    per_ns = sum(_per_ns(flow.rate_bps) / flow.frame_bytes for flow in flows)
    if per_ns * poll_ns > group:
        return NoSliceBound("the flows send more frames than the polls take; lower their rates")
    polled_ns = poll_ns * (1 + frames / group)
    rate, burst = _of(queue.flow, Scheduler.TRTCM)
    if rate > _per_ns(queue.cir_bps) * (1 + 1e-12):
        return NoSliceBound(
            "its flow sends more than the committed rate; raise cir_bps, or lower the flow's rate_bps"
        )
    needed = burst + rate * polled_ns
    if queue.cbs_bytes < needed:
        return NoSliceBound(
            "a poll can take more at once than the committed bucket holds, so that conforming packets are"
            f" dropped; raise cbs_bytes to {int(needed) + 1}"
        )
    per_byte_ns = 8 * NS_PER_S / port.link_rate_bps
    load, work_ns = 0.0, 0.0
    for flow in flows:
        share_ns = per_byte_ns * on_wire(flow.frame_bytes) / flow.frame_bytes
        load += _per_ns(flow.rate_bps) * share_ns
        work_ns += (flow.burst_bytes + _per_ns(flow.rate_bps) * polled_ns) * share_ns
    if load > 1:
        return NoSliceBound("the flows send more than the link carries; lower their rates")
    return SliceBound(port.latency_us + (polled_ns + work_ns) / NS_PER_US)


def _flows(queues: Sequence[TrtcmQueue]) -> list[SliceFlow] | NoSliceBound:
    """Return the flows of all queues of the port, which wait together for the poll."""
    flows = []
    for queue in queues:
        if queue.flow is None:
            return NoSliceBound(
                f"all queues wait together for the poll, and nothing is said of what is sent to"
                f" '{queue.name}'; give each queue a flow"
            )
        flows.append(queue.flow)
    return flows


def _of(flow: SliceFlow, scheduler: Scheduler) -> tuple[float, float]:
    """Return the flow's rate (bytes/ns) and burst (bytes, of whole frames) as the scheduler counts them."""
    share = counted(scheduler, flow.frame_bytes) / flow.frame_bytes
    return _per_ns(flow.rate_bps) * share, flow.burst_bytes * share


def _per_ns(rate_bps: float) -> float:
    """Convert bit/s to bytes per nanosecond."""
    return rate_bps / 8 / NS_PER_S
