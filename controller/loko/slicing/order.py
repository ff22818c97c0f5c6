"""In which packets and in which order to send messages through a slice (the slicing paper, figure 3).

All messages are there at once, and the slice has been idle. All packets are equally long, so when the n-th
packet arrives does not depend on what it carries; a message has arrived with its last packet. So segmentation
decides when packets arrive, and order decides which of them complete a message.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

from loko.document import InputError
from loko.slicing.document import HtbPort, HtbQueue, Port, TrtcmPort, TrtcmQueue
from loko.slicing.lengths import MAX_FRAME_BYTES, Protocol, Scheduler, counted, on_wire, payload
from loko.units import NS_PER_S, NS_PER_US

_PREAMBLE: Final = 8
_ROUNDED_BYTES: Final = 1e-6
"""A level this little short of a packet is enough: levels are rounded here, and exact in a switch."""
FRAMES_BYTES: Final = (256, 512, 1024, MAX_FRAME_BYTES)
"""Lengths of packets, as frames with FCS, that are compared."""
MOST_MESSAGES: Final = 6
MOST_PACKETS: Final = 10_000
MOST_BYTES: Final = 2_000_000
"""Most bytes of one message."""


@dataclass(frozen=True, slots=True)
class SliceMessage:
    """A message, by its bytes of payload."""

    name: str
    size_bytes: int
    needs: str | None = None
    """Another message without which it is of no use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferPlan:
    """One way to send the messages, and when each has arrived."""

    frame_bytes: int
    order: str
    arrived_us: dict[str, float | None]
    """From the beginning of the first packet to the beginning of the message's last. None: one is dropped."""
    mean_us: float
    """Mean over the messages of when each is of use; infinite if a message is incomplete."""

    @property
    def last_us(self) -> float:
        """When the last message has arrived; infinite if a message is incomplete."""
        return max(math.inf if time is None else time for time in self.arrived_us.values())


def transfer_plans(
    port: Port, queue: HtbQueue | TrtcmQueue, messages: Sequence[SliceMessage]
) -> list[TransferPlan]:
    """Return every way, the best first: the smallest mean, then the earliest last message.

    The ways are each length of packets with each order of whole messages, with the messages in turns of one
    packet, and with all messages as one. Raises `InputError`.
    """
    if not 1 <= len(messages) <= MOST_MESSAGES:
        raise InputError(f"{len(messages)} messages: give 1 to {MOST_MESSAGES}, as --message data=21000")
    if isinstance(port, HtbPort) and isinstance(queue, HtbQueue):
        if queue.ceiling_bps > queue.rate_bps:
            raise InputError(
                f"queue '{queue.name}' may borrow, so that others decide when its packets come; leave out its"
                " ceil_bps for what is certain"
            )
        if queue.drops is not None:
            raise InputError(
                f"queue '{queue.name}' drops packets although there is room, which is not followed here;"
                " leave out its drops"
            )
        if port.root_bps < port.link_rate_bps:
            raise InputError("root_rate_bps is below the link's, which is not followed here; leave it out")
    names = [message.name for message in messages]
    if len(set(names)) < len(names):
        raise InputError(f"two messages have one name ({', '.join(names)}); name them apart")
    for message in messages:
        if message.needs is not None and message.needs not in names:
            raise InputError(f"message '{message.name}' needs '{message.needs}', which is not sent; add it")
    every_way = []
    for frame in FRAMES_BYTES:
        every_way += _with_packets(port, queue, messages, frame)
    return sorted(every_way, key=lambda way: (way.mean_us, way.last_us, -way.frame_bytes))


def _with_packets(
    port: Port, queue: HtbQueue | TrtcmQueue, messages: Sequence[SliceMessage], frame: int
) -> list[TransferPlan]:
    each = payload(Protocol.UDP, frame)
    packets = {message.name: -(-message.size_bytes // each) for message in messages}
    total = sum(packets.values())
    if total > MOST_PACKETS:
        raise InputError(f"{total} packets of {frame} bytes: more than {MOST_PACKETS}; give shorter messages")
    came_ns = arrivals_ns(port, queue, frame, total)
    orders: dict[str, Mapping[str, Sequence[int]]] = {
        ", ".join(names): _in_order(names, packets) for names in permutations(packets)
    }
    if len(messages) > 1:
        orders["in turns"] = _in_turns(packets)
        orders["as one"] = dict.fromkeys(packets, range(total))
    candidates = []
    for order, places in orders.items():
        arrived_us = {message.name: _arrived_us(places[message.name], came_ns) for message in messages}
        mean_us = _mean_us(messages, arrived_us)
        candidates.append(
            TransferPlan(frame_bytes=frame, order=order, arrived_us=arrived_us, mean_us=mean_us)
        )
    return candidates


def _arrived_us(places: Sequence[int], came_ns: Sequence[float | None]) -> float | None:
    """Return when the last of these packets has come; None if one is dropped."""
    times_ns = [came_ns[place] for place in places]
    return None if None in times_ns else max(time_ns or 0.0 for time_ns in times_ns) / NS_PER_US


def _mean_us(messages: Sequence[SliceMessage], arrived_us: Mapping[str, float | None]) -> float:
    times_us = {name: math.inf if time is None else time for name, time in arrived_us.items()}
    uses_us = [max(times_us[message.name], times_us[message.needs or message.name]) for message in messages]
    return sum(uses_us) / len(uses_us)


def _in_order(names: Sequence[str], packets: dict[str, int]) -> dict[str, range]:
    places, at = {}, 0
    for name in names:
        places[name] = range(at, at + packets[name])
        at += packets[name]
    return places


def _in_turns(packets: dict[str, int]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {name: [] for name in packets}
    left, at = dict(packets), 0
    while any(left.values()):
        for name in packets:
            if left[name]:
                places[name].append(at)
                left[name] -= 1
                at += 1
    return places


def arrivals_ns(port: Port, queue: HtbQueue | TrtcmQueue, frame_bytes: int, count: int) -> list[float | None]:
    """Return when each of so many packets leaves an idle slice; None for one that is dropped.

    From the first bit of the first packet to the first bit of each, both on the port's links. The packets
    are sent as one burst, and nothing else is sent. For a class that may not borrow.
    """
    slot_ns = on_wire(frame_bytes) * 8 * NS_PER_S / port.link_rate_bps
    wire_ns = (frame_bytes + _PREAMBLE) * 8 * NS_PER_S / port.link_rate_bps
    first_ns = wire_ns + port.latency_us * NS_PER_US
    in_ns = [first_ns + place * slot_ns for place in range(count)]
    length = counted(Scheduler(port.scheduler), frame_bytes)
    if isinstance(port, HtbPort):
        assert isinstance(queue, HtbQueue)  # a port of one kind has queues of that kind
        return _through_class(port, queue, in_ns, length, slot_ns)
    assert isinstance(queue, TrtcmQueue)
    return _through_policer(port, queue, in_ns, length, slot_ns)


def _through_class(
    port: HtbPort, queue: HtbQueue, in_ns: Sequence[float], length: int, slot_ns: float
) -> list[float | None]:
    group, late_ns = port.dequeue.group_frames, port.dequeue.timer_us * NS_PER_US
    rate = queue.rate_bps / 8 / NS_PER_S
    holds = float(min(queue.burst_bytes, queue.ceiling_burst_bytes))
    level, at_ns, free_ns, asleep, taken = holds, 0.0, 0.0, False, 0
    payable = min((group - 1) * length, holds)
    out: list[float | None] = []
    left = 0
    for place, arrives_ns in enumerate(in_ns):
        if arrives_ns < free_ns and place - left >= queue.limit_frames:
            out.append(None)
            continue
        now_ns = max(arrives_ns, free_ns)
        level = min(level + rate * (now_ns - at_ns), holds)
        if level < (payable if asleep else 0) - _ROUNDED_BYTES:
            asleep = True
            due_ns = now_ns + (payable - level) / rate
            # An arrival asks the scheduler, too.
            asks_ns = next((later_ns for later_ns in in_ns[place:] if later_ns >= due_ns), math.inf)
            woken_ns = min(asks_ns, due_ns + late_ns)
            level = min(level + rate * (woken_ns - now_ns), holds)
            now_ns = woken_ns
        asleep = False
        out.append(now_ns)
        left += 1
        level, at_ns, free_ns, taken = level - length, now_ns, now_ns + slot_ns, taken + 1
        empty = place + 1 == len(in_ns) or in_ns[place + 1] > now_ns
        if empty or taken >= group:
            taken = 0
        spare = payable if taken == 0 and not empty else 0
        if level < spare - _ROUNDED_BYTES:
            asleep, taken = True, 0
    return out


def _through_policer(
    port: TrtcmPort, queue: TrtcmQueue, in_ns: Sequence[float], length: int, slot_ns: float
) -> list[float | None]:
    poll_ns, group = port.dequeue.poll_us * NS_PER_US, port.dequeue.group_frames
    buckets = [(queue.cir_bps, queue.cbs_bytes), (queue.eir_bps, queue.ebs_bytes)]
    levels, at_ns, free_ns = [float(holds) for _, holds in buckets], 0.0, 0.0
    out: list[float | None] = []
    waiting, polled_ns = list(in_ns), in_ns[0] + poll_ns
    while waiting:
        taken = sum(1 for arrives_ns in waiting[:group] if arrives_ns <= polled_ns)
        levels = [
            min(level + bps / 8 / NS_PER_S * (polled_ns - at_ns), float(holds))
            for level, (bps, holds) in zip(levels, buckets, strict=True)
        ]
        at_ns = polled_ns
        for _ in range(taken):
            enough = length - _ROUNDED_BYTES
            which = next((which for which, level in enumerate(levels) if level >= enough), None)
            if which is None:
                out.append(None)
                continue
            levels[which] -= length
            leaves_ns = max(polled_ns, free_ns)
            out.append(leaves_ns)
            free_ns = leaves_ns + slot_ns
        waiting = waiting[taken:]
        if waiting:
            polled_ns = max(polled_ns, waiting[0]) + poll_ns
    return out
