"""The goodput of a slice whose sender always has something to send (docs/slicing.md, section 2)."""

from __future__ import annotations

from loko.slicing.document import HtbPort, HtbQueue, Port, TrtcmPort, TrtcmQueue
from loko.slicing.lengths import Protocol, Scheduler, counted, on_wire, payload
from loko.units import NS_PER_S


def counted_bps(port: Port, queue: HtbQueue | TrtcmQueue, frame_bytes: int) -> float:
    """Return the rate that frames of this length really get, as the scheduler counts; at most the link's.

    A policer lets its committed and its excess rate pass if their buckets can hold the packet at all, as far
    as its polls take the packets. For a class, only the assured rate is predicted: what it may borrow depends
    on others.
    """
    if isinstance(port, HtbPort) and isinstance(queue, HtbQueue):
        return _htb_bps(port, queue, frame_bytes)
    assert isinstance(queue, TrtcmQueue)  # a port of one kind has queues of that kind
    packet = counted(Scheduler.TRTCM, frame_bytes)
    committed = queue.cir_bps if packet <= queue.cbs_bytes else 0
    excess = queue.eir_bps if packet <= queue.ebs_bytes else 0
    assert isinstance(port, TrtcmPort)  # as above
    polled_bps = port.dequeue.group_frames / port.dequeue.poll_us * 1e6 * packet * 8
    return min(committed + excess, polled_bps, port.link_rate_bps * packet / on_wire(frame_bytes))


def _htb_bps(port: HtbPort, queue: HtbQueue, frame_bytes: int) -> float:
    """Return the rate of a class that is always backlogged, while others leave it the link.

    From a full bucket it sends until the level is too low. Then it sleeps until it can pay for a group, at
    the latest until the timer. The timer is late, so the bucket may overflow meanwhile, which costs rate. If
    the link is free again before that, the class is checked then, and goes on if it can pay. The level at
    which it wakes is the same in every round, so a single round gives the rate. It is a lower bound: a frame
    that arrives meanwhile also wakes the class, before the timer.
    """
    length = counted(Scheduler.HTB, frame_bytes)
    rate = queue.rate_bps / 8 / NS_PER_S
    burst = min(queue.burst_bytes, queue.ceiling_burst_bytes)
    slot_ns = on_wire(frame_bytes) * 8 * NS_PER_S / port.link_rate_bps
    if rate * slot_ns >= length:
        return length * 8 * NS_PER_S / slot_ns
    payable = min((port.dequeue.group_frames - 1) * length, burst)
    late_ns = port.dequeue.timer_us * 1e3
    woken = payable + rate * late_ns
    if woken <= burst:
        return queue.rate_bps
    # The bucket is full when the timer fires.
    level, frames, taken, sending_ns = float(burst), 0, 0, 0.0
    while True:
        level -= length
        frames += 1
        taken = (taken + 1) % port.dequeue.group_frames
        refilled = min(level + rate * slot_ns, burst)
        if level < (0 if taken else payable):
            if refilled < payable:
                break
            taken = 0
        sending_ns += slot_ns
        level = refilled
    asleep_ns = (payable - level) / rate + late_ns
    return frames * length * 8 * NS_PER_S / (sending_ns + asleep_ns)


def goodput_bps(port: Port, queue: HtbQueue | TrtcmQueue, frame_bytes: int, protocol: Protocol) -> float:
    """Return the payload rate in bit/s of full frames of this length, without what is sent twice.

    For TCP it is what the scheduler lets pass; how much of that is retransmitted depends on what is dropped.
    """
    scheduler = Scheduler(port.scheduler)
    passed = counted_bps(port, queue, frame_bytes)
    return passed * payload(protocol, frame_bytes) / counted(scheduler, frame_bytes)
