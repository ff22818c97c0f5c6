"""A sliced port in real time: Open vSwitch between two veths, with `tc htb` on its egress."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from loko.slicing.document import CodelDrops, HtbPort, HtbQueue, LateDrops
from loko.units import NS_PER_US, US_PER_S
from loko_testbed.instruments.network_namespace import another_namespace, namespace_of, within
from loko_testbed.instruments.programs import require, run
from loko_testbed.instruments.traffic_control import (
    Htb,
    class_id,
    direct_udp,
    htb_rates,
    shown_classes,
)
from loko_testbed.live.departure_times import departures
from loko_testbed.live.openvswitch import OpenVSwitch
from loko_testbed.measure.slices.injection import InjectionMethod, best_injection_method
from loko_testbed.measure.slices.live_port import (
    DESTINATION,
    EGRESS,
    IN_PORTS,
    OUT_PORT,
    SOURCE,
    ReleasedFrames,
    SliceReply,
    SliceRequest,
    send,
    switch_between,
)
from loko_testbed.simulation.runner import RunError

_ROOT_CLASS: Final = 1
_FIRST_CLASS: Final = 0x10
_LEAF = "pfifo"
"""Queueing discipline of a class that drops frames only if it has no room for them."""
_SHOWN: Final = 0.01
"""Relative error due to the rounding of values that tc shows, such as 1001Kbit for 1000500."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HtbRequest(SliceRequest):
    """A request to send through a port of HTB."""

    injection: InjectionMethod = field(default_factory=best_injection_method)
    """How frames get into the queues."""


def transmit(request: HtbRequest, folder: Path) -> SliceReply:
    """Build the port in this network namespace and send. Raises `RunError`."""
    assert isinstance(request.port, HtbPort)
    hosts = tuple(frames.release.host for frames in request.frames)
    with ExitStack() as stack:
        built = sliced_switch(request.port, folder, hosts=hosts, injection=request.injection)
        switch = stack.enter_context(built)
        if bounded(request.port) is None:
            for frames in request.frames:
                _classify(frames)
            return send(request, switch)
        # A frame keeps its departure time in its namespace, and there would be no other stamp on it.
        holder = stack.enter_context(another_namespace())
        run(["ip", "link", "set", DESTINATION, "netns", str(holder)], what=DESTINATION)
        inside = within(namespace_of(holder))
        run(["ip", "link", "set", DESTINATION, "up"], what=DESTINATION, prefix=inside)
        return send(request, switch, destination=namespace_of(holder))


@contextmanager
def sliced_switch(
    port: HtbPort,
    folder: Path,
    *,
    hosts: Sequence[str] = (SOURCE,),
    default: int = 0,
    injection: InjectionMethod,
    addressed: bool = False,
) -> Iterator[OpenVSwitch]:
    """Build links, switch and sliced port in this network namespace. Raises `RunError`.

    Unclassified frames go through the queue `default`. `addressed`: source and destination have addresses, so
    that the switch also carries the way back. `injection`: how frames get into the queues.
    """
    tapped = injection is InjectionMethod.TAP
    flows = [f"in_port={IN_PORTS[host]},actions=output:{OUT_PORT}" for host in hosts]
    if addressed:
        flows.append(f"in_port={OUT_PORT},actions=output:{IN_PORTS[SOURCE]}")
    check(port)
    with (
        switch_between(folder, flows, hosts=hosts, datapath=injection.datapath, tapped=tapped) as switch,
        ExitStack() as stack,
    ):
        if not tapped:
            switch.leave_queues([EGRESS])
        if (drops := bounded(port)) is None:
            slice_port(port, default)
        else:
            (queue,) = port.queues
            stack.enter_context(
                departures(
                    EGRESS,
                    folder / "bpf",
                    rate_bps=queue.rate_bps,
                    burst_bytes=queue.burst_bytes,
                    after_ns=round(drops.after_us * NS_PER_US),
                )
            )
        yield switch


def bounded(port: HtbPort) -> LateDrops | None:
    """Return the only queue's bound, with which departure times replace HTB; None if it has none."""
    return next((queue.drops for queue in port.queues if isinstance(queue.drops, LateDrops)), None)


def check(port: HtbPort) -> None:
    """Raise `RunError` if Linux cannot do what the port's queues require."""
    if bounded(port) is not None and (
        len(port.queues) > 1 or port.queues[0].ceiling_bps > port.queues[0].rate_bps
    ):
        late = next(queue for queue in port.queues if isinstance(queue.drops, LateDrops))
        raise RunError(
            f"htb on the port: queue '{late.name}' drops what is late, which Linux can only do for the one"
            " queue of a port, without borrowing: use --mode virtual, or leave out its drops"
        )


def slice_port(port: HtbPort, default: int = 0) -> None:
    """Set up the port's classes with tc and verify them; if that fails, remove them all. Raises `RunError`.

    Unclassified frames go through the queue `default`.
    """
    try:
        _slice(port, default)
    except RunError:
        subprocess.run(
            [require("tc"), "qdisc", "del", "dev", EGRESS, "root"], capture_output=True, check=False
        )
        raise


def _minor(number: int) -> int:
    """Return the minor number of a queue's class."""
    return _FIRST_CLASS + number


def _slice(port: HtbPort, default: int) -> None:
    what = "htb on the port"
    htb = Htb(EGRESS, default=_minor(default), what=what)
    root = htb_rates(port.root_bps, port.root_bps, port.root_burst_bytes, port.root_burst_bytes)
    htb.add(_ROOT_CLASS, root)
    for number, queue in enumerate(port.queues):
        rates = htb_rates(queue.rate_bps, queue.ceiling_bps, queue.burst_bytes, queue.ceiling_burst_bytes)
        turns = ["quantum", str(queue.turn_bytes), "prio", str(queue.priority)]
        htb.add(_minor(number), [*rates, *turns], below=_ROOT_CLASS, leaf=_leaf(queue))
    shown = run(["tc", "class", "show", "dev", EGRESS], what=what)
    for number, queue in enumerate(port.queues):
        if (differs := difference(number, queue, shown)) is not None:
            raise RunError(f"{what}: queue '{queue.name}': {differs}: this kernel or tc did not obey")


def _leaf(queue: HtbQueue) -> list[str]:
    """Return the queueing discipline of a class and its settings, as arguments of tc."""
    room = ["limit", str(queue.limit_frames)]
    if not isinstance(queue.drops, CodelDrops):
        return [_LEAF, *room]
    # Frames of all hosts are one flow, and none is marked in place of being dropped.
    times = ["target", f"{queue.drops.target_us:g}us", "interval", f"{queue.drops.interval_us:g}us"]
    return ["fq_codel", *room, "flows", "1", "noecn", *times]


def _classify(frames: ReleasedFrames) -> None:
    """Direct frames to their queue by a filter: Open vSwitch in user space cannot tell tc the queue."""
    minor = _minor(frames.release.queue)
    direct_udp(EGRESS, "dport", frames.udp_destination, minor, what="htb on the port: its filters")


def difference(number: int, queue: HtbQueue, shown: str) -> str | None:
    """Describe how the output of ``tc class show`` deviates beyond rounding; None if it does not."""
    values = shown_classes(shown).get(class_id(_minor(number)))
    if values is None:
        return "the class is not there"
    for name, expected, rate_bps in (
        ("burst", queue.burst_bytes, queue.rate_bps),
        ("cburst", queue.ceiling_burst_bytes, queue.ceiling_bps),
    ):
        # tc stores a bucket as whole microseconds at its rate, and rounds once more when it shows it.
        rounding = 2 * (1 + rate_bps / 8 / US_PER_S) + expected * _SHOWN
        if abs(values.get(name, 0.0) - expected) > rounding:
            return f"{name} is {values.get(name, 0.0):.0f} bytes instead of {expected}"
    for name, expected in (("rate", queue.rate_bps), ("ceil", queue.ceiling_bps)):
        if abs(values.get(name, 0.0) - expected) > expected * _SHOWN:
            return f"{name} is {values.get(name, 0.0):.0f} bit/s instead of {expected}"
    return None
